"""Slow twins: what scores come to by brute force, from fits and evaluations alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize

from forback.core.blocks import Blocks
from forback.core.point import Point
from forback.core.types import Floats, Ints

if TYPE_CHECKING:
    from forback.core.objective import Objective

#: How many blocks, those that seem cheapest, are taken out in turn to see what could replace them.
MOST_REMOVALS_TRIED = 4


def increase(objective: Objective, point: Point, block: Ints) -> float:
    """Return Q with a block set to zero minus Q at the point."""
    beta = point.dense(objective.dim)
    beta[block] = 0.0
    return objective.value_and_gradient(beta)[0] - point.value


def decrease(objective: Objective, point: Point, block: Ints) -> float:
    """Return Q at the point minus its minimum over the block's coordinates, by SciPy's BFGS.

    SciPy works best where lengths and falls are about 1, so both are measured by the step of
    steepest descent that lowers Q most.
    """
    beta = point.dense(objective.dim)
    steepest = -objective.value_and_gradient(beta)[1][block]
    steepness = np.abs(steepest).max()
    if steepness == 0.0:
        return 0.0

    def fall(move: Floats) -> tuple[float, Floats]:
        moved = beta.copy()
        moved[block] += move
        value, gradient = objective.value_and_gradient(moved)
        return value - point.value, gradient[block]

    step = 1.0 / steepness
    while fall(step * steepest)[0] >= 0.0 and step * steepness > np.finfo(float).tiny:
        step *= 0.5
    while fall(2.0 * step * steepest)[0] < fall(step * steepest)[0]:
        step *= 2.0
    length, depth = step * steepness, -fall(step * steepest)[0]
    if depth <= 0.0:  # the gradient is rounding only
        return 0.0

    def scaled(move: Floats) -> tuple[float, Floats]:
        value, gradient = fall(length * move)
        return value / depth, gradient * (length / depth)

    best = optimize.minimize(
        scaled, steepest / steepness, jac=True, method="BFGS", options={"gtol": 1e-9}
    )
    return float(-best.fun * depth)


def try_exchanges(objective: Objective, point: Point, inside: Blocks, outside: Blocks) -> Floats:
    """Return how far Q falls by each exchange, each of them refitted."""
    falls = np.empty((len(inside), len(outside)))
    for row, block in enumerate(inside):
        left = objective.minimise(np.setdiff1d(point.support, block, assume_unique=True), point)
        for column, other in enumerate(outside):
            fit = objective.minimise(np.union1d(left.support, other), left)
            falls[row, column] = point.value - fit.value
    return falls


def guess_exchanges(objective: Objective, point: Point, inside: Blocks, outside: Blocks) -> Floats:
    """Return what exchanges promise in which one of a few blocks leaves; else minus infinity.

    These blocks are those that cost least without a refit. Each is taken out, and then others
    promise what they do.
    """
    falls = np.full((len(inside), len(outside)), -np.inf)
    costs = objective.increase_if_removed(point, inside).values
    for row in np.argsort(costs, kind="stable")[:MOST_REMOVALS_TRIED].tolist():
        kept = np.setdiff1d(point.support, inside[row], assume_unique=True)
        without = objective.minimise(kept, point)
        falls[row] = objective.promise(without, outside) - (without.value - point.value)
    return falls
