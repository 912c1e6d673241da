"""Restricted curvature: enumerated, bounded, sampled."""

from itertools import combinations

import numpy as np
import pytest

from forback.certificates import Curvature, restricted_curvature, sufficient_s
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


def problem(seed, n=30, p=6, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) @ (np.eye(p) + 0.5 * rng.normal(size=(p, p))) + shift
    return X, X[:, 0] - X[:, 1] + rng.normal(size=n)


def brute_force(hessian, s):
    parts = [hessian[np.ix_(c, c)] for c in combinations(range(len(hessian)), s)]
    values = [np.linalg.eigvalsh(part) for part in parts]
    return min(v[0] for v in values), max(v[-1] for v in values)


@pytest.mark.parametrize("s", [1, 2, 4, 6])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_exact_is_what_the_definition_says(s, ridge):
    X, y = problem(0)
    found = restricted_curvature(LeastSquares(X, y, ridge=ridge), s, "exact")
    hessian = X.T @ X / len(X) + ridge * np.eye(6)
    np.testing.assert_allclose([found.lower, found.upper], brute_force(hessian, s), rtol=1e-10)
    assert found.single == pytest.approx(hessian.diagonal().max())
    assert found.certified
    assert "exact" in str(found)


def test_an_intercept_follows_along():
    X, y = problem(1, shift=3.0)
    with_intercept = restricted_curvature(LeastSquares(X, y, fit_intercept=True), 3, "exact")
    centred = restricted_curvature(LeastSquares(X - X.mean(axis=0), y), 3, "exact")
    raw = restricted_curvature(LeastSquares(X, y), 3, "exact")
    assert with_intercept.lower == pytest.approx(centred.lower, rel=1e-8)
    assert with_intercept.upper == pytest.approx(raw.upper)  # Q itself, not minimised over it


def test_what_is_always_in_is_not_counted():
    X, y = problem(2)
    found = restricted_curvature(LeastSquares(X, y), 2, "exact", always=[0, 3])
    rest = [1, 2, 4, 5]
    projector = np.eye(len(X)) - X[:, [0, 3]] @ np.linalg.pinv(X[:, [0, 3]])
    left = projector @ X[:, rest]
    assert found.lower == pytest.approx(brute_force(left.T @ left / len(X), 2)[0])
    with pytest.raises(ValueError, match="s=5 candidates cannot move at once: there are 4"):
        restricted_curvature(LeastSquares(X, y), 5, always=[0, 3])


@pytest.mark.parametrize("seed", range(40))
def test_bounds_enclose_and_samples_are_enclosed(seed):
    X, y = problem(seed, n=25, p=7)
    weights = np.random.default_rng(seed).integers(1, 4, 25)
    objective = LeastSquares(X, y, ridge=0.1 * (seed % 3), sample_weight=weights)
    for s in (1, 2, 4):
        exact = restricted_curvature(objective, s, "exact")
        bound = restricted_curvature(objective, s, "bound")
        sample = restricted_curvature(objective, s, "sample", trials=3, random_state=seed)
        hair = 1e-5 * exact.upper
        assert bound.lower <= exact.lower + 1e-12 <= sample.lower + hair
        assert sample.upper - hair <= exact.upper <= bound.upper * (1 + 1e-12)
        assert sample.single <= exact.single + hair == bound.single + hair
        assert (bound.certified, sample.certified) == (True, False)


def test_greedy_supports_are_worse_than_random_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 40))
    X[:, 7] = X[:, 21] + 0.05 * rng.normal(size=200)  # one pair that chance hardly finds
    objective = LeastSquares(X, X[:, 0])
    found = restricted_curvature(objective, 2, "sample", trials=5)
    assert found.lower == pytest.approx(restricted_curvature(objective, 2, "exact").lower, rel=1e-3)


def test_bounds_of_a_logistic_loss_come_from_its_curvature():
    X, y = problem(3)
    objective = Logistic(X, y > 0, ridge=0.2)
    found = restricted_curvature(objective, 3, "bound")
    assert found.lower == pytest.approx(0.2)
    assert found.upper <= 0.25 * np.linalg.eigvalsh(X.T @ X / len(X))[-1] + 0.2 + 1e-9
    inner = restricted_curvature(objective, 3, "sample", trials=5)
    assert found.lower <= inner.lower <= inner.upper <= found.upper


