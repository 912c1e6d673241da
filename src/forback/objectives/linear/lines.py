"""Q along single coordinates from a point: how far it falls, how far it rises.

By bounds where they decide, exactly where they do not. A self-concordant loss (logistic, Poisson,
gamma) bounds Q along a column by its slope and curvature at the point alone, which one pass over X
gives for all columns; a few are left to solve. For other losses the bounds come with the solving.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from forback.core.tolerances import SCREENING_RTOL
from forback.core.types import Floats, Ints
from forback.designs.design import Design
from forback.designs.kernels.entries import Entries, Rest
from forback.designs.single_precision import Coarse
from forback.objectives.linear.columns import Columns
from forback.objectives.linear.kernels import lines as kernels
from forback.objectives.linear.kernels.losses import LossCode
from forback.objectives.linear.problem import Response, Rows
from forback.solvers import threads

#: A part for a thread has at least so many columns, and so many entries.
COLUMNS_AT_ONCE = 8
ENTRIES_PER_PART = 1 << 14


@dataclass(frozen=True)
class Lines:
    """One-dimensional problems through one point."""

    response: Response
    design: Design
    rows: Rows
    ridge: Floats  #: of every candidate
    coef: Floats  #: of every candidate
    coarse: Coarse | None = None  #: the design in single precision, if it is at hand

    def decreases(self, coordinates: Ints, negligible: float) -> Floats:
        """How far Q falls along each of the coordinates, exactly."""
        scores, _ = self._solve(coordinates, None, negligible, 0.0)
        return scores

    def screened_decreases(self, coordinates: Ints, negligible: float) -> tuple[Floats, int]:
        """The same where it may be the largest, a bound above it elsewhere; how many are exact."""
        code = self.response.code
        if code is None:
            return self.decreases(coordinates, negligible), len(coordinates)
        slopes, curvatures, lower, upper = self._bounds(code, coordinates)
        # What is too little for Newton's method to make a step scores 0 exactly.
        for bound in (lower, upper):
            bound[bound <= kernels.CLOSE * negligible] = 0.0
        enough = good_enough(lower, negligible)
        left = np.flatnonzero((upper >= enough) & (upper > 0.0))
        # The most promising first: the better the best, the sooner the others are ruled out.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            promise = np.abs(slopes[left]) / np.sqrt(curvatures[left])
        left, solved = left[np.argsort(-promise, kind="stable")], 0
        for some in (left[:1], left[1:]):
            hopeful = some[upper[some] >= enough]
            known = None if self.coarse is not None else (slopes, curvatures)
            if known is not None and code.concordant and len(hopeful) > 1:
                bounds = self._bounds_by_entries(coordinates[hopeful], negligible, enough)
                upper[hopeful] = np.minimum(upper[hopeful], bounds)
                hopeful = hopeful[upper[hopeful] >= enough]
            if len(hopeful):
                own = None if known is None else (slopes[hopeful], curvatures[hopeful])
                upper[hopeful], exact = self._solve(
                    coordinates[hopeful], own, negligible, max(enough, 1e-300)
                )
                solved += exact
                enough = max(enough, good_enough(upper[hopeful], negligible))
        return upper, solved

    def _bounds(self, code: LossCode, coordinates: Ints) -> tuple[Floats, Floats, Floats, Floats]:
        """Slopes and curvatures by one pass over X, and what they say about the decreases."""
        bend = np.maximum(self.rows.bend, code.floor * self.response.weights)
        if self.coarse is None:
            sums, off = self.design.three_sums(self.rows.residual, bend), 0.0
            error = np.zeros(len(coordinates))
        else:
            sums, wrong = self.coarse.three_sums(self.rows.residual, bend)
            error, off = wrong[coordinates], 1e-6
        slopes, curvatures, cubes = (part[coordinates] for part in sums)
        slopes += self.ridge[coordinates] * self.coef[coordinates]
        curvatures += self.ridge[coordinates]
        with np.errstate(invalid="ignore"):  # infinite in single precision
            flat = np.abs(slopes) + error == 0.0
        lower, upper = np.zeros_like(slopes), np.where(flat, 0.0, np.inf)
        if code.concordant:
            largest = self.design.largest[coordinates]
            kernels.decrease_bounds(slopes, error, curvatures, cubes, off, largest, lower, upper)
        return slopes, curvatures, lower, upper

    def _solve(
        self,
        coordinates: Ints,
        known: tuple[Floats, Floats] | None,
        negligible: float,
        enough: float,
    ) -> tuple[Floats, int]:
        """Exact decreases, or bounds where that is not `enough`; slopes and curvatures if known."""
        scores = np.empty(len(coordinates))
        if self.response.code is None:
            for place, columns in self._columns(coordinates):
                scores[place] = columns.largest_decrease(negligible)
            return scores, len(scores)
        slopes, curvatures = known or 2 * (np.full(len(scores), np.nan),)
        solved, width = 0, self.design.columns_at_once
        for begin in range(0, len(coordinates), width):
            part = slice(begin, begin + width)
            own, out = coordinates[part], scores[part]
            sums = slopes[part], curvatures[part]
            solved += self._run(own, self.design.entries(own), None, sums, negligible, enough, out)
            if enough > 0.0:
                enough = max(enough, good_enough(out, negligible))
        return scores, solved

    def _bounds_by_entries(self, coordinates: Ints, negligible: float, enough: float) -> Floats:
        """Upper bounds from the stored entries of columns most of whose rows are alike."""
        bounds = np.full(len(coordinates), np.inf)
        stored = self.design.stored_entries(coordinates, self.rows.residual, self.rows.bend)
        if stored is not None:
            nothing = 2 * (np.full(len(coordinates), np.nan),)
            self._run(coordinates, *stored, nothing, negligible, max(enough, 1e-300), bounds)
        return bounds * (1.0 + kernels.SLACK)

    def _run(
        self,
        own: Ints,
        entries: Entries,
        rest: Rest | None,
        sums: tuple[Floats, Floats],
        negligible: float,
        enough: float,
        out: Floats,
    ) -> int:
        """Let kernels fill in the decreases of some columns; return how many are exact."""
        code, rows = self.response.code, self._rows
        assert code is not None
        given = (self.ridge[own], self.coef[own], self.design.largest[own], *sums, rest)

        def some(start: int, stop: int) -> int:
            return kernels.largest_decreases(
                code, rows, entries, *given, negligible, enough, out, start, stop
            )

        return sum(threads.over_chunks(some, edges_of(entries)))

    def increase_bounds(self, coordinates: Ints) -> tuple[Floats, Floats] | None:
        """Between which numbers the increases lie, where that is told by few of the rows."""
        code = self.response.code
        if code is None or not code.concordant:
            return None
        stored = self.design.stored_entries(coordinates, self.rows.residual, self.rows.bend)
        if stored is None:
            return None
        ridge, coef = self.ridge[coordinates], self.coef[coordinates]
        lower, upper = np.empty(len(coordinates)), np.empty(len(coordinates))
        kernels.change_bounds(code, self._rows, *stored, ridge, coef, -coef, lower, upper)
        return lower, upper

    def increases(self, coordinates: Ints) -> Floats:
        """How far Q rises when each of the coordinates is set to zero, exactly."""
        steps = -self.coef[coordinates]
        out = np.empty(len(coordinates))
        if self.response.code is None:
            for place, columns in self._columns(coordinates):
                out[place] = columns.change(steps[place])
            return out
        code, rows, entries = self.response.code, self._rows, self.design.entries(coordinates)
        ridge, coef = self.ridge[coordinates], self.coef[coordinates]

        def some(start: int, stop: int) -> None:
            kernels.changes(code, rows, entries, ridge, coef, steps, out, start, stop)

        threads.over_chunks(some, edges_of(entries))
        return out

    @cached_property
    def _rows(self) -> kernels.Rows:
        response, eta = self.response, self.rows.eta
        return kernels.Rows(response.y, response.weights, eta, response.values(eta))

    def _columns(self, coordinates: Ints) -> Iterator[tuple[slice, Columns]]:
        response = self.response
        for place, chunk in self.design.chunks(coordinates):
            own = coordinates[place]
            yield (
                place,
                Columns(
                    response.loss, chunk, response.y, response.weights, self.rows.eta,
                    self.ridge[own], self.coef[own],
                ),
            )  # fmt: skip


def good_enough(scores: Floats, negligible: float) -> float:
    """What a candidate must reach to be as good as the best of these, but for rounding."""
    return float(scores.max() * (1.0 - SCREENING_RTOL) - kernels.NOISE * negligible)


def edges_of(entries: Entries) -> list[int]:
    """Columns split into parts that are worth a thread."""
    count = len(entries.begin)
    mean = int((entries.end - entries.begin).sum()) // max(count, 1)
    return threads.edges(count, max(COLUMNS_AT_ONCE, ENTRIES_PER_PART // max(mean, 1)))
