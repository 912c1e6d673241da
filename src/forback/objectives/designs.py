"""Dense and sparse design matrices: the only file that knows one from the other. No losses here.

A design offers products with X, the columns of a support as a block, and `chunks`: groups of
columns on which many one-dimensional problems can be evaluated at once. A chunk is written for by
`forback.objectives.columns`, which sees only the three verbs of `Chunk`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, final

import numpy as np
from scipy import sparse

from forback.protocols import Floats, Ints

#: How many matrix entries a chunk of columns holds at most: a few such arrays fit into cache.
CHUNK_ENTRIES = 1 << 17

#: The columns of a support: an array, or a CSC matrix that stays sparse.
Block = Any


class Chunk(Protocol):
    """Some columns of X, flattened to their entries (for sparse columns: the stored ones)."""

    values: Floats  #: x_ij of every entry

    def per_row(self, vector: Floats) -> Floats:
        """A quantity of each row, repeated for every entry."""

    def per_column(self, vector: Floats) -> Floats:
        """A quantity of each column, repeated for every entry."""

    def sum(self, entries: Floats) -> Floats:
        """Entries added up within each column."""

    def largest(self) -> Floats:
        """The largest absolute entry of each column."""

    def only(self, columns: Ints) -> Chunk:
        """The chunk restricted to some of its columns."""


class Design(Protocol):
    """A matrix X of n rows and p columns, whatever its storage."""

    shape: tuple[int, int]

    def back_project(self, residual: Floats) -> Floats:
        """X' residual: one pass over X."""

    def block(self, columns: Ints, *, intercept: bool) -> Block:
        """The given columns, followed by a column of ones if asked for; supports `@`, `.T`."""

    def chunks(self, columns: Ints) -> Iterator[tuple[slice, Chunk]]:
        """Cover `columns` by chunks, each with its place in `columns`."""


@final
class Dense:
    """A design stored as an array, of any order and strides; never written to."""

    def __init__(self, X: Floats) -> None:
        self.X = X
        self.shape: tuple[int, int] = X.shape

    def back_project(self, residual: Floats) -> Floats:
        """X' residual: one pass over X."""
        return np.asarray(residual @ self.X)

    def block(self, columns: Ints, *, intercept: bool) -> Block:
        """The given columns, followed by a column of ones if asked for."""
        n = self.shape[0]
        block = np.ones((n, len(columns) + intercept), order="F")
        block[:, : len(columns)] = self.X[:, columns]
        return block

    def chunks(self, columns: Ints) -> Iterator[tuple[slice, Chunk]]:
        """Cover `columns` by chunks, each with its place in `columns`."""
        width = max(1, CHUNK_ENTRIES // max(1, self.shape[0]))
        for start in range(0, len(columns), width):
            place = slice(start, start + width)
            yield place, _DenseChunk(np.ascontiguousarray(self.X[:, columns[place]].T))


@final
class Sparse:
    """A design stored as a SciPy CSC matrix; never made dense, never written to."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self._transposed = X.T  # a CSR view: X' r without a conversion per product
        self.shape: tuple[int, int] = X.shape

    def back_project(self, residual: Floats) -> Floats:
        """X' residual: one pass over the stored entries."""
        return np.asarray(self._transposed @ residual)

    def block(self, columns: Ints, *, intercept: bool) -> Block:
        """The given columns, followed by a column of ones if asked for."""
        block = self.X[:, columns]
        if intercept:
            block = sparse.hstack([block, np.ones((self.shape[0], 1))], format="csc")
        return block

    def chunks(self, columns: Ints) -> Iterator[tuple[slice, Chunk]]:
        """Cover `columns` by chunks, each with its place in `columns`."""
        stored = np.cumsum(np.diff(self.X.indptr)[columns])
        start = 0
        while start < len(columns):
            before = stored[start - 1] if start else 0
            stop = int(np.searchsorted(stored, before + CHUNK_ENTRIES, side="right"))
            place = slice(start, max(stop, start + 1))
            picked = self.X[:, columns[place]]
            yield place, _SparseChunk(picked.data, picked.indices, picked.indptr)
            start = place.stop


def make_design(X: Any) -> Design:
    """Wrap a checked matrix."""
    return Sparse(X) if sparse.issparse(X) else Dense(X)


def sandwich(block: Block, weights: Floats) -> Floats:
    """B' diag(weights) B as an array."""
    if sparse.issparse(block):
        return np.asarray((block.T @ block.multiply(weights[:, None]).tocsc()).toarray())
    return np.asarray(block.T @ (weights[:, None] * block))


def as_array(block: Block) -> Floats:
    """The columns of a support as an array: only where they are too collinear to stay sparse."""
    return np.asarray(block.toarray() if sparse.issparse(block) else block)


def absolute_product(block: Block, weights: Floats) -> Floats:
    """|B|' weights."""
    return np.asarray(abs(block).T @ weights)


@final
class _DenseChunk:
    """Columns as the rows of a contiguous array, so that a column is summed at full speed."""

    def __init__(self, values: Floats) -> None:
        self.values = values

    def per_row(self, vector: Floats) -> Floats:
        return vector[None, :]

    def per_column(self, vector: Floats) -> Floats:
        return vector[:, None]

    def sum(self, entries: Floats) -> Floats:
        return np.asarray(entries.sum(axis=1))

    def largest(self) -> Floats:
        return np.asarray(np.abs(self.values).max(axis=1))

    def only(self, columns: Ints) -> Chunk:
        return _DenseChunk(self.values[columns])


@final
class _SparseChunk:
    """The stored entries of some CSC columns, one after the other."""

    def __init__(self, values: Floats, rows: Ints, pointer: Ints) -> None:
        self.values = values
        self._rows = rows
        self._pointer = pointer

    def per_row(self, vector: Floats) -> Floats:
        return vector[self._rows]

    def per_column(self, vector: Floats) -> Floats:
        return np.repeat(vector, np.diff(self._pointer))

    def sum(self, entries: Floats) -> Floats:
        return self._reduce(np.add, entries)

    def largest(self) -> Floats:
        return self._reduce(np.maximum, np.abs(self.values))

    def _reduce(self, ufunc: np.ufunc, entries: Floats) -> Floats:
        reduced = np.zeros(len(self._pointer) - 1)
        filled = np.diff(self._pointer) > 0  # reduceat would repeat a neighbour for empty columns
        if filled.any():
            reduced[filled] = ufunc.reduceat(entries, self._pointer[:-1][filled])
        return reduced

    def only(self, columns: Ints) -> Chunk:
        lengths = np.diff(self._pointer)[columns]
        pointer = np.concatenate(([0], np.cumsum(lengths)))
        shift = self._pointer[:-1][columns] - pointer[:-1]
        entries = np.arange(pointer[-1]) + np.repeat(shift, lengths)
        return _SparseChunk(self.values[entries], self._rows[entries], pointer)
