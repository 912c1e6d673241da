"""log Z of a chain when a few observation weights move.

A weight touches only the steps where its column is not zero, so log Z is redone from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from forback.core.types import Floats, Ints
from forback.objectives.chain.inference import (
    Inference,
    Sequences,
    Weights,
    forward_backward,
)
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
        place, touched = self._touched(columns)
        moves = np.zeros((len(touched), self.weights.observe.shape[1]))
        for column, label, step in zip(columns, labels, move, strict=True):
            moves[:, label] += step * self._entries(column)[touched]
        if not self._is_within_range(moves):
            return self._moved(columns, labels, move).log_z - self.inference.log_z
        peaks = moves.max(axis=1)  # what all labels gain alike could overflow
        factors = np.ones((len(touched), len(self.inference.chain.width)))
        factors[:, : moves.shape[1]] = np.exp(moves - peaks[:, None])
        change, _ = self._log_ratio(place, factors, np.zeros((0, 0)))
        return change + float(self.sequences.times[touched] @ peaks)

    def line(self, column: int, label: int) -> Line:
        """Return the change of log Z, and its slope, as functions of how far one weight moves."""
        place, touched = self._touched(np.array([column]))
        entries = self._entries(column)

        def at(step: float) -> tuple[float, float]:
            move = step * entries[touched]
            if not self._is_within_range(move[:, None] * [1.0, 0.0]):
                moved = self._moved(np.array([column]), np.array([label]), np.array([step]))
                slope = float(entries @ moved.counts().rows[:, label])
                return moved.log_z - self.inference.log_z, slope
            factors = np.ones((len(touched), len(self.inference.chain.width)))
            slopes = np.zeros_like(factors)
            factors[:, label] = np.exp(move)
            slopes[:, label] = entries[touched]
            return self._log_ratio(place, factors, slopes)

        return at

    def _is_within_range(self, moves: Floats) -> bool:
        """Whether potentials that moved so far can go on from the messages."""
        spread = self.inference.log_spread + np.ptp(moves, axis=1).max(initial=0.0)
        return bool(spread <= MAX_LOG_SPREAD)

    def _log_ratio(self, place: Ints, factors: Floats, slopes: Floats) -> tuple[float, float]:
        return changes.log_ratio(
            self.inference.chain, self.inference.messages, place, factors, slopes
        )

    def _entries(self, column: int) -> Floats:
        """Return a column of the distinct rows, dense."""
        found = self.sequences.by_column[:, [column]]
        return np.asarray(found.toarray() if sparse.issparse(found) else found)[:, 0]

    def _touched(self, columns: Ints) -> tuple[Ints, Ints]:
        """Return where each distinct row is among those with an entry (else -1), and these."""
        where = np.zeros(len(self.sequences.times), dtype=bool)
        for column in np.unique(columns):
            where |= self._entries(column) != 0.0
        return np.where(where, np.cumsum(where) - 1, -1), np.flatnonzero(where)

    def _moved(self, columns: Ints, labels: Ints, move: Floats) -> Inference:
        observe = self.weights.observe.copy()
        observe[columns, labels] += move
        return forward_backward(self.sequences, replace(self.weights, observe=observe))
