"""Q of a chain when a few observation weights move: how far it falls, how far it rises.

A weight touches only the steps where its column is not zero, so log Z is redone from there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from forback.core.types import Floats, Ints
from forback.objectives.chain.inference import Logs, Scaled, Sequences, Weights, infer
from forback.objectives.chain.kernels import changes as kernels
from forback.objectives.chain.kernels.scaled import SAFE
from forback.solvers.line_search import Line


@dataclass(frozen=True)
class ChainLines:
    """Changes of log Z from one set of weights."""

    sequences: Sequences
    weights: Weights
    messages: Scaled | Logs

    def log_ratio(self, columns: Ints, labels: Ints, move: Floats) -> float:
        """The change of log Z when these weights move."""
        place, lines = self._touched(columns)
        moves = np.zeros((len(lines), self.weights.observe.shape[1]))
        for column, label, step in zip(columns, labels, move, strict=True):
            moves[:, label] += step * self._entries(column)[lines]
        scaled = self._scaled(moves)
        if scaled is None:
            return self._moved(columns, labels, move).log_z - self.messages.log_z
        peaks = moves.max(axis=1)  # what all labels gain alike could overflow
        factors = np.ones((len(lines), len(scaled.lanes)))
        factors[:, : moves.shape[1]] = np.exp(moves - peaks[:, None])
        nothing = np.zeros((0, len(scaled.lanes)))
        change, _ = kernels.log_ratio(
            scaled.chain, _known(scaled), place, factors, nothing, scaled.lanes
        )
        return change + float(self.sequences.times[lines] @ peaks)

    def line(self, column: int, label: int) -> Line:
        """The same as a function of how far one weight moves, with its slope."""
        columns, labels = np.array([column]), np.array([label])
        place, lines = self._touched(columns)
        entries = self._entries(column)

        def at(step: float) -> tuple[float, float]:
            move = step * entries[lines]
            scaled = self._scaled(move[:, None] * [1.0, 0.0])
            if scaled is None:
                moved = self._moved(columns, labels, np.array([step]))
                slope = float(entries @ moved.counts().rows[:, label])
                return moved.log_z - self.messages.log_z, slope
            factors = np.ones((len(lines), len(scaled.lanes)))
            slopes = np.zeros_like(factors)
            factors[:, label], slopes[:, label] = np.exp(move), entries[lines]
            return kernels.log_ratio(
                scaled.chain, _known(scaled), place, factors, slopes, scaled.lanes
            )

        return at

    def _scaled(self, moves: Floats) -> Scaled | None:
        """The messages, if potentials that moved so far can go on from them."""
        if isinstance(self.messages, Logs):
            return None
        spread = self.messages.spread + np.ptp(moves, axis=1).max(initial=0.0)
        return self.messages if spread <= SAFE else None

    def _entries(self, column: int) -> Floats:
        """A column of the distinct rows, dense."""
        found = self.sequences.by_column[:, [column]]
        return np.asarray(found.toarray() if sparse.issparse(found) else found)[:, 0]

    def _touched(self, columns: Ints) -> tuple[Ints, Ints]:
        """The distinct rows where one of the columns is not zero, by number and as places."""
        where = np.zeros(len(self.sequences.times), dtype=bool)
        for column in np.unique(columns):
            where |= self._entries(column) != 0.0
        place = np.where(where, np.cumsum(where) - 1, -1)
        return place, np.flatnonzero(where)

    def _moved(self, columns: Ints, labels: Ints, move: Floats) -> Scaled | Logs:
        observe = self.weights.observe.copy()
        observe[columns, labels] += move
        w = self.weights
        return infer(self.sequences, Weights(observe, w.transitions, w.bias, w.start, w.end))


def _known(scaled: Scaled) -> kernels.Known:
    return kernels.Known(scaled.ahead, scaled.scales, scaled.behind)
