"""Sparse design matrices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, final

import numpy as np
from scipy import sparse

from forback.core.types import Floats, Ints
from forback.core.units import out_of_range
from forback.designs.chunks import CHUNK_ENTRIES, Chunk, SparseChunk
from forback.designs.design import Block, PreviousBlock
from forback.designs.kernels.entries import Entries
from forback.designs.sparse_block import MAX_DENSE_ENTRIES, sparse_block
from forback.designs.stored import Stored, StoredColumns, is_any_far_from_zero


@final
class Sparse(Stored):
    """A design stored as a SciPy CSC matrix; never made dense."""

    def __init__(self, X: Any, *, max_dense_block: int = MAX_DENSE_ENTRIES) -> None:
        super().__init__(X)
        self._transposed = X.T  # a view: no conversion per product
        self._columns = StoredColumns(X.data, X.indices, X.indptr)
        self.max_dense_block = max_dense_block
        self.columns_at_once = max(1, X.shape[1])  # nothing is copied

    def back_project(self, residual: Floats, center: Floats | None = None) -> Floats:
        """(X - center)' residual: one pass over the stored entries, added up in double."""
        if self.X.dtype == np.float64 and center is None:
            return np.asarray(self._transposed @ residual)  # quicker than two threads here
        return super().back_project(residual, center)

    def sums(self, residual: Floats, curvature: Floats | None, center: Floats | None) -> Floats:
        """The three sums of X - center as an array; without a curvature only the first."""
        return self._columns.sums(residual, curvature, center)

    @cached_property
    def is_out_of_range(self) -> bool:
        """Whether the entries of some column are too small, or too large, to be squared.

        The first entries of columns tell.
        """
        first = self.X.indptr[:-1][np.diff(self.X.indptr) > 0]
        suspicious = out_of_range(np.abs(self.X.data[first].astype(np.float64)))
        return suspicious and out_of_range(self.largest)

    def times(self, powers: Ints) -> Sparse:
        """A copy with each column times that power of two."""
        power = np.repeat(powers, np.diff(self.X.indptr))
        return self._with_data(np.ldexp(self.X.data.astype(np.float64), power))

    def _with_data(self, data: Floats) -> Sparse:
        """Other entries in the same places."""
        return Sparse(sparse.csc_array((data, self.X.indices, self.X.indptr), shape=self.shape))

    @cached_property
    def is_far_from_zero(self) -> bool:
        """Whether the mean of some column is many times its spread: then it has no zeros."""
        if not (np.diff(self.X.indptr) == self.shape[0]).any():
            return False
        return is_any_far_from_zero(*self.ranges)

    @cached_property
    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the largest entry of each column, zeros that are not stored included."""
        stored = SparseChunk(self.X.data, self.X.indices, self.X.indptr)
        low = stored.reduce(np.minimum, self.X.data)
        high = stored.reduce(np.maximum, self.X.data)
        partly = np.diff(self.X.indptr) < self.shape[0]
        low[partly] = np.minimum(low[partly], 0.0)
        high[partly] = np.maximum(high[partly], 0.0)
        return low, high

    def in_single(self) -> tuple[Sparse, Floats]:
        """The matrix in single precision, and the sum of squares of each column."""
        ones = np.ones(self.shape[0])
        with np.errstate(over="ignore"):
            single = self._with_data(self.X.data.astype(np.float32))
        return single, self.three_sums(ones, ones)[1]

    def single_precision_product(self, residual: Floats) -> tuple[Floats, float]:
        """X' residual with entries in single precision and sums in double.

        Also returns by what share of |x| |residual| it may be off, the rounding of X included.
        """
        return self.back_project(residual), 2.0**-24 * 1.001

    def gram(self, weights: Floats) -> Floats:
        """X' diag(weights) X as an array."""
        return np.asarray((self.X.T @ self.X.multiply(weights[:, None]).tocsc()).toarray())

    def pick(self, columns: Ints) -> Any:
        """Some columns as a CSC matrix of their own, in double precision."""
        return self.X[:, columns].astype(np.float64, copy=False)

    def block(
        self, columns: Ints, *, intercept: bool, previous: PreviousBlock | None = None
    ) -> Block:
        """The given columns, followed by a column of ones if asked for."""
        return sparse_block(self.pick(columns), intercept, self.max_dense_block)

    def toarray(self, columns: Ints) -> Floats:
        """The given columns as an array of one row per row."""
        return np.asarray(self.X[:, columns].toarray(), dtype=np.float64)

    def entries(self, columns: Ints) -> Entries:
        """The given columns as kernels see them: where they are stored."""
        begin = self.X.indptr[columns]
        return Entries(self.X.data, self.X.indices, begin, self.X.indptr[columns + 1], begin)

    def chunks(self, columns: Ints) -> Iterator[tuple[slice, Chunk]]:
        """Cover `columns` by chunks, each with its place in `columns`."""
        stored = np.cumsum(np.diff(self.X.indptr)[columns])
        first = np.flatnonzero(np.diff(stored // CHUNK_ENTRIES, prepend=-1))
        for start, stop in pairwise([*first.tolist(), len(columns)]):
            place = slice(start, stop)
            picked = self.X[:, columns[place]]
            yield place, SparseChunk(picked.data, picked.indices, picked.indptr)


def sparse_entries(X: Any) -> Entries:
    """All columns of a CSC matrix as kernels see them."""
    begin = X.indptr[:-1]
    return Entries(X.data, X.indices, begin, X.indptr[1:], begin)
