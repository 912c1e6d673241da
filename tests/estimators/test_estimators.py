"""The estimators: scikit-learn's own checks, names, frames, pipelines, pickles."""

import pickle
import tracemalloc
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from forback import FobaClassifier, FobaCovariance, FobaCRF, FobaRegressor, FobaSelector
from forback.objectives import Huber, Logistic, LogisticLoss
from support.problems import information

CHECKED = [
    FobaRegressor(),
    FobaRegressor(k=1),
    FobaRegressor(k=1, loss="huber"),
    FobaRegressor(loss="poisson"),
    FobaRegressor(loss="gamma"),
    FobaRegressor(method="foba-obj", standardize=False, alpha=0.1),
    FobaClassifier(),
    FobaClassifier(method="foba-obj"),
    FobaSelector(),
    FobaSelector(k=1, method="forward-obj"),
]


# The data of one check is noise: choosing nothing is right, and scikit-learn's selectors say so.
@pytest.mark.filterwarnings("ignore:No features were selected:UserWarning")
@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True, scaled=False)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("make", [np.asarray, lambda X: sparse.csr_matrix(X.to_numpy())])
def test_regressor_is_least_squares_on_its_columns(diabetes, standardize, make):
    X, y = diabetes
    model = FobaRegressor(k=4, standardize=standardize).fit(make(X), y)
    columns = np.flatnonzero(model.support_)
    plain = LinearRegression().fit(X.to_numpy()[:, columns], y)
    np.testing.assert_allclose(model.coef_[columns], plain.coef_, rtol=1e-6)
    assert model.intercept_ == pytest.approx(plain.intercept_, rel=1e-6)
    assert model.coef_.shape == (10,)
    assert np.count_nonzero(model.coef_) == model.k_ == 4
    assert set(model.selected_) == set(columns)


def test_regressor_alpha_is_the_ridge_of_the_mean_loss(diabetes):
    X, y = diabetes
    X = X.to_numpy()
    model = FobaRegressor(k=10, alpha=0.3, standardize=False).fit(X, y)
    ridge = Ridge(alpha=0.3 * len(y), tol=1e-12, solver="cholesky").fit(X, y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=1e-6)


def test_classifier_is_logistic_regression_on_its_columns(cancer):
    X, y = cancer
    Z = StandardScaler().fit_transform(X)
    model = FobaClassifier(k=5, alpha=1e-2).fit(X, y)
    columns = np.flatnonzero(model.support_)
    plain = LogisticRegression(C=1 / (1e-2 * len(y)), tol=1e-10, max_iter=10000)
    plain.fit(Z[:, columns], y)
    np.testing.assert_allclose(
        model.predict_proba(X), plain.predict_proba(Z[:, columns]), atol=1e-5
    )
    assert model.coef_.shape == (1, 30)
    assert model.intercept_.shape == (1,)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    assert (model.predict(X) == (model.decision_function(X) > 0)).all()


def test_poisson_agrees_with_scikit_learn(diabetes):
    X, y = diabetes
    Z = StandardScaler().fit_transform(X)
    model = FobaRegressor(k=10, loss="poisson", standardize=False, alpha=1e-3).fit(Z, y)
    plain = PoissonRegressor(alpha=1e-3, tol=1e-10, max_iter=10000, solver="newton-cholesky")
    plain.fit(Z, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(model.predict(Z), plain.predict(Z), rtol=1e-6)


def test_huber_withstands_outliers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    y = 2 * X[:, 3] + 0.1 * rng.normal(size=200)
    y[:20] += 50
    assert FobaRegressor(k=1, loss="huber").fit(X, y).coef_[3] == pytest.approx(2.0, abs=0.2)
    tight = FobaRegressor(k=1, loss=Huber(0.1)).fit(X, y)
    assert tight.coef_[3] == pytest.approx(2.0, abs=0.05)
    with pytest.raises(ValueError, match="cross-validation"):
        FobaRegressor(loss="huber").fit(X, y)


def test_size_by_bic_is_the_minimum_over_the_path():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 20))
    y = X[:, [2, 5, 9]] @ [1.0, -1.0, 0.5] + 0.5 * rng.normal(size=300)
    model = FobaRegressor().fit(X, y)
    assert set(model.selected_) >= {2, 5, 9}
    values = {}
    for k in range(model.path_.sizes[-1] + 1):
        residual = 2 * model.path_.best(k).value
        values[k] = 300 * np.log(residual) + np.log(300) * k
    assert model.k_ == min(values, key=values.get)
    assert FobaRegressor(criterion="aic").fit(X, y).k_ >= model.k_
    assert FobaRegressor(k_max=2).fit(X, y).k_ == 2
    assert FobaRegressor(k_max=0).fit(X, y).k_ == 0


