"""One-dimensional problems, a column at a time: how far Q falls or rises along it.

`forback.objectives.linear.lines` has them in words, and for other losses in NumPy.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from forback.core.tolerances import (
    LINE_MAX_ITER,
    LINE_STEP_RTOL,
    MAX_ETA_STEP,
    SCREENING_RTOL,
    SMALLEST_DIVISOR,
)
from forback.core.types import Floats, Ints
from forback.designs.design import ThreeSums
from forback.designs.kernels.entries import Entries, Rest
from forback.objectives.linear.kernels import losses
from forback.objectives.linear.kernels.losses import Target
from forback.solvers.kernels.compiled import kernel

#: Bounds are widened by this fraction: far more than rounding, far less than what matters.
SLACK = 1e-10

#: This fraction of a negligible change is rounding: bounds do not tell scores so close apart.
NOISE = 1e-3

#: Newton's method ends, too, when it expects no more than this fraction of a negligible change.
CLOSE = 1e-4

#: What is not known, or not needed, about columns.
NOTHING: Floats = np.empty(0)

#: No rows beyond those with entries.
NO_REST = Rest(NOTHING, NOTHING, NOTHING)


class LineRows(NamedTuple):
    """What a problem needs to know about each row.

    Attributes
    ----------
    target : Target
    eta : Floats
    before : Floats
        The loss at eta.
    """

    target: Target
    eta: Floats
    before: Floats


class Columns(NamedTuple):
    """What a problem needs to know about each column.

    Attributes
    ----------
    entries : Entries
    rest : Rest
        The rows that are alike, if entries are those of the others only.
    ridge : Floats
    coef : Floats
        Coefficients; in softmax regression columns x K.
    largest : Floats
        The largest absolute entry; of no use to removals.
    slopes : Floats
        Derivatives of phi at 0, if these are known.
    curvatures : Floats
        Derivatives of phi at 0, if these are known.
    """

    entries: Entries
    rest: Rest
    ridge: Floats
    coef: Floats
    largest: Floats = NOTHING
    slopes: Floats = NOTHING
    curvatures: Floats = NOTHING


@kernel
def column(entries: Entries, c: int) -> tuple[Floats, Ints]:
    """Return the entries of a column and the rows they are in."""
    x = entries.data[entries.begin[c] : entries.end[c]]
    return x, entries.rows[entries.row_begin[c] :]


@kernel
def excess(u: float) -> float:
    """2 ((1 + u) log(1 + u) - u) / u^2, which is 1 at 0, falls with u, and is infinite at -1."""
    if abs(u) < 1e-2:
        return 1.0 - u / 3.0 + u * u / 6.0 - u * u * u / 10.0 + u * u * u * u / 15.0
    return 2.0 * ((1.0 + u) * math.log1p(u) - u) / (u * u)


@kernel
def most_to_gain(expected: float, u: float) -> float:
    """Return an upper bound of a decrease by what Newton's method expects, as `decrease_bounds`."""
    return expected * excess(-u) * (1.0 + SLACK) if u < 1.0 else math.inf


@kernel
def decrease_bounds(
    sums: ThreeSums, errors: Floats, off: float, largest: Floats, lower: Floats, upper: Floats
) -> None:
    """Lift and lower the bounds of -min phi, for each column, by self-concordance.

    If |phi'''| <= R phi'', then with u = |phi'| R / phi'' at 0 the decrease is phi'^2 / (2 phi'')
    times a factor between ``excess(u)`` and ``excess(-u)``. R is the largest |x|; above, it may
    be the mean of |x|, with the share each row has of the curvature as weight, because the
    curvature of a row falls no faster than exp(-|a x|), and exp is convex: the third of the `sums`
    over the second. Slopes may be off by `errors`, the other sums by a share of `off`.
    """
    slopes, curvatures, cubes = sums
    for j in range(len(slopes)):
        size = max(abs(slopes[j]) - errors[j], 0.0)
        curvature = curvatures[j] * (1.0 + off)
        root = size / math.sqrt(curvature)
        u = size / curvature * largest[j]
        # Not so where something over- or underflows, or a column is zero.
        if u < 1e8 and 0.5 * root * root < math.inf:
            lower[j] = 0.5 * root * root * excess(u) * (1.0 - SLACK)
        size = abs(slopes[j]) + errors[j]
        curvature = curvatures[j] * (1.0 - off)
        root = size / math.sqrt(curvature)
        u = size / curvature * min(cubes[j] / curvature * (1.0 + off), largest[j])
        upper[j] = min(upper[j], most_to_gain(0.5 * root * root, u))


