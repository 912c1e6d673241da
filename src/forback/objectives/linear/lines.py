"""Q along single coordinates from a point: how far it falls, how far it rises.

With the fit at eta and a column x, phi(a) is the change of Q when a * x is added to eta:

    phi(a) = sum_i w_i [loss(eta_i + a x_i, y_i) - loss(eta_i, y_i)] + ridge (c a + a^2 / 2)

where c is the column's present coefficient. FoBa-obj asks for -min phi, removal for phi(-c).

Both come by bounds where these decide, exactly where they do not. A self-concordant loss (logistic,
Poisson, gamma) bounds Q along a column by its slope and curvature at the point alone, which one
pass over X gives for all columns; a few are left to solve. For other losses the bounds come with
the solving.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from forback.core.objective import Scores
from forback.core.tolerances import MAX_ETA_STEP, SCREENING_RTOL, SMALLEST_DIVISOR
from forback.core.types import Floats, Ints
from forback.designs.chunks import Chunk
from forback.designs.design import Design
from forback.designs.kernels.entries import Entries
from forback.designs.single_precision import SinglePrecision
from forback.objectives.linear.kernels import lines as kernels
from forback.objectives.linear.kernels.losses import LossCode
from forback.objectives.linear.problem import Response
from forback.objectives.linear.rows import Rows
from forback.solvers import threads
from forback.solvers.best_first import best_first, to_match
from forback.solvers.one_variable import minimisers

#: A part for a thread has at least so many columns, and so many entries.
MIN_COLUMNS_PER_PART = 8
MIN_ENTRIES_PER_PART = 1 << 14

#: By what fraction squares and cubes in single precision may be off.
SINGLE_PRECISION_RTOL = 1e-6


@dataclass(frozen=True)
class Lines:
    """One-dimensional problems through one point.

    Attributes
    ----------
    response : Response
    design : Design
    rows : Rows
    ridge : Floats
        The penalty of every candidate.
    coef : Floats
        The coefficient of every candidate.
    single_precision : SinglePrecision | None
        A copy of the design, if it is at hand.
    """

    response: Response
    design: Design
    rows: Rows
    ridge: Floats
    coef: Floats
    single_precision: SinglePrecision | None = None

    def decreases(self, coordinates: Ints, negligible: float) -> Floats:
        """Return how far Q falls along each of the coordinates, exactly."""
        if self.response.code is None:
            return self._of_own_loss(coordinates, lambda own: own.largest_decrease(negligible))
        return self._solve(coordinates, negligible, 0.0)[0]

    def screened_decreases(self, coordinates: Ints, negligible: float) -> Scores:
        """Return decreases that are exact where they may be the largest, upper bounds elsewhere."""
        code = self.response.code
        if code is None:
            return Scores.exact(self.decreases(coordinates, negligible))
        slopes, curvatures, lower, upper = self._bounds(code, coordinates)
        # What is too little for Newton's method to make a step scores 0 exactly.
        for bound in (lower, upper):
            bound[bound <= kernels.CLOSE * negligible] = 0.0
        slack = kernels.NOISE * negligible
        best_so_far = to_match(lower, slack)
        left = np.flatnonzero((upper >= best_so_far) & (upper > 0.0))
        sums_are_exact = self.single_precision is None

        def solve(some: Ints, best_so_far: float) -> tuple[Floats, int]:
            some = left[some]
            hopeful = some[upper[some] >= best_so_far]
            if sums_are_exact and code.concordant and len(hopeful) > 1:
                bounds = self._bounds_by_entries(coordinates[hopeful], negligible, best_so_far)
                upper[hopeful] = np.minimum(upper[hopeful], bounds)
                hopeful = hopeful[upper[hopeful] >= best_so_far]
            if not len(hopeful):
                return upper[some], 0
            known = (slopes[hopeful], curvatures[hopeful]) if sums_are_exact else ()
            upper[hopeful], n_exact = self._solve(
                coordinates[hopeful], negligible, max(best_so_far, SMALLEST_DIVISOR), known
            )
            return upper[some], n_exact

        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            promise = np.abs(slopes[left]) / np.sqrt(curvatures[left])
        n_exact = best_first(promise, solve, best_so_far=best_so_far, slack=slack).n_exact
        return Scores(upper, n_exact)

    def _bounds(self, code: LossCode, coordinates: Ints) -> tuple[Floats, Floats, Floats, Floats]:
        """Slopes and curvatures by one pass over X, and what they say about the decreases."""
        residual = self.rows.residual
        curvature = np.maximum(self.rows.curvature, code.floor * self.response.weights)
        off = 0.0
        error = np.zeros(len(coordinates))
        if self.single_precision is None:
            sums = self.design.three_sums(residual, curvature)
        else:
            sums, errors = self.single_precision.three_sums(residual, curvature)
            error = errors[coordinates]
            off = SINGLE_PRECISION_RTOL
        slopes, curvatures, cubes = (part[coordinates] for part in sums)
        slopes += self.ridge[coordinates] * self.coef[coordinates]
        curvatures += self.ridge[coordinates]
        with np.errstate(invalid="ignore"):  # infinite in single precision
            flat = np.abs(slopes) + error == 0.0
        lower = np.zeros_like(slopes)
        upper = np.where(flat, 0.0, np.inf)
        if code.concordant:
            largest = self.design.largest[coordinates]
            three = (slopes, curvatures, cubes)
            kernels.decrease_bounds(three, error, off, largest, lower, upper)
        return slopes, curvatures, lower, upper

    def _solve(
        self,
        coordinates: Ints,
        negligible: float,
        best_so_far: float,
        known: tuple[Floats, ...] = (),
    ) -> tuple[Floats, int]:
        """Decreases, or bounds below the best so far; how many are exact.

        Slopes and curvatures at the point may be `known` exactly.
        """
        largest = self.design.largest[coordinates]
        facts = (self.ridge[coordinates], self.coef[coordinates], largest, *known)
        solve = partial(kernels.largest_decreases, self._kernel_rows)
        return solve_columns(solve, self.design, coordinates, facts, negligible, best_so_far)

    def _bounds_by_entries(
        self, coordinates: Ints, negligible: float, best_so_far: float
    ) -> Floats:
        """Upper bounds from the stored entries of columns most of whose rows are alike."""
        bounds = np.full(len(coordinates), np.inf)
        columns = self._stored_columns(coordinates)
        if columns is not None:
            columns = columns._replace(largest=self.design.largest[coordinates])
            limits = (negligible, max(best_so_far, SMALLEST_DIVISOR))
            solve = partial(kernels.largest_decreases, self._kernel_rows, columns, *limits, bounds)
            threads.over_chunks(solve, edges_of(columns.entries))
        return bounds * (1.0 + kernels.SLACK)

    def _stored_columns(self, coordinates: Ints) -> kernels.Columns | None:
        """Columns by their stored entries, if most of their rows are alike."""
        rows = self.rows
        stored = self.design.stored_entries(coordinates, rows.residual, rows.curvature)
        if stored is None:
            return None
        return kernels.Columns(*stored, self.ridge[coordinates], self.coef[coordinates])

    def screened_increases(
        self, coordinates: Ints, sums: tuple[Floats, Floats, Floats, Floats], below: float
    ) -> Scores:
        """Return increases that are exact where they may be the smallest and below a limit.

        Elsewhere they are lower bounds, by self-concordance. `sums` are the three sums of the
        columns and their largest entries.
        """
        scores, left = kernels.cheapest_removals(
            sums[:3], sums[3], self.coef[coordinates], self.ridge[coordinates], below
        )
        if len(left) and (bounds := self.increase_bounds(coordinates[left])):
            lower, upper = bounds
            scores[left] = lower
            least = min(below, float(upper.min()))
            left = left[lower <= least + SCREENING_RTOL * abs(least)]
        if len(left):
            scores[left] = self.increases(coordinates[left])
        return Scores(scores, len(left))

    def increase_bounds(self, coordinates: Ints) -> tuple[Floats, Floats] | None:
        """Return numbers between which increases lie, where few of the rows tell; else None.

        By self-concordance, as `screened_increases`.
        """
        columns = self._stored_columns(coordinates)
        return None if columns is None else kernels.removal_bounds(self._kernel_rows, columns)

    def increases(self, coordinates: Ints) -> Floats:
        """Return how far Q rises when each of the coordinates is set to zero, exactly."""
        if self.response.code is None:
            return self._of_own_loss(coordinates, lambda own: own.change(-own.coef))
        entries = self.design.entries(coordinates)
        own = (self.ridge[coordinates], self.coef[coordinates])
        columns = kernels.Columns(entries, kernels.NO_REST, *own)
        out = np.empty(len(coordinates))
        removals = partial(kernels.removals, self._kernel_rows, columns, out)
        threads.over_chunks(removals, edges_of(entries))
        return out

    @cached_property
    def _kernel_rows(self) -> kernels.LineRows:
        eta = self.rows.eta
        return kernels.LineRows(self.response.target, eta, self.response.values(eta))

    def _of_own_loss(self, coordinates: Ints, scores: Callable[[OwnLossLines], Floats]) -> Floats:
        """Scores of columns for a loss that kernels do not know, so many columns at a time."""
        out = np.empty(len(coordinates))
        for place, chunk in self.design.chunks(coordinates):
            own = (self.ridge[coordinates[place]], self.coef[coordinates[place]])
            out[place] = scores(OwnLossLines(self.response, chunk, self.rows.eta, *own))
        return out


@dataclass(frozen=True, slots=True)
class OwnLossLines:
    """The problems of some columns for a loss that kernels do not know: in NumPy, all at once.

    Attributes
    ----------
    response : Response
    chunk : Chunk
    eta : Floats
    ridge : Floats
        Per column.
    coef : Floats
        Per column.
    """

    response: Response
    chunk: Chunk
    eta: Floats
    ridge: Floats
    coef: Floats

    def change(self, step: Floats) -> Floats:
        """Return phi at `step`, one per column."""
        chunk = self.chunk
        loss = self.response.loss
        eta = chunk.per_row(self.eta)
        y = chunk.per_row(self.response.y)
        moved = eta + chunk.per_column(step) * chunk.values
        difference = loss.value(moved, y) - loss.value(eta, y)
        total = chunk.sum(chunk.per_row(self.response.weights) * difference)
        return total + self.ridge * step * (self.coef + 0.5 * step)

    def slope_and_curvature(self, step: Floats) -> tuple[Floats, Floats]:
        """Return phi' and phi'' at `step`; overflow reads as a slope that points back to zero."""
        chunk = self.chunk
        loss = self.response.loss
        y = chunk.per_row(self.response.y)
        moved = chunk.per_row(self.eta) + chunk.per_column(step) * chunk.values
        weighted = chunk.per_row(self.response.weights) * chunk.values
        with np.errstate(over="ignore", invalid="ignore"):
            slope = chunk.sum(weighted * loss.d1(moved, y))
            squares = weighted * chunk.values
            curvature = chunk.sum(squares * loss.d2(moved, y))
            # Where all is straight, as if it were curved a little.
            lifted = loss.newton_floor * chunk.sum(squares)
            curvature = np.where(curvature == 0.0, lifted, curvature)
        broken = ~(np.isfinite(slope) & np.isfinite(curvature))
        slope = np.where(broken, np.copysign(np.inf, step), slope + self.ridge * (self.coef + step))
        return slope, np.where(broken, np.inf, curvature + self.ridge)

    def only(self, columns: Ints) -> OwnLossLines:
        """Return the problems of some of the columns."""
        own = (self.ridge[columns], self.coef[columns])
        return OwnLossLines(self.response, self.chunk.only(columns), self.eta, *own)

    def largest_decrease(self, negligible: float) -> Floats:
        """Return -min phi for each column, by Newton's method inside a bracket of the minimum."""
        longest = np.full(len(self.ridge), np.inf)
        if self.response.loss.saturates:  # exponentials are not trusted far from here
            longest = MAX_ETA_STEP / np.maximum(self.chunk.largest(), SMALLEST_DIVISOR)
        step = minimisers(self, longest, negligible)
        return np.maximum(-self.change(step), 0.0)


