"""Every objective keeps the contract, in every storage, weighted or not."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from forback import select
from forback.core.blocks import Blocks
from forback.core.objective import Objective, Scores
from forback.core.point import Point
from forback.designs.sparse import Sparse
from forback.objectives import GLM, LeastSquares, PointwiseLoss
from forback.objectives.linear.losses import Squared
from forback.selection.rules import METHODS
from forback.testing import check_objective
from reference.functions import DenseQ
from support.hard_problems import by_strategy
from support.problems import LOSSES, make_problem


@pytest.mark.parametrize("storage", ["dense", "csc"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_contract(loss, fit_intercept, weighted, storage):
    for design in ("gaussian", "binary"):
        problem = make_problem(
            loss, design, 1, n=30, p=6, fit_intercept=fit_intercept, weighted=weighted
        )
        check_objective(problem.objective(storage=storage), optimality=1e-8)


class TwiceSquared(Squared):
    """Twice the squared loss: as quadratic, but for the methods that know that one alone."""

    curvature = (2.0, 2.0)

    def value(self, eta, y):
        return 2.0 * super().value(eta, y)

    def d1(self, eta, y):
        return 2.0 * super().d1(eta, y)

    def d2(self, eta, y):
        return 2.0 * super().d2(eta, y)


DOUBLED = PointwiseLoss(
    lambda eta, y: (eta - y) ** 2,
    lambda eta, y: 2.0 * (eta - y),
    lambda eta, y: 2.0 + 0.0 * eta,
    name="doubled",
    curvature=(2.0, 2.0),
)


@pytest.mark.parametrize("storage", ["dense", "csc"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", [DOUBLED, TwiceSquared()], ids=["own", "subclass"])
def test_a_quadratic_loss_that_is_not_the_squared_one(loss, fit_intercept, storage):
    problem = make_problem("squared", "gaussian", 1, n=30, p=6)
    X = sparse.csc_array(problem.X) if storage == "csc" else problem.X
    objective = GLM(loss, X, problem.y, ridge=0.02, fit_intercept=fit_intercept)
    check_objective(objective, optimality=1e-8)
    plain = LeastSquares(X, problem.y, ridge=0.01, fit_intercept=fit_intercept)
    ours, theirs = (select(one, 3, refine="swap") for one in (objective, plain))
    assert ours[3].support.tolist() == theirs[3].support.tolist()
    assert ours[3].value == pytest.approx(2.0 * theirs[3].value)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("storage", ["dense", "csc"])
def test_formulas_agree_with_the_reference(loss, storage):
    rng = np.random.default_rng(0)
    problem = make_problem(
        loss, "binary", 2, fit_intercept=True, weighted=True, offset=rng.normal(size=40) / 4
    )
    objective, Q = problem.objective(storage=storage), problem.reference()
    for _ in range(5):
        beta = rng.normal(size=objective.dim) / 2
        value, gradient = objective.value_and_gradient(beta)
        assert value == pytest.approx(Q.value(beta), rel=1e-12)
        np.testing.assert_allclose(gradient, Q.gradient(beta), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("loss", LOSSES)
def test_duplicate_rows_are_weights(loss):
    problem = make_problem(loss, "gaussian", 3, weighted=True, fit_intercept=True)
    weights = problem.options["sample_weight"].astype(int)
    repeated = GLM(
        loss, np.repeat(problem.X, weights, axis=0), np.repeat(problem.y, weights),
        ridge=1e-2, fit_intercept=True,
    )  # fmt: skip
    ours, theirs = select(problem.objective(), k=4), select(repeated, k=4)
    assert [s.feature for s in ours.steps] == [s.feature for s in theirs.steps]
    np.testing.assert_allclose(ours.coef(4), theirs.coef(4), rtol=1e-7, atol=1e-9)


def test_rows_of_weight_zero_do_not_exist():
    problem = make_problem("poisson", "gaussian", 3)
    X, y = problem.X.copy(), problem.y.copy()
    X[0] = 1e6
    weights = np.ones(len(y))
    weights[0] = 0.0
    with_zero = select(GLM("poisson", X, y, sample_weight=weights), k=3)
    without = select(GLM("poisson", X[1:], y[1:]), k=3)
    np.testing.assert_array_equal(with_zero.coef(3), without.coef(3))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("storage", ["dense", "csc"])
def test_permuting_rows_and_columns_permutes_the_answer(loss, storage):
    problem = make_problem(loss, "gaussian", 4, fit_intercept=True)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(40), rng.permutation(8)
    plain = select(problem.objective(storage=storage), k=4).coef(4)
    problem.X, problem.y = problem.X[rows][:, columns], problem.y[rows]
    permuted = select(problem.objective(storage=storage), k=4).coef(4)
    np.testing.assert_allclose(permuted[:8], plain[:8][columns], rtol=1e-7, atol=1e-9)


def test_ridge_per_coefficient_and_offset():
    rng = np.random.default_rng(5)
    X, y, offset = rng.normal(size=(50, 4)), rng.normal(size=50), rng.normal(size=50)
    ridge = np.array([0.0, 0.1, 1.0, 10.0])
    objective = LeastSquares(X, y, ridge=ridge, offset=offset, fit_intercept=True)
    point = objective.minimise(np.arange(5))
    Z = np.column_stack([X, np.ones(50)])
    exact = np.linalg.solve(Z.T @ Z / 50 + np.diag([*ridge, 0.0]), Z.T @ (y - offset) / 50)
    np.testing.assert_allclose(point.coef, exact, rtol=1e-9)


def test_refitted_removal_costs_are_those_of_refitting():
    problem = make_problem("squared", "correlated", 6, p=10, fit_intercept=True, weighted=True)
    objective = problem.objective()
    support = np.array([0, 2, 3, 5, 8, 10])
    point = objective.minimise(support)
    always = np.array([10])
    for blocks in (
        Blocks.singles(support[:-1], always),
        Blocks.of([np.array([0, 5]), np.array([2]), np.array([3, 8])], always),
    ):
        costs = objective.increase_after_refit(point, blocks).values
        refits = [
            objective.minimise(np.setdiff1d(support, block)).value - point.value for block in blocks
        ]
        np.testing.assert_allclose(costs, refits, rtol=1e-8)


def test_interleaved_runs_are_separate_runs():
    objective = make_problem("logistic", "correlated", 7, p=10).objective()
    alone = {k: select(objective, k=k, method="foba-obj") for k in (3, 6)}
    inner = []

    def interfere(step):
        inner.append(select(objective, k=3, method="foba-obj"))

    outer = select(objective, k=6, method="foba-obj", callback=interfere)
    for k, path in ((6, outer), (3, inner[0]), (3, inner[-1])):
        assert [s.value for s in path.steps] == [s.value for s in alone[k].steps]


@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array, sparse.csr_matrix])
def test_inputs_are_never_modified_and_may_be_read_only(make):
    problem = make_problem("logistic", "binary", 8)
    X, y = make(problem.X), problem.y.copy()
    before = X.copy()
    for array in [y, *([X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr])]:
        array.flags.writeable = False
    select(GLM("logistic", X, y), k=3)
    assert abs(X - before).max() == 0


def test_any_layout_and_number_type_gives_the_same_path(tmp_path):
    rng = np.random.default_rng(9)
    whole = rng.integers(0, 2, size=(80, 16))
    y = (whole[:, 3] + whole[:, 6] + rng.normal(size=80) > 1).astype(float)
    file = tmp_path / "X.npy"
    np.save(file, whole.astype(float))
    layouts = [
        whole,
        whole.astype(bool),
        whole.astype(np.float32),
        np.asfortranarray(whole.astype(float)),
        np.load(file, mmap_mode="r"),
        np.repeat(whole, 2, axis=1)[:, ::2].astype(float),
        np.flip(np.flip(whole.astype(float), 0).copy(), 0),
        whole.tolist(),
        sparse.coo_matrix(whole),
        sparse.csr_array(whole.astype(np.int8)),
    ]
    paths = [select(GLM("logistic", X, y, ridge=0.01), k=5) for X in layouts]
    for path in paths[1:]:
        assert [s.feature for s in path.steps] == [s.feature for s in paths[0].steps]
        np.testing.assert_allclose(path.coef(5), paths[0].coef(5), rtol=1e-9, atol=1e-12)


def test_a_sparse_matrix_with_duplicate_entries_is_summed_in_a_copy():
    rows, columns = [0, 0, 1, 2, 3], [0, 0, 1, 0, 1]
    X = sparse.csc_array(sparse.coo_array(([1.0, 2.0, 1.0, 1.0, 4.0], (rows, columns)), (4, 2)))
    Q = DenseQ("squared", X.toarray(), np.arange(4.0))
    beta = np.array([0.5, -1.0])
    assert LeastSquares(X, np.arange(4.0)).value_and_gradient(beta)[0] == Q.value(beta)


def test_the_contract_check_can_fail():
    class Wrong(LeastSquares):
        def increase_if_removed(self, point, blocks, *, below=None):
            return Scores.exact(1.01 * super().increase_if_removed(point, blocks).values)

    class Worse(LeastSquares):
        def gradient(self, point):
            return 1.001 * super().gradient(point)

    class Lazy(LeastSquares):
        def decrease_if_added(self, point, blocks, *, only_best=False):
            return Scores.exact(0.0 * super().decrease_if_added(point, blocks).values)

    class Hopeful(LeastSquares):
        def decrease_if_exchanged(self, point, inside, outside, *, estimate=False):
            found = super().decrease_if_exchanged(point, inside, outside, estimate=estimate)
            return Scores(found.values if estimate else found.values + 0.1 * point.value, 0)

    class Boastful(LeastSquares):
        def decrease_if_exchanged(self, point, inside, outside, *, estimate=False):
            found = super().decrease_if_exchanged(point, inside, outside, estimate=estimate)
            return found._replace(values=1.01 * found.values) if estimate else found

    class Repetitive(LeastSquares):
        def cheapest_removals(self, point, blocks, most):
            return np.zeros(most + 1, dtype=np.intp)

    class Wasteful(LeastSquares):
        def cheapest_removals(self, point, blocks, most):
            return np.array([self.increase_after_refit(point, blocks).values.argmax()])

    class Careless(LeastSquares):
        def minimise(self, support, start=None):
            point = super().minimise(support, start)
            return replace(point, coef=point.coef * (1 + 1e-4))

    class Unitless(LeastSquares):
        resolution = Objective.resolution

    problem = make_problem("squared", "gaussian", 0)
    with pytest.raises(AssertionError, match="give the objective a method resolution"):
        check_objective(Unitless(problem.X, 1e-8 * problem.y))
    with pytest.raises(TypeError, match="got object, which lacks dim"):
        check_objective(object())
    for scale in (1e-6, 1.0, 1e6):
        check_objective(LeastSquares(problem.X, scale * problem.y), supports=5)
        for broken in (Wrong, Worse, Lazy, Hopeful, Boastful, Repetitive, Wasteful, Careless):
            with pytest.raises(AssertionError):
                check_objective(broken(problem.X, scale * problem.y), supports=5)


def test_refitted_removal_costs_of_collinear_groups():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(100, 3))
    X = np.c_[x[:, 0], x[:, 0], x[:, 1], x[:, 1] + x[:, 0], x[:, 2]]
    objective = LeastSquares(X, x @ [1.0, 2.0, 3.0] + rng.normal(size=100), fit_intercept=True)
    support, always = np.arange(6), np.array([5])
    point = objective.minimise(support)
    blocks = Blocks.of([np.array([0, 1]), np.array([2, 3]), np.array([4])], always)
    refits = [
        objective.minimise(np.setdiff1d(support, block)).value - point.value for block in blocks
    ]
    costs = objective.increase_after_refit(point, blocks).values
    np.testing.assert_allclose(costs, refits, rtol=1e-8, atol=1e-12)
    for groups in ([0, 0, 1, 1, 2], [0, 0, 0, 0, 1]):
        path = select(objective, groups=groups, backward="refit", ratio=0.999, max_steps=40)
        assert "max_steps" not in path.stop_reason


def test_an_unsorted_sparse_matrix_is_left_as_it_is():
    from forback import FobaRegressor

    indices, indptr = np.array([3, 0, 2, 2, 1, 0]), np.array([0, 2, 4, 6])
    X = sparse.csc_matrix((np.arange(1.0, 7.0), indices.copy(), indptr), shape=(4, 3))
    select(LeastSquares(X, np.arange(4.0)), k=1)
    FobaRegressor(k=1).fit(X, np.arange(4.0))
    np.testing.assert_array_equal(X.indices, indices)
    np.testing.assert_array_equal(X.data, np.arange(1.0, 7.0))


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_columns_that_stay_sparse(loss, fit_intercept):
    """Small sparse fits are dense; here none is, so that the kernels for sparse rows are used."""
    problem = make_problem(loss, "correlated", 11, n=60, p=12, fit_intercept=fit_intercept)
    problem.X[np.random.default_rng(1).random(problem.X.shape) < 0.6] = 0.0
    usual = {method: select(problem.objective(), method=method) for method in METHODS}

    def objective():
        design = partial(Sparse, max_dense_block=0)
        X = sparse.csc_array(problem.X)
        return by_strategy(loss, X, problem.y, design=design, **problem.options)

    check_objective(objective(), optimality=1e-8)
    for method in METHODS:
        sparse_path = select(objective(), method=method)
        steps = [
            [(s.action, s.feature) for s in path.steps] for path in (sparse_path, usual[method])
        ]
        assert steps[0] == steps[1]
        values = [[s.value for s in path.steps] for path in (sparse_path, usual[method])]
        np.testing.assert_allclose(*values, rtol=1e-9)


class Bowl(Objective):
    """Least squares by the two methods that an objective must have."""

    dim = n_candidates = 5

    def __init__(self, X, y):
        self.X, self.y = X, y

    def minimise(self, support, start=None):
        coef = np.linalg.lstsq(self.X[:, support], self.y, rcond=None)[0]
        beta = np.zeros(self.dim)
        beta[support] = coef
        return Point(support, coef, self.value_and_gradient(beta)[0])

    def value_and_gradient(self, beta):
        residual = self.X @ beta - self.y
        return residual @ residual / 2 / len(residual), self.X.T @ residual / len(residual)


def test_two_methods_make_an_objective():
    """All scores have defaults, and these are the brute force that the check compares with."""
    problem = make_problem("squared", "correlated", 1, p=5, ridge=0.0)
    bowl = Bowl(problem.X, problem.y)
    check_objective(bowl)
    for method in ("foba-gdt", "foba-obj"):
        path = select(bowl, k=3, method=method)
        native = select(LeastSquares(problem.X, problem.y), k=3, method=method)
        assert [s.feature for s in path.steps] == [s.feature for s in native.steps]
        assert path.end.value == pytest.approx(native.end.value)
    with pytest.raises(ValueError, match="Bowl has no response"):
        select(bowl, epsilon="auto")


def test_the_check_names_the_coordinate_whose_gradient_is_wrong():
    class Slip(Bowl):
        def value_and_gradient(self, beta):
            value, gradient = super().value_and_gradient(beta)
            gradient[3] += 1e-4
            return value, gradient

    problem = make_problem("squared", "gaussian", 0, p=5, ridge=0.0)
    with pytest.raises(AssertionError, match="finite difference: coordinate 3 is"):
        check_objective(Slip(problem.X, problem.y), optimality=1.0)
