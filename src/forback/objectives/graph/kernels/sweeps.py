"""The maximum likelihood of a Gaussian on a known graph, one variable after the other.

W, the inverse of Theta, must agree with S on edges and diagonal; where there is no edge, Theta is
zero. For one variable, the rest of W given, both hold if its column of W is what regression on its
neighbours predicts, with W among the neighbours and S between them and the variable (Hastie,
Tibshirani and Friedman, The Elements of Statistical Learning, algorithm 17.1). That costs as many
rows of W as it has neighbours; a few sweeps over all variables converge.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forback.core.types import Floats, Ints
from forback.solvers.kernels.compiled import kernel
from forback.solvers.kernels.vectors import add_multiple

Flags = NDArray[np.bool_]

#: A regression is trusted if squared pivots, and the residual variance, exceed this.
MIN_RESIDUAL_VARIANCE = 1e-7


@kernel
def list_neighbours(i: Ints, j: Ints, q: int) -> list[Ints]:
    """Return the neighbours of each of q nodes, ascending; entries (i, i) are no edges."""
    are_joined = np.zeros((q, q), np.bool_)
    for a in range(len(i)):
        are_joined[i[a], j[a]] = are_joined[j[a], i[a]] = i[a] != j[a]
    return [np.flatnonzero(are_joined[v]) for v in range(q)]


@kernel
def _regress(node: int, near: Ints, S: Floats, W: Floats, triangle: Floats, beta: Floats) -> float:
    """Regress a variable, of variance 1, on its neighbours; return its residual variance, or 0.

    By Cholesky's method on W among the neighbours, whose diagonal is 1 too. The coefficients are
    written to `beta`; `triangle` is room to work in.
    """
    residual = 1.0
    for a in range(len(near)):
        pivot = 1.0
        target = S[near[a], node]
        for b in range(a):
            entry = W[near[a], near[b]]
            for c in range(b):
                entry -= triangle[a, c] * triangle[b, c]
            entry /= triangle[b, b]
            triangle[a, b] = entry
            pivot -= entry * entry
            target -= entry * beta[b]
        if not pivot > MIN_RESIDUAL_VARIANCE:
            return 0.0
        triangle[a, a] = np.sqrt(pivot)
        beta[a] = target / triangle[a, a]
        residual -= beta[a] * beta[a]
    for a in range(len(near) - 1, -1, -1):
        for b in range(a + 1, len(near)):
            beta[a] -= triangle[b, a] * beta[b]
        beta[a] /= triangle[a, a]
    return residual if residual > MIN_RESIDUAL_VARIANCE else 0.0


@kernel
def sweep(
    i: Ints, j: Ints, S: Floats, W: Floats, due: Flags, tol: float, most: int, coef: Floats
) -> bool:
    """Fit W, and the entries `coef` of Theta, to S of unit diagonal on the entries (i, j).

    The variables that are `due` are fitted first, then all those that this disturbs, until no entry
    of W changes by more than `tol`. Returns False, `coef` untouched, if that takes more than `most`
    sweeps, or some variable is all but a combination of its neighbours. W must be positive
    definite; it is written to in any case.
    """
    q = len(S)
    near = list_neighbours(i, j, q)
    column = np.empty(q)
    beta = np.empty(q)
    triangle = np.empty((q, q))
    # When each variable was fitted, and when its column of W changed, by the number of the fit.
    fitted = -1 * due
    changed = np.zeros(q, np.intp)
    clock = 0
    for _ in range(most):
        worst = 0.0
        for v in range(q):
            others = near[v]
            if fitted[v] >= _latest(others, changed):
                continue
            clock += 1
            fitted[v] = clock
            if _regress(v, others, S, W, triangle, beta) == 0.0:
                return False
            for u in range(q):
                column[u] = 0.0
            for a in range(len(others)):
                add_multiple(beta[a], W[others[a]], column)
            column[v] = 1.0
            worst = max(worst, _replace(v, column, W, tol, clock, changed))
        if worst <= tol:
            return _read_off(i, j, near, S, W, coef)
    return False


@kernel
def _latest(nodes: Ints, times: Ints) -> int:
    """The latest time of some nodes; 0 if there are none."""
    latest = 0
    for a in range(len(nodes)):
        latest = max(latest, times[nodes[a]])
    return latest


@kernel
def _replace(v: int, column: Floats, W: Floats, tol: float, clock: int, changed: Ints) -> float:
    """Write a column and a row of W, note what changed when, and return the largest change."""
    worst = 0.0
    for u in range(len(column)):
        change = abs(column[u] - W[v, u])
        worst = max(worst, change)
        changed[u] = clock if change > tol else changed[u]
        W[v, u] = column[u]
    for u in range(len(column)):
        W[u, v] = column[u]
    if worst > tol:
        changed[v] = clock
    return worst


@kernel
def _read_off(i: Ints, j: Ints, near: list[Ints], S: Floats, W: Floats, coef: Floats) -> bool:
    """The entries of Theta by regressions: each edge has two, which agree up to rounding."""
    q = len(S)
    beta = np.empty(q)
    triangle = np.empty((q, q))
    theta = np.zeros((q, q))
    for v in range(q):
        others = near[v]
        residual = _regress(v, others, S, W, triangle, beta)
        if residual == 0.0:
            return False
        theta[v, v] = 1.0 / residual
        for a in range(len(others)):
            theta[min(v, others[a]), max(v, others[a])] -= 0.5 * beta[a] / residual
    for a in range(len(coef)):
        coef[a] = theta[i[a], j[a]]
    return True
