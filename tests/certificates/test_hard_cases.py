"""Certificates on awkward data, and forgeries that a careless check would believe."""

import json
from dataclasses import replace

import numpy as np
import pytest

from forback import FobaClassifier, select
from forback.certificates import (
    certificate,
    restricted_curvature,
    sufficient_s,
    theory_bounds,
    theory_thresholds,
)
from forback.objectives import GLM, LeastSquares, Logistic


def centred_truth(X, s):
    """The least curvature along s columns, an intercept following, from a QR of centred columns."""
    from itertools import combinations

    centred = X - X.mean(axis=0)
    return min(
        np.linalg.svd(centred[:, list(c)], compute_uv=False)[-1] ** 2 / len(X)
        for c in combinations(range(X.shape[1]), s)
    )


# What is proved must be true ---------------------------------------------------------------------


@pytest.mark.parametrize("mean", [0.0, 1e3, 1e6, 1e7, 3e7, 1e9])
def test_large_means_do_not_make_a_bound_wrong(mean):
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(20, 3)) + mean
        objective = LeastSquares(X, X[:, 0] - mean, fit_intercept=True)
        for method in ("bound", "exact"):
            found = restricted_curvature(objective, 2, method)
            assert found.lower <= centred_truth(X, 2) * (1 + 1e-9)
            if mean <= 1e3:
                assert found.lower > 0.0


def test_units_of_what_is_always_in_do_not_matter():
    rng = np.random.default_rng(0)
    a, z, x = rng.normal(size=(3, 200))
    X = np.column_stack([1e6 * a, 5 + 0.05 * z, x])
    objective = LeastSquares(X, 3 * z + 2 * x + rng.normal(size=200), fit_intercept=True)
    result = certificate(objective, select(objective, k=1, always=[0]), 1)
    other = objective.minimise(np.array([0, 1, 3])).value
    assert other < result.point.value
    assert not result.optimal
    assert result.gap >= result.point.value - other
    assert result["no better swap"].passed is False


def test_collinear_columns_that_are_always_in_prove_nothing():
    rng = np.random.default_rng(0)
    a, z = rng.normal(size=(2, 200))
    X = np.column_stack([a, a + 1e-6 * z, z, rng.normal(size=200)])
    objective = LeastSquares(X, z + a)
    for method in ("bound", "exact"):
        assert restricted_curvature(objective, 1, method, always=[0, 1]).lower <= 1e-3
    # with a ridge, a column and its copy leave of z what the column alone leaves, or nearly so
    copies = LeastSquares(np.column_stack([a, a, z]), z + a, ridge=0.1)
    follow = np.column_stack([a, a])
    across = follow.T @ z / 200
    own = follow.T @ follow / 200 + 0.1 * np.eye(2)
    exact = z @ z / 200 + 0.1 - across @ np.linalg.solve(own, across)
    assert 0.999 * exact <= restricted_curvature(copies, 1, always=[0, 1]).lower <= exact


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_swaps_with_columns_of_any_unit(scale):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 6)) * np.where(np.arange(6) < 3, scale, 1.0) + 2.0
        objective = LeastSquares(
            X, X[:, 4] + X[:, 0] / scale + rng.normal(size=40), fit_intercept=True
        )
        path = select(objective, k=2, method="forward-gdt")
        result = certificate(objective, path, 2)
        inside = [j for j in path.end.support if j < 6]
        values = [
            objective.minimise(np.sort([*(set(inside) - {i}), j, 6])).value
            for i in inside
            for j in range(6)
            if j not in inside
        ]
        assert result.swaps.gain == pytest.approx(path.end.value - min(values), rel=1e-6, abs=1e-9)


def test_points_that_were_not_fitted_to_the_end_are_not_called_optimal():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 5))
        y = X[:, 0] + rng.normal(size=40) > 0
        objective = Logistic(3 * X, y, ridge=1.0, max_iter=1)
        path = select(objective, k=2)
        result = certificate(objective, path, 2)
        assert not (result.point.note and result.optimal)
        assert result.holds, str(result)


