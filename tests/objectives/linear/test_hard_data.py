"""Separation, empty and constant columns, wild scales: no crash, no NaN, honest notes."""

import contextlib
from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize, sparse

from forback import select
from forback.core.blocks import Blocks
from forback.core.status import Status
from forback.objectives import GLM, LeastSquares, Logistic
from forback.objectives.linear.problem import Response
from support.problems import LOSSES, make_problem, make_response

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
    assert any(step.point.status is Status.NO_MINIMISER for step in path.steps)
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


@pytest.mark.parametrize("backward", ["coordinate", "refit"])
@pytest.mark.parametrize("noise", [1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize("loss", LOSSES)
def test_columns_that_are_almost_copies_do_not_keep_a_run_going(loss, noise, backward):
    problem = make_problem(loss, "gaussian", 12, n=60, p=5, ridge=0.0, fit_intercept=True)
    rng = np.random.default_rng(13)
    problem.X = np.c_[problem.X, problem.X * (1 + noise * rng.normal(size=problem.X.shape))]
    path = select(problem.objective(), backward=backward, max_steps=60)
    assert "max_steps" not in path.stop_reason
    assert not any("not converged" in step.note for step in path.steps)
    values = [path.best(size).value for size in path.sizes]
    assert all(after <= before for before, after in pairwise(values))


@pytest.mark.parametrize(
    ("loss", "factor"), [("poisson", 1e20), ("gamma", 1e-20), ("gamma", 1e20), ("poisson", 1e-6)]
)
def test_the_intercept_is_found_however_far_it_is(loss, factor):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(60, 3))
    y = factor * np.exp(X[:, 1])
    objective = GLM(loss, X, y, fit_intercept=True)
    path = select(objective, k=1, method="foba-obj")
    assert path.start.coef[0] == pytest.approx(np.log(y.mean()), rel=1e-6)
    assert path.steps[0].feature == 1
    assert path.end.coef == pytest.approx([1.0, np.log(factor)], rel=1e-6)


def test_saturated_offsets_do_not_stall_the_fit_or_its_score():
    rng = np.random.default_rng(9)
    X, offset = rng.normal(size=(50, 2)), np.zeros(50)
    y = (rng.random(50) < 0.5).astype(float)
    offset[:2], X[:2, 0], X[2:, 0], y[:2] = (60.0, 57.0), 1.0, 0.0, 0.0
    objective = Logistic(X, y, offset=offset, ridge=1e-6)
    start = objective.minimise(np.zeros(0, dtype=int))
    point = objective.minimise(np.array([0]))
    assert_optimal(objective, select(objective, k=1, method="foba-obj"))
    score = objective.decrease_if_added(
        start, Blocks.singles(np.arange(2), np.zeros(0, int))
    ).values[0]
    assert score == pytest.approx(start.value - point.value, rel=1e-9)
    assert score > 2.0


@pytest.mark.parametrize("scale", [1e-6, 1e3, 1e5])
@pytest.mark.parametrize("method", METHODS)
def test_huber_works_in_any_units_of_y(scale, method):
    rng = np.random.default_rng(10)
    X = rng.normal(size=(80, 5))
    y = scale * (5 + X[:, 2] - X[:, 4] + 0.3 * rng.standard_t(3, size=80))
    objective = GLM("huber", X, y, fit_intercept=True)
    path = select(objective, k=2, method=method)
    assert [s.feature for s in path.steps] == [2, 4] or [s.feature for s in path.steps] == [4, 2]
    assert_optimal(objective, path)
    singles = Blocks.singles(np.arange(5), np.array([5]))
    scores = objective.decrease_if_added(path.start, singles).values
    beta = path.start.dense(6)
    for j in range(5):
        along = np.arange(6) == j
        slope = lambda a, e=along, j=j: objective.value_and_gradient(beta + a * e)[1][j]  # noqa: E731
        a = optimize.brentq(slope, -9 * scale, 9 * scale, xtol=1e-14 * scale)
        least = objective.value_and_gradient(beta + a * along)[0]
        assert scores[j] == pytest.approx(path.start.value - least, rel=1e-7)


def test_what_is_negligible_is_judged_after_what_is_always_in():
    rng = np.random.default_rng(11)
    Z = rng.normal(size=(100, 4))
    y = 1e6 + Z[:, 1] + 0.1 * rng.normal(size=100)
    by_column = select(LeastSquares(np.c_[np.ones(100), Z], y), always=[0])
    by_intercept = select(LeastSquares(Z, y, fit_intercept=True))
    assert [s.feature - 1 for s in by_column.steps] == [s.feature for s in by_intercept.steps]
    assert by_column.end.size == 4
    dominated = select(LeastSquares(Z, 1e7 * Z[:, 0] + Z[:, 1]), always=[0])
    assert dominated.end.size >= 1
    assert dominated.steps[0].feature == 1


@pytest.mark.parametrize("shift", [1e4, 1e7, 1e9])
@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
def test_columns_far_from_zero_beside_an_intercept(shift, make):
    rng = np.random.default_rng(12)
    z = rng.normal(size=(200, 2))
    y = z[:, 0] + 0.01 * rng.normal(size=200)
    X = make(z + shift)
    point = LeastSquares(X, y, fit_intercept=True).minimise(np.arange(3))
    exact = np.linalg.lstsq(np.c_[z, np.ones(200)], y, rcond=None)[0]
    np.testing.assert_allclose(point.coef[:2], exact[:2], rtol=0, atol=1e-16 * shift + 1e-9)
    assert point.note == ""


def test_numbers_too_large_for_the_loss_are_named():
    X = np.random.default_rng(13).normal(size=(30, 3))
    y = np.arange(30.0)
    with pytest.raises(ValueError, match=r"y and offset must be below 3e\+150"):
        LeastSquares(X, 1e160 * y)
    with pytest.raises(ValueError, match=r"y and offset must be below 3e\+150"):
        LeastSquares(X, y, offset=1e160 * y)
    with pytest.raises(ValueError, match="y or offset is too large"):
        select(GLM("poisson", X, y, offset=np.full(30, 1000.0)))
    for loss in ("poisson", "gamma"):
        for extreme in (1e-200, 1e200):
            with pytest.raises(ValueError, match=rf"y must be 0 or between 9e-78 .* the {loss}"):
                GLM(loss, X, np.where(y == 3.0, extreme, 1.0))
    with pytest.raises(ValueError, match="X must have columns that are zero or reach 9e-302"):
        select(LeastSquares(1e-310 * X, y))
    same = select(LeastSquares(X, y, sample_weight=np.full(30, 1e308)), k=2)
    np.testing.assert_allclose(same.coef(2), select(LeastSquares(X, y), k=2).coef(2), rtol=1e-9)


def test_a_column_whose_rows_fit_from_the_start_converges():
    X = np.zeros((5, 2))
    X[:2, 0], X[2:, 1] = 1.0, [1.0, -1.0, 2.0]
    path = select(Logistic(X, [1, 1, 0, 0, 0], offset=np.array([40.0, 40, 0, 0, 0]), ridge=1e-3))
    assert not any("not converged" in point.note for point in path.points)
    squares = select(LeastSquares(X, [1.0, 1.0, 0, 0, 0], offset=[1.0, 1.0, 0, 0, 1.0]), always=[0])
    assert squares.start.note == ""


def test_dependent_columns_in_a_group_are_fitted_with_the_smallest_coefficients():
    """All dummies of a category beside an intercept: singular, and still a plain answer."""
    rng = np.random.default_rng(14)
    category = rng.integers(0, 4, size=120)
    X = np.c_[np.eye(4)[category], rng.normal(size=(120, 2))]
    eta = np.array([0.0, 1.0, -1.0, 0.5])[category] + X[:, 4]
    for loss in LOSSES:
        y = make_response(loss, eta, np.random.default_rng(15))
        objective = GLM(loss, X, y, fit_intercept=True)
        for make in ("coordinate", "refit"):
            path = select(objective, groups=["c", "c", "c", "c", "a", "b"], backward=make)
            assert_optimal(objective, path)
            assert np.abs(path.end.coef).max() < 20, loss


@pytest.mark.parametrize("shift", [-800.0, -100.0, 100.0, 600.0, 1000.0])
@pytest.mark.parametrize("loss", ["logistic", "poisson", "gamma", "squared", "huber"])
def test_an_intercept_makes_up_for_any_offset(loss, shift):
    problem = make_problem(loss, "gaussian", 16, n=80, p=5, ridge=1e-3, fit_intercept=True)
    plain = select(problem.objective(), k=3)
    problem.options["offset"] = np.full(80, shift)
    moved = select(problem.objective(), k=3)
    assert [s.feature for s in moved.steps] == [s.feature for s in plain.steps]
    np.testing.assert_allclose(moved.coef(3)[:5], plain.coef(3)[:5], rtol=1e-6, atol=1e-9)
    # Without an intercept the features may have to do it, or the loss may overflow; no crash.
    problem.options["fit_intercept"] = False
    with contextlib.suppress(ValueError):
        path = select(problem.objective(), k=2, method="foba-obj")
        assert all(np.isfinite(point.coef).all() for point in path.points)


@pytest.mark.parametrize("loss", ["squared", "huber", "poisson", "gamma"])
def test_perfect_fits_are_not_called_unconverged(loss):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(12, 6)) * (rng.random((12, 6)) < 0.5)
        eta = X[:, 1] - X[:, 3]
        y = np.exp(eta) if loss in ("poisson", "gamma") else eta
        for fit_intercept in (False, True):
            path = select(GLM(loss, X, y, fit_intercept=fit_intercept))
            assert not any("not converged" in point.note for point in path.points)
    one = GLM(loss, np.ones((1, 2)), [0.032], fit_intercept=True).minimise(np.array([2]))
    assert one.note == ""


