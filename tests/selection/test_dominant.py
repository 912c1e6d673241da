"""A feature that explains nearly all does not end the run; an exact fit does."""

import numpy as np
import pytest

from forback import FobaRegressor, select
from forback.objectives import GLM, LeastSquares
from forback.selection.rules import METHODS

BUILDS = {
    "least squares": LeastSquares,
    "squared": lambda X, y, **rest: GLM("squared", X, y, **rest),
    "huber": lambda X, y, **rest: GLM("huber", X, y, **rest),
}
#: How much larger the largest coefficient may be than the next; docs/reliability.md says so.
LARGEST = 1e10


def dominated(size, seed, n=200):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    return X, size * X[:, 0] + 2 * X[:, 1] - X[:, 3] + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
@pytest.mark.parametrize("size", [1e4, 1e7, LARGEST])
def test_what_is_left_is_found(build, size, method):
    for seed in range(3):
        X, y = dominated(size, seed)
        for fit_intercept in (False, True):
            objective = build(X, y, fit_intercept=fit_intercept)
            path = select(objective, 3, method)
            assert [step.feature for step in path.steps] == [0, 1, 3]
            assert path.end.value < 0.02
            assert path.end.coef[1:3] == pytest.approx([2.0, -1.0], abs=0.05)


def test_an_estimator_finds_it_too():
    X, y = dominated(LARGEST, 0)
    assert FobaRegressor(k=3).fit(X, y).selected_.tolist() == [0, 1, 3]
    assert FobaRegressor(k=3, loss="huber").fit(X, y).selected_.tolist() == [0, 1, 3]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 1e9])
def test_an_exact_fit_ends_the_run(build, scale, method):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 10))
        y = scale * (X[:, :3] @ rng.normal(size=3))
        for fit_intercept in (False, True):
            path = select(build(X, y, fit_intercept=fit_intercept), method=method)
            chosen = path.end.support[path.end.support < 10]
            assert set(chosen) == {0, 1, 2}
            assert path.stop_reason.startswith("no candidate left lowers the objective by more")


def test_the_resolution_is_what_rounding_does():
    """Q worked out in other orders of rows and columns differs by less, and not by much less."""
    rng = np.random.default_rng(0)
    for size in (1.0, 1e4, 1e8):
        X, y = dominated(size, 1)
        objective = GLM("squared", X, y)
        point = objective.minimise(np.array([0, 1, 3]))
        off = 0.0
        for _ in range(30):
            rows, columns = rng.permutation(200), rng.permutation(3)
            other = X[rows][:, point.support[columns]] @ point.coef[columns]
            off = max(off, abs(0.5 * np.mean((y[rows] - other) ** 2) - point.value))
        rounding = objective.resolution(point) - 1e-12 * point.value
        assert off <= objective.resolution(point)
        assert rounding <= 1e4 * max(off, 1e-16 * size * np.sqrt(2 * point.value))