def test_a_smaller_s_may_satisfy_the_condition_where_all_columns_do_not():
    p = 500
    gram = (1 + 1 / p) * np.eye(p) - np.ones((p, p)) / p
    values, vectors = np.linalg.eigh(gram)
    X = np.sqrt(p) * (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    found = sufficient_s(LeastSquares(X, X[:, 0]), 1)
    assert found is not None
    assert found.s <= 60


# Honest runs are confirmed -----------------------------------------------------------------------


def mixed(seed=3, n=200):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    c = a + b + 0.5 * rng.normal(size=n)
    X = np.column_stack([a, b, c, rng.normal(size=(n, 4))])
    return X, a + b + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("steps", range(6))
def test_a_run_cut_short_before_it_looked_back_is_no_failure(steps):
    objective = LeastSquares(*mixed())
    path = select(objective, max_steps=steps)
    result = certificate(objective, path, path.end.size)
    assert result.holds, str(result)
    told = [select(objective, callback=lambda step, seen=[]: seen.append(1) or len(seen) >= steps)]
    assert certificate(objective, told[0], told[0].end.size).holds


HARD = {
    "large means": lambda X, y: LeastSquares(X + 1e6, y, fit_intercept=True),
    "a large response": lambda X, y: LeastSquares(X, y + 1e10, fit_intercept=True),
    "a constant response": lambda X, y: LeastSquares(X, np.full(len(y), 3.0), fit_intercept=True),
    "near copies": lambda X, y: LeastSquares(np.hstack([X, X + 1e-7 * X[::-1]]), y),
    "copies": lambda X, y: LeastSquares(np.hstack([X, X]), y),
    "tiny columns": lambda X, y: Logistic(1e-7 * X, y > np.median(y), fit_intercept=True),
    "tiny and ridge": lambda X, y: Logistic(1e-6 * X, y > 0, ridge=0.1),
    "tiny counts": lambda X, y: GLM("poisson", 1e-6 * X, np.arange(len(y)) % 3, fit_intercept=True),
    "one feature explains all": lambda X, y: LeastSquares(X, y + 1e6 * X[:, 1]),
    "separable": lambda X, y: Logistic(X, X[:, 0] > 0),
    "single precision": lambda X, y: LeastSquares(X.astype(np.float32), y, precision="mixed"),
}


@pytest.mark.parametrize("method", ["foba-gdt", "foba-obj"])
@pytest.mark.parametrize("name", list(HARD))
def test_awkward_data_is_no_reason_for_suspicion(name, method):
    X, y = mixed()
    objective = HARD[name](X, y)
    limits = {} if name == "separable" else {"epsilon" if method == "foba-gdt" else "delta": 1e-3}
    for options in ({"k": 3}, limits):
        path = select(objective, method=method, **options)
        result = certificate(objective, path, path.end.size)
        assert result.holds, f"{path.stop_reason}\n{result}"


def test_the_path_of_an_estimator_is_confirmed_on_the_scale_fitted():
    X, y = mixed()
    model = FobaClassifier(k=3, standardize=False, fit_intercept=True, alpha=0.01).fit(X, y > 0)
    assert certificate(Logistic(X, y > 0, ridge=0.01, fit_intercept=True), model.path_, 3).holds


def test_an_exact_recovery_breaks_no_inequality_by_rounding():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(100, 6))
        objective = Logistic(X, 3 * X[:, 0] + rng.normal(size=100) > 0, ridge=0.1)
        rho = restricted_curvature(objective, 6)
        known = theory_thresholds(objective, [0], curvature=rho)
        path = select(objective, epsilon=known.epsilon)
        bounds = theory_bounds(objective, path, [0], curvature=rho)
        if bounds.recovered:
            assert bounds.holds, str(bounds)


def test_bounds_of_a_run_cut_short_are_not_claimed():
    objective = LeastSquares(*mixed())
    path = select(objective, epsilon=1e-6, max_steps=3)
    assert path.steps[-1].action == "add"
    bounds = theory_bounds(objective, path, [0, 1])
    assert "did not end by its threshold" in str(bounds)
    assert not bounds.by_size


def test_thresholds_know_what_is_always_in():
    X, y = mixed()
    objective = LeastSquares(X, y + 5 * X[:, 3], fit_intercept=True)
    known = theory_thresholds(objective, [0, 1], always=[3])
    path = select(objective, epsilon=known.practical_epsilon, always=[3])
    assert set(path.end.support.tolist()) >= {0, 1, 3, 7}
    assert known.point.support.tolist() == [0, 1, 3, 7]


# Forgeries ---------------------------------------------------------------------------------------


def forged(path, number, **changes):
    steps = list(path.steps)
    steps[number] = replace(steps[number], **changes)
    return replace(path, steps=steps)


def rebuilt(objective, path, number, coef, note=""):
    """The path with other coefficients at a step, all numbers that follow from them honest."""
    step, before = path.steps[number], path.points[number]
    value = objective.value_and_gradient(replace(step.point, coef=coef).dense(objective.dim))[0]
    point = replace(step.point, coef=coef, value=value, note=note)
    return forged(path, number, point=point, value=value, change=before.value - value)