def test_gamma_likelihood_is_scipys_at_the_best_shape():
    from scipy import stats

    rng = np.random.default_rng(2)
    X = rng.normal(size=(150, 3))
    y = rng.gamma(4.0, np.exp(0.5 * X[:, 0]))
    from forback.objectives import GLM

    objective = GLM("gamma", X, y, fit_intercept=True)
    point = objective.minimise(np.arange(4))
    loglik, n, df = information(objective, point)
    mean = np.exp(X @ point.coef[:3] + point.coef[3])
    best = max(
        stats.gamma.logpdf(y, shape, scale=mean / shape).sum() for shape in np.linspace(1, 10, 2000)
    )
    assert loglik == pytest.approx(best, rel=1e-5)
    assert (n, df) == (150, 4)


def test_whole_weights_count_rows_and_others_do_not(diabetes):
    X, y = diabetes
    X, y = X[:60], y[:60]
    plain = FobaRegressor().fit(X, y)
    for factor in (0.1, 0.5, 7.3, 1e-9, 1e9 + 0.5):
        weighted = FobaRegressor().fit(X, y, sample_weight=np.full(60, factor))
        assert weighted.selected_.tolist() == plain.selected_.tolist()
    doubled = FobaRegressor().fit(X, y, sample_weight=np.full(60, 2))
    repeated = FobaRegressor().fit(pd.concat([X, X]), pd.concat([y, y]))
    assert doubled.selected_.tolist() == repeated.selected_.tolist()


def test_a_threshold_below_k_is_no_cause_for_a_warning(diabetes):
    X, y = diabetes
    model = FobaRegressor(k=9, epsilon=20.0).fit(X, y)
    assert 0 < model.k_ < 9


def test_loss_objects_must_suit_a_regression():
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match="whose y is binary"):
        FobaRegressor(loss=LogisticLoss()).fit(X, X[:, 0] > 0)


def test_fitted_models_do_not_change_with_their_parameters(diabetes):
    X, y = diabetes
    model = FobaRegressor(k=2, loss="poisson").fit(X, y)
    before = model.predict(X)
    np.testing.assert_array_equal(model.set_params(loss="squared").predict(X), before)
    model.coef_ = np.zeros(10)
    assert np.ptp(model.predict(X)) == 0.0


@pytest.mark.parametrize(
    "given",
    [
        lambda X: X,
        lambda X: X.astype(np.float32),
        lambda X: pd.DataFrame(X.astype(np.float32)),
        lambda X: pd.DataFrame(X).assign(whole=1).iloc[:, :-1],
        sparse.csr_matrix,
        sparse.csc_matrix,
    ],
)
def test_memory_is_x_and_one_copy(given):
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(4000, 500))
    y = dense[:, 0] + rng.normal(size=4000)
    X = given(dense)
    # What the index arrays of a sparse matrix take comes on top of its float64 entries.
    one = dense.nbytes * (1.5 if sparse.issparse(X) else 1.0)
    FobaRegressor(k=3).fit(X[:50], y[:50])
    tracemalloc.start()
    FobaRegressor(k=3).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * one


