"""The pointwise losses once more: compiled twins of `forback.objectives.linear.losses`.

A kernel takes the loss as a number and a parameter, so that each is compiled once for all losses.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from forback.core.types import Floats
from forback.objectives.linear.rows import Rows
from forback.solvers.kernels.compiled import kernel
from forback.solvers.kernels.exponential import LOG_2, exp_of_minus

#: The losses that kernels know, by their names; each is called by its place in this list.
KNOWN_LOSSES = ("squared", "logistic", "poisson", "gamma", "huber", "squared_hinge")
SQUARED, LOGISTIC, POISSON, GAMMA, HUBER, SQUARED_HINGE = range(6)


class LossCode(NamedTuple):
    """A loss as kernels know it.

    Attributes
    ----------
    kind : int
    parameter : float
    floor : float
        The least curvature Newton's method uses.
    concordant : bool
        Whether its third derivative is at most its second.
    """

    kind: int
    parameter: float
    floor: float
    concordant: bool


class Target(NamedTuple):
    """A loss with its y and weights."""

    code: LossCode
    y: Floats
    weights: Floats


#: Rows are evaluated this many at a time: their numbers stay in the nearest cache.
PIECE = 512


@kernel
def _log_of_one_plus(x: float) -> float:
    """log(1 + x) for 0 <= x <= 1: twice the series of artanh(t / (2 + t))."""
    large = x > 0.41421356237309503  # sqrt(2) - 1: halve 1 + x, so that t is small
    t = 0.5 * (x - 1.0) if large else x
    s = t / (2.0 + t)
    z = s * s
    series = 1.0 / 21.0
    series = series * z + 1.0 / 19.0
    series = series * z + 1.0 / 17.0
    series = series * z + 1.0 / 15.0
    series = series * z + 1.0 / 13.0
    series = series * z + 1.0 / 11.0
    series = series * z + 1.0 / 9.0
    series = series * z + 1.0 / 7.0
    series = series * z + 1.0 / 5.0
    series = series * z + 1.0 / 3.0
    log = 2.0 * s + 2.0 * s * z * series
    return log + LOG_2 if large else log


@kernel
def _logistic(eta: float, y: float) -> tuple[float, float, float]:
    """Logistic loss and derivatives from the margin: 1 - p would lose digits in a good fit."""
    sign = 2.0 * y - 1.0
    margin = sign * eta
    small = exp_of_minus(abs(margin))
    right = 1.0 / (1.0 + small)
    left = small * right
    wrong = left if margin > 0.0 else right
    value = _log_of_one_plus(small) + (0.0 if margin > 0.0 else -margin)
    return value, -sign * wrong, left * right


@kernel
def all_three(loss: int, parameter: float, eta: float, y: float) -> tuple[float, float, float]:
    """Value, first and second derivative; an exponential is taken once."""
    if loss == LOGISTIC:
        return _logistic(eta, y)
    if loss == POISSON:
        mean = math.exp(eta)
        return mean - y * eta, mean - y, mean
    if loss == GAMMA:
        share = y * math.exp(-eta)
        return share + eta, 1.0 - share, share
    if loss == HUBER:
        residual = eta - y
        if abs(residual) <= parameter:
            return 0.5 * residual * residual, residual, 1.0
        edge = math.copysign(parameter, residual)
        return edge * (residual - 0.5 * edge), edge, 0.0
    if loss == SQUARED_HINGE:
        sign = 2.0 * y - 1.0
        slack = max(0.0, 1.0 - sign * eta)
        return slack * slack, -2.0 * sign * slack, (2.0 if slack > 0.0 else 0.0)
    residual = eta - y
    return 0.5 * residual * residual, residual, 1.0


@kernel
def pointwise(
    code: LossCode, eta: Floats, y: Floats, values: Floats, first: Floats, second: Floats
) -> None:
    """Fill in value, first and second derivative for many rows."""
    if code.kind == LOGISTIC:  # a loop of its own, so that nothing in it branches
        for i in range(len(eta)):
            value, d1, d2 = _logistic(eta[i], y[i])
            values[i] = value
            first[i] = d1
            second[i] = d2
    else:
        for i in range(len(eta)):
            values[i], first[i], second[i] = all_three(code.kind, code.parameter, eta[i], y[i])


@kernel
def evaluate(target: Target, rows: Rows, start: int, stop: int) -> float:
    """Return the weighted loss of some rows at their eta, and fill in its weighted derivatives."""
    values = np.empty(min(PIECE, stop - start))
    total = 0.0
    for begin in range(start, stop, PIECE):
        end = min(begin + PIECE, stop)
        weights = target.weights[begin:end]
        first = rows.residual[begin:end]
        second = rows.curvature[begin:end]
        pointwise(target.code, rows.eta[begin:end], target.y[begin:end], values, first, second)
        for i in range(end - begin):
            total += weights[i] * values[i]
            first[i] *= weights[i]
            second[i] *= weights[i]
    return total
