"""Forward, backward and what they add up to, on a linear chain of labels.

Everything is a plain array of potentials: `emit[u, c]` is the weight of label c where distinct row
u is observed, `mix[i, j]` that of label i before label j, `enter` and `leave` those of the labels
at the ends of a sequence. All are at most 1, and how far the smallest may lie below is the caller's
care (see `SAFE`). Messages may carry any positive factor, so they are rescaled only where they get
small, and marginals are brought to sum to one where they are used.

The number of labels is padded with labels of weight zero to a multiple of 8 and handed over as the
length of the tuple `lanes`. That makes it a constant for the compiler, which then unrolls the
inner loops.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forback.core.types import Floats, Ints
from forback.solvers.kernels.compiled import kernel

#: Potentials that span at most this many powers of e in all cannot underflow these recursions.
SAFE = 300.0

#: Messages are rescaled when their sum leaves this range.
SMALL = 1e-40
LARGE = 1e40

#: One label each; only its length counts.
Lanes = tuple[int, ...]


class Chain(NamedTuple):
    """Potentials, and which of them apply at each step."""

    emit: Floats  #: distinct rows x lanes
    mix: Floats  #: lanes x lanes
    enter: Floats
    leave: Floats
    rows: Ints  #: the distinct row observed at each step
    edges: Ints  #: where sequences begin; the last entry is the number of steps


@kernel
def _eight(message: Floats, i: int) -> tuple[float, ...]:
    return (
        message[i], message[i + 1], message[i + 2], message[i + 3],
        message[i + 4], message[i + 5], message[i + 6], message[i + 7],
    )  # fmt: skip


@kernel
def _times(part: tuple[float, ...], mix: Floats, i: int, j: int) -> float:
    """Entries i to i + 7 of a message times those of a column of `mix`."""
    a, b, c, d, e, f, g, h = part
    total = ((a * mix[i, j] + b * mix[i + 1, j]) + (c * mix[i + 2, j] + d * mix[i + 3, j])) + (
        (e * mix[i + 4, j] + f * mix[i + 5, j]) + (g * mix[i + 6, j] + h * mix[i + 7, j])
    )
    return float(total)


@kernel
def advance(
    message: Floats, mix: Floats, emit: Floats, row: int, lanes: Lanes, mixed: Floats
) -> None:
    """``mixed = message @ mix``, then ``message = mixed * emit[row]``: a step of a recursion.

    All in one loop for 9 to 16 labels, where that keeps entries in registers.
    """
    if len(lanes) == 16:
        low, high = _eight(message, 0), _eight(message, 8)
        for j in range(len(lanes)):
            mixed[j] = _times(low, mix, 0, j) + _times(high, mix, 8, j)
            message[j] = mixed[j] * emit[row, j]
        return
    for j in range(len(lanes)):
        mixed[j] = 0.0
    for i in range(0, len(lanes), 8):
        part = _eight(message, i)
        for j in range(len(lanes)):
            mixed[j] += _times(part, mix, i, j)
    for j in range(len(lanes)):
        message[j] = mixed[j] * emit[row, j]


@kernel
def sum_of(message: Floats, lanes: Lanes) -> float:
    """The sum of a message over the labels."""
    total = 0.0
    for j in range(len(lanes)):
        total += message[j]
    return total


@kernel
def forward(
    chain: Chain, first: int, last: int, lanes: Lanes, messages: Floats, scales: Floats
) -> float:
    """Fill the forward messages of sequences `first` to `last`; the sum of their log Z.

    `scales` keeps by what each message was multiplied; `missing` is what rounding has taken from
    the sum of their logarithms.
    """
    emit, rows = chain.emit, chain.rows
    message, mixed = np.empty(len(lanes)), np.empty(len(lanes))
    logarithm, missing = 0.0, 0.0
    for sequence in range(first, last):
        for step in range(chain.edges[sequence], chain.edges[sequence + 1]):
            row = rows[step]
            if step == chain.edges[sequence]:
                for j in range(len(lanes)):
                    message[j] = chain.enter[j] * emit[row, j]
            else:
                advance(message, chain.mix, emit, row, lanes, mixed)
            total = sum_of(message, lanes)
            scale = 1.0
            if total < SMALL or total > LARGE:
                scale = 1.0 / total
                before, rest = logarithm, np.log(total) - missing
                logarithm += rest
                missing = (logarithm - before) - rest
                for j in range(len(lanes)):
                    message[j] *= scale
            scales[step] = scale
            for j in range(len(lanes)):
                messages[step, j] = message[j]
        for j in range(len(lanes)):
            message[j] *= chain.leave[j]
        logarithm += np.log(sum_of(message, lanes))
    return logarithm


@kernel
def backward(chain: Chain, first: int, last: int, lanes: Lanes, messages: Floats) -> None:
    """Fill the backward messages of sequences `first` to `last`."""
    emit, rows = chain.emit, chain.rows
    message, mixed = np.empty(len(lanes)), np.empty(len(lanes))
    transposed = chain.mix.T.copy()
    for sequence in range(first, last):
        begin, end = chain.edges[sequence], chain.edges[sequence + 1]
        for j in range(len(lanes)):
            messages[end - 1, j] = chain.leave[j]
            message[j] = chain.leave[j] * emit[rows[end - 1], j]
        for step in range(end - 2, begin - 1, -1):
            advance(message, transposed, emit, rows[step], lanes, mixed)
            total = sum_of(mixed, lanes)
            if total < SMALL or total > LARGE:
                scale = 1.0 / total
                for j in range(len(lanes)):
                    mixed[j] *= scale
                    message[j] *= scale
            for j in range(len(lanes)):
                messages[step, j] = mixed[j]


class Sums(NamedTuple):
    """Expected counts, to be filled."""

    rows: Floats  #: of each label where each distinct row is observed
    pairs: Floats  #: of label i before label j, divided by `mix`
    first: Floats  #: of each label as the first of a sequence
    last: Floats  #: and as the last


@kernel
def expected_counts(
    chain: Chain,
    begin: int,
    end: int,
    lanes: Lanes,
    starts: Ints,
    ahead: Floats,
    scales: Floats,
    behind: Floats,
    sums: Sums,
) -> None:
    """Add the expected counts of steps `begin` to `end`; a step pairs with the one before it.

    `starts` is 1 for the first step of a sequence and 0 for others, with a 1 behind the last step.
    """
    share = np.empty(len(lanes))
    onward = np.zeros((8, len(lanes)))  # what the message before each of 8 steps is paired with
    for eight in range(begin, end, 8):
        for place in range(8):
            step = eight + place
            if step >= end:
                for j in range(len(lanes)):
                    onward[place, j] = 0.0
                continue
            row, norm = chain.rows[step], 0.0
            for j in range(len(lanes)):
                share[j] = ahead[step, j] * behind[step, j]
            for j in range(len(lanes)):
                norm += share[j]
            norm = 1.0 / norm
            for j in range(len(lanes)):
                sums.rows[row, j] += share[j] * norm
            scale = scales[step] * norm * (1 - starts[step])
            for j in range(len(lanes)):
                onward[place, j] = chain.emit[row, j] * behind[step, j] * scale
            if starts[step] or starts[step + 1]:
                for j in range(len(lanes)):
                    sums.first[j] += starts[step] * share[j] * norm
                    sums.last[j] += starts[step + 1] * share[j] * norm
        _add_pairs(ahead, eight, onward, lanes, sums.pairs)


@kernel
def _add_pairs(ahead: Floats, eight: int, onward: Floats, lanes: Lanes, pairs: Floats) -> None:
    """Add the products of eight neighbouring messages; where `onward` is zero, none counts."""
    last = len(ahead) - 1
    s0, s1, s2 = max(eight - 1, 0), min(eight, last), min(eight + 1, last)
    s3, s4, s5 = min(eight + 2, last), min(eight + 3, last), min(eight + 4, last)
    s6, s7 = min(eight + 5, last), min(eight + 6, last)
    for i in range(len(lanes)):
        a0, a1, a2, a3 = ahead[s0, i], ahead[s1, i], ahead[s2, i], ahead[s3, i]
        a4, a5, a6, a7 = ahead[s4, i], ahead[s5, i], ahead[s6, i], ahead[s7, i]
        for j in range(len(lanes)):
            pairs[i, j] += (
                (a0 * onward[0, j] + a1 * onward[1, j]) + (a2 * onward[2, j] + a3 * onward[3, j])
            ) + ((a4 * onward[4, j] + a5 * onward[5, j]) + (a6 * onward[6, j] + a7 * onward[7, j]))
