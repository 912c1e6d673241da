"""The recursions of `scaled` in logarithms: slow, and safe for any weights.

They take scores where the others take potentials, and know no padding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from forback.core.types import Floats, Ints
from forback.objectives.chain.kernels.scaled import Chain, Sums
from forback.solvers.kernels.compiled import kernel


@kernel
def _log_sum(values: Floats) -> float:
    largest = values.max()
    if largest == -np.inf:
        return -np.inf
    total = 0.0
    for value in values:
        total += np.exp(value - largest)
    return float(largest + np.log(total))


@kernel
def forward_logs(scores: Chain, first: int, last: int, messages: Floats) -> float:
    """Fill the forward messages of sequences `first` to `last`; the sum of their log Z.

    The largest entry of a message is taken out: what grows with the steps would lose digits. So
    would their plain sum; `missing` is what it has lost.
    """
    labels = scores.mix.shape[0]
    logarithm, missing = 0.0, 0.0
    for sequence in range(first, last):
        begin, end = scores.edges[sequence], scores.edges[sequence + 1]
        for step in range(begin, end):
            for j in range(labels):
                if step == begin:
                    messages[step, j] = scores.enter[j]
                else:
                    messages[step, j] = _log_sum(messages[step - 1] + scores.mix[:, j])
                messages[step, j] += scores.emit[scores.rows[step], j]
            largest = messages[step].max()
            before, rest = logarithm, largest - missing
            logarithm += rest
            missing = (logarithm - before) - rest
            messages[step] -= largest
        logarithm += _log_sum(messages[end - 1] + scores.leave)
    return logarithm


@kernel
def backward_logs(scores: Chain, first: int, last: int, messages: Floats) -> None:
    """Fill the backward messages of sequences `first` to `last`, the largest entry taken out."""
    labels = scores.mix.shape[0]
    for sequence in range(first, last):
        begin, end = scores.edges[sequence], scores.edges[sequence + 1]
        messages[end - 1] = scores.leave
        for step in range(end - 2, begin - 1, -1):
            after = scores.emit[scores.rows[step + 1]] + messages[step + 1]
            for i in range(labels):
                messages[step, i] = _log_sum(scores.mix[i] + after)
            messages[step] -= messages[step].max()


@kernel
def expected_counts_logs(
    scores: Chain,
    begin: int,
    end: int,
    starts: Ints,
    ahead: Floats,
    behind: Floats,
    sums: Sums,
) -> None:
    """Add the expected counts of steps `begin` to `end`; pairs are counts, not divided by mix."""
    labels = scores.mix.shape[0]
    pairs = np.empty((labels, labels))
    for step in range(begin, end):
        share = ahead[step] + behind[step]
        share = np.exp(share - _log_sum(share))
        sums.rows[scores.rows[step]] += share
        if starts[step]:
            sums.first[:] += share
        else:
            after = scores.emit[scores.rows[step]] + behind[step]
            for i in range(labels):
                pairs[i] = ahead[step - 1, i] + scores.mix[i] + after
            sums.pairs[:] += np.exp(pairs - _log_sum(pairs.ravel()))
        if starts[step + 1]:
            sums.last[:] += share


@kernel
def best_labels(scores: Chain, first: int, last: int, choices: Any, labels: Ints) -> None:
    """Viterbi: the likeliest labels of sequences `first` to `last`; `choices` is room to work.

    Of equals the lowest label wins.
    """
    count = scores.mix.shape[0]
    before, now = np.empty(count), np.empty(count)
    for sequence in range(first, last):
        begin, end = scores.edges[sequence], scores.edges[sequence + 1]
        before[:] = scores.enter + scores.emit[scores.rows[begin]]
        for step in range(begin + 1, end):
            row = scores.rows[step]
            for j in range(count):
                best = 0
                for i in range(1, count):
                    if before[i] + scores.mix[i, j] > before[best] + scores.mix[best, j]:
                        best = i
                choices[step, j] = best
                now[j] = before[best] + scores.mix[best, j] + scores.emit[row, j]
            # Only differences count; without this the sums of 300,000 steps would lose digits.
            highest = now.max()
            for j in range(count):
                before[j] = now[j] - highest
        label = int(np.argmax(before + scores.leave))
        for step in range(end - 1, begin - 1, -1):
            labels[step] = label
            if step > begin:
                label = choices[step, label]
