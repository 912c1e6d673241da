"""Cholesky factorisation of a small matrix scaled to unit diagonal."""

from __future__ import annotations

import numpy as np

from forback.core.types import Floats
from forback.solvers.kernels.compiled import kernel
from forback.solvers.kernels.vectors import dot


@kernel
def fill_factor(hessian: Floats, root: Floats, triangle: Floats, least_pivot: float) -> bool:
    """Factor the Hessian, scaled to unit diagonal; return False if it is ill-conditioned."""
    m = len(root)
    for a in range(m):
        root[a] = np.sqrt(hessian[a, a])
        if not (root[a] > 0.0 and np.isfinite(root[a])):  # a column of zeros, or an overflow
            return False
    for a in range(m):
        for b in range(a + 1):
            left = hessian[a, b] / root[a] / root[b] - dot(triangle[a, :b], triangle[b, :b])
            if a > b:
                triangle[a, b] = left / triangle[b, b]
            elif left > least_pivot:
                triangle[a, a] = np.sqrt(left)
            else:
                return False
    return True


@kernel
def solve_factored(triangle: Floats, root: Floats, right: Floats, direction: Floats) -> None:
    """Write the inverse Hessian times the right-hand side to `direction`."""
    m = len(root)
    for a in range(m):
        left = right[a] / root[a] - dot(triangle[a, :a], direction[:a])
        direction[a] = left / triangle[a, a]
    for a in range(m - 1, -1, -1):
        for b in range(a + 1, m):
            direction[a] -= triangle[b, a] * direction[b]
        direction[a] /= triangle[a, a]
    for a in range(m):
        direction[a] /= root[a]


@kernel
def fill_inverse(triangle: Floats, root: Floats, inverse: Floats) -> None:
    """Write the inverse Hessian, from its factor."""
    m = len(root)
    own = np.zeros((m, m))  # the inverse of the triangle, its columns as rows
    for a in range(m):
        own[a, a] = 1.0 / triangle[a, a]
        for b in range(a + 1, m):
            own[a, b] = -dot(triangle[b, a:b], own[a, a:b]) / triangle[b, b]
    for a in range(m):
        for b in range(a + 1):
            inverse[a, b] = dot(own[a, a:], own[b, a:]) / root[a] / root[b]
            inverse[b, a] = inverse[a, b]
