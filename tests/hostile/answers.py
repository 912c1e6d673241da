"""Certificates: honest runs are believed, forged ones are not, and what is proved is true."""

from dataclasses import replace
from itertools import combinations

import numpy as np

from forback import select
from forback.certificates import certificate
from forback.core.blocks import Blocks
from forback.core.point import Step
from forback.objectives import GLM, LeastSquares, Logistic
from hostile.harness import attack, pick


def problem(rng):
    """A small problem, often with a feature that explains nearly all."""
    n, p = 60, int(rng.integers(4, 8))
    X = rng.normal(size=(n, p))
    if rng.integers(3) == 0:
        X += rng.normal(size=(n, 1))
    size = 10.0 ** rng.uniform(0, 8) if rng.integers(2) else 1.0
    y = size * X[:, 0] + X[:, 1] + 0.3 * X[:, 2] + pick(rng, [0.1, 0.5]) * rng.normal(size=n)
    fit_intercept = bool(rng.integers(2))
    kind = int(rng.integers(4))
    if kind == 0:
        return Logistic(X, y > np.median(y), ridge=0.05, fit_intercept=fit_intercept)
    if kind == 1:
        return GLM("squared", X, y, ridge=1e-3, fit_intercept=fit_intercept)
    y = y + pick(rng, [0.0, 0.0, 1e6])
    return LeastSquares(X, y, fit_intercept=fit_intercept)


def run(rng, objective):
    method = pick(rng, ["foba-gdt", "foba-obj", "forward-gdt", "forward-obj"])
    k = int(rng.integers(1, objective.n_candidates))
    return select(objective, k, method, ratio=pick(rng, [0.3, 0.5, 0.9]))


def candidate(point, objective):
    return point.support[point.support < objective.n_candidates]


@attack
def honest_runs(rng):
    objective = problem(rng)
    path = run(rng, objective)
    for size in path.sizes:
        result = certificate(objective, path, size)
        assert result.holds, f"an honest run was doubted: {result}"
        best = best_of(objective, size)
        point = path[size]
        slack = 10.0 * objective.resolution(point) + 1e-9 * abs(point.value)
        if result.optimal:
            assert point.value <= best + slack, f"{point.value} is not the best: {best}"
        if result.gap < np.inf:
            assert point.value - best <= result.gap + slack, f"the gap {result.gap} is too small"


def best_of(objective, size):
    always = np.arange(objective.n_candidates, objective.dim)
    return min(
        objective.minimise(np.concatenate([np.array(some, dtype=np.intp), always])).value
        for some in combinations(range(objective.n_candidates), size)
    )


@attack
def forged_runs(rng):
    """Something in a path is changed; it must be refused or doubted, unless it changes nothing."""
    objective = problem(rng)
    path = run(rng, objective)
    if not path.steps:
        return
    kinds = (forge_coef, forge_feature, forge_value, forge_score, forge_stop)
    forged, damage = pick(rng, kinds)(rng, objective, path)
    if forged is None:
        return
    try:
        result = certificate(objective, forged, forged.end.size)
    except ValueError:
        return
    assert not result.holds or damage <= 0.0, f"a forgery worth {damage} was believed: {result}"


def forge_coef(rng, objective, path):
    """A coefficient of the last point is off."""
    last = path.steps[-1]
    inside = candidate(last.point, objective)
    place = int(np.searchsorted(last.point.support, pick(rng, inside.tolist())))
    coef = last.point.coef.copy()
    coef[place] *= 1.0 + pick(rng, [0.1, -0.5, 1e-2])
    point = replace(last.point, coef=coef)
    value = objective.value_and_gradient(point.dense(objective.dim))[0]
    before = path.steps[-2].value if len(path.steps) > 1 else path.start.value
    step = replace(last, point=replace(point, value=value), value=value, change=before - value)
    worth = value - last.value - 1e-7 * abs(value) - 100.0 * objective.resolution(last.point)
    return replace(path, steps=[*path.steps[:-1], step]), worth


def forge_feature(rng, objective, path):
    """The last feature is another one, all else worked out as it should be."""
    last = path.steps[-1]
    if last.action != "add":
        return None, 0.0
    before = path.points[-2]
    outside = np.setdiff1d(np.arange(objective.n_candidates), last.point.support)
    if len(outside) == 0:
        return None, 0.0
    other = pick(rng, outside.tolist())
    blocks = Blocks.singles(np.arange(objective.n_candidates), before.support[:0])
    by_gradient = path.settings["method"].endswith("gdt")
    scores = (
        np.abs(objective.gradient(before)[: len(blocks)])
        if by_gradient else objective.decrease_if_added(before, blocks).values
    )  # fmt: skip
    point = objective.minimise(np.union1d(before.support, [other]), before)
    point = replace(point, size=last.size)
    change = before.value - point.value
    step = Step(
        "add", other, last.size, point.value, change, float(scores[other]), point,
        groups=last.groups, cost=last.cost,
    )  # fmt: skip
    gap = float(scores[last.feature] - scores[other])
    noise = np.sqrt(objective.resolution(before) / max(last.change, 1e-300))
    worth = gap - 1e-4 * float(scores[last.feature]) * (1.0 + 1e4 * 10.0 * noise)
    return replace(path, steps=[*path.steps[:-1], step]), worth


def forge_value(rng, objective, path):
    place = int(rng.integers(len(path.steps)))
    step = path.steps[place]
    value = step.value * (1.0 + pick(rng, [1e-3, -1e-2]))
    worth = abs(value - step.value) - 100.0 * objective.resolution(step.point)
    point = replace(step.point, value=value)
    before = path.points[place].value
    steps = [*path.steps]
    steps[place] = replace(step, value=value, point=point, change=before - value)
    if place + 1 < len(steps):
        steps[place + 1] = replace(steps[place + 1], change=value - steps[place + 1].value)
    return replace(path, steps=steps), worth


def forge_score(rng, objective, path):
    place = int(rng.integers(len(path.steps)))
    steps = [*path.steps]
    factor = pick(rng, [0.5, 2.0, np.nan, -1.0])
    steps[place] = replace(steps[place], score=steps[place].score * factor)
    gain = max(abs(path.points[place].value - steps[place].value), 1e-300)
    return replace(path, steps=steps), 1.0 - 1e4 * objective.resolution(path.points[place]) / gain


def forge_stop(rng, objective, path):
    """The run ended earlier than it should have."""
    k = path.settings["k"]
    if k is None or len(path.steps) < 2 or path.end.size < k:
        return None, 0.0
    cut = replace(path, steps=path.steps[: int(rng.integers(1, len(path.steps)))])
    if cut.end.size >= k or cut.end.size == 0:
        return None, 0.0
    left = path.end.value < cut.end.value - 100.0 * objective.resolution(cut.end)
    return replace(cut, stop_reason="size reached"), 1.0 if left else 0.0
