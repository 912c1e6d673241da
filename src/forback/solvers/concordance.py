"""What self-concordance says about a function by its first two derivatives at a point.

Along a step v of length q, in the norm of the Hessian there, curvature is q^2 at first, and falls
no faster than exp(-r q t), where r says how fast the function bends.
"""

from __future__ import annotations

import numpy as np

from forback.core.types import Floats, Ints
from forback.solvers.quadratic_model import QuadraticModel

#: Bounds are widened by this fraction, far more than the rounding of a Hessian that is trusted.
WIDENED = 1e-7


def fastest_bend(squares: Floats, fourth: Floats) -> Floats:
    """Return how fast some functions bend, each a mean over rows, along their worst direction.

    A step of length q moves row i by no more than q r_i, and its curvature then falls no faster
    than exp(-q r_i). So r may be the largest r_i. Or the mean of all moves, with the share that
    each row has of the curvature as weight, because exp is convex. By the inequality of Cauchy and
    Schwarz that is at most q times the root of the largest eigenvalue of the Hessian with row i
    weighted by r_i^2, in coordinates in which the Hessian itself is the identity.

    Parameters
    ----------
    squares : float array of shape (count, n)
        The squares of r_i.
    fourth : float array of shape (count, m, m)
        The Hessians so weighted, in these coordinates.

    Returns
    -------
    float array of length count
        Infinite where something has overflown.
    """
    is_finite = np.asarray(np.isfinite(fourth).all(axis=(1, 2)))
    largest = np.linalg.eigvalsh(np.where(is_finite[:, None, None], fourth, 0.0))[:, -1]
    squared = np.where(is_finite, np.minimum(squares.max(axis=1), largest), np.inf)
    return np.asarray(np.sqrt(np.maximum(squared, 0.0)) * (1.0 + WIDENED))


def removal_bounds(model: QuadraticModel, places: list[Ints], bend: float, steep: float) -> Floats:
    """Return numbers that the costs of removals, after a refit of the rest, are never below.

    A refit without block B is a step v with v_B = -beta_B. Let q be its length. The function has
    the slope -s q along it at least, where s, the norm of the gradient in the inverse Hessian, is
    next to nothing at a minimum. Integrated twice, it rises by

        h(q) = (exp(-r q) + r q - 1) / r^2 - s q

    at least. And q is no less than q_B, the least length of a step with v_B = -beta_B: half its
    square is the cost of a removal from a quadratic function. Beyond q_B, h only rises if its slope
    (1 - exp(-r q)) / r - s is not negative there; then h(q_B) is a bound, else there is none.

    Parameters
    ----------
    model : QuadraticModel
        The function up to second order.
    places : list of int arrays
        Where the coordinates of each block are in its support.
    bend : float
        What r is.
    steep : float
        What s is.

    Returns
    -------
    float array
        Minus infinity where there is no bound.
    """
    costs = model.removal_costs(places) * (1.0 - WIDENED)
    length = np.sqrt(2.0 * costs)
    u = bend * length
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.where(u < 1e-4, 1.0 - u, 2.0 * (np.expm1(-u) + u) / (u * u))
        lower = costs * share - steep * length
        is_bound = np.isfinite(lower) & (-np.expm1(-u) >= bend * steep)
    return np.where(is_bound, lower, -np.inf)
