"""What users hold their numbers in: masked arrays, sparse matrices, frames with labels.

Containers are looked at before anything is converted: a conversion drops masks in silence, and
follows the indices of a sparse matrix wherever they lead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from forback.core.types import ColumnLabels, Floats

#: The formats whose indices are arrays that can be looked at as they are.
_INDEXED = ("csc", "csr", "bsr", "coo")


def check_container(values: Any, name: str) -> Any:
    """The same values without an empty mask and with indices that stay inside, or an error."""
    if sparse.issparse(values):
        return check_indices(values, name)
    refuse_mask(values, name)
    return np.ma.getdata(values) if isinstance(values, np.ma.MaskedArray) else values


def refuse_unordered(values: Any, name: str) -> None:
    """Raise where a list is expected and its entries have no order, or are names of columns."""
    if isinstance(values, Mapping | set | frozenset):
        kind = f"a {type(values).__name__}"
    elif getattr(values, "ndim", 1) == 2 and hasattr(values, "columns"):
        kind = "a data frame"
    else:
        return
    raise TypeError(f"{name} must be a list or an array, got {kind}; list its values in order")


def refuse_mask(values: Any, name: str) -> None:
    """Raise where some of the values are masked; a mask that hides nothing is no reason to."""
    hidden = _count_masked(values, depth=2)
    if hidden:
        raise ValueError(
            f"{name} must not have masked entries, got {hidden}; fill them, as with "
            f"{name}.filled(value), or drop the rows that have any"
        )


def _count_masked(values: Any, depth: int) -> int:
    if isinstance(values, np.ma.MaskedArray):  # np.ma.masked is one, too
        return int(np.count_nonzero(np.ma.getmaskarray(values)))
    if isinstance(values, np.ndarray):
        if values.dtype != object:
            return 0
        return sum(_count_masked(value, depth - 1) for value in values.flat) if depth else 0
    if isinstance(values, list | tuple) and depth:
        return sum(_count_masked(value, depth - 1) for value in values)
    return 0


def check_indices(X: Any, name: str) -> Any:
    """A sparse matrix whose indices stay inside it: kernels, SciPy's too, read where they point.

    It is returned as given, or as COO where its format holds no arrays of indices.
    """
    if len(X.shape) != 2:
        raise ValueError(f"{name} must be a 2D matrix, got a sparse array of shape {X.shape}")
    if X.format not in _INDEXED:
        X = _as_coo(X, name)
    refuse_mask(X.data, name)
    if X.format == "coo":
        if not len(X.data) == len(X.row) == len(X.col):
            counts = f"{len(X.data)} entries, {len(X.row)} rows and {len(X.col)} columns"
            raise _broken(name, f"it lists {counts}")
        _check_range(X.row, X.shape[0], name)
        _check_range(X.col, X.shape[1], name)
        return X
    height, width = X.blocksize if X.format == "bsr" else (1, 1)
    rows, columns = X.shape[0] // height, X.shape[1] // width
    lines, across = (columns, rows) if X.format == "csc" else (rows, columns)
    for part in ("indptr", "indices"):
        index = getattr(X, part)
        if not isinstance(index, np.ndarray) or index.ndim != 1 or index.dtype.kind not in "iu":
            raise _broken(name, f"{part} is no array of integers")
    if np.ndim(X.data) != (3 if X.format == "bsr" else 1) or len(X.indptr) == 0:
        raise _broken(name, f"data has shape {np.shape(X.data)} and indptr {X.indptr.shape}")
    pointer, stored = X.indptr, min(len(X.indices), len(X.data))
    if len(pointer) != lines + 1 or pointer[0] != 0 or not 0 <= pointer[-1] <= stored:
        raise _broken(
            name,
            f"indptr has {len(pointer)} entries, from {pointer[0]} to {pointer[-1]}, for {lines} "
            f"{'columns' if X.format == 'csc' else 'rows'} and {stored} entries",
        )
    if (pointer[1:] < pointer[:-1]).any():
        raise _broken(name, "indptr falls")
    _check_range(X.indices[: pointer[-1]], across, name)
    return X


def _as_coo(X: Any, name: str) -> Any:
    """The same matrix as COO, once the lists of its own format fit together."""
    if X.format == "lil":
        rows, data = list(X.rows), list(X.data)
        sizes = [*map(len, rows)]
        if not len(rows) == len(data) == X.shape[0] or sizes != [*map(len, data)]:
            raise _broken(name, "its lists of columns and of entries differ in length")
        _check_range(np.array([j for row in rows for j in row], dtype=object), X.shape[1], name)
    elif X.format == "dok":
        for axis in (0, 1):
            keys = np.array([key[axis] for key in X.keys()], dtype=object)  # noqa: SIM118
            _check_range(keys, X.shape[axis], name)
    elif X.format == "dia" and (X.data.ndim != 2 or X.offsets.shape != X.data.shape[:1]):
        shapes = f"{X.offsets.shape} and {X.data.shape}"
        raise _broken(name, f"its offsets and diagonals have the shapes {shapes}")
    return X.tocoo()


def _check_range(index: Any, size: int, name: str) -> None:
    if len(index) == 0:
        return
    low, high = int(index.min()), int(index.max())
    if low < 0 or high >= size:
        raise _broken(name, f"an index is {low if low < 0 else high}, where 0 to {size - 1} exist")


def _broken(name: str, what: str) -> ValueError:
    return ValueError(
        f"{name} must be a valid sparse matrix, but {what}; build it anew, for example by "
        "scipy.sparse.csc_array((data, (rows, columns)), shape=shape)"
    )


def as_numbers(values: Any, name: str) -> Floats:
    """Real numbers as an array of float64, of whatever shape, in an array of its own."""
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
        with np.errstate(over="ignore"):  # of numbers beyond 1e308, which become infinite
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name} must hold numbers: {error}") from error


def frame_labels(X: Any, name: str = "X") -> ColumnLabels | None:
    """What the columns of a frame are called; None where X is no frame."""
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
    """Whether labels only count columns, as those of a frame do that was given none."""
    return labels == tuple(range(len(labels)))


def column_labels(X: Any, name: str = "X") -> ColumnLabels | None:
    """What the columns of a frame are called; None where they are only counted from 0."""
    labels = frame_labels(X, name)
    return None if labels is None or are_numbers_from_zero(labels) else labels
