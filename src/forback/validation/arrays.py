"""X, y, weights, offset and ridge: checked and converted once."""

from __future__ import annotations

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
    refuse_mask,
    refuse_unordered,
)
from forback.validation.scalars import check_number


def check_vector(values: Any, length: int, name: str) -> Any:
    """A finite vector of so many numbers, copied; one number is repeated."""
    vector = as_numbers(values, name)
    if vector.ndim == 0:
        vector = np.full(length, vector)
    if vector.shape != (length,):
        raise ValueError(f"{name} must have shape ({length},); met shape {vector.shape}")
    if np.isnan(vector).any():
        raise ValueError(f"{name} must not hold NaN")
    return vector


def check_curvature(curvature: Any, dim: int) -> tuple[Any, Any] | None:
    """A lower and an upper bound on the curvature along each of `dim` coordinates."""
    if curvature is None:
        return None
    try:
        low, high = curvature
    except (TypeError, ValueError) as error:
        raise TypeError(f"curvature must be a pair (lower, upper); met {curvature!r}") from error
    low, high = check_vector(low, dim, "curvature[0]"), check_vector(high, dim, "curvature[1]")
    if not ((low >= 0.0) & (low <= high) & (high > 0.0)).all():
        raise ValueError("curvature must have 0 <= lower <= upper and upper > 0 everywhere")
    return low, high


#: The losses whose linear predictor is the logarithm of y, and bounded therefore.
LOG_LINKS = ("poisson", "gamma")


def check_matrix(X: Any, name: str = "X") -> tuple[Any, ColumnLabels | None]:
    """A finite float64 or float32 matrix, dense or CSC, with its column labels if it has any."""
    labels = column_labels(X, name)
    if not _is_plain(X):
        X = check_container(X, name)
    try:
        with np.errstate(over="ignore"):  # of numbers beyond 1e308, which become infinite
            matrix = (
                X
                if _is_plain(X)
                else check_array(
                    X,
                    accept_sparse="csc",
                    dtype=[np.float64, np.float32],
                    ensure_all_finite=False,
                    input_name=name,
                    estimator="forback",
                )
            )
        if not _sums_are_finite(matrix):
            with np.errstate(over="ignore", invalid="ignore"):
                assert_all_finite(matrix, input_name=name, estimator_name="forback")
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"{name} must be a matrix of finite numbers, with text columns encoded and missing "
            f"values filled or dropped: {error}"
        ) from error
    return tidy_matrix(matrix), labels


def _is_plain(X: Any) -> bool:
    """Whether there is nothing to convert: looking closer would cost more than a small fit."""
    return type(X) is np.ndarray and X.ndim == 2 and X.size > 0 and X.dtype in (float, np.float32)


def _sums_are_finite(matrix: Any) -> bool:
    """Whether a sum over all entries is finite, and so they are: the quickest look at them all."""
    with np.errstate(over="ignore", invalid="ignore"):
        if sparse.issparse(matrix):
            return bool(np.isfinite(matrix.data.sum()))
        if matrix.flags.c_contiguous or matrix.flags.f_contiguous:
            flat = matrix.ravel("K")
            return bool(np.isfinite(flat @ flat))
        return bool(np.isfinite(np.ones(len(matrix), matrix.dtype) @ matrix).all())


def tidy_matrix(matrix: Any) -> Any:
    """The same matrix in a layout that products are quick on; a copy only where it must be."""
    if sparse.issparse(matrix):
        # A view of its own: flags that the user's matrix has cached may be out of date.
        stored = (matrix.data, matrix.indices, matrix.indptr)
        view = sparse.csc_array(stored, shape=matrix.shape)
        if not view.has_canonical_format:
            view = view.copy()  # sum_duplicates works in place, and the arrays may be the user's
            view.sum_duplicates()
        return view
    if matrix.flags.c_contiguous or matrix.flags.f_contiguous:
        return np.asarray(matrix)
    return np.ascontiguousarray(matrix)


def _vector(values: Any, n: int, name: str) -> Floats:
    array = as_numbers(values, name)
    vector = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if vector.ndim != 1 or len(vector) != n:
        raise ValueError(
            f"{name} must have one entry per row of X, shape ({n},); met shape {array.shape}"
        )
    if not np.isfinite(vector).all():
        row = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise ValueError(
            f"{name} contains {vector[row]} at row {row}; drop or fill missing and infinite values"
        )
    return vector


