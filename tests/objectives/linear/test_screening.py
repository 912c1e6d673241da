"""Screening is exact: the best candidate and its score are those of scoring every one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forback.core.point import Point
from forback.core.status import Status
from forback.selection.ties import highest, lowest
from support.hard_problems import (
    KINDS,
    METHODS,
    assert_same_path,
    build,
    hard_data,
    run,
    singles,
    steps,
    stored,
)  # fmt: skip

CURVED = ("logistic", "poisson", "gamma", "huber", "squared_hinge")

situations = {
    "loss": st.sampled_from(CURVED),
    "kind": st.sampled_from(KINDS),
    "seed": st.integers(0, 10**6),
    "storage": st.sampled_from(["C", "F", "csc"]),
    "ridge": st.sampled_from([0.0, 1e-3, 0.3]),
    "fit_intercept": st.booleans(),
    "weighted": st.booleans(),
    "precision": st.sampled_from(["double", "mixed"]),
}


def make(loss, kind, seed, storage, weighted, *, n=40, p=12, **options):
    X, y = hard_data(loss, kind, seed, n=n, p=p)
    if weighted:
        options["sample_weight"] = 10.0 ** np.random.default_rng(seed).uniform(-3, 3, size=n)
    return build(loss, stored(X, storage), y, **options)


def fitted(objective, size, seed):
    """A point with some columns in, and the coordinates left outside."""
    p = objective.n_candidates
    chosen = np.sort(np.random.default_rng(seed).choice(p, size, replace=False))
    point = objective.minimise(np.append(chosen, np.arange(p, objective.dim)))
    return point, chosen, np.setdiff1d(np.arange(p), chosen)


def by_numpy(objective, point):
    """The same lines for a loss that kernels do not know."""
    lines = objective._lines(point)
    return replace(lines, response=replace(lines.response, code=None))


def rounding(point, unit=1e-14):
    return unit * max(1.0, abs(point.value))


@settings(max_examples=150, deadline=None)
@given(size=st.integers(0, 5), **situations)
def test_decreases(size, seed, **rest):
    objective = make(seed=seed, **rest)
    point, _, outside = fitted(objective, size, seed)
    blocks, off = singles(objective), rounding(point)
    exact = objective.decrease_if_added(point, blocks).values
    plain = by_numpy(objective, point).decreases(blocks.coordinates, 1e-12)
    np.testing.assert_allclose(exact, plain, rtol=1e-9, atol=off)
    screened, solved = objective.decrease_if_added(point, blocks, only_best=True)
    assert 0 <= solved <= len(blocks)
    true, bound = exact[outside], screened[outside]
    best = highest(true)
    if true[best] > 1e-7 * max(1.0, abs(point.value)):  # below, scores are rounding
        assert highest(bound) == best
        assert bound[best] == pytest.approx(true[best], rel=1e-9)
    assert (bound >= true * (1.0 - 1e-9) - off).all()
    other = np.abs(bound - true) > 1e-9 * true + off
    assert (bound[other] < true[best] * (1.0 - 1e-9) + off).all()


@settings(max_examples=150, deadline=None)
@given(size=st.integers(1, 6), share=st.sampled_from([0.0, 1e-9, 0.1, 1.0, np.inf]), **situations)
def test_increases(size, share, seed, **rest):
    objective = make(seed=seed, **rest)
    point, chosen, _ = fitted(objective, size, seed)
    blocks, off = singles(objective).take(chosen), rounding(point)
    exact = objective.increase_if_removed(point, blocks).values
    plain = by_numpy(objective, point).increases(chosen)
    np.testing.assert_allclose(exact, plain, rtol=1e-9, atol=off)
    limit = np.inf if share == np.inf else share * float(exact.max())
    screened, solved = objective.increase_if_removed(point, blocks, below=limit)
    assert 0 <= solved <= len(blocks)
    worst = lowest(exact)
    if abs(exact[worst]) > 1e-7 and exact[worst] < limit:
        assert lowest(screened) == worst
        assert screened[worst] == pytest.approx(exact[worst], rel=1e-9)
    assert (screened <= exact + 1e-9 * np.abs(exact) + off).all()
    other = np.abs(screened - exact) > 1e-9 * np.abs(exact) + off
    assert (screened[other] > min(exact[worst], limit) - off).all()


@settings(max_examples=80, deadline=None)
@given(method=st.sampled_from(METHODS), ratio=st.sampled_from([0.0, 0.5, 0.9]), **situations)
def test_whole_paths(method, ratio, **rest):
    options = {"method": method, "ratio": ratio, "k": 8}
    path = run(make(**rest), **options)
    plain = run(make(hidden=True, **{**rest, "precision": "double"}), **options)
    if any(point.status is Status.NO_MINIMISER for point in plain.points):
        assert steps(path)[:1] == steps(plain)[:1]
        return
    assert_same_path(path, plain, 1e-9)
    assert all(0 <= step.solved <= 12 for step in path.steps)
    scores = [[step.score for step in each.steps] for each in (path, plain)]
    np.testing.assert_allclose(*scores, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("loss", ["logistic", "poisson", "gamma"])
@pytest.mark.parametrize("precision", ["double", "mixed"])
def test_few_of_many_gaussian_columns_are_solved(loss, precision):
    X, y = hard_data(loss, "gaussian", 1, n=200, p=5000)
    path = run(build(loss, X, y, ridge=1e-3, precision=precision), "foba-obj", k=4)
    assert all(step.solved < 500 for step in path.steps if step.action == "add")


@pytest.mark.parametrize("loss", CURVED)
def test_a_point_without_cache_or_minimum_is_scored_alike(loss):
    """The best outside counts, also where a column inside promises more than any of them."""
    for seed in range(10):
        objective = make(loss, "gaussian", seed, "C", False)
        blocks, p = singles(objective), objective.n_candidates
        inside, coef = np.array([2, 5]), np.array([1.5, -0.7])
        beta = np.zeros(objective.dim)
        beta[inside] = coef
        point = Point(inside, coef, objective.value_and_gradient(beta)[0])
        exact = objective.decrease_if_added(point, blocks).values
        screened, _ = objective.decrease_if_added(point, blocks, only_best=True)
        exact[inside] = screened[inside] = -np.inf
        assert highest(screened) == highest(exact)
        assert screened.max() == pytest.approx(exact.max(), rel=1e-9)
        assert len(screened) == p


@pytest.mark.parametrize("loss", CURVED)
@pytest.mark.parametrize("loose", [{"tol": 0.3}, {"max_iter": 1}])
def test_fits_that_end_early_are_scored_alike(loss, loose):
    for seed in range(10):
        paths = [
            run(make(loss, "correlated", seed, "C", False, hidden=hidden, **loose), "foba-obj", k=5)
            for hidden in (False, True)
        ]
        assert_same_path(*paths, 1e-9)


@pytest.mark.parametrize("storage", ["C", "csc"])
@pytest.mark.parametrize("loss", CURVED)
def test_to_the_end_of_the_road(loss, storage):
    """Where all scores are rounding, as beside columns that are nearly in, ties are the same."""
    for seed in range(2, 10):
        n, p = (13, 20) if seed % 2 else (61, 12)
        X, y = hard_data(loss, "gaussian", seed, n=n, p=p)
        rng = np.random.default_rng(seed)
        X[:, p // 2 :] = X[:, : p // 2] + 10.0 ** -(2 + seed % 8) * rng.normal(size=(n, p // 2))
        ridge = 0.0 if n > p else 1e-8
        paths = [
            run(build(loss, stored(X, storage), y, ridge=ridge, hidden=hidden), "forward-obj")
            for hidden in (False, True)
        ]
        assert_same_path(*paths, 1e-9)
