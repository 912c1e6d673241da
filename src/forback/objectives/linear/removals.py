"""What removals cost at least, by self-concordance, without a look at every row or a refit each."""

from __future__ import annotations

import numpy as np

from forback.core.blocks import Blocks
from forback.core.objective import Scores
from forback.core.point import Point
from forback.core.types import Floats
from forback.objectives.linear.fit import GlmCache
from forback.objectives.linear.lines import Lines
from forback.solvers.concordance import fastest_bend, removal_bounds
from forback.solvers.linalg import inverse_roots
from forback.solvers.quadratic_model import QuadraticModel


def cheapest_removals(
    cache: GlmCache, lines: Lines, largest: Floats, point: Point, blocks: Blocks, below: float
) -> Scores:
    """Return costs without a refit, exact where they may be the smallest and below a limit.

    Of single columns; `largest` are the largest entries of those inside.
    """
    rows = cache.rows.of(cache.block)
    slopes, squares, cubes = cache.block.three_sums(rows.residual, rows.curvature)
    own = np.searchsorted(point.support, blocks.coordinates)
    sums = (slopes[own], squares[own], cubes[own], largest[own])
    return lines.screened_increases(blocks.coordinates, sums, below)


@np.errstate(over="ignore", invalid="ignore")
def least_costs(cache: GlmCache, point: Point, ridge: Floats, blocks: Blocks) -> Floats | None:
    """Return numbers that the costs of removals after a refit are never below.

    For self-concordant losses: a row is bent by exp(-t) at least when its eta moves by t, which for
    a step of length q is no more than q times the norm of x_i in the inverse Hessian. None where
    the Hessian is nearly singular. `ridge` is that of the support.
    """
    block = cache.block
    rows = cache.rows.of(block)
    hessian = block.sandwich(rows.curvature) + np.diag(ridge)
    (half,), is_sound = inverse_roots(hessian[None])
    if not is_sound.all():
        return None
    squares = np.zeros(block.shape[0])
    for direction in half.T:
        squares += block.predict(direction) ** 2
    fourth = half.T @ block.sandwich(rows.curvature * squares) @ half
    bend = float(fastest_bend(squares[None], fourth[None])[0])
    steep = np.linalg.norm(half.T @ (block.back_project(rows.residual) + ridge * point.coef))
    model = QuadraticModel(point.coef[:, None], half @ half.T)
    return removal_bounds(model, blocks.places_in(point.support), bend, float(steep))
