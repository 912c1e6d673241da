"""The pointwise losses once more, one row at a time: twins of `forback.objectives.losses`.

A kernel takes the loss as a number and a parameter, so that each is compiled once for all losses.
"""

from __future__ import annotations

import math

from forback.kernels.compiled import kernel

SQUARED, LOGISTIC, POISSON, GAMMA, HUBER, SQUARED_HINGE = range(6)


@kernel
def value(loss: int, parameter: float, eta: float, y: float) -> float:
    """The loss of one row."""
    if loss == LOGISTIC:
        margin = eta if y > 0.5 else -eta
        return math.log1p(math.exp(-abs(margin))) + max(-margin, 0.0)
    if loss == POISSON:
        return math.exp(eta) - y * eta
    if loss == GAMMA:
        return y * math.exp(-eta) + eta
    if loss == HUBER:
        residual = abs(eta - y)
        inside = min(residual, parameter)
        return inside * (residual - 0.5 * inside)
    if loss == SQUARED_HINGE:
        slack = max(0.0, 1.0 - (eta if y > 0.5 else -eta))
        return slack * slack
    return 0.5 * (eta - y) * (eta - y)


@kernel
def slopes(loss: int, parameter: float, eta: float, y: float) -> tuple[float, float]:
    """Its first and second derivative."""
    if loss == LOGISTIC:
        margin = eta if y > 0.5 else -eta
        small = math.exp(-abs(margin))
        wrong = (1.0 if margin <= 0.0 else small) / (1.0 + small)
        return (-wrong if y > 0.5 else wrong), small / ((1.0 + small) * (1.0 + small))
    if loss == POISSON:
        mean = math.exp(eta)
        return mean - y, mean
    if loss == GAMMA:
        share = y * math.exp(-eta)
        return 1.0 - share, share
    if loss == HUBER:
        residual = eta - y
        if abs(residual) <= parameter:
            return residual, 1.0
        return math.copysign(parameter, residual), 0.0
    if loss == SQUARED_HINGE:
        sign = 1.0 if y > 0.5 else -1.0
        slack = max(0.0, 1.0 - sign * eta)
        return -2.0 * sign * slack, (2.0 if slack > 0.0 else 0.0)
    return eta - y, 1.0


@kernel
def all_three(loss: int, parameter: float, eta: float, y: float) -> tuple[float, float, float]:
    """Value, first and second derivative; where an exponential is shared, it is taken once."""
    if loss == LOGISTIC:
        margin = eta if y > 0.5 else -eta
        small = math.exp(-abs(margin))
        wrong = (1.0 if margin <= 0.0 else small) / (1.0 + small)
        slope = -wrong if y > 0.5 else wrong
        bend = small / ((1.0 + small) * (1.0 + small))
        return math.log1p(small) + max(-margin, 0.0), slope, bend
    if loss == POISSON:
        mean = math.exp(eta)
        return mean - y * eta, mean - y, mean
    first, second = slopes(loss, parameter, eta, y)
    return value(loss, parameter, eta, y), first, second
