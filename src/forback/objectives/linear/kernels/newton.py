"""Newton's method on a small dense block, in one call: for fits where all goes well.

What goes well is decided as in `forback.solvers.newton`. At the first sign of anything else (an
ill-conditioned Hessian, a step that is too long or too short) it stops and leaves the fit to that
function.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from forback.core.tolerances import (
    FAR,
    ILL_CONDITIONED,
    NEGLIGIBLE,
    ROUNDING,
    SHRINKS,
    SUFFICIENT_DECREASE,
)
from forback.core.types import Floats
from forback.objectives.linear.kernels.losses import Target
from forback.objectives.linear.kernels.rows import move_dense
from forback.objectives.linear.rows import Rows
from forback.solvers.kernels.cholesky import fill_factor, solve_factored
from forback.solvers.kernels.compiled import kernel
from forback.solvers.kernels.vectors import add_multiple, copy, dot, largest


class SmallProblem(NamedTuple):
    """Q as a function of the coefficients of a few columns.

    Attributes
    ----------
    target : Target
    columns : Floats
        The columns, one after the other.
    ridge : Floats
    scale : Floats
        The scale by which each entry of the gradient is measured.
    """

    target: Target
    columns: Floats
    ridge: Floats
    scale: Floats


class Ending(NamedTuple):
    """When Newton's method ends.

    Attributes
    ----------
    unit : float
        A size of Q that is not rounding.
    tol : float
    max_iter : int
    """

    unit: float
    tol: float
    max_iter: int


class Place(NamedTuple):
    """A place on the way to the minimum."""

    coef: Floats
    rows: Rows
    gradient: Floats


@kernel
def _room(m: int, n: int) -> Place:
    return Place(np.zeros(m), Rows(np.empty(n), np.empty(n), np.empty(n)), np.empty(m))


@kernel
def _evaluate(small: SmallProblem, base: Floats, direction: Floats, place: Place) -> float:
    """Q at eta = base + B direction, where the coefficients of `place` are; it gets the rest."""
    penalty = 0.0
    for a in range(len(small.ridge)):
        place.gradient[a] = small.ridge[a] * place.coef[a]
        penalty += 0.5 * place.gradient[a] * place.coef[a]
    return penalty + move_dense(
        small.target, base, small.columns, direction, place.rows, place.gradient, 0, len(base)
    )


@kernel
def fill_hessian(small: SmallProblem, curvature: Floats, hessian: Floats) -> None:
    """The second derivative, for columns where its diagonal is NaN: it is not known yet."""
    weighted = np.empty(len(curvature))
    for a in range(len(small.ridge)):
        if math.isnan(hessian[a, a]):
            for i in range(len(curvature)):
                weighted[i] = curvature[i] * small.columns[a, i]
            for b in range(len(small.ridge)):
                if b <= a or not math.isnan(hessian[b, b]):
                    hessian[a, b] = hessian[b, a] = dot(weighted, small.columns[b])
            hessian[a, a] += small.ridge[a]


@kernel
def _reach(columns: Floats, direction: Floats) -> float:
    """How far a step along `direction` moves any eta."""
    move = np.zeros(columns.shape[1])
    for a in range(len(direction)):
        add_multiple(direction[a], columns[a], move)
    return largest(move)


@kernel
def _steepness(gradient: Floats, scale: Floats) -> float:
    steepness = 0.0
    for a in range(len(scale)):
        steepness = max(steepness, abs(gradient[a]) / scale[a])
    return steepness


@kernel
def small_newton(
    small: SmallProblem,
    coef: Floats,
    base: Floats,
    direction: Floats,
    hessian: Floats,
    ending: Ending,
    ceiling: float,
) -> tuple[bool, float, Place]:
    """Minimise Q from `coef`, where eta is base + B direction.

    Returns whether the minimum was reached, Q and the place. It is not reached, among other things,
    from a start above `ceiling`. What is known of the Hessian, good enough for the first step, is
    replaced by the last one; the rest of it is NaN.
    """
    m, n = small.columns.shape
    code = small.target.code
    here = _room(m, n)
    there = _room(m, n)
    triangle = np.zeros((m, m))
    root = np.empty(m)
    move = np.empty(m)
    copy(coef, here.coef)
    value = _evaluate(small, base, direction, here)
    steepness = _steepness(here.gradient, small.scale)
    again = False
    for step in range(ending.max_iter if value <= ceiling else 0):
        size = max(ending.unit, abs(value))
        # A loss with corners may be curved quite differently in another place.
        if step == 0 or not again or code.floor > 0.0:
            if step > 0:
                hessian[:] = math.nan
            fill_hessian(small, here.rows.curvature, hessian)
            if not fill_factor(hessian, root, triangle, ILL_CONDITIONED):
                break
        solve_factored(triangle, root, here.gradient, move)
        for a in range(m):
            move[a] = -move[a]
            there.coef[a] = here.coef[a] + move[a]
        slope = dot(here.gradient, move)
        small_enough = steepness <= ending.tol
        if -0.5 * slope <= (NEGLIGIBLE if small_enough else ROUNDING) * size:
            far = small_enough and code.concordant and _reach(small.columns, move) > FAR
            return not far, value, here
        trial = _evaluate(small, here.rows.eta, move, there)
        after = _steepness(there.gradient, small.scale)
        if -slope <= NEGLIGIBLE * size:  # values cannot resolve so little; the gradient can
            good = after < 0.5 * steepness
        else:
            good = (
                trial <= value + SUFFICIENT_DECREASE * slope
                and dot(there.gradient, move) >= 0.5 * slope
            )
        if not (good and np.isfinite(trial)):
            break
        again = after < SHRINKS * steepness
        steepness = after
        value = trial
        here, there = there, here
    return False, value, here
