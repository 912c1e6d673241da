"""What removals cost at least, by self-concordance, without a look at every row or a refit each."""

from __future__ import annotations

from functools import partial

import numpy as np

from forback.core.blocks import Blocks
from forback.core.objective import Objective, Scores
from forback.core.point import Point
from forback.core.types import Floats
from forback.objectives.linear.fit import GlmCache
from forback.objectives.linear.lines import Lines
from forback.solvers.best_first import cheapest_first
from forback.solvers.linalg import inverse_roots
from forback.solvers.quadratic_model import QuadraticModel

#: Bounds are lowered by this fraction, far more than the rounding of a Hessian that is trusted.
LOWERED = 1e-7


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


def cheapest_refits(
    model: Objective, cache: GlmCache, ridge: Floats, point: Point, blocks: Blocks, below: float
) -> Scores:
    """Return costs after a refit, exact where they may be the smallest and below a limit.

    Lower bounds elsewhere: those of `least_costs`.
    """
    refits = partial(Objective.increase_after_refit, model, point)
    lower = least_costs(cache, point, ridge[point.support], blocks)
    if lower is None:
        return refits(blocks)

    def refit(block: int) -> float:
        return float(refits(blocks.take([block])).values[0])

    return cheapest_first(lower, refit, below=below, slack=model.resolution(point))


def least_costs(cache: GlmCache, point: Point, ridge: Floats, blocks: Blocks) -> Floats | None:
    """Return numbers that the costs of removals after a refit are never below.

    For self-concordant losses: curvature falls no faster than exp(-t) when eta moves by t. None
    where the Hessian H at the point is close to singular. `ridge` is that of the support.

    A refit without block B moves the coefficients by some d with d_B = -beta_B. Let q be the length
    of d in the norm of H. Along d, Q has the slope g'd >= -s q, with s the norm of the gradient g
    in the inverse of H, which is next to nothing at a minimum. Its curvature is q^2 at first, and
    falls no faster than exp(-r q t), where r bounds what moves of length 1 do to curvature: it is
    the largest norm of a row x_i in the inverse of H; or the root of the largest eigenvalue of
    H^-1 M, where M is H with row i weighted by the square of its norm. (The curvature along d is a
    mean over rows of exp(-|x_i'd| t) at least, so not below exp(-m t) with m the mean of |x_i'd|
    under the weights curvature_i (x_i'd)^2 / q^2, by Jensen's inequality; and m is at most the root
    of the mean of (x_i'd)^2, by that of Cauchy and Schwarz, where (x_i'd)^2 <= q^2 |x_i|^2.)

    Integrated twice, Q rises by h(q) = (exp(-r q) + r q - 1) / r^2 - s q at least. And q is no less
    than q_B, the least length of a d with d_B = -beta_B: half its square is the cost of a removal
    from a quadratic function. Beyond q_B, h only rises if its slope (1 - exp(-r q)) / r - s is not
    negative there; then h(q_B) is a bound.
    """
    block = cache.block
    rows = cache.rows.of(block)
    hessian = block.sandwich(rows.curvature) + np.diag(ridge)
    (half,), is_sound = inverse_roots(hessian[None])
    if not is_sound.all():
        return None
    norms = np.zeros(block.shape[0])
    for direction in half.T:
        norms += block.predict(direction) ** 2
    fourth = half.T @ block.sandwich(rows.curvature * norms) @ half
    bend = np.sqrt(min(norms.max(), np.linalg.eigvalsh(fourth)[-1])) * (1.0 + LOWERED)
    steep = np.linalg.norm(half.T @ (block.back_project(rows.residual) + ridge * point.coef))
    model = QuadraticModel(point.coef[:, None], half @ half.T)
    costs = model.removal_costs(blocks.places_in(point.support)) * (1.0 - LOWERED)
    return costs_at_least(costs, float(bend), float(steep))


def costs_at_least(costs: Floats, bend: float, steep: float) -> Floats:
    """Return h(q_B) of `least_costs` by the costs q_B^2 / 2, or minus infinity."""
    length = np.sqrt(2.0 * costs)
    u = bend * length
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(u < 1e-4, 1.0 - u, 2.0 * (np.expm1(-u) + u) / (u * u))
        lower = costs * share - steep * length
    return np.where(-np.expm1(-u) >= bend * steep, lower, -np.inf)