@kernel
def cheapest_removals(
    sums: ThreeSums, largest: Floats, coef: Floats, ridge: Floats, limit: float
) -> tuple[Floats, Ints]:
    """Return lower bounds of what removing each column costs, and which may be the cheapest.

    Those which may be, at a cost below `limit`. By self-concordance, phi(step) lies between the
    tangent plus the quadratic term times factors that depend on how far the step moves any row.
    """
    slopes, squares, cubes = sums
    lower = np.empty(len(coef))
    best = limit
    for j in range(len(coef)):
        step = -coef[j]
        curvature = squares[j] + ridge[j]
        quadratic = 0.5 * curvature * step * step
        u = min(cubes[j] / curvature, largest[j]) * abs(step)
        low = 1.0 - u if u < 1e-4 else 2.0 * (math.expm1(-u) + u) / (u * u)
        u = largest[j] * abs(step)
        high = 1.0 + u if u < 1e-4 else 2.0 * (math.expm1(u) - u) / (u * u)
        linear = (slopes[j] + ridge[j] * coef[j]) * step
        slack = SLACK * (quadratic + abs(linear))
        lower[j] = linear + quadratic * low - slack
        upper = linear + quadratic * high + slack
        if lower[j] <= upper:
            best = min(best, upper)
        else:  # overflow
            lower[j] = -math.inf
    return lower, np.flatnonzero(lower <= best + SCREENING_RTOL * abs(best))


@kernel
def _at_least(rest: Rest, c: int, step: float) -> tuple[float, float, float, float]:
    """What rows that are alike add to phi at least, and the three sums of this bound.

    Where the third derivative of a loss is at most the second, curvature falls no faster than
    exp(-|t|) when eta moves by t.
    """
    slope = rest.slopes[c]
    curvature = rest.curvatures[c]
    at = rest.at[c]
    t = step * at
    lost = -math.expm1(-abs(t))
    change = slope * t + curvature * (abs(t) - lost)
    second = curvature * at * at * (1.0 - lost)
    return change, at * (slope + curvature * math.copysign(lost, t)), second, second * abs(at)


@kernel
def _evaluate(
    rows: LineRows, x: Floats, own: Ints, step: float
) -> tuple[float, float, float, float]:
    """The change of the mean loss when step * x is added to eta, and its three sums there."""
    target = rows.target
    change = slope = curvature = cube = squares = 0.0
    size = min(losses.PIECE, len(x))
    eta = np.empty(size)
    y = np.empty(size)
    value = np.empty(size)
    d1 = np.empty(size)
    d2 = np.empty(size)
    for start in range(0, len(x), losses.PIECE):
        count = min(losses.PIECE, len(x) - start)
        for k in range(count):
            i = own[start + k]
            eta[k] = rows.eta[i] + step * x[start + k]
            y[k] = target.y[i]
        losses.pointwise(target.code, eta[:count], y[:count], value, d1, d2)
        for k in range(count):
            i = own[start + k]
            entry = x[start + k]
            weighted = target.weights[i] * entry
            change += target.weights[i] * (value[k] - rows.before[i])
            slope += weighted * d1[k]
            squares += weighted * entry
            curved = weighted * entry * d2[k]
            curvature += curved
            cube += curved * abs(entry)
    if curvature == 0.0:  # straight: as if it were curved a little
        curvature = target.code.floor * squares
    return change, slope, curvature, cube


@kernel
def removals(rows: LineRows, columns: Columns, out: Floats, start: int, stop: int) -> None:
    """Fill in how far Q rises when the coefficients of some columns are set to zero."""
    for c in range(start, stop):
        coef = columns.coef[c]
        x, own = column(columns.entries, c)
        out[c] = _evaluate(rows, x, own, -coef)[0] - 0.5 * columns.ridge[c] * coef * coef


@kernel
def removal_bounds(rows: LineRows, columns: Columns) -> tuple[Floats, Floats]:
    """Return numbers between which the rises lie, from the rows that have entries and the rest."""
    count = len(columns.coef)
    lower = np.empty(count)
    upper = np.empty(count)
    changes = np.empty(count)
    rest = columns.rest
    removals(rows, columns, changes, 0, count)
    for c in range(count):
        t = -columns.coef[c] * rest.at[c]
        least = _at_least(rest, c, -columns.coef[c])[0]
        most = rest.slopes[c] * t + rest.curvatures[c] * (math.expm1(abs(t)) - abs(t))
        slack = SLACK * (abs(changes[c]) + abs(most))
        lower[c] = changes[c] + least - slack
        upper[c] = changes[c] + most + slack
    return lower, upper


