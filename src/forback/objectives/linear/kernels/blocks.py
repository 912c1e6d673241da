"""Problems of a few columns, block after block: how far Q falls or rises along each.

`forback.objectives.linear.blocks` has them in words.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from forback.core.types import Floats, Ints
from forback.designs.kernels.entries import Entries
from forback.objectives.linear.kernels.lines import (
    NOTHING,
    LineRows,
    column,
    excess,
    most_to_gain,
)
from forback.objectives.linear.kernels.losses import Target, pointwise
from forback.objectives.linear.kernels.newton import (
    Ending,
    SmallProblem,
    fill_hessian,
    small_newton,
)
from forback.objectives.linear.rows import Rows
from forback.solvers.kernels.cholesky import fill_factor, largest_eigenvalue, solve_factored
from forback.solvers.kernels.compiled import kernel
from forback.solvers.kernels.vectors import add_multiple, copy, dot, largest

#: A factor tells bounds if its squared pivots, at unit diagonal, exceed this; these are then
#: widened by a fraction that is far more than its rounding.
LEAST_PIVOT_OF_BOUNDS = 1e-6
WIDER = 1e-7


class Members(NamedTuple):
    """The columns of blocks: those of block b are number `pointer[b]` to `pointer[b + 1]`.

    Attributes
    ----------
    entries : Entries
    pointer : Ints
    ridge : Floats
        Per column, like what follows.
    coef : Floats
    scale : Floats
        What gradients are measured by; of use to `largest_decreases` only.
    """

    entries: Entries
    pointer: Ints
    ridge: Floats
    coef: Floats
    scale: Floats = NOTHING


@kernel
def _is_full(entries: Entries, first: int, stop: int, n: int) -> bool:
    stored = 0
    for c in range(first, stop):
        stored += entries.end[c] - entries.begin[c]
    return stored == n * (stop - first)


@kernel
def _gather(members: Members, b: int, place: Ints) -> tuple[Floats, Ints]:
    """Return a block as an array, cut down to the rows in which it has entries, and these rows.

    `place` is -1 for every row, and is left like that.
    """
    first, stop = members.pointer[b], members.pointer[b + 1]
    own = np.empty(len(place), np.intp)
    if _is_full(members.entries, first, stop, len(place)):
        block = np.empty((stop - first, len(place)))
        for c in range(first, stop):
            copy(column(members.entries, c)[0], block[c - first])
        for i in range(len(place)):
            own[i] = i
        return block, own
    count = 0
    for c in range(first, stop):
        x, rows = column(members.entries, c)
        for k in range(len(x)):
            if place[rows[k]] < 0:
                place[rows[k]] = count
                own[count] = rows[k]
                count += 1
    block = np.zeros((stop - first, count))
    for c in range(first, stop):
        x, rows = column(members.entries, c)
        for k in range(len(x)):
            block[c - first, place[rows[k]]] = x[k]
    for k in range(count):
        place[own[k]] = -1
    return block, own[:count]


@kernel
def _no_places(n: int) -> Ints:
    return np.full(n, -1, np.intp)


@kernel
def _unknown(m: int) -> Floats:
    return np.full((m, m), math.nan)


@kernel
def _problem(target: Target, members: Members, b: int, block: Floats, own: Ints) -> SmallProblem:
    """Q as a function of the coefficients of a block, on the rows in which it has entries."""
    some = slice(members.pointer[b], members.pointer[b + 1])
    rows = Target(target.code, target.y[own], target.weights[own])
    return SmallProblem(rows, block, members.ridge[some], members.scale[some])


@kernel
def hessians(
    target: Target, members: Members, curvature: Floats, out: Floats, start: int, stop: int
) -> None:
    """Fill in the Hessians of some blocks, all of one width."""
    place = _no_places(len(curvature))
    for b in range(start, stop):
        block, own = _gather(members, b, place)
        out[b] = math.nan
        fill_hessian(_problem(target, members, b, block, own), curvature[own], out[b])


@kernel
def _fastest_bend(block: Floats, root: Floats, triangle: Floats, curvature: Floats) -> float:
    """Return how fast curvature may fall along a step of length 1 in the norm of the Hessian.

    In coordinates z in which the Hessian, given by its factor, is the identity, such a step v moves
    the eta of row i by z_i'v, which is no more than r_i, the norm of z_i. Curvature falls no faster
    than exp(-t), where t may be the largest r_i; or the mean of |z_i'v| with the share each row has
    of the curvature as weight, because exp is convex. By the inequality of Cauchy and Schwarz that
    mean is at most the root of the sum of curvature_i r_i^2 (z_i'v)^2, whose largest value is an
    eigenvalue.
    """
    m, n = block.shape
    squares = np.zeros(n)
    z = np.zeros((m, n))
    for a in range(m):
        add_multiple(1.0 / (root[a] * triangle[a, a]), block[a], z[a])
        for b in range(a):
            add_multiple(-triangle[a, b] / triangle[a, a], z[b], z[a])
        for i in range(n):
            squares[i] += z[a, i] * z[a, i]
    most = largest(squares)
    wide = np.empty((m, m))
    weighted = np.empty(n)
    for i in range(n):
        squares[i] *= curvature[i]
    for a in range(m):
        for i in range(n):
            weighted[i] = squares[i] * z[a, i]
        for b in range(a + 1):
            wide[a, b] = wide[b, a] = dot(weighted, z[b])
    return math.sqrt(min(most, largest_eigenvalue(wide)))


@kernel
def decrease_bounds(
    target: Target,
    rows: Rows,
    members: Members,
    expected: Floats,
    lower: Floats,
    upper: Floats,
    start: int,
    stop: int,
) -> None:
    """Fill in what Newton's method expects of some blocks, and what bounds their decreases.

    By self-concordance, along the best direction as along a column: `lines.decrease_bounds`. Where
    the Hessian is ill-conditioned nothing is known.
    """
    place = _no_places(len(rows.eta))
    for b in range(start, stop):
        block, own = _gather(members, b, place)
        problem = _problem(target, members, b, block, own)
        m = len(block)
        residual, curvature = rows.residual[own], rows.curvature[own]
        gradient, move, root = np.empty(m), np.empty(m), np.empty(m)
        triangle = np.zeros((m, m))
        first = members.pointer[b]
        steep = False
        for a in range(m):
            gradient[a] = dot(block[a], residual) + problem.ridge[a] * members.coef[first + a]
            steep = steep or gradient[a] != 0.0
        expected[b] = upper[b] = math.inf if steep else 0.0
        lower[b] = 0.0
        hessian = _unknown(m)
        fill_hessian(problem, curvature, hessian)
        if steep and fill_factor(hessian, root, triangle, LEAST_PIVOT_OF_BOUNDS):
            solve_factored(triangle, root, gradient, move)
            gain = 0.5 * dot(gradient, move)
            bend = _fastest_bend(block, root, triangle, curvature)
            u = math.sqrt(2.0 * gain) * bend * (1.0 + WIDER)
            if u < 1e8:  # nothing has overflown
                expected[b] = gain
                lower[b] = gain * excess(u) * (1.0 - WIDER)
                upper[b] = most_to_gain(gain, u) * (1.0 + WIDER)


@kernel
def largest_decreases(
    rows: LineRows,
    members: Members,
    ending: Ending,
    out: Floats,
    start: int,
    stop: int,
) -> None:
    """Fill in how far Q falls by each of some blocks; NaN where that needs more care."""
    place = _no_places(len(rows.eta))
    for b in range(start, stop):
        block, own = _gather(members, b, place)
        problem = _problem(rows.target, members, b, block, own)
        coef = members.coef[members.pointer[b] : members.pointer[b + 1]]
        still = np.zeros(len(coef))
        done, value, _ = small_newton(
            problem, coef, rows.eta[own], still, _unknown(len(coef)), ending, math.inf
        )
        before = dot(problem.target.weights, rows.before[own])
        before += 0.5 * dot(problem.ridge * coef, coef)
        out[b] = max(before - value, 0.0) if done else math.nan


@kernel
def removals(rows: LineRows, members: Members, out: Floats, start: int, stop: int) -> None:
    """Fill in how far Q rises when the coefficients of some blocks are set to zero."""
    place = _no_places(len(rows.eta))
    for b in range(start, stop):
        block, own = _gather(members, b, place)
        problem = _problem(rows.target, members, b, block, own)
        eta, y = rows.eta[own], problem.target.y
        penalty = 0.0
        for a in range(len(block)):
            coef = members.coef[members.pointer[b] + a]
            add_multiple(-coef, block[a], eta)
            penalty += 0.5 * problem.ridge[a] * coef * coef
        values, d1, d2 = np.empty(len(eta)), np.empty(len(eta)), np.empty(len(eta))
        pointwise(problem.target.code, eta, y, values, d1, d2)
        change = 0.0
        for i in range(len(eta)):
            change += problem.target.weights[i] * (values[i] - rows.before[own[i]])
        out[b] = change - penalty
