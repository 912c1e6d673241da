"""The border of chain models: what is taken, and what a refusal says."""

import numpy as np
import pytest
from scipy import sparse

from forback.objectives import ChainCRF
from forback.validation.sequences import (
    check_labels,
    check_lengths,
    check_observations,
    known_labels,
)

X = np.arange(12.0).reshape(6, 2) % 5
ONE = np.array([6])
TWO = np.array([4, 2])


def labels_of(y, lengths=ONE):
    classes, codes = check_labels(y, lengths)
    assert codes.dtype == np.intp
    return list(classes), codes.tolist()


# Observations ---------------------------------------------------------------------------------


def wide(matrix):
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)


@pytest.mark.parametrize(
    "given",
    [
        [X[:4], X[4:]],
        (X[:4], X[4:]),
        [X[:4].tolist(), X[4:].tolist()],
        [[tuple(row) for row in X[:4]], X[4:]],
        [X[:4].astype(np.float32), X[4:].astype(int)],
        [sparse.csr_array(X[:4]), sparse.csc_matrix(X[4:])],
        [sparse.coo_array(X[:4]), X[4:]],
    ],
)
def test_a_list_of_matrices_is_one_sequence_per_entry(given):
    matrix, lengths, names = check_observations(given, None)
    np.testing.assert_array_equal(wide(matrix), X)
    assert (lengths.tolist(), names) == ([4, 2], None)
    assert matrix.dtype == np.float64
    assert matrix.format == "csr" if sparse.issparse(matrix) else matrix.flags.c_contiguous


@pytest.mark.parametrize(
    "given",
    [
        X,
        X.tolist(),
        np.asfortranarray(X),
        X.astype(int),
        sparse.coo_array(X),
        [*X],
        [*map(tuple, X)],
    ],
)
def test_one_matrix_is_one_sequence_unless_lengths_are_given(given):
    matrix, lengths, _ = check_observations(given, None)
    np.testing.assert_array_equal(wide(matrix), X)
    assert lengths.tolist() == [6]
    assert check_observations(given, [1, 3, 2])[1].tolist() == [1, 3, 2]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_keep_the_names_of_their_columns(library):
    module = pytest.importorskip(library)

    def frame(values):
        return module.DataFrame({"a": values[:, 0], "b": values[:, 1]})

    matrix, lengths, names = check_observations(frame(X), [4, 2])
    assert names == ("a", "b")
    np.testing.assert_array_equal(matrix, X)
    matrix, lengths, names = check_observations([frame(X[:4]), frame(X[4:])], None)
    assert (names, lengths.tolist()) == (("a", "b"), [4, 2])
    np.testing.assert_array_equal(matrix, X)
    objective = ChainCRF(frame(X), module.Series(list("xyxyxy")))
    assert objective.features.candidate_names == ("a:x", "a:y", "b:x", "b:y")
    assert objective.feature_names == ("a", "b")
    with pytest.raises(ValueError, match=r"same columns, got \[2\] columns and different names"):
        check_observations([frame(X[:4]), X[4:]], None)


with_nan = X.copy()
with_nan[3, 1] = np.nan


@pytest.mark.parametrize(
    ("given", "lengths", "message"),
    [
        (with_nan, None, "X must be a matrix of finite numbers(.|\n)*NaN"),
        ([X, with_nan], None, r"X\[1\] must be a matrix of finite numbers"),
        ([X, np.full((1, 2), np.inf)], None, r"X\[1\] must be a matrix of finite"),
        ([[[1.0, 2.0], [3.0]], X], None, r"X\[0\] must be a matrix"),
        (np.zeros((0, 2)), None, "X must be a matrix(.|\n)*0 sample"),
        ([X, np.zeros((0, 2))], None, r"X\[1\] must be a matrix(.|\n)*0 sample"),
        ([], None, "X must be a matrix"),
        (np.zeros((2, 3, 2)), None, "X must be a matrix"),
        ([X, X[0]], None, "X must be a matrix"),
        (X[:, 0], None, "X must be a matrix"),
        ([["a", "b"]] * 6, None, "X must be a matrix of finite numbers, with text columns encoded"),
        ([X, X[:, :1]], None, r"same columns, got \[1, 2\] columns"),
        ([X, X], [6, 6], "lengths is for several sequences in one matrix, got a list of matrices"),
        (X, [3, 2], "lengths add up to 5, but X has 6 rows"),
        (X, [], "lengths add up to 0, but X has 6 rows"),
        (X, [6, 0], r"lengths\[1\] must be at least 1, got 0"),
        (X, [8, -2], r"lengths\[1\] must be at least 1, got -2"),
        (X, [3.0, 3.0], r"lengths\[0\] must be an integer, got 3.0"),
        (X, np.array([3.0, 3.0]), r"lengths\[0\] must be an integer, got"),
        (X, [True, 5], r"lengths\[0\] must be an integer, got True"),
        (X, ["3", "3"], r"lengths\[0\] must be an integer, got '3'"),
        (X, [[3, 3]], r"lengths\[0\] must be an integer, got \[3, 3\]"),
        (X, [None, 6], r"lengths\[0\] must be an integer, got None"),
        (X, "33", "lengths must be a list of the lengths of sequences, got '33'"),
        (X, 6, "lengths must be a list of the lengths of sequences, got 6"),
        (X, np.array(6), "lengths"),
    ],
)
def test_refused_observations(given, lengths, message):
    with pytest.raises((TypeError, ValueError), match=message):
        check_observations(given, lengths)


