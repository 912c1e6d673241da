"""Descent by learnt curvature: where it ends, what it learns, what it never does."""

import numpy as np
import pytest

from forback.core.status import Status
from forback.solvers.bfgs import MIN_BOUNDING_CURVATURE, Descent, descend, inverse_on


def make_quadratic(size, condition, seed=0):
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(size, size)))[0]
    H = turn @ np.diag(np.logspace(0, -np.log10(condition), size)) @ turn.T
    return H, rng.normal(size=size)


class Watched:
    """A function that remembers where it was evaluated."""

    def __init__(self, function):
        self.function, self.places = function, []

    def __call__(self, coef):
        self.places.append(coef.copy())
        return self.function(coef)


def run(function, start, *, inverse=None, least=None, **options) -> tuple[Descent, Watched]:
    watched = Watched(function)
    size = len(start)
    settings = {"steep": 1e-8, "unit": 1.0, "max_iter": 1000} | options
    found = descend(
        watched, start, np.eye(size) if inverse is None else inverse,
        least=np.zeros(size) if least is None else least, **settings,
    )  # fmt: skip
    np.testing.assert_array_equal(watched.places[-1], found.place.coef)
    value, gradient = function(found.place.coef)
    assert value == found.place.value
    np.testing.assert_array_equal(gradient, found.place.gradient)
    at_start = function(start)[0]
    assert value <= at_start + 1e-12 * max(1.0, abs(at_start))
    return found, watched


def quadratic(H, b):
    return lambda x: (0.5 * x @ H @ x - b @ x, H @ x - b)


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e5])
@pytest.mark.parametrize("size", [1, 2, 10])
def test_a_quadratic(size, condition):
    H, b = make_quadratic(size, condition)
    found, watched = run(quadratic(H, b), np.zeros(size))
    assert found.status is Status.CONVERGED
    assert len(watched.places) <= 25 * size
    exact = np.linalg.solve(H, b)
    assert found.place.value == pytest.approx(-0.5 * b @ exact, rel=1e-10)


def test_with_the_exact_inverse_one_step_is_enough():
    H, b = make_quadratic(10, 1e6)
    _, watched = run(quadratic(H, b), np.zeros(10), inverse=np.linalg.inv(H))
    assert len(watched.places) == 2


def test_at_the_minimum_nothing_moves():
    H, b = make_quadratic(6, 10.0)
    exact = np.linalg.solve(H, b)
    found, watched = run(quadratic(H, b), exact, inverse=np.linalg.inv(H))
    assert len(watched.places) == 1
    np.testing.assert_array_equal(found.place.coef, exact)


def test_the_inverse_hessian_is_learnt():
    H, b = make_quadratic(5, 10.0)
    found, _ = run(quadratic(H, b), np.zeros(5), steep=1e-11, least=np.full(5, 1e-3))
    np.testing.assert_allclose(found.inverse, found.inverse.T, atol=1e-12)
    np.testing.assert_allclose(found.inverse @ H, np.eye(5), atol=0.1)


def test_the_given_inverse_and_start_are_left_as_they_are():
    H, b = make_quadratic(4, 10.0)
    start, inverse = np.ones(4), np.eye(4)
    start.flags.writeable = inverse.flags.writeable = False
    run(quadratic(H, b), start, inverse=inverse)


def logistic(A, ridge):
    def function(x):
        eta = A @ x
        p = 1.0 / (1.0 + np.exp(eta))
        value = np.logaddexp(0.0, -eta).mean() + 0.5 * ridge * x @ x
        return value, -A.T @ p / len(A) + ridge * x

    return function


@pytest.mark.parametrize("ridge", [1e-8, 1e-4, 1.0])
@pytest.mark.parametrize("scales", [0, 2, 4])
def test_ill_conditioned_logistic_regression(scales, ridge):
    rng = np.random.default_rng(scales)
    A = rng.normal(size=(200, 6)) * np.logspace(0, -scales, 6)
    A *= np.where(rng.random(200) < 0.3, -1.0, 1.0)[:, None]
    function = logistic(A, ridge)
    found, _ = run(function, np.full(6, 3.0), least=np.full(6, ridge))
    assert found.status is Status.CONVERGED
    left = found.place.gradient
    assert 0.5 * left @ left / max(ridge, MIN_BOUNDING_CURVATURE) <= 1e-9
    assert np.abs(left).max() <= 1e-7


def far_wall(x):
    """Flat to the left, steep to the right: curvature changes by e^40 on the way."""
    return float(np.exp(x).sum() - 1e-6 * x.sum()), np.exp(x) - 1e-6


@pytest.mark.parametrize("start", [-20.0, 0.0, 20.0])
def test_where_curvature_changes_a_great_deal(start):
    with np.errstate(over="ignore"):
        found, _ = run(far_wall, np.array([start, 0.5 * start]), steep=1e-12)
    np.testing.assert_allclose(found.place.coef, np.log(1e-6), atol=0.05)


def test_a_step_that_is_much_too_short_is_lengthened():
    function = quadratic(np.diag([1e-6, 1e-6]), np.array([1.0, -2.0]))
    found, watched = run(function, np.zeros(2), inverse=1e-3 * np.eye(2))
    assert found.status is Status.CONVERGED
    assert len(watched.places) < 60
    np.testing.assert_allclose(found.place.coef, [1e6, -2e6], rtol=1e-4)


