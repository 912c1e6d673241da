"""What users hold their numbers in: masked arrays, sparse matrices, frames with labels.

Containers are looked at before anything is converted: a conversion drops masks in silence, and
follows the indices of a sparse matrix wherever they lead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np
from scipy import sparse

#: What the columns of a frame are called: strings as a rule, but whatever it uses as labels.
ColumnLabels = tuple[Hashable, ...]

#: The formats whose indices are arrays that can be looked at as they are.
_INDEXED = ("csc", "csr", "bsr", "coo")


def check_container(values: Any, name: str) -> Any:
    """The same values without an empty mask and with indices that stay inside, or an error."""
    if sparse.issparse(values):
        return check_indices(values, name)
    refuse_mask(values, name)
    return np.ma.getdata(values) if isinstance(values, np.ma.MaskedArray) else values


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
        X = X.tocoo()
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


def column_labels(X: Any, name: str = "X") -> ColumnLabels | None:
    """What the columns of a frame are called; None where they are only counted from 0."""
    columns = getattr(X, "columns", None)
    try:
        labels: ColumnLabels = () if columns is None else tuple(columns)
        different = set(labels)
    except TypeError:  # no labels: those of a pyarrow table are the columns themselves
        return None
    if not labels or labels == tuple(range(len(labels))):
        return None
    if len(different) < len(labels):
        twice = Counter(labels).most_common(1)[0][0]
        raise ValueError(f"{name} must have different column labels, got {twice!r} more than once")
    return labels
