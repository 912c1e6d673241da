"""Thresholds and bounds of the theorems: conditions, conclusions, and that they could fail."""

import numpy as np
import pytest

from forback import select
from forback.certificates import (
    Curvature,
    restricted_curvature,
    sufficient_s,
    theory_bounds,
    theory_thresholds,
)
from forback.core.blocks import Blocks
from forback.objectives import GLM, GaussianCovariance, LeastSquares, Logistic

METHODS = {"foba-gdt": "epsilon", "foba-obj": "delta"}


def orthogonal(n=400, d=80, seed=0, tilt=0.002):
    """Nearly orthogonal columns, for which the condition on s can be met."""
    rng = np.random.default_rng(seed)
    X = np.linalg.qr(rng.normal(size=(n, d)))[0] + tilt * rng.normal(size=(n, d)) / np.sqrt(n)
    return np.sqrt(n) * X / np.linalg.norm(X, axis=0), rng


def run(objective, method, true, **known):
    found = theory_thresholds(objective, true, **known)
    path = select(objective, method=method, **{METHODS[method]: getattr(found, METHODS[method])})
    return path, found


def test_the_appendix_thresholds_are_what_it_says():
    X, rng = orthogonal(100, 10)
    y = X[:, 1] + X[:, 4] + rng.normal(size=100)
    for objective in (LeastSquares(X, y), Logistic(X, y > 0, ridge=0.1, fit_intercept=True)):
        found = theory_thresholds(objective, [4, 1])
        always = np.arange(10, objective.dim)
        bar = objective.minimise(np.concatenate([[1, 4], always]))
        outside = np.setdiff1d(np.arange(10), [1, 4])
        fall = objective.decrease_if_added(bar, Blocks.singles(outside, always)).values.max()
        slope = np.abs(objective.gradient(bar)[outside]).max()
        assert found.practical_delta == pytest.approx(fall * (1 + 1e-6), rel=1e-12)
        assert found.practical_epsilon == pytest.approx(slope * (1 + 1e-6), rel=1e-12)
        assert found.gradient == pytest.approx(slope)
        assert found.delta is found.epsilon is found.curvature is None


def test_the_theorems_thresholds_are_what_they_say():
    X, rng = orthogonal(100, 10)
    objective = LeastSquares(X, X[:, 1] + rng.normal(size=100))
    found = theory_thresholds(objective, [1], s=4, method="exact")
    rho = restricted_curvature(objective, 4, "exact")
    g = found.gradient
    assert found.delta / (4 * rho.single / rho.lower**2 * g**2) == pytest.approx(1 + 1e-6)
    assert found.epsilon / (np.sqrt(8) * rho.single / rho.lower * g) == pytest.approx(1 + 1e-6)
    again = theory_thresholds(objective, [1], curvature=rho)
    assert (again.delta, again.epsilon, again.curvature) == (found.delta, found.epsilon, rho)


def test_without_noise_or_curvature_thresholds_are_zero_or_infinite():
    X, rng = orthogonal(100, 5)
    exact = theory_thresholds(
        LeastSquares(X, X[:, 2]), [2], curvature=Curvature(1, 1, 1, 1, "bound")
    )
    assert exact.practical_epsilon < 1e-12
    flat = theory_thresholds(Logistic(X, X[:, 2] + rng.normal(size=100) > 0), [2], s=2)
    assert (flat.delta, flat.epsilon) == (np.inf, np.inf)
    everything = theory_thresholds(LeastSquares(X, X[:, 2]), range(5), s=5)
    assert (everything.gradient, everything.delta, everything.practical_delta) == (0.0, 0.0, 0.0)


