"""The softmax loss, row by row; and the K coefficients of a column, found at once.

    loss_i = log sum_c exp(eta_ic) - eta_i,y(i)

does not change when all scores of a row rise alike. So scores are kept as logarithms of
probabilities, and what a column gains by its K coefficients is the gain of those that sum to zero.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from forback.core.tolerances import SCREENING_RTOL
from forback.core.types import Floats, Ints
from forback.designs.kernels.entries import Entries
from forback.objectives.linear.kernels.lines import CLOSE, MAX_ITER, NOISE, SLACK, excess
from forback.solvers.kernels.cholesky import fill_factor, solve_factored
from forback.solvers.kernels.compiled import kernel
from forback.solvers.kernels.exponential import exp_of_minus
from forback.solvers.kernels.vectors import dot

#: Newton's method on a column ends when it expects this share of what it has gained, or less.
LITTLE = 1e-13

#: A factor is trusted if its squared pivots, at unit diagonal, exceed this; else the diagonal is
#: lifted by this share of its largest entry.
LEAST_PIVOT = 1e-13
LIFT = 1e-9


class Scored(NamedTuple):
    """What a column's problem needs to know about each row."""

    labels: Ints
    weights: Floats
    logs: Floats  #: log-probabilities, n x K


class Place(NamedTuple):
    """Derivatives of the mean loss, by the coefficients of a column."""

    slopes: Floats
    bends: Floats  #: K x K
    shares: Floats  #: room for the probabilities of one row


@kernel
def soften(
    labels: Ints,
    weights: Floats,
    logs: Floats,
    probabilities: Floats,
    residual: Floats,
    start: int,
    stop: int,
) -> float:
    """The weighted loss of some rows, whose scores in `logs` become log-probabilities.

    Leaves w (P - Y) in `residual`. What is close to one is a sum of what is small: 1 - P would
    lose every digit where the fit is good.
    """
    total, count = 0.0, logs.shape[1]
    for i in range(start, stop):
        scores, shares, y = logs[i], probabilities[i], labels[i]
        top = 0
        for c in range(1, count):
            if scores[c] > scores[top]:
                top = c
        most = scores[top]
        for c in range(count):
            shares[c] = exp_of_minus(most - scores[c])
        rest, others = 0.0, 0.0
        for c in range(count):
            rest += 0.0 if c == top else shares[c]
            others += 0.0 if c == y else shares[c]
        lift, scale = math.log1p(rest), 1.0 / (1.0 + rest)
        for c in range(count):
            scores[c] = (scores[c] - most) - lift
            shares[c] *= scale
            residual[i, c] = weights[i] * shares[c]
        residual[i, y] = -weights[i] * (others * scale)
        total -= weights[i] * scores[y]
    return total


@kernel
def _share_out(logs: Floats, entry: float, move: Floats, shares: Floats) -> tuple[float, float]:
    """The probabilities of one row after a move, up to a factor; log of their sum; their sum."""
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
def _evaluate(scored: Scored, x: Floats, own: Ints, move: Floats, place: Place) -> float:
    """The change of the mean loss when x times `move` is added to the scores; derivatives there."""
    count, change = len(move), 0.0
    slopes, bends, shares = place
    for c in range(count):
        slopes[c] = 0.0
        for d in range(count):
            bends[c, d] = 0.0
    for k in range(len(x)):
        i, entry = own[k], x[k]
        y = scored.labels[i]
        log_sum, whole = _share_out(scored.logs[i], entry, move, shares)
        first = scored.weights[i] * entry
        change += scored.weights[i] * log_sum - first * move[y]
        slopes[y] -= first
        first /= whole
        second = first * entry
        for c in range(count):
            slopes[c] += first * shares[c]
            bends[c, c] += second * shares[c]
        second /= whole
        for c in range(count):
            factor, row = second * shares[c], bends[c]
            for d in range(c + 1):
                row[d] -= factor * shares[d]
    return change


@kernel
def changes(
    scored: Scored,
    entries: Entries,
    ridge: Floats,
    coef: Floats,
    moves: Floats,
    out: Floats,
    start: int,
    stop: int,
) -> None:
    """How far Q rises when the K coefficients of some columns, `coef`, move."""
    shares = np.empty(moves.shape[1])
    for j in range(start, stop):
        x = entries.data[entries.begin[j] : entries.end[j]]
        own, change = entries.rows[entries.row_begin[j] :], 0.0
        for k in range(len(x)):
            i, weight = own[k], scored.weights[own[k]]
            log_sum, _ = _share_out(scored.logs[i], x[k], moves[j], shares)
            change += weight * (log_sum - x[k] * moves[j, scored.labels[i]])
        for c in range(len(shares)):
            change += ridge[j] * moves[j, c] * (coef[j, c] + 0.5 * moves[j, c])
        out[j] = change


