"""The contract of an objective, as a check that anybody can run on their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forback.core.adapter import as_objective
from forback.core.blocks import Blocks
from forback.core.objective import Objective, Scores
from forback.core.point import Point
from forback.core.types import Floats, Ints

__all__ = ["check_objective"]


def check_objective(
    objective: Objective, *, seed: int = 0, supports: int = 3, optimality: float = 1e-6
) -> None:
    """Raise AssertionError where `objective` breaks a promise of `forback.protocols.Objective`.

    Checked on a few random supports: the gradient against finite differences of the value; that
    `minimise` leaves no gradient on its support (relative to the gradient before it) and does not
    depend on where it starts; both scores against brute force, for single coordinates and for
    blocks; that scores of which only the best is wanted know it; that a point without its cache
    gives the same answers; and that asking changes nothing.

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
    objective = as_objective(objective)
    rng = np.random.default_rng(seed)
    assert 0 <= objective.n_candidates <= objective.dim, "n_candidates must lie in 0 .. dim"
    always = np.arange(objective.n_candidates, objective.dim)
    _check_resolution(objective, always)
    origin = _find_origin(objective, always)
    for _ in range(supports):
        size = int(rng.integers(0, min(objective.n_candidates, 4) + 1))
        chosen = np.sort(rng.choice(objective.n_candidates, size, replace=False))
        support = np.concatenate([chosen, always])
        point = objective.minimise(support)
        _check_point(objective, origin, point, support, optimality)
        _check_gradient(objective, origin, point, rng)
        _check_scores(objective, origin, point, chosen, always)
        _check_best(objective, origin, point, chosen, always)
        _check_purity(objective, origin, point, chosen, always)


@dataclass(frozen=True)
class _Origin:
    """A place whose Q and gradient tell what is small: zero or, if Q is infinite there, always."""

    value: float
    steepest: float  #: the largest |gradient|
    length: float | None  #: a step small against this is small; None: against 1 and beta

    def high(self, value: float) -> float:
        """How far Q may rise on a walk that tells something: far out it is steep and bent."""
        return 1.0 + abs(self.value) + abs(value)


def _find_origin(objective: Objective, always: Ints) -> _Origin:
    value, gradient = objective.value_and_gradient(np.zeros(objective.dim))
    length = None
    if not np.isfinite(value):
        start = objective.minimise(always).dense(objective.dim)
        value, gradient = objective.value_and_gradient(start)
        length = float(np.abs(start[start != 0.0]).min())
    return _Origin(value, float(np.abs(gradient).max(initial=0.0)), length)


def _check_resolution(objective: Objective, always: Ints) -> None:
    start = objective.minimise(always)
    fall = start.value - objective.minimise(np.arange(objective.dim), start).value
    coarse = objective.resolution(start)
    assert fall == 0.0 or fall > 1e4 * coarse, (
        f"all features together lower Q by {fall}, which is little against its resolution, "
        f"{coarse}: select ignores gains below it; give the objective a method resolution(point)"
    )


def _check_point(
    objective: Objective, origin: _Origin, point: Point, support: Ints, optimality: float
) -> None:
    assert np.array_equal(point.support, support), "minimise must return the support it was given"
    value, gradient = objective.value_and_gradient(point.dense(objective.dim))
    rounding = 1e-12 * max(abs(value), abs(origin.value))
    _close(point.value, value, "the value of a point must be Q there", rounding)
    left = np.abs(gradient[support]).max(initial=0.0)
    allowed = optimality * origin.steepest
    assert left <= allowed, f"minimise leaves a gradient of {left}, more than {allowed}"
    far = Point(support, 1.5 * point.coef, 0.0)
    again = objective.minimise(support, far)
    allowed = rounding + 10 * optimality**2 * abs(origin.value - value)
    _close(again.value, point.value, "minimise must not depend on its start", allowed)


def _check_gradient(
    objective: Objective, origin: _Origin, point: Point, rng: np.random.Generator
) -> None:
    beta = point.dense(objective.dim)
    gradient = objective.gradient(point)
    assert gradient.shape == (objective.dim,), "gradient must have length dim"
    value, other = objective.value_and_gradient(beta)
    _close(gradient, other, "gradient against value_and_gradient", 1e-9 * origin.steepest)
    length = origin.length or max(1.0, float(np.linalg.norm(beta)))
    _check_slopes(objective, origin, beta, length, rng)
    # At a minimum much of the gradient is zero, and its sign or a factor would not show.
    move = rng.normal(size=objective.dim)
    move *= 0.1 * length / np.linalg.norm(move)
    while not objective.value_and_gradient(beta + move)[0] - value <= origin.high(value):
        move *= 0.5
    _check_slopes(objective, origin, beta + move, length, rng)


def _check_slopes(
    objective: Objective, origin: _Origin, beta: Floats, length: float, rng: np.random.Generator
) -> None:
    """Compare the gradient with the value, along random directions, then coordinates.

    Random directions are quick; only where one of them disagrees is the coordinate looked for.
    """
    value, gradient = objective.value_and_gradient(beta)
    scale = max(origin.steepest, float(np.abs(gradient).max()))
    rounding = 1e-13 * max(abs(origin.value), abs(value))

    def excess(direction: Floats) -> float:
        """Return by how much value and gradient disagree along a step, less what is allowed."""
        forward = objective.value_and_gradient(beta + direction)[0]
        backward = objective.value_and_gradient(beta - direction)[0]
        allowed = 1e-4 * scale * float(np.linalg.norm(direction)) + rounding
        return float(abs(forward - backward - 2.0 * gradient @ direction) - allowed)

    for _ in range(3):
        direction = rng.normal(size=objective.dim)
        direction *= 1e-5 * length / np.linalg.norm(direction)
        if excess(direction) <= 0.0:
            continue
        excesses = [excess(1e-5 * length * unit) for unit in np.eye(objective.dim)]
        worst = int(np.argmax(excesses))
        step = 1e-5 * length * np.eye(objective.dim)[worst]
        change = objective.value_and_gradient(beta + step)[0]
        change -= objective.value_and_gradient(beta - step)[0]
        raise AssertionError(
            f"gradient against a finite difference: coordinate {worst} is {gradient[worst]:.6g}, "
            f"but Q changes by {change / (2e-5 * length):.6g} per unit"
        )


