"""Dense design matrices."""

from __future__ import annotations

from functools import cached_property, partial
from typing import final

import numpy as np

from forback.core.types import Floats, Ints
from forback.core.units import RANGE, out_of_range
from forback.designs.chunks import CHUNK_ENTRIES
from forback.designs.dense_block import MAX_COPIED_ENTRIES, DenseBlock
from forback.designs.design import Block, PreviousBlock
from forback.designs.kernels import column_sums
from forback.designs.kernels.entries import Entries
from forback.designs.stored import ENTRIES_PER_THREAD, Stored, StoredColumns, is_any_far_from_zero
from forback.solvers import threads
from forback.solvers.products import product

#: How many entries of a dense matrix are copied for the kernels at a time.
COPIED_ENTRIES = 1 << 20

#: In about how many parts a sum of matrices over rows is shared out among threads.
PARTS_OF_SUM = 16

#: From this many times as many rows as columns on, a pass goes by chunks of rows.
ROWS_FOR_ROW_CHUNKS = 256

#: How many rows are looked at to find out about columns.
ROWS_LOOKED_AT = 256

#: Sums of squares of columns that are within range; beyond, one must look closer.
SMALLEST_SQUARES = 2 * ROWS_LOOKED_AT * 4.0**-RANGE
LARGEST_SQUARES = 4.0**RANGE

#: How many rows are added up in single precision before they are added to a sum in double.
SINGLE_PRECISION_ROWS = 1024


