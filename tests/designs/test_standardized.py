"""Standardised columns are a view: the same sums and scores as of a copy, from any storage."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from forback import FobaClassifier, FobaRegressor, FobaSelector, select
from forback.designs.dense import Dense
from forback.designs.make import make_design
from forback.designs.standardized import Standardized, find_scaling, standardized
from forback.objectives import GLM, LeastSquares, Logistic, Multinomial, PointwiseLoss
from forback.objectives.linear.data import LinearData
from forback.objectives.linear.losses import LOSSES as LOSSES_BY_NAME
from forback.objectives.linear.quadratic_fit import CholeskyFit
from forback.objectives.linear.slopes import by_passes, by_products
from forback.validation.arrays import share_out
from support.problems import LOSSES, make_response

#: Columns may be so many spreads away from zero; docs/reliability.md says so.
FARTHEST = 1e9

STORAGES = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "single": lambda X: X.astype(np.float32),
    "single by columns": lambda X: np.asfortranarray(X.astype(np.float32)),
    "sparse": sparse.csc_array,
    "sparse single": lambda X: sparse.csc_array(X.astype(np.float32)),
}
KINDS = ("gaussian", "zeros", "shifted", "far")


def make_table(kind, n, p, rng):
    X = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-2, 2, size=p)
    if kind == "zeros":
        X *= rng.random((n, p)) < 0.3
        X[:, 1] = 0.0
    if kind in ("shifted", "far"):
        X += (30.0 if kind == "shifted" else 3e4) * X.std(axis=0) * rng.normal(size=p)
        X[:, 2] = 7.0
    return X


def views(kind, storage, center, n=60, p=9, seed=0):
    """A view, and the design of a copy that says the same."""
    rng = np.random.default_rng(seed)
    X = STORAGES[storage](make_table(kind, n, p, rng))
    weights = share_out(rng.integers(1, 4, size=n).astype(float))[0]
    base = make_design(X)
    scaling = find_scaling(base, weights, center=center)
    plain = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    copy = (plain - scaling.center) / scaling.scale
    return Standardized(base, scaling), Dense(copy), weights, rng


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_sum_is_that_of_a_copy(kind, storage, center):
    view, copy, weights, rng = views(kind, storage, center)
    n, p = copy.shape
    mean, size = weights @ copy.X, np.sqrt(weights @ copy.X**2)
    if center:
        np.testing.assert_allclose(mean, 0.0, atol=1e-9)
        moving = np.setdiff1d(np.arange(p), [1] if kind == "zeros" else [2])
        np.testing.assert_allclose(size[moving], 1.0, rtol=1e-9)
    residual = weights * rng.normal(size=n)
    curvature = weights * rng.random(n)
    near = {"rtol": 1e-9, "atol": 1e-9 * size.max()}
    np.testing.assert_allclose(view.back_project(residual), copy.X.T @ residual, **near)
    many = rng.normal(size=(n, 3))
    np.testing.assert_allclose(view.back_project_all(many), copy.X.T @ many, **near)
    for found, expected in zip(
        view.three_sums(residual, curvature), copy.three_sums(residual, curvature), strict=True
    ):
        np.testing.assert_allclose(found, expected, **near)
    np.testing.assert_allclose(view.largest, copy.largest, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(view.gram(weights), copy.gram(weights), **near)
    some = np.array([5, 0, 3])
    np.testing.assert_allclose(view.toarray(some), copy.toarray(some), **near)
    entries = view.entries(some)
    for c, column in enumerate(some):
        dense = np.zeros(n)
        own = slice(entries.begin[c], entries.end[c])
        rows = entries.rows[entries.row_begin[c] :][: own.stop - own.start]
        dense[rows] = entries.data[own]
        np.testing.assert_allclose(dense, copy.X[:, column], **near)
    for place, chunk in view.chunks(some):
        np.testing.assert_allclose(chunk.largest(), copy.largest[some[place]], rtol=1e-9)


@pytest.mark.parametrize("n", [60, 20000])
@pytest.mark.parametrize("storage", ["rows", "sparse", "sparse single"])
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_are_those_of_a_copy(kind, storage, n):
    """Large sparse blocks stay sparse, with what is taken off their columns kept apart."""
    view, copy, weights, rng = views(kind, storage, True, n=n)
    columns = np.array([0, 3, 4, 7, 8])
    block = view.block(columns, intercept=True)
    plain = copy.block(columns, intercept=True)
    stays = storage != "rows" and kind in ("gaussian", "zeros") and n > 1000
    assert (block.shift is not None) == stays
    near = {"rtol": 1e-9, "atol": 1e-9}
    coef = rng.normal(size=6)
    residual = weights * rng.normal(size=n)
    curvature = weights * rng.random(n)
    np.testing.assert_allclose(block.predict(coef), plain.predict(coef), **near)
    np.testing.assert_allclose(block.back_project(residual), plain.back_project(residual), **near)
    np.testing.assert_allclose(block.sandwich(curvature), plain.sandwich(curvature), **near)
    np.testing.assert_allclose(block.cross(2, curvature), plain.cross(2, curvature), **near)
    np.testing.assert_allclose(block.toarray(), plain.toarray(), **near)
    few = np.array([5, 2, 17])
    np.testing.assert_allclose(block.at_rows(few).toarray(), plain.toarray()[few], **near)
    places = np.arange(6)
    for found, expected in (
        *zip(block.extent(places, curvature), plain.extent(places, curvature), strict=True),
        *zip(
            block.three_sums(residual, curvature),
            plain.three_sums(residual, curvature),
            strict=True,
        ),
    ):
        np.testing.assert_allclose(found, expected, **near)


def steps(model):
    return [(step.action, step.feature) for step in model.path_.steps]


@pytest.mark.parametrize("method", ["foba-gdt", "foba-obj"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_sparse_column_and_its_dense_twin_are_scored_alike(loss, fit_intercept, method):
    for seed, n in enumerate((80, 6000)):
        rng = np.random.default_rng(seed)
        X = rng.normal(1.0, 1.0, size=(n, 14)) * (rng.random((n, 14)) < 0.2)
        X[:, 3] += 5.0
        y = make_response(loss, (X - X.mean(axis=0))[:, :3] @ [1.0, -1.0, 0.7], rng)
        options = {"k": 4, "method": method, "fit_intercept": fit_intercept, "alpha": 1e-3}
        single = X.astype(np.float32)
        models = [
            FobaSelector(loss=loss, **options).fit(stored, y)
            for stored in (X, sparse.csr_array(X), single, single.astype(float))
        ]
        assert steps(models[0]) == steps(models[1])
        assert steps(models[2]) == steps(models[3])
        scores = [[step.score for step in model.path_.steps] for model in models]
        np.testing.assert_allclose(scores[0], scores[1], rtol=1e-6)
        coefs = [model.path_.end.coef for model in models]
        np.testing.assert_allclose(coefs[0], coefs[1], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("method", ["foba-gdt", "foba-obj"])
def test_the_same_for_several_classes_and_losses_of_ones_own(method):
    rng = np.random.default_rng(3)
    X = rng.normal(1.0, 1.0, size=(300, 10)) * (rng.random((300, 10)) < 0.3)
    labels = np.digitize(X[:, 0] - X[:, 1] + 0.2 * rng.normal(size=300), [-0.3, 0.3])
    options = {"k": 3, "method": method, "alpha": 1e-3}
    pairs = [(FobaClassifier(**options).fit(s(X), labels)) for s in (np.array, sparse.csr_array)]
    assert steps(pairs[0]) == steps(pairs[1])
    np.testing.assert_allclose(pairs[0].coef_, pairs[1].coef_, rtol=1e-5, atol=1e-7)
    own = PointwiseLoss(
        lambda eta, y: 0.5 * (eta - y) ** 2, lambda eta, y: eta - y, lambda eta, y: 1.0 + 0 * eta
    )
    for fit_intercept in (True, False):
        both = [
            FobaRegressor(loss=own, fit_intercept=fit_intercept, **options).fit(s(X), X[:, 4] + 1.0)
            for s in (np.array, sparse.csc_array)
        ]
        assert steps(both[0]) == steps(both[1])
        np.testing.assert_allclose(both[0].coef_, both[1].coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "poisson", "gamma"])
def test_what_stored_entries_tell_bounds_the_truth(loss):
    """Bounds on decreases and increases from the rows that are stored, most being alike."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(1.0, 1.0, size=(400, 12)) * (rng.random((400, 12)) < 0.1)
        y = make_response(loss, X[:, 0] - X[:, 1], rng)
        design = make_design(sparse.csc_array(X))
        weights = np.ones(400) / 400
        view = Standardized(design, find_scaling(design, weights, center=True))
        objective = GLM.from_data(on_design(LOSSES_BY_NAME[loss], view, y, ridge=1e-3))
        point = objective.minimise(np.array([0, 1, 5, 12]))
        lines, every = objective._lines(point), np.arange(12)
        exact = lines.decreases(every, 1e-14)
        rounding = 1e-9 * exact + 1e-15
        assert (lines._bounds_by_entries(every, 1e-14, 0.0) >= exact - rounding).all()
        # The best are found, whatever the bounds rule out.
        screened, _ = lines.screened_decreases(every, 1e-14)
        assert screened.argmax() == exact.argmax()
        assert screened.max() == pytest.approx(exact.max(), rel=1e-9)
        inside = np.array([0, 1, 5])
        lower, upper = lines.increase_bounds(inside)
        rises = lines.increases(inside)
        assert (lower <= rises).all()
        assert (rises <= upper).all()
        assert (upper - lower <= 0.5 * rises).all()


