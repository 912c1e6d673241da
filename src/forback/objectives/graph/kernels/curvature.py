"""Loops over pairs of entries of a symmetric matrix."""

from __future__ import annotations

import numpy as np

from forback.core.types import Floats, Ints
from forback.solvers.kernels.compiled import kernel

#: Rows and columns of a tile, two of which fit into the cache.
TILE = 32


@kernel
def mirror(W: Floats) -> None:
    """Copy what is above the diagonal to below it, tile by tile so that both stay in cache."""
    for top in range(0, len(W), TILE):
        for left in range(0, top + 1, TILE):
            for a in range(top, min(top + TILE, len(W))):
                for b in range(left, min(left + TILE, a)):
                    W[a, b] = W[b, a]


@kernel
def fill_curvature(i: Ints, j: Ints, W: Floats, ridge: Floats, out: Floats) -> None:
    """Write the second derivative of -log det over entries (i, j), plus ridge, to `out`.

    W is the inverse of the matrix.

    out[a, b] = tr(E_a W E_b W) = c_a c_b / 2 (W_ik W_jl + W_il W_jk) for a = (i, j), b = (k, l),
    where E_a is the matrix that entry a multiplies and c_a counts its ones: 1 on the diagonal,
    else 2.
    """
    for a in range(len(i)):
        row_i, row_j = W[i[a]], W[j[a]]
        own = 0.5 if i[a] == j[a] else 1.0
        for b in range(a + 1):
            k, m = i[b], j[b]
            count = own if k == m else 2.0 * own
            curvature = count * (row_i[k] * row_j[m] + row_i[m] * row_j[k])
            out[a, b] = curvature
            out[b, a] = curvature
        out[a, a] += ridge[a]


@kernel
def components(i: Ints, j: Ints, p: int) -> Ints:
    """Return, for each of p nodes, the lowest node that edges (i, j) join it to.

    SciPy's `connected_components` takes 130 times as long on 60 nodes: it wants a sparse matrix.
    That would be a quarter of a whole run.
    """
    parent = np.arange(p)
    for edge in range(len(i)):
        a, b = i[edge], j[edge]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        # The lower one stays a root, so that one sweep in order finds every root.
        parent[max(a, b)] = min(a, b)
    for node in range(p):
        parent[node] = parent[parent[node]]
    return parent
