"""Every quick route gives the answer of the slow one: single precision, moments, small fits."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from forback.core.blocks import Blocks
from forback.designs import dense_block as blocks
from forback.designs import sparse_block as sparse_blocks
from forback.designs.dense import Dense
from forback.designs.design import PreviousBlock
from forback.objectives import GLM, LeastSquares, Logistic
from forback.objectives.linear import fit
from forback.objectives.linear import problem as restricted
from forback.objectives.linear.fit import GlmCache, NewtonFit
from forback.objectives.linear.quadratic_fit import CholeskyFit, MomentCache, MomentFit
from forback.objectives.linear.slopes import GramTable, by_passes, by_products, by_single_precision
from forback.solvers.kernels.vectors import overlap
from support.hard_problems import (
    METHODS,
    assert_same_path,
    build,
    by_strategy,
    hard_data,
    run,
    steps,
    stored,
)
from support.problems import LOSSES

STORAGES = ("C", "F", "csc")
SCALES = ("plain", "spread", "overflowing", "vanishing", "copies")


def scaled(X, how, rng):
    """X with columns that single precision can hardly hold, or hardly tell apart."""
    X, p = X.copy(), X.shape[1]
    if how == "spread":
        X *= 10.0 ** rng.uniform(-30, 30, size=p)
    elif how == "overflowing":
        X[:, : p // 2] *= 1e39
    elif how == "vanishing":
        X[:, : p // 2] *= 1e-46
    elif how == "copies":
        X[:, p // 2 :] = X[:, : p - p // 2] * (1.0 + 1e-9 * rng.normal(size=(len(X), p - p // 2)))
    return X


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("how", SCALES)
@pytest.mark.parametrize("loss", LOSSES)
def test_mixed_precision_is_double_precision(loss, how, storage):
    for seed, method in enumerate(METHODS):
        X, y = hard_data(loss, "gaussian", seed, n=45, p=30)
        X = stored(scaled(X, how, np.random.default_rng(seed)), storage)
        # A ridge of any size would be infinite for some of these columns and nothing for others.
        fixed = {"fit_intercept": seed % 2 == 0, "ridge": 1e-3 if how == "plain" else 0.0}
        double, mixed = (
            run(build(loss, X, y, precision=precision, **fixed), method, k=6)
            for precision in ("double", "mixed")
        )
        assert_same_path(mixed, double, 1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_mixed_precision_over_many_rows_and_columns(method):
    X, y = hard_data("logistic", "correlated", 3, n=2500, p=300)
    for data in (X, X.astype(np.float32), np.asfortranarray(X)):
        double, mixed = (
            run(Logistic(data, y, precision=precision), method, k=6)
            for precision in ("double", "mixed")
        )
        assert_same_path(mixed, double, 1e-12)
        assert all(step.solved < 150 for step in mixed.steps if step.action == "add")


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("size", [1e38, 1e150])
def test_mixed_precision_where_only_sums_overflow(storage, size):
    X, y = hard_data("logistic", "gaussian", 9, n=1500, p=40)
    X[:, :20] *= size
    for method in METHODS:
        double, mixed = (
            run(Logistic(stored(X, storage), y, precision=precision), method, k=4)
            for precision in ("double", "mixed")
        )
        assert_same_path(mixed, double, 1e-12)


def test_an_unknown_precision_is_named():
    for make in (Logistic, LeastSquares):
        with pytest.raises(ValueError, match=r"precision.*other"):
            make(np.eye(3), [0, 1, 0], precision="other")


@pytest.mark.parametrize("precision", ["double", "mixed"])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", LOSSES)
def test_single_precision_input_is_its_conversion_to_double(loss, storage, precision):
    X, y = hard_data(loss, "correlated", 5, n=45, p=12)
    single = stored(X.astype(np.float32), storage)
    before = single.copy()
    objective = build(loss, single, y, fit_intercept=True, precision=precision)
    held, given = objective.design.X, single
    if storage == "csc":
        held, given, before = held.data, given.data, before.data
        given.flags.writeable = False
    else:
        single.flags.writeable = False
    assert np.shares_memory(held, given)
    assert held.dtype == np.float32
    for method in METHODS:
        double = build(loss, single.astype(np.float64), y, fit_intercept=True)
        assert_same_path(run(objective, method, k=5), run(double, method, k=5), 1e-9)
    np.testing.assert_array_equal(given, before)


def least_squares_problems():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(60, 10)) + rng.normal(size=(60, 1))
    y = X[:, :3] @ [2.0, -1.0, 0.5] + rng.normal(size=60)
    far = X + 1e3 * rng.normal(size=10)
    doubled = np.column_stack([X[:, :5], X[:, :5]])
    problems = {
        "ordinary": (X, y, {}),
        "weighted": (X, y, {"sample_weight": 10.0 ** rng.uniform(-3, 3, size=60)}),
        "offset": (X, y, {"offset": 3.0 * rng.normal(size=60), "fit_intercept": True}),
        "ridge": (X, y, {"ridge": 10.0 ** rng.uniform(-6, 1, size=10), "fit_intercept": True}),
        "far from zero": (far, y + 1e3, {"fit_intercept": True}),
        "far from zero, no intercept": (far, y + 1e3, {}),
        "duplicated": (doubled, y, {}),
        "duplicated, far": (doubled + 300.0, y, {"fit_intercept": True}),
        "tiny y": (X, 1e-100 * y, {"fit_intercept": True}),
        "huge y": (X, 1e100 * y, {}),
        "perfect fit": (X, X[:, :3] @ [2.0, -1.0, 0.5], {}),
    }
    for digits in (3, 5, 7):
        near = np.column_stack([X[:, :5], X[:, :5] + 10.0**-digits * rng.normal(size=(60, 5))])
        problems[f"collinear to 1e-{digits}"] = near, y, {}
    return problems


PROBLEMS = least_squares_problems()

#: Products are never given up, and come three at a time.
EAGER_PRODUCTS = partial(by_products, columns_per_pass=3, min_used=0)

ROUTES = {
    "newton": {"fits": NewtonFit, "slopes": by_passes},
    "factor": {"fits": CholeskyFit, "slopes": by_passes},
    "moments": {"fits": MomentFit, "slopes": by_passes},
    "grams": {"fits": CholeskyFit, "slopes": EAGER_PRODUCTS},
}


def by_route(route, problem, method, **options):
    X, y, fixed = problem
    return run(by_strategy("squared", X, y, **ROUTES[route], **fixed), method, **options)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_least_squares_by_moments_by_factor_and_by_newton(problem, method):
    for options in ({}, {"k": 4, "backward": "refit", "ratio": 0.9}):
        paths = [by_route(route, PROBLEMS[problem], method, **options) for route in ROUTES]
        for path in paths[1:]:
            assert_same_path(path, paths[0], 1e-9)
        if problem.startswith("duplicated") and not options:
            assert paths[0].end.size == 5
            assert all(step.feature < 5 for path in paths for step in path.steps)


@pytest.mark.parametrize("method", METHODS)
def test_least_squares_at_the_limit_of_what_numbers_can_tell(method):
    """With coefficients of 1e8 eta is rounded to 1e-8, by whatever route."""
    rng = np.random.default_rng(9)
    X, y, fixed = PROBLEMS["ordinary"]
    near = np.column_stack([X[:, :5], X[:, :5] + 1e-9 * rng.normal(size=(60, 5))])
    paths = [by_route(route, (near, y, fixed), method) for route in ROUTES]
    for path in paths[1:]:
        assert steps(path)[:5] == steps(paths[0])[:5]
        assert path.end.size == paths[0].end.size
        assert path.end.value == pytest.approx(paths[0].end.value, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("far", [0.0, 30.0, 300.0, 900.0])
def test_copies_of_columns_far_from_zero_still_tie(far, method):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, half = (400, 17) if seed % 2 else (150, 5)
        own = rng.normal(size=(n, half)) + 3.0 * rng.normal(size=(n, 1))
        y = own[:, :3] @ [1.0, -1.0, 0.5] + 0.1 * rng.normal(size=n)
        objective = LeastSquares(np.column_stack([own, own]) + far, y, fit_intercept=True)
        path = run(objective, method, k=half)
        assert all(step.feature < half for step in path.steps)


@pytest.mark.parametrize("route", ROUTES)
def test_duplicates_are_passed_over_with_a_note(route):
    path = by_route(route, PROBLEMS["duplicated"], "foba-gdt")
    assert path.end.size == 5
    assert "no candidate left" in path.stop_reason


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("design", ["gaussian", "correlated"])
def test_a_pass_for_several_columns_replaces_several_passes(design, method, monkeypatch):
    X, y = hard_data("squared", design, 2, n=150, p=300)
    options = {"ridge": 1e-3, "fit_intercept": True, "offset": X[:, 1]}
    plain = run(LeastSquares(X, y, **options), method, k=25)
    tables = []
    learn = GramTable._learn
    monkeypatch.setattr(
        GramTable, "_learn", lambda table, columns: tables.append(table) or learn(table, columns)
    )
    monkeypatch.setattr(GLM, "gradient", lambda *given: pytest.fail("a pass for the residual"))
    strategies = {"fits": CholeskyFit, "slopes": partial(by_products, min_used=0)}
    quick = run(by_strategy("squared", X, y, **strategies, **options), method, k=25)
    assert_same_path(quick, plain, 1e-9)
    assert len(set(tables)) == 1
    assert tables[0]._passes < 0.7 * len(tables)
    assert all(step.solved < 30 for step in quick.steps if step.action == "add")
    # Nothing of one run is left for the next, which gives the same bits.
    again = run(by_strategy("squared", X, y, **strategies, **options), method, k=25)
    assert [step.score for step in again.steps] == [step.score for step in quick.steps]


def test_several_columns_at_once_are_given_up_where_guesses_are_bad():
    X, y = hard_data("squared", "gaussian", 2, n=60, p=40)
    slopes = partial(by_products, min_used=100)
    path = run(by_strategy("squared", X, y, fits=CholeskyFit, slopes=slopes), "foba-gdt", k=8)
    plain = run(by_strategy("squared", X, y, fits=CholeskyFit), "foba-gdt", k=8)
    assert_same_path(path, plain, 1e-9)
    assert [step.solved < 40 for step in path.steps if step.action == "add"][:2] == [True, True]
    assert path.steps[-1].solved == 40


@pytest.mark.parametrize("scale", [1e-170, 1e-120, 1e120])
def test_sizes_that_vanish_or_overflow_when_squared(scale):
    X, y = hard_data("squared", "gaussian", 2, n=60, p=12)
    X[:, 3] *= scale
    X[:, 5] = 0.0
    quick, plain = (
        run(by_strategy("squared", X, y, fits=CholeskyFit, slopes=slopes), "forward-gdt", k=4)
        for slopes in (by_products, by_passes)
    )
    assert_same_path(quick, plain, 1e-9)


def test_cached_slopes_where_the_intercept_is_not_in():
    X, y = hard_data("squared", "gaussian", 2, n=60, p=12)
    objective = by_strategy(
        "squared", X, y + 3.0, fits=CholeskyFit, slopes=by_products, fit_intercept=True
    )
    point = objective.minimise(np.array([2, 5]))
    blocks = Blocks.singles(np.arange(12), np.array([12]))
    found, exact = objective.gradient_norms(point, blocks, only_best=True)
    norms = objective.gradient_norms(point, blocks).values
    best = np.argmax(norms)
    assert exact < 12
    assert found[best] == pytest.approx(norms[best])
    outside = np.setdiff1d(np.arange(12), point.support)
    assert (found[outside] >= norms[outside] * (1 - 1e-9)).all()


def test_threads_that_go_on_from_one_point_share_what_is_known():
    X, y = hard_data("squared", "gaussian", 2, n=120, p=60)
    objective = by_strategy("squared", X, y, fits=CholeskyFit, slopes=EAGER_PRODUCTS)
    start = objective.minimise(np.array([0]))

    def go_on(first):
        point, best = start, []
        for j in range(first, first + 10):
            point = objective.minimise(np.union1d(point.support, [j]), point)
            blocks = Blocks.singles(np.arange(60), np.zeros(0, np.intp))
            norms = objective.gradient_norms(point, blocks, only_best=True).values
            outside = np.setdiff1d(np.arange(60), point.support)
            best.append(outside[np.argmax(norms[outside])])
            gradient = np.abs(objective.gradient(point)[outside])
            assert best[-1] == outside[np.argmax(gradient)]
        return best

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(go_on, (1, 13, 25, 37)))
    assert together == [go_on(first) for first in (1, 13, 25, 37)]


@pytest.mark.parametrize(
    ("loss", "fits", "slopes"),
    [
        ("squared", CholeskyFit, by_products),
        ("squared", MomentFit, by_products),
        ("logistic", NewtonFit, by_passes),
        ("logistic", NewtonFit, by_single_precision),
    ],
)
def test_a_point_of_another_objective_is_only_a_start(loss, fits, slopes):
    X, y = hard_data("logistic", "gaussian", 2, n=80, p=9)
    precision = "mixed" if slopes is by_single_precision else "double"
    make = partial(by_strategy, loss, X, fits=fits, slopes=slopes, ridge=0.1, precision=precision)
    other = make(1 - y).minimise(np.array([1, 4]))
    objective = make(y)
    np.testing.assert_allclose(
        objective.gradient(other), objective.gradient(other.without_cache()), rtol=1e-9
    )
    warm, cold = (
        objective.minimise(np.array([1, 4, 6]), other),
        objective.minimise(np.array([1, 4, 6])),
    )
    np.testing.assert_allclose(warm.coef, cold.coef, rtol=1e-7)
    assert warm.value == pytest.approx(cold.value, rel=1e-12)


def test_an_intercept_may_come_later():
    X, y = hard_data("logistic", "gaussian", 2, n=80, p=4)
    objective = Logistic(X, y, ridge=0.1, fit_intercept=True)
    without = objective.minimise(np.array([1, 3]))
    both = objective.minimise(np.array([1, 3, 4]), without)
    np.testing.assert_allclose(both.coef, objective.minimise(np.array([1, 3, 4])).coef, rtol=1e-8)


def test_one_long_column():
    y = np.arange(140_000) % 2
    X = (y + np.sin(np.arange(140_000.0)))[:, None]
    for maker in (LeastSquares, Logistic):
        path = run(maker(X, y, ridge=0.1), "foba-obj", k=1)
        assert path.end.size == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_with_a_tall_and_narrow_table(dtype):
    rng = np.random.default_rng(0)
    X, r = rng.normal(size=(40_000, 7)).astype(dtype), rng.normal(size=40_000)
    design = Dense(X)
    plain = X.astype(float).T @ r
    np.testing.assert_allclose(design.back_project(r), plain, rtol=1e-12, atol=1e-10)


def squared(X, y, **options):
    return GLM("squared", X, y, **options)


@pytest.mark.parametrize("make", [LeastSquares, squared])
def test_the_data_choose_the_routes(make):
    """The squared loss takes its own routes by whatever name it goes."""
    X, y, _ = PROBLEMS["ordinary"]
    wide = np.zeros((2048, 1024))
    support = np.array([1, 2])
    assert isinstance(make(X, y), GLM)
    assert isinstance(make(X, y).minimise(support).cache, MomentCache)
    assert isinstance(make(X, y)._fits, MomentFit)
    assert make(X, y)._find_leading is by_passes
    assert isinstance(make(X[:8], y[:8])._fits, MomentFit)
    assert type(make(np.tile(X, 100), y)._fits) is CholeskyFit
    assert isinstance(make(np.tile(X, 100), y).minimise(support).cache, GlmCache)
    assert type(make(np.ones((150, 200)), np.arange(150.0))._fits) is CholeskyFit
    assert make(wide, np.arange(2048.0))._find_leading is by_products
    assert make(wide.astype(np.float32), np.arange(2048.0))._find_leading is by_passes
    assert make(X, y, precision="mixed")._find_leading is by_single_precision
    assert type(make(X, y, precision="mixed")._fits) is CholeskyFit
    assert type(Logistic(X, y > 0)._fits) is NewtonFit
    assert Logistic(wide, np.arange(2048) % 2)._find_leading is by_passes


def test_removal_costs_after_refits_have_a_closed_form(monkeypatch):
    X, y, _ = PROBLEMS["ordinary"]
    objective = squared(X, y, fit_intercept=True)
    point = objective.minimise(np.array([1, 2, 5, 10]))
    blocks = Blocks.singles(np.array([1, 2, 5]), np.array([10]))
    slow = super(GLM, objective).increase_after_refit(point, blocks).values
    monkeypatch.setattr(GLM, "minimise", lambda *given: pytest.fail("a refit"))
    np.testing.assert_allclose(objective.increase_after_refit(point, blocks).values, slow)


@pytest.mark.parametrize("loss", LOSSES)
def test_an_objective_can_be_copied_and_pickled(loss):
    X, y = hard_data(loss, "gaussian", 1, n=40, p=6)
    objective = build(loss, X, y, fit_intercept=True)
    path = run(objective, k=2)
    for other in (copy.deepcopy(objective), pickle.loads(pickle.dumps(objective))):
        assert_same_path(run(other, k=2), path, 1e-15)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", LOSSES)
def test_small_fits_and_many_rows_at_once(loss, storage, monkeypatch):
    X, y = hard_data(loss, "correlated", 6, n=70, p=10)
    weights = np.random.default_rng(0).random(70)
    for method in METHODS:

        def path(method=method, **strategies):
            options = {"fit_intercept": True, "ridge": 1e-4, "sample_weight": weights}
            made = by_strategy(loss, stored(X, storage), y, **strategies, **options)
            return run(made, method)

        plain = path()
        assert_same_path(path(fits=partial(NewtonFit, max_small_work=0)), plain, 1e-9)
        if storage != "csc":
            assert_same_path(path(design=partial(Dense, max_copied_block=0)), plain, 1e-9)
        for module, name, value in (
            (restricted, "ROWS_AT_ONCE", 16),
            (sparse_blocks, "ROWS_AT_ONCE", 16),
            (blocks, "SANDWICH_ENTRIES", 64),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(module, name, value)
                assert_same_path(path(), plain, 1e-9)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_large_blocks_grow_in_place_and_never_into_each_other(fit_intercept):
    X, y = hard_data("logistic", "gaussian", 3, n=80, p=9)
    options = {"ridge": 0.01, "fit_intercept": fit_intercept}
    objective = by_strategy("logistic", X, y, design=partial(Dense, max_copied_block=0), **options)
    always = np.arange(9, objective.dim)

    def fit(columns, start=None):
        return objective.minimise(np.append(columns, always).astype(np.intp), start)

    def holds(point):
        block = point.cache.block
        table = np.column_stack([X, np.ones(80)])[:, point.support]
        np.testing.assert_array_equal(block.toarray(), table)
        np.testing.assert_array_equal(block.column(0), table[:, 0])
        weights = np.arange(80.0)
        sandwich = table.T @ (weights[:, None] * table)
        np.testing.assert_allclose(block.sandwich(weights), sandwich, rtol=1e-12, atol=1e-10)
        cold = fit(point.support[: len(point.support) - len(always)])
        np.testing.assert_allclose(point.coef, cold.coef, rtol=1e-6)

    root = fit([4, 7])
    first = fit([4, 6, 7], root)
    further = fit([0, 4, 6, 7], first)
    assert further.cache.block.columns.base is first.cache.block.columns.base
    other = fit([4, 5, 6, 7], first)  # its room is taken already
    assert other.cache.block.columns.base is not first.cache.block.columns.base
    for columns in ([0, 7], [0, 1, 4, 6, 7]):
        before = PreviousBlock(further.cache.block, *overlap(np.array(columns), further.support))
        copied = Dense(X).block(np.array(columns), intercept=False, previous=before)
        assert copied.order is None
        np.testing.assert_array_equal(copied.toarray(), X[:, columns])
    less = fit([0, 4, 7], further)
    again = fit([0, 4, 7, 8], less)
    for point in (root, first, further, other, less, again):
        holds(point)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_without_entries_may_be_left_out(loss, method, monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 20)) * (rng.random((300, 20)) < 0.03)
    _, y = hard_data(loss, "gaussian", 4, n=300)
    options = {"ridge": 1e-4, "offset": 0.1 * rng.normal(size=300)}
    cut = run(GLM(loss, sparse.csc_array(X), y, **options), method, k=6)
    with monkeypatch.context() as patch:
        patch.setattr(sparse_blocks, "without_empty_rows", lambda columns: (columns, None))
        whole = run(GLM(loss, sparse.csc_array(X), y, **options), method, k=6)
    dense = run(GLM(loss, X, y, **options), method, k=6)
    assert_same_path(cut, whole, 1e-9)
    assert_same_path(cut, dense, 1e-9)
    assert len(steps(cut)) >= 6


@pytest.mark.parametrize("loss", ["logistic", "poisson", "gamma", "huber", "squared_hinge"])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_step_along_what_joins_changes_where_a_fit_starts_and_not_where_it_ends(
    loss, intercept, monkeypatch
):
    rng = np.random.default_rng(0)
    X = sparse.csc_array((rng.random((3000, 12)) < 0.1) * rng.normal(size=(3000, 12)))
    y = 1.0 * (X[:, [3]].toarray()[:, 0] + rng.normal(size=3000) > 0) + (loss == "gamma")
    model = GLM(loss, X, y, fit_intercept=intercept)
    model.design.max_dense_block = 0
    begun = []
    start = NewtonFit._start

    def noted(self, task):
        begun.append(start(self, task))
        return begun[-1]

    monkeypatch.setattr(NewtonFit, "_start", noted)
    always = [12] if intercept else []
    few = model.minimise(np.array([1, 5, *always]))
    ends = []
    for least in (1 << 30, 1):
        monkeypatch.setattr(fit, "MIN_ROWS_TO_STEP_ALONG", least)
        ends.append(model.minimise(np.array([1, 3, 5, *always]), few))
    (plain, _), (ahead, _) = begun[-2:]
    assert plain.coef[1] == 0.0
    assert abs(ahead.gradient[1]) < 0.1 * abs(plain.gradient[1])
    assert ends[0].value < ahead.value < plain.value
    np.testing.assert_allclose(ends[1].coef, ends[0].coef, rtol=1e-7, atol=1e-9)
    assert abs(ends[1].value - ends[0].value) <= 1e-12 * abs(ends[0].value)
