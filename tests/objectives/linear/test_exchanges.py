"""Exchanges and removals of generalised linear models: exact where Q is quadratic, else guesses."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from forback.core.blocks import Blocks
from forback.core.objective import Objective
from forback.designs.make import make_design
from forback.designs.standardized import standardized
from forback.objectives import GLM, LeastSquares
from forback.objectives.linear import exchanges
from forback.objectives.linear.quadratic_fit import CholeskyFit, MomentCache, MomentFit
from forback.objectives.linear.slopes import by_products
from support.problems import LOSSES, make_problem

STORAGES = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "single": lambda X: X.astype(np.float32),
    "sparse": sparse.csc_array,
    "sparse single": lambda X: sparse.csc_array(X.astype(np.float32)),
}
FITS = {"moments": MomentFit, "no moments": CholeskyFit}
P = 10


def least_squares(
    storage="rows", fits="moments", *, n=40, seed=0, shift=0.0, view=False, **options
):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, P)) * (rng.random((n, P)) < 0.6) + rng.normal(size=(n, 1))
    X = X * 10.0 ** rng.uniform(-1, 1, size=P)
    X += shift * X.std(axis=0)
    options = {"ridge": 1e-3, "sample_weight": rng.integers(1, 4, size=n), **options}
    y = X[:, :3].sum(axis=1) + rng.normal(size=n)
    data = LeastSquares(STORAGES[storage](X), y, **options).data
    if view:
        center = data.fit_intercept
        design, _ = standardized(make_design(STORAGES[storage](X)), data.weights, center=center)
        data = replace(data, design=design)
    return GLM.from_data(replace(data, fits=FITS[fits]))


def partitions(objective, chosen):
    """The columns inside and outside, one by one, and some together."""
    always = np.arange(objective.n_candidates, objective.dim)
    outside = np.setdiff1d(np.arange(objective.n_candidates), chosen)
    yield Blocks.singles(chosen, always), Blocks.singles(outside, always)
    pairs = Blocks.of([chosen[:2], chosen[2:3], chosen[3:]], always)
    yield pairs, Blocks.of(np.array_split(outside, 3), always)
    yield pairs, Blocks.singles(outside, always)


def assert_exact(objective, point, chosen, rtol=1e-7):
    for inside, outside in partitions(objective, chosen):
        found = objective.decrease_if_exchanged(point, inside, outside)
        slow = Objective.decrease_if_exchanged(objective, point, inside, outside)
        assert found.n_exact == slow.n_exact == found.values.size
        atol = rtol * np.abs(slow.values).max()
        np.testing.assert_allclose(found.values, slow.values, rtol=0.0, atol=atol)
        again = objective.decrease_if_exchanged(point, inside, outside, estimate=True)
        assert np.array_equal(again.values, found.values)


CHOSEN = np.array([0, 2, 3, 7])


@pytest.mark.parametrize("view", [False, True], ids=["stored", "standardised"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("fits", FITS)
@pytest.mark.parametrize("storage", STORAGES)
def test_exchanges_of_least_squares_are_those_of_refits(storage, fits, fit_intercept, view):
    for seed in range(3):
        objective = least_squares(storage, fits, seed=seed, fit_intercept=fit_intercept, view=view)
        support = np.union1d(CHOSEN, np.arange(P, objective.dim))
        point = objective.minimise(support)
        assert isinstance(point.cache, MomentCache) == (fits == "moments")
        assert_exact(objective, point, CHOSEN)
        assert_exact(objective, point.without_cache(), CHOSEN)


@pytest.mark.parametrize("most", [0, 1 << 24], ids=["forgetful", "keeping"])
def test_exchanges_along_a_run_that_collects_products(monkeypatch, most):
    """Whatever a run has found out about X'WX, in whatever order, scores are those of refits."""
    monkeypatch.setattr(exchanges, "MAX_KEPT", most)
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, P)) + rng.normal(size=(30, 1))
    data = LeastSquares(X, X[:, :4].sum(axis=1) + rng.normal(size=30), fit_intercept=True).data
    slopes = partial(by_products, min_used=0, columns_per_pass=2)
    objective = GLM.from_data(replace(data, fits=CholeskyFit, slopes=slopes))
    everything = Blocks.singles(np.arange(P), np.array([P]))
    point = objective.minimise(np.array([P]))
    for support in ([2, 3, 5, 7], [0, 2, 3, 5, 7], [0, 2, 3, 5, 7, 8], [0, 2, 3, 5, 8]):
        point = objective.minimise(np.array([*support, P]), point)
        objective.gradient_norms(point, everything, only_best=True)  # fills the table of products
        assert "gram" in point.cache.run
        assert_exact(objective, point, np.array(support))
        others = np.setdiff1d(np.arange(P), support)
        slow = 0.5 * objective.gradient(point)[others] ** 2 / objective.data.curvatures[others]
        found = objective.promise(point, everything)[others]
        np.testing.assert_allclose(found, slow, rtol=1e-7, atol=1e-10)
    assert len(point.cache.run["cross"]) == (6 if most == 0 else 7)


