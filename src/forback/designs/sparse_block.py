"""The sparse columns of a support."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, final

import numpy as np
from scipy import sparse

from forback.core.types import Floats, Ints
from forback.designs.dense_block import ROWS_AT_ONCE, DenseBlock
from forback.designs.design import Block, SparseRows, ThreeSums
from forback.designs.kernels import sparse_rows as kernels
from forback.designs.stored import StoredColumns
from forback.solvers import threads

#: A sparse block is held as an array if that has no more entries than this: next to nothing.
MAX_DENSE_ENTRIES = 1 << 16


@final
class SparseBlock(Block):
    """Sparse columns, cut down to the rows in which they have entries, where these are few.

    With a `shift` that is taken off each column no row is empty, but none need be stored either.
    """

    is_dense = False

    def __init__(
        self, columns: Any, rows: Ints | None = None, *, shift: Floats | None = None
    ) -> None:
        self.rows = rows
        self.shift = shift
        self.shape = columns.shape
        self._columns = columns
        self._stored_columns = StoredColumns(columns.data, columns.indices, columns.indptr)

    @cached_property
    def stored(self) -> SparseRows:
        """The entries by rows."""
        by_rows = self._columns.tocsr()
        return SparseRows(by_rows.data, by_rows.indices, by_rows.indptr)

    def at_rows(self, rows: Ints) -> SparseBlock:
        """Some of its rows."""
        return SparseBlock(self._columns[rows], shift=self.shift)

    def predict(self, coef: Floats) -> Floats:
        """B coef."""
        out = np.empty(self.shape[0])
        edges = threads.edges(len(out), ROWS_AT_ONCE)
        threads.over_chunks(partial(kernels.predict, *self.stored, coef, out), edges)
        return out if self.shift is None else out - float(self.shift @ coef)

    def back_project(self, residual: Floats) -> Floats:
        """B' residual."""
        out = self._stored_columns.sums(residual)[0]
        return np.asarray(out if self.shift is None else out - residual.sum() * self.shift)

    def sandwich(self, weights: Floats) -> Floats:
        """B' diag(weights) B as an array."""
        n, m = self.shape
        edges = threads.edges(n, max(ROWS_AT_ONCE, n // 16))
        parts = threads.over_chunks(partial(kernels.sandwich, *self.stored, m, weights), edges)
        total = sum(parts, start=np.zeros((m, m)))
        if self.shift is not None:  # nowhere large against a column, so little is lost
            sums = self._stored_columns.sums(weights)[0] - 0.5 * weights.sum() * self.shift
            total -= np.outer(sums, self.shift) + np.outer(self.shift, sums)
        return total

    def column(self, place: int) -> Floats:
        """One column of B as an array."""
        B = self._columns
        own = slice(B.indptr[place], B.indptr[place + 1])
        column = np.zeros(B.shape[0])
        column[B.indices[own]] = B.data[own]
        return column if self.shift is None else column - self.shift[place]

    def three_sums(self, residual: Floats, curvature: Floats) -> ThreeSums:
        """B' residual, (B^2)' curvature and (|B|^3)' curvature."""
        one, two, three = self._stored_columns.sums(residual, curvature, self.shift)
        return one, two, three

    def toarray(self) -> Floats:
        """As an array of one row per row."""
        columns = np.asarray(self._columns.toarray())
        return columns if self.shift is None else columns - self.shift


def without_empty_rows(columns: Any) -> tuple[Any, Ints | None]:
    """A CSC matrix cut down to the rows in which it has entries, if most have none."""
    touched = np.zeros(columns.shape[0], dtype=bool)
    touched[columns.indices] = True
    rows = np.flatnonzero(touched)
    if 2 * len(rows) >= len(touched):
        return columns, None
    renumbered = np.empty(len(touched), columns.indices.dtype)
    renumbered[rows] = np.arange(len(rows))
    shape = (len(rows), columns.shape[1])
    indices = renumbered[columns.indices]  # quicker than columns[rows]
    return sparse.csc_array((columns.data, indices, columns.indptr), shape=shape), rows


def sparse_block(columns: Any, intercept: bool, max_dense: int) -> Block:
    """Sparse columns as a block, followed by a column of ones if asked for.

    A block of up to `max_dense` entries, zeros included, becomes an array.
    """
    columns, rows = without_empty_rows(with_ones(columns) if intercept else columns)
    if columns.shape[0] * columns.shape[1] <= max_dense:
        return DenseBlock(np.ascontiguousarray(columns.toarray().T), rows)
    return SparseBlock(columns, rows)


def with_ones(columns: Any) -> Any:
    """A CSC matrix with a column of ones behind the others: what `hstack` does in more time."""
    n, m = columns.shape
    stored = columns.indptr[-1]
    kind = np.int32 if stored + n < 2**31 else np.int64
    arrays = (
        np.append(columns.data[:stored], np.ones(n)),
        np.append(columns.indices[:stored].astype(kind), np.arange(n, dtype=kind)),
        np.append(columns.indptr.astype(kind), kind(stored + n)),
    )
    return sparse.csc_array(arrays, shape=(n, m + 1))
