"""The coordinates of a chain: which weight is which, and what counts of labels mean for each.

Coordinate ``j * K + c`` belongs to column j and label c; then come the K x K transitions, the K
biases and, where there are any, the K start and the K end weights.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from forback.core.types import Floats, Ints
from forback.objectives.chain.inference import Counts, Sequences, Weights


class Layout:
    """Weights as one long vector, and counts of labels as sums over its coordinates."""

    def __init__(self, sequences: Sequences, n_labels: int, start_end: bool) -> None:
        self.sequences = sequences
        self.n_labels = n_labels
        self.n_candidates = sequences.distinct.shape[1] * n_labels
        self.dim = self.n_candidates + n_labels * (n_labels + 1 + 2 * start_end)

    def weights(self, beta: Floats) -> Weights:
        """A vector taken apart."""
        return unpack(beta, self.n_candidates, self.n_labels)

    def of(self, support: Ints) -> Part:
        """The coordinates in `support`, ready for many sums over them."""
        return Part(self, support)

    @cached_property
    def all(self) -> Part:
        """All coordinates."""
        return self.of(np.arange(self.dim))

    @cached_property
    def at_zero(self) -> Counts:
        """Expected counts at zero weights: every label as likely as the others."""
        k, sequences = self.n_labels, self.sequences
        pairs = sequences.n_steps - sequences.n_sequences
        ends = np.full(k, sequences.n_sequences / k)
        rows = np.repeat(sequences.times[:, None] / k, k, axis=1)
        return Counts(rows, np.full((k, k), pairs / k**2), ends, ends)


def unpack(beta: Floats, n_candidates: int, n_labels: int) -> Weights:
    """The weights that a vector of all coordinates holds; without start and end weights, zeros."""
    k = n_labels
    cuts = n_candidates + np.array([0, k * k, k * k + k, k * k + 2 * k])
    observe, transitions, bias, start, end = np.split(beta, cuts)
    if len(start) == 0:
        start, end = np.zeros(k), np.zeros(k)
    return Weights(observe.reshape(-1, k), transitions.reshape(k, k), bias, start, end)


class Part:
    """Some coordinates of a chain."""

    def __init__(self, layout: Layout, support: Ints) -> None:
        self.layout = layout
        self.support = support
        split = int(np.searchsorted(support, layout.n_candidates))
        columns, self._labels = np.divmod(support[:split], layout.n_labels)
        used, self._place = np.unique(columns, return_inverse=True)
        self._rest = support[split:] - layout.n_candidates
        self._seen = layout.sequences.by_column[:, used]

    @cached_property
    def sizes(self) -> Floats:
        """The largest |entry| of each coordinate's feature."""
        largest = abs(self._seen).max(axis=0)
        columns = largest.toarray().ravel() if sparse.issparse(largest) else np.asarray(largest)
        return np.concatenate([columns[self._place], np.ones(len(self._rest))])

    def means(self, counts: Counts) -> Floats:
        """The mean over all steps of each coordinate's feature, where labels occur so often."""
        return self._collect(self._seen, counts)

    def variances(self, counts: Counts) -> Floats:
        """Roughly the second derivatives of the log-likelihood: as if steps were independent."""
        steps = np.maximum(self.layout.sequences.times[:, None], 1.0)
        rows = counts.rows * (1.0 - counts.rows / steps)
        return self._collect(self._seen**2, counts._replace(rows=rows))

    def _collect(self, seen: Any, counts: Counts) -> Floats:
        found = np.asarray(seen.T @ counts.rows)[self._place, self._labels]
        rest = [counts.pairs.ravel(), counts.rows.sum(axis=0), counts.first, counts.last]
        sums = np.concatenate([found, np.concatenate(rest)[self._rest]])
        return np.asarray(sums / self.layout.sequences.n_steps)
