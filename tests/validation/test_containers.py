"""What users hold their numbers in: masks, broken sparse matrices, labels that are not text."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.covariance import EmpiricalCovariance

from forback import (
    FobaClassifier,
    FobaCovariance,
    FobaCRF,
    FobaRegressor,
    FobaSelector,
    select,
)
from forback.certificates import restricted_curvature
from forback.objectives import (
    GLM,
    ChainCRF,
    GaussianCovariance,
    LeastSquares,
    Logistic,
    Multinomial,
    from_function,
)
from forback.validation.containers import check_container, column_labels

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4))
Y = X[:, 0] + 0.1 * X[:, 1]
LABELS = (Y > 0).astype(int)
FORMATS = ("csc", "csr", "coo", "bsr", "lil", "dok", "dia")


def masked(values, *places):
    """The values with some of them masked; without places, a mask that hides nothing."""
    array = np.ma.masked_array(values, mask=np.zeros(np.shape(values), dtype=bool))
    for place in places:
        array[place] = np.ma.masked
    return array


def hidden_entry():
    matrix = sparse.csc_array(X)
    matrix.data = masked(matrix.data, 5)
    return matrix


ONES = np.ones(30)
HIDDEN = masked(X, (3, 2))
HIDDEN_Y = masked(Y, 3)
HIDDEN_LABELS = masked(LABELS, 3)
FITTED = FobaRegressor(k=2).fit(X, Y)
GUESSING = FobaClassifier(k=2).fit(X, LABELS)
GRAPH = FobaCovariance(k=2).fit(X)
CHAIN = FobaCRF(k=2).fit(X, LABELS)

MASKED = {
    "X of an objective": ("X", lambda: LeastSquares(HIDDEN, Y)),
    "X as rows": ("X", lambda: LeastSquares([*HIDDEN], Y)),
    "X as lists": ("X", lambda: LeastSquares([[1.0, np.ma.masked], [0.0, 1.0]], [1, 2])),
    "y": ("y", lambda: LeastSquares(X, HIDDEN_Y)),
    "y as a list": ("y", lambda: LeastSquares(X, [np.ma.masked, *Y[1:]])),
    "y of classes": ("y", lambda: Logistic(X, HIDDEN_LABELS)),
    "y of many classes": ("y", lambda: Multinomial(X, HIDDEN_LABELS)),
    "offset": ("offset", lambda: LeastSquares(X, Y, offset=HIDDEN_Y)),
    "weights": ("sample_weight", lambda: LeastSquares(X, Y, sample_weight=masked(np.ones(30), 1))),
    "ridge": ("ridge", lambda: LeastSquares(X, Y, ridge=masked(np.ones(4), 1))),
    "S": ("S", lambda: GaussianCovariance(masked(np.eye(4), (0, 1)))),
    "X of a graph": ("X", lambda: GaussianCovariance.from_data(HIDDEN)),
    "X of a chain": ("X", lambda: ChainCRF(HIDDEN, LABELS)),
    "a sequence": (r"X\[1\]", lambda: ChainCRF([X[:10], HIDDEN], [LABELS[:10], LABELS])),
    "labels of a chain": ("y", lambda: ChainCRF(X, HIDDEN_LABELS)),
    "labels by sequence": ("y", lambda: ChainCRF([X, X], [LABELS, HIDDEN_LABELS])),
    "lengths": ("lengths", lambda: ChainCRF(X, LABELS, masked([10, 20], 1))),
    "start": ("start", lambda: from_function(lambda b: (b @ b, b), 3, start=masked(np.ones(3), 1))),
    "always": ("always", lambda: select(LeastSquares(X, Y), always=masked([0, 1], 1))),
    "groups": ("groups", lambda: select(LeastSquares(X, Y), groups=masked([0, 0, 1, 1], 1))),
    "costs": ("costs", lambda: select(LeastSquares(X, Y), costs=masked([1, 1, 1, 1.0], 1))),
    "fit": ("X", lambda: FobaRegressor(k=1).fit(HIDDEN, Y)),
    "fit, y": ("y", lambda: FobaRegressor(k=1).fit(X, HIDDEN_Y)),
    "classes": ("y", lambda: FobaClassifier(k=1).fit(X, HIDDEN_LABELS)),
    "selector": ("X", lambda: FobaSelector(k=1).fit(HIDDEN, Y)),
    "transform": ("X", lambda: FobaSelector(k=1).fit(X, Y).transform(HIDDEN)),
    "predict": ("X", lambda: FITTED.predict(HIDDEN)),
    "score": ("y", lambda: FITTED.score(X, HIDDEN_Y)),
    "score of classes": ("y", lambda: GUESSING.score(X, HIDDEN_LABELS)),
    "score of a graph": ("X_test", lambda: GRAPH.score(HIDDEN)),
    "distance": ("X", lambda: GRAPH.mahalanobis(HIDDEN)),
    "labels": ("y", lambda: FobaCRF(k=1).fit(X, HIDDEN_LABELS)),
    "sensors": ("X", lambda: FobaCRF(k=1).fit(HIDDEN, LABELS)),
    "predict labels": ("X", lambda: CHAIN.predict(HIDDEN)),
    "graph": ("X", lambda: FobaCovariance(k=1).fit(HIDDEN)),
    "back": ("X", lambda: FobaSelector(k=4).fit(X, X.sum(axis=1) + Y).inverse_transform(HIDDEN)),
    "weights of a score": ("sample_weight", lambda: FITTED.score(X, Y, masked(ONES, 1))),
    "weights of right": (
        "sample_weight",
        lambda: GUESSING.score(X, LABELS, masked(np.ones(30), 1)),
    ),
    "labels in a column": ("y", lambda: FobaCRF(k=1).fit(X, HIDDEN_LABELS.reshape(-1, 1))),
    "curvature": (
        "always",
        lambda: restricted_curvature(LeastSquares(X, Y), 2, always=masked([0, 1], 1)),
    ),
    "names": ("names", lambda: GaussianCovariance(np.eye(3), names=masked(["a", "b", "c"], 1))),
    "entries": ("X", lambda: LeastSquares(hidden_entry(), Y)),
    "distance of graphs": ("comp_cov", lambda: GRAPH.error_norm(masked(np.eye(4), (0, 1)))),
    "edges": ("costs", lambda: FobaCovariance(k=1, costs=masked(np.ones(6), 1)).fit(X)),
}


@pytest.mark.parametrize(("name", "call"), MASKED.values(), ids=MASKED)
def test_a_mask_is_refused_never_dropped(name, call):
    with pytest.raises(ValueError, match=rf"^{name} must not have masked entries, got 1"):
        call()


def test_a_mask_that_hides_nothing_is_no_reason_to_refuse():
    plain = select(LeastSquares(X, Y), 2)
    for objective in (LeastSquares(masked(X), masked(Y)), LeastSquares(np.ma.array(X), Y)):
        assert select(objective, 2)[2].coef.tolist() == plain[2].coef.tolist()
    model = FobaCRF(k=1).fit(masked(X), masked(LABELS))
    assert model.classes_.tolist() == [0, 1]
    assert not isinstance(model.predict(masked(X)), np.ma.MaskedArray)


# Sparse matrices -------------------------------------------------------------------------------


def scattered(shape):
    rng = np.random.default_rng(1)
    return rng.normal(size=shape) * (rng.random(shape) < 0.4)


def broken(kind, how):
    """A sparse matrix that says nonsense."""
    matrix = sparse.coo_array(scattered((20, 6))).asformat(kind)
    if how == "index":
        matrix.indices[3] = 10**6
    elif how == "negative":
        matrix.indices[3] = -5
    elif how == "pointer":
        matrix.indptr[2] = 10**6
    elif how == "end":
        matrix.indptr[-1] = matrix.indptr[-1] + 10**5
    elif how == "start":
        matrix.indptr[0] = -3
    elif how == "row":
        matrix.row[3] = 10**6
    elif how == "column":
        matrix.col[3] = -1
    elif how == "short":
        matrix.indices = matrix.indices[:-3]
    return matrix


BROKEN = [
    *((kind, how) for kind in ("csc", "csr") for how in
      ("index", "negative", "pointer", "end", "start", "short")),
    ("bsr", "index"), ("bsr", "pointer"), ("coo", "row"), ("coo", "column"),
]  # fmt: skip
TARGET = np.arange(20) % 2


@pytest.mark.parametrize(("kind", "how"), BROKEN)
def test_indices_that_lead_outside_are_refused(kind, how):
    fitted = FobaClassifier(k=1).fit(RNG.normal(size=(20, 6)), TARGET)
    crf = FobaCRF(k=1).fit(RNG.normal(size=(20, 6)), TARGET)
    X = broken(kind, how)
    for call in (
        lambda: select(Logistic(X, TARGET), 1, "foba-obj"),
        lambda: Multinomial(X, TARGET),
        lambda: ChainCRF(X, TARGET),
        lambda: FobaClassifier(k=1).fit(X, TARGET),
        lambda: FobaSelector(k=1).fit(X, TARGET),
        lambda: fitted.predict(X),
        lambda: crf.predict(X),
    ):
        with pytest.raises(ValueError, match=r"^X must be a valid sparse matrix, but .*build it"):
            call()


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_is_taken_and_left_alone(kind):
    X = scattered((40, 6))
    y = X[:, 2] - X[:, 4]
    given = sparse.coo_array(X).asformat(kind)
    before = given.toarray()
    path = select(LeastSquares(given, y), 2)
    assert path[2].support.tolist() == [2, 4]
    assert given.format == kind
    np.testing.assert_array_equal(given.toarray(), before)
    FobaRegressor(k=2).fit(given, y).predict(given)


def test_flags_that_are_out_of_date_are_not_believed():
    X = sparse.csc_array(np.triu(np.ones((6, 6))) + np.eye(6))
    assert X.has_canonical_format  # which SciPy remembers
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in pairwise(X.indptr)])
    X.indices, X.data = X.indices[order], X.data[order]
    twin = LeastSquares(X.toarray(), np.arange(6.0))
    path, expected = select(LeastSquares(X, np.arange(6.0)), 3), select(twin, 3)
    assert [step.feature for step in path.steps] == [step.feature for step in expected.steps]
    assert path.end.value == pytest.approx(expected.end.value, rel=1e-12)


def test_sparse_arrays_of_one_dimension_are_refused():
    row = sparse.coo_array(np.arange(4.0))
    if row.ndim == 2:
        pytest.skip("this SciPy has no sparse arrays of one dimension")
    with pytest.raises(ValueError, match="X must be a 2D matrix"):
        LeastSquares(row, np.arange(4.0))


# Small integers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint16, np.int64])
def test_lengths_of_any_integer_type_add_up(kind):
    count = 600 if kind is not np.int8 else 300
    rows = RNG.normal(size=(count, 3))
    labels = (rows[:, 0] > 0).astype(kind)
    each = kind(count // 3) if count // 3 < 128 or kind is not np.int8 else kind(100)
    lengths = np.array([each] * 3, kind)
    model = FobaCRF(k=2).fit(rows, labels, lengths)
    same = FobaCRF(k=2).fit(rows, labels, [int(each)] * 3)
    np.testing.assert_array_equal(model.predict(rows, lengths), same.predict(rows, [int(each)] * 3))
    short = rows[: int(lengths.sum(dtype=kind)) or 1]
    for ask in (model.predict, model.predict_marginals):
        if len(short) != count:
            with pytest.raises(ValueError, match=f"lengths add up to {count}, but X has"):
                ask(short, lengths)


def test_small_integers_count_what_they_count_everywhere():
    ridge, weights = np.array([1, 200, 3, 4], np.uint8), np.full(30, 200, np.uint8)
    small = LeastSquares(X, Y, ridge=ridge, sample_weight=weights, offset=np.full(30, 200, "u1"))
    large = LeastSquares(
        X, Y, ridge=ridge.astype(float), sample_weight=weights.astype(float), offset=[200.0] * 30
    )
    assert small.n_samples == large.n_samples == 6000
    eight = {"k": np.uint8(2), "max_steps": np.int8(100), "always": np.array([3], np.int8)}
    prices = {"costs": np.array([200, 200, 200, 200], np.uint8), "budget": np.uint16(400)}
    path, same = select(small, **eight, **prices), select(large, 2, always=[3], costs=[200] * 4)
    assert path.end.coef.tolist() == same.end.coef.tolist()
    assert path.cost(path.end) == 400.0
    groups = np.array([200, 200, 7, 7], np.uint8)
    assert select(small, groups=groups).names == ("200", "7")


def test_a_wrong_length_does_not_take_the_process_down():
    code = (
        "import numpy as np\n"
        "from forback import FobaCRF\n"
        "X = np.random.default_rng(0).normal(size=(600, 3))\n"
        "model = FobaCRF(k=1).fit(X, X[:, 0] > 0)\n"
        "for ask in (model.predict, model.predict_marginals):\n"
        "    try:\n"
        "        ask(X[:88], np.array([200, 200, 200], np.uint8))\n"
        "    except ValueError as error:\n"
        "        assert 'lengths add up to 600' in str(error)\n"
        "    else:\n"
        "        raise AssertionError('taken')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# Labels ----------------------------------------------------------------------------------------

NUMBERED = pd.DataFrame(X, columns=[3, 1, 0, 2])


def test_labels_of_a_frame():
    assert column_labels(X) is None
    assert column_labels(pd.DataFrame(X)) is None
    assert column_labels(pd.DataFrame(X, columns=list("abcd"))) == ("a", "b", "c", "d")
    assert column_labels(NUMBERED) == (3, 1, 0, 2)
    assert check_container(NUMBERED, "X") is NUMBERED


def test_labels_win_where_columns_have_any():
    objective = LeastSquares(NUMBERED, Y)  # Y is what the column labelled 3, the first, says
    path = select(objective, 1)
    assert path.name(path.steps[0].feature) == "3"
    assert select(objective, 0, always=[1]).start.support.tolist() == [1]
    assert select(objective, 0, always=[0]).start.support.tolist() == [2]
    mask = pd.Series([True, False, False, False], index=[2, 3, 1, 0])
    assert select(objective, 0, always=mask).start.support.tolist() == [3]
    grouped = select(objective, groups={"one": (3, 0), "two": [1, 2]})
    assert grouped.group_costs.group_of.tolist() == [0, 1, 0, 1]
    with pytest.raises(ValueError, match=r"always must hold column labels, got 7; .*3, 1, 0, 2"):
        select(objective, always=[7])


@pytest.mark.parametrize("estimator", [FobaRegressor(k=1), FobaSelector(k=1), FobaClassifier(k=1)])
def test_labels_win_in_estimators(estimator):
    labels = LABELS if isinstance(estimator, FobaClassifier) else Y
    model = estimator.set_params(always=[0]).fit(NUMBERED, labels)
    assert model.selected_.tolist() == [2, 0]
    assert model.path_.name(0) == "3"


def test_prices_go_by_the_index_of_a_series():
    prices = pd.Series([9.0, 1.0, 1.0, 1.0], index=[0, 3, 2, 1])
    by_label = select(LeastSquares(NUMBERED, Y), costs=prices, budget=2.0, k=1)
    assert by_label.group_costs.prices.tolist() == [1.0, 1.0, 9.0, 1.0]
    by_number = select(LeastSquares(X, Y), costs=prices, budget=2.0, k=1)
    assert by_number.group_costs.prices.tolist() == [9.0, 1.0, 1.0, 1.0]
    assert FobaRegressor(k=1, costs=prices).fit(X, Y).path_.group_costs.prices.tolist() == [
        9,
        1,
        1,
        1,
    ]
    twice = pd.Series([1.0] * 4, index=[0, 1, 1, 2])
    for name in ("costs", "groups", "always"):
        with pytest.raises(ValueError, match=f"{name} must have an index without repetitions"):
            select(LeastSquares(X, Y), **{name: twice})
    listed = pd.Series([3, 1], index=["first", "second"])  # no mask: the columns themselves
    assert select(LeastSquares(X, Y), 0, always=listed).start.support.tolist() == [1, 3]


def test_columns_of_one_name_are_refused():
    for labels in (list("abca"), [1, 2, 3, 1]):
        frame = pd.DataFrame(X, columns=labels)
        for call in (
            lambda frame=frame: LeastSquares(frame, Y),
            lambda frame=frame: FobaRegressor().fit(frame, Y),
            lambda frame=frame: FobaCRF().fit(frame, LABELS),
            lambda frame=frame: FobaCovariance().fit(frame),
        ):
            with pytest.raises(ValueError, match=f"different column labels, got {labels[0]!r}"):
                call()


def test_other_labels_at_predict_are_refused():
    model = FobaRegressor(k=1).fit(NUMBERED, Y)
    assert model.predict(NUMBERED).tolist() == model.predict(X).tolist()
    with pytest.raises(ValueError, match="X must have the column labels of fit"):
        model.predict(NUMBERED[[0, 1, 2, 3]].rename(columns={3: 9}))
    crf = FobaCRF(k=1).fit(NUMBERED, LABELS)
    with pytest.raises(ValueError, match="X must have the column labels of fit"):
        crf.predict(NUMBERED[[3, 2, 1, 0]])


def test_edges_go_by_labels():
    graph = FobaCovariance(k=1, always=[(3, 2)]).fit(NUMBERED)
    assert graph.edges_[0] == (3, 2)
    assert set(graph.to_networkx().nodes) == {3, 1, 0, 2}
    objective = GaussianCovariance.from_data(NUMBERED)
    assert objective.edge(3, 2) == GaussianCovariance.from_data(X).edge(0, 3)
    with pytest.raises(
        ValueError, match="must hold variable labels, got 7; variables are 3, 1, 0, 2"
    ):
        objective.edge(7, 1)


def test_huber_takes_a_frame_with_labels_of_any_kind():
    frame = pd.DataFrame(X, columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1), "cd"]))
    objective = GLM("huber", frame, Y)
    assert select(objective, 0, always=[("a", 2)]).start.support.tolist() == [1]
    assert select(objective, groups={"a": [("a", 1), ("a", 2)]}).group_costs.group_of[1] == 0


# What has no order, or other labels ------------------------------------------------------------

NAMED = pd.DataFrame(X, columns=[3, 1, 0, 2])
UNORDERED = {
    "costs": lambda: select(LeastSquares(X, Y), 1, costs=pd.DataFrame([[5.0, 6, 7, 8]])),
    "always": lambda: select(LeastSquares(X, Y), 0, always=pd.DataFrame([[True] * 4])),
    r"groups\['a'\]": lambda: select(LeastSquares(X, Y), 1, groups={"a": pd.DataFrame([[0, 1]])}),
    "y": lambda: Multinomial(X[:6], dict(enumerate(LABELS[:6]))),
    "lengths": lambda: FobaCRF(k=1).fit(X, LABELS, {10, 20}),
    "names": lambda: from_function(lambda b: (b @ b, 2 * b), 3, names={"z", "b", "c"}),
    "ridge": lambda: LeastSquares(X, Y, ridge=dict.fromkeys(range(4), 1.0)),
}


@pytest.mark.parametrize(("name", "call"), UNORDERED.items(), ids=UNORDERED)
def test_what_has_no_order_is_no_list(name, call):
    with pytest.raises(TypeError, match=f"^{name} must be a list or an array, got a "):
        call()


def test_a_ridge_goes_by_the_index_of_a_series():
    prices = pd.Series({0: 9.0, 1: 1.0, 2: 2.0, 3: 3.0})
    assert LeastSquares(NAMED, Y, ridge=prices).ridge.tolist() == [3.0, 1.0, 9.0, 2.0]
    assert LeastSquares(X, Y, ridge=prices[::-1]).ridge.tolist() == [9.0, 1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match=r"^ridge must have the columns of X as its index, got \["):
        LeastSquares(X, Y, ridge=prices.rename({0: "a"}))


@pytest.mark.parametrize("ridge", [np.array(["2020-01-01"] * 4, "M8[D]"), np.full(4, 1j)])
def test_a_ridge_is_made_of_numbers(ridge):
    with pytest.raises((TypeError, ValueError), match=r"^ridge (holds dates|is complex)"):
        LeastSquares(X, Y, ridge=ridge)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [2, 0, 1, 3]])
@pytest.mark.parametrize(
    "ask",
    [
        lambda fit, other: FobaRegressor(k=2).fit(fit, Y).predict(other),
        lambda fit, other: FobaClassifier(k=2).fit(fit, LABELS).predict_proba(other),
        lambda fit, other: FobaSelector(k=2).fit(fit, Y).transform(other),
        lambda fit, other: FobaCRF(k=2).fit(fit, LABELS).predict(other),
        lambda fit, other: FobaCovariance(k=2).fit(fit).score(other),
        lambda fit, other: FobaCovariance(k=2).fit(fit).mahalanobis(other),
    ],
)
def test_columns_in_another_order_are_noticed_whatever_their_labels(ask, order):
    ask(NAMED, NAMED)
    ask(NAMED, NAMED.to_numpy())
    for fit, other in ((NAMED, NAMED[order]), (NAMED[order], NAMED)):
        with pytest.raises(ValueError, match=r"^X(_test)? must have the column labels of fit"):
            ask(fit, other)
    twice = NAMED.set_axis(list("abca"), axis=1)
    with pytest.raises(ValueError, match=r"^X(_test)? must have different column labels, got 'a'"):
        ask(NAMED.set_axis(list("abcd"), axis=1), twice)


def test_the_distance_of_a_covariance_is_that_of_scikit_learn():
    plain = EmpiricalCovariance().fit(X)
    plain.covariance_ = GRAPH.covariance_
    for options in ((), ("spectral",), ("frobenius", False, False)):
        assert GRAPH.error_norm(np.eye(4), *options) == plain.error_norm(np.eye(4), *options)


def test_the_chosen_columns_come_back_from_a_sound_matrix_only():
    selector = FobaSelector(k=2).fit(X, Y)
    chosen = sparse.csr_array(selector.transform(X))
    back = selector.inverse_transform(chosen).toarray()
    assert (back[:, selector.support_] == X[:, selector.support_]).all()
    chosen.indices[3] = 1000
    with pytest.raises(ValueError, match=r"^X must be a valid sparse matrix, but an index is 1000"):
        selector.inverse_transform(chosen)


def test_lists_that_differ_in_length_are_no_sparse_matrix():
    lists = sparse.lil_array(X)
    lists.data[0] = [1.0]
    short = sparse.lil_array(X)
    short.rows = short.rows[:-5]
    diagonals = sparse.dia_array(np.eye(30, 4))
    diagonals.offsets = np.array([0, 1])
    pointers = sparse.csc_array(X)
    pointers.indptr = pointers.indptr.astype(float)
    for matrix in (lists, short, diagonals, pointers):
        for call in (LeastSquares, FobaRegressor(k=2).fit):
            with pytest.raises(ValueError, match=r"^X must be a valid sparse matrix"):
                call(matrix, Y)
