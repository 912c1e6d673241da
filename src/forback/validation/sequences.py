"""Checks of the observations and labels of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from forback.core.types import ColumnLabels, Ints
from forback.validation.arrays import check_matrix
from forback.validation.containers import as_list, check_container
from forback.validation.scalars import can_be_hashed, check_integer, is_missing


def check_observations(X: Any, lengths: Any) -> tuple[Any, Ints, ColumnLabels | None]:
    """Return the observations of all sequences as one matrix.

    Parameters
    ----------
    X : matrix, or list of matrices
        What the user passed: sequences below each other, or one matrix per sequence.
    lengths : list of int, optional
        Number of rows of each sequence where X is one matrix; by default it is one sequence.

    Returns
    -------
    matrix : ndarray or scipy.sparse.csr_array
        Float64, stored by rows.
    lengths : ndarray of int
        Number of rows of each sequence.
    labels : tuple or None
        Column labels, if there are any.
    """
    if isinstance(X, list | tuple) and len(X) and all(_is_matrix(part) for part in X):
        if lengths is not None:
            raise ValueError(
                "lengths is for several sequences in one matrix, got a list of matrices as well, "
                "which has its own"
            )
        return _stack(X)
    matrix, names = check_matrix(X)
    matrix = _by_rows(matrix)
    return matrix, check_lengths(lengths, matrix.shape[0]), names


def _is_matrix(part: Any) -> bool:
    if isinstance(part, list | tuple):  # of rows
        return len(part) > 0 and all(isinstance(row, list | tuple | np.ndarray) for row in part)
    return len(getattr(part, "shape", ())) == 2


def _stack(parts: Sequence[Any]) -> tuple[Any, Ints, ColumnLabels | None]:
    matrices, names = zip(
        *(check_matrix(part, f"X[{number}]") for number, part in enumerate(parts)), strict=True
    )
    widths = {matrix.shape[1] for matrix in matrices}
    if len(widths) > 1 or len(set(names)) > 1:
        raise ValueError(
            f"the sequences of X must have the same columns, got {sorted(widths)} columns"
            + (" and different names" if len(widths) == 1 else "")
        )
    stack = sparse.vstack if any(map(sparse.issparse, matrices)) else np.vstack
    lengths = np.array([matrix.shape[0] for matrix in matrices], dtype=np.intp)
    return _by_rows(stack(matrices)), lengths, names[0]


def _by_rows(matrix: Any) -> Any:
    if sparse.issparse(matrix):
        return sparse.csr_array(matrix, dtype=np.float64)
    return np.ascontiguousarray(matrix, dtype=np.float64)


def check_lengths(lengths: Any, n_steps: int) -> Ints:
    """Return the lengths of the sequences of one matrix; by default there is one sequence."""
    if lengths is None:
        return np.array([n_steps], dtype=np.intp)
    given = as_list(lengths, "lengths", "a list of the lengths of sequences")
    # As Python's integers: a sum of NumPy's small ones would wrap around.
    listed = [check_integer(item, f"lengths[{i}]", low=1) for i, item in enumerate(given)]
    if sum(listed) != n_steps:
        raise ValueError(f"lengths add up to {sum(listed)}, but X has {n_steps} rows")
    return np.array(listed, dtype=np.intp)


def check_labels(y: Any, lengths: Ints) -> tuple[np.ndarray[Any, Any], Ints]:
    """Return the labels that occur, sorted if they compare, and the code of each step's label."""
    array = _flat(y, lengths)
    if array.dtype != object:
        classes, codes = np.unique(array, return_inverse=True)
        fractional = array.dtype.kind == "f" and bool((classes != np.floor(classes)).any())
        if fractional and len(classes) > max(10, len(array) // 10):
            raise ValueError(
                f"y is continuous: it holds {len(classes)} different numbers, for example "
                f"{classes[0]:g}; labels are names or a few numbers"
            )
        return classes, codes.astype(np.intp)
    different = list(dict.fromkeys(array))
    with suppress(TypeError):  # labels that do not compare stay in order of appearance
        different = sorted(different)
    classes = np.fromiter(different, dtype=object)
    return classes, label_codes(array, classes)


def check_several_classes(classes: np.ndarray[Any, Any]) -> None:
    """Refuse labels of one class only."""
    if len(classes) < 2:
        raise ValueError(
            f"y has only one class, {classes.tolist()[0]!r}; at least two are required. Add rows "
            "of another class, with a positive weight"
        )


def known_labels(y: Any, lengths: Ints, classes: np.ndarray[Any, Any]) -> Ints:
    """Return the codes of labels, all of which must be among `classes`."""
    return label_codes(_flat(y, lengths), classes)


def label_codes(array: np.ndarray[Any, Any], classes: np.ndarray[Any, Any]) -> Ints:
    """Return the place of each label in `classes`."""
    codes = {label: code for code, label in enumerate(classes.tolist())}
    labels = array.tolist()
    unseen = dict.fromkeys(label for label in labels if label not in codes)
    if unseen:
        shown = ", ".join(repr(label) for label in list(unseen)[:5])
        more = f" and {len(unseen) - 5} more" if len(unseen) > 5 else ""
        raise ValueError(f"y contains previously unseen labels: {shown}{more}")
    return np.array([codes[label] for label in labels], dtype=np.intp)


def _flat(y: Any, lengths: Ints) -> np.ndarray[Any, Any]:
    """Return one label per step, from a flat list or from one list per sequence."""
    n_steps = int(lengths.sum())
    if hasattr(y, "__array__") or sparse.issparse(y):  # a Series or a frame, say
        labels = np.asarray(check_container(y, "y"))
    else:
        labels = np.fromiter(as_list(y, "y", "a list of one label per row of X"), dtype=object)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    by_sequence = labels.dtype == object and labels.shape[:1] == lengths.shape
    if by_sequence and _all_nested(labels):
        for number, (part, length) in enumerate(zip(labels, lengths, strict=True)):
            if len(part) != length:
                raise ValueError(
                    f"y[{number}] has {len(part)} labels, but sequence {number} of X has {length} "
                    "rows"
                )
        labels = np.fromiter(chain.from_iterable(labels), dtype=object)
    if labels.ndim != 1 or len(labels) != n_steps:
        raise ValueError(
            f"y must have one label per row of X, shape ({n_steps},), got shape {labels.shape}"
        )
    return _simple(labels)


def _all_nested(labels: np.ndarray[Any, Any]) -> bool:
    """Return whether every entry is a list or an array of labels; a tuple may be a label."""
    return all(isinstance(part, list | np.ndarray) or hasattr(part, "to_numpy") for part in labels)


def _simple(labels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return labels, checked to be hashable and not missing, as a simple type if possible."""
    if labels.dtype.kind in "biuUS":
        return labels
    listed = labels.tolist()
    for step, label in enumerate(listed):
        if not can_be_hashed(label):
            raise TypeError(f"y must hold hashable labels, such as names, got {label!r}")
        if is_missing(label):
            raise ValueError(f"y has no label ({label!r}) at row {step}; every step needs one")
    kinds = {type(label) for label in listed}
    if any(kinds <= {kind} for kind in (str, int, bool, float)):
        return np.array(listed)
    return labels
