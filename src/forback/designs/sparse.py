"""Sparse design matrices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy import sparse

from forback.core.types import Floats, Ints
from forback.core.units import out_of_range
from forback.designs.chunks import CHUNK_ENTRIES, Chunk, SparseChunk
from forback.designs.dense import FAR_FROM_ZERO
from forback.designs.design import Block, Design, PreviousBlock, ThreeSums, one_by_one
from forback.designs.kernels.entries import Entries
from forback.designs.sparse_block import (
    MAX_DENSE_ENTRIES,
    back_project,
    even_edges,
    sparse_block,
    three_sums,
)


@final
class Sparse(Design):
    """A design stored as a SciPy CSC matrix; never made dense, never written to."""

    def __init__(self, X: Any, *, max_dense_block: int = MAX_DENSE_ENTRIES) -> None:
        self.X = X
        self.max_dense_block = max_dense_block
        self.shape: tuple[int, int] = X.shape
        self.columns_at_once = max(1, X.shape[1])  # nothing is copied
        self._transposed = X.T  # a CSR view: no conversion per product

    def back_project(self, residual: Floats, center: Floats | None = None) -> Floats:
        """(X - center)' residual: one pass over the stored entries, added up in double."""
        if self.X.dtype == np.float64 and center is None:
            return np.asarray(self._transposed @ residual)  # quicker than two threads here
        return back_project(self.X, self._edges, residual, center)

    def back_project_all(self, residuals: Floats) -> Floats:
        """X' residuals for several of them: one pass over the stored entries."""
        if self.X.dtype == np.float64:
            return np.asarray(self._transposed @ residuals)
        return one_by_one(self, residuals)

    def three_sums(
        self, residual: Floats, curvature: Floats, center: Floats | None = None
    ) -> ThreeSums:
        """X' residual, (X^2)' curvature and (|X|^3)' curvature, or of X - center: one pass."""
        return three_sums(self.X, self._edges, residual, curvature, center)

    def products(self, vectors: Floats) -> Floats:
        """Each row of `vectors` times X."""
        return np.asarray(vectors @ self.X)

    @cached_property
    def _edges(self) -> list[int]:
        return even_edges(self.X.indptr)

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
        X = self.X
        power = np.repeat(powers, np.diff(X.indptr))
        data = np.ldexp(X.data.astype(np.float64), power)
        return Sparse(sparse.csc_array((data, X.indices, X.indptr), shape=X.shape))

    @cached_property
    def is_far_from_zero(self) -> bool:
        """Whether the mean of some column is many times its spread: then it has no zeros."""
        if not (np.diff(self.X.indptr) == self.shape[0]).any():
            return False
        low, high = self.ranges
        return bool((np.minimum(np.abs(low), np.abs(high)) > FAR_FROM_ZERO * (high - low)).any())

    @cached_property
    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the largest entry of each column, zeros that are not stored included."""
        lengths = np.diff(self.X.indptr)
        filled = lengths > 0
        low = np.zeros(self.shape[1])
        high = np.zeros(self.shape[1])
        if filled.any():
            starts = self.X.indptr[:-1][filled]
            low[filled] = np.minimum.reduceat(self.X.data, starts)
            high[filled] = np.maximum.reduceat(self.X.data, starts)
        partly = lengths < self.shape[0]
        low[partly] = np.minimum(low[partly], 0.0)
        high[partly] = np.maximum(high[partly], 0.0)
        return low, high

    @cached_property
    def largest(self) -> Floats:
        """The largest absolute entry of each column."""
        low, high = self.ranges
        return np.maximum(high, -low)

    def in_single(self) -> tuple[Sparse, Floats]:
        """The matrix in single precision, and the sum of squares of each column."""
        X = self.X
        ones = np.ones(self.shape[0])
        with np.errstate(over="ignore"):
            data = X.data.astype(np.float32)
        single = Sparse(sparse.csc_array((data, X.indices, X.indptr), shape=X.shape))
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
        start = 0
        while start < len(columns):
            before = stored[start - 1] if start else 0
            stop = int(np.searchsorted(stored, before + CHUNK_ENTRIES, side="right"))
            place = slice(start, max(stop, start + 1))
            picked = self.X[:, columns[place]]
            yield place, SparseChunk(picked.data, picked.indices, picked.indptr)
            start = place.stop