@kernel
def _tangents_meet(low: tuple[float, float, float], high: tuple[float, float, float]) -> float:
    """The value where tangents meet at the ends of a bracket, each a step, a slope and a value."""
    apart = high[2] - low[2] - high[1] * (high[0] - low[0])
    return low[2] + low[1] * apart / (low[1] - high[1])


@kernel
def _largest_decrease(
    rows: LineRows, columns: Columns, c: int, negligible: float, best_so_far: float
) -> tuple[float, bool]:
    """-min phi of column c, and True; or an upper bound of it below `best_so_far`, and False.

    Newton's method inside a bracket of the minimum. What is left to gain is bounded by
    self-concordance, or by the tangents at the ends of the bracket.
    """
    code = rows.target.code
    x, own = column(columns.entries, c)
    ridge = columns.ridge[c]
    coef = columns.coef[c]
    largest = columns.largest[c]
    slope = columns.slopes[c] if len(columns.slopes) else math.nan
    curvature = columns.curvatures[c] if len(columns.slopes) else math.nan
    has_rest = len(columns.rest.at) and columns.rest.at[c] != 0.0
    low = (-math.inf, 0.0, 0.0)
    high = (math.inf, 0.0, 0.0)
    longest = MAX_ETA_STEP / max(largest, SMALLEST_DIVISOR) if code.concordant else math.inf
    step = before = change = 0.0
    cube = math.inf
    stretch = 1.0
    for _ in range(LINE_MAX_ITER):
        # What the pass found will do for a first step, unless it is close to rounding, or NaN.
        if step != 0.0 or not 0.5 * slope * slope / curvature > 1e4 * negligible:
            change, slope, curvature, cube = _evaluate(rows, x, own, step)
            if has_rest:
                more, steeper, second, third = _at_least(columns.rest, c, step)
                change += more
                slope += steeper
                curvature += second
                cube += third
            change += ridge * step * (coef + 0.5 * step)
            slope += ridge * (coef + step)
            curvature += ridge
        if not (math.isfinite(slope) and math.isfinite(curvature)):
            # overflow reads as a slope that points back towards zero
            slope = math.copysign(math.inf, step)
            curvature = math.inf
        if slope < 0.0:
            low = (step, slope, change)
        elif slope > 0.0:
            high = (step, slope, change)
        newton = 0.0 if slope == 0.0 else -slope / curvature
        expected = 0.0 if slope == 0.0 else abs(0.5 * slope * newton)
        straight = before != 0.0 and (slope < 0.0) == (before < 0.0)
        stretch = 4.0 * stretch if straight and abs(slope) > 0.5 * abs(before) else 1.0
        before = slope
        following = step + max(-longest, min(longest, stretch * newton))
        if abs(newton) > longest:
            longest *= 4.0
        if not low[0] < following < high[0]:  # or overflown: the middle, which is then finite
            following = 0.5 * (low[0] + high[0])
        close = abs(newton) <= LINE_STEP_RTOL * abs(step) or expected <= CLOSE * negligible
        if close or not math.isfinite(following) or following == step:
            break
        if code.concordant:
            bound = change - most_to_gain(expected, abs(newton) * min(cube / curvature, largest))
        else:
            bound = _tangents_meet(low, high)
        if -bound < best_so_far:
            return max(-bound, 0.0), False
        step = following
    return max(-change, 0.0), True


@kernel
def largest_decreases(
    rows: LineRows,
    columns: Columns,
    negligible: float,
    best_so_far: float,
    out: Floats,
    start: int,
    stop: int,
) -> int:
    """Fill in -min phi for some columns; return how many of them were solved to the end.

    Where it can be shown to be below `best_so_far`, if that is positive, or below the best found on
    the way, an upper bound will do. With a rest of rows all answers are upper bounds.
    """
    n_exact = 0
    screens = best_so_far > 0.0 and len(columns.rest.at) == 0
    for c in range(start, stop):
        out[c], exact = _largest_decrease(rows, columns, c, negligible, best_so_far)
        n_exact += exact
        if screens:
            best_so_far = max(best_so_far, out[c] * (1.0 - SCREENING_RTOL) - NOISE * negligible)
    return n_exact
