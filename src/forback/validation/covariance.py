"""Checks of covariance matrices, given or computed from data, and of their variables."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from forback.core.types import ColumnLabels, Floats
from forback.validation.arrays import check_matrix
from forback.validation.columns import find_column, places_of
from forback.validation.scalars import check_flag

#: On the scale of correlations, negative eigenvalues and asymmetries up to this are rounding.
CORRELATION_ROUNDING = 1e-8

#: The inverse of a smaller variance might overflow.
MIN_VARIANCE = 1e-300


def check_covariance(S: Any) -> tuple[Floats, ColumnLabels | None]:
    """Return a covariance matrix and the labels of its columns.

    Parameters
    ----------
    S : array or data frame of shape (p, p)
        What the user passed: symmetric, without negative eigenvalues, with positive variances.

    Returns
    -------
    matrix : ndarray of shape (p, p)
        A symmetric copy in float64.
    labels : tuple or None
        Column labels, if there are any.
    """
    given, names = _check_dense(S, "S")
    p = len(given)
    rounding = max(CORRELATION_ROUNDING, 10 * p * float(np.finfo(given.dtype).eps))
    if given.shape != (p, p):
        raise ValueError(f"S must be square, a covariance matrix, got shape {given.shape}")
    matrix = given.astype(np.float64)
    _check_variances(matrix.diagonal(), names, "S")
    deviation = np.sqrt(matrix.diagonal())
    scaled = matrix / deviation[:, None] / deviation
    asymmetry = np.abs(scaled - scaled.T)
    if asymmetry.max() > rounding:
        i, j = np.unravel_index(asymmetry.argmax(), asymmetry.shape)
        raise ValueError(
            f"S must be symmetric, got {matrix[i, j]:g} at ({i}, {j}) and {matrix[j, i]:g} at "
            f"({j}, {i})"
        )
    matrix = 0.5 * (matrix + matrix.T)
    smallest = float(np.linalg.eigvalsh(0.5 * (scaled + scaled.T))[0])
    if smallest < -rounding:
        raise ValueError(
            "S must have no negative eigenvalues, as covariance matrices do; scaled to "
            f"correlations, its smallest is {smallest:g}"
        )
    return matrix, names


def _check_dense(values: Any, name: str) -> tuple[Any, ColumnLabels | None]:
    matrix, labels = check_matrix(values, name)
    if sparse.issparse(matrix):
        raise TypeError(f"{name} must be a dense matrix, got a sparse one; give {name}.toarray()")
    return matrix, labels


def _check_variances(variances: Floats, names: ColumnLabels | None, name: str) -> None:
    worst = int(variances.argmin())
    if variances[worst] < MIN_VARIANCE:
        which = worst if names is None else repr(names[worst])
        raise ValueError(
            f"variable {which} of {name} has the variance {variances[worst]:g}, which must be at "
            f"least {MIN_VARIANCE:.0e}; leave it out if it is constant, or multiply it"
        )


def covariance_of(
    X: Any, *, assume_centered: bool, names: ColumnLabels | None = None
) -> tuple[Floats, Floats, ColumnLabels | None]:
    """Return the mean and the covariance matrix of the rows of X.

    Parameters
    ----------
    X : array or data frame of shape (n, p)
        What the user passed.
    assume_centered : bool
        Whether to take the mean to be zero.
    names : tuple, optional
        Labels of the columns; by default those of a data frame.

    Returns
    -------
    mean : ndarray of shape (p,)
        The mean, or zeros.
    S : ndarray of shape (p, p)
        Second moments about it, divided by n.
    names : tuple or None
        Labels of the columns.
    """
    check_flag(assume_centered, "assume_centered")
    matrix, own = _check_dense(X, "X")
    n = len(matrix)
    if n < 2 and not assume_centered:
        raise ValueError(f"X must have two rows or more to have a covariance, got {n}")
    rows = matrix.astype(np.float64)
    mean = np.zeros(rows.shape[1])
    if not assume_centered:
        # The mean of a constant column must be exact, or rounding would look like a variance.
        low = rows.min(axis=0)
        mean = np.where(low == rows.max(axis=0), low, rows.mean(axis=0))
        rows -= mean
    with np.errstate(over="ignore", invalid="ignore"):
        S = rows.T @ rows / n
    if not np.isfinite(S).all():
        raise ValueError("X overflows when squared; rescale its columns")
    _check_variances(S.diagonal(), names or own, "X")
    return mean, S, names or own


def check_variable(variable: Any, p: int, labels: ColumnLabels | None, name: str) -> int:
    """Return the number of one of p variables, from its label or its number."""
    return find_column(variable, p, places_of(labels), name, noun="variable")
