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

#: The least curvature, relatively, with which the closed form is trusted.
COLLINEAR = 1e-8


@dataclass(frozen=True)
class Swaps:
    """The best swap found: `out` leaves and `into` comes, blocks by their places.

    Attributes
    ----------
    gain : float
        How far Q falls; negative where every swap raises it. Where `out` is None, all pairs were
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
    pairs out, and the most promising of the others are refitted.
    """
    objective = as_objective(objective)
    first = blocks.firsts
    inside = np.flatnonzero(np.isin(first, point.support))
    outside = np.flatnonzero(~np.isin(first, point.support))
    pairs = len(inside) * len(outside)
    if pairs == 0:
        return Swaps(-np.inf, None, None, 0, 0)
    hessian = _quadratic(objective) if blocks.are_single else None
    inner = point.support
    # Where what stays is nearly collinear, the closed form says too little.
    if hessian is not None and flattest(hessian[np.ix_(inner, inner)], 0) > COLLINEAR:
        gains, errors = _closed_form(objective, hessian, point, first[inside], first[outside])
        return _confirmed(objective, point, blocks, inside, outside, gains, errors)
    return _by_refits(objective, point, blocks, inside, outside, lower)


def _quadratic(objective: Objective) -> Floats | None:
    """The Hessian, where it is the same everywhere."""
    bounds = objective.hessian_bounds() if objective.dim <= WIDEST else None
    return bounds.lower if bounds is not None and bounds.are_equal else None


def _closed_form(
    objective: Objective, hessian: Floats, point: Point, inside: Ints, outside: Ints
) -> tuple[Floats, Floats]:
    """How far Q falls by each swap, a row for each that leaves, and what that may be off by.

    Where what leaves explains nearly all, its cost and the fall that follows cancel.
    """
    gains, errors = np.empty((2, len(inside), len(outside)))
    for row, leaves in enumerate(inside):
        kept = np.setdiff1d(point.support, leaves)
        left = objective.minimise(kept, point)
        slopes = objective.gradient(left)[outside]
        order = np.concatenate([outside, kept])
        bends = profile(hessian[np.ix_(order, order)], len(outside)).diagonal()
        scale = np.abs(hessian.diagonal()[outside])
        solid = bends > 1e-12 * np.maximum(scale, 1e-300)  # else it is a copy of what is in
        falls = np.divide(0.5 * slopes**2, bends, out=np.zeros(len(outside)), where=solid)
        gains[row] = falls - (left.value - point.value)
        lost = np.divide(scale, bends, out=np.ones(len(outside)), where=solid)
        errors[row] = ULPS_OF_SUMS * EPS * (falls * lost + abs(left.value) + abs(point.value))
    return gains, errors


def _confirmed(
    objective: Objective,
    point: Point,
    blocks: Blocks,
    inside: Ints,
    outside: Ints,
    gains: Floats,
    errors: Floats,
) -> Swaps:
    """The best swap, refitted wherever what it gains is no more than it may be off by."""
    order = np.argsort(-(gains + errors), axis=None, kind="stable")
    best: tuple[float, int | None, int | None] = (-np.inf, None, None)
    refits = 0
    for flat in order:
        row, column = np.unravel_index(int(flat), gains.shape)
        gain, error = float(gains[row, column]), float(errors[row, column])
        if gain + error <= best[0]:
            break  # and so do all that follow
        out, into = int(inside[row]), int(outside[column])
        if error > 1e-3 * abs(gain):
            if refits == REFITS:
                return Swaps(*best, gains.size, refits)
            support = np.setdiff1d(point.support, blocks[out])
            gain = point.value - objective.minimise(np.union1d(support, blocks[into]), point).value
            refits += 1
        best = max(best, (gain, out, into), key=lambda one: one[0])
    return Swaps(*best, gains.size, gains.size)


def _by_refits(
    objective: Objective, point: Point, blocks: Blocks, inside: Ints, outside: Ints, lower: float
) -> Swaps:
    """Refit the most promising pairs, and rule others out where curvature allows."""
    queue: list[tuple[float, int, int, Point]] = []
    judged = 0
    best: tuple[float, int | None, int | None] = (-np.inf, None, None)
    for out in inside:
        left = objective.minimise(np.setdiff1d(point.support, blocks[int(out)]), point)
        cost = left.value - point.value
        some = blocks.take(outside)
        falls = objective.decrease_if_added(left, some).values
        if lower > 0.0:
            with np.errstate(over="ignore"):  # next to no curvature bounds next to nothing
                most = 0.5 * some.norms(objective.gradient(left)) ** 2 / lower
        else:
            most = np.full(len(outside), np.inf)
        ruled_out = most <= cost
        judged += int(ruled_out.sum())
        bound = float((most - cost)[ruled_out].max(initial=-np.inf))
        if bound > best[0]:
            best = (bound, None, None)
        queue += [
            (float(fall - cost), int(out), int(into), left)
            for fall, into, gone in zip(falls, outside, ruled_out, strict=True)
            if not gone
        ]
    queue.sort(key=lambda pair: -pair[0])
    for _, out, into, left in queue[:REFITS]:
        wider = np.sort(np.concatenate([left.support, blocks[into]]))
        gain = point.value - objective.minimise(wider, left).value
        judged += 1
        if gain > best[0]:
            best = gain, out, into
    return Swaps(*best, len(inside) * len(outside), judged)
