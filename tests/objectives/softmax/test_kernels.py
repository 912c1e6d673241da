"""The kernels of softmax regression against plain formulas."""

import numpy as np
import pytest
from scipy import optimize, special

from forback.designs.kernels.entries import Entries
from forback.objectives.linear.kernels.lines import NO_REST, Columns
from forback.objectives.softmax import kernels as softmax


def softened(scores, labels, weights):
    logs = np.array(scores, dtype=float)
    shares, residual = np.full(logs.shape, np.nan), np.full(logs.shape, np.nan)
    rows = softmax.Rows(labels, weights, logs)
    value = softmax.softmax(rows, shares, residual, 0, 3)
    value += softmax.softmax(rows, shares, residual, 3, len(logs))
    return value, logs, shares, residual


@pytest.mark.parametrize("size", [1e-8, 1.0, 30.0, 1e3])
@pytest.mark.parametrize("count", [2, 3, 10])
def test_rows(size, count):
    rng = np.random.default_rng(0)
    scores, weights = size * rng.normal(size=(20, count)), rng.random(20)
    labels = rng.integers(count, size=20)
    value, logs, shares, residual = softened(scores, labels, weights)
    expected = special.log_softmax(scores, axis=1)
    np.testing.assert_allclose(logs, expected, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(shares, np.exp(expected), rtol=1e-12, atol=1e-300)
    assert value == pytest.approx(-weights @ expected[np.arange(20), labels], rel=1e-13)
    plain = weights[:, None] * (np.exp(expected) - np.eye(count)[labels])
    np.testing.assert_allclose(residual, plain, rtol=1e-12, atol=1e-15)


def test_what_is_nearly_certain_keeps_its_digits():
    scores = np.array([[0.0, -60.0, -90.0]] * 4)
    value, _, _, residual = softened(scores, np.zeros(4, np.intp), np.full(4, 0.25))
    small = np.exp(-60.0) + np.exp(-90.0)
    assert value == pytest.approx(small, rel=1e-12)
    np.testing.assert_allclose(residual[:, 0], -0.25 * small, rtol=1e-12)


def test_scores_that_overflow_are_no_number():
    scores = np.array([[np.inf, 0.0], [np.inf, np.inf], [0.0, 1.0], [0.0, 1.0]])
    assert not np.isfinite(softened(scores, np.zeros(4, np.intp), np.ones(4))[0])
    assert not np.isfinite(softened(scores, np.ones(4, np.intp), np.ones(4))[0])


@pytest.mark.parametrize("ridge", [0.0, 0.05])
@pytest.mark.parametrize("count", [2, 3, 6])
def test_columns(ridge, count):
    rng = np.random.default_rng(1)
    n, p = 50, 4
    X, coef = rng.normal(size=(p, n)), rng.normal(size=(p, count))
    X[2] = 0.0
    labels, weights = rng.integers(count, size=n), rng.random(n) / n
    logs = special.log_softmax(rng.normal(size=(n, count)), axis=1)
    begin = np.arange(p) * n
    entries = Entries(X.ravel(), np.arange(n), begin, begin + n, np.zeros(p, np.intp))
    rows = softmax.Rows(labels, weights, logs)
    largest = np.abs(X).max(axis=1)
    columns = Columns(entries, NO_REST, np.full(p, ridge), coef, largest)

    def change(j, move):
        loss = -special.log_softmax(logs + np.outer(X[j], move), axis=1)
        rise = weights @ (loss + logs)[np.arange(n), labels]
        return rise + 0.5 * ridge * (np.sum((coef[j] + move) ** 2) - np.sum(coef[j] ** 2))

    rises, falls = np.empty(p), np.empty(p)
    softmax.changes(rows, columns, -coef, rises, 0, p)
    np.testing.assert_allclose(rises, [change(j, -coef[j]) for j in range(p)], atol=1e-15)
    assert softmax.largest_decreases(rows, columns, 1e-12, 0.0, falls, 0, p) == p
    for j in range(p):
        found = optimize.minimize(lambda move, j=j: change(j, move), np.zeros(count), tol=1e-10)
        assert falls[j] == pytest.approx(-found.fun, abs=1e-8)
    bounds, best_so_far = np.empty(p), 0.9 * falls.max()
    softmax.largest_decreases(rows, columns, 1e-12, best_so_far, bounds, 0, p)
    assert (bounds >= falls * (1 - 1e-12)).all()
    assert (bounds[bounds != falls] < falls.max()).all()
