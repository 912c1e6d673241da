"""log Z after a few potentials change, from the messages before: only what differs is redone.

`place[u]` is the line of `factors` by which the potentials of distinct row u are multiplied, or -1
where they stay. The recursion begins at the first change of a sequence, is left where the message
is the old one again but for a factor, resumes at the next change, and ends at the last one, from
where on the backward messages know the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forback.core.types import Floats, Ints
from forback.objectives.chain.kernels.scaled import LARGE, SMALL, Chain, Lanes, advance, sum_of
from forback.solvers.kernels.compiled import kernel

#: Two messages are the same, but for a factor, when every entry agrees to this.
SAME = 1e-14

#: How many steps pass between looking whether they are.
LOOK = 8


class Known(NamedTuple):
    """Messages before the change."""

    ahead: Floats
    scales: Floats
    behind: Floats


@kernel
def _next_change(chain: Chain, place: Ints, step: int, end: int) -> int:
    while step < end and place[chain.rows[step]] < 0:
        step += 1
    return step


@kernel
def _advance(
    chain: Chain, begin: int, step: int, message: Floats, mixed: Floats, lanes: Lanes
) -> None:
    """One step of the forward recursion, with the potentials of before."""
    row = chain.rows[step]
    if step == begin:
        for j in range(len(lanes)):
            message[j] = chain.enter[j] * chain.emit[row, j]
    else:
        advance(message, chain.mix, chain.emit, row, lanes, mixed)


@kernel
def _share(message: Floats, known: Floats, lanes: Lanes) -> float:
    """By how much `message` differs from the known one if by a factor only; else 0."""
    top = 0
    for j in range(len(lanes)):
        if known[j] > known[top]:
            top = j
    factor = message[top] / known[top]
    worst = 0.0
    for j in range(len(lanes)):
        worst = max(worst, abs(message[j] - factor * known[j]) - SAME * factor * known[j])
    return factor if worst <= 0.0 else 0.0


@kernel
def _inner(message: Floats, other: Floats, lanes: Lanes) -> float:
    total = 0.0
    for j in range(len(lanes)):
        total += message[j] * other[j]
    return total


@kernel
def log_ratio(
    chain: Chain, known: Known, place: Ints, factors: Floats, slopes: Floats, lanes: Lanes
) -> tuple[float, float]:
    """log(Z after / Z before), over all sequences, and its derivative.

    `slopes` are the derivatives of the logarithms of `factors`; without lines, none is wanted.
    """
    wanted = len(slopes) > 0
    message, mixed = np.empty(len(lanes)), np.empty(len(lanes))
    tilt = np.zeros(len(lanes))  # the derivative of the message
    logarithm, slope = 0.0, 0.0
    for sequence in range(len(chain.edges) - 1):
        begin, end = chain.edges[sequence], chain.edges[sequence + 1]
        change = _next_change(chain, place, begin, end)
        while change < end:
            if change > begin:
                message[:] = known.ahead[change - 1]
            tilt[:] = 0.0
            step = change
            while True:
                if wanted and step > begin:
                    _advance(chain, begin, step, tilt, mixed, lanes)
                _advance(chain, begin, step, message, mixed, lanes)
                line = place[chain.rows[step]]
                if line >= 0:
                    for j in range(len(lanes)):
                        message[j] *= factors[line, j]
                    if wanted:
                        for j in range(len(lanes)):
                            tilt[j] = tilt[j] * factors[line, j] + slopes[line, j] * message[j]
                    change = _next_change(chain, place, step + 1, end)
                scale = known.scales[step]
                total = sum_of(message, lanes) * scale
                if total < SMALL or total > LARGE:
                    logarithm += np.log(total)
                    scale /= total
                for j in range(len(lanes)):
                    message[j] *= scale
                if wanted:
                    for j in range(len(lanes)):
                        tilt[j] *= scale
                if change == end:  # nothing changes any more
                    after = _inner(message, known.behind[step], lanes)
                    logarithm += np.log(
                        after / _inner(known.ahead[step], known.behind[step], lanes)
                    )
                    slope += _inner(tilt, known.behind[step], lanes) / after
                    break
                if (change - step) % LOOK == 0:
                    share = _share(message, known.ahead[step], lanes)
                    # The derivative must be the same multiple of the message for every label.
                    turn = sum_of(tilt, lanes) / sum_of(message, lanes)
                    if share > 0.0 and _disagreement(message, tilt, turn, lanes) <= SAME:
                        logarithm += np.log(share)
                        slope += turn
                        break
                step += 1
    return logarithm, slope


@kernel
def _disagreement(message: Floats, tilt: Floats, turn: float, lanes: Lanes) -> float:
    """How far the ratio of derivative to message varies between labels."""
    worst = 0.0
    for j in range(len(lanes)):
        if message[j] > 0.0:
            worst = max(worst, abs(tilt[j] / message[j] - turn) / (1.0 + abs(turn)))
    return worst