@kernel
def _penalise(place: Place, ridge: float, coef: Floats, move: Floats) -> float:
    """Add the ridge on what is left of the coefficients when their mean is taken out.

    Then nothing changes if all of them do, alike; a rank-one term in that direction, scaled as the
    classes are, makes the Hessian regular and leaves steps as they are. Returns the change of the
    penalty.
    """
    count, change, mean, mean_move = len(move), 0.0, 0.0, 0.0
    for c in range(count):
        mean += coef[c] / count
        mean_move += move[c] / count
    for c in range(count):
        before, step = coef[c] - mean, move[c] - mean_move
        change += ridge * step * (before + 0.5 * step)
        place.slopes[c] += ridge * (before + step)
        place.bends[c, c] += ridge
        for d in range(c + 1):
            place.bends[c, d] -= ridge / count
    for c in range(count):
        place.bends[c, c] = max(place.bends[c, c], 0.0)  # rounding may leave less
    for c in range(count):
        for d in range(c):
            lift = math.sqrt(place.bends[c, c]) * math.sqrt(place.bends[d, d])
            place.bends[c, d] += lift
            place.bends[d, c] = place.bends[c, d]
    for c in range(count):
        place.bends[c, c] *= 2.0
    return change


@kernel
def _lift(bends: Floats) -> None:
    """Make a singular Hessian regular: steps may then be too long, but go the right way."""
    most = 0.0
    for c in range(len(bends)):
        most = max(most, bends[c, c])
    for c in range(len(bends)):
        bends[c, c] += LIFT * most


@kernel
def _widest(triangle: Floats, root: Floats, halves: Floats) -> float:
    """The largest distance of two coefficients on a step of length 1, as the Hessian measures.

    It is that of two columns of the inverse factor, which are left in the rows of `halves`.
    """
    count, most = len(root), 0.0
    for c in range(count):
        for a in range(c):
            halves[c, a] = 0.0
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
def _loss_of(scored: Scored, own: Ints, count: int) -> float:
    """The weighted loss of some rows."""
    total = 0.0
    for k in range(count):
        i = own[k]
        total -= scored.weights[i] * scored.logs[i, scored.labels[i]]
    return total


@kernel
def _largest_decrease(
    scored: Scored,
    x: Floats,
    own: Ints,
    ridge: float,
    coef: Floats,
    largest: float,
    negligible: float,
    enough: float,
) -> tuple[float, bool]:
    """-min of Q over the K coefficients of a column, and True; or a bound below `enough`.

    The loss of the rows in which the column has entries is all there is to gain. And along any
    direction v the third derivative is at most R = max |x| (max v - min v) times the second, so
    what is left to gain is bounded by Newton's expectation (see `columns`).
    """
    count, change = len(coef), 0.0
    if enough > 0.0:
        bound = (_loss_of(scored, own, len(x)) + 0.5 * ridge * dot(coef, coef)) * (1.0 + SLACK)
        if bound < enough:
            return bound, False
    move, trial, step = np.zeros(count), np.empty(count), np.empty(count)
    root, triangle, halves = np.empty(count), np.zeros((count, count)), np.empty((count, count))
    place = Place(np.empty(count), np.empty((count, count)), np.empty(count))
    mean = coef.sum() / count
    apart = 0.5 * ridge * count * mean * mean  # what a mean costs is gained in any case
    _evaluate(scored, x, own, move, place)
    _penalise(place, ridge, coef, move)
    for _ in range(MAX_ITER):
        if not fill_factor(place.bends, root, triangle, LEAST_PIVOT):
            _lift(place.bends)
            if not fill_factor(place.bends, root, triangle, 0.0):
                break
        solve_factored(triangle, root, place.slopes, step)
        expected = 0.5 * dot(place.slopes, step)
        if not expected > max(CLOSE * negligible, -LITTLE * change):
            break
        if apart - change + expected < enough:
            u = math.sqrt(2.0 * expected) * largest * _widest(triangle, root, halves)
            bound = apart - change + expected * excess(-u) * (1.0 + SLACK) if u < 1.0 else math.inf
            if bound < enough:
                return max(bound, 0.0), False
        share, found = 1.0, False
        while share > 1e-12 and not found:
            for c in range(count):
                trial[c] = move[c] - share * step[c]
            after = _evaluate(scored, x, own, trial, place)
            after += _penalise(place, ridge, coef, trial)
            found = after < change - 1e-4 * share * expected
            share *= 0.5
        if not found:  # rounding leaves nothing to improve
            break
        change = after
        for c in range(count):
            move[c] = trial[c]
    return max(apart - change, 0.0), True


@kernel
def largest_decreases(
    scored: Scored,
    entries: Entries,
    ridge: Floats,
    coef: Floats,
    largest: Floats,
    negligible: float,
    enough: float,
    out: Floats,
    start: int,
    stop: int,
) -> int:
    """How far Q falls by the K coefficients of some columns, and how many were solved to the end.

    Where it can be shown to be below `enough`, if that is positive, or below the best met on the
    way, an upper bound will do.
    """
    solved, screens = 0, enough > 0.0
    for j in range(start, stop):
        x = entries.data[entries.begin[j] : entries.end[j]]
        own = entries.rows[entries.row_begin[j] :]
        out[j], exact = _largest_decrease(
            scored, x, own, ridge[j], coef[j], largest[j], negligible, enough
        )
        solved += exact
        if screens:
            enough = max(enough, out[j] * (1.0 - SCREENING_RTOL) - NOISE * negligible)
    return solved