def test_a_note_excuses_nothing():
    objective = LeastSquares(*mixed())
    path = select(objective, k=2)
    wrong = rebuilt(objective, path, 1, 3 * path.steps[1].point.coef, "no minimiser")
    with pytest.raises(ValueError, match="other coefficients lower the objective"):
        certificate(objective, wrong, 2)
    order = select(objective, k=2, always=None).steps
    last = [j for j in range(7) if j not in {s.feature for s in order}][-1]
    note = "passed over everything"
    fit = replace(objective.minimise(np.array([last])).without_cache(), size=1)
    score = float(np.abs(objective.gradient(path.start)[last]))
    step = replace(
        path.steps[0], feature=last, value=fit.value, change=path.start.value - fit.value,
        score=score, point=fit, note=note,
    )  # fmt: skip
    alone = replace(path, steps=[step], settings={**path.settings, "k": 1})
    assert certificate(objective, alone, 1)["forward"].passed is False


def test_small_units_hide_nothing():
    X, y = mixed()
    units = np.array([1.0, 1e-6, 1e-6, 1, 1, 1, 1])
    objective = LeastSquares(X * units, y)
    path = select(objective, k=2, method="foba-obj")
    place = int(np.flatnonzero(np.isin(path.end.support, [1, 2]))[0])
    coef = path.end.coef.copy()
    coef[place] *= 1.9
    with pytest.raises(ValueError, match="other coefficients lower the objective"):
        certificate(objective, rebuilt(objective, path, 1, coef), 2)


def test_a_large_response_hides_nothing():
    X, y = mixed()
    objective = LeastSquares(X, y + 1e9, fit_intercept=True)
    path = select(objective, k=2)
    assert certificate(objective, path, 2).holds
    coef = path.end.coef.copy()
    coef[0] *= 1.5
    with pytest.raises(ValueError, match="other coefficients lower the objective"):
        certificate(objective, rebuilt(objective, path, 1, coef), 2)
    early = replace(path, steps=path.steps[:1], settings={**path.settings, "k": 2})
    assert certificate(objective, early, 1)["exit"].passed is False


def test_forged_scores_settings_and_costs():
    objective = LeastSquares(*mixed())
    path = select(objective, k=3)
    removal = next(n for n, step in enumerate(path.steps) if step.action == "remove")
    for score in (0.0, -5.0):
        result = certificate(objective, forged(path, removal, score=score), 3)
        assert result["backward"].passed is False
    forward = replace(path, settings={**path.settings, "method": "forward-gdt"})
    with pytest.raises(ValueError, match="forward-gdt removes nothing"):
        certificate(objective, forward, 3)
    for setting, message in (
        ({"k": 1}, "although size 1 was reached"),
        ({"max_steps": 1}, "more than max_steps=1"),
        ({"budget": 1.0, "k": None}, "more than the budget 1"),
    ):
        with pytest.raises(ValueError, match=message):
            certificate(objective, replace(path, settings={**path.settings, **setting}), 3)
    with pytest.raises(ValueError, match="groups cost"):
        certificate(objective, forged(path, 0, cost=0.5), 3)
    other = LeastSquares(mixed()[0], mixed(4)[1])
    with pytest.raises(ValueError, match="not what this objective gives"):
        theory_bounds(other, select(objective, epsilon=0.1), [0])


# Words --------------------------------------------------------------------------------


def test_arguments_of_the_wrong_kind_are_named():
    objective = LeastSquares(*mixed())
    path = select(objective, k=1)
    with pytest.raises(TypeError, match="path must be a Path"):
        certificate(objective, None, 1)
    with pytest.raises(TypeError, match="objective"):
        certificate(path, objective, 1)
    with pytest.raises(TypeError, match="objective"):
        restricted_curvature(None, 2)
    with pytest.raises(TypeError, match="k must be an integer"):
        certificate(objective, path, 1.0)
    with pytest.raises(TypeError, match="curvature must be what restricted_curvature returns"):
        theory_thresholds(objective, [0], curvature=3)
    with pytest.raises(KeyError, match="nope"):
        certificate(objective, path, 1)["nope"]
    with pytest.raises(ValueError, match="every candidate is always in"):
        restricted_curvature(objective, 1, always=range(7))
    content = certificate(objective, path, 1, method="sample").to_dict()
    assert json.loads(json.dumps(content, allow_nan=False))["gap"] is None
