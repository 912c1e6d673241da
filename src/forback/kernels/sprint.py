"""Newton's method on a small dense block, in one call: for fits where all goes well.

What goes well is decided as in `forback.numerics.newton`. At the first sign of anything else (an
ill-conditioned Hessian, a step that is too long or too short) it stops where it is and leaves the
rest to that function.
"""

from __future__ import annotations

import numpy as np

from forback.kernels import losses
from forback.kernels.columns import LossCode
from forback.kernels.compiled import kernel
from forback.protocols import NEGLIGIBLE, Floats

#: As in `forback.numerics`.
ROUNDING, ILL_CONDITIONED, SHRINKS, FAR = 1e-24, 1e-10, 1e-3, 0.1


@kernel
def _dot(a: Floats, b: Floats) -> float:
    """Four sums at a time, so that an addition need not wait for the one before it."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    whole = len(a) - len(a) % 4
    for i in range(0, whole, 4):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
    for i in range(whole, len(a)):
        s0 += a[i] * b[i]
    return (s0 + s1) + (s2 + s3)


@kernel
def _evaluate(
    code: LossCode,
    y: Floats,
    weights: Floats,
    columns: Floats,
    ridge: Floats,
    coef: Floats,
    eta: Floats,
    residual: Floats,
    bend: Floats,
    gradient: Floats,
) -> float:
    """Q, given eta; its derivatives are left in the last three arrays."""
    total = 0.0
    for i in range(len(y)):
        value, one, two = losses.all_three(code.kind, code.parameter, eta[i], y[i])
        total += weights[i] * value
        residual[i] = weights[i] * one
        bend[i] = weights[i] * two
    for a in range(len(coef)):
        gradient[a] = _dot(columns[a], residual) + ridge[a] * coef[a]
        total += 0.5 * ridge[a] * coef[a] * coef[a]
    return total


@kernel
def _fill_hessian(
    code: LossCode,
    weights: Floats,
    columns: Floats,
    ridge: Floats,
    bend: Floats,
    hessian: Floats,
) -> None:
    weighted = np.empty(len(bend))
    for a in range(len(ridge)):
        for i in range(len(bend)):
            weighted[i] = max(bend[i], code.floor * weights[i]) * columns[a, i]
        for b in range(a + 1):
            hessian[a, b] = hessian[b, a] = _dot(weighted, columns[b])
        hessian[a, a] += ridge[a]


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
            left = hessian[a, b] / root[a] / root[b] - _dot(triangle[a, :b], triangle[b, :b])
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
        left = right[a] / root[a] - _dot(triangle[a, :a], direction[:a])
        direction[a] = left / triangle[a, a]
    for a in range(m - 1, -1, -1):
        for b in range(a + 1, m):
            direction[a] -= triangle[b, a] * direction[b]
        direction[a] /= triangle[a, a]
    for a in range(m):
        direction[a] /= root[a]


# Loops instead of array expressions: they are compiled in a fraction of the time.


@kernel
def _add(a: Floats, b: Floats, out: Floats) -> None:
    for i in range(len(out)):
        out[i] = a[i] + b[i]


@kernel
def _copy(a: Floats, out: Floats) -> None:
    for i in range(len(out)):
        out[i] = a[i]


@kernel
def _largest(a: Floats) -> float:
    largest = 0.0
    for i in range(len(a)):
        largest = max(largest, abs(a[i]))
    return largest


@kernel
def _predict(columns: Floats, coef: Floats, out: Floats) -> None:
    for i in range(len(out)):
        out[i] = 0.0
    for a in range(len(coef)):
        for i in range(len(out)):
            out[i] += coef[a] * columns[a, i]


@kernel
def _steepness(gradient: Floats, scale: Floats) -> float:
    steepness = 0.0
    for a in range(len(scale)):
        steepness = max(steepness, abs(gradient[a]) / scale[a])
    return steepness


@kernel
def sprint(
    code: LossCode,
    y: Floats,
    weights: Floats,
    columns: Floats,
    ridge: Floats,
    scale: Floats,
    unit: float,
    tol: float,
    max_iter: int,
    value: float,
    coef: Floats,
    eta: Floats,
    residual: Floats,
    bend: Floats,
    gradient: Floats,
    hessian: Floats,
    again: bool,
) -> tuple[float, int, bool]:
    """Move the state in the last arguments towards the minimum of Q.

    With `again`, `hessian` holds one that is good enough for the first step.

    Returns Q, how many steps were made, and whether the minimum was reached.
    """
    m, n = columns.shape
    direction, move, root, triangle = np.empty(m), np.empty(n), np.empty(m), np.zeros((m, m))
    coef_next, eta_next, gradient_next = np.empty(m), np.empty(n), np.empty(m)
    residual_next, bend_next = np.empty(n), np.empty(n)
    steepness = _steepness(gradient, scale)
    for step in range(max_iter):
        size = max(unit, abs(value))
        if not again:
            _fill_hessian(code, weights, columns, ridge, bend, hessian)
        if (step == 0 or not again) and not fill_factor(hessian, root, triangle, ILL_CONDITIONED):
            return value, step, False
        solve_factored(triangle, root, gradient, direction)
        for a in range(m):
            direction[a] = -direction[a]
        gain = -0.5 * _dot(gradient, direction)
        _predict(columns, direction, move)
        small = steepness <= tol
        if gain <= (NEGLIGIBLE if small else ROUNDING) * size:
            return value, step, not (small and code.concordant and _largest(move) > FAR)
        _add(coef, direction, coef_next)
        _add(eta, move, eta_next)
        trial = _evaluate(
            code, y, weights, columns, ridge, coef_next, eta_next, residual_next, bend_next,
            gradient_next,
        )  # fmt: skip
        after = _steepness(gradient_next, scale)
        slope = -2.0 * gain
        if -slope <= NEGLIGIBLE * size:  # values cannot resolve so little; the gradient can
            good = after < 0.5 * steepness
        else:
            good = trial <= value + 1e-4 * slope and _dot(gradient_next, direction) >= 0.5 * slope
        if not (good and np.isfinite(trial)):
            return value, step, False
        again, steepness, value = after < SHRINKS * steepness, after, trial
        _copy(coef_next, coef)
        _copy(eta_next, eta)
        _copy(gradient_next, gradient)
        _copy(residual_next, residual)
        _copy(bend_next, bend)
    return value, max_iter, False