def test_a_step_that_is_much_too_long_is_shortened():
    found, _ = run(quadratic(np.eye(2), np.ones(2)), np.zeros(2), inverse=1e9 * np.eye(2))
    np.testing.assert_allclose(found.place.coef, 1.0, rtol=1e-6)


def test_values_that_are_not_numbers_count_as_too_far():
    def barrier(x):
        with np.errstate(invalid="ignore", divide="ignore"):
            return float((x - np.log(x)).sum()), 1.0 - 1.0 / x

    found, _ = run(barrier, np.array([0.01, 5.0]), inverse=100.0 * np.eye(2))
    np.testing.assert_allclose(found.place.coef, 1.0, rtol=1e-6)


def test_an_inverse_that_points_uphill_does_not_end_the_descent():
    H, b = make_quadratic(4, 10.0)
    inverse = np.eye(4)
    inverse[0, 1] = inverse[1, 0] = -5.0
    start = np.linalg.solve(H, b) + np.linalg.solve(H, [1.0, 1.0, 0.0, 0.0])
    found, _ = run(quadratic(H, b), start, inverse=inverse)
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.place.coef, np.linalg.solve(H, b), rtol=1e-5, atol=1e-6)


def test_too_few_steps_are_reported():
    H, b = make_quadratic(10, 1e4)
    found, _ = run(quadratic(H, b), np.zeros(10), max_iter=2)
    assert found.status is Status.MAX_ITER


def test_a_gradient_that_lies_is_reported():
    found, _ = run(lambda x: (float(x @ x), -2.0 * x), np.ones(2))
    assert found.status is Status.STUCK
    np.testing.assert_array_equal(found.place.coef, 1.0)


def test_without_variables_there_is_nothing_to_do():
    found, watched = run(lambda x: (2.5, x), np.zeros(0))
    assert (found.place.value, found.status, len(watched.places)) == (2.5, Status.CONVERGED, 1)


@pytest.mark.parametrize("leaving", [[0], [3], [1, 4], [0, 1, 2, 3, 4, 5], []])
def test_those_that_leave_are_held_fixed(leaving):
    H = make_quadratic(6, 50.0)[0]
    support = np.array([2, 3, 5, 8, 13, 21])
    wanted = np.delete(support, leaving)
    found = inverse_on(np.linalg.inv(H), support, wanted, np.ones(len(wanted)))
    kept = np.delete(np.arange(6), leaving)
    np.testing.assert_allclose(found, np.linalg.inv(H[np.ix_(kept, kept)]), rtol=1e-9, atol=1e-9)


def test_those_that_join_are_independent():
    H = make_quadratic(3, 50.0)[0]
    inverse = np.linalg.inv(H)
    wanted = np.array([1, 2, 5, 7, 9])
    found = inverse_on(inverse, np.array([2, 7, 9]), wanted, np.array([4.0, 1.0, 8.0, 1.0, 1.0]))
    np.testing.assert_array_equal(found[np.ix_([1, 3, 4], [1, 3, 4])], inverse)
    rest = np.delete(np.delete(found, [1, 3, 4], 0), [1, 3, 4], 1)
    np.testing.assert_array_equal(rest, np.diag([0.25, 0.125]))
    assert not found[[0, 2]][:, [1, 3, 4]].any()


def test_some_leave_while_others_join_and_nothing_is_modified():
    H = make_quadratic(4, 20.0)[0]
    inverse = np.linalg.inv(H)
    kept = inverse.copy()
    found = inverse_on(
        inverse, np.array([0, 2, 4, 6]), np.array([0, 3, 4, 6]), np.full(4, 2.0)
    )  # fmt: skip
    own = [0, 2, 3]
    np.testing.assert_allclose(
        found[np.ix_(own, own)], np.linalg.inv(np.delete(np.delete(H, 1, 0), 1, 1)), rtol=1e-9
    )
    assert found[1].tolist() == [0.0, 0.5, 0.0, 0.0]
    np.testing.assert_array_equal(inverse, kept)


def test_with_a_diagonal_only_it_ends_in_the_same_place():
    H, g = make_quadratic(30, 1e3)
    function = Watched(quadratic(H, g))
    found = descend(
        function, np.zeros(30), np.ones(30), least=np.zeros(30), steep=1e-6, unit=1.0, max_iter=500
    )
    assert found.status is Status.CONVERGED
    assert np.abs(found.place.gradient).max() <= 1e-6
    np.testing.assert_array_equal(function.places[-1], found.place.coef)
    assert inverse_on(found.inverse, np.arange(30), np.arange(20), np.ones(20)).shape == (20, 20)


def test_many_coordinates_carry_a_diagonal(monkeypatch):
    monkeypatch.setattr("forback.solvers.bfgs.MAX_DENSE_COORDINATES", 8)
    curvature = np.arange(1.0, 11.0)
    carried = inverse_on(np.eye(7), np.arange(7), np.arange(10), curvature)
    np.testing.assert_array_equal(carried, 1.0 / curvature)
