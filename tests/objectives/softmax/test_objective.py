"""Softmax regression: its contract, its gauge, and agreement with what others have written."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from forback import select
from forback.core.blocks import Blocks
from forback.core.point import Point
from forback.core.status import Status
from forback.objectives import Logistic, Multinomial
from forback.selection.rules import METHODS
from forback.selection.ties import highest
from forback.testing import check_objective
from reference.algorithm1 import foba
from reference.functions import SoftmaxQ
from support.problems import DESIGNS, information, make_design


def softmax_data(seed, n=60, p=5, k=3, design="gaussian", strength=1.0):
    rng = np.random.default_rng(seed)
    X = make_design(design, n, p, rng)
    truth = np.zeros((p, k))
    truth[: min(p, 3)] = strength * rng.normal(size=(min(p, 3), k))
    y = (X @ truth + rng.gumbel(size=(n, k))).argmax(axis=1)
    y[:k] = np.arange(k)
    return X, y


def stored(X, storage):
    return {
        "dense": np.asarray, "csc": sparse.csc_array, "single": lambda X: X.astype(np.float32),
        "sparse single": lambda X: sparse.csc_array(X.astype(np.float32)),
    }[storage](X)  # fmt: skip


def with_always(objective, support):
    return np.append(support, np.arange(objective.n_candidates, objective.dim)).astype(np.intp)


def rows_of(columns, k):
    return (np.asarray(columns)[:, None] * k + np.arange(k)).ravel()


def row_blocks(objective, columns=None):
    k = len(objective.classes)
    columns = range(objective.n_candidates // k) if columns is None else columns
    always = np.arange(objective.n_candidates, objective.dim)
    return Blocks.of([rows_of([j], k) for j in columns], always)


def assert_optimal(objective, point, tol=1e-9):
    """No gradient on the support, relative to what it was before; rows of least norm."""
    before = np.abs(objective.value_and_gradient(np.zeros(objective.dim))[1]).max()
    value, gradient = objective.value_and_gradient(point.dense(objective.dim))
    assert np.abs(gradient[point.support]).max(initial=0.0) <= tol * before
    assert value == pytest.approx(point.value, rel=1e-12, abs=1e-14)
    k = len(objective.classes)
    table = point.dense(objective.dim).reshape(-1, k)
    inside = np.isin(np.arange(objective.dim), point.support).reshape(-1, k).all(axis=1)
    assert np.abs(table[inside].sum(axis=1)).max(initial=0.0) <= 1e-12 * max(1, np.abs(table).max())


# The contract -------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["dense", "csc"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 1e-2])
def test_contract(storage, weighted, fit_intercept, ridge):
    for k, design in ((2, "gaussian"), (3, "gaussian"), (4, "binary")):
        X, y = softmax_data(1, n=80, p=4, k=k, design=design, strength=0.5)
        weights = np.random.default_rng(0).integers(1, 4, size=80) if weighted else None
        objective = Multinomial(
            stored(X, storage), y, ridge=ridge, fit_intercept=fit_intercept, sample_weight=weights
        )
        check_objective(objective, optimality=1e-8)


@pytest.mark.parametrize("storage", ["dense", "csc", "single", "sparse single"])
def test_formulas_are_the_references(storage):
    rng = np.random.default_rng(0)
    X, y = softmax_data(2)
    X = X.astype(np.float32).astype(float)  # so that all storages hold the same numbers
    weights, ridge = rng.random(60), rng.random(5)
    options = {"ridge": ridge, "fit_intercept": True, "sample_weight": weights}
    objective, Q = Multinomial(stored(X, storage), y, **options), SoftmaxQ(X, y, 3, **options)
    for size in (0.1, 1.0, 10.0):
        beta = size * rng.normal(size=objective.dim)
        value, gradient = objective.value_and_gradient(beta)
        assert value == pytest.approx(Q.value(beta), rel=1e-12)
        np.testing.assert_allclose(gradient, Q.gradient(beta), rtol=1e-9, atol=1e-13)


def test_scores_of_a_thousand_are_no_trouble():
    X = np.array([[1.0], [1.0], [-1.0], [2.0]])
    objective = Multinomial(X, [0, 1, 2, 0])
    beta = np.array([1000.0, -1000.0, 0.0])
    value, gradient = objective.value_and_gradient(beta)
    # Rows 0 and 3 fit; row 1 is 2000 wrong and row 2, whose class 1 scores 1000, is 1000 wrong.
    assert value == pytest.approx((2000.0 + 1000.0) / 4)
    np.testing.assert_allclose(gradient, [0.25, -0.5, 0.25])
    start = Point(np.arange(3), beta, value)
    assert objective.minimise(np.arange(3), start).value < 1.0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("storage", ["dense", "csc"])
def test_permuting_rows_and_columns_permutes_the_answer(method, storage):
    X, y = softmax_data(3, p=7)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(60), rng.permutation(7)
    options = {"ridge": 1e-2, "fit_intercept": True}
    plain = select(Multinomial(stored(X, storage), y, **options), 4, method)
    X, y = X[rows][:, columns], y[rows]
    permuted = select(Multinomial(stored(X, storage), y, **options), 4, method)
    np.testing.assert_allclose(
        permuted.coef(4).reshape(-1, 3)[:7], plain.coef(4).reshape(-1, 3)[columns], atol=1e-8
    )


def test_duplicate_rows_are_weights_and_rows_of_weight_zero_do_not_exist():
    X, y = softmax_data(4)
    weights = np.random.default_rng(1).integers(0, 4, size=60)
    weights[:3] = 1, 2, 0
    options = {"ridge": 1e-2, "fit_intercept": True}
    weighted = Multinomial(X, y, sample_weight=weights, **options)
    repeated = Multinomial(np.repeat(X, weights, axis=0), np.repeat(y, weights), **options)
    assert weighted.n_samples == repeated.n_samples == weights.sum()
    for method in METHODS:
        ours, theirs = select(weighted, method=method), select(repeated, method=method)
        assert [s.feature for s in ours.steps] == [s.feature for s in theirs.steps]
        np.testing.assert_allclose(ours.coef(3), theirs.coef(3), rtol=1e-7, atol=1e-9)
    rare = np.append(y[1:], 7)  # a class that no row that counts belongs to
    counts = np.append(np.ones(59), 0.0)
    assert Multinomial(X, rare, sample_weight=counts).classes.tolist() == [0, 1, 2]


@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array, sparse.csr_matrix])
def test_inputs_are_never_modified_and_may_be_read_only(make):
    X, y = softmax_data(5)
    X, before = make(X), make(X).copy()
    for array in [y, *([X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr])]:
        array.flags.writeable = False
    for method in METHODS:
        select(Multinomial(X, y, ridge=1e-3), 3, method)
    assert abs(X - before).max() == 0


# The gauge ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, 1e-3])
def test_the_answer_is_the_one_of_least_norm_whatever_the_start(ridge):
    X, y = softmax_data(6, n=100)
    objective = Multinomial(X, y, ridge=ridge, fit_intercept=True)
    support = with_always(objective, rows_of([0, 3], 3))
    point = objective.minimise(support)
    assert_optimal(objective, point)
    for shift in (1.0, -30.0):
        off = point.coef.reshape(-1, 3) + shift * np.array([[1.0], [-2.0], [0.5]])
        again = objective.minimise(support, Point(support, off.ravel(), 0.0))
        assert_optimal(objective, again)
        np.testing.assert_allclose(again.coef, point.coef, atol=1e-8)


@pytest.mark.parametrize("ridge", [0.0, 1e-2])
def test_partial_rows_are_fitted_as_they_are(ridge):
    X, y = softmax_data(7, n=100)
    objective, Q = Multinomial(X, y, ridge=ridge), SoftmaxQ(X, y, 3, ridge=ridge)
    support = np.array([0, 2, 3, 4, 5, 10])  # column 1 is wholly in, columns 0 and 3 are not
    point = objective.minimise(support)
    assert_optimal(objective, point)
    assert point.coef[2:5].sum() == pytest.approx(0.0, abs=1e-12)

    def restricted(coef):
        beta = np.zeros(Q.dim)
        beta[support] = coef
        return Q.value(beta), Q.gradient(beta)[support]

    plain = optimize.minimize(restricted, np.zeros(6), jac=True, method="BFGS")
    assert point.value == pytest.approx(plain.fun, abs=1e-9)
    _, _, freedom = information(objective, point)
    assert freedom == 5  # three single ones, and two for the whole row


def test_information():
    X, y = softmax_data(8, n=90, k=4)
    objective = Multinomial(X, y, ridge=1e-2, fit_intercept=True)
    point = objective.minimise(with_always(objective, rows_of([1, 2], 4)))
    loglik, n, freedom = information(objective, point)
    assert (n, freedom) == (90, 3 * 3)  # K - 1 for each feature, and for the intercepts
    eta = np.column_stack([X, np.ones(90)]) @ point.dense(objective.dim).reshape(-1, 4)
    shares = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    assert loglik == pytest.approx(np.log(shares[np.arange(90), y]).sum(), rel=1e-10)


# Others -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [1e-3, 0.1])
@pytest.mark.parametrize("k", [3, 5])
def test_scikit_learn_finds_the_same(ridge, k):
    X, y = softmax_data(9, n=150, k=k)
    objective = Multinomial(X, y, ridge=ridge, fit_intercept=True)
    point = objective.minimise(with_always(objective, rows_of([0, 2, 4], k)))
    assert_optimal(objective, point)
    theirs = LogisticRegression(C=1 / (150 * ridge), tol=1e-12, max_iter=10**5, solver="newton-cg")
    theirs.fit(X[:, [0, 2, 4]], y)
    table = point.dense(objective.dim).reshape(-1, k)
    np.testing.assert_allclose(table[[0, 2, 4]].T, theirs.coef_, atol=1e-6)
    intercepts = theirs.intercept_ - theirs.intercept_.mean()
    np.testing.assert_allclose(table[5], intercepts, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ridge", [0.0, 2e-2])
def test_two_classes_are_a_logistic_regression_with_half_the_ridge(method, ridge):
    X, y = softmax_data(10, n=100, p=8, k=2, design="correlated", strength=0.5)
    # The logistic coefficient b is the difference of two that sum to zero, b/2 and -b/2:
    # their penalty r/2 (b^2/4 + b^2/4) is that of b with ridge r/2.
    two = select(Multinomial(X, y, ridge=ridge, fit_intercept=True), method=method)
    one = select(Logistic(X, y, ridge=ridge / 2, fit_intercept=True), method=method)
    assert [(s.action, s.feature) for s in two.steps] == [(s.action, s.feature) for s in one.steps]
    np.testing.assert_allclose([s.value for s in two.steps], [s.value for s in one.steps])
    for size in one.sizes:
        table = two.coef(size).reshape(-1, 2)
        np.testing.assert_allclose(table[:, 1] - table[:, 0], one.coef(size), atol=1e-7)


# Paths --------------------------------------------------------------------------------------


def assert_same_steps(X, y, method, *, groups=None, always=(), storage="dense", **model):
    options = {name: model.pop(name) for name in ("k", "ratio", "backward") if name in model}
    objective = Multinomial(stored(X, storage), y, **model)
    Q, n_classes, p = SoftmaxQ(X, y, len(np.unique(y)), **model), len(np.unique(y)), X.shape[1]
    labels = list(range(p)) if groups is None else list(groups)
    path = select(objective, method=method, groups=groups, always=list(always), **options)
    if any(point.status is Status.NO_MINIMISER for point in path.points):
        return None  # then the reference has nothing to say
    columns = [
        [j for j in range(p) if labels[j] == label and j not in always]
        for label in dict.fromkeys(labels)
    ]
    numbers = [number for number, own in enumerate(columns) if own]
    blocks = [rows_of(columns[number], n_classes).tolist() for number in numbers]
    expected = list(
        foba(
            Q, blocks, [*rows_of(list(always), n_classes), *range(Q.n_candidates, Q.dim)],
            gradient_rule=method.endswith("gdt"), backward=method.startswith("foba"),
            ratio=options.get("ratio", 0.5), refit=options.get("backward") == "refit",
            k=options.get("k"),
        )
    )  # fmt: skip
    assert [(s.action, s.feature) for s in path.steps] == [
        (action, numbers[block]) for action, block, _, _ in expected
    ]
    for step, (_, _, chosen, beta) in zip(path.steps, expected, strict=True):
        assert step.size == len(chosen)
        assert step.value == pytest.approx(Q.value(beta), rel=1e-8, abs=1e-9)
        assert_optimal(objective, step.point, 1e-8)
    return path


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(2, 4),
    design=st.sampled_from(DESIGNS),
    storage=st.sampled_from(["dense", "csc"]),
    method=st.sampled_from(tuple(METHODS)),
    ridge=st.sampled_from([0.0, 1e-2]),
    fit_intercept=st.booleans(),
    weighted=st.booleans(),
    grouped=st.booleans(),
    insist=st.booleans(),
    backward=st.sampled_from(["coordinate", "refit"]),
    ratio=st.sampled_from([0.0, 0.5, 0.9]),
)
def test_every_step_is_the_references(seed, k, design, weighted, grouped, insist, **rest):
    X, y = softmax_data(seed, n=50, p=5, k=k, design=design, strength=0.5)
    if weighted:
        rest["sample_weight"] = np.random.default_rng(seed).integers(1, 4, size=50)
    groups = ["b", "a", "b", "c", "a"] if grouped else None
    path = assert_same_steps(X, y, groups=groups, always=[1] if insist else [], **rest)
    assume(path is not None)


@pytest.mark.parametrize("method", ["foba-gdt", "foba-obj"])
def test_runs_in_which_features_leave_are_the_references_too(method):
    removed = 0
    for seed in range(40):
        X, y = softmax_data(seed, n=60, p=8, design="correlated", strength=0.5)
        path = assert_same_steps(X, y, method, ridge=1e-2, fit_intercept=True, ratio=0.9)
        removed += sum(step.action == "remove" for step in path.steps)
        if removed:
            return
    pytest.fail("nothing ever left")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_single_coefficients_on_request(method, fit_intercept):
    X, y = softmax_data(11, n=80, p=4)
    objective = Multinomial(X, y, ridge=1e-2, fit_intercept=fit_intercept)
    Q = SoftmaxQ(X, y, 3, ridge=1e-2, fit_intercept=fit_intercept)
    path = select(objective, 7, method, by="feature")
    steps = foba(
        Q, [[j] for j in range(12)], list(range(12, Q.dim)),
        gradient_rule=method.endswith("gdt"), backward=method.startswith("foba"), k=7,
    )  # fmt: skip
    expected = list(steps)
    assert [(s.action, s.feature) for s in path.steps] == [step[:2] for step in expected]
    for step, (_, _, _, beta) in zip(path.steps, expected, strict=True):
        assert step.value == pytest.approx(Q.value(beta), rel=1e-9)
        assert_optimal(objective, step.point)


def test_blocks_are_columns_by_default_and_have_names():
    X, y = load_iris(return_X_y=True, as_frame=True)
    labels = load_iris().target_names[y]
    objective = Multinomial(X, labels, ridge=1e-3, fit_intercept=True)
    assert objective.classes.tolist() == ["setosa", "versicolor", "virginica"]
    assert objective.features.candidate_names[4] == "sepal width (cm):versicolor"
    assert objective.features.column_of.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    path = select(objective, k=3)
    assert path.end.size == 3
    assert len(path.end.support) == 3 * 3 + 3
    assert path.name(path.steps[0].feature) == "petal length (cm)"
    assert_optimal(objective, path.end)
    single = select(objective, k=3, by="feature")
    assert len(single.end.support) == 3 + 3
    assert path.name(0) == "sepal length (cm)"
    assert single.name(0) == "sepal length (cm):setosa"
    petals = ["sepal", "sepal", "petal", "petal"]
    merged = select(objective, k=1, groups=petals)
    assert merged.end.support.tolist() == [*range(6, 12), 12, 13, 14]
    always = select(objective, k=1, always=["sepal width (cm)"])
    assert always.start.support.tolist() == [3, 4, 5, 12, 13, 14]
    cheap = select(objective, budget=2.0, costs={name: 1.0 + (j > 1) for j, name in enumerate(X)})
    assert cheap.end.size == 1


def test_interleaved_runs_are_separate_runs():
    X, y = softmax_data(12, p=8)
    objective = Multinomial(X, y, ridge=1e-2)
    alone = select(objective, k=5, method="foba-obj")
    inner = []
    outer = select(
        objective, k=5, method="foba-obj", callback=lambda step: inner.append(select(objective, 3))
    )
    assert [s.value for s in outer.steps] == [s.value for s in alone.steps]


# Screening ----------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(2, 6),
    size=st.integers(0, 4),
    design=st.sampled_from(DESIGNS),
    storage=st.sampled_from(["dense", "csc", "single"]),
    ridge=st.sampled_from([0.0, 1e-3, 0.3]),
    fit_intercept=st.booleans(),
    by=st.sampled_from(["row", "single", "mixed"]),
)
def test_screening_is_exact_where_it_matters(
    seed, k, size, design, storage, ridge, fit_intercept, by
):
    X, y = softmax_data(seed, n=60, p=12, k=k, design=design, strength=0.5)
    objective = Multinomial(stored(X, storage), y, ridge=ridge, fit_intercept=fit_intercept)
    inside = np.sort(np.random.default_rng(seed).choice(12, size, replace=False))
    point = objective.minimise(with_always(objective, rows_of(inside, k)))
    outside = np.setdiff1d(np.arange(12), inside)
    always = np.arange(objective.n_candidates, objective.dim)
    if by == "row":
        blocks = row_blocks(objective, outside)
    elif by == "single":
        blocks = Blocks.singles(rows_of(outside, k), always)
    else:
        pair, rest = rows_of(outside[:2], k), outside[2:]
        blocks = Blocks.of([pair, *(rows_of([j], k) for j in rest)], always)
    true = objective.decrease_if_added(point, blocks).values
    bound, solved = objective.decrease_if_added(point, blocks, only_best=True)
    off = 1e-14 * max(1.0, abs(point.value))
    assert 0 <= solved <= len(blocks)
    best = highest(true)
    if true[best] > 1e-7:
        assert highest(bound) == best
        assert bound[best] == pytest.approx(true[best], rel=1e-9)
    assert (bound >= true * (1.0 - 1e-9) - off).all()
    other = np.abs(bound - true) > 1e-9 * true + off
    assert (bound[other] < true[best] * (1.0 - 1e-9) + off).all()


def test_screening_spares_most_columns():
    rng = np.random.default_rng(0)
    X = sparse.random(400, 300, density=0.05, random_state=rng, format="csc")
    y = (30 * X[:, [5]].toarray() * [1.0, -1.0, 0.0] + rng.gumbel(size=(400, 3))).argmax(axis=1)
    objective = Multinomial(X, y, ridge=1e-3, fit_intercept=True)
    point = objective.minimise(with_always(objective, []))
    blocks = row_blocks(objective)
    bound, solved = objective.decrease_if_added(point, blocks, only_best=True)
    assert solved < 100
    assert highest(bound) == 5
    assert highest(bound) == highest(objective.decrease_if_added(point, blocks).values)
    inside = objective.minimise(with_always(objective, rows_of([5], 3)))
    assert highest(objective.decrease_if_added(inside, blocks, only_best=True).values) != 5


def test_decreases_and_increases_of_rows_at_a_point_that_is_no_minimum():
    X, y = softmax_data(13, n=60, p=4)
    for ridge in (0.0, 0.1):
        objective, Q = Multinomial(X, y, ridge=ridge), SoftmaxQ(X, y, 3, ridge=ridge)
        beta = np.random.default_rng(1).normal(size=12)  # no row sums to zero
        point = Point(np.arange(12), beta, Q.value(beta))
        blocks = row_blocks(objective)
        for block, fall, rise in zip(
            blocks,
            objective.decrease_if_added(point, blocks).values,
            objective.increase_if_removed(point, blocks).values,
            strict=True,
        ):

            def moved(own, block=block, Q=Q, beta=beta):
                there = beta.copy()
                there[block] = own
                return Q.value(there), Q.gradient(there)[block]

            lowest = optimize.minimize(
                moved, beta[block], jac=True, method="BFGS", options={"gtol": 1e-9}
            ).fun
            assert fall == pytest.approx(Q.value(beta) - lowest, abs=1e-9)
            assert rise == pytest.approx(moved(0.0)[0] - Q.value(beta), abs=1e-12)


# Hard data ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_separable_data_without_ridge_ends_and_says_so(method):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6))
    y = np.digitize(X[:, 2] + 0.2 * X[:, 0], [-0.5, 0.5])
    path = select(Multinomial(X, y, fit_intercept=True), method=method)
    assert any(step.point.status is Status.NO_MINIMISER for step in path.steps)
    assert path.end.value < 1e-9
    ridged = Multinomial(X, y, ridge=1e-6, fit_intercept=True)
    assert_optimal(ridged, select(ridged, k=3, method=method).end)


def test_copies_constants_and_zeros_do_no_harm():
    X, y = softmax_data(14, n=100, p=4)
    wide = np.column_stack([X, X[:, 0], np.zeros(100), np.ones(100), -1e6 * X[:, 1]])
    for ridge in (0.0, 1e-3):
        plain = Multinomial(X, y, ridge=ridge, fit_intercept=True)
        objective = Multinomial(wide, y, ridge=ridge, fit_intercept=True)
        for method in METHODS:
            path = select(objective, method=method)
            assert path.end.value <= select(plain, method=method).end.value + 1e-9
            assert not any("not converged" in step.note for step in path.steps)
        whole = objective.minimise(np.arange(objective.dim))
        before = objective.value_and_gradient(np.zeros(objective.dim))[1]
        gradient = np.abs(objective.gradient(whole)) / np.maximum(np.abs(before), 1e-3)
        assert gradient.max() < 1e-6


def test_a_rare_class_is_fitted_as_well_as_the_others():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3000, 3))
    y = (X @ rng.normal(size=(3, 3)) + rng.gumbel(size=(3000, 3)) - [0, 0, 9.0]).argmax(axis=1)
    y[:2] = 2
    assert 2 <= (y == 2).sum() < 20
    objective = Multinomial(X, y, fit_intercept=True)
    assert_optimal(objective, objective.minimise(np.arange(objective.dim)))


# The border ---------------------------------------------------------------------------------


def test_any_labels():
    X, y = softmax_data(15)
    plain = select(Multinomial(X, y, ridge=1e-2), 3)
    objects = np.empty(60, dtype=object)
    objects[:] = [("c", int(code)) for code in y]
    for labels in (
        y.astype(float), y.astype(str), y > 0, pd.Series(y), pd.Categorical(y), objects, y.tolist()
    ):  # fmt: skip
        objective = Multinomial(X, labels, ridge=1e-2)
        if len(objective.classes) == 3:
            assert select(objective, 3).end.value == plain.end.value


def test_errors_name_the_argument():
    X, y = softmax_data(16)
    for bad, message in (
        ({"y": [1] * 60}, r"y has only one class, 1; "),
        ({"y": y[:-1]}, "y must have one label per row"),
        ({"y": [None, *y[1:]]}, "y has no label"),
        ({"sample_weight": np.r_[1.0, np.zeros(59)]}, "y has only one class"),
        ({"sample_weight": -np.ones(60)}, "sample_weight must not be negative"),
        ({"ridge": np.ones((5, 3))}, r"ridge must be .* one entry per column"),
        ({"ridge": -1.0}, "ridge must"),
        ({"tol": 0.0}, "tol must"),
        ({"max_iter": 0}, "max_iter must"),
        ({"X": X * np.nan}, "X must be a matrix of finite numbers"),
    ):
        given = {"X": X, "y": y, **bad}
        with pytest.raises(ValueError, match=message):
            Multinomial(given.pop("X"), given.pop("y"), **given)
    with pytest.raises(TypeError, match="fit_intercept must be True or False"):
        Multinomial(X, y, fit_intercept=1)
    with pytest.raises(ValueError, match="k=6 is more than the 5 candidates"):
        select(Multinomial(X, y), k=6)


def test_too_few_newton_steps_are_reported():
    X, y = softmax_data(17)
    objective = Multinomial(X, y, fit_intercept=True, max_iter=1)
    assert "not converged" in select(objective, 3).end.note


def test_a_point_without_cache_is_as_good():
    X, y = softmax_data(18)
    objective = Multinomial(X, y, ridge=1e-2, fit_intercept=True)
    point = objective.minimise(with_always(objective, rows_of([0, 2], 3)))
    blocks, inside = row_blocks(objective), row_blocks(objective, [0, 2])
    bare, other = point.without_cache(), Multinomial(X, y, ridge=1e-2, fit_intercept=True)
    foreign = replace(point, cache=other.minimise(point.support).cache)
    for twin in (bare, foreign):
        np.testing.assert_allclose(objective.gradient(twin), objective.gradient(point), atol=1e-12)
        np.testing.assert_allclose(
            objective.decrease_if_added(twin, blocks).values,
            objective.decrease_if_added(point, blocks).values,
            atol=1e-12,
        )
        np.testing.assert_allclose(
            objective.increase_if_removed(twin, inside).values,
            objective.increase_if_removed(point, inside).values,
            rtol=1e-9,
        )
