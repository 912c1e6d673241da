"""Forward and backward messages of linear chains, and the expected counts that follow from them.

    alpha_t(j) = emission(x_t, j) sum_i alpha_{t-1}(i) transition(i, j)
    beta_t(i) = sum_j transition(i, j) emission(x_{t+1}, j) beta_{t+1}(j)

Everything is a plain array of potentials, at most 1; how far the smallest may lie below is the
caller's care (see `MAX_LOG_SPREAD`). Messages may carry any positive factor, so they are rescaled
only where they get small, and marginals are brought to sum to one where they are used.

The number of labels is padded with labels of potential zero to a multiple of 8 and handed over as
the length of the tuple `Chain.width`. That makes it a constant for the compiler, which then unrolls
the inner loops.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forback.core.types import Floats, Ints
from forback.solvers.kernels.compiled import kernel

#: Potentials that span at most this many powers of e in all cannot underflow these recursions.
MAX_LOG_SPREAD = 300.0

#: Messages are rescaled when their sum over the labels leaves this range.
MIN_MESSAGE_SUM = 1e-40
MAX_MESSAGE_SUM = 1e40

#: The padded number of labels: one entry for each of them, and only the length counts.
Width = tuple[int, ...]


class Chain(NamedTuple):
    """Potentials, or their logarithms, and which of them apply at each step.

    Attributes
    ----------
    emission : Floats
        Factors of each label where each distinct row is observed.
    transition : Floats
        Factors of label i before label j.
    start : Floats
        Factors of the first label of a sequence.
    end : Floats
        Factors of the last label of a sequence.
    rows : Ints
        The distinct row observed at each step.
    edges : Ints
        Where sequences begin; the last entry is the number of steps.
    is_first : Ints
        1 for the first step of a sequence, else 0; a 1 follows the last step.
    width : Width
    """

    emission: Floats
    transition: Floats
    start: Floats
    end: Floats
    rows: Ints
    edges: Ints
    is_first: Ints
    width: Width


class Messages(NamedTuple):
    """Messages of all steps, one line each, to be filled.

    Attributes
    ----------
    alpha : Floats
        Forward.
    scales : Floats
        The factor by which each forward message was multiplied.
    beta : Floats
        Backward.
    """

    alpha: Floats
    scales: Floats
    beta: Floats


class Counts(NamedTuple):
    """How often labels occur, or are expected to.

    Attributes
    ----------
    rows : Floats
        U x K: each label where each distinct row is observed.
    pairs : Floats
        K x K: each label after each.
    first : Floats
        K: each label as the first of a sequence.
    last : Floats
        K: each label as the last of a sequence.
    """

    rows: Floats
    pairs: Floats
    first: Floats
    last: Floats


@kernel
def _eight(message: Floats, i: int) -> tuple[float, ...]:
    low = (message[i], message[i + 1], message[i + 2], message[i + 3])
    return (*low, message[i + 4], message[i + 5], message[i + 6], message[i + 7])


@kernel
def _times(part: tuple[float, ...], transition: Floats, i: int, j: int) -> float:
    """Multiply entries i to i + 7 of a message by those of a column of `transition`, and add up."""
    low = part[0] * transition[i, j] + part[1] * transition[i + 1, j]
    low += part[2] * transition[i + 2, j] + part[3] * transition[i + 3, j]
    high = part[4] * transition[i + 4, j] + part[5] * transition[i + 5, j]
    high += part[6] * transition[i + 6, j] + part[7] * transition[i + 7, j]
    return float(low + high)


@kernel
def advance(chain: Chain, transition: Floats, row: int, message: Floats, mixed: Floats) -> None:
    """Set ``mixed = message @ transition``, then ``message = mixed * emission[row]``.

    All in one loop for 9 to 16 labels, where that keeps entries in registers.
    """
    width = len(chain.width)
    if width == 16:
        low, high = _eight(message, 0), _eight(message, 8)
        for j in range(width):
            mixed[j] = _times(low, transition, 0, j) + _times(high, transition, 8, j)
            message[j] = mixed[j] * chain.emission[row, j]
        return
    for j in range(width):
        mixed[j] = 0.0
    for i in range(0, width, 8):
        part = _eight(message, i)
        for j in range(width):
            mixed[j] += _times(part, transition, i, j)
    for j in range(width):
        message[j] = mixed[j] * chain.emission[row, j]


@kernel
def sum_of(message: Floats, width: Width) -> float:
    """Add up a message over the labels."""
    total = 0.0
    for j in range(len(width)):
        total += message[j]
    return total


@kernel
def multiply(message: Floats, factor: float, width: Width) -> None:
    """Multiply a message by a number, in place."""
    for j in range(len(width)):
        message[j] *= factor


@kernel
def add_term(total: float, lost: float, term: float) -> tuple[float, float]:
    """Add to a sum of many terms, and return what rounding has taken from it (Kahan)."""
    rest = term - lost
    following = total + rest
    return following, (following - total) - rest


@kernel
def forward(chain: Chain, messages: Messages, first: int, last: int) -> float:
    """Fill the forward messages of sequences `first` to `last`; return the sum of their log Z."""
    width = chain.width
    message, mixed = np.empty(len(width)), np.empty(len(width))
    log_z, lost = 0.0, 0.0
    for sequence in range(first, last):
        for step in range(chain.edges[sequence], chain.edges[sequence + 1]):
            row = chain.rows[step]
            if step == chain.edges[sequence]:
                for j in range(len(width)):
                    message[j] = chain.start[j] * chain.emission[row, j]
            else:
                advance(chain, chain.transition, row, message, mixed)
            total = sum_of(message, width)
            scale = 1.0
            if total < MIN_MESSAGE_SUM or total > MAX_MESSAGE_SUM:
                scale = 1.0 / total
                log_z, lost = add_term(log_z, lost, np.log(total))
                multiply(message, scale, width)
            messages.scales[step] = scale
            for j in range(len(width)):
                messages.alpha[step, j] = message[j]
        for j in range(len(width)):
            message[j] *= chain.end[j]
        log_z += np.log(sum_of(message, width))
    return log_z


@kernel
def backward(chain: Chain, messages: Messages, first: int, last: int) -> None:
    """Fill the backward messages of sequences `first` to `last`."""
    width = chain.width
    beta = messages.beta
    message, mixed = np.empty(len(width)), np.empty(len(width))
    transposed = chain.transition.T.copy()
    for sequence in range(first, last):
        begin, end = chain.edges[sequence], chain.edges[sequence + 1]
        for j in range(len(width)):
            beta[end - 1, j] = chain.end[j]
            message[j] = chain.end[j] * chain.emission[chain.rows[end - 1], j]
        for step in range(end - 2, begin - 1, -1):
            advance(chain, transposed, chain.rows[step], message, mixed)
            total = sum_of(mixed, width)
            if total < MIN_MESSAGE_SUM or total > MAX_MESSAGE_SUM:
                multiply(mixed, 1.0 / total, width)
                multiply(message, 1.0 / total, width)
            for j in range(len(width)):
                beta[step, j] = mixed[j]


@kernel
def _add_counts(
    chain: Chain, width: Width, messages: Messages, counts: Counts, begin: int, end: int
) -> None:
    """Add the expected counts; those of pairs are still to be multiplied by `transition`.

    The compiler sees that the width is constant only where it is an argument.
    """
    alpha, scales, beta = messages
    is_first = chain.is_first
    share = np.empty(len(width))
    onward = np.zeros((8, len(width)))  # what the message before each of 8 steps is paired with
    for eight in range(begin, end, 8):
        for place in range(8):
            step = eight + place
            if step >= end:
                for j in range(len(width)):
                    onward[place, j] = 0.0
                continue
            row = chain.rows[step]
            for j in range(len(width)):
                share[j] = alpha[step, j] * beta[step, j]
            norm = 1.0 / sum_of(share, width)
            for j in range(len(width)):
                counts.rows[row, j] += share[j] * norm
            scale = scales[step] * norm * (1 - is_first[step])
            for j in range(len(width)):
                onward[place, j] = chain.emission[row, j] * beta[step, j] * scale
            if is_first[step] or is_first[step + 1]:
                for j in range(len(width)):
                    counts.first[j] += is_first[step] * share[j] * norm
                    counts.last[j] += is_first[step + 1] * share[j] * norm
        _add_pairs(alpha, eight, onward, width, counts.pairs)


@kernel
def _add_pairs(alpha: Floats, eight: int, onward: Floats, width: Width, pairs: Floats) -> None:
    """Add the products of eight neighbouring messages; where `onward` is zero, none counts."""
    last = len(alpha) - 1
    s = (max(eight - 1, 0), min(eight, last), min(eight + 1, last), min(eight + 2, last))
    t = (min(eight + 3, last), min(eight + 4, last), min(eight + 5, last), min(eight + 6, last))
    for i in range(len(width)):
        low = (alpha[s[0], i], alpha[s[1], i], alpha[s[2], i], alpha[s[3], i])
        high = (alpha[t[0], i], alpha[t[1], i], alpha[t[2], i], alpha[t[3], i])
        for j in range(len(width)):
            pairs[i, j] += _times((*low, *high), onward, 0, j)


@kernel
def expected_counts(chain: Chain, messages: Messages, counts: Counts, begin: int, end: int) -> None:
    """Fill in the expected counts of steps `begin` to `end`; a step pairs with the one before it.

    `counts` must be zero before.
    """
    _add_counts(chain, chain.width, messages, counts, begin, end)
    for i in range(len(chain.width)):
        for j in range(len(chain.width)):
            counts.pairs[i, j] *= chain.transition[i, j]
