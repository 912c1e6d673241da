"""Second derivatives: as they are given, or from differences of gradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forback.core.tolerances import SMALLEST_DIVISOR
from forback.core.types import Floats, Ints
from forback.objectives.function.oracles import Oracle, WatchedFunction
from forback.solvers.newton import Problem, State

#: Between two places whose difference tells about curvature, the slope changes by more than the
#: first fraction of itself, below which is rounding, and at most by the second.
MIN_SLOPE_CHANGE = 1e-8
MAX_SLOPE_CHANGE = 0.3

#: Where a slope is smaller than this fraction of the largest, that fraction takes its place.
MIN_RELATIVE_SLOPE = 1e-3

#: The first distance between two places, relative to the coordinate, and how often it is changed.
FIRST_DISTANCE = 1e-4
MAX_DISTANCES = 20

#: Curvatures below this fraction of the typical one are ignored when a first step is guessed.
MIN_RELATIVE_CURVATURE = 1e-20


def hessian_column(oracle: Oracle, beta: Floats, gradient: Floats, j: int) -> Floats:
    """Return a column of the Hessian from the gradient here and not far along coordinate j."""
    unit = np.zeros(oracle.dim)
    unit[j] = 1.0
    return _product(oracle, beta, unit, gradient, max(1.0, abs(beta[j])))


def curvature_along(oracle: Oracle, beta: Floats, direction: Floats, gradient: Floats) -> float:
    """Return the second derivative along a direction; 1 where there is none to be seen."""
    length = float(np.linalg.norm(direction))
    if length == 0.0:
        return 1.0
    unit = direction / length
    found = float(unit @ _product(oracle, beta, unit, gradient, 1.0))
    return found if found > 0.0 else max(float(np.abs(gradient).max()), SMALLEST_DIVISOR)


def _product(oracle: Oracle, beta: Floats, unit: Floats, gradient: Floats, size: float) -> Floats:
    """The Hessian times a unit vector; zeros where no distance is right."""
    distance = FIRST_DISTANCE * size
    slope = abs(float(unit @ gradient))
    most = MAX_SLOPE_CHANGE * max(slope, MIN_RELATIVE_SLOPE * float(np.abs(gradient).max()))
    for _ in range(MAX_DISTANCES):
        value, there = oracle.at(beta + distance * unit)
        change = abs(float(unit @ (there - gradient))) if np.isfinite(value) else np.inf
        if MIN_SLOPE_CHANGE * slope < change <= most:
            return (there - gradient) / distance
        if change == 0.0 and distance > 1e6 * size:
            break
        distance *= 1e2 if change <= MIN_SLOPE_CHANGE * slope else 1e-1
    return np.zeros(oracle.dim)


def or_typical(curvature: Floats, typical: float) -> Floats:
    """Return curvatures, the typical one where they are too small to guess a step from."""
    return np.where(curvature > MIN_RELATIVE_CURVATURE * typical, curvature, typical)


@dataclass(frozen=True)
class RestrictedHessian(Problem):
    """A function of some coordinates whose Hessian is given, for `forback.solvers.newton`."""

    _oracle: Oracle
    _support: Ints
    _evaluate: WatchedFunction

    def at(self, coef: Floats) -> State:
        """Evaluate at `coef`."""
        return State(coef, *self._evaluate(coef))

    def hessian(self, state: State) -> Floats:
        """Return the second derivative."""
        beta = state.dense(self._support, self._oracle.dim)
        found = self._oracle.hessian_columns(beta, self._support, self._support)
        assert found is not None  # the oracle says that it has one
        return found

    def square_root(self, state: State) -> tuple[Floats, Floats]:
        """Return A and z with ``A'A`` the Hessian and ``A'z`` the gradient, where it is curved."""
        hessian = self.hessian(state)
        values, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T))
        root = np.sqrt(np.maximum(values, 0.0))
        rotated = vectors.T @ state.gradient
        z = np.divide(rotated, root, out=np.zeros_like(root), where=root > 0.0)
        return root[:, None] * vectors.T, z
