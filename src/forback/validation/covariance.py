"""Covariance matrices at the border: given, or of data, and which variable is which.

As in `forback.validation`, messages name the argument, what was met and what to do about it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from forback.core.types import ColumnLabels, Floats
from forback.validation.arrays import check_matrix
from forback.validation.scalars import can_be_hashed, check_flag, check_integer

#: On the scale of correlations, eigenvalues down to minus this are rounding, and so are
#: differences between S and its transpose.
SLIGHT = 1e-8

#: The precision of a variable with a smaller variance might overflow.
SMALLEST = 1e-300


def check_covariance(S: Any) -> tuple[Floats, ColumnLabels | None]:
    """A symmetric matrix without negative eigenvalues, with the names of its columns if any."""
    given, names = check_matrix(S, "S")
    if sparse.issparse(given):
        raise TypeError("S must be a dense matrix; met a sparse one. Give S.toarray()")
    p, rounding = len(given), max(SLIGHT, 10 * len(given) * float(np.finfo(given.dtype).eps))
    if given.shape != (p, p):
        raise ValueError(f"S must be square, a covariance matrix; met shape {given.shape}")
    matrix = given.astype(np.float64)
    _check_variances(matrix.diagonal(), names, "S")
    if matrix.diagonal().min() < SMALLEST:
        raise ValueError(
            f"S must have variances of at least {SMALLEST:.0e}, got {matrix.diagonal().min():.0e}; "
            "multiply the variables by a constant"
        )
    deviation = np.sqrt(matrix.diagonal())
    scaled = matrix / deviation[:, None] / deviation
    off = np.abs(scaled - scaled.T)
    if off.max() > rounding:
        i, j = np.unravel_index(off.argmax(), off.shape)
        raise ValueError(
            f"S must be symmetric; met {matrix[i, j]:g} at ({i}, {j}) and {matrix[j, i]:g} at "
            f"({j}, {i})"
        )
    matrix = 0.5 * (matrix + matrix.T)
    least = float(np.linalg.eigvalsh(0.5 * (scaled + scaled.T))[0])
    if least < -rounding:
        raise ValueError(
            "S must have no negative eigenvalues, as covariance matrices do; scaled to "
            f"correlations, its smallest is {least:g}"
        )
    return matrix, names


def _check_variances(variances: Floats, names: ColumnLabels | None, name: str) -> None:
    bad = np.flatnonzero(~(variances > 0.0))
    if len(bad):
        which = bad[0] if names is None else repr(names[bad[0]])
        raise ValueError(
            f"variable {which} of {name} has the variance {variances[bad[0]]:g}; leave out "
            "variables that are constant"
        )


def covariance_of(
    X: Any, *, assume_centered: bool, names: ColumnLabels | None = None
) -> tuple[Floats, Floats, ColumnLabels | None]:
    """The mean of the rows of X, or zero; their covariance about it; the names of the columns."""
    check_flag(assume_centered, "assume_centered")
    matrix, own = check_matrix(X)
    names = names or own
    if sparse.issparse(matrix):
        raise TypeError("X must be dense here; met a sparse matrix. Give X.toarray()")
    n = len(matrix)
    if n < 2 and not assume_centered:
        raise ValueError(f"X must have two rows or more to have a covariance; met {n}")
    rows = matrix.astype(np.float64)
    mean = np.zeros(rows.shape[1])
    if not assume_centered:
        # A mean that is exact where a column is constant: it then varies by zero, not by rounding.
        low, high = rows.min(axis=0), rows.max(axis=0)
        mean = np.where(low == high, low, rows.mean(axis=0))
        rows -= mean
    with np.errstate(over="ignore", invalid="ignore"):
        S = rows.T @ rows / n
    if not np.isfinite(S).all():
        raise ValueError("X holds numbers whose squares overflow; divide it by a constant")
    if ((S.diagonal() < SMALLEST) & (np.ptp(rows, axis=0) > 0.0)).any():
        raise ValueError("X holds numbers too small to be squared; multiply it by a constant")
    _check_variances(S.diagonal(), names, "X")
    return mean, S, names


def check_variable(variable: Any, p: int, labels: ColumnLabels | None, name: str) -> int:
    """The number of a variable, from its label where variables have labels, else from its number.

    Where all labels are strings a whole number cannot be one, and counts variables.
    """
    if labels is not None and can_be_hashed(variable) and variable in labels:
        return labels.index(variable)
    if isinstance(variable, str) or not all(isinstance(label, str) for label in labels or ()):
        more = ", ..." if labels is not None and len(labels) > 6 else ""
        known = "have no names" if labels is None else f"are {', '.join(map(str, labels[:6]))}"
        raise ValueError(f"{name} names the variable {variable!r}; variables {known}{more}")
    number = check_integer(variable, name, low=0)
    if number >= p:
        raise ValueError(f"{name} holds variable {number}; they are numbered 0 to {p - 1}")
    return number
