"""skscope's solvers, with the paper's algorithm behind them."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

jax = pytest.importorskip("jax")
jnp = jax.numpy

from forback import select  # noqa: E402
from forback.compat.skscope import FobaSolver, ForwardSolver, OMPSolver  # noqa: E402
from forback.objectives import LeastSquares  # noqa: E402

SOLVERS = (FobaSolver, ForwardSolver, OMPSolver)
METHODS = {FobaSolver: "foba-gdt", ForwardSolver: "forward-obj", OMPSolver: "forward-gdt"}

rng = np.random.default_rng(0)
N, P = 80, 9
X = rng.normal(size=(N, P))
y = 3.0 * X[:, 2] - 2.0 * X[:, 5] + X[:, 7] + 0.1 * rng.normal(size=N)


def squares(params):
    return jnp.sum((y - X @ params) ** 2)


def squares_of(params, data):
    return jnp.sum((data[1] - data[0] @ params) ** 2)


def slope_of(params, data):
    return 2.0 * data[0].T @ (data[0] @ params - data[1])


def numpy_squares_of(params, data):
    return np.sum((data[1] - data[0] @ params) ** 2)


def some_rows(data, rows):
    return data[0][rows], data[1][rows]


def bic(value, dimensionality, nonzeros, n):
    return n * np.log(value / n) + nonzeros * np.log(n)


def assert_least(params):
    """Nothing is left of the gradient on the support."""
    chosen = np.flatnonzero(params)
    slope = 2.0 * X.T @ (X @ params - y)
    assert np.abs(slope[chosen]).max() <= 1e-6 * np.abs(X.T @ y).max()


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_sparsity(solver):
    own = solver(P, sparsity=3)
    params = own.solve(squares)
    assert own.get_support().tolist() == [2, 5, 7]
    assert_least(params)
    result = own.get_result()
    assert result["objective_value"] == pytest.approx(np.sum((y - X @ params) ** 2), rel=1e-12)
    np.testing.assert_array_equal(own.get_estimated_params(), params)
    native = select(LeastSquares(X, y), k=3, method=METHODS[solver])
    np.testing.assert_allclose(params, native.coef(3), rtol=1e-8, atol=1e-10)
    assert [s.feature for s in own.path_.steps] == [s.feature for s in native.steps]


@pytest.mark.parametrize("solver", SOLVERS)
def test_own_gradient_and_data(solver):
    with_jax = solver(P, sparsity=3).solve(squares_of, (X, y))
    own = solver(P, sparsity=3).solve(numpy_squares_of, (X, y), gradient=slope_of)
    np.testing.assert_allclose(own, with_jax, atol=1e-6)
    assert_least(with_jax)


def test_data_with_a_default():
    def objective(params, data=(0.0 * X, y)):
        return squares_of(params, data)

    assert np.flatnonzero(OMPSolver(P, 3).solve(objective, (X, y))).tolist() == [2, 5, 7]

    def bound(params, X=X, y=y):
        return jnp.sum((y - X @ params) ** 2)

    assert np.flatnonzero(OMPSolver(P, 3).solve(bound)).tolist() == [2, 5, 7]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_criterion_chooses_among_sparsities(solver):
    own = solver(P, sparsity=[1, 2, 3, 5, 7], sample_size=N, ic_method=bic)
    params = own.solve(squares)
    merits = {k: bic(own.path_[k].value, P, k, N) for k in (1, 2, 3, 5, 7) if k in own.path_.sizes}
    assert np.count_nonzero(params) == min(merits, key=merits.get) == 3
    assert own.eval_objective == pytest.approx(merits[3])


def test_folds_choose_among_sparsities():
    own = FobaSolver(
        P, sparsity=[1, 3, 8], sample_size=N, cv=4, split_method=some_rows, random_state=0
    )
    own.solve(squares_of, (X, y))
    assert len(own.get_support()) in (3, 8)
    assert {2, 5, 7} <= set(own.get_support())
    fold = np.arange(N) % 4
    given = FobaSolver(
        P, sparsity=[1, 3], sample_size=N, cv=4, split_method=some_rows, cv_fold_id=fold
    )
    given.solve(squares_of, (X, y))
    losses = []
    for label in range(4):
        inside, outside = (fold != label), (fold == label)
        coef = np.linalg.lstsq(X[inside][:, [2, 5, 7]], y[inside], rcond=None)[0]
        losses.append(np.sum((y[outside] - X[outside][:, [2, 5, 7]] @ coef) ** 2))
    assert given.eval_objective == pytest.approx(np.mean(losses), rel=1e-4)
    assert given.get_support().tolist() == [2, 5, 7]


@pytest.mark.parametrize("seed", range(4))
def test_the_answer_for_a_sparsity_does_not_depend_on_the_others(seed):
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(60, 3))
    A = factors @ rng.normal(size=(3, 20)) + 0.3 * rng.normal(size=(60, 20))
    b = A[:, :4].sum(axis=1)

    def loss(params):
        return jnp.mean((b - A @ params) ** 2)

    def only_three(value, p, s, n):
        return 0 if s == 3 else 1

    alone, among = FobaSolver(20, 3), FobaSolver(20, [3, 10], 60, ic_method=only_three)
    np.testing.assert_array_equal(alone.solve(loss), among.solve(loss))


def test_before_solve_there_is_no_solution():
    with pytest.raises(NotFittedError, match="call solve first"):
        FobaSolver(5, 2).get_result()
    with pytest.raises(TypeError, match="sparsity"):
        FobaSolver(5, 2.5).solve(squares)


@pytest.mark.parametrize("solver", SOLVERS)
def test_groups_need_not_be_contiguous(solver):
    labels = ["a", "b", "c", "a", "b", "c", "a", "c", "b"]  # 2, 5 and 7 are c
    own = solver(P, sparsity=1, group=labels)
    assert_least(own.solve(squares))
    assert own.get_support().tolist() == [2, 5, 7]


@pytest.mark.parametrize("solver", SOLVERS)
def test_what_is_preselected_is_fitted_first(solver):
    # The column beside the intercept looks best until the intercept is fitted.
    n = 200
    own = np.random.default_rng(1)
    design = np.column_stack([np.ones(n), 1.0 + 0.1 * own.normal(size=n), own.normal(size=n)])
    response = 10.0 + 1.0 * design[:, 2] + 0.1 * own.normal(size=n)
    solved = solver(3, sparsity=2, preselect=[0])
    solved.solve(lambda b: jnp.sum((response - design @ b) ** 2))
    assert solved.get_support().tolist() == [0, 2]
    masked = solver(3, sparsity=2, preselect=np.arange(3) == 0)
    masked.solve(lambda b: jnp.sum((response - design @ b) ** 2))
    np.testing.assert_array_equal(masked.params, solved.params)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_threshold_ends_the_run(solver):
    own = solver(P, sparsity=4, threshold=1e6)
    with pytest.warns(UserWarning, match="sparsity 4 was not reached"):
        params = own.solve(squares)
    assert not params.any()


def test_use_gradient_is_foba_obj():
    own = FobaSolver(P, sparsity=3, use_gradient=False, foba_threshold_ratio=0.3)
    own.solve(squares)
    assert own.path_.settings["method"] == "foba-obj"
    assert own.path_.settings["ratio"] == 0.3


@pytest.mark.parametrize("solver", SOLVERS)
def test_solving_changes_no_parameter_and_the_answer_can_be_kept(solver):
    given = {"sparsity": [1, 2, 3], "sample_size": N, "ic_method": bic, "preselect": (2,)}
    own = solver(P, **given)
    before = own.get_params()
    params = own.solve(squares)
    assert own.get_params() == before
    again = pickle.loads(pickle.dumps(own))
    np.testing.assert_array_equal(again.params, params)
    assert clone(own).get_params() == before
    assert not hasattr(clone(own), "params")
    np.testing.assert_array_equal(clone(own).solve(squares), params)
    params[:] = np.nan
    assert np.isfinite(own.get_estimated_params()).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sparsity": 10}, "sparsity must lie between 0"),
        ({"sparsity": 1, "preselect": [0, 1]}, "between 2, what is preselected"),
        ({"sparsity": 3, "preselect": [99]}, "preselect holds 99"),
        ({"sparsity": [1, 2]}, "give ic_method, or cv with split_method"),
        ({"sparsity": [1, 2], "cv": 3, "sample_size": N}, "cv > 1 needs split_method"),
        ({"sparsity": [1, 2], "ic_method": bic}, "sample_size"),
        ({"sparsity": 2, "threshold": -1.0}, "threshold"),
        ({"sparsity": 2, "preselect": [True, False]}, "a mask of length 2; there are"),
        ({"sparsity": 2, "preselect": 0}, "preselect must be a list"),
        ({"sparsity": [1, 2], "ic_method": "aic", "sample_size": N}, "ic_method must be callable"),
        ({"sparsity": [1, 2], "ic_method": lambda *_: np.nan, "sample_size": N}, "returned NaN"),
    ],
)
def test_what_is_said_about_wrong_parameters(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        FobaSolver(P, **options).solve(squares)


@pytest.mark.parametrize("name", [solver.__name__ for solver in SOLVERS])
def test_the_same_supports_as_skscope_where_that_is_easy(name):
    skscope = pytest.importorskip("skscope")
    theirs, own = getattr(skscope, name)(P, sparsity=3), {s.__name__: s for s in SOLVERS}[name]
    theirs.solve(squares_of, (X.copy(), y.copy()))  # its own arrays: it works in single precision
    ours = own(P, sparsity=3)
    ours.solve(squares)
    assert sorted(theirs.get_support()) == ours.get_support().tolist()
