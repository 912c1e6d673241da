"""Compiled kernels against the plain formulas they stand for."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import linalg, sparse, special

from forback.designs.dense import Dense
from forback.designs.kernels import column_sums
from forback.designs.kernels.sparse_rows import predict, sandwich
from forback.designs.single_precision import ruled_in
from forback.designs.stored import StoredColumns
from forback.objectives.linear.kernels.losses import HUBER, Target, all_three, evaluate, pointwise
from forback.objectives.linear.kernels.rows import move_dense, move_sparse
from forback.objectives.linear.losses import LOSSES, Huber, code_of
from forback.objectives.linear.rows import Rows
from forback.solvers.kernels.cholesky import fill_factor, solve_factored

SIZES = [1e-12, 1e-8, 1e-3, 0.5, 1.0, 3.0, 30.0, 36.8, 37.5, 300.0, 700.0, 745.0, 800.0]
ETAS = np.array([0.0, *SIZES, *(-size for size in SIZES)])
LABELS = {"binary": [0.0, 1.0], "nonnegative": [0.0, 1.0, 7.0], "positive": [1e-3, 1.0, 1e3]}
SHAPES = [(1, 1), (1, 7), (9, 1), (5, 3), (7, 1025), (1027, 6), (130, 2051)]


@pytest.mark.parametrize("loss", [*LOSSES.values(), Huber(1e-3), Huber(1e6)], ids=repr)
def test_value_and_derivatives_of_every_loss(loss):
    code = code_of(loss)
    for y in LABELS.get(loss.domain, [0.0, -2.5, 1e6]):
        for eta in ETAS:
            found = all_three(code.kind, code.parameter, eta, y)
            where = np.array([eta]), np.array([y])
            plain = [part(*where)[0] for part in (loss.value, loss.d1, loss.d2)]
            np.testing.assert_allclose(found, plain, rtol=1e-12, atol=1e-307)


@pytest.mark.parametrize("threshold", [1e-3, 1.35, 1e3])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_huber_at_and_around_its_threshold(threshold, sign):
    loss, y = Huber(threshold), np.array([0.0])
    for edge in (np.nextafter(threshold, 0.0), threshold, np.nextafter(threshold, np.inf)):
        eta = np.array([sign * edge])
        found = all_three(HUBER, threshold, eta[0], 0.0)
        plain = [part(eta, y)[0] for part in (loss.value, loss.d1, loss.d2)]
        np.testing.assert_allclose(found, plain, rtol=1e-15)


def some(shape, dtype, seed=0, empty=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape).astype(dtype)
    if empty and shape[1] > 2:
        X[:, 1] = 0.0
    return X, rng.normal(size=shape[0]), rng.random(shape[0])


def assert_sums(slopes, curvatures, cubes, X, residual, curvature):
    exact = X.astype(float)
    size = np.abs(exact).T @ np.abs(residual)
    np.testing.assert_array_less(np.abs(slopes - exact.T @ residual), 1e-14 * size + 1e-300)
    np.testing.assert_allclose(curvatures, (exact**2).T @ curvature, rtol=1e-13)
    np.testing.assert_allclose(cubes, np.abs(exact**3).T @ curvature, rtol=1e-13)


def moved(X, center):
    """X that far from zero, and what is to be taken off its columns; None: nothing."""
    if center is None:
        return X, None
    return X + X.dtype.type(center), center * (1.0 + 0.1 * np.arange(X.shape[1]))


def centred(X, center):
    return X if center is None else X.astype(np.float64) - center


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("center", [None, 0.0, 1e3])
def test_passes_over_a_matrix_stored_by_rows(shape, dtype, center):
    X, residual, curvature = some(shape, dtype)
    X, center = moved(X, center)
    p = shape[1]
    for edges in ([0, p], [0, p // 3, p // 3, p]):
        alone, sums = np.zeros((2, 3, p))
        for start, stop in pairwise(edges):
            column_sums.sums_by_rows(X, residual, None, center, alone, start, stop)
            column_sums.sums_by_rows(X, residual, curvature, center, sums, start, stop)
        assert_sums(*sums, centred(X, center), residual, curvature)
        assert_sums(alone[0], *sums[1:], centred(X, center), residual, curvature)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("center", [None, 0.0, 1e3])
def test_passes_over_a_matrix_stored_by_columns(shape, dtype, center):
    X, residual, curvature = some(shape, dtype)
    X, center = moved(X, center)
    n, p = shape
    stored = StoredColumns(np.asfortranarray(X).ravel("K"), None, np.arange(p + 1) * n)
    alone = stored.sums(residual, None, center)
    stored._edges = [0, p // 3, p // 3, p]
    sums = stored.sums(residual, curvature, center)
    assert_sums(*sums, centred(X, center), residual, curvature)
    assert_sums(alone[0], *sums[1:], centred(X, center), residual, curvature)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("center", [None, 0.0, 1.0])
def test_passes_over_a_sparse_matrix(shape, dtype, center):
    X, residual, curvature = some(shape, dtype)
    X, center = moved(X, center)
    X[np.random.default_rng(1).random(shape) < 0.7] = 0.0
    S, p = sparse.csc_array(X), shape[1]
    stored = StoredColumns(S.data, S.indices, S.indptr)
    alone = stored.sums(residual, None, center)
    stored._edges = [0, p // 3, p // 3, p]
    sums = stored.sums(residual, curvature, center)
    assert_sums(*sums, centred(X, center), residual, curvature)
    assert_sums(alone[0], *sums[1:], centred(X, center), residual, curvature)


def test_rounding_to_single_precision_sums_squares_in_double():
    X, _, _ = some((9, 5), np.float64)
    X[0] = 1e39, 1e-46, 1.0, 1e100, -1e39
    for stored in (np.ascontiguousarray(X), np.asfortranarray(X)):
        single, squares = Dense(stored).in_single()
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(single.X, X.astype(np.float32))
        np.testing.assert_allclose(squares, (X**2).sum(axis=0))


def test_ruled_in_keeps_whatever_may_be_the_largest():
    rng = np.random.default_rng(3)
    for _ in range(200):
        true, norms = rng.normal(size=30), rng.random(30)
        weight = rng.random(30) + 0.1
        share, lost = 10.0 ** rng.uniform(-6, -1), 1e-9
        slopes = true + (share * norms + lost) * rng.uniform(-1, 1, size=30)
        left = ruled_in(slopes, share * norms + lost, weight)
        scores = np.abs(true) * weight
        best = scores.max()
        assert set(np.flatnonzero(scores >= best * (1 - 1e-9))) <= set(left)
        others = np.setdiff1d(np.arange(30), left)
        assert (np.abs(slopes[others]) >= np.abs(true[others])).all()
        assert (np.abs(slopes * weight)[others] < best * (1 - 1e-9)).all()


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_ruled_in_keeps_what_overflowed(bad):
    left = ruled_in(np.array([1.0, bad, 2.0]), np.full(3, 1e-6), np.ones(3))
    assert left.tolist() == [1, 2]


def margins_and_labels(domain, n, seed=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.integers(0, 2, size=n) + (domain == "positive") * 0.5


@pytest.mark.parametrize("n", [0, 1, 511, 512, 513, 1027])
@pytest.mark.parametrize("name", LOSSES)
def test_evaluation_of_many_rows(name, n):
    loss, weights = LOSSES[name], np.random.default_rng(3).random(n)
    eta, y = margins_and_labels(loss.domain, n)
    rows = Rows(eta, np.empty(n), np.empty(n))
    total = evaluate(Target(code_of(loss), y, weights), rows, 0, n)
    assert total == pytest.approx(weights @ loss.value(eta, y), rel=1e-12)
    np.testing.assert_allclose(rows.residual, weights * loss.d1(eta, y), rtol=1e-12)
    np.testing.assert_allclose(rows.curvature, weights * loss.d2(eta, y), rtol=1e-12)


def test_the_logistic_loss_keeps_its_last_digits():
    eta = np.concatenate([np.linspace(-700.0, 700.0, 20_001), np.linspace(-2.0, 2.0, 20_001)])
    value, first, second = (np.empty_like(eta) for _ in range(3))
    pointwise(code_of(LOSSES["logistic"]), eta, np.zeros_like(eta), value, first, second)
    np.testing.assert_allclose(value, np.logaddexp(0.0, eta), rtol=1e-15)
    np.testing.assert_allclose(first, special.expit(eta), rtol=1e-15)
    np.testing.assert_allclose(second, special.expit(eta) * special.expit(-eta), rtol=2e-15)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_a_move_evaluates_and_back_projects(name, density):
    loss, (n, m) = LOSSES[name], (1100, 4)
    rng = np.random.default_rng(5)
    X = 0.3 * rng.normal(size=(n, m)) * (rng.random((n, m)) < density)
    base, y = margins_and_labels(loss.domain, n)
    weights, direction, B = rng.random(n), rng.normal(size=m), sparse.csr_array(X)
    eta = base + X @ direction
    stored = {
        move_dense: (np.ascontiguousarray(X.T),),
        move_sparse: (B.data, B.indices, B.indptr),
    }
    for move, block in stored.items():
        here, gradient = Rows(*(np.empty(n) for _ in range(3))), np.ones(m)
        given = (Target(code_of(loss), y, weights), base, *block, direction, here, gradient)
        total = sum(move(*given, start, stop) for start, stop in ((0, 600), (600, n)))
        assert total == pytest.approx(weights @ loss.value(eta, y), rel=1e-12)
        residual = weights * loss.d1(eta, y)
        plain = eta, residual, weights * loss.d2(eta, y)
        for found, expected in zip(here, plain, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(gradient, 1.0 + X.T @ residual, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (9, 1), (33, 7)])
@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
def test_products_with_sparse_rows(shape, density):
    X, _, weights = some(shape, np.float64)
    X[np.random.default_rng(1).random(shape) >= density] = 0.0
    B, (n, m) = sparse.csr_array(X), shape
    by_rows, coef, out = (B.data, B.indices, B.indptr), np.arange(1.0, m + 1), np.empty(n)
    for start, stop in ((0, n // 2), (n // 2, n)):
        predict(*by_rows, coef, out, start, stop)
    np.testing.assert_allclose(out, X @ coef, rtol=1e-13, atol=1e-13)
    parts = [sandwich(*by_rows, m, weights, *ends) for ends in ((0, n // 2), (n // 2, n))]
    np.testing.assert_allclose(sum(parts), X.T @ (weights[:, None] * X), rtol=1e-12, atol=1e-13)


def factored(hessian, least_pivot=1e-10):
    m = len(hessian)
    root, triangle = np.empty(m), np.zeros((m, m))
    return fill_factor(hessian, root, triangle, least_pivot), root, triangle


@pytest.mark.parametrize("m", [1, 2, 5, 8, 33, 64])
@pytest.mark.parametrize("spread", [0.0, 100.0])
def test_cholesky_against_lapack(m, spread):
    rng = np.random.default_rng(m)
    A, units = rng.normal(size=(m + 20, m)), 10.0 ** rng.uniform(-spread, spread, size=m)
    hessian, right = A.T @ A, rng.normal(size=m)
    fine, root, triangle = factored(hessian * units[:, None] * units)
    assert fine
    found = np.empty(m)
    solve_factored(triangle, root, right * units, found)
    np.testing.assert_allclose(
        found * units, linalg.solve(hessian, right, assume_a="pos"), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize(
    "hessian",
    [
        np.zeros((1, 1)),
        np.ones((2, 2)),
        np.array([[1.0, 1.0], [1.0, 1.0 + 1e-11]]),
        np.array([[1.0, 2.0], [2.0, 1.0]]),
        np.array([[1.0, 0.0], [0.0, np.nan]]),
        np.array([[1.0, np.nan], [np.nan, 1.0]]),
        np.array([[1.0, 0.0], [0.0, np.inf]]),
        np.diag([1.0, 1.0, 0.0]),
    ],
)
def test_singular_matrices_are_refused(hessian):
    assert not factored(hessian)[0]
