"""Second derivatives from differences of gradients, where nobody gives them."""

from __future__ import annotations

import numpy as np

from forback.core.types import Floats
from forback.objectives.function.oracles import Oracle
from forback.solvers.linalg import TINY

#: A slope must change by at least the first share of itself, and at most the second, between two
#: places that tell about curvature: less is rounding, more is another part of the function.
SEEN, NEAR = 1e-8, 0.3

#: So often the distance is changed until it does.
TRIES = 20


def hessian_column(oracle: Oracle, beta: Floats, gradient: Floats, j: int) -> Floats:
    """A column of the Hessian from the gradient here and at a place not far along coordinate j."""
    unit = np.zeros(oracle.dim)
    unit[j] = 1.0
    return _product(oracle, beta, unit, gradient, max(1.0, abs(beta[j])))


def curvature_along(oracle: Oracle, beta: Floats, direction: Floats, gradient: Floats) -> float:
    """The second derivative along a direction; 1 where there is none to be seen."""
    length = float(np.linalg.norm(direction))
    if length == 0.0:
        return 1.0
    unit = direction / length
    found = float(unit @ _product(oracle, beta, unit, gradient, 1.0))
    return found if found > 0.0 else max(float(np.abs(gradient).max()), TINY)


def _product(oracle: Oracle, beta: Floats, unit: Floats, gradient: Floats, size: float) -> Floats:
    """The Hessian times a unit vector; zeros where no distance is right."""
    far, slope = 1e-4 * size, abs(float(unit @ gradient))
    for _ in range(TRIES):
        value, there = oracle.at(beta + far * unit)
        turn = abs(float(unit @ (there - gradient))) if np.isfinite(value) else np.inf
        if SEEN * slope < turn <= NEAR * max(slope, 1e-3 * float(np.abs(gradient).max())):
            return (there - gradient) / far
        if turn == 0.0 and far > 1e6 * size:
            break
        far *= 1e2 if turn <= SEEN * slope else 1e-1
    return np.zeros(oracle.dim)