@final
class Dense(Stored):
    """A design stored as an array, of any order and strides."""

    def __init__(self, X: Floats, *, max_copied_block: int = MAX_COPIED_ENTRIES) -> None:
        super().__init__(X)
        self._max_copied_block = max_copied_block
        self.columns_at_once = copied_at_once(X.shape[0])
        self.has_quick_products = X.dtype == np.float64
        self._by_rows = X.flags.c_contiguous

    def back_project(self, residual: Floats, center: Floats | None = None) -> Floats:
        """(X - center)' residual: one pass over X; single precision is added up in double."""
        n, p = self.shape
        if self._by_rows and n * p >= 2 * ENTRIES_PER_THREAD and n >= ROWS_FOR_ROW_CHUNKS * p:
            return self._by_chunks_of_rows(residual, center)
        if self.X.dtype == np.float64 and center is None:
            return product(residual, self.X)
        return super().back_project(residual, center)

    def _by_chunks_of_rows(self, residual: Floats, center: Floats | None) -> Floats:
        """X' residual by chunks of rows: few columns cannot be shared out among threads."""
        n, p = self.shape

        def some_rows(start: int, stop: int) -> Floats:
            sums = np.empty((3, p))
            rows = slice(start, stop)
            column_sums.sums_by_rows(self.X[rows], residual[rows], None, center, sums, 0, p)
            return np.asarray(sums[0])

        edges = threads.edges(n, max(1, ENTRIES_PER_THREAD // p))
        return np.asarray(sum(threads.over_chunks(some_rows, edges)))

    def back_project_all(self, residuals: Floats) -> Floats:
        """X' residuals for several of them: one pass over X."""
        if self.X.dtype != np.float64:
            return super().back_project_all(residuals)
        # Transposed, so that each column of the answer lies in one piece.
        return product(residuals.T, self.X).T

    def sums(self, residual: Floats, curvature: Floats | None, center: Floats | None) -> Floats:
        """The three sums of X - center as an array; without a curvature only the first."""
        n, p = self.shape
        if not self._by_rows:
            stored = StoredColumns(self.X.ravel("K"), None, np.arange(p + 1) * n)
            return stored.sums(residual, curvature, center)
        sums = np.empty((3, p))
        given = (self.X, residual, curvature, center, sums)
        threads.over_chunks(partial(column_sums.sums_by_rows, *given), self._edges)
        return sums

    @cached_property
    def _edges(self) -> list[int]:
        """Parts none wider than what a kernel keeps in cache."""
        n, p = self.shape
        if n * p < 2 * ENTRIES_PER_THREAD:
            return [0, p]
        return threads.edges(p, max(1, min(column_sums.WIDTH, p - 1)))

    @cached_property
    def _some_rows(self) -> Dense:
        return Dense(self.X[:: max(1, len(self.X) // ROWS_LOOKED_AT)])

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
        strange = np.flatnonzero(~((squares >= SMALLEST_SQUARES) & (squares <= LARGEST_SQUARES)))
        return any(out_of_range(chunk.largest()) for _, chunk in self.chunks(strange))

    def times(self, powers: Ints) -> Dense:
        """A copy with each column times that power of two."""
        return Dense(np.ldexp(self.X.astype(np.float64), powers))

    @cached_property
    def is_far_from_zero(self) -> bool:
        """Whether the mean of some column may be many times its spread: a few rows tell."""
        return is_any_far_from_zero(*self._some_rows.ranges)

    @cached_property
    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the largest entry of each column."""
        return self.X.min(axis=0).astype(np.float64), self.X.max(axis=0).astype(np.float64)

    def in_single(self) -> tuple[Dense, Floats]:
        """The matrix in single precision, and the sum of squares of each column."""
        with np.errstate(over="ignore"):
            single = self.X.astype(np.float32)
            squares = np.einsum("ij,ij->j", self.X, self.X, dtype=np.float64)
        return Dense(single), np.asarray(squares)

    def single_precision_product(self, residual: Floats) -> tuple[Floats, float]:
        """X' residual in single precision, a few rows at a time; these are added up in double.

        Also returns by what share of |x| |residual| it may be off, the rounding of X included.
        """
        rounded = residual.astype(np.float32)
        total = np.zeros(self.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):  # then the column is looked at twice
            for start in range(0, self.shape[0], SINGLE_PRECISION_ROWS):
                rows = slice(start, start + SINGLE_PRECISION_ROWS)
                total += product(rounded[rows], self.X[rows])
        # One rounding each for x, the residual, the product; one for every addition.
        return total, (SINGLE_PRECISION_ROWS + 2) * 2.0**-24 * 1.001

    def gram(self, weights: Floats, center: Floats | None = None) -> Floats:
        """X' diag(weights) X, or that of X - center, some rows at a time."""
        n, p = self.shape
        step = max(1, CHUNK_ENTRIES // max(1, p))
        root = np.sqrt(weights)
        is_plain = center is None and self.X.dtype == np.float64 and np.all(weights == weights[0])

        def of_rows(start: int, stop: int) -> Floats:
            total = np.zeros((p, p))
            for begin in range(start, stop, step):
                some = slice(begin, min(begin + step, stop))
                part = self.X[some]
                if not is_plain:
                    part = root[some, None] * (part if center is None else part - center)
                total += part.T @ part
            return total

        total = sum(threads.over_chunks(of_rows, threads.edges(n, max(step, n // PARTS_OF_SUM))))
        return np.asarray(total * weights[0] if is_plain else total)

    def centred_moments(
        self, weights: Floats, residual: Floats, center: Floats
    ) -> tuple[Floats, Floats]:
        """(X - center)' diag(weights) (X - center) and (X - center)' residual."""
        return self.gram(weights, center), self.back_project(residual, center)

    def block(
        self, columns: Ints, *, intercept: bool, previous: PreviousBlock | None = None
    ) -> Block:
        """The given columns, followed by a column of ones if asked for."""
        return DenseBlock.of(self, columns, intercept, previous, self._max_copied_block)

    def toarray(self, columns: Ints) -> Floats:
        """The given columns as an array of one row per row."""
        return np.asarray(self.X[:, columns], dtype=np.float64)

    def entries(self, columns: Ints) -> Entries:
        """The given columns as kernels see them, copied side by side."""
        return full_entries(self.X[:, columns].T)


def copied_at_once(n: int) -> int:
    """How many columns of n rows are copied for the kernels at a time."""
    return max(8, COPIED_ENTRIES // max(1, n))


def full_entries(columns: Floats) -> Entries:
    """Columns, given as rows, as kernels see them: copied side by side, in double precision."""
    m, n = columns.shape
    data = np.ascontiguousarray(columns, dtype=np.float64)
    begin = np.arange(m) * n
    return Entries(data.ravel(), np.arange(n), begin, begin + n, np.zeros(m, np.intp))
