"""Linear algebra of small Hessians that may be singular or badly scaled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from forback.core.tolerances import ILL_CONDITIONED
from forback.core.types import Floats, Ints
from forback.solvers.kernels.cholesky import fill_factor, fill_inverse, solve_factored

#: Up to this many columns a compiled loop factors a Hessian in less time than a call of LAPACK.
MAX_COLUMNS_FOR_KERNEL = 64

#: Singular values below this fraction of the largest are exact collinearity: nothing moves there.
COLLINEAR_RTOL = 1e-13

#: Eigenvalues of a Hessian of unit diagonal below which its inverse loses digits that matter.
LEAST_EIGENVALUE = 1e-6

Solve = Callable[[Floats], Floats]


def ridge_penalty(ridge: Floats, coef: Floats) -> float:
    """Return half the sum of ridge * coef^2, which is 0 without ridge whatever coef is."""
    return 0.5 * float((ridge * coef) @ coef)


def factor(hessian: Floats | None, least_pivot: float = ILL_CONDITIONED) -> Solve | None:
    """Return a solver by Cholesky's method, or None where the Hessian is ill-conditioned.

    The Hessian is scaled to unit diagonal first, so that columns of size 1e-150 and 1e150 may meet.
    """
    if hessian is None:
        return None
    m = len(hessian)
    if m <= MAX_COLUMNS_FOR_KERNEL:  # one small kernel is quicker than waking up LAPACK
        root = np.empty(m)
        triangle = np.zeros((m, m))
        if not fill_factor(hessian, root, triangle, least_pivot):
            return None

        def solve_few(g: Floats) -> Floats:
            found = np.empty(m)
            solve_factored(triangle, root, g, found)
            return found

        return solve_few
    root = np.sqrt(np.diag(hessian))
    root[root == 0.0] = 1.0
    scaled = hessian / root[:, None]
    scaled /= root
    # A transpose is in LAPACK's own order and need not be copied.
    triangle, info = linalg.lapack.dpotrf(scaled.T, lower=True, overwrite_a=True, clean=False)
    if info != 0 or triangle.diagonal().min() ** 2 <= least_pivot:
        return None

    def solve(g: Floats) -> Floats:
        return np.asarray(linalg.lapack.dpotrs(triangle, g / root, lower=True)[0] / root)

    return solve


def inverse_of(hessian: Floats) -> Floats:
    """Return the inverse of a Hessian; where that is singular, of one with a little more on it."""
    m = len(hessian)
    if m <= MAX_COLUMNS_FOR_KERNEL:
        root, triangle, inverse = np.empty(m), np.zeros((m, m)), np.empty((m, m))
        if fill_factor(hessian, root, triangle, COLLINEAR_RTOL):
            fill_inverse(triangle, root, inverse)
            return inverse
    root = np.sqrt(np.maximum(hessian.diagonal(), 0.0))
    root[root == 0.0] = 1.0
    scaled = hessian / root[:, None] / root
    triangle, info = linalg.lapack.dpotrf(scaled.T, lower=True, clean=True)
    if info == 0 and triangle.diagonal().min() ** 2 > COLLINEAR_RTOL:
        inverse = linalg.lapack.dpotri(triangle, lower=True)[0]
        inverse += np.tril(inverse, -1).T
    else:
        values, vectors = np.linalg.eigh(scaled)
        half = vectors / np.sqrt(np.maximum(values, COLLINEAR_RTOL * m))
        inverse = half @ half.T
    return np.asarray(inverse / root[:, None] / root)


def inverse_roots(hessians: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return for each of some Hessians a matrix R such that R R' is its inverse.

    Also returns which of them can be trusted: not those of Hessians that are nearly singular.
    """
    with np.errstate(invalid="ignore"):
        size = np.sqrt(np.einsum("bii->bi", hessians))
    is_sound = np.isfinite(hessians).all(axis=(1, 2)) & (size > 0.0).all(axis=1)
    size[~is_sound] = 1.0
    scaled = np.where(is_sound[:, None, None], hessians, 0.0) / size[:, :, None] / size[:, None]
    values, vectors = np.linalg.eigh(scaled)
    is_sound &= values[:, 0] > LEAST_EIGENVALUE
    values[~is_sound] = 1.0
    return vectors / np.sqrt(values)[:, None] / size[:, :, None], is_sound


def scaled_svd(A: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the SVD of A with columns of unit norm, and those norms."""
    largest = np.max(np.abs(A), axis=0)
    largest = np.where(largest > 0, largest, 1.0)
    norms = largest * np.linalg.norm(A / largest, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    return *linalg.svd(A / norms, full_matrices=False), norms


def projection_costs(A: Floats, coef: Floats, blocks: list[Ints]) -> Floats:
    """Return, for each block B, 1/2 the squared distance of A_B coef_B from the other columns.

    This is how far ``|A b - z|^2 / 2``, at its minimum, rises when the block leaves.
    """
    if all(len(block) == 1 for block in blocks):
        # 1/2 b^2 / [(A'A)^-1]_jj, all at once; the inverse is huge where columns are collinear.
        _, singular, right, norms = scaled_svd(A)
        half = right.T / np.maximum(singular, COLLINEAR_RTOL * singular[0]) / norms[:, None]
        index = np.concatenate(blocks)
        return np.asarray(0.5 * coef[index] ** 2 / np.sum(half[index] ** 2, axis=1))
    triangle = np.asarray(np.linalg.qr(A, mode="r"))
    norms = np.linalg.norm(triangle, axis=0)
    unit = triangle / np.where(norms > 0, norms, 1.0)
    costs = []
    for block in blocks:
        rest = np.setdiff1d(np.arange(len(coef)), block)
        target = triangle[:, block] @ coef[block]
        nearest = np.linalg.lstsq(unit[:, rest], target, rcond=COLLINEAR_RTOL)[0]
        costs.append(0.5 * np.sum((target - unit[:, rest] @ nearest) ** 2))
    return np.array(costs)
