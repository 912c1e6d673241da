"""Newton's method on a small dense block, in one call: for fits where all goes well.

What goes well is decided as in `forback.numerics.newton`. At the first sign of anything else (an
ill-conditioned Hessian, a step that is too long or too short) it stops and leaves the fit to that
function.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forback.kernels.compiled import kernel
from forback.kernels.losses import LossCode
from forback.kernels.rows import move_dense
from forback.kernels.vectors import add_multiple, copy, dot, largest
from forback.protocols import NEGLIGIBLE, Floats, Ints

#: A factor of the Hessian, scaled to unit diagonal, is trusted if its squared pivots exceed this.
ILL_CONDITIONED = 1e-10

#: A gain this small, relative to Q, is rounding even if the gradient does not look small.
ROUNDING = 1e-24

#: A Hessian serves for another step if the last one shrank the gradient to less than this share.
SHRINKS = 1e-2

#: A step that moves some eta by more than this is not the last one, where a loss saturates.
FAR = 0.1


class Small(NamedTuple):
    """A small problem: Q as a function of the coefficients of a few columns."""

    code: LossCode
    y: Floats
    weights: Floats
    columns: Floats  #: one after the other
    ridge: Floats
    scale: Floats  #: what each entry of the gradient is measured by


class Spot(NamedTuple):
    """A place on the way."""

    coef: Floats
    eta: Floats
    residual: Floats
    bend: Floats
    gradient: Floats


@kernel
def _room(m: int, n: int) -> Spot:
    return Spot(np.zeros(m), np.empty(n), np.empty(n), np.empty(n), np.empty(m))


@kernel
def _evaluate(small: Small, base: Floats, direction: Floats, spot: Spot) -> float:
    """Q at eta = base + B direction, where the coefficients of `spot` are; it gets the rest."""
    penalty = 0.0
    for a in range(len(small.ridge)):
        spot.gradient[a] = small.ridge[a] * spot.coef[a]
        penalty += 0.5 * spot.gradient[a] * spot.coef[a]
    return penalty + move_dense(
        small.code, small.y, small.weights, base, small.columns, direction, spot.eta,
        spot.residual, spot.bend, spot.gradient, 0, len(base),
    )  # fmt: skip


@kernel
def _fill_hessian(small: Small, bend: Floats, known: Floats, places: Ints, hessian: Floats) -> None:
    """The second derivative, of which what is known is copied: its rows and columns `places`."""
    weighted, place = np.empty(len(bend)), np.full(len(small.ridge), -1)
    for a in range(len(places)):
        place[places[a]] = a
    for a in range(len(small.ridge)):
        if place[a] < 0:
            for i in range(len(bend)):
                weighted[i] = bend[i] * small.columns[a, i]
        for b in range(len(small.ridge)):
            if place[a] >= 0 and place[b] >= 0:
                hessian[a, b] = known[place[a], place[b]]
            elif place[a] < 0 and (b <= a or place[b] >= 0):
                hessian[a, b] = hessian[b, a] = dot(weighted, small.columns[b])
        if place[a] < 0:
            hessian[a, a] += small.ridge[a]


@kernel
def fill_factor(hessian: Floats, root: Floats, triangle: Floats, least_pivot: float) -> bool:
    """Cholesky's method on the Hessian scaled to unit diagonal; False if it is ill-conditioned."""
    m = len(root)
    for a in range(m):
        root[a] = np.sqrt(hessian[a, a])
        if not (root[a] > 0.0 and np.isfinite(root[a])):  # a column of zeros, or an overflow
            return False
    for a in range(m):
        for b in range(a + 1):
            left = hessian[a, b] / root[a] / root[b] - dot(triangle[a, :b], triangle[b, :b])
            if a > b:
                triangle[a, b] = left / triangle[b, b]
            elif left > least_pivot:
                triangle[a, a] = np.sqrt(left)
            else:
                return False
    return True


@kernel
def solve_factored(triangle: Floats, root: Floats, right: Floats, direction: Floats) -> None:
    """The inverse Hessian times the right-hand side."""
    m = len(root)
    for a in range(m):
        left = right[a] / root[a] - dot(triangle[a, :a], direction[:a])
        direction[a] = left / triangle[a, a]
    for a in range(m - 1, -1, -1):
        for b in range(a + 1, m):
            direction[a] -= triangle[b, a] * direction[b]
        direction[a] /= triangle[a, a]
    for a in range(m):
        direction[a] /= root[a]


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
def sprint(
    small: Small,
    unit: float,
    tol: float,
    max_iter: int,
    ceiling: float,
    coef: Floats,
    base: Floats,
    direction: Floats,
    known: Floats,
    places: Ints,
) -> tuple[bool, float, Spot, Floats]:
    """Minimise Q from `coef`, where eta is base + B direction.

    `known` is a part of a Hessian, at `places`, good enough for the first step if there is any.

    Returns whether the minimum was reached, Q, the place and the last Hessian. It is not reached,
    among other things, from a start above `ceiling`.
    """
    m, n = small.columns.shape
    here, there, hessian, root, triangle = (
        _room(m, n), _room(m, n), np.empty((m, m)), np.empty(m), np.zeros((m, m)),
    )  # fmt: skip
    copy(coef, here.coef)
    value, move = _evaluate(small, base, direction, here), np.empty(m)
    again, steepness = len(places) > 0, _steepness(here.gradient, small.scale)
    for step in range(max_iter if value <= ceiling else 0):
        size = max(unit, abs(value))
        # A loss with corners may be curved quite differently in another place.
        if step == 0 or not again or small.code.floor > 0.0:
            some = places if again and small.code.floor == 0.0 else places[:0]
            _fill_hessian(small, here.bend, known, some, hessian)
            if not fill_factor(hessian, root, triangle, ILL_CONDITIONED):
                break
        solve_factored(triangle, root, here.gradient, move)
        for a in range(m):
            move[a] = -move[a]
            there.coef[a] = here.coef[a] + move[a]
        slope = dot(here.gradient, move)
        small_enough = steepness <= tol
        if -0.5 * slope <= (NEGLIGIBLE if small_enough else ROUNDING) * size:
            far = small_enough and small.code.concordant and _reach(small.columns, move) > FAR
            return not far, value, here, hessian
        trial = _evaluate(small, here.eta, move, there)
        after = _steepness(there.gradient, small.scale)
        if -slope <= NEGLIGIBLE * size:  # values cannot resolve so little; the gradient can
            good = after < 0.5 * steepness
        else:
            good = trial <= value + 1e-4 * slope and dot(there.gradient, move) >= 0.5 * slope
        if not (good and np.isfinite(trial)):
            break
        again, steepness, value = after < SHRINKS * steepness, after, trial
        here, there = there, here
    return False, value, here, hessian
