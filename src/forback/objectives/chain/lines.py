"""log Z of a chain when a few observation weights move.

A weight touches only the steps where its column is not zero, so log Z is redone from there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forback.core.types import Floats, Ints
from forback.objectives.chain.inference import Inference
from forback.objectives.chain.kernels import changes
from forback.objectives.chain.kernels.forward_backward import MAX_LOG_SPREAD
from forback.solvers.one_variable import Line


def log_ratio(before: Inference, columns: Ints, labels: Ints, move: Floats) -> float:
    """Return the change of log Z when these weights move."""
    return line(before, columns, labels, move, with_slope=False)(1.0)[0]


def line(
    before: Inference, columns: Ints, labels: Ints, direction: Floats, *, with_slope: bool = True
) -> Line:
    """Return the change of log Z, and its slope, as functions of a step in a direction."""
    sequences = before.sequences
    where = np.zeros(len(sequences.times), dtype=bool)
    for column in np.unique(columns):
        where |= sequences.column(column) != 0.0
    touched = np.flatnonzero(where)
    place = np.where(where, np.cumsum(where) - 1, -1)  # among the rows touched
    rates = np.zeros((len(touched), before.chain.emission.shape[1]))
    for column, label, rate in zip(columns, labels, direction, strict=True):
        rates[:, label] += rate * sequences.column(column)[touched]
    moving = np.unique(labels)
    slopes = rates if with_slope else rates[:0]

    def at(step: float) -> tuple[float, float]:
        moves = step * rates[:, moving]
        spread = before.log_spread + moves.max(initial=0.0) - moves.min(initial=0.0)
        if not spread <= MAX_LOG_SPREAD:  # these potentials cannot go on from the messages
            observe = before.weights.observe.copy()
            observe[columns, labels] += step * direction
            after = Inference(sequences, replace(before.weights, observe=observe))
            counts = after.counts().rows[touched] if with_slope else 0.0
            slope = float((rates[:, : before.n_labels] * counts).sum())
            return after.log_z - before.log_z, slope
        factors = np.ones_like(rates)
        factors[:, moving] = np.exp(moves)
        return changes.log_ratio(before.chain, before.messages, place, factors, slopes)

    return at