@pytest.mark.parametrize("fits", FITS)
@pytest.mark.parametrize("shift", [10.0, 1e3, 1e6])
def test_columns_that_are_far_from_zero(fits, shift):
    objective = least_squares("rows", fits, fit_intercept=True, shift=shift)
    point = objective.minimise(np.append(CHOSEN, P))
    assert_exact(objective, point, CHOSEN, rtol=1e-6)


@pytest.mark.parametrize("storage", ["dense", "csc"])
@pytest.mark.parametrize("loss", ["logistic", "poisson", "huber"])
def test_with_an_intercept_estimates_do_not_know_where_zero_is(loss, storage):
    problem = make_problem(loss, "correlated", 1, n=50, p=P, weighted=True, fit_intercept=True)
    estimates = []
    for shift in (0.0, 1e3, 1e6):
        moved = replace(problem, X=problem.X + shift * np.linspace(-1.0, 1.0, P))
        objective = moved.objective(storage=storage)
        point = objective.minimise(np.append(CHOSEN, P))
        estimates.append(
            [
                objective.decrease_if_exchanged(point, inside, outside, estimate=True).values
                for inside, outside in partitions(objective, CHOSEN)
            ]
        )
        blocks = Blocks.singles(CHOSEN, np.array([P]))
        estimates[-1].append(objective.cheapest_removals(point, blocks, 3))
    for there in estimates[1:]:
        for found, expected in zip(there, estimates[0], strict=True):
            atol = 1e-6 * np.abs(expected).max()
            np.testing.assert_allclose(found, expected, rtol=0.0, atol=atol)


