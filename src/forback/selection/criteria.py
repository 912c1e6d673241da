"""Which size: information criteria along a path."""

from __future__ import annotations

import math

from forback.core.objective import Likelihood, Objective
from forback.core.point import Point
from forback.selection.path import Path

CRITERIA = ("aic", "bic", "ebic")

#: How strongly EBIC counts the models of a size: 0 is BIC, 1 makes all sizes equally likely.
EBIC_GAMMA = 0.5


def likelihood_of(objective: Objective) -> Likelihood:
    """Return the likelihood behind an objective; ValueError where it has none."""
    likelihood = objective.likelihood()
    if likelihood is None:
        raise ValueError(
            f"{objective.name} has no likelihood, so no information criterion can compare sizes: "
            "choose k by cross-validation (GridSearchCV over k), or give k, epsilon or delta"
        )
    return likelihood


def criterion_value(
    likelihood: Likelihood, point: Point, criterion: str, n_blocks: int, gamma: float = EBIC_GAMMA
) -> float:
    """Return -2 log-likelihood plus the penalty; the lower, the better.

    A degree of freedom costs 2 (AIC) or log n (BIC). EBIC adds 2 gamma log C(n_blocks, size) to
    BIC: there are that many models of a size to be fooled by.
    """
    loglik, df = likelihood.evaluate(point)
    price = 2.0 if criterion == "aic" else math.log(likelihood.n)
    extra = 2.0 * gamma * math.log(math.comb(n_blocks, point.size)) if criterion == "ebic" else 0.0
    return float(-2.0 * loglik + price * df + extra)


def choose_point(
    objective: Objective, path: Path, criterion: str, n_blocks: int, gamma: float = EBIC_GAMMA
) -> Point:
    """Return the point whose size is best by the criterion; of equals, the smallest."""
    likelihood = likelihood_of(objective)
    points = [path.best(size) for size in path.sizes]
    values = [criterion_value(likelihood, point, criterion, n_blocks, gamma) for point in points]
    return points[values.index(min(values))]
