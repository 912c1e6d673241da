"""The pointwise losses once more, one row at a time: twins of `forback.objectives.losses`.

A kernel takes the loss as a number and a parameter, so that each is compiled once for all losses.
"""

from __future__ import annotations

import math

from forback.kernels.compiled import kernel

SQUARED, LOGISTIC, POISSON, GAMMA, HUBER, SQUARED_HINGE = range(6)


@kernel
def all_three(loss: int, parameter: float, eta: float, y: float) -> tuple[float, float, float]:
    """Value, first and second derivative; an exponential is taken once."""
    if loss == LOGISTIC:  # in the margin: 1 - p would lose every digit where the fit is good
        sign = 2.0 * y - 1.0
        margin = sign * eta
        small = math.exp(-abs(margin))
        above = 1.0 + small
        inverse = 1.0 / above
        wrong = inverse if margin <= 0.0 else small * inverse
        # log1p in half its time: the logarithm of the rounded sum, and what rounding took away.
        value = math.log(above) + (small - (above - 1.0)) * inverse
        return value + max(-margin, 0.0), -sign * wrong, small * inverse * inverse
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
