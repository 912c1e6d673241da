"""Columns brought to unit variance, as a view: (x - center) / scale, never written down as a whole.

Sums over rows are taken of the columns as they are stored and corrected afterwards, or with the
center taken off inside the kernel where a correction would cost digits. Only the columns of a
support, or the few that a kernel works on, are made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from forback.core.types import Floats, Ints
from forback.designs.chunks import Chunk
from forback.designs.dense import Dense, copied_at_once, full_entries
from forback.designs.dense_block import MAX_COPIED_ENTRIES, DenseBlock
from forback.designs.design import Block, Design, PreviousBlock, ThreeSums, one_by_one
from forback.designs.kernels.entries import Entries, Rest
from forback.designs.rescaling import design_powers
from forback.designs.sparse import Sparse, sparse_entries
from forback.designs.sparse_block import SparseBlock, sparse_block, with_ones

#: Where a column is this many times its spread away from zero, corrections cost digits: then the
#: center is taken off entry by entry.
MAX_OFFSET_TO_CORRECT = 1e3

#: A sparse column this far from zero has next to no zeros: its blocks are dense.
NEARLY_FULL = 3.0

#: Columns of a sparse matrix that are made dense at a time for their products.
COLUMNS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Scaling:
    """x -> (x - center) / scale, column by column."""

    center: Floats
    scale: Floats

    def to_users_scale(self, coef: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Coefficients, a row per intercept, for the columns as the user gave them."""
        coef = coef / self.scale
        return coef, intercept - coef @ self.center


def standardized(
    design: Dense | Sparse, weights: Floats, *, center: bool
) -> tuple[Standardized, Scaling]:
    """A design with columns of unit variance and, with `center`, of mean zero; and how it is made.

    Columns that are too small, or too large, to be squared are first copied in other units.
    """
    power = design_powers(design, np.zeros(design.shape[1]))
    if power.any():
        design = design.times(power)
    scaling = find_scaling(design, weights, center=center)
    users = Scaling(np.ldexp(scaling.center, -power), np.ldexp(scaling.scale, -power))
    return Standardized(design, scaling), users


def find_scaling(design: Dense | Sparse, weights: Floats, *, center: bool) -> Scaling:
    """The weighted mean, or zero, and the standard deviation of each column.

    A constant column is centred exactly, and its scale is 1.
    """
    low, high = design.ranges
    mean = np.clip(design.back_project(weights), low, high)
    mean = np.where(low == high, low, mean)
    deviation = np.sqrt(np.maximum(design.three_sums(weights, weights, mean)[1], 0.0))
    scale = np.where((low < high) & (deviation > 0.0), deviation, 1.0)
    return Scaling(mean if center else np.zeros_like(mean), scale)


def column_scales(design: Dense | Sparse, weights: Floats) -> Floats:
    """Return the weighted standard deviation of each column; 1 for at most two values."""
    low, high = design.ranges
    if isinstance(design, Dense):
        has_more = ((low != design.X) & (high != design.X)).any(axis=0)
    else:
        counts = np.diff(design.X.indptr)
        column = np.repeat(np.arange(len(counts)), counts)
        between = (design.X.data != low[column]) & (design.X.data != high[column])
        has_more = np.bincount(column[between], minlength=len(counts)) > 0
        has_more |= (counts < design.shape[0]) & (low < 0.0) & (high > 0.0)
    return np.where(has_more, find_scaling(design, weights, center=False).scale, 1.0)