def test_a_large_mean_of_y_is_no_cause_for_alarm():
    rng = np.random.default_rng(17)
    X = rng.normal(size=(60, 5))
    y = X[:, 1] * 2 - X[:, 3] + 0.1 * rng.normal(size=60)
    for mean in (1e6, 1e9, 1e12):
        path = select(LeastSquares(X, y + mean, fit_intercept=True), k=2)
        assert {s.feature for s in path.steps} == {1, 3}
        assert not any(point.note for point in path.points)


@pytest.mark.parametrize("spread", [30.0, 300.0, 1000.0])
@pytest.mark.parametrize("ridge", [0.0, 1e-6])
def test_offsets_that_scatter_widely_still_give_the_optimum(spread, ridge):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 3))
        y = X[:, 0] + rng.logistic(size=40) > 0
        offset = spread * rng.normal(size=40)
        objective = Logistic(X, y, offset=offset, fit_intercept=True, ridge=ridge)
        point = objective.minimise(np.arange(4))
        best = optimize.minimize(
            objective.value_and_gradient, point.coef, jac=True, method="L-BFGS-B",
            options={"gtol": 1e-12, "ftol": 1e-15, "maxiter": 5000},
        )  # fmt: skip
        assert point.value <= best.fun + 1e-9 * abs(best.fun)
        cold = optimize.minimize(
            objective.value_and_gradient, np.zeros(4), jac=True, method="L-BFGS-B",
            options={"gtol": 1e-12, "ftol": 1e-15, "maxiter": 5000},
        )  # fmt: skip
        assert point.value <= cold.fun + 1e-6 * abs(cold.fun)