@pytest.mark.parametrize(
    "lengths", [[4, 2], (4, 2), np.array([4, 2], np.int8), np.uint64([4, 2]), iter([4, 2])]
)
def test_lengths_of_any_whole_numbers(lengths):
    found = check_lengths(lengths, 6)
    assert (found.tolist(), found.dtype) == ([4, 2], np.intp)


# Labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (np.array([3, 1, 3, 1, 1, 3]), [1, 3]),
        ([3, 1, 3, 1, 1, 3], [1, 3]),
        ([-1, -7, -1, -7, -7, -1], [-7, -1]),
        (list("baabab"), ["a", "b"]),
        (np.array(list("baabab")), ["a", "b"]),
        (np.array(list("baabab"), dtype=object), ["a", "b"]),
        (iter("baabab"), ["a", "b"]),
        ([True, False] * 3, [False, True]),
        ([0.5, 0.25] * 3, [0.25, 0.5]),
        ([b"z", b"x"] * 3, [b"x", b"z"]),
        ([("b", 1), ("a", 2)] * 3, [("a", 2), ("b", 1)]),
        ([("b",), ("a", 2)] * 3, [("a", 2), ("b",)]),
        ([(1, 2), (0, 3)] * 3, [(0, 3), (1, 2)]),
        (["a", 1] * 3, ["a", 1]),
        ([1, "a", ("t",)] * 2, [1, "a", ("t",)]),
        (["only"] * 6, ["only"]),
        (np.array([[1], [2]] * 3), [1, 2]),
        ([np.str_("b"), np.str_("a")] * 3, ["a", "b"]),
        (list(np.array([2, 1] * 3)), [1, 2]),
        (np.array([2, 1] * 3, dtype="m8[s]"), list(np.array([1, 2], dtype="m8[s]"))),
    ],
)
def test_labels_of_any_kind(y, classes):
    listed = list(y.ravel() if isinstance(y, np.ndarray) else y)
    found, codes = labels_of(iter(listed) if not hasattr(y, "__len__") else y)
    assert found == classes
    assert [classes[code] for code in codes] == listed


def test_labels_from_pandas_and_polars():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    letters = list("baabab")
    for y in (
        pandas.Series(letters, index=range(10, 16)),
        pandas.Series(letters, dtype="category"),
        pandas.Series(letters, dtype="string"),
        pandas.Categorical(letters, categories=list("cba")),
        pandas.Index(letters),
        polars.Series(letters),
    ):
        assert labels_of(y) == (["a", "b"], [1, 0, 0, 1, 0, 1])
    times = pandas.to_datetime(["2020-01-02", "2020-01-01"] * 3)
    assert labels_of(pandas.Series(times))[1] == [1, 0] * 3
    numbers = pandas.Series([2, 1] * 3, dtype="Int64")
    assert labels_of(numbers) == ([1, 2], [1, 0] * 3)
    parts = [pandas.Series([1, 2, 1, 2]), pandas.Series([2, 1])]
    assert labels_of(parts, TWO) == ([1, 2], [0, 1, 0, 1, 1, 0])


@pytest.mark.parametrize(
    "y",
    [
        [[3, 1, 3, 1], [1, 3]],
        [np.array([3, 1, 3, 1]), [1, 3]],
        (np.array([3, 1, 3, 1]), np.array([1, 3])),
        np.array([[3, 1, 3, 1], [1, 3]], dtype=object),
    ],
)
def test_labels_sequence_by_sequence(y):
    assert labels_of(y, TWO) == ([1, 3], [1, 0, 1, 0, 0, 1])


