"""Checks and conversions of X, y, weights, offset and ridge."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite, check_array

from forback.core.types import ColumnLabels, Floats
from forback.core.units import RANGE, out_of_range
from forback.validation.containers import (
    as_numbers,
    check_container,
    column_labels,
    refuse_unordered,
)
from forback.validation.scalars import check_number

#: Rows whose weight is below this fraction of the largest are dropped.
NEGLIGIBLE_WEIGHT = 2.0**-1000


def check_vector(values: Any, length: int, name: str, per: str = "coordinate") -> Any:
    """Return a copy of a vector of `length` numbers without NaN; one number is repeated."""
    vector = as_numbers(values, name)
    if vector.ndim == 0:
        vector = np.full(length, vector)
    if vector.shape != (length,):
        raise ValueError(
            f"{name} must be a number or have one entry per {per}, shape ({length},), "
            f"got shape {vector.shape}"
        )
    if np.isnan(vector).any():
        raise ValueError(f"{name} must not hold NaN")
    return vector


def check_curvature(curvature: Any, dim: int) -> tuple[Any, Any] | None:
    """Return the lower and the upper bound on the curvature along each of `dim` coordinates."""
    if curvature is None:
        return None
    try:
        low, high = curvature
    except (TypeError, ValueError) as error:
        raise TypeError(f"curvature must be a pair (lower, upper), got {curvature!r}") from error
    low = check_vector(low, dim, "curvature[0]")
    high = check_vector(high, dim, "curvature[1]")
    if not ((low >= 0.0) & (low <= high) & (high > 0.0)).all():
        raise ValueError("curvature must have 0 <= lower <= upper and upper > 0 everywhere")
    return low, high


#: Losses with a log link, whose y must stay within the range of exp.
LOG_LINKS = ("poisson", "gamma")

#: So many entries are added up at a time: for more, BLAS would take, and wait for, a second thread.
SUMMED_AT_ONCE = 1 << 13


def check_matrix(X: Any, name: str = "X") -> tuple[Any, ColumnLabels | None]:
    """Return X as a finite float64 or float32 matrix, dense or CSC, and its column labels.

    Parameters
    ----------
    X : array, sparse matrix or data frame
        What the user passed; it is copied only where a conversion needs it.
    name : str
        What messages call it.

    Returns
    -------
    matrix : ndarray or scipy.sparse.csc_array
        Contiguous, or canonical, in either order.
    labels : tuple or None
        Column labels of a data frame; None where there are none but 0, 1, 2, ...

    Raises
    ------
    TypeError, ValueError
        If X is no matrix of finite numbers.
    """
    labels = column_labels(X, name)
    is_plain = _is_plain(X)
    matrix = X if is_plain else check_container(X, name)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # numbers beyond 1e308 become infinite
            if not is_plain:
                matrix = check_array(
                    matrix,
                    accept_sparse="csc",
                    dtype=[np.float64, np.float32],
                    ensure_all_finite=False,
                    input_name=name,
                    estimator="forback",
                )
            if not _sums_are_finite(matrix):
                assert_all_finite(matrix, input_name=name, estimator_name="forback")
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"{name} must be a matrix of finite numbers, with text columns encoded and missing "
            f"values filled or dropped: {error}"
        ) from error
    return tidy_matrix(matrix), labels


def _is_plain(X: Any) -> bool:
    """Return whether X needs no conversion: a closer look would cost more than a small fit."""
    return type(X) is np.ndarray and X.ndim == 2 and X.size > 0 and X.dtype in (float, np.float32)


def _sums_are_finite(matrix: Any) -> bool:
    """Return whether a sum over all entries is finite, which proves that they are; a fast test."""
    entries = matrix.data if sparse.issparse(matrix) else matrix
    if not (entries.flags.c_contiguous or entries.flags.f_contiguous):
        return False
    flat = entries.ravel("K")
    whole = len(flat) - len(flat) % SUMMED_AT_ONCE
    runs = flat[:whole].reshape(-1, SUMMED_AT_ONCE)
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite((runs[:, None] @ runs[..., None]).sum() + flat[whole:] @ flat[whole:])


def tidy_matrix(matrix: Any) -> Any:
    """Return the matrix contiguous, or canonical CSC, copied only where it is not so already."""
    if sparse.issparse(matrix):
        # A new view: flags that the user's matrix has cached may be out of date.
        stored = (matrix.data, matrix.indices, matrix.indptr)
        view = sparse.csc_array(stored, shape=matrix.shape)
        if not view.has_canonical_format:
            view = view.copy()  # sum_duplicates works in place, and the arrays may be the user's
            view.sum_duplicates()
        return view
    if matrix.flags.c_contiguous or matrix.flags.f_contiguous:
        return np.asarray(matrix)
    return np.ascontiguousarray(matrix)


def _check_per_row(values: Any, n: int, name: str) -> Floats:
    """Return one finite number per row of X, from shape (n,) or (n, 1)."""
    array = as_numbers(values, name)
    vector = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if vector.ndim != 1 or len(vector) != n:
        raise ValueError(
            f"{name} must have one entry per row of X, shape ({n},), got shape {array.shape}"
        )
    if not np.isfinite(vector).all():
        row = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise ValueError(
            f"{name} contains {vector[row]} at row {row}; drop or fill missing and infinite values"
        )
    return vector


def check_response(y: Any, n: int, domain: str, loss: str) -> Floats:
    """Return y as float64, checked against the domain of a loss; two classes become 0 and 1.

    Parameters
    ----------
    y : array
        What the user passed.
    n : int
        Number of rows of X.
    domain : {"real", "nonnegative", "positive", "binary"}
        Which values the loss allows.
    loss : str
        Name of the loss, for messages.

    Returns
    -------
    ndarray of shape (n,)
        A copy.
    """
    vector = _check_per_row(y, n, "y")
    if domain == "binary":
        ones = np.abs(vector) == 1.0
        if not (ones.all() or ((vector == 0.0) | (ones & (vector > 0.0))).all()):
            values = np.unique(vector)
            shown = ", ".join(f"{value:g}" for value in values[:6])
            raise ValueError(
                f"y must be coded 0/1, -1/1 or bool for the {loss} loss, got {len(values)} "
                f"distinct values: {shown}{', ...' if len(values) > 6 else ''}. FobaClassifier "
                "takes any labels"
            )
        return (vector > 0).astype(np.float64)
    allowed = {"real": vector == vector, "nonnegative": vector >= 0, "positive": vector > 0}[domain]
    if not allowed.all():
        row = int(np.flatnonzero(~allowed)[0])
        raise ValueError(
            f"y must be {domain} for the {loss} loss, got {vector[row]:g} at row {row}. "
            "Choose another loss or shift y"
        )
    if loss in LOG_LINKS and out_of_range(vector):
        raise ValueError(
            f"y must be 0 or between {2.0**-RANGE:.0e} and {2.0**RANGE:.0e} for the {loss} loss, "
            f"got {vector[vector > 0].min():.0e} to {vector.max():.0e}; divide it by a constant"
        )
    return vector


def check_weights(sample_weight: Any, n: int) -> Floats:
    """Return nonnegative row weights, not all zero; ones by default, one number for all rows."""
    if sample_weight is None:
        return np.ones(n)
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(n, sample_weight)
    weights = _check_per_row(sample_weight, n, "sample_weight")
    if (weights < 0).any():
        row = int(np.flatnonzero(weights < 0)[0])
        raise ValueError(f"sample_weight must not be negative, got {weights[row]:g} at row {row}")
    if not weights.any():
        raise ValueError("sample_weight is zero for every row; at least one row must count")
    return weights


def share_out(weights: Floats) -> tuple[Floats, float]:
    """Return weights divided by their sum, and the number of rows they stand for.

    Integer weights are counts of repeated rows; any others are relative weights of single rows.
    """
    relative = weights / weights.max()
    are_counts = weights.max() < 2**53 and bool(np.all(weights == np.floor(weights)))
    n_rows = float(weights.sum() if are_counts else len(weights))
    return relative / relative.sum(), n_rows


def drop_weightless(weights: Floats, *arrays: Any) -> tuple[Any, ...]:
    """Return the arrays without the rows of weight zero; unchanged where there are none.

    Such a row must not count, and zero times an overflow would be NaN. A weight that is negligible
    beside the largest counts as zero.
    """
    keep = weights > NEGLIGIBLE_WEIGHT * weights.max()
    return arrays if keep.all() else tuple(array[keep] for array in arrays)


def check_offset(offset: Any, n: int) -> Floats:
    """Return what is added to the linear predictor of each row; zeros by default."""
    return np.zeros(n) if offset is None else _check_per_row(offset, n, "offset")


def check_ridge(
    ridge: Any, p: int, per: str = "column of X", labels: ColumnLabels | None = None
) -> Floats:
    """Return a nonnegative penalty for each of p columns.

    Parameters
    ----------
    ridge : float, array of length p or pandas.Series
        What the user passed. A Series goes by its index: the column labels, or 0, 1, 2, ...
    p : int
        Number of columns.
    per : str
        What messages call an entry.
    labels : tuple, optional
        Column labels of X.

    Returns
    -------
    ndarray of shape (p,)
        The penalties.
    """
    refuse_unordered(ridge, "ridge")
    if np.ndim(ridge) == 0:
        return np.full(p, check_number(ridge, "ridge", low=0.0))
    if hasattr(ridge, "reindex"):
        index = list(ridge.index)
        wanted = list(range(p) if labels is None else labels)
        if index != wanted and Counter(index) != Counter(wanted):
            raise ValueError(
                f"ridge must have the columns of X as its index, got {index[:5]!r}...; give "
                "ridge.to_numpy() to go by position"
            )
        ridge = ridge.reindex(wanted)
    penalties: Floats = check_vector(ridge, p, "ridge", per)
    if not (np.isfinite(penalties).all() and (penalties >= 0).all()):
        raise ValueError("ridge must be finite and not negative in every entry")
    return penalties