def test_an_overshoot_is_taken_back_quickly():
    objective = GLM("logistic", [[2.0]], [0], offset=[10.7], ridge=1e-8)
    point = objective.minimise(np.array([0]))
    assert point.note == ""
    assert point.value < 1e-5


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e3, 1e6, 1e9, 1e12])
def test_huber_is_fitted_where_its_threshold_is_small(scale, method):
    """Nearly least absolute deviations: the loss has corners, and most residuals lie far out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = scale * (X[:, 1] - X[:, 2] + 0.1 * rng.normal(size=60))
    objective = GLM("huber", X, y, fit_intercept=True)
    path = select(objective, 2, method)
    assert sorted(path.end.support[:2]) == [1, 2]
    for step in path.steps:
        assert step.note == ""
        value, gradient = objective.value_and_gradient(step.point.dense(6))
        sizes = np.append(np.abs(X).mean(axis=0), 1.0)[step.point.support]
        seen = 1.35 * 1e-9 + 1e-16 * scale  # what is inside the threshold is rounded, too
        assert (np.abs(gradient[step.point.support]) <= seen * sizes).all()
        assert value == pytest.approx(step.value, rel=1e-12)


def test_no_fit_does_more_than_a_bounded_amount_of_work(monkeypatch):
    calls = []
    moved = Response.moved
    monkeypatch.setattr(Response, "moved", lambda *given: calls.append(None) or moved(*given))
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 5))
    for scale in (1e14, 1e16, 1e20, 1e100):
        y = scale * (X[:, 1] - X[:, 2] + 0.1 * rng.normal(size=60))
        objective = GLM("huber", X, y, fit_intercept=True)
        calls.clear()
        objective.minimise(np.array([1, 2, 5]))
        assert len(calls) < 20_000
