"""Thresholds from the data: how often noise is taken for a feature, and what is still found."""

import numpy as np
import pytest

from forback import FobaClassifier, FobaCovariance, FobaCRF, FobaRegressor, FobaSelector, select
from forback.datasets import make_chain, make_graph
from forback.objectives import GLM, ChainCRF, LeastSquares, Logistic, Multinomial


def noise(seed, n=80, p=30):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), rng


def build(kind, X, rng):
    n = len(X)
    if kind == "squares":
        return LeastSquares(X, rng.standard_t(4, n), fit_intercept=True)
    if kind == "logistic":
        return Logistic(X, rng.random(n) < 0.4, ridge=1e-3, fit_intercept=True)
    if kind == "poisson":
        return GLM("poisson", X, rng.poisson(2.0, n), fit_intercept=True)
    return Multinomial(X, rng.integers(0, 3, n), ridge=1e-3, fit_intercept=True)


@pytest.mark.parametrize("method", ["foba-gdt", "foba-obj"])
@pytest.mark.parametrize("kind", ["squares", "logistic", "poisson", "softmax"])
def test_noise_is_rarely_taken_for_a_feature(kind, method):
    """In one case of twenty: of 30 runs more than 6 take something with a chance of 0.3 %."""
    name = "epsilon" if method == "foba-gdt" else "delta"
    taken = 0
    for seed in range(30):
        X, rng = noise(seed)
        path = select(build(kind, X, rng), method=method, **{name: "auto"})
        taken += path.end.size > 0
    assert taken <= 6


@pytest.mark.parametrize("method", ["foba-gdt", "foba-obj"])
def test_features_are_found_beside_each_other(method):
    """A strong feature does not hide a weak one: what it explains is no noise."""
    name = "epsilon" if method == "foba-gdt" else "delta"
    exact = 0
    for seed in range(20):
        X, rng = noise(seed, n=200)
        y = 20.0 * X[:, 3] + 0.7 * X[:, 11] + rng.normal(size=200)
        path = select(LeastSquares(X, y), method=method, **{name: "auto"})
        assert {3, 11} <= set(path.end.support.tolist())
        exact += path.end.size == 2
    assert exact >= 14


def test_the_threshold_is_recorded_and_the_run_is_that_of_the_number():
    X, rng = noise(0)
    objective = LeastSquares(X, X[:, 2] + rng.normal(size=80))
    path = select(objective, epsilon="auto")
    threshold = path.settings["threshold"]
    assert threshold > 0.0
    again = select(objective, epsilon=threshold)
    assert [s.feature for s in again.steps] == [s.feature for s in path.steps]
    assert "below the threshold" in path.stop_reason


def test_the_threshold_does_not_depend_on_k_and_is_that_of_the_columns_units():
    X, rng = noise(5, n=200)
    y = X[:, 3] + X[:, 7] + X[:, 8] + rng.normal(size=200)
    thresholds = {
        select(LeastSquares(X, y), k, epsilon="auto").settings["threshold"] for k in (None, 1, 2)
    }
    assert len(thresholds) == 1
    scaled = X * np.where(np.arange(30) == 20, 1e4, 1.0)  # one column in other units
    by_gradient = select(LeastSquares(scaled, y), epsilon="auto")
    by_decrease = select(LeastSquares(scaled, y), method="foba-obj", delta="auto")
    assert by_gradient.end.size == 0
    assert {3, 7, 8} <= set(by_decrease.end.support.tolist())


def test_seeds():
    X, rng = noise(1)
    objective = LeastSquares(X, X[:, 2] + rng.normal(size=80))
    state = np.random.get_state()[1].copy()  # noqa: NPY002

    def threshold(seed):
        return select(objective, epsilon="auto", random_state=seed).settings["threshold"]

    assert threshold(0) == threshold(0) == threshold(np.random.default_rng(0))
    assert threshold(0) != threshold(1)
    np.testing.assert_array_equal(state, np.random.get_state()[1])  # noqa: NPY002
    with pytest.raises(TypeError, match="random_state"):
        threshold(np.random.RandomState(0))


def test_weights_offsets_groups_and_what_is_always_in_go_along():
    X, rng = noise(2, n=150)
    y = X[:, 0] + 3.0 * X[:, 5] + rng.normal(size=150)
    objective = LeastSquares(
        X, y, sample_weight=rng.integers(1, 3, 150), offset=0.1 * X[:, 1], fit_intercept=True
    )
    path = select(objective, epsilon="auto", always=[5], groups=[j // 2 for j in range(30)])
    assert 0 in path.end.support
    assert path.end.size <= 3
    budgeted = select(objective, epsilon="auto", budget=1)
    assert budgeted.end.size == 1


def test_objectives_without_a_response_say_so():
    chain, graph = make_chain(60), make_graph(p=5)
    with pytest.raises(ValueError, match="ChainCRF has no response whose rows"):
        select(ChainCRF(chain.X, chain.y, chain.lengths), epsilon="auto")
    with pytest.raises(ValueError, match="no response"):
        FobaCRF(epsilon="auto").fit(chain.X, chain.y, chain.lengths)
    with pytest.raises(ValueError, match="no response"):
        FobaCovariance(delta="auto", method="foba-obj").fit(graph.X)


def test_other_words_are_refused():
    X, _ = noise(3)
    with pytest.raises(ValueError, match="epsilon must be a number or \"auto\", got 'often'"):
        select(LeastSquares(X, X[:, 0]), epsilon="often")
    with pytest.raises(ValueError, match="delta='auto' is the threshold of the obj methods"):
        select(LeastSquares(X, X[:, 0]), delta="auto")


def test_estimators_take_it():
    X, rng = noise(4, n=200)
    y = X[:, 3] - X[:, 7] + rng.normal(size=200)
    model = FobaRegressor(epsilon="auto").fit(X, y)
    assert set(model.selected_.tolist()) >= {3, 7}
    assert model.k_ <= 4
    classifier = FobaClassifier(method="foba-obj", delta="auto", random_state=3).fit(X, y > 0)
    assert set(classifier.selected_.tolist()) >= {3, 7}
    selector = FobaSelector(epsilon="auto", random_state=np.random.default_rng(0)).fit(X, y)
    assert selector.transform(X).shape[1] == selector.k_
