"""Certificates: what is confirmed, what is refused, and what is proved."""

import json
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forback import Path, select
from forback.certificates import best_swap, certificate
from forback.core.blocks import Blocks
from forback.datasets import make_chain, make_graph
from forback.objectives import (
    GLM,
    ChainCRF,
    GaussianCovariance,
    LeastSquares,
    Logistic,
    Multinomial,
    from_function,
)

PROMISES = ("optimality", "forward", "backward", "exit")


def table(seed=0, n=80, p=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
    return X, X[:, 0] - X[:, 3] + 0.5 * X[:, 5] + rng.normal(size=n)


@cache
def objectives():
    X, y = table()
    chain = make_chain(150)
    return {
        "squares": LeastSquares(X, y),
        "squares-intercept": LeastSquares(X + 2.0, y, fit_intercept=True),
        "logistic": Logistic(X, y > 0, ridge=0.02, fit_intercept=True),
        "huber": GLM("huber", X, y, ridge=0.01),
        "softmax": Multinomial(X, np.digitize(y, [-1, 1]), ridge=0.01, fit_intercept=True),
        "chain": ChainCRF(chain.X, chain.y, chain.lengths),
        "graph": GaussianCovariance.from_data(make_graph(p=6, n=60).X),
        "function": from_function(
            lambda b: (float(np.mean(np.cosh(X @ b - y))), X.T @ np.sinh(X @ b - y) / len(y)), 12
        ),
    }


@pytest.mark.parametrize("method", ["foba-gdt", "foba-obj", "forward-gdt", "forward-obj"])
@pytest.mark.parametrize("name", list(objectives()))
def test_what_select_gives_is_confirmed(name, method):
    objective = objectives()[name]
    path = select(objective, k=3, method=method, by="feature" if name == "chain" else None)
    result = certificate(objective, path, 3)
    assert result.holds, str(result)
    for promise in PROMISES:
        expected = None if promise == "backward" and method.startswith("forward") else True
        assert result[promise].passed is expected, str(result)
    assert result.k == 3
    assert json.loads(json.dumps(result.to_dict()))["holds"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"k": 4, "always": [2]},
        {"groups": [j // 2 for j in range(12)], "k": 3},
        {"budget": 3},
        {"budget": 3, "k": 5, "costs": [1.0 + j % 2 for j in range(12)]},
        {"epsilon": 0.2},
        {"epsilon": "auto"},
        {"max_steps": 4},
        {"ratio": 0.9, "backward": "refit"},
        {"method": "foba-obj", "delta": 0.01},
        {"method": "foba-obj", "groups": [j // 3 for j in range(12)]},
    ],
    ids=str,
)
def test_every_way_to_stop_is_confirmed(options):
    X, y = table(1)
    for objective in (LeastSquares(X, y), Logistic(X, y > 0, ridge=0.01)):
        path = select(objective, **options)
        result = certificate(objective, path, path.end.size)
        assert result.holds, f"{path.stop_reason}\n{result}"
        assert result["exit"].passed is True


def test_a_run_stopped_from_outside_has_no_exit_to_confirm():
    objective = LeastSquares(*table())
    path = select(objective, callback=lambda step: step.size == 2)
    result = certificate(objective, path, 2)
    assert result["exit"].passed is None
    assert result.holds


def test_more_columns_than_rows_end_the_road():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 20))
    objective = LeastSquares(X, rng.normal(size=8))
    path = select(objective)
    result = certificate(objective, path, path.end.size)
    assert "no candidate was left" in result["exit"].detail
    assert result.holds


def test_a_saved_path_is_confirmed_by_the_same_data(tmp_path):
    X, y = table()
    select(LeastSquares(X, y), k=4).save(tmp_path / "path.json")
    loaded = Path.load(tmp_path / "path.json")
    assert certificate(LeastSquares(X, y), loaded, 4).holds
    with pytest.raises(ValueError, match=r"not what this objective gives.*at the start"):
        certificate(LeastSquares(X, y + 0.01), loaded, 4)
    with pytest.raises(ValueError, match="path is not of this objective: it has 12 coordinates"):
        certificate(LeastSquares(X[:, :-1], y), loaded, 4)


# Tampering ---------------------------------------------------------------------------------------


def tampered(path, number, **changes):
    """The path with one step changed."""
    steps = list(path.steps)
    steps[number] = replace(steps[number], **changes)
    return replace(path, steps=steps)


def moved(step, place=0, by=1e-3):
    coef = step.point.coef.copy()
    coef[place] += by
    return replace(step.point, coef=coef)


def honest(point, objective):
    """The point with the objective that its coefficients really have."""
    value = objective.value_and_gradient(point.dense(objective.dim))[0]
    return replace(point, value=value)


@pytest.mark.parametrize("build", [LeastSquares, lambda X, y: Logistic(X, y > 0, ridge=0.01)])
def test_a_tampered_path_is_rejected(build):
    objective = build(*table())
    path = select(objective, k=4)
    last = path.steps[-1]
    other = next(j for j in range(12) if j not in last.point.support)
    better = honest(moved(last), objective)
    value = path.steps[1].value - 1e-4
    lower = replace(path.steps[1].point, value=value)
    swapped = last.point.support.copy()
    swapped[0] = other
    cases = {
        "a coefficient": tampered(path, 3, point=moved(last)),
        "a coefficient and its value": tampered(path, 3, point=better, value=better.value),
        "a lower value": tampered(path, 1, point=lower, value=value),
        "a gain": tampered(path, 2, change=path.steps[2].change + 1e-3),
        "another feature": tampered(path, 3, feature=other),
        "an action": tampered(path, 3, action="remove"),
        "a size": tampered(path, 3, size=5),
        "a support": tampered(path, 3, point=replace(last.point, support=np.sort(swapped))),
        "a coefficient that is not a number": tampered(path, 3, point=moved(last, by=np.nan)),
        "a step left out": replace(path, steps=path.steps[:1] + path.steps[2:]),
        "steps exchanged": replace(path, steps=[path.steps[1], path.steps[0], *path.steps[2:]]),
        "a start": replace(path, start=replace(path.start, value=path.start.value + 1.0)),
    }
    for what, changed in cases.items():
        with pytest.raises(ValueError, match="not what this objective gives, or was changed"):
            print(what, certificate(objective, changed, 4))


def test_a_run_that_is_no_run_of_the_algorithm_does_not_hold():
    objective = LeastSquares(*table())
    path = select(objective, k=4)

    def forged(order):
        """A path that takes features in another order, every fit honest."""
        point, steps, taken = path.start, [], []
        for feature in order:
            taken.append(feature)
            fit = objective.minimise(np.sort(taken)).without_cache()
            after = replace(fit, size=len(taken))
            score = abs(objective.gradient(point)[feature])
            change = point.value - after.value
            steps.append(
                replace(
                    path.steps[0], feature=feature, size=after.size, value=after.value,
                    change=change, score=score, point=after, groups=after.size,
                    cost=float(after.size),
                )
            )  # fmt: skip
            point = after
        return replace(path, steps=steps)

    order = [step.feature for step in path.steps]
    assert certificate(objective, forged(order), 4).holds
    result = certificate(objective, forged(order[::-1]), 4)
    assert not result.holds
    assert result["forward"].passed is False
    assert "some guarantees FAILED" in str(result)
    early = replace(path, steps=path.steps[:2])
    assert certificate(objective, early, 2)["exit"].passed is False
    scored = tampered(path, 0, score=2.0 * path.steps[0].score)
    assert certificate(objective, scored, 4)["forward"].passed is False


def test_a_feature_that_should_have_left_is_noticed():
    """The path of a forward run, passed off as one that looks back."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 200))
    X = np.column_stack([a, b, a + b + 0.5 * rng.normal(size=200), rng.normal(size=(200, 4))])
    objective = LeastSquares(X, a + b + 0.1 * rng.normal(size=200))
    assert any(step.action == "remove" for step in select(objective, k=3).steps)
    path = select(objective, k=3, method="forward-gdt")
    passed_off = replace(path, settings={**path.settings, "method": "foba-gdt"})
    result = certificate(objective, passed_off, 3)
    assert result["backward"].passed is False
    assert "could go for" in result["backward"].detail
    looking_back = select(objective, k=3)
    strict = replace(looking_back, settings={**looking_back.settings, "ratio": 1e-9})
    assert certificate(objective, strict, 3)["backward"].passed is False


def test_settings_must_be_there():
    objective = LeastSquares(*table())
    path = select(objective, k=2)
    with pytest.raises(ValueError, match="path lacks the settings of a run"):
        certificate(objective, replace(path, settings={}), 2)
    with pytest.raises(KeyError, match="size 9 was never visited"):
        certificate(objective, path, 9)
    with pytest.raises(ValueError, match="method must be one of"):
        certificate(objective, path, 2, method="guess")


# Swaps and proofs --------------------------------------------------------------------------------


def best_by_swaps(objective, support, p):
    values = [
        objective.minimise(np.sort([*np.setdiff1d(support, i), j])).value
        for i in support
        for j in range(p)
        if j not in support
    ]
    return objective.minimise(support).value - min(values)


@pytest.mark.parametrize("seed", range(15))
def test_the_best_swap_is_the_best_of_all_pairs(seed):
    X, y = table(seed, n=40, p=8)
    support = np.sort(np.random.default_rng(seed).choice(8, 3, replace=False))
    blocks = Blocks.singles(np.arange(8), np.zeros(0, np.intp))
    for objective in (LeastSquares(X, y), Logistic(X, y > 0, ridge=0.1)):
        found = best_swap(objective, objective.minimise(support), blocks)
        assert found.gain == pytest.approx(best_by_swaps(objective, support, 8), rel=1e-6, abs=1e-9)
        assert (found.pairs, found.complete) == (15, True)
        swapped = np.sort([*np.setdiff1d(support, found.out), found.into])
        after = objective.minimise(swapped).value
        assert objective.minimise(support).value - after == pytest.approx(found.gain, abs=1e-9)


def test_curvature_rules_pairs_out_without_missing_any():
    for seed in range(10):
        X, y = table(seed, n=60, p=8)
        objective = Logistic(X, y > 0, ridge=0.5)
        blocks = Blocks.singles(np.arange(8), np.zeros(0, np.intp))
        point = objective.minimise(np.array([0, 3, 5]))
        plain, ruled = (best_swap(objective, point, blocks, lower) for lower in (0.0, 0.5))
        assert ruled.complete
        if plain.gain > 0:
            assert (ruled.gain, ruled.out, ruled.into) == (plain.gain, plain.out, plain.into)
        else:
            assert ruled.gain <= 0


def test_a_swap_that_helps_is_named():
    X, y = table()
    objective = LeastSquares(X, y)
    path = select(objective, k=2, always=None, callback=lambda step: False)
    worst = replace(
        path, start=path.start, steps=[], settings={**path.settings, "k": 0}, stop_reason=""
    )
    assert certificate(objective, worst, 0).swaps.pairs == 0
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(2, 300))
    mixed = np.column_stack([a, b, a + b + 0.3 * rng.normal(size=300)])
    objective = LeastSquares(mixed, a + b)
    path = select(objective, k=2, method="forward-gdt")
    result = certificate(objective, path, 2)
    assert result["no better swap"].passed is False
    assert "for 2 lowers Q by" in result["no better swap"].detail
    assert result.holds  # no swap was ever promised


@given(st.integers(0, 10**6), st.integers(1, 3), st.booleans(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_a_proof_of_optimality_is_right_and_the_gap_covers(seed, k, intercept, logistic):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 6)) @ (np.eye(6) + 0.3 * rng.normal(size=(6, 6)))
    y = X[:, :k] @ rng.normal(size=k) * rng.uniform(0.1, 3) + rng.normal(size=40)
    if logistic:
        objective = Logistic(X, y > 0, ridge=rng.uniform(0.05, 1.0), fit_intercept=intercept)
    else:
        objective = LeastSquares(X, y, fit_intercept=intercept)
    path = select(objective, k=k)
    always = np.arange(6, objective.dim)
    values = [
        objective.minimise(np.concatenate([subset, always]).astype(int)).value
        for subset in combinations(range(6), k)
    ]
    result = certificate(objective, path, k)
    assert result.gap >= path[k].value - min(values) - 1e-9
    if result.optimal:
        assert path[k].value == pytest.approx(min(values), abs=1e-9)


def test_strong_signals_are_proved_optimal_and_the_corollary_holds():
    rng = np.random.default_rng(0)
    X = 20 * np.linalg.qr(rng.normal(size=(400, 60)))[0]
    objective = LeastSquares(X, 3 * X[:, 7] + rng.normal(size=400), fit_intercept=True)
    result = certificate(objective, select(objective, k=1), 1)
    assert result.optimal
    assert result["corollary"].passed is True
    weak = LeastSquares(X, 0.12 * X[:, 7] + rng.normal(size=400))
    result = certificate(weak, select(weak, k=1), 1)
    assert result["corollary"].passed is False
    tiny = LeastSquares(*table())
    assert "vacuous" in certificate(tiny, select(tiny, k=2), 2)["corollary"].detail
    sampled = certificate(tiny, select(tiny, k=2), 2, method="sample")
    assert "an estimate" in sampled["optimal"].detail
    assert not sampled.optimal


def test_a_certificate_names_features_and_says_why_nothing_is_proved():
    pd = pytest.importorskip("pandas")
    X, y = table()
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(12)])
    objective = LeastSquares(frame, y)
    path = select(objective, k=3)
    result = certificate(objective, path, 2)
    assert set(result.features) == {path.name(step.feature) for step in path.steps[:2]}
    assert all(name in str(result).splitlines()[0] for name in result.features)
    assert "the run went on to size 3" in result["exit"].detail
    assert result.to_dict()["features"] == list(result.features)
    groups = select(objective, k=2, groups=[j // 2 for j in range(12)])
    assert "not about groups" in certificate(objective, groups, 2)["optimal"].detail
    flat = Logistic(X, y > 0)
    assert "is 0: collinear" in certificate(flat, select(flat, k=2), 2)["optimal"].detail
    chain = make_chain(60)
    crf = ChainCRF(chain.X, chain.y, chain.lengths)
    assert "ChainCRF does not" in certificate(crf, select(crf, k=1), 1)["optimal"].detail
    with pytest.raises(ValueError, match=r"scale it was fitted on: standardised columns"):
        certificate(LeastSquares(2.0 * X, y), path, 2)
