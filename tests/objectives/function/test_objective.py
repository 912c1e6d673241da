"""Functions of NumPy vectors as objectives: the contract, whatever else is known about them."""

import itertools
import random
import warnings

import numpy as np
import pytest

from forback import select
from forback.core.blocks import Blocks
from forback.core.status import Status
from forback.objectives import LeastSquares, Logistic, from_function
from forback.selection.rules import METHODS
from forback.testing import check_objective
from support.problems import make_problem
from support.written import EXTRAS, Ridged, assert_optimal, quadratic, steps

SUBSETS = [
    chosen for size in range(len(EXTRAS) + 1) for chosen in itertools.combinations(EXTRAS, size)
]


def make_written(seed=0, **options):
    problem = make_problem("logistic", "correlated", seed, n=40, p=6)
    return Ridged(problem.X, problem.y, **options)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("extras", SUBSETS, ids="-".join)
def test_contract(extras, fit_intercept):
    written = make_written(fit_intercept=fit_intercept)
    exact = "hessian" in extras or "hessian_vector" in extras
    check_objective(written.objective(*extras), optimality=1e-8 if exact else 1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("extras", SUBSETS, ids="-".join)
def test_what_else_is_known_does_not_change_the_path(extras, method):
    written = make_written(3)
    path = select(written.objective(*extras), method=method)
    plain = select(written.objective("hessian"), method=method)
    assert steps(path) == steps(plain)
    assert_optimal(written.objective(), path)
    np.testing.assert_allclose(
        [s.value for s in path.steps], [s.value for s in plain.steps], rtol=0.0, atol=1e-11
    )


def test_curvature_leaves_candidates_out_and_not_the_best_one():
    written = make_written(5)
    bounded = written.objective("hessian", "curvature")
    blocks = Blocks.singles(np.arange(6), np.zeros(0, np.intp))
    left_out = 0
    for support in ([], [0], [1, 4]):
        point = bounded.minimise(np.array(support, dtype=np.intp))
        exact = bounded.decrease_if_added(point, blocks).values
        screened, solved = bounded.decrease_if_added(point, blocks, only_best=True)
        assert np.argmax(screened) == np.argmax(exact)
        assert screened.max() == pytest.approx(exact.max(), rel=1e-9)
        assert (screened >= exact * (1 - 1e-9) - 1e-15).all()
        left_out += len(blocks) - solved
    assert left_out > 0


def test_a_pure_quadratic_is_least_squares():
    problem = make_problem("squared", "correlated", 2, n=50, p=8, ridge=1e-2)
    H = problem.X.T @ problem.X / 50 + 1e-2 * np.eye(8)
    c = problem.X.T @ problem.y / 50
    for method in METHODS:
        own = select(from_function(quadratic(H, c), 8, hessian=lambda beta: H), method=method)
        native = select(LeastSquares(problem.X, problem.y, ridge=1e-2), method=method)
        assert steps(own) == steps(native)
        np.testing.assert_allclose(own.coef(8), native.coef(8), rtol=1e-8, atol=1e-10)


def test_names_reach_the_path():
    path = select(make_written().objective(names=[*"abcdef"]), k=2, always=["c"])
    assert 2 in path.end.support
    with pytest.raises(ValueError, match="one name per candidate: 6, got 2"):
        make_written().objective(names=["a", "b"])
    with pytest.raises(ValueError, match="'a' twice"):
        make_written().objective(names=[*"abcdea"])


@pytest.mark.parametrize("method", METHODS)
def test_no_candidates_at_all(method):
    H = np.diag([1.0, 2.0])
    objective = from_function(quadratic(H, np.ones(2)), 2, n_candidates=0)
    path = select(objective, method=method)
    assert path.steps == [] or len(path.steps) == 0
    np.testing.assert_allclose(path.end.coef, [1.0, 0.5], rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_one_coordinate(method):
    path = select(from_function(lambda b: ((b[0] - 3.0) ** 2, 2 * (b - 3.0)), 1), method=method)
    assert path.coef(1)[0] == pytest.approx(3.0, rel=1e-9)


def test_size_zero_fits_what_is_always_in():
    written = make_written(fit_intercept=True)
    path = select(written.objective(), k=0)
    assert len(path.steps) == 0
    assert abs(written(path.coef(0))[1][-1]) < 1e-7


# What a function of somebody else may do, and what must not happen to others --------------------


def test_a_function_may_write_to_its_argument():
    written = make_written()

    def careless(beta):
        answer = written(beta)
        beta[:] = np.nan
        return answer

    def careless_many(betas):
        answer = written.value_many(betas)
        betas[:] = np.nan
        return answer

    def careless_product(beta, v):
        answer = written.hessian_vector(beta, v)
        beta[:], v[:] = np.nan, np.nan
        return answer

    given = {"hessian_vector": careless_product, "value_many": careless_many}
    for method in METHODS:
        own = select(from_function(careless, 6, **given), method=method)
        plain = select(written.objective("hessian_vector", "value_many"), method=method)
        assert steps(own) == steps(plain)
        np.testing.assert_array_equal(own.coef(6), plain.coef(6))


def test_a_function_may_return_the_same_array_each_time():
    written, buffer, square = make_written(), np.empty(6), np.empty((6, 6))

    def thrifty(beta):
        value, buffer[:] = written(beta)
        return value, buffer

    def thrifty_hessian(beta):
        square[:] = written.hessian(beta)
        return square

    for method in METHODS:
        own = select(from_function(thrifty, 6, hessian=thrifty_hessian), method=method)
        plain = select(written.objective("hessian"), method=method)
        assert steps(own) == steps(plain)
        np.testing.assert_array_equal(own.coef(6), plain.coef(6))


def test_a_function_may_return_other_kinds_of_numbers():
    written = make_written()

    def loose(beta):
        value, gradient = written(beta)
        return np.array(value), gradient.tolist()

    np.testing.assert_array_equal(
        select(from_function(loose, 6), k=3).coef(3), select(written.objective(), k=3).coef(3)
    )


@pytest.mark.parametrize("extras", [(), ("hessian",), ("value_many",)], ids="-".join)
@pytest.mark.parametrize("method", METHODS)
def test_interleaved_runs_are_separate_runs(method, extras):
    objective = make_written(3).objective(*extras)
    alone = select(objective, method=method)
    others = []

    def meanwhile(step):
        others.append(select(objective, k=2, method="foba-obj").coef(2))

    together = select(objective, method=method, callback=meanwhile)
    fresh = select(make_written(3).objective(*extras), method=method)
    for path in (together, fresh):
        assert steps(path) == steps(alone)
        for ours, theirs in zip(path.points, alone.points, strict=True):
            np.testing.assert_array_equal(ours.coef, theirs.coef)
    for coef in others:
        np.testing.assert_array_equal(coef, others[0])


def test_the_world_outside_is_left_alone():
    written = make_written()
    kept = written.X.copy(), written.y.copy()
    start, curvature = np.zeros(6), tuple(part.copy() for part in written.curvature)
    np.random.seed(1)  # noqa: NPY002
    random.seed(1)
    before = np.random.get_state()[1].copy(), random.getstate(), list(warnings.filters)  # noqa: NPY002
    floats = np.geterr()
    select(from_function(written, 6, start=start, curvature=curvature), method="foba-obj")
    np.testing.assert_array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert random.getstate() == before[1]
    assert warnings.filters == before[2]
    assert np.geterr() == floats
    np.testing.assert_array_equal(written.X, kept[0])
    np.testing.assert_array_equal(written.y, kept[1])
    np.testing.assert_array_equal(start, np.zeros(6))
    np.testing.assert_array_equal(curvature[0], written.curvature[0])


def test_arrays_handed_over_are_copied():
    written = make_written()
    low, high = (part.copy() for part in written.curvature)
    objective = written.objective(curvature=(low, high))
    first = select(objective, method="foba-obj")
    low[:], high[:] = 1e9, 1e9
    again = select(objective, method="foba-obj")
    np.testing.assert_array_equal(first.coef(6), again.coef(6))


def test_a_gradient_handed_out_may_be_written_to():
    objective = make_written().objective()
    point = objective.minimise(np.array([1, 2]))
    objective.gradient(point)[:] = np.nan
    assert np.isfinite(objective.gradient(point)).all()


# Hard functions ----------------------------------------------------------------------------------


def huber(beta):
    """Straight nearly everywhere."""
    X, y = make_written().X, 10.0 * make_written().X[:, 1]
    r = X @ beta - y
    inside = np.clip(r, -0.1, 0.1)
    return np.mean(inside * r - inside**2 / 2), X.T @ inside / len(r)


def quartic(beta):
    """No curvature where it starts."""
    return np.sum(beta**4) - beta @ np.arange(1.0, 7.0), 4 * beta**3 - np.arange(1.0, 7.0)


def log_barrier(beta):
    """Infinite outside a polyhedron."""
    X, e = make_written().X / 5, np.eye(6)[0] + np.eye(6)[3]
    slack = 1.0 - X @ beta
    if slack.min() <= 0.0:
        return np.inf, beta
    value = -np.mean(np.log(slack)) + beta @ beta / 2 - e @ beta
    return value, X.T @ (1 / slack) / len(X) + beta - e


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("function", [huber, quartic, log_barrier])
def test_hard_functions_keep_the_contract(function, many):
    values = {"value_many": lambda betas: [function(beta)[0] for beta in betas]} if many else {}
    objective = from_function(function, 6, **values)
    check_objective(objective)
    for method in METHODS:
        assert_optimal(objective, select(objective, method=method))


@pytest.mark.parametrize("backward", ["coordinate", "refit"])
@pytest.mark.parametrize("method", METHODS)
def test_a_log_determinant_that_starts_at_its_diagonal(method, backward):
    X = np.random.default_rng(0).normal(size=(60, 4)) @ np.triu(np.ones((4, 4)))
    S, (rows, columns) = np.cov(X, rowvar=False), np.triu_indices(4, 1)

    def likelihood(beta):
        K = np.diag(beta[6:])
        K[rows, columns] = K[columns, rows] = beta[:6]
        if np.linalg.eigvalsh(K)[0] <= 0.0:
            return np.inf, beta
        slope = S - np.linalg.inv(K)
        value = np.sum(K * S) - np.linalg.slogdet(K)[1]
        return value, np.r_[2 * slope[rows, columns], np.diag(slope)]

    start = np.r_[np.zeros(6), np.ones(4)]
    objective = from_function(likelihood, 10, n_candidates=6, start=start)
    check_objective(objective)
    path = select(objective, method=method, backward=backward)
    assert path.end.value == pytest.approx(4 + np.linalg.slogdet(S)[1], rel=1e-9)


@pytest.mark.parametrize("unit", [1e-15, 1e-9, 1e9])
def test_units_and_constants_do_not_matter(unit):
    written = make_written(3)
    objective = from_function(lambda b: (unit * written(b)[0], unit * written(b)[1]), 6)
    check_objective(objective)
    for method in METHODS:
        expected = steps(select(written.objective(), method=method))
        assert steps(select(objective, method=method)) == expected


@pytest.mark.parametrize("seed", [181, 233, 7, 8])
@pytest.mark.parametrize("method", ["forward-gdt", "foba-obj"])
def test_second_derivatives_do_no_harm_where_classes_are_separable(method, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(24, 13)) * np.exp(2 * rng.normal(size=13))
    if seed % 2:
        X[rng.random(X.shape) < 0.7] = 0
    y = (rng.random(24) < 0.5).astype(float)
    function = Ridged(X, y, ridge=0.0)
    native = select(Logistic(X, y), k=8, method=method)
    for extras in ((), ("hessian",), ("hessian_vector",)):
        path = select(function.objective(*extras), k=8, method=method)
        assert not any("not converged" in step.note for step in path.steps)
        for size in native.sizes[:5]:
            assert path.best(size).value == pytest.approx(native.best(size).value, rel=1e-6)


def make_classes(seed):
    """Columns on different scales, sparse or binary, and classes that some of them separate."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([12, 24, 60]))
    X = rng.normal(size=(n, 6)) * np.exp(2 * rng.normal(size=6))
    if seed % 3 == 1:
        X[rng.random(X.shape) < 0.7] = 0.0
    if seed % 3 == 2:
        X = (rng.random(X.shape) < 0.3).astype(float)
    y = X[:, 1] > np.median(X[:, 1]) if seed % 2 else rng.random(n) < 0.5
    return X, y.astype(float), [np.sort(rng.choice(6, size, replace=False)) for size in (1, 2, 4)]


@pytest.mark.parametrize("extras", [(), ("hessian",), ("hessian_vector",)], ids="-".join)
@pytest.mark.parametrize("seed", range(24))
def test_fits_without_a_minimiser_are_those_of_logistic(seed, extras):
    X, y, supports = make_classes(seed)
    native = Logistic(X, y, fit_intercept=False)
    objective = Ridged(X, y, ridge=0.0).objective(*extras)
    for support in supports:
        expected, found = native.minimise(support), objective.minimise(support)
        assert found.status is expected.status
        assert found.note == expected.note


def test_some_of_these_fits_have_no_minimiser():
    statuses = []
    for seed in range(24):
        X, y, supports = make_classes(seed)
        objective = Logistic(X, y, fit_intercept=False)
        statuses += [objective.minimise(support).status for support in supports]
    assert statuses.count(Status.NO_MINIMISER) >= 12
    assert statuses.count(Status.CONVERGED) >= 24


@pytest.mark.parametrize("method", METHODS)
def test_the_step_after_which_classes_are_separated_says_so(method):
    X = np.random.default_rng(0).normal(size=(200, 8))
    y = (X[:, 2] > 0.7 * X[:, 5]).astype(float)
    path = select(Ridged(X, y, ridge=0.0).objective(), k=4, method=method)
    assert [step.feature for step in path.steps] == [2, 5]
    assert [step.point.status for step in path.steps] == [Status.CONVERGED, Status.NO_MINIMISER]
    assert "no minimiser" in path.steps[1].note
    assert "separable data" in path.end.note
    ridged = select(Ridged(X, y, ridge=1e-6).objective(), k=2, method=method)
    assert all(step.point.status is Status.CONVERGED for step in ridged.steps)