def test_supports_by_name_and_bad_ones():
    pd = pytest.importorskip("pandas")
    X, rng = orthogonal(50, 3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    y = X[:, 1] + rng.normal(size=50)
    named = theory_thresholds(LeastSquares(frame, y), ["b"])
    numbered = theory_thresholds(LeastSquares(X, y), [1])
    assert named.practical_epsilon == pytest.approx(numbered.practical_epsilon)
    with pytest.raises(ValueError, match="support"):
        theory_thresholds(LeastSquares(frame, y), ["d"])
    with pytest.raises((ValueError, IndexError), match="support"):
        theory_thresholds(LeastSquares(X, y), [3])


@pytest.mark.parametrize("method", METHODS)
def test_the_conclusions_hold_where_the_conditions_do(method):
    """Strong and weak coefficients; every inequality, and exact recovery where promised."""
    counts = {"weak": 0, "recovered": 0, "missed": 0}
    for seed in range(15):
        X, rng = orthogonal(seed=seed)
        true = np.sort(rng.choice(80, 2, replace=False))
        signal = rng.choice([-1, 1], 2) * rng.uniform(0.02, 2.5, 2)
        objective = LeastSquares(X, X[:, true] @ signal + rng.normal(size=400))
        path, _ = run(objective, method, true, curvature=sufficient_s(objective, 2))
        bounds = theory_bounds(objective, path, true)
        assert not bounds.vacuous, bounds.obstacles
        assert bounds.condition.holds
        assert bounds.curvature.s <= 80
        assert bounds.holds, str(bounds)
        assert path.end.size <= bounds.curvature.s - 2
        assert not bounds.strong or bounds.recovered
        counts["weak"] += bounds.weak > 0
        counts["recovered"] += bounds.strong
        counts["missed"] += bounds.inequalities[4].left > 0
    assert min(counts.values()) > 1  # all cases were met


@pytest.mark.parametrize("method", METHODS)
def test_a_wrong_curvature_would_be_noticed(method):
    """The conclusions are not trivially true: thirty times the curvature breaks them."""
    broken = 0
    for seed in range(20):
        X, rng = orthogonal(seed=seed)
        objective = LeastSquares(X, 0.3 * X[:, 0] + rng.normal(size=400))
        path, _ = run(objective, method, [0], s=40)
        rho = restricted_curvature(objective, 40)
        wrong = Curvature(40, 30 * rho.lower, 30 * rho.upper, rho.single, "bound")
        bounds = theory_bounds(objective, path, [0], curvature=wrong)
        broken += not all(one.holds for one in bounds.inequalities)
    assert broken > 5


def test_on_tiny_problems_the_theorems_are_vacuous_but_sizes_may_prove_the_errors():
    """Only |F and true support| <= s is used by the proofs of Theorems 4 and 5."""
    proved = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(30, 5))
        true = np.sort(rng.choice(5, 2, replace=False))
        objective = LeastSquares(X, X[:, true] @ rng.normal(size=2) + 0.3 * rng.normal(size=30))
        rho = restricted_curvature(objective, 5, "exact")
        for method in METHODS:
            path, _ = run(objective, method, true, curvature=rho)
            bounds = theory_bounds(objective, path, true, curvature=rho)
            assert bounds.vacuous
            assert "fails the sparsity condition" in bounds.obstacles[-1]
            assert "vacuous" in str(bounds)
            assert bounds.by_size
            errors = [
                one for one in bounds.inequalities if one.source in ("Theorem 4", "Theorem 5")
            ]
            assert len(errors) == 4
            assert all(one.holds for one in errors), str(bounds)
            proved += path.end.size > 0
    assert proved > 100


def test_the_first_bound_of_theorem_4_has_the_units_of_its_proof():
    """Columns twice as long: errors fall to a quarter, and so must the bound."""
    X, rng = orthogonal()
    y = 0.1 * X[:, 0] + rng.normal(size=400)
    bounds = []
    for scale in (1.0, 2.0):
        objective = LeastSquares(scale * X, y)
        path, _ = run(objective, "foba-obj", [0], s=40)
        bounds.append(theory_bounds(objective, path, [0], s=40))
    one, two = (b.inequalities[2] for b in bounds)
    assert one.name == "squared estimation error"
    assert bounds[0].weak == bounds[1].weak == 1
    assert two.left == pytest.approx(one.left / 4)
    assert two.right == pytest.approx(one.right / 4)
    rho, delta = bounds[0].curvature, bounds[0].threshold
    assert one.right == pytest.approx(16 * rho.single * delta / rho.lower**2)


