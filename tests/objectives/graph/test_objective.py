"""`GaussianCovariance`: its contract, its optimum, its paths, singular matrices, what it takes."""

from dataclasses import replace
from itertools import combinations

import cvxpy
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse

from forback import FobaCovariance, select
from forback.core.blocks import Blocks
from forback.core.objective import Scores
from forback.core.point import Point
from forback.core.status import Status
from forback.datasets import make_graph
from forback.objectives import GaussianCovariance
from forback.objectives.graph.objective import KnownCovariance
from forback.objectives.graph.problem import RestrictedLogDet
from forback.selection.rules import METHODS
from forback.testing import check_objective
from reference.algorithm1 import foba
from reference.gaussian import CovarianceQ
from support.problems import information


def make_rows(p=5, n=60, seed=0):
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(n, p)) @ rng.normal(size=(p, p))
    return mixed + rng.normal(size=(n, p))


def make_S(p=5, n=60, seed=0):
    return np.cov(make_rows(p, n, seed), rowvar=False, bias=True)


def support_of(objective, edges):
    return np.concatenate([np.sort(edges), np.arange(objective.n_candidates, objective.dim)])


def assert_optimal(objective, S, point, tol=1e-9):
    """W is S on edges and diagonal, ridge aside; Theta is zero elsewhere."""
    theta = objective.precision(point)
    chosen = point.support[point.support < objective.n_candidates]
    inside = np.eye(len(S), dtype=bool)
    i, j = objective.edges[chosen].T
    inside[i, j] = inside[j, i] = True
    assert (theta[~inside] == 0.0).all()
    assert np.linalg.eigvalsh(theta)[0] > 0.0
    W, unit = np.linalg.inv(theta), np.sqrt(np.outer(np.diag(S), np.diag(S)))
    ridge = np.zeros_like(S)
    ridge[i, j] = ridge[j, i] = 0.5 * objective.ridge[chosen]
    off = np.abs(S - W + ridge * theta) / unit
    assert off[inside].max() <= tol
    np.testing.assert_allclose(objective.covariance(point), W, rtol=1e-6, atol=1e-9 * unit.max())


# Contract and formulas ---------------------------------------------------------------------------