def test_thresholds_stop_an_estimator(diabetes):
    X, y = diabetes
    model = FobaRegressor(epsilon=20.0).fit(X, y)
    assert 0 < model.k_ < 10
    assert "below the threshold" in model.path_.stop_reason
    assert FobaRegressor(method="foba-obj", delta=50.0).fit(X, y).k_ < 10


def test_a_wide_table_that_ends_early_warns():
    X = np.random.default_rng(3).normal(size=(10, 30))
    y = np.random.default_rng(4).normal(size=10)
    with pytest.warns(UserWarning, match="only 9 of k=20 features were chosen"):
        model = FobaRegressor(k=20).fit(X, y)
    assert model.k_ == 9


def test_constant_and_copied_columns_do_no_harm(cancer):
    X, y = cancer
    wide = X.assign(constant=7.3, copy=X["worst perimeter"], scaled=-1e9 * X["worst perimeter"])
    plain = FobaClassifier(k=4, method="foba-obj").fit(X, y)
    model = FobaClassifier(k=4, method="foba-obj").fit(wide, y)
    assert model.objective_value_ == pytest.approx(plain.objective_value_, rel=1e-9)
    assert not model.support_[list(wide.columns).index("constant")]


@pytest.mark.parametrize("power", [-150, -9, 9, 150])
def test_standardised_fits_do_not_depend_on_units(diabetes, power):
    X, y = diabetes
    factors = 10.0 ** (power * np.linspace(-1, 1, 10))
    plain = FobaRegressor(k=4).fit(X, y)
    model = FobaRegressor(k=4).fit(X * factors, y)
    assert model.selected_.tolist() == plain.selected_.tolist()
    np.testing.assert_allclose(model.coef_ * factors, plain.coef_, rtol=1e-6)


def test_names_go_in_and_out(cancer):
    X, y = cancer
    model = FobaSelector(k=3, loss="logistic", always=["mean area"]).fit(X, y)
    assert model.selected_[0] == list(X.columns).index("mean area")
    assert model.k_ == 3
    assert model.support_.sum() == 4
    assert model.get_support(indices=True).tolist() == sorted(model.selected_)
    out = model.set_output(transform="pandas").transform(X)
    assert list(out.columns) == list(model.get_feature_names_out())
    pd.testing.assert_frame_equal(out, X.loc[:, model.support_])
    with pytest.raises(ValueError, match="feature names"):
        model.transform(X.rename(columns={"mean area": "area"}))


def test_polars_frames(cancer):
    X, y = cancer
    frame = pl.DataFrame(dict(X.items()))
    target = pl.Series(y.to_numpy())
    model = FobaClassifier(k=3).fit(frame, target)
    assert list(model.feature_names_in_) == list(X.columns)
    plain = FobaClassifier(k=3).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(frame), plain.predict_proba(X), rtol=1e-9)
    selector = FobaSelector(k=3).set_output(transform="polars").fit(frame, target.cast(float))
    assert isinstance(selector.transform(frame), pl.DataFrame)


def test_groups_by_name_enter_together(cancer):
    X, y = cancer
    kinds = {name: " ".join(name.split()[1:]) if "error" not in name else name for name in X}
    model = FobaClassifier(k=2, groups=kinds).fit(X, y)
    chosen = {kinds[X.columns[j]] for j in model.selected_}
    assert len(chosen) == 2
    assert model.support_.sum() == sum(kind in chosen for kind in kinds.values())
    by_array = FobaClassifier(k=2, groups=[kinds[name] for name in X]).fit(X, y)
    np.testing.assert_array_equal(by_array.support_, model.support_)


def test_string_labels(cancer):
    X, y = cancer
    labels = np.where(y == 1, "benign", "malignant")
    model = FobaClassifier(k=3).fit(X, labels)
    assert model.classes_.tolist() == ["benign", "malignant"]
    assert set(model.predict(X)) == {"benign", "malignant"}
    opposite = FobaClassifier(k=3).fit(X, y)
    np.testing.assert_allclose(model.coef_, -opposite.coef_, rtol=1e-5)


