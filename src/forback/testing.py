"""The contract of an objective, as a check that anybody can run on their own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import optimize

from forback.protocols import Blocks, Floats, Ints, Objective, Point

__all__ = ["check_objective"]


def check_objective(
    objective: Objective, *, seed: int = 0, supports: int = 3, optimality: float = 1e-6
) -> None:
    """Raise AssertionError where `objective` breaks a promise of `forback.protocols.Objective`.

    Checked on a few random supports: the gradient against finite differences of the value; that
    `minimise` leaves no gradient on its support (relative to the gradient before it) and does not
    depend on where it starts; both scores against brute force, for single coordinates and for
    blocks; that a point without its cache gives the same answers; and that asking changes nothing.

    Parameters
    ----------
    objective : Objective
        What to check; small is best, since everything is done by brute force.
    seed : int
        For the choice of supports and directions.
    supports : int
        How many random supports to try.
    optimality : float
        What is left of the gradient after `minimise`, relatively: 1e-6 suits first-order methods.

    Examples
    --------
    >>> import numpy as np
    >>> from forback.objectives import LeastSquares
    >>> from forback.testing import check_objective
    >>> X = np.random.default_rng(0).normal(size=(30, 5))
    >>> check_objective(LeastSquares(X, X[:, 0] + 1.0, fit_intercept=True))
    """
    rng = np.random.default_rng(seed)
    assert 0 <= objective.n_candidates <= objective.dim, "n_candidates must lie in 0 .. dim"
    always = np.arange(objective.n_candidates, objective.dim)
    for _ in range(supports):
        size = int(rng.integers(0, min(objective.n_candidates, 4) + 1))
        chosen = np.sort(rng.choice(objective.n_candidates, size, replace=False))
        support = np.concatenate([chosen, always])
        point = objective.minimise(support)
        _check_point(objective, point, support, optimality)
        _check_gradient(objective, point, rng)
        _check_scores(objective, point, chosen, always)
        _check_purity(objective, point, chosen, always)


def _check_point(objective: Objective, point: Point, support: Ints, optimality: float) -> None:
    assert np.array_equal(point.support, support), "minimise must return the support it was given"
    dense = point.dense(objective.dim)
    value, gradient = objective.value_and_gradient(dense)
    _close(point.value, value, "the value of a point must be Q there")
    before = np.abs(objective.value_and_gradient(np.zeros(objective.dim))[1]).max(initial=0.0)
    left = np.abs(gradient[support]).max(initial=0.0)
    assert left <= optimality * max(before, 1e-12), f"minimise leaves a gradient of {left}"
    far = Point(support, point.coef + 0.5, 0.0, point.size)
    again = objective.minimise(support, far)
    _close(again.value, point.value, "minimise must not depend on its start", 10 * optimality**2)


def _check_gradient(objective: Objective, point: Point, rng: np.random.Generator) -> None:
    beta = point.dense(objective.dim)
    gradient = objective.gradient(point)
    assert gradient.shape == (objective.dim,), "gradient must have length dim"
    _close(gradient, objective.value_and_gradient(beta)[1], "two gradients of one point", 1e-9)
    for _ in range(3):
        direction = rng.normal(size=objective.dim)
        direction /= np.linalg.norm(direction)
        step = 1e-5
        ahead = objective.value_and_gradient(beta + step * direction)[0]
        behind = objective.value_and_gradient(beta - step * direction)[0]
        slope = (ahead - behind) / (2 * step)
        scale = np.abs(gradient).max(initial=0.0) + abs(ahead) * 1e-3
        assert abs(slope - gradient @ direction) <= 1e-5 * max(scale, 1e-3), (
            f"gradient and finite difference disagree: {gradient @ direction} and {slope}"
        )


def _check_scores(objective: Objective, point: Point, chosen: Ints, always: Ints) -> None:
    outside = np.setdiff1d(np.arange(objective.n_candidates), chosen)
    for blocks in _partitions(outside, always):
        scores = objective.decrease_if_added(point, blocks)
        brute = [_decrease(objective, point, block) for block in blocks]
        _close(scores, np.array(brute), "decrease_if_added against brute force", 1e-5)
    for blocks in _partitions(chosen, always):
        scores = objective.increase_if_removed(point, blocks)
        brute = [_increase(objective, point, block) for block in blocks]
        _close(scores, np.array(brute), "increase_if_removed against brute force", 1e-7)


def _partitions(coordinates: Ints, always: Ints) -> Iterator[Blocks]:
    """The coordinates one by one, and in blocks of two or three."""
    if len(coordinates):
        yield Blocks.singles(coordinates, always)
    if len(coordinates) > 2:
        yield Blocks.of(np.array_split(coordinates, len(coordinates) // 2), always)


def _decrease(objective: Objective, point: Point, block: Ints) -> float:
    beta = point.dense(objective.dim)

    def value_and_slope(own: Floats) -> tuple[float, Floats]:
        moved = beta.copy()
        moved[block] = own
        value, gradient = objective.value_and_gradient(moved)
        return value, gradient[block]

    best = optimize.minimize(
        value_and_slope, beta[block], jac=True, method="BFGS", options={"gtol": 1e-9}
    )
    return float(point.value - best.fun)


def _increase(objective: Objective, point: Point, block: Ints) -> float:
    beta = point.dense(objective.dim)
    beta[block] = 0.0
    return objective.value_and_gradient(beta)[0] - point.value


def _check_purity(objective: Objective, point: Point, chosen: Ints, always: Ints) -> None:
    bare = point.without_cache()
    _close(objective.gradient(bare), objective.gradient(point), "the gradient without cache", 1e-9)
    singles = Blocks.singles(np.arange(objective.n_candidates), always)
    kept = point.coef.copy(), point.support.copy()
    first = objective.decrease_if_added(point, singles)
    objective.minimise(always)
    again = objective.decrease_if_added(point, singles)
    assert np.array_equal(first, again), "scores must not depend on what was asked before"
    assert np.array_equal(kept[0], point.coef), "scoring must not change the point"
    assert np.array_equal(kept[1], point.support), "scoring must not change the point"
    inside = Blocks.singles(chosen, always)
    if len(chosen):
        _close(
            objective.increase_if_removed(bare, inside),
            objective.increase_if_removed(point, inside),
            "removal scores without cache",
            1e-9,
        )


def _close(found: Floats | float, expected: Floats | float, what: str, tol: float = 1e-9) -> None:
    scale = max(1e-3, float(np.max(np.abs(expected), initial=0.0)))
    worst = float(np.max(np.abs(np.asarray(found) - expected), initial=0.0))
    assert worst <= tol * scale, f"{what}: off by {worst} where the scale is {scale}"