def solve_columns(
    kernel: Callable[..., int],
    design: Design,
    coordinates: Ints,
    facts: tuple[Floats, ...],
    negligible: float,
    best_so_far: float,
) -> tuple[Floats, int]:
    """Return the decreases of columns, so many at a time, by a kernel; and how many are exact.

    The others are upper bounds below the best, if `best_so_far` is positive. `facts` are what
    `kernels.Columns` tell about each column besides its entries, from its ridge on.
    """
    scores = np.empty(len(coordinates))
    n_exact = 0
    for begin in range(0, len(coordinates), design.columns_at_once):
        part = slice(begin, begin + design.columns_at_once)
        entries = design.entries(coordinates[part])
        own = kernels.Columns(entries, kernels.NO_REST, *(fact[part] for fact in facts))
        some = partial(kernel, own, negligible, best_so_far, scores[part])
        n_exact += sum(threads.over_chunks(some, edges_of(entries)))
        if best_so_far > 0.0:
            best_so_far = max(best_so_far, to_match(scores[part], kernels.NOISE * negligible))
    return scores, n_exact


def edges_of(entries: Entries) -> list[int]:
    """Split columns into parts that are worth a thread."""
    count = len(entries.begin)
    mean = int((entries.end - entries.begin).sum()) // max(count, 1)
    return threads.edges(count, max(MIN_COLUMNS_PER_PART, MIN_ENTRIES_PER_PART // max(mean, 1)))