def test_sequences_of_one_step_each():
    lengths = np.ones(3, dtype=np.intp)
    for y in ([["a"], ["b"], ["a"]], ["a", "b", "a"]):
        assert labels_of(y, lengths) == (["a", "b"], [0, 1, 0])
    assert labels_of([("a",), ("b",), ("a",)], lengths)[0] == [("a",), ("b",)]


def test_labels_that_do_not_compare_come_in_order_of_appearance():
    assert labels_of([None.__class__, 2, "a"] * 2) == ([type(None), 2, "a"], [0, 1, 2] * 2)


@pytest.mark.parametrize(
    ("y", "lengths", "message"),
    [
        (list("abab"), ONE, r"y must have one label per row of X, shape \(6,\), got shape \(4,\)"),
        (np.zeros((6, 2)), ONE, r"y must have one label per row .* got shape \(6, 2\)"),
        ([], ONE, r"y must have one label per row of X, shape \(6,\), got shape \(0,\)"),
        ("ababab", ONE, "y must be a list of one label per row of X, got 'ababab'"),
        (b"ababab", ONE, "y must be a list of one label per row of X"),
        (7, ONE, "y must be a list of one label per row of X, got 7"),
        (None, ONE, "y must be a list of one label per row of X, got None"),
        ([1, 2, None, 1, 2, 1], ONE, r"y has no label \(None\) at row 2; every step needs one"),
        ([1, 2, 1, 1, np.nan, 1], ONE, r"y has no label \(nan\) at row 4"),
        (np.array([1, 2, 1, 1, np.nan, 1]), ONE, r"y has no label \(nan\) at row 4"),
        (["a", float("nan")] * 3, ONE, r"y has no label \(nan\) at row 1"),
        ([{"a"}, {"b"}] * 3, ONE, "y must hold hashable labels, such as names, got {'a'}"),
        ([[1], [2]] * 3, ONE, r"y must hold hashable labels, such as names, got \[1\]"),
        ([[1, 2, 1], [1, 2, 1]], TWO, r"y\[0\] has 3 labels, but sequence 0 of X has 4 rows"),
        ([[1, 2, 1, 2], [1]], TWO, r"y\[1\] has 1 labels, but sequence 1 of X has 2 rows"),
        ([[1, 2, 1, 2, 1, 2]], TWO, r"y must have one label per row"),
        ([[1, None, 1, 2], [1, 2]], TWO, r"y has no label \(None\) at row 1"),
        (np.array(5), ONE, "y must"),
    ],
)
def test_refused_labels(y, lengths, message):
    with pytest.raises((TypeError, ValueError), match=message):
        check_labels(y, lengths)


def test_missing_labels_of_pandas_are_refused():
    pandas = pytest.importorskip("pandas")
    for y in (
        [pandas.NA, *"babab"],
        pandas.Series([None, *"babab"], dtype="string"),
        pandas.Series([None, 2, 1, 2, 1, 2], dtype="Int64"),
        pandas.Categorical([None, *"babab"]),
        pandas.Series(pandas.to_datetime([None, *["2020-01-01", "2021-01-01"] * 2, None])),
    ):
        with pytest.raises(ValueError, match=r"y has no label .* at row 0; every step needs one"):
            check_labels(y, ONE)


def test_a_table_as_labels_is_refused():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="y must have one label per row of X"):
        check_labels(pandas.DataFrame({"a": range(6), "b": range(6)}), ONE)


def test_known_labels_and_labels_never_seen():
    classes, codes = check_labels(list("baabab"), ONE)
    assert known_labels(list("bba"), np.array([3]), classes).tolist() == [1, 1, 0]
    tuples, _ = check_labels([(1, 2), (0, 3)] * 3, ONE)
    assert known_labels([(1, 2)], np.array([1]), tuples).tolist() == [1]
    with pytest.raises(ValueError, match=r"y contains previously unseen labels: 'c'$"):
        known_labels(list("bac"), np.array([3]), classes)
    with pytest.raises(ValueError, match="unseen labels: 0, 1, 2, 3, 4 and 1 more"):
        known_labels(list(range(6)), ONE, classes)
    numbers, _ = check_labels([1, 2] * 3, ONE)
    assert known_labels(np.array([2, 1]), np.array([2]), numbers).tolist() == [1, 0]
    with pytest.raises(ValueError, match="unseen labels: '1'"):
        known_labels(["1"], np.array([1]), numbers)
    assert codes.tolist() == [1, 0, 0, 1, 0, 1]


def test_the_order_of_labels_is_the_same_in_every_process():
    sets = [frozenset("ab"), frozenset("cd"), frozenset("ef")] * 2
    assert labels_of(sets)[1] == [0, 1, 2] * 2  # they compare, but only as subsets
