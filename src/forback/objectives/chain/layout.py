"""The coordinates of a chain: which weight is which, and what counts of labels mean for each.

Coordinate ``j * K + c`` belongs to column j and label c; then come the K x K transitions, the K
biases and, where there are any, the K start and the K end weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from forback.core.types import Floats, Ints
from forback.designs.make import make_design
from forback.objectives.chain.inference import Sequences, Weights
from forback.objectives.chain.kernels.forward_backward import Counts


@dataclass(frozen=True, eq=False)
class Layout:
    """Weights as one long vector, and counts of labels as sums over its coordinates."""

    sequences: Sequences
    n_labels: int
    start_end: bool

    @property
    def n_candidates(self) -> int:
        """The number of weights that may be chosen: each column with each label."""
        return int(self.sequences.distinct.shape[1]) * self.n_labels

    @property
    def dim(self) -> int:
        """The number of all weights."""
        return self.n_candidates + self.n_labels * (self.n_labels + 1 + 2 * self.start_end)

    @cached_property
    def all(self) -> Coordinates:
        """All coordinates."""
        return Coordinates(self, np.arange(self.dim))

    @cached_property
    def at_zero(self) -> Counts:
        """Expected counts at zero weights: every label as likely as the others."""
        k = self.n_labels
        n_pairs = self.sequences.n_steps - self.sequences.n_sequences
        ends = np.full(k, self.sequences.n_sequences / k)
        rows = np.repeat(self.sequences.times[:, None] / k, k, axis=1)
        return Counts(rows, np.full((k, k), n_pairs / k**2), ends, ends)

    def per_coordinate(self, of_columns: Any, others: Any) -> Any:
        """Give each candidate the number of its column, and all other weights the same one."""
        rest = np.repeat(others, self.dim - self.n_candidates)
        return np.append(np.repeat(of_columns, self.n_labels), rest)

    @cached_property
    def sizes(self) -> Floats:
        """The largest absolute entry of each coordinate's feature."""
        design = make_design(self.sequences.by_column)
        return np.asarray(self.per_coordinate(design.largest, 1.0))


def unpack(beta: Floats, n_candidates: int, n_labels: int) -> Weights:
    """Return the weights in a vector of all coordinates; zeros for start and end if it has none."""
    k = n_labels
    padded = np.zeros(n_candidates + k * (k + 3))
    padded[: len(beta)] = beta
    cuts = n_candidates + np.cumsum([0, k * k, k, k])
    observe, transitions, bias, start, end = np.split(padded, cuts)
    return Weights(observe.reshape(-1, k), transitions.reshape(k, k), bias, start, end)


class Coordinates:
    """Some coordinates of a chain, ready for many sums over them."""

    def __init__(self, layout: Layout, support: Ints) -> None:
        self.layout = layout
        self.support = support
        split = int(np.searchsorted(support, layout.n_candidates))
        columns, self._labels = np.divmod(support[:split], layout.n_labels)
        used, self._place = np.unique(columns, return_inverse=True)
        self._rest = support[split:] - layout.n_candidates
        self._entries = layout.sequences.by_column[:, used]

    def means(self, counts: Counts) -> Floats:
        """Return the mean of each coordinate's feature over all steps, given counts of labels."""
        return self._collect(self._entries, counts)

    def variances(self, counts: Counts) -> Floats:
        """Return second derivatives of the log-likelihood, as if steps were independent."""
        steps = np.maximum(self.layout.sequences.times[:, None], 1.0)
        rows = counts.rows * (1.0 - counts.rows / steps)
        return self._collect(self._entries**2, counts._replace(rows=rows))

    def _collect(self, entries: Any, counts: Counts) -> Floats:
        found = np.asarray(entries.T @ counts.rows)[self._place, self._labels]
        rest = [counts.pairs.ravel(), counts.rows.sum(axis=0), counts.first, counts.last]
        sums = np.concatenate([found, np.concatenate(rest)[self._rest]])
        return np.asarray(sums / self.layout.sequences.n_steps)
