"""log Z after a few potentials change, from the messages before: only what differs is redone.

`place[u]` is the line of `factors` by which the potentials of distinct row u are multiplied, or -1
where they stay. The recursion begins at the first change of a sequence, is left where the message
is the previous one again but for a factor, resumes at the next change, and ends at the last one,
from where on the backward messages know the rest.
"""

from __future__ import annotations

import numpy as np

from forback.core.types import Floats, Ints
from forback.objectives.chain.kernels.forward_backward import (
    MAX_MESSAGE_SUM,
    MIN_MESSAGE_SUM,
    Chain,
    Messages,
    Width,
    advance,
    multiply,
    sum_of,
)
from forback.solvers.kernels.compiled import kernel

#: Two messages are the same, but for a factor, when every entry agrees to this.
MESSAGE_RTOL = 1e-14

#: How many steps pass between two looks whether they are.
STEPS_BETWEEN_LOOKS = 8


@kernel
def _next_change(chain: Chain, place: Ints, step: int, end: int) -> int:
    while step < end and place[chain.rows[step]] < 0:
        step += 1
    return step


@kernel
def _ratio(
    message: Floats, derivative: Floats, slope: float, previous: Floats, width: Width
) -> float:
    """Return the factor between two messages if they differ by nothing else; else 0.

    The derivative must be the same multiple of the message for every label: the slope.
    """
    top = np.argmax(previous)
    factor = message[top] / previous[top]
    worst = 0.0
    for j in range(len(width)):
        scaled = factor * previous[j]
        worst = max(worst, abs(message[j] - scaled) - MESSAGE_RTOL * scaled)
        if message[j] > 0.0:
            error = abs(derivative[j] / message[j] - slope)
            worst = max(worst, error / (1.0 + abs(slope)) - MESSAGE_RTOL)
    return factor if worst <= 0.0 else 0.0


@kernel
def _dot(message: Floats, other: Floats, width: Width) -> float:
    total = 0.0
    for j in range(len(width)):
        total += message[j] * other[j]
    return total


@kernel
def _apply(
    factors: Floats, slopes: Floats, line: int, message: Floats, derivative: Floats, width: Width
) -> None:
    """Multiply a message by a line of factors, and differentiate the product."""
    for j in range(len(width)):
        message[j] *= factors[line, j]
    if len(slopes) > 0:
        for j in range(len(width)):
            derivative[j] = derivative[j] * factors[line, j] + slopes[line, j] * message[j]


@kernel
def log_ratio(
    chain: Chain, previous: Messages, place: Ints, factors: Floats, slopes: Floats
) -> tuple[float, float]:
    """Return log(Z after / Z before), over all sequences, and its derivative.

    `slopes` are the derivatives of the logarithms of `factors`; without lines, none is wanted.
    """
    width = chain.width
    has_slopes = len(slopes) > 0
    message, mixed = np.empty(len(width)), np.empty(len(width))
    derivative = np.zeros(len(width))  # of the message
    total_log, total_slope = 0.0, 0.0
    for sequence in range(len(chain.edges) - 1):
        begin, end = chain.edges[sequence], chain.edges[sequence + 1]
        change = _next_change(chain, place, begin, end)
        while change < end:
            if change > begin:
                message[:] = previous.alpha[change - 1]
            derivative[:] = 0.0
            step = change
            while True:
                row = chain.rows[step]
                if step == begin:
                    for j in range(len(width)):
                        message[j] = chain.start[j] * chain.emission[row, j]
                else:
                    if has_slopes:
                        advance(chain, chain.transition, row, derivative, mixed)
                    advance(chain, chain.transition, row, message, mixed)
                line = place[row]
                if line >= 0:
                    _apply(factors, slopes, line, message, derivative, width)
                    change = _next_change(chain, place, step + 1, end)
                scale = previous.scales[step]
                total = sum_of(message, width) * scale
                if total < MIN_MESSAGE_SUM or total > MAX_MESSAGE_SUM:
                    total_log += np.log(total)
                    scale /= total
                multiply(message, scale, width)
                if has_slopes:
                    multiply(derivative, scale, width)
                if change == end:  # nothing changes any more
                    beta = previous.beta[step]
                    after = _dot(message, beta, width)
                    total_log += np.log(after / _dot(previous.alpha[step], beta, width))
                    total_slope += _dot(derivative, beta, width) / after
                    break
                if (change - step) % STEPS_BETWEEN_LOOKS == 0:
                    slope = sum_of(derivative, width) / sum_of(message, width)
                    ratio = _ratio(message, derivative, slope, previous.alpha[step], width)
                    if ratio > 0.0:
                        total_log += np.log(ratio)
                        total_slope += slope
                        break
                step += 1
    return total_log, total_slope