def test_what_makes_the_theorems_vacuous_is_named():
    X, rng = orthogonal(d=60)
    objective = LeastSquares(X, X[:, 0] + rng.normal(size=400))
    good = theory_thresholds(objective, [0], s=40)

    def obstacles(path, **options):
        bounds = theory_bounds(objective, path, [0], **options)
        assert bounds.vacuous
        assert not bounds.strong
        return "; ".join(bounds.obstacles)

    assert "did not end by its threshold" in obstacles(select(objective, k=0, epsilon=good.epsilon))
    assert "is not above" in obstacles(select(objective, epsilon=0.9 * good.epsilon))
    forward = select(objective, method="forward-gdt", epsilon=good.epsilon)
    assert "no backward steps" in obstacles(forward)
    assert "ratio=0.5" in obstacles(select(objective, epsilon=good.epsilon, ratio=0.3))
    assert "single candidates" in obstacles(select(objective, epsilon=good.epsilon, budget=3))
    few = LeastSquares(X[:30], X[:30, 0])
    path = select(few, epsilon=1.0)
    assert "exceeds the number of rows" in str(theory_bounds(few, path, [0], s=40))
    poisson = GLM("poisson", 0.1 * X, np.ones(400))
    assert "rho_-(5) is 0" in str(theory_bounds(poisson, select(poisson, epsilon=1.0), [0], s=5))
    with pytest.raises(ValueError, match="needs s"):
        theory_bounds(objective, select(objective, epsilon=1.0), [0], method="exact")


def test_estimates_are_not_called_proofs():
    X, rng = orthogonal(d=60)
    objective = LeastSquares(X, 3 * X[:, 0] + rng.normal(size=400))
    sample = restricted_curvature(objective, 40, "sample", trials=3)
    path, _ = run(objective, "foba-gdt", [0], curvature=sample)
    bounds = theory_bounds(objective, path, [0], curvature=sample)
    assert bounds.vacuous
    assert "estimate, so that nothing is proved" in str(bounds)


def test_the_dictionary_has_the_numbers():
    X, rng = orthogonal(d=60)
    objective = LeastSquares(X, 3 * X[:, 0] + rng.normal(size=400), fit_intercept=True)
    path, found = run(objective, "foba-gdt", [0], s=40)
    content = theory_bounds(objective, path, [0]).to_dict()
    assert content["threshold"] == found.epsilon
    assert content["recovered"]
    assert content["strong"]
    assert content["inequalities"]["Theorem 5, wrong features"] == [0, 0.0, True]


def test_thresholds_are_readable_and_small_s_is_refused():
    X, rng = orthogonal(100, 10)
    objective = LeastSquares(X, X[:, 1] + X[:, 4] + rng.normal(size=100), fit_intercept=True)
    found = theory_thresholds(objective, [1, 4], s=5)
    assert found.point.size == 2
    assert "appendix: delta" in str(found)
    assert "theorems: delta" in str(found)
    assert "theorems" not in str(theory_thresholds(objective, [1, 4]))
    with pytest.raises(ValueError, match="s=1 is less than the 2 features of support"):
        theory_thresholds(objective, [1, 4], s=1)
    with pytest.raises(ValueError, match="method must be one of"):
        theory_thresholds(objective, [1], method="guess")


def test_a_covariance_without_a_number_of_rows_has_bounds_all_the_same():
    rng = np.random.default_rng(0)
    objective = GaussianCovariance(np.cov(rng.normal(size=(60, 4)), rowvar=False))
    bounds = theory_bounds(objective, select(objective, k=1), [0], s=3, method="sample")
    assert bounds.vacuous


def test_a_budget_does_not_change_which_theorem_is_asked():
    X = np.random.default_rng(0).normal(size=(60, 5))
    objective = LeastSquares(X, 3.0 * X[:, 1] + X[:, 2])
    limit = {"method": "foba-obj", "delta": 0.1}
    free, paid = (
        theory_bounds(objective, select(objective, **limit, **money), [1, 2], s=3)
        for money in ({}, {"budget": 5.0})
    )
    assert paid.needed == free.needed
    assert paid.gamma == free.gamma
    assert [one.source for one in paid.inequalities] == [one.source for one in free.inequalities]
    assert any("without a budget" in obstacle for obstacle in paid.obstacles)
