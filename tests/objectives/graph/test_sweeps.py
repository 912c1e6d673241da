"""Sweeps over the variables of a graph, against Newton's method and the optimality conditions."""

import numpy as np
import pytest

from forback.objectives.graph.kernels.sweeps import list_neighbours, sweep
from forback.objectives.graph.problem import RestrictedLogDet
from forback.solvers.newton import newton


def make_problem(seed, p=12, edges=20, n=60):
    """A correlation matrix, and the entries of a random graph: edges, then diagonal."""
    rng = np.random.default_rng(seed)
    S = np.corrcoef(rng.normal(size=(n, p)) @ rng.normal(size=(p, p)), rowvar=False)
    i, j = np.triu_indices(p, 1)
    chosen = np.sort(rng.choice(len(i), edges, replace=False))
    return S, np.concatenate([i[chosen], np.arange(p)]), np.concatenate([j[chosen], np.arange(p)])


def run(S, i, j, W, due=None, tol=1e-12, most=1000):
    coef = np.full(len(i), np.nan)
    due = np.ones(len(S), dtype=bool) if due is None else due
    return sweep(i, j, S, W, due, tol, most, coef), coef


@pytest.mark.parametrize("edges", [0, 1, 11, 20, 50, 66])
@pytest.mark.parametrize("seed", range(5))
def test_the_minimiser_is_that_of_newton(seed, edges):
    S, i, j = make_problem(seed, edges=edges)
    W = S.copy()
    done, coef = run(S, i, j, W)
    assert done
    theta = np.zeros_like(S)
    theta[i, j] = theta[j, i] = coef
    np.testing.assert_allclose(theta @ W, np.eye(len(S)), atol=1e-8)
    np.testing.assert_allclose(W[i, j], S[i, j], atol=1e-14)
    problem = RestrictedLogDet(i, j, S, np.zeros(len(i)))
    first = problem.at((i == j).astype(float))
    exact = newton(problem, first, problem.counts, unit=1.0, tol=1e-12, max_iter=100).state
    np.testing.assert_allclose(coef, exact.coef, rtol=1e-7, atol=1e-7)
    assert problem.at(coef).value == pytest.approx(exact.value, abs=1e-11)


@pytest.mark.parametrize("seed", range(5))
def test_from_the_fit_without_an_edge_only_its_ends_are_due(seed):
    S, i, j = make_problem(seed)
    W = S.copy()
    kept = np.delete(np.arange(len(i)), 7)
    assert run(S, i[kept], j[kept], W)[0]
    due = np.zeros(len(S), dtype=bool)
    due[[i[7], j[7]]] = True
    warm, cold = run(S, i, j, W, due), run(S, i, j, S.copy())
    assert warm[0]
    assert cold[0]
    np.testing.assert_allclose(warm[1], cold[1], rtol=1e-7, atol=1e-8)


def test_nothing_is_due_where_all_is_done():
    S, i, j = make_problem(0)
    W = S.copy()
    _, coef = run(S, i, j, W)
    before = W.copy()
    done, again = run(S, i, j, W, np.zeros(len(S), dtype=bool), most=1)
    assert done
    np.testing.assert_array_equal(W, before)
    np.testing.assert_array_equal(again, coef)


def test_collinear_variables_and_too_few_sweeps_are_left_to_others():
    S, i, j = make_problem(0, edges=66)
    S[:, 1], S[1, :] = S[:, 0], S[0, :]
    S[0, 1] = S[1, 0] = S[1, 1] = 1.0
    done, coef = run(S, i, j, np.eye(len(S)))
    assert not done
    assert np.isnan(coef).all()
    S, i, j = make_problem(0)
    done, coef = run(S, i, j, S.copy(), most=1)
    assert not done
    assert np.isnan(coef).all()


def test_neighbours():
    near = list_neighbours(np.array([0, 0, 1, 2]), np.array([2, 3, 1, 3]), 4)
    assert [others.tolist() for others in near] == [[2, 3], [], [0, 3], [0, 2]]
