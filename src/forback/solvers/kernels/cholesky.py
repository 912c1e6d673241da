"""Small positive matrices: Cholesky factors at unit diagonal, and the largest eigenvalue."""

from __future__ import annotations

import math

import numpy as np

from forback.core.types import Floats
from forback.solvers.kernels.compiled import kernel
from forback.solvers.kernels.vectors import dot

#: How often a matrix is squared to find its largest eigenvalue.
SQUARINGS = 6


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


@kernel
def largest_eigenvalue(matrix: Floats) -> float:
    """Return a number just above the largest eigenvalue of a matrix that has no negative ones.

    The trace of a power is the sum of the powers of eigenvalues: for a power of 64, its root is too
    large by a share of no more than log(m) / 64. Infinite where something overflows.
    """
    m = len(matrix)
    power, square = matrix.copy(), np.empty((m, m))
    size = 1.0
    for squared in range(SQUARINGS + 1):
        trace = 0.0
        for a in range(m):
            trace += power[a, a]
        if not 0.0 < trace < math.inf:
            return math.inf
        size *= trace ** (0.5**squared)
        power /= trace
        for a in range(m):
            for b in range(a + 1):
                square[a, b] = square[b, a] = dot(power[a], power[b])
        power, square = square, power
    return size
