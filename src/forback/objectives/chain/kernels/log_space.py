"""Twins of the recursions in `forward_backward`, in log space: slow, and safe for any weights.

They take scores where the others take potentials, and know no padding. The most probable labels
(Viterbi) are found by scores, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from forback.core.types import Floats, Ints
from forback.objectives.chain.kernels.forward_backward import Chain, Counts, Messages, add_term
from forback.solvers.kernels.compiled import kernel


@kernel
def _log_sum_exp(values: Floats) -> float:
    largest = values.max()
    total = 0.0
    for value in values:
        total += np.exp(value - largest)
    return float(largest + np.log(total))


@kernel
def forward(chain: Chain, messages: Messages, first: int, last: int) -> float:
    """Fill the forward messages of sequences `first` to `last`; return the sum of their log Z.

    The largest entry of a message is taken out: what grows with the steps would lose digits.
    """
    alpha = messages.alpha
    log_z, lost = 0.0, 0.0
    for sequence in range(first, last):
        begin, end = chain.edges[sequence], chain.edges[sequence + 1]
        for step in range(begin, end):
            for j in range(len(chain.start)):
                if step == begin:
                    alpha[step, j] = chain.start[j]
                else:
                    alpha[step, j] = _log_sum_exp(alpha[step - 1] + chain.transition[:, j])
                alpha[step, j] += chain.emission[chain.rows[step], j]
            largest = alpha[step].max()
            log_z, lost = add_term(log_z, lost, largest)
            alpha[step] -= largest
        log_z += _log_sum_exp(alpha[end - 1] + chain.end)
    return log_z


@kernel
def backward(chain: Chain, messages: Messages, first: int, last: int) -> None:
    """Fill the backward messages of sequences `first` to `last`, the largest entry taken out."""
    beta = messages.beta
    for sequence in range(first, last):
        begin, end = chain.edges[sequence], chain.edges[sequence + 1]
        beta[end - 1] = chain.end
        for step in range(end - 2, begin - 1, -1):
            after = chain.emission[chain.rows[step + 1]] + beta[step + 1]
            for i in range(len(chain.end)):
                beta[step, i] = _log_sum_exp(chain.transition[i] + after)
            beta[step] -= beta[step].max()


@kernel
def expected_counts(chain: Chain, messages: Messages, counts: Counts, begin: int, end: int) -> None:
    """Add the expected counts of steps `begin` to `end`; a step pairs with the one before it."""
    alpha, _, beta = messages
    for step in range(begin, end):
        share = alpha[step] + beta[step]
        share = np.exp(share - _log_sum_exp(share))
        counts.rows[chain.rows[step]] += share
        if chain.is_first[step]:
            counts.first[:] += share
        else:
            after = chain.emission[chain.rows[step]] + beta[step]
            pairs = alpha[step - 1].reshape(-1, 1) + chain.transition + after
            counts.pairs[:] += np.exp(pairs - _log_sum_exp(pairs.ravel()))
        if chain.is_first[step + 1]:
            counts.last[:] += share


@kernel
def viterbi(chain: Chain, choices: Any, labels: Ints, first: int, last: int) -> None:
    """Fill in the most probable labels of sequences `first` to `last`; of equals the lowest wins.

    `choices` is room for the best label before each label at each step.
    """
    count = len(chain.start)
    before, now = np.empty(count), np.empty(count)
    for sequence in range(first, last):
        begin, end = chain.edges[sequence], chain.edges[sequence + 1]
        before[:] = chain.start + chain.emission[chain.rows[begin]]
        for step in range(begin + 1, end):
            row = chain.rows[step]
            for j in range(count):
                most = -np.inf
                for i in range(count):
                    score = before[i] + chain.transition[i, j]
                    if score > most:
                        most = score
                        choices[step, j] = i
                now[j] = most + chain.emission[row, j]
            # Only differences count; without this the sums of 300,000 steps would lose digits.
            highest = now.max()
            for j in range(count):
                before[j] = now[j] - highest
        label = int(np.argmax(before + chain.end))
        for step in range(end - 1, begin - 1, -1):
            labels[step] = label
            if step > begin:
                label = choices[step, label]
