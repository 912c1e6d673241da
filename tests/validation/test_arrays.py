"""Bad input gets a clear error that names the argument, and changes nothing."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from forback import FobaClassifier, FobaRegressor, FobaSelector, select
from forback.objectives import GLM, Huber, LeastSquares, Logistic

X = np.random.default_rng(0).normal(size=(30, 4))
Y = X[:, 0] + 0.1 * X[:, 1]
LABELS = Y > 0


def with_value(value):
    bad = X.copy()
    bad[3, 2] = value
    return bad


BAD_OBJECTIVES = [
    (lambda: LeastSquares(with_value(np.nan), Y), ValueError, r"X .*NaN"),
    (lambda: LeastSquares(with_value(np.inf), Y), ValueError, r"X .*infinity"),
    (lambda: LeastSquares(sparse.csc_array(with_value(np.nan)), Y), ValueError, r"X .*NaN"),
    (lambda: LeastSquares(X[0], Y), ValueError, r"X .*2D"),
    (lambda: LeastSquares(X[:, :, None], Y), ValueError, r"X .*dim"),
    (lambda: LeastSquares(X + 1j, Y), ValueError, r"X .*[Cc]omplex"),
    (lambda: LeastSquares(np.char.add(X.astype(str), "a"), Y), ValueError, r"X .*encoded"),
    (lambda: LeastSquares(np.array([[{}], [1]]), [1, 2]), TypeError, r"X .*number"),
    (lambda: LeastSquares(X[:0], Y[:0]), ValueError, r"X .*0 sample"),
    (lambda: LeastSquares(X, Y[:-1]), ValueError, r"y .*\(30,\).*\(29,\)"),
    (lambda: LeastSquares(X, np.ones((30, 2))), ValueError, r"y .*\(30, 2\)"),
    (lambda: LeastSquares(X, np.where(Y > 0, np.nan, Y)), ValueError, r"y contains nan at row"),
    (lambda: LeastSquares(X, Y + 1j), ValueError, "y is complex"),
    (lambda: LeastSquares(X, ["a"] * 30), ValueError, "y must hold numbers"),
    (lambda: LeastSquares(X, [{}] * 30), TypeError, "y must hold numbers"),
    (lambda: Logistic(X, np.arange(30) % 3), ValueError, "y must be coded 0/1.*FobaClassifier"),
    (lambda: Logistic(X, 2 * LABELS), ValueError, r"y must be coded 0/1.*0, 2"),
    (lambda: GLM("poisson", X, Y), ValueError, "y must be nonnegative for the poisson loss, got -"),
    (lambda: GLM("gamma", X, np.abs(np.round(Y))), ValueError, "y must be positive for the gamma"),
    (lambda: GLM("hinge", X, Y), ValueError, "loss must be one of .*squared_hinge.*'hinge'"),
    (lambda: GLM(Huber, X, Y), TypeError, "a class: call it"),
    (lambda: GLM(3, X, Y), TypeError, "loss must be one of"),
    (lambda: Huber(0.0), ValueError, r"threshold must lie in \(0, inf\)"),
    (lambda: Huber("a"), TypeError, "threshold must be a number"),
    (lambda: LeastSquares(X, [[1], [1, 2]]), ValueError, "y must be"),
    (lambda: LeastSquares(X, np.full(30, "2020-01-01", "M8[D]")), TypeError, "y holds dates"),
    (lambda: LeastSquares(X, Y, ridge=-1.0), ValueError, r"ridge must lie in \[0, inf\), got -1"),
    (lambda: LeastSquares(X, Y, ridge=np.nan), ValueError, "ridge"),
    (lambda: LeastSquares(X, Y, ridge="a"), TypeError, "ridge must be a number"),
    (lambda: LeastSquares(X, Y, ridge=[1.0, 2.0]), ValueError, r"ridge .*\(4,\).*\(2,\)"),
    (lambda: LeastSquares(X, Y, ridge=[1, 1, 1, -1]), ValueError, "ridge must be finite"),
    (lambda: LeastSquares(X, Y, fit_intercept="yes"), TypeError, "fit_intercept must be True"),
    (lambda: LeastSquares(X, Y, offset=Y[:3]), ValueError, "offset"),
    (lambda: LeastSquares(X, Y, sample_weight=-np.ones(30)), ValueError, "sample_weight .*-1"),
    (lambda: LeastSquares(X, Y, sample_weight=np.zeros(30)), ValueError, "sample_weight is zero"),
    (lambda: LeastSquares(X, Y, sample_weight=np.ones(3)), ValueError, "sample_weight"),
    (lambda: LeastSquares(X, Y, sample_weight=[np.nan] * 30), ValueError, "sample_weight contains"),
    (lambda: LeastSquares(X, Y, tol=0.0), ValueError, r"tol must lie in \(0"),
    (lambda: LeastSquares(X, Y, max_iter=0), ValueError, "max_iter must be at least 1"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD_OBJECTIVES)
def test_objectives_refuse(call, error, message):
    with pytest.raises(error, match=message):
        call()


BAD_SELECTIONS = [
    ({"k": -1}, ValueError, "k must be at least 0, got -1"),
    ({"k": 5}, ValueError, "k=5 is more than the 4 candidates"),
    ({"k": 2.0}, TypeError, r"k must be an integer, got 2.0 \(float\)"),
    ({"k": True}, TypeError, "k must be an integer, got True"),
    ({"k": "3"}, TypeError, "k must be an integer"),
    ({"k": 4, "always": [0]}, ValueError, "k=4 is more than the 3 candidates"),
    ({"k": 3, "groups": [0, 0, 1, 1]}, ValueError, "k=3 is more than the 2 candidates"),
    ({"method": "foba"}, ValueError, "method must be one of .*'foba-gdt'.*got 'foba'"),
    ({"method": None}, ValueError, "method must be one of"),
    ({"epsilon": -0.1}, ValueError, r"epsilon must lie in \[0, inf\)"),
    ({"epsilon": np.nan}, ValueError, "epsilon must lie"),
    ({"epsilon": "often"}, ValueError, 'epsilon must be a number or "auto"'),
    ({"delta": 0.1}, ValueError, "delta=0.1 is the threshold of the obj methods; foba-gdt stops"),
    ({"epsilon": 0.1, "method": "foba-obj"}, ValueError, "epsilon=0.1 is the threshold of the gdt"),
    ({"ratio": 1.0}, ValueError, r"ratio must lie in \[0, 1\), got 1.0"),
    ({"ratio": -0.1}, ValueError, "ratio"),
    ({"backward": "both"}, ValueError, r"backward must be one of \['coordinate', 'refit'\]"),
    ({"max_steps": -1}, ValueError, "max_steps must be at least 0"),
    ({"max_steps": 1.5}, TypeError, "max_steps must be an integer"),
    ({"callback": 3}, TypeError, "callback must be callable"),
    ({"always": [4]}, ValueError, "always holds column 4; columns are numbered 0 to 3"),
    ({"always": [-1]}, ValueError, "always holds column -1"),
    ({"always": [1.5]}, TypeError, "always must hold column numbers or names, got 1.5"),
    ({"always": 2}, TypeError, r"for one column give \[2\]"),
    ({"always": "a"}, TypeError, r"for one column give \['a'\]"),
    ({"always": ["a"]}, ValueError, "always names the column 'a', but columns have no names"),
    ({"always": [0, 1, 0, 0]}, ValueError, "always lists a column twice"),
    ({"always": {0: "yes"}}, TypeError, "always must be True or False"),
    ({"always": [True, False]}, ValueError, "always must be a mask of length 4, got length 2"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD_SELECTIONS)
def test_select_refuses(options, error, message):
    with pytest.raises(error, match=message):
        select(LeastSquares(X, Y), **options)


def test_a_series_indexed_by_names_is_a_mapping():
    frame = pd.DataFrame(X, columns=list("abcd"))
    always = pd.Series({"d": True, "c": False, "b": False, "a": False})
    groups = pd.Series({"d": "one", "b": "one", "c": "two", "a": "two"})
    assert FobaRegressor(k=0, always=always).fit(frame, Y).selected_.tolist() == [3]
    assert set(FobaRegressor(k=1, groups=groups).fit(frame, Y).selected_) == {0, 2}
    assert set(FobaRegressor(k=1, groups=pd.Series([1, 2, 1, 2])).fit(frame, Y).selected_) == {0, 2}


def test_always_as_a_mapping():
    path = select(LeastSquares(X, Y), k=1, always={0: False, 2: True})
    assert path.start.support.tolist() == [2]


@pytest.mark.parametrize("thing", [X, None, LeastSquares, "squared"])
def test_select_wants_an_objective(thing):
    with pytest.raises(TypeError, match="objective must be an Objective"):
        select(thing, k=1)


BAD_PARAMETERS = [
    ({"k": -1}, ValueError, "k must"),
    ({"k": 5}, ValueError, "k=5"),
    ({"k": 2.5}, TypeError, "k must be an integer"),
    ({"k": True}, TypeError, "k must be an integer"),
    ({"k_max": 9}, ValueError, "k_max=9 is more"),
    ({"method": "omp"}, ValueError, "method"),
    ({"criterion": "cp"}, ValueError, "criterion must be one of"),
    ({"alpha": -1}, ValueError, "alpha"),
    ({"alpha": "x"}, TypeError, "alpha"),
    ({"fit_intercept": 1}, TypeError, "fit_intercept"),
    ({"standardize": None}, TypeError, "standardize"),
    ({"tol": -1.0}, ValueError, "tol"),
    ({"max_iter": 0}, ValueError, "max_iter"),
    ({"ratio": 2}, ValueError, "ratio"),
    ({"backward": "x"}, ValueError, "backward"),
    ({"delta": 1.0}, ValueError, "delta=1.0 is the threshold of the obj"),
    ({"groups": [1]}, ValueError, "groups"),
    ({"always": ["a"]}, ValueError, "always names the column 'a'"),
    ({"verbose": "loud"}, TypeError, "verbose must be an integer"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD_PARAMETERS)
@pytest.mark.parametrize("estimator", [FobaRegressor, FobaClassifier, FobaSelector])
def test_estimators_refuse(estimator, options, error, message):
    with pytest.raises(error, match=message):
        estimator(**options).fit(X, LABELS)


def test_estimators_refuse_bad_losses_and_responses():
    with pytest.raises(ValueError, match=r"loss must be one of .*'huber'.*got 'logistic'"):
        FobaRegressor(loss="logistic").fit(X, Y)
    with pytest.raises(ValueError, match="y must be nonnegative"):
        FobaRegressor(loss="poisson").fit(X, Y)
    with pytest.raises(ValueError, match="sample_weight"):
        FobaRegressor().fit(X, Y, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="y must hold class labels of one type"):
        FobaClassifier().fit(X, np.array([1, "a", 2] * 10, dtype=object))
    with pytest.raises(ValueError, match="y has 3 classes, but the squared_hinge loss is for two"):
        FobaSelector(loss="squared_hinge").fit(X, np.arange(30) % 3)


def test_column_names_that_differ_at_predict_are_refused():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = FobaRegressor(k=2).fit(frame, Y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("dcba")])
    with pytest.raises(ValueError, match=r"3 features.*4 features"):
        FobaRegressor(k=2).fit(X, Y).predict(X[:, :3])


def test_names_come_from_frames_with_text_columns_only():
    named = LeastSquares(pd.DataFrame(X, columns=list("abcd")), Y)
    assert named.feature_names == ("a", "b", "c", "d")
    assert select(named, k=1, always=["b"]).start.support.tolist() == [1]
    assert select(named, groups={"a": "x", "d": "x"}).name(0) == "x"
    assert LeastSquares(pd.DataFrame(X), Y).feature_names is None
    with pytest.raises(ValueError, match="always names the column 'z'; columns are"):
        select(named, always=["z"])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 9_000, -1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_not_finite_is_found_anywhere_in_a_large_matrix(bad, row, dtype):
    large = np.zeros((10_000, 3), dtype)
    large[row, 1] = bad
    with pytest.raises(ValueError, match="X must be a matrix of finite numbers"):
        LeastSquares(large, np.zeros(10_000))
    large[row, 1] = np.finfo(dtype).max
    LeastSquares(large, np.zeros(10_000))
