"""Somebody's own function along single coordinates: how far it falls there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from forback.core.objective import Scores
from forback.core.tolerances import RULED_OUT_RTOL
from forback.core.types import Floats, Ints
from forback.objectives.function.curvature import or_typical
from forback.objectives.function.fit import FunctionFit
from forback.objectives.function.oracles import CoordinateSearch, check_floor
from forback.solvers.convexity import SLOPE_FALL_RTOL, not_convex
from forback.solvers.line_search import largest_decrease


@dataclass(frozen=True)
class FunctionLines:
    """The lines along single coordinates through a place.

    Attributes
    ----------
    fit : FunctionFit
    beta : Floats
        The place.
    value : float
    gradient : Floats
    negligible : float
    """

    fit: FunctionFit
    beta: Floats
    value: float
    gradient: Floats
    negligible: float

    def decreases(
        self, coordinates: Ints, least: Floats, best_so_far: float | None = None
    ) -> Scores:
        """Return how far the function falls along some coordinates.

        Curvatures are nowhere below `least`. If `best_so_far` is given, what falls short of that,
        or of the best of the coordinates before, may be a bound instead.
        """
        slopes = self.gradient[coordinates]
        steps = -slopes / self._curvatures(coordinates)
        place = (self.beta, self.value, coordinates, slopes)
        search = CoordinateSearch(*place, steps, self.negligible, self.fit.noise.level)
        at_once = self.fit.oracle.decreases(search)
        if at_once is not None:
            check_floor(self.value - float(at_once.max(initial=0.0)), self.fit.floor)
            return Scores.exact(at_once)
        scores = np.zeros(len(coordinates))
        noise = self.fit.noise.level
        n_exact = 0
        best = best_so_far or 0.0
        for number, j in enumerate(coordinates):
            wanted = 0.0 if best_so_far is None else (1.0 - RULED_OUT_RTOL) * best
            line = partial(self._at, int(j))
            guess = (slopes[number], steps[number], least[number])
            score, exact = largest_decrease(line, *guess, self.negligible, wanted, noise)
            scores[number] = score
            n_exact += exact
            best = max(best, score if exact else 0.0)
        return Scores(scores, n_exact)

    def _curvatures(self, coordinates: Ints) -> Floats:
        """A guess at the curvature along each coordinate."""
        whole = None
        if self.fit.oracle.has_hessian:
            whole = self.fit.oracle.hessian_columns(self.beta, coordinates, coordinates)
        own = np.zeros(len(coordinates)) if whole is None else np.diag(whole)
        return or_typical(own, self.fit.typical)

    def _at(self, j: int, step: float) -> tuple[float, float]:
        """The change and the slope after a step along coordinate j."""
        moved = self.beta.copy()
        moved[j] += step
        there, gradient = self.fit.oracle.at(moved)
        check_floor(there, self.fit.floor)
        slope = float(gradient[j]) if np.isfinite(there) else math.copysign(math.inf, step)
        before = float(self.gradient[j])
        allowed = SLOPE_FALL_RTOL * (abs(before) + abs(slope)) + self.fit.noise.level
        if (slope - before) * math.copysign(1.0, step) < -allowed:
            raise not_convex(f"along coordinate {j}", before, slope)
        return there - self.value, slope