def _check_scores(
    objective: Objective, origin: _Origin, point: Point, chosen: Ints, always: Ints
) -> None:
    """Every score must be what its default in the base class, the slow twin, says."""
    outside = np.setdiff1d(np.arange(objective.n_candidates), chosen)
    rounding = 1e-12 * max(abs(point.value), abs(origin.value))
    for blocks in _partitions(outside, always):
        norms = Objective.gradient_norms(objective, point, blocks)
        _compare(objective.gradient_norms(point, blocks), norms, "gradient_norms", 1e-9, rounding)
        falls = Objective.decrease_if_added(objective, point, blocks)
        found = objective.decrease_if_added(point, blocks)
        _compare(found, falls, "decrease_if_added", 1e-5, rounding)
    for blocks in _partitions(chosen, always):
        rises = Objective.increase_if_removed(objective, point, blocks)
        found = objective.increase_if_removed(point, blocks)
        _compare(found, rises, "increase_if_removed", 1e-7, rounding)
        costs = Objective.increase_after_refit(objective, point, blocks)
        found = objective.increase_after_refit(point, blocks)
        _compare(found, costs, "increase_after_refit", 1e-5, rounding)


def _compare(found: Scores, slow: Scores, name: str, rtol: float, rounding: float) -> None:
    assert isinstance(found, Scores), f"{name} must return Scores, got {type(found).__name__}"
    assert found.n_exact == len(slow.values), f"{name} must be exact for all blocks"
    # Without a block, a point may be outside the domain of Q.
    finite = np.isfinite(slow.values)
    assert np.array_equal(np.isfinite(found.values), finite), f"{name} is infinite elsewhere"
    allowed = rtol * slow.values[finite].max(initial=0.0) + rounding
    _close(found.values[finite], slow.values[finite], f"{name} against brute force", allowed)


def _check_best(
    objective: Objective, origin: _Origin, point: Point, chosen: Ints, always: Ints
) -> None:
    """Scores of which only the best is wanted must know the best one."""
    everything = Blocks.singles(np.arange(objective.n_candidates), always)
    outside = np.setdiff1d(everything.coordinates, chosen)
    rounding = 1e-12 * max(abs(point.value), abs(origin.value))
    if len(outside):
        best = objective.decrease_if_added(point, everything).values[outside].max()
        found = objective.decrease_if_added(point, everything, only_best=True)
        allowed = 1e-5 * best + rounding
        _close(found.values[outside].max(), best, "the best of decrease_if_added", allowed)
        best = objective.gradient_norms(point, everything).values[outside].max()
        found = objective.gradient_norms(point, everything, only_best=True)
        allowed = 1e-9 * origin.steepest
        _close(found.values[outside].max(), best, "the best of gradient_norms", allowed)
    if len(chosen):
        inside = Blocks.singles(chosen, always)
        least = objective.increase_if_removed(point, inside).values.min()
        found = objective.increase_if_removed(point, inside, below=np.inf)
        allowed = 1e-7 * abs(least) + rounding
        _close(found.values.min(), least, "the least of increase_if_removed", allowed)


def _partitions(coordinates: Ints, always: Ints) -> Iterator[Blocks]:
    """The coordinates one by one, and in blocks of two or three."""
    if len(coordinates):
        yield Blocks.singles(coordinates, always)
    if len(coordinates) > 2:
        yield Blocks.of(np.array_split(coordinates, len(coordinates) // 2), always)


def _check_purity(
    objective: Objective, origin: _Origin, point: Point, chosen: Ints, always: Ints
) -> None:
    bare = point.without_cache()
    full = objective.gradient(point)
    try:
        rebuilt = objective.gradient(bare)
    except Exception as error:
        raise AssertionError("gradient(point) must do without point.cache") from error
    _close(rebuilt, full, "the gradient of a point without cache", 1e-9 * origin.steepest)
    singles = Blocks.singles(np.arange(objective.n_candidates), always)
    kept = point.coef.copy(), point.support.copy()
    first = objective.decrease_if_added(point, singles).values
    objective.minimise(always)
    again = objective.decrease_if_added(point, singles).values
    assert np.array_equal(first, again), "scores must not depend on what was asked before"
    assert np.array_equal(kept[0], point.coef), "scoring must not change the point"
    assert np.array_equal(kept[1], point.support), "scoring must not change the point"
    if len(chosen):
        inside = Blocks.singles(chosen, always)
        full = objective.increase_if_removed(point, inside).values
        rebuilt = objective.increase_if_removed(bare, inside).values
        finite = np.isfinite(full)
        assert np.array_equal(np.isfinite(rebuilt), finite), "removal scores need no cache"
        allowed = 1e-7 * np.abs(full[finite]).max(initial=0.0)
        _close(rebuilt[finite], full[finite], "removal scores of a point without cache", allowed)


def _close(found: Floats | float, expected: Floats | float, what: str, allowed: float) -> None:
    apart = np.asarray(found != expected)  # infinite on both sides is no difference
    difference = np.subtract(found, expected, where=apart, out=np.zeros(apart.shape))
    worst = float(np.abs(difference).max(initial=0.0))
    assert worst <= allowed, f"{what}: off by {worst}, more than {allowed}"
