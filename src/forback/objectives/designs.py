"""Dense and sparse design matrices. No losses here.

A design offers passes over all columns, the columns of a support as a block (`blocks`), and some
columns as entries for the kernels, or as chunks (`chunks`) for losses that kernels do not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Protocol, final

import numpy as np
from scipy import sparse

from forback import threads
from forback.kernels import passes
from forback.kernels.columns import Entries
from forback.objectives.blocks import (
    ENTRIES_PER_THREAD,
    NO_ROWS,
    Block,
    DenseBlock,
    Known,
    ThreeSums,
)
from forback.objectives.chunks import Chunk, DenseChunk, SparseChunk
from forback.objectives.sparse_blocks import (
    SparseBlock,
    back_project,
    even_edges,
    sparse_block,
    three_sums,
)
from forback.protocols import Floats, Ints

#: How many matrix entries a chunk of columns holds at most: a few such arrays fit into cache.
CHUNK_ENTRIES = 1 << 17

#: How many entries of a dense matrix are copied for the kernels at a time.
COPIED_ENTRIES = 1 << 20

#: From this many times as many rows as columns on, a pass goes by chunks of rows.
TALL = 256

#: How many rows are added up in single precision before they are added to a sum in double.
COARSE_ROWS = 1024


class Design(Protocol):
    """A matrix X of n rows and p columns, whatever its storage."""

    shape: tuple[int, int]
    columns_at_once: int  #: how many columns `entries` is best asked for at a time

    def back_project(self, residual: Floats) -> Floats:
        """X' residual: one pass over X."""

    def back_project_all(self, residuals: Floats) -> Floats:
        """X' residuals for several of them, n x K: a row of K numbers per column of X."""

    def three_sums(self, residual: Floats, bend: Floats) -> ThreeSums:
        """X' residual, (X^2)' bend and (|X|^3)' bend: one pass over X."""

    @property
    def largest(self) -> Floats:
        """The largest absolute entry of each column."""

    def in_single(self) -> tuple[Design, Floats]:
        """The same matrix in single precision, and the sum of squares of each column."""

    def coarse_product(self, residual: Floats) -> tuple[Floats, float]:
        """X' residual as quickly as single precision allows.

        Also returns by what share of |x| |residual| it may be off, the rounding of X included.
        """

    def gram(self, weights: Floats) -> Floats:
        """X' diag(weights) X as an array."""

    def block(self, columns: Ints, *, intercept: bool, known: Known | None) -> Block:
        """The given columns, followed by a column of ones if asked for.

        `known` is a block of others; what the two share, the intercept included, is taken from it.
        """

    def toarray(self, columns: Ints) -> Floats:
        """The given columns as an array of one row per row."""

    def entries(self, columns: Ints) -> Entries:
        """The given columns as kernels see them."""

    def chunks(self, columns: Ints) -> Iterator[tuple[slice, Chunk]]:
        """Cover `columns` by chunks, each with its place in `columns`."""