@pytest.mark.parametrize("scales", ["equal", "large", "small", "mixed"])
@pytest.mark.parametrize("ridge", [0.0, 0.1, "array"])
def test_contract(ridge, scales):
    for p, n in ((2, 20), (3, 30), (6, 60)):
        X = make_rows(p, n) * {
            "equal": 1.0, "large": 1e3, "small": 1e-2, "mixed": 10.0 ** np.linspace(-1, 1, p),
        }[scales]  # fmt: skip
        penalty = np.linspace(0.0, 1.0, p * (p - 1) // 2) if ridge == "array" else ridge
        if scales == "small":  # or nothing would be left to gain
            penalty = 1e-4 * np.asarray(penalty)
        check_objective(
            GaussianCovariance.from_data(X, ridge=penalty), supports=4,
            optimality=1e-6 if scales == "mixed" else 1e-8,
        )  # fmt: skip


class Wrong(GaussianCovariance):
    def increase_if_removed(self, point, blocks, *, below=None):
        return Scores.exact(1.01 * super().increase_if_removed(point, blocks).values)


class Worse(GaussianCovariance):
    def gradient(self, point):
        return 1.001 * super().gradient(point)


class Lazy(GaussianCovariance):
    def decrease_if_added(self, point, blocks, *, only_best=False):
        return Scores.exact(0.0 * super().decrease_if_added(point, blocks).values)


class Careless(GaussianCovariance):
    def minimise(self, support, start=None):
        point = super().minimise(support, start)
        return replace(point, coef=point.coef * (1 + 1e-4))


class Blind(GaussianCovariance):
    def value_and_gradient(self, beta):
        value, gradient = super().value_and_gradient(beta)
        return value, 1.01 * gradient


@pytest.mark.parametrize("broken", [Wrong, Worse, Lazy, Careless, Blind])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_contract_check_is_not_vacuous_without_a_zero(broken, scale):
    with pytest.raises(AssertionError):
        check_objective(broken(scale * make_S()), supports=5)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_formulas_agree_with_the_reference(ridge):
    rng = np.random.default_rng(0)
    S = make_S(4)
    objective, Q = GaussianCovariance(S, ridge=ridge), CovarianceQ(S, ridge)
    infinite = 0
    for _ in range(40):
        beta = rng.normal(size=10) * 0.4
        theta = Q.theta(beta)
        own = np.array([theta[i, j] for i, j in Q.pairs])
        value, gradient = objective.value_and_gradient(own)
        if np.isinf(Q.value(beta)):
            infinite += 1
            assert value == np.inf
            assert np.isnan(gradient).all()
        else:
            assert value == pytest.approx(Q.value(beta), rel=1e-12)
            np.testing.assert_allclose(gradient, Q.gradient(beta), rtol=1e-9, atol=1e-9)
    assert 0 < infinite < 40


def test_the_square_root_is_one():
    objective = GaussianCovariance(make_S(4), ridge=0.2)
    own = objective._problem
    problem = RestrictedLogDet(own.i, own.j, own.S, own.ridge)
    state = problem.at(np.r_[0.1, -0.2, 0.3, 0.0, 0.1, 0.2, 1.5, 1.4, 1.3, 1.6])
    A, z = problem.square_root(state)
    np.testing.assert_allclose(A.T @ A, problem.hessian(state), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(A.T @ z, state.gradient, rtol=1e-10, atol=1e-12)
    Q = CovarianceQ(own.S)
    beta = Q.coordinates(np.linalg.inv(state.cache.W))
    np.testing.assert_allclose(
        problem.hessian(state), Q.hessian(beta) + np.diag(problem.ridge), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("ridge", [0.0, 1e-6, 0.5, 100.0])
def test_single_edges_are_solved_exactly(ridge):
    """Brute force along every edge, where some edges are in and correlations are strong."""
    rng = np.random.default_rng(1)
    common = rng.normal(size=(100, 1))
    S = np.cov(common + 0.2 * rng.normal(size=(100, 5)), rowvar=False, bias=True)
    objective = GaussianCovariance(S, ridge=ridge)
    point = objective.minimise(support_of(objective, [0, 3, 8]))
    always = np.arange(10, 15)
    scores = objective.decrease_if_added(point, Blocks.singles(np.arange(10), always)).values
    beta = point.dense(15)
    for edge in range(10):

        def along(t, edge=edge):
            value = objective.value_and_gradient(beta + t * np.eye(15)[edge])[0]
            return min(value - point.value, 1e6)

        brute = optimize.minimize_scalar(along, bracket=(-1e-3, 1e-3), tol=1e-12)
        assert scores[edge] == pytest.approx(-brute.fun, rel=1e-6, abs=1e-11)


# Optimum -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(4))
def test_fits_are_those_of_cvxpy(seed, ridge):
    p = 5
    S = make_S(p, 30, seed)
    objective = GaussianCovariance(S, ridge=ridge)
    edges = np.random.default_rng(seed).choice(10, 4, replace=False)
    point = objective.minimise(support_of(objective, edges))
    assert_optimal(objective, S, point)
    theta = cvxpy.Variable((p, p), symmetric=True)
    missing = [theta[i, j] == 0 for e, (i, j) in enumerate(objective.edges) if e not in edges]
    penalty = sum(cvxpy.square(theta[i, j]) for i, j in objective.edges)
    goal = -cvxpy.log_det(theta) + cvxpy.trace(S @ theta) + 0.5 * ridge * penalty
    best = cvxpy.Problem(cvxpy.Minimize(goal), missing).solve(
        solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10
    )
    assert point.value == pytest.approx(best, abs=1e-6)
    np.testing.assert_allclose(objective.precision(point), theta.value, atol=1e-4)


def test_all_edges_give_the_inverse_and_none_the_diagonal():
    S = make_S(6)
    objective = GaussianCovariance(S)
    full = objective.minimise(np.arange(objective.dim))
    np.testing.assert_allclose(objective.precision(full), np.linalg.inv(S), rtol=1e-7, atol=1e-9)
    bare = objective.minimise(support_of(objective, []))
    np.testing.assert_allclose(objective.precision(bare), np.diag(1 / np.diag(S)), rtol=1e-12)
    assert bare.value == pytest.approx(np.log(np.diag(S)).sum() + 6)


def test_trees_are_solved_without_newton(monkeypatch):
    """An edge between two components changes three entries, in closed form."""
    objective = GaussianCovariance(make_S(6))
    monkeypatch.setattr("forback.objectives.graph.fit.newton", None)
    chosen, point = [], objective.minimise(support_of(objective, []))
    for i, j in [(0, 1), (4, 5), (1, 2), (2, 4), (0, 3)]:
        chosen.append(objective.edge(i, j))
        point = objective.minimise(support_of(objective, chosen), point)
    monkeypatch.undo()
    assert_optimal(objective, make_S(6), point)


@pytest.mark.parametrize("method", METHODS)
def test_sweeps_are_only_a_quicker_way(method, monkeypatch):
    S = make_S(9)
    quick = select(GaussianCovariance(S), method=method)
    monkeypatch.setattr("forback.objectives.graph.fit.MAX_SWEEPS", 0)
    slow = select(GaussianCovariance(S), method=method)
    for ours, theirs in zip(quick.steps, slow.steps, strict=True):
        assert (ours.action, ours.feature) == (theirs.action, theirs.feature)
        np.testing.assert_allclose(ours.point.coef, theirs.point.coef, rtol=1e-6, atol=1e-8)
        assert ours.value == pytest.approx(theirs.value, abs=1e-10)


def test_other_components_are_left_alone():
    S = make_S(7)
    objective = GaussianCovariance(S)
    edges = [objective.edge(*pair) for pair in [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]]
    point = objective.minimise(support_of(objective, edges))
    wider = objective.minimise(support_of(objective, [*edges, objective.edge(5, 6)]), point)
    narrower = objective.minimise(support_of(objective, edges[1:]), point)
    before, after = objective.precision(point), objective.precision(wider)
    np.testing.assert_array_equal(before[:3, :3], after[:3, :3])
    np.testing.assert_array_equal(before[3:, 3:], objective.precision(narrower)[3:, 3:])
    for one in (wider, narrower):
        assert_optimal(objective, S, one)
        again = objective.minimise(one.support)
        assert one.value == pytest.approx(again.value, rel=1e-13)


def test_far_starts_and_starts_outside_the_domain():
    S = make_S(5)
    objective = GaussianCovariance(S)
    support = support_of(objective, [0, 1, 2, 5, 7])
    best = objective.minimise(support)
    rng = np.random.default_rng(0)
    for start in (1e3 * best.coef, 1e-3 * best.coef, -best.coef, 5 * rng.normal(size=10)):
        found = objective.minimise(support, Point(support, start, 0.0))
        assert found.value == pytest.approx(best.value, rel=1e-12)
        assert found.note == ""


@pytest.mark.parametrize("method", METHODS)
def test_units_of_the_variables_do_not_matter(method):
    S = make_S(6, 40, 3)
    scale = 2.0 ** np.array([-40, -3, 0, 2, 20, 50])
    objective, scaled = GaussianCovariance(S), GaussianCovariance(S * np.outer(scale, scale))
    support = support_of(objective, [0, 3, 4, 8, 11])
    plain, other = objective.minimise(support), scaled.minimise(support)
    np.testing.assert_allclose(
        scaled.precision(other) * np.outer(scale, scale), objective.precision(plain), rtol=1e-12
    )
    blocks = Blocks.singles(np.arange(15), np.arange(15, 21))
    for score in ("decrease_if_added", "increase_if_removed"):
        one, two = getattr(objective, score), getattr(scaled, score)
        plainly, otherwise = one(plain, blocks).values, two(other, blocks).values
        np.testing.assert_allclose(plainly, otherwise, rtol=1e-9, atol=1e-14)
    if method.endswith("obj"):  # gradients have units, decreases have none
        paths = [select(one, k=6, method=method) for one in (objective, scaled)]
        steps = [[(step.action, step.feature) for step in path.steps] for path in paths]
        assert steps[0] == steps[1]


# Paths -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [None, [0, 0, 1, 2, 1, 3]])
@pytest.mark.parametrize("ridge", [0.0, 0.05])
@pytest.mark.parametrize("method", METHODS)
def test_paths_are_those_of_the_reference(method, ridge, groups):
    removed = 0
    blocks = [[0, 1], [2, 4], [3], [5]] if groups else [[e] for e in range(6)]
    for seed in range(8):
        S = make_S(4, 15, seed)
        objective, Q = GaussianCovariance(S, ridge=ridge), CovarianceQ(S, ridge)
        path = select(objective, method=method, groups=groups, ratio=0.9)
        expected = list(
            foba(
                Q, blocks, [6, 7, 8, 9], gradient_rule=method.endswith("gdt"),
                backward=method.startswith("foba"), ratio=0.9,
            )
        )  # fmt: skip
        assert [(s.action, s.feature) for s in path.steps] == [step[:2] for step in expected]
        for step, (_, _, chosen, beta) in zip(path.steps, expected, strict=True):
            assert step.size == len(chosen)
            assert step.value == pytest.approx(Q.value(beta), rel=1e-9, abs=1e-9)
            assert_optimal(objective, S, step.point)
        removed += sum(step.action == "remove" for step in path.steps)
    assert removed or method.startswith("forward") or groups


@pytest.mark.parametrize("p", [4, 5])
def test_easy_graphs_are_the_best_of_all(p):
    graph = make_graph("chain", n=400, p=p, random_state=p)
    objective = GaussianCovariance.from_data(graph.X)
    for k in range(1, p):
        subsets = combinations(range(objective.n_candidates), k)
        best = min(objective.minimise(support_of(objective, s)).value for s in subsets)
        found = select(objective, k=k, method="foba-obj")[k].value
        assert found == pytest.approx(best, rel=1e-10)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000), p=st.integers(2, 7), extra=st.integers(1, 40),
    method=st.sampled_from(list(METHODS)), ridge=st.sampled_from([0.0, 0.01, 1.0]),
    spread=st.floats(0.0, 2.0),
)  # fmt: skip
def test_every_point_of_a_path_is_optimal(seed, p, extra, method, ridge, spread):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(p + extra, p)) @ rng.normal(size=(p, p))
    X *= 10.0 ** rng.uniform(-spread, spread, p)
    objective = GaussianCovariance.from_data(X, ridge=ridge)
    S = np.cov(X, rowvar=False, bias=True)
    path = select(objective, method=method)
    for step in path.steps:
        if step.point.note == "":
            assert_optimal(objective, S, step.point, tol=1e-6)
    best = [path.best(size).value for size in path.sizes]
    assert (np.diff(best) <= 1e-9 * np.abs(best[:-1])).all()
    assert best[0] == pytest.approx(objective.minimise(support_of(objective, [])).value)