def test_a_loss_without_an_upper_curvature_has_an_infinite_bound():
    X, _ = problem(4)
    objective = GLM("poisson", 0.1 * X, np.ones(len(X)), ridge=0.5)
    found = restricted_curvature(objective, 2)
    assert (found.upper, found.single, found.condition) == (np.inf, np.inf, np.inf)
    assert found.lower == pytest.approx(0.5)


@pytest.mark.parametrize("seed", range(3))
def test_bounds_of_softmax_enclose_its_samples(seed):
    X, y = problem(seed)
    for intercept in (False, True):
        objective = Multinomial(X, np.digitize(y, [-1, 1]), ridge=0.1, fit_intercept=intercept)
        bound = restricted_curvature(objective, 3)
        sample = restricted_curvature(objective, 3, "sample", trials=5)
        assert bound.lower <= sample.lower + 1e-6
        assert sample.upper <= bound.upper


@pytest.mark.parametrize("kind", ["chain", "graph", "function"])
def test_any_objective_can_be_sampled_and_the_others_say_why_not(kind):
    if kind == "chain":
        chain = make_chain(60)
        objective = ChainCRF(chain.X, chain.y, chain.lengths)
    elif kind == "graph":
        objective = GaussianCovariance.from_data(make_graph(p=5).X)
    else:
        H = np.diag([1.0, 2.0, 3.0])
        objective = from_function(lambda b: (0.5 * b @ H @ b - b.sum(), H @ b - 1.0), 3)
    found = restricted_curvature(objective, 2, "sample", trials=2)
    assert 0.0 < found.lower < found.upper
    if kind == "function":
        assert (found.lower, found.upper) == pytest.approx((1.0, 3.0), rel=1e-6)
    for method in ("bound", "exact"):
        with pytest.raises(ValueError, match='take method="sample"'):
            restricted_curvature(objective, 2, method)


def test_bad_arguments_are_named():
    X, y = problem(5)
    objective = LeastSquares(X, y)
    with pytest.raises(ValueError, match="method must be one of"):
        restricted_curvature(objective, 2, "guess")
    with pytest.raises(ValueError, match="s must be at least 1"):
        restricted_curvature(objective, 0)
    with pytest.raises(ValueError, match="always names the column 'a', but columns have no names"):
        restricted_curvature(objective, 1, always=["a"])
    with pytest.raises(ValueError, match="always holds column 6; columns are numbered 0 to 5"):
        restricted_curvature(objective, 1, always=[6])
    with pytest.raises(ValueError, match="needs a quadratic objective"):
        restricted_curvature(Logistic(X, y > 0), 2, "exact")
    wide = LeastSquares(np.random.default_rng(0).normal(size=(10, 60)), np.ones(10))
    with pytest.raises(ValueError, match=r"supports of 8 out of 60 .* too many"):
        restricted_curvature(wide, 8, "exact")


def test_asking_changes_nothing():
    X, y = problem(6)
    kept = X.copy(), y.copy()
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    for method in ("exact", "bound", "sample"):
        objective = LeastSquares(X, y)
        once, again = (restricted_curvature(objective, 2, method) for _ in range(2))
        assert once == again
    np.testing.assert_array_equal(X, kept[0])
    np.testing.assert_array_equal(y, kept[1])
    np.testing.assert_array_equal(state, np.random.get_state()[1])  # noqa: NPY002


def test_the_condition_on_s_is_17_k_plus_17_for_orthogonal_columns():
    X = 10.0 * np.linalg.qr(np.random.default_rng(0).normal(size=(100, 90)))[0]
    objective = LeastSquares(X, X[:, 0])
    for k in (0, 1, 3):
        found = sufficient_s(objective, k)
        assert found.s in (17 * k + 17, 17 * k + 18)
    assert sufficient_s(objective, 5) is None
    assert sufficient_s(LeastSquares(*problem(7)), 1) is None


def test_curvature_says_what_it_is():
    kinds = {Curvature(1, 1.0, 2.0, 2.0, method).kind for method in ("exact", "bound", "sample")}
    assert len(kinds) == 3
    assert Curvature(1, 0.0, 2.0, 2.0, "bound").condition == np.inf
