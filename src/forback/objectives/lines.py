"""Q along single coordinates from a point: how far it falls, how far it rises.

By bounds where they decide, exactly where they do not. A self-concordant loss (logistic, Poisson,
gamma) bounds Q along a column by its slope and curvature at the point alone, which one pass over X
gives for all columns; a few are left to solve. For other losses the bounds come with the solving.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forback import threads
from forback.kernels import columns as kernels
from forback.objectives.coarse import Coarse
from forback.objectives.columns import Columns
from forback.objectives.designs import Design
from forback.objectives.restricted import Response, Rows
from forback.protocols import Floats, Ints

#: How many matrix entries are copied for the kernels at a time.
ENTRIES_AT_ONCE = 1 << 20

#: How many columns a thread solves before it looks for more.
COLUMNS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
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
        scores, _ = self._solve(coordinates, negligible, 0.0)
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
        enough = _enough(lower, negligible)
        # The most promising first: the better the best, the sooner the others are ruled out.
        left = np.flatnonzero((upper >= enough) & (upper > 0.0))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            promise = np.abs(slopes[left]) / np.sqrt(curvatures[left])
        left = left[np.argsort(-promise, kind="stable")]
        upper[left], solved = self._solve(coordinates[left], negligible, max(enough, 1e-300))
        return upper, solved

    def _bounds(
        self, code: kernels.LossCode, coordinates: Ints
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Slopes and curvatures by one pass over X, and what they say about the decreases."""
        bend = np.maximum(self.rows.bend, code.floor * self.response.weights)
        if self.coarse is None:
            sums = *self.design.both_sums(self.rows.residual, bend), np.zeros(len(self.coef))
        else:
            sums = self.coarse.both_sums(self.rows.residual, bend)
        slopes, curvatures, error = (part[coordinates] for part in sums)
        slopes += self.ridge[coordinates] * self.coef[coordinates]
        curvatures += self.ridge[coordinates]
        lower, upper, unused = (np.empty_like(slopes) for _ in range(3))
        if not code.concordant:
            lower[:], upper[:] = 0.0, np.where(np.abs(slopes) <= error, 0.0, np.inf)
            upper[error > 0.0] = np.inf
            return slopes, curvatures, lower, upper
        largest, off = self.design.largest[coordinates], 1e-6 if error.any() else 0.0
        size = np.abs(slopes)
        with np.errstate(invalid="ignore"):  # infinite in single precision
            least, most = np.maximum(size - error, 0.0), size + error
        kernels.decrease_bounds(least, curvatures * (1.0 + off), largest, lower, unused)
        kernels.decrease_bounds(most, curvatures * (1.0 - off), largest, unused, upper)
        return slopes, curvatures, lower, upper

    def _solve(self, coordinates: Ints, negligible: float, enough: float) -> tuple[Floats, int]:
        scores = np.empty(len(coordinates))
        if self.response.code is None:
            for place, columns in self._columns(coordinates):
                scores[place] = columns.largest_decrease(negligible)
            return scores, len(scores)
        solved = 0
        width = max(COLUMNS_AT_ONCE, ENTRIES_AT_ONCE // max(1, self.design.shape[0]))
        start, stop = 0, 1 if enough > 0.0 else width  # the first sets the mark for the others
        while start < len(coordinates):
            scores[start:stop], exact = self._solve_some(
                self.response.code, coordinates[start:stop], negligible, enough
            )
            solved += exact
            if enough > 0.0:
                enough = max(enough, _enough(scores[start:stop], negligible))
            start, stop = stop, stop + width
        return scores, solved

    def _solve_some(
        self, code: kernels.LossCode, own: Ints, negligible: float, enough: float
    ) -> tuple[Floats, int]:
        rows, entries, out = self._rows(), self.design.entries(own), np.empty(len(own))
        ridge, coef, largest = self.ridge[own], self.coef[own], self.design.largest[own]

        def some(start: int, stop: int) -> int:
            return kernels.largest_decreases(
                code, rows, entries, ridge, coef, largest, negligible, enough, out, start, stop
            )

        solved = threads.over_chunks(some, threads.edges(len(own), COLUMNS_AT_ONCE))
        return out, sum(solved)

    def increases(self, coordinates: Ints) -> Floats:
        """How far Q rises when each of the coordinates is set to zero, exactly."""
        steps = -self.coef[coordinates]
        out = np.empty(len(coordinates))
        if self.response.code is None:
            for place, columns in self._columns(coordinates):
                out[place] = columns.change(steps[place])
            return out
        code, rows, entries = self.response.code, self._rows(), self.design.entries(coordinates)
        ridge, coef = self.ridge[coordinates], self.coef[coordinates]

        def some(start: int, stop: int) -> None:
            kernels.changes(code, rows, entries, ridge, coef, steps, out, start, stop)

        threads.over_chunks(some, threads.edges(len(coordinates), COLUMNS_AT_ONCE))
        return out

    def screened_increases(
        self, coordinates: Ints, slopes: Floats, curvatures: Floats, largest: Floats, limit: float
    ) -> tuple[Floats, int]:
        """The same where it may be the smallest and below `limit`, a lower bound elsewhere.

        And how many are exact.

        From the slope and curvature of the mean loss along each, and its largest entry.
        """
        code = self.response.code
        if code is None or not code.concordant:
            return self.increases(coordinates), len(coordinates)
        coef, ridge = self.coef[coordinates], self.ridge[coordinates]
        lower, upper = np.empty_like(coef), np.empty_like(coef)
        kernels.increase_bounds(
            slopes + ridge * coef, curvatures + ridge, largest, -coef, lower, upper
        )
        best = min(float(upper.min()), limit)
        left = np.flatnonzero(lower <= best + kernels.TIES * abs(best))
        if len(left):
            lower[left] = self.increases(coordinates[left])
        return lower, len(left)

    def _rows(self) -> kernels.Rows:
        response, eta = self.response, self.rows.eta
        with np.errstate(over="ignore", invalid="ignore"):
            before = response.loss.value(eta, response.y)
        return kernels.Rows(response.y, response.weights, eta, before)

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


def _enough(scores: Floats, negligible: float) -> float:
    """What a candidate must reach to be as good as the best of these, but for rounding."""
    return float(scores.max() * (1.0 - kernels.TIES) - kernels.NOISE * negligible)