def test_interleaved_runs_are_separate_runs():
    objective = GaussianCovariance.from_data(make_rows(6, 30))
    alone = {k: select(objective, k=k, method="foba-obj") for k in (3, 8)}
    inner = []

    def interfere(step):
        inner.append(select(objective, k=3, method="foba-obj"))

    outer = select(objective, k=8, method="foba-obj", callback=interfere)
    for k, path in ((8, outer), (3, inner[0]), (3, inner[-1])):
        assert [s.value for s in path.steps] == [s.value for s in alone[k].steps]


def test_a_point_of_another_objective_is_only_a_start():
    one, other = GaussianCovariance(make_S(5, seed=1)), GaussianCovariance(make_S(5, seed=2))
    support = support_of(one, [0, 1, 2, 7])
    foreign = one.minimise(support)
    found = other.minimise(support, foreign)
    assert found.value == pytest.approx(other.minimise(support).value, rel=1e-12)
    np.testing.assert_allclose(other.gradient(foreign), other.gradient(foreign.without_cache()))


# Singular matrices -------------------------------------------------------------------------------


def test_identical_columns_have_no_minimiser_and_say_so():
    X = make_rows(3, 50)
    X = np.c_[X, X[:, 0]]
    objective = GaussianCovariance.from_data(X)
    path = select(objective, k=4)
    assert path.steps[0].feature == objective.edge(0, 3)
    assert all(step.point.status is Status.UNBOUNDED for step in path.steps)
    assert np.isfinite([step.value for step in path.steps]).all()
    loglik, n, df = information(objective, path.end)
    assert (loglik, n, df) == (-np.inf, 50.0, 8)
    assert "no minimiser" in path.end.note
    held = select(GaussianCovariance.from_data(X, ridge=1e-4), k=4)
    assert all(step.note == "" for step in held.steps)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("p", "n"), [(3, 2), (5, 4), (8, 5)])
