"""The softmax loss, row by row; and the K coefficients of a column, found at once.

    loss_i = log sum_c exp(eta_ic) - eta_i,y(i)

does not change when all scores of a row rise alike. So scores are kept as logarithms of
probabilities, and what a column gains by its K coefficients is the gain of those that sum to zero.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from forback.core.tolerances import LINE_MAX_ITER, SCREENING_RTOL
from forback.core.types import Floats, Ints
from forback.objectives.linear.kernels.lines import (
    CLOSE,
    NOISE,
    SLACK,
    Columns,
    column,
    most_to_gain,
)
from forback.solvers.kernels.cholesky import fill_factor, solve_factored
from forback.solvers.kernels.compiled import kernel
from forback.solvers.kernels.exponential import exp_of_minus
from forback.solvers.kernels.vectors import copy, dot

#: Newton's method on a column ends when it expects this share of what it has gained, or less.
COLUMN_GAIN_RTOL = 1e-13

#: A factor is trusted if its squared pivots, at unit diagonal, exceed this; else the diagonal is
#: lifted by a share of its largest entry.
MIN_COLUMN_PIVOT = 1e-13
DIAGONAL_LIFT = 1e-9

#: A step on a column must gain this share of what its slope promises; it is halved down to that.
COLUMN_MIN_GAIN = 1e-4
COLUMN_MIN_STEP = 1e-12


class Rows(NamedTuple):
    """What a column's problem needs to know about each row.

    Attributes
    ----------
    codes : Ints
        The number of its class.
    weights : Floats
    logs : Floats
        Log-probabilities, n x K.
    """

    codes: Ints
    weights: Floats
    logs: Floats


class Derivatives(NamedTuple):
    """Derivatives of the mean loss by the K coefficients of a column, to be filled.

    Attributes
    ----------
    gradient : Floats
    hessian : Floats
    shares : Floats
        Room for the probabilities of one row.
    """

    gradient: Floats
    hessian: Floats
    shares: Floats


@kernel
def softmax(rows: Rows, probabilities: Floats, residual: Floats, start: int, stop: int) -> float:
    """Return the weighted loss of some rows, whose scores in `logs` become log-probabilities.

    Leaves w (P - Y) in `residual`. What is close to one is a sum of what is small: 1 - P would
    lose every digit where the fit is good.
    """
    codes, weights, logs = rows
    count = logs.shape[1]
    total = 0.0
    for i in range(start, stop):
        scores, shares, y = logs[i], probabilities[i], codes[i]
        top = np.argmax(scores)
        most = scores[top]
        for c in range(count):
            shares[c] = exp_of_minus(most - scores[c])
        rest, others = 0.0, 0.0
        for c in range(count):
            rest += 0.0 if c == top else shares[c]
            others += 0.0 if c == y else shares[c]
        scale = 1.0 / (1.0 + rest)
        log_sum = math.log1p(rest)
        for c in range(count):
            scores[c] = (scores[c] - most) - log_sum
            shares[c] *= scale
            residual[i, c] = weights[i] * shares[c]
        residual[i, y] = -weights[i] * (others * scale)
        total -= weights[i] * scores[y]
    return total


@kernel
def _move_row(logs: Floats, entry: float, move: Floats, shares: Floats) -> tuple[float, float]:
    """Leave the moved probabilities of a row, up to a factor; return log of their sum, and sum."""
    most = -math.inf
    for c in range(len(move)):
        shares[c] = logs[c] + entry * move[c]
        most = max(most, shares[c])
    whole = 0.0
    for c in range(len(move)):
        shares[c] = exp_of_minus(most - shares[c])
    for c in range(len(move)):
        whole += shares[c]
    return most + math.log(whole), whole


@kernel
def _evaluate(rows: Rows, x: Floats, own: Ints, move: Floats, at: Derivatives) -> float:
    """Return the change of the mean loss when x times `move` is added to the scores."""
    gradient, hessian, shares = at
    change = 0.0
    gradient[:] = 0.0
    hessian[:] = 0.0
    for k in range(len(x)):
        i = own[k]
        y = rows.codes[i]
        log_sum, whole = _move_row(rows.logs[i], x[k], move, shares)
        first = rows.weights[i] * x[k]
        change += rows.weights[i] * log_sum - first * move[y]
        gradient[y] -= first
        first /= whole
        second = first * x[k]
        for c in range(len(move)):
            gradient[c] += first * shares[c]
            hessian[c, c] += second * shares[c]
        second /= whole
        for c in range(len(move)):
            factor = second * shares[c]
            for d in range(c + 1):
                hessian[c, d] -= factor * shares[d]
    return change


@kernel
def changes(
    rows: Rows, columns: Columns, moves: Floats, out: Floats, start: int, stop: int
) -> None:
    """Fill in how far Q rises when the K coefficients of some columns move."""
    shares = np.empty(moves.shape[1])
    for j in range(start, stop):
        x, own = column(columns.entries, j)
        change = 0.0
        for k in range(len(x)):
            i = own[k]
            log_sum, _ = _move_row(rows.logs[i], x[k], moves[j], shares)
            change += rows.weights[i] * (log_sum - x[k] * moves[j, rows.codes[i]])
        for c in range(len(shares)):
            step = moves[j, c]
            change += columns.ridge[j] * step * (columns.coef[j, c] + 0.5 * step)
        out[j] = change


@kernel
def _add_ridge(at: Derivatives, ridge: float, coef: Floats, move: Floats) -> float:
    """Add the ridge on what is left of the coefficients when their mean is taken out.

    Then nothing changes if all of them do, alike; a rank-one term in that direction, scaled as the
    classes are, makes the Hessian regular and leaves steps as they are. Returns the change of the
    penalty.
    """
    gradient, hessian, _ = at
    count = len(move)
    mean = coef.sum() / count
    mean_move = move.sum() / count
    change = 0.0
    for c in range(count):
        before, step = coef[c] - mean, move[c] - mean_move
        change += ridge * step * (before + 0.5 * step)
        gradient[c] += ridge * (before + step)
        hessian[c, c] += ridge
        for d in range(c + 1):
            hessian[c, d] -= ridge / count
        hessian[c, c] = max(hessian[c, c], 0.0)  # rounding may leave less
    for c in range(count):
        for d in range(c):
            hessian[c, d] += math.sqrt(hessian[c, c]) * math.sqrt(hessian[d, d])
            hessian[d, c] = hessian[c, d]
    for c in range(count):
        hessian[c, c] *= 2.0
    return change


@kernel
def _factor(hessian: Floats, root: Floats, triangle: Floats) -> bool:
    """Factor the Hessian; return False where even a lifted diagonal does not make it regular.

    With a lifted diagonal steps may be too long, but they go downhill.
    """
    if fill_factor(hessian, root, triangle, MIN_COLUMN_PIVOT):
        return True
    lift = DIAGONAL_LIFT * np.diag(hessian).max()
    for c in range(len(hessian)):
        hessian[c, c] += lift
    return fill_factor(hessian, root, triangle, 0.0)


@kernel
def _largest_gap(triangle: Floats, root: Floats, halves: Floats) -> float:
    """Return the largest distance of two coefficients on a step of length 1 in Hessian norm.

    It is that of two columns of the inverse factor, which are left in the rows of `halves`.
    """
    count = len(root)
    most = 0.0
    halves[:] = 0.0
    for c in range(count):
        halves[c, c] = 1.0 / (root[c] * triangle[c, c])
        for a in range(c + 1, count):
            halves[c, a] = -dot(triangle[a, c:a], halves[c, c:a]) / triangle[a, a]
        for d in range(c):
            apart = 0.0
            for a in range(d, count):
                apart += (halves[c, a] - halves[d, a]) ** 2
            most = max(most, apart)
    return math.sqrt(most)


@kernel
def _largest_decrease(
    rows: Rows, columns: Columns, j: int, negligible: float, best_so_far: float
) -> tuple[float, bool]:
    """Return -min of Q over the K coefficients of a column, and True; or a bound below the best.

    The loss of the rows in which the column has entries is all there is to gain. And along any
    direction v the third derivative is at most R = max |x| (max v - min v) times the second, so
    what is left to gain is bounded by Newton's expectation (see `linear.kernels.lines`).
    """
    x, own = column(columns.entries, j)
    ridge = columns.ridge[j]
    coef = columns.coef[j]
    count = len(coef)
    change = 0.0
    if best_so_far > 0.0:
        bound = 0.5 * ridge * dot(coef, coef)
        for k in range(len(x)):
            i = own[k]
            bound -= rows.weights[i] * rows.logs[i, rows.codes[i]]
        bound *= 1.0 + SLACK
        if bound < best_so_far:
            return bound, False
    move, trial, step = np.zeros(count), np.empty(count), np.empty(count)
    root, triangle, halves = np.empty(count), np.zeros((count, count)), np.empty((count, count))
    at = Derivatives(np.empty(count), np.empty((count, count)), np.empty(count))
    mean = coef.sum() / count
    apart = 0.5 * ridge * count * mean * mean  # what a mean costs is gained in any case
    _evaluate(rows, x, own, move, at)
    _add_ridge(at, ridge, coef, move)
    for _ in range(LINE_MAX_ITER):
        if not _factor(at.hessian, root, triangle):
            break
        solve_factored(triangle, root, at.gradient, step)
        expected = 0.5 * dot(at.gradient, step)
        if not expected > max(CLOSE * negligible, -COLUMN_GAIN_RTOL * change):
            break
        if apart - change + expected < best_so_far:
            size = math.sqrt(2.0 * expected) * columns.largest[j]
            gap = _largest_gap(triangle, root, halves)
            bound = apart - change + most_to_gain(expected, size * gap)
            if bound < best_so_far:
                return max(bound, 0.0), False
        share = 1.0
        found = False
        while share > COLUMN_MIN_STEP and not found:
            for c in range(count):
                trial[c] = move[c] - share * step[c]
            after = _evaluate(rows, x, own, trial, at) + _add_ridge(at, ridge, coef, trial)
            found = after < change - COLUMN_MIN_GAIN * share * expected
            share *= 0.5
        if not found:  # rounding leaves nothing to improve
            break
        change = after
        copy(trial, move)
    return max(apart - change, 0.0), True


@kernel
def largest_decreases(
    rows: Rows,
    columns: Columns,
    negligible: float,
    best_so_far: float,
    out: Floats,
    start: int,
    stop: int,
) -> int:
    """Fill in how far Q falls by the K coefficients of some columns; count those solved exactly.

    Where it can be shown to be below `best_so_far`, if that is positive, or below the best found
    before, an upper bound will do.
    """
    screens = best_so_far > 0.0
    n_exact = 0
    for j in range(start, stop):
        out[j], is_exact = _largest_decrease(rows, columns, j, negligible, best_so_far)
        n_exact += is_exact
        if screens:
            best_so_far = max(best_so_far, out[j] * (1.0 - SCREENING_RTOL) - NOISE * negligible)
    return n_exact
