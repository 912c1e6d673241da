"""Blocks of sparse columns, and what they share with a whole sparse design."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np
from scipy import sparse

from forback import threads
from forback.kernels import passes
from forback.kernels import rows as kernels
from forback.objectives.blocks import (
    ENTRIES_PER_THREAD,
    ROWS_AT_ONCE,
    Block,
    DenseBlock,
    ThreeSums,
)
from forback.protocols import Floats, Ints

#: A sparse block is held as an array if that has no more entries than this: next to nothing.
FEW_ENTRIES = 1 << 16


@final
class SparseBlock:
    """Sparse columns, cut down to the rows in which they have entries, where these are few."""

    def __init__(self, columns: Any, *, whole: bool = False) -> None:
        self.rows: Ints | None = None
        if not whole:
            columns, self.rows = without_empty_rows(columns)
        self._columns = columns
        self._edges = even_edges(columns.indptr)

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are."""
        n, m = self._columns.shape
        return n, m

    @cached_property
    def stored(self) -> tuple[Floats, Ints, Ints]:
        """The same stored by rows: entries, their columns, where each row starts."""
        by_rows = self._columns.tocsr()
        return by_rows.data, by_rows.indices, by_rows.indptr

    @classmethod
    def grown(cls, columns: Any, known: SparseBlock, place: int) -> SparseBlock:
        """A block that has one column more than `known`, the one at `place`."""
        block = cls(columns, whole=known.rows is None)
        if block.rows is None and known.rows is None:
            own = slice(columns.indptr[place], columns.indptr[place + 1])
            block.stored = kernels.with_column(
                *known.stored, place, columns.indices[own], columns.data[own]
            )
        return block

    @classmethod
    def shrunk(cls, columns: Any, known: SparseBlock, place: int) -> SparseBlock:
        """A block that has one column less than `known`, the one that was at `place`."""
        block = cls(columns)
        if block.rows is None:
            block.stored = kernels.without_column(*known.stored, place)
        return block

    def inward(self, vector: Floats) -> Floats:
        """The same: columns are stored in their order."""
        return vector

    outward = inward

    def take(self, vector: Floats) -> Floats:
        """The entries of a vector, one per row of X, that belong to the rows of B."""
        return vector if self.rows is None else vector[self.rows]

    def predict(self, coef: Floats) -> Floats:
        """B coef."""
        n, by_rows = self._columns.shape[0], self.stored
        out = np.empty(n)
        threads.over_chunks(
            lambda start, stop: kernels.predict(*by_rows, coef, out, start, stop),
            threads.edges(n, ROWS_AT_ONCE),
        )
        return out

    def back_project(self, residual: Floats) -> Floats:
        """B' residual."""
        return back_project(self._columns, self._edges, residual)

    def extent(self, places: Ints, weights: Floats) -> tuple[Floats, Floats]:
        """|B|' weights and the largest absolute entry, for some of the columns."""
        B, sums, largest = self._columns, np.empty(len(places)), np.empty(len(places))
        for which, place in enumerate(places):
            own = slice(B.indptr[place], B.indptr[place + 1])
            size = np.abs(B.data[own])
            sums[which] = size @ weights[B.indices[own]]
            largest[which] = size.max(initial=0.0)
        return sums, largest

    def sandwich(self, weights: Floats) -> Floats:
        """B' diag(weights) B as an array."""
        (n, m), by_rows = self._columns.shape, self.stored

        def some_rows(start: int, stop: int) -> Floats:
            return kernels.sandwich(*by_rows, weights, start, stop, m)

        parts = threads.over_chunks(some_rows, threads.edges(n, max(ROWS_AT_ONCE, n // 16)))
        return sum(parts, start=np.zeros((m, m)))

    def cross(self, place: int, weights: Floats) -> Floats:
        """One row of the sandwich."""
        B = self._columns
        own = slice(B.indptr[place], B.indptr[place + 1])
        column = np.zeros(B.shape[0])
        column[B.indices[own]] = weights[B.indices[own]] * B.data[own]
        return self.back_project(column)

    def three_sums(self, residual: Floats, bend: Floats) -> ThreeSums:
        """B' residual, (B^2)' bend and (|B|^3)' bend."""
        return three_sums(self._columns, self._edges, residual, bend)

    def toarray(self) -> Floats:
        """As an array of one row per row."""
        return np.asarray(self._columns.toarray())


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
    indices = renumbered[columns.indices]
    return sparse.csc_array((columns.data, indices, columns.indptr), shape=shape), rows


def sparse_block(columns: Any) -> Block:
    """Sparse columns as a block; so few entries that a dense array is no larger become one."""
    cut, rows = without_empty_rows(columns)
    if cut.shape[0] * cut.shape[1] <= FEW_ENTRIES:
        return DenseBlock(np.ascontiguousarray(cut.toarray().T), rows)
    return SparseBlock(columns)


def even_edges(pointer: Ints) -> list[int]:
    """Columns of a CSC matrix split so that each part has much the same number of entries."""
    p = len(pointer) - 1
    parts = max(1, min(64, int(pointer[-1]) // ENTRIES_PER_THREAD))
    if parts == 1:
        return [0, p]
    inner = np.unique(np.searchsorted(pointer, np.linspace(0, pointer[-1], parts + 1)[1:-1]))
    return [0, *inner[(inner > 0) & (inner < p)].tolist(), p]


def back_project(X: Any, edges: list[int], residual: Floats) -> Floats:
    """X' residual for a CSC matrix: one pass over the stored entries."""
    out = np.empty(X.shape[1])

    def some(start: int, stop: int) -> None:
        kernels.back_project(X.data, X.indices, X.indptr, residual, out, start, stop)

    threads.over_chunks(some, edges)
    return out


def three_sums(X: Any, edges: list[int], residual: Floats, bend: Floats) -> ThreeSums:
    """X' residual, (X^2)' bend and (|X|^3)' bend for a CSC matrix: one pass over its entries."""
    sums = np.empty(X.shape[1]), np.empty(X.shape[1]), np.empty(X.shape[1])

    def some(start: int, stop: int) -> None:
        passes.three_sums_columns(
            X.data, X.indices, X.indptr, False, residual, bend, *sums, start, stop
        )

    threads.over_chunks(some, edges)
    return sums
