"""Classes that are separable, without ridge: coefficients grow, and say what Q says."""

import warnings

import numpy as np
import pytest

from forback import FobaClassifier, select
from forback.core.status import Status
from forback.objectives import Logistic, Multinomial


def table(seed, binary):
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(8, 25)), int(rng.integers(4, 9))
    X = (rng.random((n, p)) > 0.6).astype(float) if binary else rng.normal(size=(n, p))
    y = rng.integers(0, 3, n)
    y[:3] = [0, 1, 2]
    return X, y


@pytest.mark.parametrize("refine", [None, "swap"])
@pytest.mark.parametrize("binary", [False, True])
def test_every_point_has_the_value_that_it_says(binary, refine):
    ended = set()
    for seed in range(40):
        X, y = table(seed, binary)
        objective = Multinomial(X, y, fit_intercept=seed % 2 == 0)
        path = select(objective, 3, refine=refine)
        for size in path.sizes:
            point = path[size]
            value = objective.value_and_gradient(point.dense(objective.dim))[0]
            assert value == pytest.approx(point.value, rel=1e-6, abs=1e-9)
            ended.add(point.status)
    assert Status.NO_MINIMISER in ended


@pytest.mark.parametrize("binary", [False, True])
def test_an_estimator_says_so_and_predicts(binary):
    for seed in range(10):
        X, y = table(seed, binary)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = FobaClassifier(k=3, alpha=0.0).fit(X, y)
        assert np.isfinite(model.coef_).all()
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_two_classes_leak_no_warning():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(8, 25)), int(rng.integers(2, 6))
        X = (rng.random((n, 8)) > 0.6).astype(float)
        y = rng.random(n) > 0.6
        y[:2] = [False, True]
        objective = Logistic(X, y, fit_intercept=True)
        literal = select(objective, k, "forward-obj")
        refined = select(objective, k, "forward-obj", refine="swap")
        assert refined[literal.end.size].value <= literal.end.value + 1e-12