def test_more_variables_than_rows(p, n, method):
    X = make_rows(p, n)
    S = np.cov(X, rowvar=False, bias=True)
    plain, held = (GaussianCovariance.from_data(X, ridge=ridge) for ridge in (0.0, 1e-3))
    path = select(plain, method=method)
    assert path.start.note == ""
    assert path.end.status is Status.UNBOUNDED
    assert np.isfinite([step.value for step in path.steps]).all()
    for step in path.steps:
        if step.point.note == "":
            assert_optimal(plain, S, step.point, tol=1e-6)
    path = select(held, method=method)
    assert path.end.size == held.n_candidates
    for step in path.steps:
        assert step.note == ""
        assert_optimal(held, S, step.point, tol=1e-6)


def test_starts_beyond_all_bounds_are_forgotten():
    """From where copies ran away to, to a graph that has a minimiser."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    X[:, 1] = X[:, 0]
    ridge = np.zeros(6)
    ridge[3] = 1e-3
    objective = GaussianCovariance.from_data(X, ridge=ridge)
    far = objective.minimise(support_of(objective, [0, 3, 5]))
    assert far.status is Status.UNBOUNDED
    support = support_of(objective, [3, 5])
    cold, warm = objective.minimise(support), objective.minimise(support, far)
    assert (cold.note, warm.note) == ("", "")
    assert warm.value == pytest.approx(cold.value, rel=1e-12)
    X[:, 1] = X[:, 0] + 3e-4 * rng.normal(size=50)
    one, other = GaussianCovariance.from_data(X), GaussianCovariance.from_data(1e-3 * X)
    support = support_of(one, [0, 1, 3])
    found = one.minimise(support, other.minimise(support))
    assert found.note == ""
    assert found.value == pytest.approx(one.minimise(support).value, abs=1e-7)


@pytest.mark.parametrize("seed", range(30))
def test_rounding_is_the_only_limit_near_collinearity(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 5))
    X[:, 1] = X[:, 0] + 10.0 ** rng.uniform(-3.6, -3) * X[:, 1]
    objective, S = GaussianCovariance.from_data(X), np.cov(X, rowvar=False, bias=True)
    edges = np.unique([0, *rng.choice(10, 6, replace=False)])
    point = objective.minimise(support_of(objective, edges))
    assert point.note == ""
    correlations = np.corrcoef(X, rowvar=False)
    assert_optimal(objective, S, point, tol=1e-9 + 1e-15 * np.linalg.cond(correlations))


def test_nearly_collinear_columns_are_still_fitted():
    rng = np.random.default_rng(0)
    X = make_rows(4, 200)
    X = np.c_[X, X[:, 0] + 1e-3 * rng.normal(size=200)]
    objective = GaussianCovariance.from_data(X)
    path = select(objective)
    assert path.end.size == 10
    assert all(step.note == "" for step in path.steps)
    S = np.cov(X, rowvar=False, bias=True)
    for step in path.steps:
        assert_optimal(objective, S, step.point, tol=1e-7)


# What it takes and gives ------------------------------------------------------------------------


def test_names_and_numbers_of_edges():
    X = pd.DataFrame(make_rows(4), columns=["Raf", "Mek", "Erk", "Akt"])
    objective = GaussianCovariance.from_data(X)
    assert objective.feature_names[:4] == ("Raf-Mek", "Raf-Erk", "Raf-Akt", "Mek-Erk")
    assert objective.edges.tolist() == [list(pair) for pair in combinations(range(4), 2)]
    for e, (i, j) in enumerate(objective.edges.tolist()):
        assert objective.edge(i, j) == objective.edge(j, i) == e
        assert objective.edge(X.columns[j], X.columns[i]) == e
    path = select(objective, k=2, always=["Raf-Akt"])
    assert objective.edge("Raf", "Akt") in path.start.support
    assert path.name(0) == "Raf-Mek"
    by_frame = GaussianCovariance(X.cov())
    assert by_frame.feature_names == objective.feature_names
    bare = GaussianCovariance(X.cov().to_numpy())
    assert bare.feature_names[0] == "0-1"
    unclear = GaussianCovariance.from_data(
        pd.DataFrame(make_rows(4), columns=["a", "b-c", "a-b", "c"])
    )
    assert len(set(unclear.feature_names)) == 6
    with pytest.raises(ValueError, match="an edge names the variable 'Jnk'; variables are Raf"):
        objective.edge("Raf", "Jnk")
    with pytest.raises(ValueError, match="an edge holds variable 4; variables are numbered 0 to 3"):
        objective.edge(0, 4)
    with pytest.raises(ValueError, match="an edge joins two variables"):
        objective.edge(1, "Mek")


def test_information():
    X = make_rows(5, 40)
    objective = GaussianCovariance.from_data(X, ridge=0.1)
    point = objective.minimise(support_of(objective, [0, 4, 7]))
    loglik, n, df = information(objective, point)
    from scipy.stats import multivariate_normal

    W = np.linalg.inv(objective.precision(point))
    assert loglik == pytest.approx(multivariate_normal(X.mean(axis=0), W).logpdf(X).sum())
    assert (n, df) == (40.0, 8)
    with pytest.raises(ValueError, match="without n_samples"):
        information(GaussianCovariance(make_S()), point)


def test_inputs_are_never_modified():
    for make, data in ((GaussianCovariance, make_S()), (GaussianCovariance.from_data, make_rows())):
        before = data.copy()
        data.flags.writeable = False
        select(make(data), k=4)
        np.testing.assert_array_equal(data, before)


def test_about_zero_or_about_the_mean():
    X = make_rows(3) + 5.0
    about_zero = GaussianCovariance.from_data(X, assume_centered=True)
    full = about_zero.minimise(np.arange(6))
    np.testing.assert_allclose(about_zero.covariance(full), X.T @ X / len(X), rtol=1e-7)
    full = GaussianCovariance.from_data(X.tolist()).minimise(np.arange(6))
    np.testing.assert_allclose(
        GaussianCovariance.from_data(X).covariance(full), np.cov(X.T, bias=True), rtol=1e-7
    )


def broken(i, j, value):
    S = make_S(3)
    S[i, j] = value
    return S


BAD = [
    (np.ones((2, 3)), ValueError, r"S must be square, a covariance matrix, got shape \(2, 3\)"),
    (broken(0, 1, 9.0), ValueError, r"S must be symmetric, got 9 at \(0, 1\)"),
    (broken(1, 1, np.nan), ValueError, "S must be a matrix of finite numbers"),
    (broken(2, 2, 0.0), ValueError, "variable 2 of S has the variance 0"),
    (broken(2, 2, -1.0), ValueError, "variable 2 of S has the variance -1"),
    (sparse.eye_array(3), TypeError, "S must be a dense matrix"),
    ([[1.0, 2.0], [2.0, 1.0]], ValueError, "no negative eigenvalues.*its smallest is -1"),
]


@pytest.mark.parametrize(("S", "error", "message"), BAD)
def test_what_is_no_covariance_is_refused(S, error, message):
    with pytest.raises(error, match=message):
        GaussianCovariance(S)


def test_other_bad_input():
    S, X = make_S(3), make_rows(3)
    for n in (0, -3):
        with pytest.raises(ValueError, match="n_samples must be at least 1"):
            GaussianCovariance(S, n)
    with pytest.raises(TypeError, match="n_samples must be an integer"):
        GaussianCovariance(S, 10.0)
    with pytest.raises(ValueError, match=r"one entry per edge, shape \(3,\)"):
        GaussianCovariance(S, ridge=[1.0, 2.0])
    with pytest.raises(ValueError, match="tol must lie in"):
        GaussianCovariance(S, tol=0.0)
    constant = pd.DataFrame({"a": X[:, 0], "still": 0.1})
    with pytest.raises(ValueError, match="variable 'still' of X has the variance 0"):
        GaussianCovariance.from_data(constant)
    with pytest.raises(ValueError, match="X must have two rows or more"):
        GaussianCovariance.from_data(X[:1])
    with pytest.raises(ValueError, match="overflows when squared"):
        GaussianCovariance.from_data(1e200 * X)
    with pytest.raises(TypeError, match="X must be a dense matrix"):
        GaussianCovariance.from_data(sparse.csr_array(X))
    with pytest.raises(ValueError, match="support must hold the diagonal, coordinates 3 to 5"):
        GaussianCovariance(S).minimise(np.array([0, 3, 4]))
    with pytest.raises(ValueError, match="point is not positive definite"):
        GaussianCovariance(S).gradient(Point(np.arange(6), -np.ones(6), 0.0))


def test_single_precision_and_rounding_are_forgiven():
    S = make_S(6).astype(np.float32)
    S[0, 1] = np.nextafter(S[0, 1], 1)
    assert select(GaussianCovariance(S), k=3).end.size == 3
    rank_two = make_rows(6, 3)
    singular = np.cov(rank_two, rowvar=False).astype(np.float32)
    assert np.linalg.eigvalsh(singular.astype(float))[0] < 1e-6
    GaussianCovariance(singular)


def test_a_covariance_that_is_trusted_gives_the_same_steps():
    S = make_S(8)
    deviation = np.sqrt(np.diag(S))
    correlation = S / deviation[:, None] / deviation
    np.fill_diagonal(correlation, 1.0)
    for matrix in (S, correlation):
        checked = select(GaussianCovariance(matrix, 50, ridge=0.1), k=6)
        trusted = select(GaussianCovariance(KnownCovariance(matrix), 50, ridge=0.1), k=6)
        assert [s.feature for s in trusted.steps] == [s.feature for s in checked.steps]
        np.testing.assert_allclose(trusted.end.coef, checked.end.coef, rtol=1e-9, atol=1e-12)


def test_data_are_checked_once(monkeypatch):
    def refuse(S):
        raise AssertionError("checked again")

    monkeypatch.setattr("forback.validation.covariance.check_covariance", refuse)
    X = np.random.default_rng(0).normal(size=(50, 4))
    GaussianCovariance.from_data(X)
    FobaCovariance(k=2).fit(X)
    FobaCovariance(criterion="cv", cv=3).fit(X)