def check_response(y: Any, n: int, domain: str, loss: str) -> Floats:
    """`y` as float64 within the loss's domain; two classes become 0 and 1."""
    vector = _vector(y, n, "y")
    if domain == "binary":
        ones = np.abs(vector) == 1.0
        if not (ones.all() or ((vector == 0.0) | (ones & (vector > 0.0))).all()):
            met = np.unique(vector)
            shown = ", ".join(f"{label:g}" for label in met[:6])
            raise ValueError(
                f"y must be coded 0/1, -1/1 or bool for the {loss} loss; met {len(met)} distinct "
                f"values: {shown}{', ...' if len(met) > 6 else ''}. FobaClassifier takes any labels"
            )
        return (vector > 0).astype(np.float64)
    allowed = {"real": vector == vector, "nonnegative": vector >= 0, "positive": vector > 0}[domain]
    if not allowed.all():
        row = int(np.flatnonzero(~allowed)[0])
        raise ValueError(
            f"y must be {domain} for the {loss} loss; met {vector[row]:g} at row {row}. "
            "Choose another loss or shift y"
        )
    if loss in LOG_LINKS and out_of_range(vector):
        raise ValueError(
            f"y must be 0 or between {2.0**-RANGE:.0e} and {2.0**RANGE:.0e} for the {loss} loss, "
            f"got {vector[vector > 0].min():.0e} to {vector.max():.0e}; divide it by a constant"
        )
    return vector


def check_weights(sample_weight: Any, n: int) -> Floats:
    """Nonnegative row weights, not all zero; ones by default, a number for all rows alike."""
    if sample_weight is None:
        return np.ones(n)
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(n, sample_weight)
    weights = _vector(sample_weight, n, "sample_weight")
    if (weights < 0).any():
        row = int(np.flatnonzero(weights < 0)[0])
        raise ValueError(f"sample_weight must not be negative; met {weights[row]:g} at row {row}")
    if not weights.any():
        raise ValueError("sample_weight is zero for every row; at least one row must count")
    return weights


def share_out(weights: Floats) -> tuple[Floats, float]:
    """Weights divided by their sum, and the number of rows they stand for.

    Whole weights count repeated rows; any others say how much a row matters.
    """
    share = weights / weights.max()
    repeats = weights.max() < 2**53 and bool(np.all(weights == np.floor(weights)))
    return share / share.sum(), float(weights.sum() if repeats else len(weights))


def drop_weightless(weights: Floats, *arrays: Any) -> tuple[Any, ...]:
    """The arrays without the rows of weight zero, untouched where there are none.

    Such a row must not count, and zero times an overflow would. So it is with a weight that is
    nothing beside the largest.
    """
    keep = weights > 2.0**-1000 * weights.max()
    return arrays if keep.all() else tuple(array[keep] for array in arrays)


def check_offset(offset: Any, n: int) -> Floats:
    """What is added to the linear predictor, per row; zeros by default."""
    return np.zeros(n) if offset is None else _vector(offset, n, "offset")


def check_ridge(
    ridge: Any,
    p: int,
    name: str = "ridge",
    per: str = "column of X",
    labels: ColumnLabels | None = None,
) -> Floats:
    """A nonnegative penalty per column, from a number or an array of length p.

    A pandas Series goes by its index: that of columns with labels, or 0, 1, 2, ...
    """
    refuse_mask(ridge, name)
    refuse_unordered(ridge, name)
    if isinstance(ridge, numbers.Real) or np.ndim(ridge) == 0:
        return np.full(p, check_number(ridge, name, low=0.0))
    if hasattr(ridge, "reindex"):
        index, wanted = list(ridge.index), list(range(p) if labels is None else labels)
        if index != wanted and Counter(index) != Counter(wanted):
            raise ValueError(
                f"{name} must have the columns of X as its index, got {index[:5]!r}...; give "
                f"{name}.to_numpy() to go by position"
            )
        ridge = ridge.reindex(wanted)
    penalties = as_numbers(ridge, name)
    if penalties.shape != (p,):
        raise ValueError(
            f"{name} must be a number or have one entry per {per}, shape ({p},); "
            f"met shape {penalties.shape}"
        )
    if not (np.isfinite(penalties).all() and (penalties >= 0).all()):
        raise ValueError(f"{name} must be finite and not negative in every entry")
    return penalties