def test_single_precision_is_kept_and_agrees():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12)).astype(np.float32)
    y = X[:, 2] - X[:, 5] + 0.1 * rng.normal(size=200)
    single, double = FobaRegressor(k=2).fit(X, y), FobaRegressor(k=2).fit(X.astype(float), y)
    assert single.selected_.tolist() == double.selected_.tolist()
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("stored", [np.ascontiguousarray, np.asfortranarray, sparse.csc_array])
def test_nothing_as_large_as_X_is_made(stored, dtype):
    rng = np.random.default_rng(0)
    X = stored((rng.normal(size=(1500, 4000)) * (rng.random((1500, 4000)) < 0.5)).astype(dtype))
    y = rng.normal(size=1500)
    size = 1500 * 4000 * np.dtype(dtype).itemsize
    FobaRegressor(k=1).fit(X, y)  # compiles
    tracemalloc.start()
    try:
        FobaRegressor(k=5).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * size


# Far from zero ---------------------------------------------------------------------------------


def far_problem(seed, ratio, n=150, p=10):
    """Columns far from zero, and the same numbers, to the last bit, near it."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, p))
    shift = ratio * (1.0 + rng.random(p))
    X = shift + Z
    near = X - shift  # exact: the two are close
    eta = Z[:, :4] @ [1.0, -0.7, 0.5, 0.3]
    return X, near - near.mean(axis=0), eta, rng


def names(path):
    return [(step.action, step.feature) for step in path.steps]


@pytest.mark.parametrize("ratio", [1e3, 1e7, FARTHEST])
@pytest.mark.parametrize("loss", ["least squares", *LOSSES, "classes"])
def test_objectives_with_an_intercept_find_the_same_features_far_from_zero(loss, ratio):
    for seed in range(30 if loss in ("least squares", "squared") else 5):
        X, near, eta, rng = far_problem(seed, ratio)
        if loss == "classes":
            y = np.digitize(eta + 0.5 * rng.normal(size=len(eta)), [-0.7, 0.7])
        else:
            y = make_response("squared" if loss == "least squares" else loss, eta, rng)

        def build(X, y=y):
            if loss == "classes":
                return Multinomial(X, y, fit_intercept=True, ridge=1e-3)
            if loss == "least squares":
                return LeastSquares(X, y, fit_intercept=True)
            return GLM(loss, X, y, fit_intercept=True, ridge=1e-3)

        objective, expected = build(X), select(build(near), 4, "forward-gdt")
        path = select(objective, 4, "forward-gdt")
        assert names(path) == names(expected)
        # A point of a path has lost its cache; its gradient is the same all the same.
        p = objective.n_candidates
        found, true = objective.gradient(path.end), build(near).gradient(expected.end)
        np.testing.assert_allclose(found[:p], true[:p], atol=1e-3)


@pytest.mark.parametrize("ratio", [1e3, FARTHEST])
@pytest.mark.parametrize("method", ["foba-gdt", "foba-obj"])
@pytest.mark.parametrize("stored", [np.array, sparse.csr_array, sparse.csc_array])
def test_estimators_find_the_same_features_far_from_zero(stored, method, ratio):
    for seed in range(8):
        X, near, eta, rng = far_problem(seed, ratio)
        y = eta + 0.5 * rng.normal(size=len(eta))
        for model, target in (
            (FobaRegressor(k=4, method=method), y),
            (FobaRegressor(k=4, method=method), y + ratio),
            (FobaClassifier(k=4, method=method), y > 0),
        ):
            expected = names(model.fit(near, target).path_)
            coef = model.coef_.copy()
            assert names(model.fit(stored(X), target).path_) == expected
            np.testing.assert_allclose(model.coef_, coef, rtol=1e-5, atol=1e-6)


def on_design(loss, design, y, *, ridge=0.0):
    """The data of a model with an intercept on a design of its own."""
    n, p = design.shape
    return LinearData(
        loss,
        design,
        y,
        weights=np.full(n, 1.0 / n),
        offset=np.zeros(n),
        ridge=np.full(p, ridge),
        fit_intercept=True,
        tol=1e-10,
        max_iter=100,
        n_samples=n,
    )


def test_a_wide_table_far_from_zero_takes_no_part_in_cached_products():
    for ratio in (0.0, 10.0, 1e8):
        X, near, eta, rng = far_problem(1, ratio, n=100, p=400)
        y = eta + 0.5 * rng.normal(size=100)
        paths = []
        for table in (X, near):
            view, _ = standardized(Dense(table), np.full(100, 0.01), center=True)
            slopes = by_products if view.has_quick_products else by_passes
            data = replace(
                on_design(LOSSES_BY_NAME["squared"], view, y), fits=CholeskyFit, slopes=slopes
            )
            paths.append(select(GLM.from_data(data), k=6))
            assert view.has_quick_products == (table is near or ratio < 1e3)
        assert names(paths[0]) == names(paths[1])


def test_constant_columns_are_zero_once_they_are_centred():
    X = np.random.default_rng(0).normal(size=(50, 4))
    X[:, 1], X[:, 3] = 0.1, 1e12 / 3
    for stored in (np.array, sparse.csc_array):
        model = FobaClassifier(k=2).fit(stored(X), X[:, 0] + X[:, 2] > 0.3)
        assert model.selected_.tolist() == [2, 0] or model.selected_.tolist() == [0, 2]
        assert (model.coef_[0, [1, 3]] == 0.0).all()
        assert select(Logistic(stored(X), X[:, 0] > 0, fit_intercept=True, ridge=1.0), 1).end.size
