"""Whether one feature for another would lower Q."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forback.certificates.curvature import WIDEST
from forback.certificates.sampling import flattest, profile
from forback.core.adapter import as_objective
from forback.core.blocks import Blocks
from forback.core.objective import Objective
from forback.core.point import Point
from forback.core.tolerances import EPS
from forback.core.types import Floats, Ints

#: What sums of products are off by, in units of the last place.
ULPS_OF_SUMS = 64.0

#: So many pairs are refitted at most.
REFITS = 2_000

#: A gain in closed form is taken as it is where it is known that well, relatively.
KNOWN = 1e-3

#: The least curvature, relatively, with which the closed form is trusted.
COLLINEAR = 1e-8


@dataclass(frozen=True)
class Swaps:
    """The best swap found: `out` leaves and `into` comes, blocks by their places.

    Attributes
    ----------
    gain : float
        The fall of Q; negative where every swap raises it. Where `out` is None, all pairs were
        ruled out, and it is an upper bound of what any of them gains.
    out : int | None
    into : int | None
    pairs : int
        The number of pairs.
    judged : int
        How many pairs were worked out exactly or ruled out by a bound.
    """

    gain: float
    out: int | None
    into: int | None
    pairs: int
    judged: int

    @property
    def complete(self) -> bool:
        """Whether no pair is left that might do better."""
        return self.judged == self.pairs


def best_swap(objective: Objective, point: Point, blocks: Blocks, lower: float = 0.0) -> Swaps:
    """Look at every pair of a block inside and one outside.

    A quadratic Q has all of them in closed form. Otherwise a certified `lower` curvature rules
    pairs out. What is settled by neither is refitted, the most promising pairs first.
    """
    objective = as_objective(objective)
    is_in = np.isin(blocks.firsts, point.support)
    inside, outside = np.flatnonzero(is_in).tolist(), np.flatnonzero(~is_in).tolist()
    if len(inside) == 0 or len(outside) == 0:
        return Swaps(-np.inf, None, None, 0, 0)
    others = blocks.take(outside)
    hessian = _quadratic(objective, point) if blocks.are_single else None
    without = [objective.minimise(np.setdiff1d(point.support, blocks[i]), point) for i in inside]
    # How far Q falls by each swap, and how far at most: a row for each block that leaves.
    gains, limits = np.empty((2, len(inside), len(outside)))
    for row, left in enumerate(without):
        cost = left.value - point.value
        if hessian is None:
            falls, most = _bounded(objective, left, others, lower)
        else:
            falls, most = _closed_form(objective, hessian, left, others.coordinates)
            most += ULPS_OF_SUMS * EPS * (abs(left.value) + abs(point.value))
        gains[row], limits[row] = falls - cost, most - cost
    best: tuple[float, int | None, int | None] = (-np.inf, None, None)
    settled = limits - gains <= KNOWN * np.abs(gains)
    if hessian is None:
        settled = limits <= 0.0
        best = (float(limits[settled].max(initial=-np.inf)), None, None)
    refits = unjudged = 0
    for place in np.argsort(-gains, axis=None, kind="stable"):
        row, column = divmod(int(place), len(outside))
        if limits[row, column] <= best[0]:
            continue
        into, gain = outside[column], float(gains[row, column])
        if not settled[row, column]:
            if refits == REFITS:
                unjudged += 1
                continue
            refits += 1
            wider = np.union1d(without[row].support, blocks[into])
            gain = point.value - objective.minimise(wider, without[row]).value
        if gain > best[0]:
            best = gain, inside[row], into
    return Swaps(*best, gains.size, gains.size - unjudged)


def _quadratic(objective: Objective, point: Point) -> Floats | None:
    """The Hessian, where it is the same everywhere and what is in is far from collinear."""
    bounds = objective.hessian_bounds() if objective.dim <= WIDEST else None
    if bounds is None or not bounds.are_equal:
        return None
    inner = bounds.lower[np.ix_(point.support, point.support)]
    return bounds.lower if flattest(inner, 0) > COLLINEAR else None


def _closed_form(
    objective: Objective, hessian: Floats, left: Point, outside: Ints
) -> tuple[Floats, Floats]:
    """How far Q falls by each candidate, and that with what it may be off by.

    Where what left explains nearly all, its cost and the fall that follows cancel.
    """
    slopes = objective.gradient(left)[outside]
    order = np.concatenate([outside, left.support])
    bends = profile(hessian[np.ix_(order, order)], len(outside)).diagonal()
    scale = np.abs(hessian.diagonal()[outside])
    solid = bends > 1e-12 * np.maximum(scale, 1e-300)  # else it is a copy of what is in
    falls = np.divide(0.5 * slopes**2, bends, out=np.zeros(len(outside)), where=solid)
    lost = np.divide(scale, bends, out=np.ones(len(outside)), where=solid)
    return falls, falls * (1.0 + ULPS_OF_SUMS * EPS * lost)


def _bounded(
    objective: Objective, left: Point, others: Blocks, lower: float
) -> tuple[Floats, Floats]:
    """How far Q falls by each block alone, and how far at most when all is refitted."""
    falls = objective.decrease_if_added(left, others).values
    if lower <= 0.0:
        return falls, np.full(len(others), np.inf)
    with np.errstate(over="ignore"):  # next to no curvature bounds next to nothing
        return falls, 0.5 * others.norms(objective.gradient(left)) ** 2 / lower
