"""Separation, empty and constant columns, wild scales: no crash, no NaN, honest notes."""

import numpy as np
import pytest
from scipy import sparse

from forback import select
from forback.numerics import NO_MINIMISER
from forback.objectives import GLM, LeastSquares, Logistic
from problems import LOSSES, make_problem

METHODS = ("foba-gdt", "foba-obj", "forward-gdt", "forward-obj")


def assert_optimal(objective, path, tol=1e-8):
    for point in path.points:
        gradient = objective.gradient(point)[point.support]
        scale = objective.gradient_scale(point.support)
        assert np.all(np.abs(gradient) <= tol * scale), (gradient, scale)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("storage", ["dense", "csc"])
@pytest.mark.parametrize("method", METHODS)
def test_every_point_of_a_path_is_optimal(loss, storage, method):
    for seed, design in enumerate(("gaussian", "correlated", "binary", "duplicated")):
        problem = make_problem(loss, design, seed, n=60, p=12, ridge=0.0, fit_intercept=True)
        objective = problem.objective(storage=storage)
        assert_optimal(objective, select(objective, k=5, method=method))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
def test_perfect_separation_ends_and_says_so(method, make):
    X = np.random.default_rng(0).normal(size=(40, 6))
    objective = Logistic(make(X), X[:, 2] > 0)
    path = select(objective, method=method)
    assert path.steps[0].feature == 2
    assert any(NO_MINIMISER in step.note for step in path.steps)
    assert all(np.isfinite(point.coef).all() for point in path.points)
    assert path.end.value < 1e-8


def test_rows_without_features_and_columns_without_entries():
    rng = np.random.default_rng(1)
    X = sparse.random(200, 30, density=0.05, random_state=rng).toarray()
    X[:, 7] = 0.0
    X = sparse.csc_array(X)
    y = rng.integers(0, 2, 200)
    objective = Logistic(X, y, ridge=1e-3)
    path = select(objective, method="foba-obj")
    assert 7 not in path.end.support
    assert_optimal(objective, path)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_duplicate_constant_and_empty_columns_are_passed_over(method, fit_intercept):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 8))
    X[:, 4] = X[:, 1]
    X[:, 5] = -3.0 * X[:, 1]
    X[:, 6] = 0.0
    X[:, 7] = 2.5
    y = X[:, 1] + 0.5 * X[:, 0] + 0.9 * rng.normal(size=80) > 0.2
    objective = Logistic(X, y, fit_intercept=fit_intercept)
    path = select(objective, method=method)
    chosen = set(path.end.support) - {8}
    assert len(chosen & {1, 4, 5}) == 1
    assert 6 not in chosen
    assert (7 in chosen) is not fit_intercept
    assert "no candidate" in path.stop_reason
    assert_optimal(objective, path)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ridge", [0.0, 1e-3])
@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
def test_columns_scaled_from_1e_minus_150_to_1e150(method, ridge, make):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(100, 6))
    y = X[:, 0] - X[:, 1] + X[:, 2] + rng.logistic(size=100) > 0
    factors = 10.0 ** np.array([-150, -75, 0, 75, 150, 1])
    objective = Logistic(make(X * factors), y, ridge=ridge)
    path = select(objective, method=method)
    assert all(np.isfinite(point.coef).all() for point in path.points)
    assert_optimal(objective, path)
    if ridge == 0.0 and method.endswith("obj"):
        # Without ridge the decrease does not depend on a column's scale.
        plain = select(Logistic(X, y), method=method)
        assert [s.feature for s in path.steps] == [s.feature for s in plain.steps]
        assert path.end.value == pytest.approx(plain.end.value, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-100, 1e-9, 1.0, 1e9, 1e100])
def test_least_squares_does_not_depend_on_the_units_of_y(scale):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 10))
    y = X[:, 3] - 2 * X[:, 5] + 0.5 * rng.normal(size=60)
    plain = select(LeastSquares(X, y, fit_intercept=True))
    scaled = select(LeastSquares(X, scale * y, fit_intercept=True))
    assert [s.feature for s in plain.steps] == [s.feature for s in scaled.steps]
    np.testing.assert_allclose(scaled.coef(4), scale * plain.coef(4), rtol=1e-8)


def test_more_columns_than_rows_ends_at_a_perfect_fit():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 100))
    path = select(LeastSquares(X, rng.normal(size=20)))
    assert path.end.size == 20
    assert path.end.value < 1e-20
    assert "no candidate" in path.stop_reason


@pytest.mark.parametrize("loss", LOSSES)
def test_a_constant_response_needs_no_feature(loss):
    X = np.random.default_rng(6).normal(size=(30, 4))
    path = select(GLM(loss, X, np.ones(30), fit_intercept=True, ridge=1e-6))
    assert path.end.size == 0


def test_huge_counts_and_tiny_amounts():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(100, 5))
    for loss, factor in (("poisson", 1e9), ("gamma", 1e-12), ("gamma", 1e12)):
        y = factor * np.exp(X[:, 1]) * rng.gamma(20.0, 0.05, size=100)
        objective = GLM(loss, X, y, fit_intercept=True)
        path = select(objective, k=2, method="foba-obj")
        assert path.steps[0].feature == 1
        assert_optimal(objective, path)