@pytest.mark.parametrize("fits", FITS)
def test_columns_that_are_always_in_stay(fits):
    objective = least_squares("rows", fits, fit_intercept=True)
    support = np.append(CHOSEN, P)
    point = objective.minimise(support)
    always = np.array([2, P])
    inside = Blocks.singles(np.array([0, 3, 7]), always)
    outside = Blocks.singles(np.array([1, 4, 9]), always)
    found = objective.decrease_if_exchanged(point, inside, outside).values
    slow = Objective.decrease_if_exchanged(objective, point, inside, outside).values
    np.testing.assert_allclose(found, slow, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("fits", FITS)
def test_what_was_asked_before_does_not_matter(fits):
    """A run keeps products of columns; another run, or another order, gets the same numbers."""
    objective = least_squares("rows", fits)
    alone = {}
    for chosen in ([0, 2], [0, 2, 3, 7], [1, 2, 9]):
        chosen = np.array(chosen)
        inside, outside = next(partitions(objective, chosen))
        point = objective.minimise(chosen)
        alone[chosen.tobytes()] = objective.decrease_if_exchanged(point, inside, outside).values
    point = None
    for chosen in ([0, 2], [0, 2, 3, 7], [1, 2, 9], [0, 2]):
        chosen = np.array(chosen)
        inside, outside = next(partitions(objective, chosen))
        point = objective.minimise(chosen, point)
        found = objective.decrease_if_exchanged(point, inside, outside).values
        np.testing.assert_allclose(found, alone[chosen.tobytes()], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("fits", FITS)
@pytest.mark.parametrize("n", [40, 9])
def test_removals_of_least_squares_go_in_the_order_of_refits(fits, fit_intercept, n):
    """Also from more columns than rows, where some leave for nothing but a little ridge."""
    for seed in range(4):
        objective = least_squares("rows", fits, n=n, seed=seed, fit_intercept=fit_intercept)
        always = np.arange(P, objective.dim)
        point = objective.minimise(np.arange(objective.dim))
        places = [np.array([0, 4]), np.array([1]), np.array([2, 3, 5]), *np.arange(6, P)[:, None]]
        for blocks in (Blocks.singles(np.arange(P), always), Blocks.of(places, always)):
            order = objective.cheapest_removals(point, blocks, len(blocks) - 1).tolist()
            assert len(order) == len(set(order)) == len(blocks) - 1
            gone, value = np.zeros(0, dtype=np.intp), point.value
            for place in order:
                left = [b for b in range(len(blocks)) if blocks[b][0] not in gone]
                without = {
                    b: objective.minimise(
                        np.setdiff1d(point.support, np.append(gone, blocks[b]))
                    ).value
                    for b in left
                }
                assert without[place] <= min(without.values()) + 1e-8 * (1.0 + abs(value))
                gone, value = np.append(gone, blocks[place]), without[place]


@pytest.mark.parametrize("storage", ["dense", "csc"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "squared"])
def test_estimates_are_those_of_the_second_order(loss, fit_intercept, storage):
    for seed in range(2):
        problem = make_problem(
            loss, "correlated", seed, n=50, p=P, weighted=True, fit_intercept=fit_intercept
        )
        objective = problem.objective(storage=storage)
        point = objective.minimise(np.union1d(CHOSEN, np.arange(P, objective.dim)))
        model = second_order(objective, problem.X, point)
        for inside, outside in partitions(objective, CHOSEN):
            found = objective.decrease_if_exchanged(point, inside, outside, estimate=True)
            assert found.n_exact == 0
            expected = [
                [model(np.union1d(np.setdiff1d(point.support, out), into)) for into in outside]
                for out in inside
            ]
            scale = np.abs(expected).max()
            np.testing.assert_allclose(found.values, expected, rtol=0.0, atol=1e-6 * scale)


def second_order(objective, X, point):
    """By how much the quadratic function that touches Q at a point falls on some support."""
    data = objective.data
    Z = np.column_stack([X, np.ones(len(X))])[:, : objective.dim]
    eta = Z @ point.dense(objective.dim) + data.offset
    bends = data.weights * np.maximum(data.loss.d2(eta, data.y), data.loss.newton_floor)
    hessian = Z.T @ (bends[:, None] * Z) + np.diag(data.full_ridge)
    gradient = objective.gradient(point)
    beta = point.dense(objective.dim)

    def fall(support):
        off = np.setdiff1d(point.support, support)
        move = np.zeros(objective.dim)
        move[off] = -beta[off]
        slope = (gradient + hessian @ move)[support]
        move[support] = -np.linalg.solve(hessian[np.ix_(support, support)], slope)
        return -float(gradient @ move + 0.5 * move @ hessian @ move)

    return fall


@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_promised_most_is_among_the_best(loss):
    """Of the exchanges of one feature, the best is one of the eight that a shortlist has."""
    found = 0
    for seed in range(10):
        objective = make_problem(loss, "correlated", seed, n=80, p=P).objective()
        point = objective.minimise(CHOSEN)
        inside, outside = next(partitions(objective, CHOSEN))
        guess = objective.decrease_if_exchanged(point, inside, outside, estimate=True).values
        exact = Objective.decrease_if_exchanged(objective, point, inside, outside).values
        found += exact.argmax() in np.argsort(-guess, axis=None)[:8]
    assert found >= 9


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_where_q_is_bent_few_leave_at_once(loss):
    objective = make_problem(loss, "gaussian", 0, n=80, p=30).objective()
    point = objective.minimise(np.arange(30))
    blocks = Blocks.singles(np.arange(30), np.zeros(0, dtype=np.intp))
    for most, count in ((1, 1), (2, 2), (9, 3), (25, 3)):
        places = objective.cheapest_removals(point, blocks, most)
        assert len(set(places.tolist())) == len(places) == count
    costs = objective.increase_after_refit(point, blocks).values
    assert costs[places[0]] <= np.sort(costs)[2]