def test_one_class_is_refused():
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match="only one class, 'a'"):
        FobaClassifier().fit(X, ["a"] * 30)


def test_sparse_and_dense_twins_agree_without_standardising():
    rng = np.random.default_rng(5)
    X = sparse.random(150, 40, density=0.1, random_state=rng, format="csr")
    y = (X.toarray()[:, 3] - X.toarray()[:, 8] + 0.1 * rng.normal(size=150)) > 0
    for method in ("foba-gdt", "foba-obj"):
        dense = FobaClassifier(k=6, standardize=False, method=method).fit(X.toarray(), y)
        thin = FobaClassifier(k=6, standardize=False, method=method).fit(X, y)
        assert dense.selected_.tolist() == thin.selected_.tolist()
        np.testing.assert_allclose(dense.coef_, thin.coef_, rtol=1e-6, atol=1e-9)
    # Scaled but not centred is what a dense fit without intercept does too.
    dense = FobaClassifier(k=6, fit_intercept=False).fit(X.toarray(), y)
    thin = FobaClassifier(k=6, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(dense.coef_, thin.coef_, rtol=1e-6, atol=1e-9)


def test_in_a_grid_search_a_pipeline_and_a_column_transformer(cancer):
    X, y = cancer
    search = GridSearchCV(FobaClassifier(), {"k": [1, 3, 5]}, cv=3).fit(X, y)
    assert search.best_params_["k"] in (3, 5)
    pipeline = make_pipeline(
        StandardScaler(), FobaSelector(k=4, loss="logistic"), LogisticRegression(max_iter=1000)
    )
    assert cross_val_score(pipeline, X, y, cv=3).min() > 0.9
    table = X.assign(kind=np.where(X["mean area"] > 600, "large", "small"))
    columns = ColumnTransformer(
        [("kind", OneHotEncoder(), ["kind"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="default")
    model = make_pipeline(columns, FobaClassifier(k=3)).fit(table, y)
    assert model[-1].k_ == 3
    inside = ColumnTransformer([("few", FobaSelector(k=2), list(X.columns[:10]))])
    assert inside.fit_transform(X, y).shape == (len(X), 2)


def test_any_layout_and_number_type(tmp_path, cancer):
    X, y = cancer
    rounded = X.round().to_numpy()
    np.save(tmp_path / "X.npy", rounded)
    layouts = [
        rounded.astype(int),
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        np.repeat(rounded, 2, axis=1)[:, ::2],
        np.asfortranarray(rounded),
        rounded.tolist(),
    ]
    plain = FobaClassifier(k=3).fit(rounded, y)
    for layout in layouts:
        model = FobaClassifier(k=3).fit(layout, y)
        np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-7)
    assert FobaClassifier(k=3).fit(rounded > 1, y).k_ == 3


@pytest.mark.parametrize("estimator", [FobaRegressor(k=3), FobaClassifier(k=3), FobaSelector(k=3)])
def test_pickle_joblib_and_clone(estimator, cancer, tmp_path):
    X, y = cancer
    fitted = clone(estimator).fit(X, y)
    joblib.dump(fitted, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "model")):
        np.testing.assert_array_equal(copy.support_, fitted.support_)
        np.testing.assert_array_equal(copy.path_.coef(3), fitted.path_.coef(3))
    assert clone(fitted).get_params() == estimator.get_params()


def test_fitting_changes_neither_input_nor_global_state(cancer):
    X, y = cancer
    arrays = [np.asfortranarray(X.to_numpy()), X.to_numpy().astype(np.float32), X.to_numpy().copy()]
    state, filters = np.random.get_state()[1].copy(), list(warnings.filters)  # noqa: NPY002
    for array in arrays:
        before = array.copy()
        array.flags.writeable = False
        FobaClassifier(k=2).fit(array, y)
        np.testing.assert_array_equal(array, before)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert warnings.filters == filters


class Container:
    """An object that hands out the very array it keeps, as xarray does."""

    def __init__(self, values):
        self.values, self.shape = values, values.shape

    def __array__(self, dtype=None, copy=None):
        return self.values

    def __len__(self):
        return len(self.values)


def test_no_holder_of_the_data_finds_it_changed(cancer):
    X, y = cancer
    values = np.array(X.to_numpy(), order="C")  # owns its memory
    before = values.copy()
    frames = [
        pd.DataFrame(values, columns=X.columns, copy=False),
        pd.DataFrame(np.asfortranarray(values)),
        pd.DataFrame(dict(X.items())),
        pl.DataFrame(dict(X.items())),
        pl.DataFrame({"one": values[:, 0]}),
        pd.DataFrame({"one": values[:, 0]}),
        Container(values),
    ]
    for given in frames:
        kept = np.array(given)
        FobaRegressor(k=1).fit(given, y)
        np.testing.assert_array_equal(np.asarray(given), kept)
    np.testing.assert_array_equal(values, before)


def test_verbose_prints_a_line_per_step(diabetes, capsys):
    X, y = diabetes
    model = FobaRegressor(k=3, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + model.n_iter_
    assert lines[0] == "foba-gdt among 10 candidates"
    assert lines[1].startswith("+ bmi  size 1  objective ")


def test_too_few_newton_steps_are_reported(cancer):
    from sklearn.exceptions import ConvergenceWarning

    X, y = cancer
    with pytest.warns(ConvergenceWarning, match="increase max_iter"):
        FobaClassifier(k=3, max_iter=1).fit(X, y)


def test_separated_classes_are_reported():
    from sklearn.exceptions import ConvergenceWarning

    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.warns(ConvergenceWarning, match="separate the data.*set alpha > 0"):
        FobaClassifier(k=1, alpha=0.0).fit(X, X[:, 1] > 0)


def test_estimator_and_select_agree(cancer):
    from forback import select

    X, y = cancer
    Z = StandardScaler().fit_transform(X)
    for method in ("foba-gdt", "foba-obj"):
        model = FobaClassifier(k=8, method=method).fit(X, y)
        objective = Logistic(Z, y, ridge=1e-4, fit_intercept=True)
        path = select(objective, k=8, method=method, refine="swap")
        assert [s.feature for s in path.steps] == [s.feature for s in model.path_.steps]
        assert path[8].value == pytest.approx(model.objective_value_, rel=1e-9)
        literal = FobaClassifier(k=8, method=method, refine=None).fit(X, y)
        assert path.end.value == pytest.approx(literal.objective_value_, rel=1e-9)


# A loss for the kind of y -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        lambda up: np.where(up, "yes", "no"),
        lambda up: up,
        lambda up: pd.Series(np.where(up, "yes", "no"), dtype="category"),
        lambda up: np.where(up, "yes", "no").astype(object),
    ],
)
def test_auto_takes_labels_as_classes(labels):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    up = X[:, 2] - X[:, 4] > 0
    auto = FobaSelector(k=2, loss="auto", alpha=1e-2).fit(X, labels(up))
    named = FobaSelector(k=2, loss="logistic", alpha=1e-2).fit(X, up)
    assert auto.selected_.tolist() == named.selected_.tolist()


def test_auto_takes_fractions_as_amounts_and_asks_about_whole_numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    y = X[:, 1] + 0.1 * rng.normal(size=80)
    assert FobaSelector(k=1, loss="auto").fit(X, y).selected_.tolist() == [1]
    for whole in (np.round(y).astype(int), np.round(y)):
        with pytest.raises(ValueError, match='give loss="logistic", "poisson" or "squared"'):
            FobaSelector(k=1, loss="auto").fit(X, whole)


@pytest.mark.parametrize(
    "estimator", [FobaRegressor, FobaClassifier, FobaSelector, FobaCRF, FobaCovariance]
)
def test_a_misspelt_parameter_names_the_estimator_that_was_written(estimator):
    with pytest.raises(TypeError, match=rf"{estimator.__name__}.__init__\(\) got an unexpected"):
        estimator(kk=2)