@final
class Standardized(Design):
    """A design seen through a scaling."""

    def __init__(self, base: Dense | Sparse, scaling: Scaling) -> None:
        self.base = base
        self.shape = base.shape
        self._scale = scaling.scale
        self._center = scaling.center if scaling.center.any() else None
        self._offset = scaling.center / scaling.scale  # how far columns are from zero, in spreads
        #: Whether corrections would cost digits.
        self.is_far = bool(np.abs(self._offset).max(initial=0.0) > MAX_OFFSET_TO_CORRECT)
        self.has_quick_products = base.has_quick_products and not self.is_far
        self._stays_sparse = isinstance(base, Sparse) and self._center is None
        n = base.shape[0]
        self.columns_at_once = base.columns_at_once if self._stays_sparse else copied_at_once(n)

    #: Columns are centred where there is an intercept, and brought to one size.
    is_far_from_zero = False
    is_out_of_range = False

    def times(self, powers: Ints) -> Standardized:
        """A view with each column times that power of two."""
        scale = np.ldexp(self._scale, -powers)
        return Standardized(self.base, Scaling(self._offset * self._scale, scale))

    def back_project(self, residual: Floats) -> Floats:
        """X' residual: one pass over X."""
        if self.is_far:
            return self.base.back_project(residual, self._center) / self._scale
        slopes = self.base.back_project(residual) / self._scale
        return np.asarray(slopes - residual.sum() * self._offset)

    def back_project_all(self, residuals: Floats) -> Floats:
        """X' residuals for several of them, n x K: a row of K numbers per column of X."""
        if self.is_far:
            return one_by_one(self, residuals)
        slopes = self.base.back_project_all(residuals) / self._scale[:, None]
        return np.asarray(slopes - np.outer(self._offset, residuals.sum(axis=0)))

    def three_sums(self, residual: Floats, curvature: Floats) -> ThreeSums:
        """X' residual, (X^2)' curvature and (|X|^3)' curvature: one pass over X."""
        one, two, three = self.base.three_sums(residual, curvature, self._center)
        return one / self._scale, two / self._scale**2, three / self._scale**3

    def stored_squares(self, weights: Floats) -> Floats:
        """The weighted mean squares of columns that are not centred, which rounding goes by."""
        return np.asarray(self.three_sums(weights, weights)[1] + self._offset**2)

    @property
    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the largest entry of each column."""
        low, high = self.base.ranges
        return low / self._scale - self._offset, high / self._scale - self._offset

    def gram(self, weights: Floats) -> Floats:
        """X' diag(weights) X as an array."""
        both = np.outer(self._scale, self._scale)
        if isinstance(self.base, Dense):
            return self.base.gram(weights, self._center) / both
        if self._center is None:
            return self.base.gram(weights) / both
        if np.abs(self._offset).max() > NEARLY_FULL:
            return self._gram_by_columns(weights)
        sums = self.base.back_project(weights) / self._scale - 0.5 * weights.sum() * self._offset
        crossed = np.outer(sums, self._offset)
        return np.asarray(self.base.gram(weights) / both - crossed - crossed.T)

    def _gram_by_columns(self, weights: Floats) -> Floats:
        p = self.shape[1]
        total = np.empty((p, p))
        for start in range(0, p, COLUMNS_AT_ONCE):
            some = np.arange(start, min(start + COLUMNS_AT_ONCE, p))
            weighted = weights[:, None] * self.toarray(some)
            for first in range(0, start + 1, COLUMNS_AT_ONCE):
                others = np.arange(first, min(first + COLUMNS_AT_ONCE, p))
                total[np.ix_(some, others)] = weighted.T @ self.toarray(others)
                total[np.ix_(others, some)] = total[np.ix_(some, others)].T
        return total

    def block(
        self, columns: Ints, *, intercept: bool, previous: PreviousBlock | None = None
    ) -> Block:
        """The given columns, followed by a column of ones if asked for."""
        if isinstance(self.base, Sparse):
            limit = self.base.max_dense_block
            if self._center is None:
                return sparse_block(self._picked(columns), intercept, limit)
            offset = self._offset[columns]
            is_large = self.shape[0] * (len(columns) + intercept) > limit
            if is_large and np.abs(offset).max(initial=0.0) <= NEARLY_FULL:
                picked = self._picked(columns)
                shift = np.append(offset, np.zeros(int(intercept)))
                return SparseBlock(with_ones(picked) if intercept else picked, shift=shift)
        return DenseBlock.of(self, columns, intercept, previous, MAX_COPIED_ENTRIES)

    def _picked(self, columns: Ints) -> Any:
        """Some columns of a sparse matrix, scaled and not centred."""
        assert isinstance(self.base, Sparse)
        picked = self.base.pick(columns)
        lengths = np.diff(picked.indptr)
        picked.data = picked.data / np.repeat(self._scale[columns], lengths)
        return picked

    def toarray(self, columns: Ints) -> Floats:
        """The given columns as an array of one row per row."""
        array = self.base.toarray(columns)
        if self._center is not None:
            array = array - self._center[columns]
        return np.asarray(array / self._scale[columns])

    def entries(self, columns: Ints) -> Entries:
        """The given columns as kernels see them."""
        if self._stays_sparse:
            return sparse_entries(self._picked(columns))
        return full_entries(self.toarray(columns).T)

    def stored_entries(
        self, columns: Ints, residual: Floats, curvature: Floats
    ) -> tuple[Entries, Rest] | None:
        """The rows of sparse columns that are stored, and what the others, all alike, sum up to."""
        if isinstance(self.base, Dense) or self._center is None:
            return None
        picked = self._picked(columns)
        lengths = np.diff(picked.indptr)
        picked.data -= np.repeat(self._offset[columns], lengths)
        owner = np.repeat(np.arange(len(columns)), lengths)
        rest = np.empty((2, len(columns)))
        for left, vector in zip(rest, (residual, curvature), strict=True):
            left[:] = vector.sum() - np.bincount(owner, vector[picked.indices], len(columns))
        # Where every row is stored there is no rest, however far from zero it would be.
        is_full = lengths == self.shape[0]
        rest[:, is_full] = 0.0
        at = np.where(is_full, 0.0, -self._offset[columns])
        alike = Rest(rest[0], np.maximum(rest[1], 0.0), at)
        return sparse_entries(picked), alike

    def chunks(self, columns: Ints) -> Iterator[tuple[slice, Chunk]]:
        """Cover `columns` by chunks, each with its place in `columns`."""
        if not self._stays_sparse:
            yield from super().chunks(columns)
            return
        for place, chunk in self.base.chunks(columns):
            chunk.values = chunk.values / chunk.per_column(self._scale[columns[place]])
            yield place, chunk
