"""log Z of a chain when a few observation weights move.

A weight touches only the steps where its column is not zero, so log Z is redone from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from forback.core.types import Floats, Ints
from forback.objectives.chain.inference import Inference, Sequences, Weights
from forback.objectives.chain.kernels import changes
from forback.objectives.chain.kernels.scaled import MAX_LOG_SPREAD
from forback.solvers.line_search import Line


@dataclass(frozen=True)
class ChainLines:
    """Changes of log Z from one set of weights."""

    sequences: Sequences
    weights: Weights
    inference: Inference

    def log_ratio(self, columns: Ints, labels: Ints, move: Floats) -> float:
        """Return the change of log Z when these weights move."""
        return self.line(columns, labels, move, with_slope=False)(1.0)[0]

    def line(
        self, columns: Ints, labels: Ints, direction: Floats, *, with_slope: bool = True
    ) -> Line:
        """Return the change of log Z, and its slope, as functions of a step in a direction."""
        before = self.inference
        where = np.zeros(len(self.sequences.times), dtype=bool)
        for column in np.unique(columns):
            where |= self._entries(column) != 0.0
        touched = np.flatnonzero(where)
        place = np.where(where, np.cumsum(where) - 1, -1)  # among the rows touched
        rates = np.zeros((len(touched), before.chain.emission.shape[1]))
        for column, label, rate in zip(columns, labels, direction, strict=True):
            rates[:, label] += rate * self._entries(column)[touched]
        moving = np.unique(labels)
        slopes = rates if with_slope else rates[:0]

        def at(step: float) -> tuple[float, float]:
            moves = step * rates[:, moving]
            spread = before.log_spread + moves.max(initial=0.0) - moves.min(initial=0.0)
            if not spread <= MAX_LOG_SPREAD:  # these potentials cannot go on from the messages
                observe = self.weights.observe.copy()
                observe[columns, labels] += step * direction
                after = Inference(self.sequences, replace(self.weights, observe=observe))
                counts = after.counts().rows[touched] if with_slope else 0.0
                slope = float((rates[:, : before.n_labels] * counts).sum())
                return after.log_z - before.log_z, slope
            factors = np.ones_like(rates)
            factors[:, moving] = np.exp(moves)
            return changes.log_ratio(before.chain, before.messages, place, factors, slopes)

        return at

    def _entries(self, column: int) -> Floats:
        """Return a column of the distinct rows, dense."""
        found = self.sequences.by_column[:, [column]]
        return np.asarray(found.toarray() if sparse.issparse(found) else found)[:, 0]