@final
class Dense:
    """A design stored as an array, of any order and strides; never written to."""

    def __init__(self, X: Floats) -> None:
        self.X = X
        self.shape: tuple[int, int] = X.shape
        self.columns_at_once = max(8, COPIED_ENTRIES // max(1, X.shape[0]))
        self._by_rows = X.flags.c_contiguous

    def back_project(self, residual: Floats) -> Floats:
        """X' residual: one pass over X; single precision is added up in double."""
        n, p = self.shape
        if self._by_rows and n * p >= 2 * ENTRIES_PER_THREAD and n >= TALL * p:
            return self._by_chunks_of_rows(residual)
        if self.X.dtype == np.float64:
            return np.asarray(residual @ self.X)
        if not self._by_rows:
            return self.three_sums(residual, residual)[0]
        slopes = np.empty(p)
        threads.over_chunks(
            lambda start, stop: passes.back_project_rows(self.X, residual, slopes, start, stop),
            self._edges,
        )
        return slopes

    def back_project_all(self, residuals: Floats) -> Floats:
        """X' residuals for several of them: one pass over X."""
        if self.X.dtype == np.float64:
            return np.asarray(self.X.T @ residuals)
        return one_by_one(self, residuals)

    def _by_chunks_of_rows(self, residual: Floats) -> Floats:
        """A matrix with few columns keeps two threads, or BLAS, from working side by side."""
        n, p = self.shape

        def some_rows(start: int, stop: int) -> Floats:
            slopes = np.empty(p)
            passes.back_project_rows(self.X[start:stop], residual[start:stop], slopes, 0, p)
            return slopes

        edges = threads.edges(n, max(1, ENTRIES_PER_THREAD // p))
        return np.asarray(sum(threads.over_chunks(some_rows, edges)))

    def three_sums(self, residual: Floats, bend: Floats) -> ThreeSums:
        """X' residual, (X^2)' bend and (|X|^3)' bend: one pass over X."""
        n, p = self.shape
        sums = np.empty(p), np.empty(p), np.empty(p)
        flat, pointer = self.X.ravel("K"), np.arange(p + 1) * n

        def some_columns(start: int, stop: int) -> None:
            if self._by_rows:
                passes.three_sums_rows(self.X, residual, bend, *sums, start, stop)
            else:
                passes.three_sums_columns(
                    flat, NO_ROWS, pointer, True, residual, bend, *sums, start, stop
                )

        threads.over_chunks(some_columns, self._edges)
        return sums

    @cached_property
    def _edges(self) -> list[int]:
        """Parts none wider than what a kernel keeps in cache."""
        n, p = self.shape
        if n * p < 2 * ENTRIES_PER_THREAD:
            return [0, p]
        return threads.edges(p, max(1, min(passes.WIDTH, p - 1)))

    @cached_property
    def largest(self) -> Floats:
        """The largest absolute entry of each column."""
        largest = np.maximum(self.X.max(axis=0), -self.X.min(axis=0))
        return np.asarray(largest, dtype=np.float64)

    def in_single(self) -> tuple[Design, Floats]:
        """The same matrix in single precision, and the sum of squares of each column."""
        X = self.X if self._by_rows else self.X.T
        n, p = X.shape
        single: Any = np.empty((n, p), np.float32)
        squares = threads.over_chunks(
            lambda start, stop: passes.to_single(X, single, start, stop),
            threads.edges(n, max(1, n // 2)),
        )
        if self._by_rows:
            return Dense(single), np.sum(squares, axis=0)
        return Dense(single.T), np.asarray(np.einsum("ij,ij->i", single, single, dtype=np.float64))

    def coarse_product(self, residual: Floats) -> tuple[Floats, float]:
        """X' residual in single precision, a few rows at a time; these are added up in double."""
        rounded = residual.astype(np.float32)
        total = np.zeros(self.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):  # then the column is looked at twice
            for start in range(0, self.shape[0], COARSE_ROWS):
                rows = slice(start, start + COARSE_ROWS)
                total += rounded[rows] @ self.X[rows]
        # One rounding each for x, the residual, the product; one for every addition.
        return total, (COARSE_ROWS + 2) * 2.0**-24 * 1.001

    def gram(self, weights: Floats) -> Floats:
        """X' diag(weights) X, some rows at a time."""
        n, p = self.shape
        if self.X.dtype == np.float64 and np.all(weights == weights[0]):
            return np.asarray(self.X.T @ self.X * weights[0])
        total = np.zeros((p, p))
        root = np.sqrt(weights)
        step = max(1, CHUNK_ENTRIES // max(1, p))
        for start in range(0, n, step):
            part = root[start : start + step, None] * self.X[start : start + step]
            total += part.T @ part
        return total

    def block(self, columns: Ints, *, intercept: bool, known: Known | None) -> Block:
        """The given columns, followed by a column of ones if asked for."""
        m = len(columns)
        if known is not None and isinstance(known.block, DenseBlock):
            fresh = np.ones(m + intercept, dtype=bool)
            fresh[known.place] = False
            missing = np.flatnonzero(fresh)
            ones = np.ones(self.shape[0])
            added = [self.X[:, columns[j]] if j < m else ones for j in missing]
            return DenseBlock.grown(known, m + intercept, missing, added)
        block = np.empty((m + intercept, self.shape[0]))
        for row, column in enumerate(columns):
            block[row] = self.X[:, column]
        block[m:] = 1.0
        return DenseBlock(block)

    def toarray(self, columns: Ints) -> Floats:
        """The given columns as an array of one row per row."""
        return np.asarray(self.X[:, columns], dtype=np.float64)

    def entries(self, columns: Ints) -> Entries:
        """The given columns as kernels see them, copied side by side."""
        n, m = self.shape[0], len(columns)
        data = np.empty((m, n))
        data[:] = self.X[:, columns].T
        begin = np.arange(m) * n
        return Entries(data.ravel(), np.arange(n), begin, begin + n, np.zeros(m, np.intp))

    def chunks(self, columns: Ints) -> Iterator[tuple[slice, Chunk]]:
        """Cover `columns` by chunks, each with its place in `columns`."""
        width = max(1, CHUNK_ENTRIES // max(1, self.shape[0]))
        for start in range(0, len(columns), width):
            place = slice(start, start + width)
            values = np.ascontiguousarray(self.X[:, columns[place]].T, dtype=np.float64)
            yield place, DenseChunk(values)


@final
class Sparse:
    """A design stored as a SciPy CSC matrix; never made dense, never written to."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.shape: tuple[int, int] = X.shape
        self.columns_at_once = max(1, X.shape[1])  # nothing is copied
        self._transposed = X.T  # a CSR view: no conversion per product

    def back_project(self, residual: Floats) -> Floats:
        """X' residual: one pass over the stored entries; single precision is added up in double."""
        if self.X.dtype == np.float64:  # SciPy's own product is quicker than two threads here
            return np.asarray(self._transposed @ residual)
        return back_project(self.X, self._edges, residual)

    def back_project_all(self, residuals: Floats) -> Floats:
        """X' residuals for several of them: one pass over the stored entries."""
        if self.X.dtype == np.float64:
            return np.asarray(self._transposed @ residuals)
        return one_by_one(self, residuals)

    def three_sums(self, residual: Floats, bend: Floats) -> ThreeSums:
        """X' residual, (X^2)' bend and (|X|^3)' bend: one pass over the stored entries."""
        return three_sums(self.X, self._edges, residual, bend)

    @cached_property
    def _edges(self) -> list[int]:
        return even_edges(self.X.indptr)

    @cached_property
    def largest(self) -> Floats:
        """The largest absolute entry of each column."""
        filled = np.diff(self.X.indptr) > 0
        largest = np.zeros(self.shape[1])
        if filled.any():
            starts = self.X.indptr[:-1][filled]
            high = np.maximum.reduceat(self.X.data, starts)
            largest[filled] = np.maximum(high, -np.minimum.reduceat(self.X.data, starts))
        return largest

    def in_single(self) -> tuple[Design, Floats]:
        """The same matrix in single precision, and the sum of squares of each column."""
        X, ones = self.X, np.ones(self.shape[0])
        with np.errstate(over="ignore"):
            data = X.data.astype(np.float32)
        single = Sparse(sparse.csc_array((data, X.indices, X.indptr), shape=X.shape))
        return single, self.three_sums(ones, ones)[1]

    def coarse_product(self, residual: Floats) -> tuple[Floats, float]:
        """X' residual with entries in single precision and sums in double."""
        return self.back_project(residual), 2.0**-24 * 1.001

    def gram(self, weights: Floats) -> Floats:
        """X' diag(weights) X as an array."""
        return np.asarray((self.X.T @ self.X.multiply(weights[:, None]).tocsc()).toarray())

    def block(self, columns: Ints, *, intercept: bool, known: Known | None) -> Block:
        """The given columns, followed by a column of ones if asked for."""
        block = self.X[:, columns].astype(np.float64, copy=False)
        if intercept:
            block = sparse.hstack([block, np.ones((self.shape[0], 1))], format="csc")
        if known is not None and isinstance(known.block, SparseBlock):
            before, now, kept = known.block.shape[1], block.shape[1], len(known.old)
            if before == kept == now - 1:
                return SparseBlock.grown(block, known.block, gap(known.place, now))
            if now == kept == before - 1:
                return SparseBlock.shrunk(block, known.block, gap(known.old, before))
        return sparse_block(block)

    def toarray(self, columns: Ints) -> Floats:
        """The given columns as an array of one row per row."""
        return np.asarray(self.X[:, columns].toarray(), dtype=np.float64)

    def entries(self, columns: Ints) -> Entries:
        """The given columns as kernels see them: where they are stored."""
        begin, end = self.X.indptr[columns], self.X.indptr[columns + 1]
        return Entries(self.X.data, self.X.indices, begin, end, begin)

    def chunks(self, columns: Ints) -> Iterator[tuple[slice, Chunk]]:
        """Cover `columns` by chunks, each with its place in `columns`."""
        stored = np.cumsum(np.diff(self.X.indptr)[columns])
        start = 0
        while start < len(columns):
            before = stored[start - 1] if start else 0
            stop = int(np.searchsorted(stored, before + CHUNK_ENTRIES, side="right"))
            place = slice(start, max(stop, start + 1))
            picked = self.X[:, columns[place]]
            yield place, SparseChunk(picked.data, picked.indices, picked.indptr)
            start = place.stop


def one_by_one(design: Design, residuals: Floats) -> Floats:
    """X' residuals, each by a pass that adds up single precision in double."""
    parts = [design.back_project(np.ascontiguousarray(column)) for column in residuals.T]
    return np.column_stack(parts)


def gap(places: Ints, width: int) -> int:
    """The one number below `width` that is not among `places`, which ascend."""
    return int(np.argmax(np.append(places, width) > np.arange(width)))


def make_design(X: Any) -> Design:
    """Wrap a checked matrix."""
    return Sparse(X) if sparse.issparse(X) else Dense(X)
