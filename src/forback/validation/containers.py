"""Checks of containers: masked arrays, sparse matrices, data frames with labels.

Containers are checked before anything is converted: a conversion would drop masks silently, and
follow the indices of a sparse matrix beyond its arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from forback.core.types import ColumnLabels, Floats

#: Sparse formats whose indices are arrays, which can be checked without a conversion.
_INDEXED = ("csc", "csr", "bsr", "coo")


def check_container(values: Any, name: str) -> Any:
    """Return the values without an empty mask; raise if entries are masked or indices invalid."""
    if sparse.issparse(values):
        return check_indices(values, name)
    refuse_mask(values, name)
    return np.ma.getdata(values) if isinstance(values, np.ma.MaskedArray) else values


def refuse_unordered(values: Any, name: str) -> None:
    """Raise for a set, a mapping or a data frame where a list or an array is expected."""
    if isinstance(values, Mapping | set | frozenset):
        kind = f"a {type(values).__name__}"
    elif getattr(values, "ndim", 1) == 2 and hasattr(values, "columns"):
        kind = "a data frame"
    else:
        return
    raise TypeError(f"{name} must be a list or an array, got {kind}; list its values in order")


def as_list(values: Any, name: str, wanted: str) -> list[Any]:
    """Return values that have an order as a list; messages say what was wanted."""
    refuse_mask(values, name)
    single = isinstance(values, str | bytes) or getattr(values, "ndim", 1) == 0
    if single or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be {wanted}, got {values!r}")
    refuse_unordered(values, name)
    return list(values)


def refuse_mask(values: Any, name: str) -> None:
    """Raise if some of the values are masked; an empty mask is accepted."""
    hidden = _count_masked(values, depth=2)
    if hidden:
        raise ValueError(
            f"{name} must not have masked entries, got {hidden}; fill them, as with "
            f"{name}.filled(value), or drop the rows that have any"
        )


def _count_masked(values: Any, depth: int) -> int:
    if isinstance(values, np.ma.MaskedArray):  # np.ma.masked is one, too
        return int(np.count_nonzero(np.ma.getmaskarray(values)))
    if isinstance(values, np.ndarray) and values.dtype == object:
        values = list(values.flat)
    if depth == 0 or not isinstance(values, list | tuple):
        return 0
    return sum(_count_masked(value, depth - 1) for value in values)


def check_indices(X: Any, name: str) -> Any:
    """Return a sparse matrix whose indices are valid; kernels, SciPy's too, do not check them.

    It is returned unchanged, or as COO where its format has no arrays of indices.
    """
    if len(X.shape) != 2:
        raise ValueError(f"{name} must be a 2D matrix, got a sparse array of shape {X.shape}")
    if X.format not in _INDEXED:
        X = _as_coo(X, name)
    refuse_mask(X.data, name)
    if X.format == "coo":
        if not len(X.data) == len(X.row) == len(X.col):
            counts = f"{len(X.data)} entries, {len(X.row)} rows and {len(X.col)} columns"
            raise _invalid(name, f"it lists {counts}")
        _check_range(X.row, X.shape[0], name)
        _check_range(X.col, X.shape[1], name)
        return X
    for part in ("indptr", "indices"):
        index = getattr(X, part)
        if not isinstance(index, np.ndarray) or index.ndim != 1 or index.dtype.kind not in "iu":
            raise _invalid(name, f"{part} is no array of integers")
    sizes = np.array(X.shape) // getattr(X, "blocksize", 1)
    n_major, n_minor = sizes[::-1] if X.format == "csc" else sizes
    pointer = X.indptr
    fits = (
        np.ndim(X.data) == (3 if X.format == "bsr" else 1)
        and len(pointer) == n_major + 1
        and pointer[0] == 0
        and pointer[-1] <= min(len(X.indices), len(X.data))
        and (pointer[1:] >= pointer[:-1]).all()
    )
    if not fits:
        found = f"indptr has {len(pointer)} entries up to {pointer.max(initial=0)}"
        stored = f"{len(X.indices)} indices and data of shape {np.shape(X.data)}"
        raise _invalid(name, f"{found}, which do not lead in {n_major} steps through {stored}")
    _check_range(X.indices[: pointer[-1]], n_minor, name)
    return X


def _as_coo(X: Any, name: str) -> Any:
    """Return the matrix as COO, after a check that the lists of its own format fit together."""
    if X.format == "lil":
        rows = list(X.rows)
        sizes = [len(row) for row in rows]
        if len(rows) != X.shape[0] or sizes != [len(entries) for entries in X.data]:
            raise _invalid(name, "its lists of columns and of entries differ in length")
        _check_range(np.array([j for row in rows for j in row], dtype=object), X.shape[1], name)
    elif X.format == "dok":
        for axis in (0, 1):
            keys = np.array([key[axis] for key in X.keys()], dtype=object)  # noqa: SIM118
            _check_range(keys, X.shape[axis], name)
    elif X.format == "dia" and (X.data.ndim != 2 or X.offsets.shape != X.data.shape[:1]):
        shapes = f"{X.offsets.shape} and {X.data.shape}"
        raise _invalid(name, f"its offsets and diagonals have the shapes {shapes}")
    return X.tocoo()


def _check_range(index: Any, size: int, name: str) -> None:
    if len(index) == 0:
        return
    worst = min(int(index.min()), 0) or int(index.max())
    if not 0 <= worst < size:
        raise _invalid(name, f"an index is {worst}, where 0 to {size - 1} exist")


def _invalid(name: str, what: str) -> ValueError:
    return ValueError(
        f"{name} must be a valid sparse matrix, but {what}; build it anew, for example by "
        "scipy.sparse.csc_array((data, (rows, columns)), shape=shape)"
    )


def as_numbers(values: Any, name: str) -> Floats:
    """Return a copy of real numbers as an array of float64, of any shape."""
    values = check_container(values, name)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be a list of numbers: {error}") from error
    if array.dtype.kind == "c":
        raise ValueError(f"{name} is complex; give real numbers")
    if array.dtype.kind in "mM":
        raise TypeError(f"{name} holds dates or time spans; turn them into numbers first")
    try:
        with np.errstate(over="ignore"):  # numbers beyond 1e308 become infinite
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name} must hold numbers: {error}") from error


def frame_labels(X: Any, name: str = "X") -> ColumnLabels | None:
    """Return the column labels of a data frame; None where X is none."""
    columns = getattr(X, "columns", None)
    try:
        labels: ColumnLabels = () if columns is None else tuple(columns)
        different = set(labels)
    except TypeError:  # no labels: those of a pyarrow table are the columns themselves
        return None
    if len(different) < len(labels):
        twice = Counter(labels).most_common(1)[0][0]
        raise ValueError(f"{name} must have different column labels, got {twice!r} more than once")
    return labels or None


def are_numbers_from_zero(labels: ColumnLabels) -> bool:
    """Return whether labels are 0, 1, 2, ..., as of a data frame that was given none."""
    return labels == tuple(range(len(labels)))


def column_labels(X: Any, name: str = "X") -> ColumnLabels | None:
    """Return the column labels of a data frame; None where they are 0, 1, 2, ..."""
    labels = frame_labels(X, name)
    return None if labels is None or are_numbers_from_zero(labels) else labels
