"""Chunks of columns on which many one-dimensional problems are evaluated at once, in NumPy.

For losses that kernels do not know; `forback.objectives.linear.lines` sees only the verbs of a
`Chunk`.
"""

from __future__ import annotations

from typing import final

import numpy as np

from forback.core.types import Floats, Ints

#: How many matrix entries a chunk of columns holds at most: a few such arrays fit into cache.
CHUNK_ENTRIES = 1 << 17


@final
class DenseChunk:
    """Columns as the rows of a contiguous array, so that a column is summed at full speed."""

    def __init__(self, values: Floats) -> None:
        self.values = values

    def per_row(self, vector: Floats) -> Floats:
        """A quantity of each row, repeated for every entry."""
        return vector[None, :]

    def per_column(self, vector: Floats) -> Floats:
        """A quantity of each column, repeated for every entry."""
        return vector[:, None]

    def sum(self, entries: Floats) -> Floats:
        """Entries added up within each column."""
        return np.asarray(entries.sum(axis=1))

    def largest(self) -> Floats:
        """The largest absolute entry of each column."""
        return np.asarray(np.abs(self.values).max(axis=1))

    def only(self, columns: Ints) -> DenseChunk:
        """The chunk restricted to some of its columns."""
        return DenseChunk(self.values[columns])


@final
class SparseChunk:
    """The stored entries of some CSC columns, one after the other."""

    def __init__(self, values: Floats, rows: Ints, pointer: Ints) -> None:
        self.values = values
        self._rows = rows
        self._pointer = pointer

    def per_row(self, vector: Floats) -> Floats:
        """A quantity of each row, repeated for every entry."""
        return vector[self._rows]

    def per_column(self, vector: Floats) -> Floats:
        """A quantity of each column, repeated for every entry."""
        return np.repeat(vector, np.diff(self._pointer))

    def sum(self, entries: Floats) -> Floats:
        """Entries added up within each column."""
        return self.reduce(np.add, entries)

    def largest(self) -> Floats:
        """The largest absolute entry of each column."""
        return self.reduce(np.maximum, np.abs(self.values))

    def reduce(self, ufunc: np.ufunc, entries: Floats) -> Floats:
        """Entries reduced within each column; 0 where it has none."""
        reduced = np.zeros(len(self._pointer) - 1)
        filled = np.diff(self._pointer) > 0  # reduceat would repeat a neighbour for empty columns
        if filled.any():
            reduced[filled] = ufunc.reduceat(entries, self._pointer[:-1][filled])
        return reduced

    def only(self, columns: Ints) -> SparseChunk:
        """The chunk restricted to some of its columns."""
        lengths = np.diff(self._pointer)[columns]
        pointer = np.concatenate(([0], np.cumsum(lengths)))
        shift = self._pointer[:-1][columns] - pointer[:-1]
        entries = np.arange(pointer[-1]) + np.repeat(shift, lengths)
        return SparseChunk(self.values[entries], self._rows[entries], pointer)


#: Some columns of X, flattened to their entries (for sparse columns: the stored ones).
Chunk = DenseChunk | SparseChunk
