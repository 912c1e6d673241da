"""Where one feature explains nearly all, what is left is judged by its own size."""

from dataclasses import replace

import numpy as np
import pytest

from forback import select
from forback.certificates import best_swap, certificate
from forback.core.blocks import Blocks
from forback.core.point import Step
from forback.objectives import GLM, LeastSquares

#: How much larger the first coefficient is than the second.
SIZES = [1e2, 1e4, 1e5, 1e6, 1e8, 1e9]
METHODS = ("foba-gdt", "foba-obj")


def dominated(size, seed=0, build=LeastSquares):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 6))
    y = size * X[:, 0] + X[:, 1] + 0.3 * X[:, 2] + 0.3 * rng.normal(size=100)
    return build(X, y)


def taking(objective, features, method):
    """A path that adds up, of a run that took these features, whether they were best or not."""
    honest = select(objective, len(features), method)
    blocks = Blocks.singles(np.arange(objective.n_candidates), np.zeros(0, dtype=np.intp))
    before, steps = honest.start, []
    for size, feature in enumerate(features, 1):
        point = objective.minimise(np.union1d(before.support, [feature]), before)
        if method.endswith("gdt"):
            score = abs(objective.gradient(before)[feature])
        else:
            score = objective.decrease_if_added(before, blocks).values[feature]
        change = before.value - point.value
        before = replace(point, size=size)
        steps.append(
            Step("add", feature, size, point.value, change, score, before, groups=size, cost=size)
        )
    return replace(honest, steps=steps)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", SIZES)
def test_an_honest_run_is_believed(size, method):
    for seed in range(3):
        objective = dominated(size, seed)
        result = certificate(objective, select(objective, 2, method), 2)
        assert result.holds, str(result)
        assert result["no better swap"].passed


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", SIZES)
def test_a_worse_feature_is_noticed(size, method):
    for seed in range(3):
        objective = dominated(size, seed)
        result = certificate(objective, taking(objective, [0, 2], method), 2)
        assert result["forward"].passed is False
        assert result["no better swap"].passed is False
        assert not result.optimal
        best = result.point.value - objective.minimise(np.array([0, 1])).value
        assert result.swaps.gain == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("size", SIZES)
def test_a_coefficient_that_is_off_is_noticed(size):
    objective = dominated(size)
    path = select(objective, 2)
    last = path.steps[-1]
    coef = last.point.coef * [1.0, 1.1]
    value = objective.value_and_gradient(np.append(coef, np.zeros(4)))[0]
    assert value > 1.04 * last.value
    point = replace(last.point, coef=coef, value=value)
    change = path.steps[0].value - value
    forged = replace(
        path, steps=[path.steps[0], replace(last, point=point, value=value, change=change)]
    )
    with pytest.raises(ValueError, match="at step 2 other coefficients lower the objective by"):
        certificate(objective, forged, 2)


def test_the_same_features_refitted_count_in_the_proof(monkeypatch):
    """Were such a point believed, it would still not be called the best."""
    monkeypatch.setattr("forback.certificates.replay.SAME", 10.0)
    objective = dominated(1e4)
    path = select(objective, 2)
    last = path.steps[-1]
    coef = last.point.coef * [1.0, 1.1]
    value = objective.value_and_gradient(np.append(coef, np.zeros(4)))[0]
    step = replace(last, point=replace(last.point, coef=coef, value=value), value=value,
                   change=path.steps[0].value - value)  # fmt: skip
    result = certificate(objective, replace(path, steps=[path.steps[0], step]), 2)
    assert not result.optimal
    assert result.gap >= value - last.value


@pytest.mark.parametrize("size", SIZES)
def test_the_best_swap_is_that_of_refitting(size):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 7))
        if seed % 2:
            X[:, 3] = X[:, 0] * (1.0 + 1e-6 * rng.normal(size=60))  # a copy, or nearly
        y = size * X[:, 0] + X[:, 1] + 0.3 * X[:, 2] + 0.3 * rng.normal(size=60)
        objective, inside = LeastSquares(X, y), np.array([0, 2])
        point = objective.minimise(inside)
        outside = np.setdiff1d(np.arange(7), inside)
        swaps = [np.sort([stays, j]) for stays in inside for j in outside]
        best = point.value - min(objective.minimise(support).value for support in swaps)
        found = best_swap(objective, point, Blocks.singles(np.arange(7), inside[:0]))
        slack = 2.0 * objective.resolution(point)
        assert found.gain == pytest.approx(best, rel=1e-6, abs=slack)
        assert found.complete


FIELDS = [
    ({}, {"score": np.nan}, r"steps\[1\].score must be a finite number"),
    ({}, {"change": np.inf}, r"steps\[1\].change must be a finite number"),
    ({}, {"cost": np.nan}, r"steps\[1\].cost must be a finite number"),
    ({"ratio": np.nan}, {}, r"settings.ratio must be a finite number"),
    ({"threshold": np.nan}, {}, "settings.threshold must be a finite number"),
    ({"budget": np.nan}, {}, "settings.budget must be a finite number"),
    ({"ratio": 2.0}, {}, "settings.ratio must be .* below 1"),
    ({"k": 2.5}, {}, "settings.k must be a whole number"),
    ({"max_steps": np.nan}, {}, "settings.max_steps must be a whole number"),
]


@pytest.mark.parametrize(("settings", "step", "message"), FIELDS)
def test_what_is_no_number_passes_no_comparison(settings, step, message):
    objective = dominated(10.0)
    path = select(objective, 2)
    steps = [path.steps[0], replace(path.steps[1], **step)]
    forged = replace(path, settings={**path.settings, **settings}, steps=steps)
    with pytest.raises(ValueError, match=message):
        certificate(objective, forged, 2)


@pytest.mark.parametrize("build", [LeastSquares, lambda X, y: GLM("huber", X, y)])
def test_a_response_of_zeros_has_a_certificate(build):
    objective = build(np.random.default_rng(0).normal(size=(50, 4)), np.zeros(50))
    result = certificate(objective, select(objective, 2), 0)
    assert result.holds
    assert result.point.value == 0.0


@pytest.mark.parametrize("scale", [1e-13, 1e-10, 1e-6, 1.0])
def test_forgeries_behind_small_counts_are_noticed(scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5))
    counts = rng.poisson(np.exp(2 + 0.4 * X[:, 1] - 0.3 * X[:, 2] + 0.2 * X[:, 3]))
    objective = GLM("poisson", X, counts * scale, fit_intercept=True)
    honest = select(objective, 3)
    assert certificate(objective, honest, 3).holds
    step = honest.steps[-1]
    point = replace(step.point, coef=step.point.coef * [1.0, 1.0, 1.5, 1.0])
    value = objective.value_and_gradient(point.dense(objective.dim))[0]
    change = step.change + step.value - value
    forged = replace(step, point=replace(point, value=value), value=value, change=change)
    with pytest.raises(ValueError, match="was changed"):
        certificate(objective, replace(honest, steps=[*honest.steps[:-1], forged]), 3)
