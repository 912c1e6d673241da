"""Columns brought to unit variance for the selection, and coefficients brought back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from forback.protocols import Floats

COLUMNS_AT_ONCE = 64
ENTRIES_AT_ONCE = 1 << 17


@dataclass(frozen=True, slots=True)
class Scaling:
    """x -> (x - center) / scale, column by column."""

    center: Floats
    scale: Floats

    def to_users_scale(self, coef: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Coefficients, a row per intercept, for the columns as the user gave them."""
        coef = coef / self.scale
        return coef, intercept - coef @ self.center


def unscaled(p: int) -> Scaling:
    """The scaling that does nothing."""
    return Scaling(np.zeros(p), np.ones(p))


def standardize(X: Any, weights: Floats, *, center: bool, in_place: bool) -> tuple[Any, Scaling]:
    """X with columns of unit variance, in one copy at most.

    A sparse X is scaled, never centred. A constant column becomes zero where it is centred and
    stays as it is otherwise.
    """
    share = weights / weights.max()
    share /= share.sum()
    if sparse.issparse(X):
        return _scale_sparse(X, share, in_place=in_place)
    mean, deviation = _dense_moments(X, share)
    scale = np.where(deviation > 0, deviation, 1.0)
    scaling = Scaling(mean if center else np.zeros_like(mean), scale)
    scaled = np.subtract(X, scaling.center, out=X if in_place else None)
    scaled /= scaling.scale
    return scaled, scaling


def _dense_moments(X: Floats, share: Floats) -> tuple[Floats, Floats]:
    """The weighted mean and standard deviation of each column, some columns at a time."""
    low, high = X.min(axis=0), X.max(axis=0)
    mean = np.where(low == high, low, share @ X)  # exact, so that a constant deviates by zero
    deviation = np.empty_like(mean)
    for start in range(0, len(mean), COLUMNS_AT_ONCE):
        place = slice(start, start + COLUMNS_AT_ONCE)
        part = X[:, place] - mean[place]
        # Divide by the largest before squaring: columns of 1e200 are somebody's data too.
        largest = np.abs(part).max(axis=0)
        part /= np.where(largest > 0, largest, 1.0)
        deviation[place] = largest * np.sqrt(share @ part**2)
    return mean, deviation


def _scale_sparse(X: Any, share: Floats, *, in_place: bool) -> tuple[Any, Scaling]:
    data = X.data if in_place else np.empty_like(X.data)
    scale = np.ones(X.shape[1])
    columns = max(1, X.shape[1] * ENTRIES_AT_ONCE // max(1, X.nnz))
    for start in range(0, X.shape[1], columns):
        place = slice(start, start + columns)
        part = X[:, place]
        deviation = _sparse_deviation(part, share)
        scale[place] = np.where(deviation > 0, deviation, 1.0)
        entries = slice(X.indptr[start], X.indptr[start] + part.nnz)
        data[entries] = part.data / np.repeat(scale[place], np.diff(part.indptr))
    scaled = sparse.csc_array((data, X.indices, X.indptr), shape=X.shape)
    return scaled, Scaling(np.zeros_like(scale), scale)


def _sparse_deviation(X: Any, share: Floats) -> Floats:
    """The weighted standard deviation of each column, its zeros included."""
    lengths = np.diff(X.indptr)

    def weighted_sums(entries: Floats) -> Floats:
        return np.asarray(sparse.csc_array((entries, X.indices, X.indptr), X.shape).T @ share)

    low = np.asarray(X.min(axis=0).toarray()).ravel()
    high = np.asarray(X.max(axis=0).toarray()).ravel()
    # Divide by the largest before squaring, as for dense columns.
    largest = np.maximum(np.abs(low), np.abs(high))
    scaled = X.data / np.repeat(np.where(largest > 0, largest, 1.0), lengths)
    mean = weighted_sums(scaled)
    stored = weighted_sums(np.ones_like(scaled))
    squares = weighted_sums((scaled - np.repeat(mean, lengths)) ** 2)
    deviation = largest * np.sqrt(squares + np.clip(1.0 - stored, 0.0, 1.0) * mean**2)
    return np.where(low == high, 0.0, deviation)  # a constant deviates by rounding only
