"""Somebody's own function along single coordinates: how far it falls there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from forback.core.types import Floats, Ints
from forback.objectives.function.oracles import Oracle, check_floor
from forback.solvers.convexity import check_rising
from forback.solvers.line_search import largest_decrease

#: A decrease must miss the best by more than this, relatively, to be ruled out.
NEARLY = 1e-6

#: Where it is so small a share of a typical curvature, it does not tell how far it is to a minimum.
LEVEL = 1e-20


@dataclass(frozen=True)
class Lines:
    """The lines through a place."""

    oracle: Oracle
    beta: Floats  #: the place
    value: float
    gradient: Floats
    typical: float  #: a curvature to begin with where nothing better is known
    noise: float  #: what slopes may be wrong by
    floor: float  #: a value so low that there seems to be no minimum
    negligible: float

    def falls(
        self, coordinates: Ints, least: Floats, enough: float | None = None
    ) -> tuple[Floats, int]:
        """How far the function falls along some coordinates, and how many scores are exact.

        Curvatures are nowhere below `least`. With `enough`, what is less than that or than the best
        so far may be a bound instead.
        """
        slopes = self.gradient[coordinates]
        steps = -slopes / self._bends(coordinates)
        at_once = self.oracle.falls(
            self.beta, self.value, coordinates, slopes, steps, self.negligible, self.noise
        )
        if at_once is not None:
            check_floor(self.value - float(at_once.max(initial=0.0)), self.floor)
            return at_once, len(at_once)
        scores, exact, best = np.zeros(len(coordinates)), 0, enough or 0.0
        for place, j in enumerate(coordinates):
            wanted = 0.0 if enough is None else (1.0 - NEARLY) * best
            scores[place], known = largest_decrease(
                partial(self._at, int(j)), slopes[place], steps[place], least[place],
                self.negligible, wanted, self.noise,
            )  # fmt: skip
            exact += known
            best = max(best, scores[place] if known else 0.0)
        return scores, exact

    def _bends(self, coordinates: Ints) -> Floats:
        """A guess at the curvature along each coordinate."""
        whole = self.oracle.hessian(self.beta, coordinates)
        if whole is None:
            return np.full(len(coordinates), self.typical)
        own = np.diag(whole)
        return np.where(own > LEVEL * self.typical, own, self.typical)

    def _at(self, j: int, step: float) -> tuple[float, float]:
        """The change and the slope after a step along coordinate j."""
        moved = self.beta.copy()
        moved[j] += step
        there, gradient = self.oracle.at(moved)
        check_floor(there, self.floor)
        ahead = float(gradient[j]) if np.isfinite(there) else float(np.copysign(np.inf, step))
        before, after = np.array([self.gradient[j]]), np.array([ahead])
        check_rising(np.array([j]), np.array([step]), before, after, self.noise)
        return there - self.value, ahead
