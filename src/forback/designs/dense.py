"""Dense design matrices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, final

import numpy as np

from forback.core.types import Floats, Ints
from forback.core.units import RANGE, out_of_range
from forback.designs.dense_block import ENTRIES_PER_THREAD, DenseBlock
from forback.designs.design import NO_ROWS, NO_TOTALS, Block, Known, ThreeSums, one_by_one
from forback.designs.entries import Chunk, DenseChunk
from forback.designs.kernels import passes
from forback.designs.kernels.entries import Entries
from forback.solvers import threads

#: How many matrix entries a chunk of columns holds at most: a few such arrays fit into cache.
CHUNK_ENTRIES = 1 << 17

#: How many entries of a dense matrix are copied for the kernels at a time.
COPIED_ENTRIES = 1 << 20

#: From this many times as many rows as columns on, a pass goes by chunks of rows.
TALL = 256


#: A column may be far from zero if, in so many rows, it is this many times farther than it is wide.
ROWS_TO_TELL, FAR = 256, 30.0


#: Sums of squares of columns that are within range; beyond, one must look closer.
SMALL_SQUARE, LARGE_SQUARE = 2 * ROWS_TO_TELL * 4.0**-RANGE, 4.0**RANGE


#: How many rows are added up in single precision before they are added to a sum in double.
COARSE_ROWS = 1024


@final
class Dense:
    """A design stored as an array, of any order and strides; never written to."""

    def __init__(self, X: Floats) -> None:
        self.X = X
        self.shape: tuple[int, int] = X.shape
        self.columns_at_once = max(8, COPIED_ENTRIES // max(1, X.shape[0]))
        self._by_rows = X.flags.c_contiguous

    def back_project(self, residual: Floats, center: Floats | None = None) -> Floats:
        """(X - center)' residual: one pass over X; single precision is added up in double."""
        n, p = self.shape
        if self._by_rows and n * p >= 2 * ENTRIES_PER_THREAD and n >= TALL * p:
            return self._by_chunks_of_rows(residual, center)
        if self.X.dtype == np.float64 and center is None:
            return np.asarray(residual @ self.X)
        if not self._by_rows:
            return self.three_sums(residual, residual, center)[0]
        slopes = np.empty(p)

        def some_columns(start: int, stop: int) -> None:
            passes.back_project_rows(self.X, residual, center, slopes, start, stop)

        threads.over_chunks(some_columns, self._edges)
        return slopes

    def products(self, vectors: Floats) -> Floats:
        """Each row of `vectors` times X, for X in double precision."""
        return np.asarray(vectors @ self.X)

    def back_project_all(self, residuals: Floats) -> Floats:
        """X' residuals for several of them: one pass over X."""
        if self.X.dtype == np.float64:
            return np.asarray(self.X.T @ residuals)
        return one_by_one(self, residuals)

    def _by_chunks_of_rows(self, residual: Floats, center: Floats | None) -> Floats:
        """A matrix with few columns keeps two threads, or BLAS, from working side by side."""
        n, p = self.shape

        def some_rows(start: int, stop: int) -> Floats:
            slopes = np.empty(p)
            rows = slice(start, stop)
            passes.back_project_rows(self.X[rows], residual[rows], center, slopes, 0, p)
            return slopes

        edges = threads.edges(n, max(1, ENTRIES_PER_THREAD // p))
        return np.asarray(sum(threads.over_chunks(some_rows, edges)))

    def three_sums(self, residual: Floats, bend: Floats, center: Floats | None = None) -> ThreeSums:
        """X' residual, (X^2)' bend and (|X|^3)' bend, or of X - center: one pass over X."""
        n, p = self.shape
        sums = np.empty(p), np.empty(p), np.empty(p)
        flat, pointer = self.X.ravel("K"), np.arange(p + 1) * n

        def some_columns(start: int, stop: int) -> None:
            if self._by_rows:
                passes.three_sums_rows(self.X, residual, bend, center, *sums, start, stop)
            else:
                passes.three_sums_columns(
                    flat, NO_ROWS, pointer, True, residual, bend, center, NO_TOTALS, *sums,
                    start, stop,
                )  # fmt: skip

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
    def _some_rows(self) -> Dense:
        return Dense(self.X[:: max(1, len(self.X) // ROWS_TO_TELL)])

    @cached_property
    def is_out_of_range(self) -> bool:
        """Whether the entries of some column are too small, or too large, to be squared.

        A few rows tell, but where their squares vanish or overflow. Single precision is within.
        """
        rows = self._some_rows.X
        if rows.dtype != np.float64:
            return False
        with np.errstate(over="ignore", under="ignore"):
            squares = np.einsum("ij,ij->j", rows, rows)
        if squares.min() >= SMALL_SQUARE and squares.max() <= LARGE_SQUARE:
            return False
        strange = np.flatnonzero(~((squares >= SMALL_SQUARE) & (squares <= LARGE_SQUARE)))
        return any(
            out_of_range(np.abs(self.toarray(strange[start : start + 64])).max(axis=0))
            for start in range(0, len(strange), 64)
        )

    def times(self, powers: Ints) -> Dense:
        """A copy with each column times that power of two."""
        return Dense(np.ldexp(self.X.astype(np.float64), powers))

    @cached_property
    def is_far_from_zero(self) -> bool:
        """Whether the mean of some column may be many times its spread: a few rows tell."""
        low, high = self._some_rows.ranges
        return bool((np.minimum(np.abs(low), np.abs(high)) > FAR * (high - low)).any())

    @cached_property
    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the largest entry of each column."""
        return self.X.min(axis=0).astype(np.float64), self.X.max(axis=0).astype(np.float64)

    @cached_property
    def largest(self) -> Floats:
        """The largest absolute entry of each column."""
        low, high = self.ranges
        return np.maximum(high, -low)

    def in_single(self) -> tuple[Dense, Floats]:
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
        """X' residual in single precision, a few rows at a time; these are added up in double.

        Also returns by what share of |x| |residual| it may be off, the rounding of X included.
        """
        rounded = residual.astype(np.float32)
        total = np.zeros(self.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):  # then the column is looked at twice
            for start in range(0, self.shape[0], COARSE_ROWS):
                rows = slice(start, start + COARSE_ROWS)
                total += rounded[rows] @ self.X[rows]
        # One rounding each for x, the residual, the product; one for every addition.
        return total, (COARSE_ROWS + 2) * 2.0**-24 * 1.001

    def gram(self, weights: Floats, center: Floats | None = None) -> Floats:
        """X' diag(weights) X, or that of X - center, some rows at a time."""
        n, p = self.shape
        if center is None and self.X.dtype == np.float64 and np.all(weights == weights[0]):
            return np.asarray(self.X.T @ self.X * weights[0])
        total = np.zeros((p, p))
        root = np.sqrt(weights)
        step = max(1, CHUNK_ENTRIES // max(1, p))
        for start in range(0, n, step):
            rows = self.X[start : start + step]
            part = root[start : start + step, None] * (rows if center is None else rows - center)
            total += part.T @ part
        return total

    def column(self, number: int) -> Floats:
        """One column."""
        return np.asarray(self.X[:, number])

    def stored_squares(self, weights: Floats) -> Floats:
        """The weighted mean squares of columns as they are stored, which rounding goes by."""
        return self.three_sums(weights, weights)[1]

    def block(self, columns: Ints, *, intercept: bool, known: Known | None) -> Block:
        """The given columns, followed by a column of ones if asked for."""
        return DenseBlock.of(self.column, self.shape[0], columns, intercept, known)

    def toarray(self, columns: Ints) -> Floats:
        """The given columns as an array of one row per row."""
        return np.asarray(self.X[:, columns], dtype=np.float64)

    def entries(self, columns: Ints) -> Entries:
        """The given columns as kernels see them, copied side by side."""
        return full_entries(self.X[:, columns].T)

    def stored_entries(self, columns: Ints, residual: Floats, bend: Floats) -> None:
        """None: every row is stored."""

    def chunks(self, columns: Ints) -> Iterator[tuple[slice, Chunk]]:
        """Cover `columns` by chunks, each with its place in `columns`."""
        width = max(1, CHUNK_ENTRIES // max(1, self.shape[0]))
        for start in range(0, len(columns), width):
            place = slice(start, start + width)
            values = np.ascontiguousarray(self.X[:, columns[place]].T, dtype=np.float64)
            yield place, DenseChunk(values)


def full_entries(columns: Floats) -> Entries:
    """Columns, given as rows, as kernels see them: copied side by side, in double precision."""
    m, n = columns.shape
    data = np.ascontiguousarray(columns, dtype=np.float64)
    begin = np.arange(m) * n
    return Entries(data.ravel(), np.arange(n), begin, begin + n, np.zeros(m, np.intp))
