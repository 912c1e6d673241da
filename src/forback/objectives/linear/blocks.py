"""Q along blocks of several columns from a point: how far it falls, how far it rises.

A quadratic Q falls by g' H^-1 g / 2, with the gradient g and the Hessian H along the block, which
is a fact of the data. Any other loss takes Newton's method, a problem per block by kernels; and as
for single columns, a self-concordant one bounds every decrease by gradient and Hessian at the
point, so that few blocks are left to solve. What kernels cannot do is done block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import linalg

from forback.core.blocks import Blocks
from forback.core.objective import Scores
from forback.core.point import Point
from forback.core.tolerances import SMALLEST_DIVISOR
from forback.core.types import Floats, Ints
from forback.objectives.linear.data import LinearData
from forback.objectives.linear.fit import NewtonFit
from forback.objectives.linear.kernels import blocks as kernels
from forback.objectives.linear.kernels.lines import CLOSE, NOISE, LineRows
from forback.objectives.linear.lines import MIN_ENTRIES_PER_PART
from forback.objectives.linear.problem import Restricted
from forback.objectives.linear.rows import Rows
from forback.solvers import threads
from forback.solvers.best_first import best_first, to_match
from forback.solvers.linalg import COLLINEAR_RTOL, inverse_roots

#: Wider blocks have little to gain from kernels: BLAS is quicker, and their number is small.
MAX_WIDTH = 32


class Width(NamedTuple):
    """The blocks of one width whose Hessian is well-conditioned.

    Attributes
    ----------
    which : Ints
        Their places among all blocks.
    columns : Ints
        Their coordinates, a row for each.
    roots : Floats
        For each a matrix R such that R R' is the inverse Hessian.
    """

    which: Ints
    columns: Ints
    roots: Floats


class Spans(NamedTuple):
    """What is known of blocks whatever the point.

    Attributes
    ----------
    blocks : Blocks
        The same blocks without columns that others of their block make up.
    widths : list of Width
        Of use where Q is quadratic.
    """

    blocks: Blocks
    widths: list[Width]


class BlockScores:
    """Problems of blocks of several columns through any point.

    Parameters
    ----------
    data : LinearData
    fits : NewtonFit
        How the problem of a single block is solved at any price.
    """

    def __init__(self, data: LinearData, fits: NewtonFit) -> None:
        self._data = data
        self._fits = fits
        # Those of one run at a time; another run only makes its own.
        self._last: tuple[Blocks, Spans] | None = None

    # Falls --------------------------------------------------------------------------------------

    def decreases(
        self,
        point: Point,
        blocks: Blocks,
        rows: Rows,
        gradient: Callable[[Point], Floats],
        *,
        only_best: bool,
    ) -> Scores:
        """Return how far Q falls when each block alone is optimised.

        With `only_best`, decreases are exact where they may be the largest of the blocks outside,
        and upper bounds elsewhere.
        """
        code = self._data.response.code
        if self._data.is_quadratic and code is not None:
            return Scores.exact(self._quadratic_decreases(point, blocks, rows, gradient(point)))
        if code is None:
            falls = np.full(len(blocks), np.nan)
            return Scores.exact(self._completed(falls, point, blocks, rows))
        own = self._spans(blocks).blocks
        if not only_best:
            return Scores.exact(self._solve(point, own, rows))
        scores = np.zeros(len(blocks))
        is_inside = np.isin(blocks.coordinates, point.support)
        outside = np.flatnonzero(~np.logical_and.reduceat(is_inside, blocks.pointer[:-1]))
        if not len(outside):
            return Scores(scores, 0)
        own = own.take(outside)
        if not code.concordant:
            scores[outside] = self._solve(point, own, rows)
            return Scores(scores, len(outside))
        scores[outside], n_exact = self._screened(point, own, rows)
        return Scores(scores, n_exact)

    def _quadratic_decreases(
        self, point: Point, blocks: Blocks, rows: Rows, gradient: Floats
    ) -> Floats:
        """g' H^-1 g / 2."""
        spans = self._spans(blocks)
        falls = np.full(len(blocks), np.nan)
        with np.errstate(over="ignore", invalid="ignore"):
            for which, columns, roots in spans.widths:
                falls[which] = 0.5 * np.square(gradient[columns][:, None] @ roots).sum(axis=(1, 2))
        return self._completed(falls, point, spans.blocks, rows)

    def _screened(self, point: Point, blocks: Blocks, rows: Rows) -> Scores:
        """Decreases that are exact where they may be the largest, upper bounds elsewhere."""
        negligible = self._data.negligible(point.value)
        expected, lower, upper = self._bounds(point, blocks, rows)
        # What is too little for Newton's method to make a step scores 0 exactly.
        for bound in (lower, upper):
            bound[bound <= CLOSE * negligible] = 0.0
        slack = NOISE * negligible
        best_so_far = to_match(lower, slack)
        left = np.flatnonzero((upper >= best_so_far) & (upper > 0.0))

        def solve(some: Ints, best_so_far: float) -> tuple[Floats, int]:
            some = left[some]
            hopeful = some[upper[some] >= best_so_far]
            if len(hopeful):
                upper[hopeful] = self._solve(point, blocks.take(hopeful), rows)
            return upper[some], len(hopeful)

        found = best_first(expected[left], solve, best_so_far=best_so_far, slack=slack)
        return Scores(upper, found.n_exact)

    def _bounds(self, point: Point, blocks: Blocks, rows: Rows) -> tuple[Floats, Floats, Floats]:
        """What Newton's method expects, and numbers between which the decreases lie."""
        expected = np.full(len(blocks), np.inf)
        lower = np.zeros(len(blocks))
        upper = np.full(len(blocks), np.inf)
        target = self._data.response.target
        for which, members in self._parts(blocks, point):
            sums = (np.empty(len(which)), np.empty(len(which)), np.empty(len(which)))
            bounds = partial(kernels.decrease_bounds, target, rows, members, *sums)
            threads.over_chunks(bounds, _edges_of(members))
            expected[which], lower[which], upper[which] = sums
        return expected, lower, upper

    def _solve(self, point: Point, blocks: Blocks, rows: Rows) -> Floats:
        """Decreases, by kernels where all goes well."""
        falls = np.full(len(blocks), np.nan)
        line_rows = self._line_rows(rows)
        for which, members in self._parts(blocks, point):
            scale, _ = self._fits.extent(blocks.take(which).coordinates)
            members = members._replace(scale=np.where(scale > 0, scale, SMALLEST_DIVISOR))
            some = np.empty(len(which))
            solve = partial(kernels.largest_decreases, line_rows, members, self._fits.ending, some)
            threads.over_chunks(solve, _edges_of(members))
            falls[which] = some
        return self._completed(falls, point, blocks, rows)

    def _completed(self, falls: Floats, point: Point, blocks: Blocks, rows: Rows) -> Floats:
        """The decreases, those that are NaN so far by the method that always works."""
        for block in np.flatnonzero(np.isnan(falls)).tolist():
            coordinates = blocks[block]
            problem, own = self._alone(coordinates, rows, point)
            start = problem.at(own)
            scale, _ = self._fits.extent(coordinates, problem.block)
            fall = start.value - self._fits.solve(problem, start, scale).state.value
            falls[block] = max(fall, 0.0)
        return falls

    # Rises --------------------------------------------------------------------------------------

    def increases(self, point: Point, blocks: Blocks, rows: Rows) -> Floats:
        """Return how far Q rises when each block is set to zero without a refit."""
        rises = np.empty(len(blocks))
        if self._data.response.code is None:
            for block, coordinates in enumerate(blocks):
                problem, own = self._alone(coordinates, rows, point)
                rises[block] = problem.at(0.0 * own).value - problem.at(own).value
            return rises
        line_rows = self._line_rows(rows)
        for which, members in self._parts(blocks, point, widest=self._data.dim):
            some = np.empty(len(which))
            removals = partial(kernels.removals, line_rows, members, some)
            threads.over_chunks(removals, _edges_of(members))
            rises[which] = some
        return rises

    # Pieces -------------------------------------------------------------------------------------

    def _alone(self, coordinates: Ints, rows: Rows, point: Point) -> tuple[Restricted, Floats]:
        """Q as a function of a block, up to a constant, and its coefficients."""
        data = self._data
        block = data.block(coordinates)
        own = point.dense(data.dim)[coordinates]
        base = block.take(rows.eta)
        if own.any():
            base = base - block.predict(own)
        response = data.response.of(block)
        return Restricted(response, block, base, data.full_ridge[coordinates]), own

    def _line_rows(self, rows: Rows) -> LineRows:
        response = self._data.response
        return LineRows(response.target, rows.eta, response.values(rows.eta))

    def _parts(
        self, blocks: Blocks, point: Point | None = None, widest: int = MAX_WIDTH
    ) -> Iterator[tuple[Ints, kernels.Members]]:
        """Blocks as kernels see them, so many columns at a time, those that are wider left out."""
        data = self._data
        beta = np.zeros(data.dim) if point is None else point.dense(data.dim)
        widths = np.diff(blocks.pointer)
        narrow = np.flatnonzero(widths <= widest)
        part = np.cumsum(widths[narrow]) // data.design.columns_at_once
        for which in np.split(narrow, np.flatnonzero(np.diff(part)) + 1):
            if len(which):
                some = blocks.take(which)
                own = some.coordinates
                entries = data.design.entries(own)
                yield which, kernels.Members(entries, some.pointer, data.ridge[own], beta[own])

    def _spans(self, blocks: Blocks) -> Spans:
        last = self._last
        if last is None or last[0] is not blocks:
            last = self._last = (blocks, self._found_spans(blocks))
        return last[1]

    def _found_spans(self, blocks: Blocks) -> Spans:
        """Look at the second moments of blocks, and closer where they are nearly singular."""
        widths, ill = self._widths(blocks)
        members = list(blocks)
        for block in ill:
            members[block] = self._independent(members[block])
        if all(len(members[block]) == len(blocks[block]) for block in ill):
            return Spans(blocks, widths)
        blocks = Blocks.of(members, blocks.always)
        return Spans(blocks, self._widths(blocks)[0] if self._data.is_quadratic else [])

    def _widths(self, blocks: Blocks) -> tuple[list[Width], list[int]]:
        """The roots of inverse second moments by width, and which are nearly singular."""
        data = self._data
        bends = data.weights * (data.loss.curvature[1] if data.is_quadratic else 1.0)
        found = list[Width]()
        ill = list[int]()
        lengths = np.diff(blocks.pointer)
        for width in np.unique(lengths[lengths <= MAX_WIDTH]).tolist():
            same = np.flatnonzero(lengths == width)
            for which, members in self._parts(blocks.take(same)):
                own = same[which]
                hessians = np.empty((len(own), width, width))
                target = data.response.target
                fill = partial(kernels.hessians, target, members, bends, hessians)
                threads.over_chunks(fill, _edges_of(members))
                roots, is_sound = inverse_roots(hessians)
                ill += own[~is_sound].tolist()
                if data.is_quadratic:
                    own = own[is_sound]
                    columns = blocks.coordinates[blocks.pointer[own, None] + np.arange(width)]
                    found.append(Width(own, columns, roots[is_sound]))
        return found, ill

    def _independent(self, coordinates: Ints) -> Ints:
        """The columns of a block, without those that others make up and that cost nothing."""
        if self._data.full_ridge[coordinates].any():
            return coordinates
        block = self._data.block(coordinates)
        rows = np.sqrt(block.take(self._data.weights))[:, None] * block.toarray()
        norms = np.linalg.norm(rows, axis=0)
        unit = rows / np.where(norms > 0, norms, 1.0)
        triangle, order = linalg.qr(unit, mode="r", pivoting=True)
        pivots = np.abs(np.diag(triangle))
        rank = int((pivots > COLLINEAR_RTOL * pivots[:1]).sum())
        return np.sort(coordinates[order[: max(rank, 1)]])


def _edges_of(members: kernels.Members) -> list[int]:
    """Split blocks into parts that are worth a thread."""
    count = len(members.pointer) - 1
    stored = int((members.entries.end - members.entries.begin).sum())
    return threads.edges(count, max(1, MIN_ENTRIES_PER_PART // max(stored // count, 1)))
