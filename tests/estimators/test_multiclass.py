"""FobaClassifier and FobaSelector with more than two classes."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from forback import FobaClassifier, FobaSelector, select
from forback.objectives import Multinomial
from support.problems import information


@parametrize_with_checks(
    [FobaClassifier(method="forward-gdt", alpha=0.1), FobaClassifier(by="feature")]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True, as_frame=True)


def gradient_left(model, X, y, weights=None):
    """The largest gradient of the model on its columns, on the scale fitted, intercepts too."""
    Z = StandardScaler().fit_transform(X) if model.standardize else np.asarray(X)
    weights = np.ones(len(y)) if weights is None else weights
    residual = model.predict_proba(X) - (np.asarray(y)[:, None] == model.classes_)
    residual *= (weights / weights.sum())[:, None]
    scale = Z.std(axis=0) if model.standardize else np.ones(Z.shape[1])
    factor = np.asarray(X).std(axis=0) if model.standardize else scale
    slopes = residual.T @ Z + model.alpha * model.coef_ * factor
    return max(np.abs(slopes[:, model.support_]).max(), np.abs(residual.sum(axis=0)).max())


@pytest.mark.parametrize("method", ["foba-gdt", "foba-obj", "forward-gdt", "forward-obj"])
@pytest.mark.parametrize("standardize", [True, False])
def test_classifier_is_softmax_regression_on_its_columns(wine, method, standardize):
    X, y = wine
    model = FobaClassifier(k=4, method=method, alpha=1e-2, standardize=standardize).fit(X, y)
    assert model.coef_.shape == (3, 13)
    assert model.intercept_.shape == (3,)
    assert model.k_ == model.support_.sum() == len(model.selected_) == 4
    assert (model.coef_[:, ~model.support_] == 0).all()
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(model.intercept_.sum(), 0.0, atol=1e-9)
    sizes = 1.0 if standardize else np.abs(X).max().max()
    assert gradient_left(model, X, y) < 1e-7 * sizes
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), proba)
    assert model.decision_function(X).shape == (178, 3)
    np.testing.assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])


def test_scikit_learn_agrees(wine):
    X, y = wine
    Z = StandardScaler().fit_transform(X)
    model = FobaClassifier(k=5, alpha=1e-2).fit(X, y)
    columns = np.flatnonzero(model.support_)
    plain = LogisticRegression(C=1 / (1e-2 * len(y)), tol=1e-10, max_iter=10000)
    plain.fit(Z[:, columns], y)
    np.testing.assert_allclose(
        model.predict_proba(X), plain.predict_proba(Z[:, columns]), atol=1e-5
    )


def test_estimator_and_select_agree(wine):
    X, y = wine
    Z = StandardScaler().fit_transform(X)
    for method in ("foba-gdt", "foba-obj"):
        model = FobaClassifier(k=5, method=method).fit(X, y)
        objective = Multinomial(Z, y, ridge=1e-4, fit_intercept=True)
        path = select(objective, k=5, method=method, refine="swap")
        assert [s.feature for s in path.steps] == [s.feature for s in model.path_.steps]
        assert path[5].value == pytest.approx(model.objective_value_, rel=1e-9)


def test_digits():
    X, y = load_digits(return_X_y=True)
    model = FobaClassifier(k=6, alpha=1e-2).fit(X[:600], y[:600])
    assert model.coef_.shape == (10, 64)
    assert model.k_ == 6
    assert model.score(X[600:], y[600:]) > 0.55
    assert 0.1 < FobaClassifier(k=0).fit(X, y).score(X, y) < 0.11
    varied = X[:600].std(axis=0) > 0
    few = clone(model).fit(X[:600, varied], y[:600])
    assert gradient_left(few, X[:600, varied], y[:600]) < 1e-7


def test_string_labels_and_the_order_of_classes(iris):
    X, y = iris
    names = load_iris().target_names
    model = FobaClassifier(k=2).fit(X, names[y])
    assert model.classes_.tolist() == sorted(names)
    assert set(model.predict(X)) == set(names)
    plain = FobaClassifier(k=2).fit(X, y)
    np.testing.assert_array_equal(names[plain.predict(X)], model.predict(X))
    turned = FobaClassifier(k=2).fit(X, 2 - y)
    np.testing.assert_allclose(turned.coef_, plain.coef_[::-1], rtol=1e-6, atol=1e-8)


def test_labels_of_rows_that_do_not_count_do_not_exist(iris):
    X, y = iris
    weights = (y != 1).astype(float)
    model = FobaClassifier(k=2).fit(X, y, sample_weight=weights)
    assert model.classes_.tolist() == [0, 2]
    assert model.coef_.shape == (1, 4)
    two = FobaClassifier(k=2).fit(X[y != 1], y[y != 1])
    np.testing.assert_allclose(model.coef_, two.coef_)
    with pytest.raises(ValueError, match="only one class, 0; at least two are required"):
        FobaClassifier().fit(X, y, sample_weight=(y == 0).astype(float))


def test_weights_count_rows(wine):
    X, y = wine
    weights = np.random.default_rng(0).integers(0, 3, size=len(y))
    repeated = X.loc[X.index.repeat(weights)], y.repeat(weights)
    weighted, plain = FobaClassifier().fit(X, y, weights), FobaClassifier().fit(*repeated)
    assert weighted.selected_.tolist() == plain.selected_.tolist()
    np.testing.assert_allclose(weighted.coef_, plain.coef_, rtol=1e-5, atol=1e-8)


def test_size_by_a_criterion_is_the_minimum_over_the_path(wine):
    X, y = wine
    model = FobaClassifier(alpha=1e-3).fit(X, y)
    objective = Multinomial(
        StandardScaler().fit_transform(X), y, ridge=1e-3, fit_intercept=True, tol=1e-8
    )
    values = {}
    for size in model.path_.sizes:
        point = model.path_[size]
        loglik, n, freedom = information(objective, point)
        assert freedom == 2 * (size + 1)
        values[size] = -2 * loglik + np.log(n) * freedom
    assert model.k_ == min(values, key=values.get) > 0
    assert FobaClassifier(criterion="aic", alpha=1e-3).fit(X, y).k_ >= model.k_


def test_groups_costs_budget_and_always(wine):
    X, y = wine
    kinds = ["body" if j % 2 else "soul" if j % 3 else f"own {j}" for j in range(13)]
    grouped = FobaClassifier(k=2, groups=kinds).fit(X, y)
    assert len({kinds[j] for j in grouped.selected_}) == grouped.k_ == 2
    assert grouped.support_.sum() == sum(kind in {kinds[j] for j in grouped.selected_}
                                         for kind in kinds)  # fmt: skip
    cheap = FobaClassifier(k=3, costs=[1.0 + 9.0 * (j > 5) for j in range(13)], budget=3.0)
    assert cheap.fit(X, y).selected_.max() <= 5
    model = FobaClassifier(k=2, always=["magnesium"]).fit(X, y)
    assert X.columns[model.selected_[0]] == "magnesium"
    assert (model.k_, model.support_.sum()) == (2, 3)
    single = FobaClassifier(k=5, by="feature").fit(X, y)
    assert (np.count_nonzero(single.coef_), single.k_) == (5, 5)
    assert single.support_.sum() == len(single.selected_) <= 5


def test_sparse_and_dense_twins_agree_without_standardising():
    rng = np.random.default_rng(5)
    X = sparse.random(200, 40, density=0.1, random_state=rng, format="csr")
    truth = np.zeros((40, 3))
    truth[[3, 8, 11]] = 4 * rng.normal(size=(3, 3))
    y = (X @ truth + rng.gumbel(size=(200, 3))).argmax(axis=1)
    for method in ("foba-gdt", "foba-obj"):
        dense = FobaClassifier(k=5, standardize=False, method=method).fit(X.toarray(), y)
        thin = FobaClassifier(k=5, standardize=False, method=method).fit(X, y)
        assert dense.selected_.tolist() == thin.selected_.tolist()
        np.testing.assert_allclose(dense.coef_, thin.coef_, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(thin.predict_proba(X), dense.predict_proba(X.toarray()))
    scaled = FobaClassifier(k=5, fit_intercept=False).fit(X, y)
    assert (scaled.intercept_ == 0).all()


def test_pickle_clone_and_search(iris):
    X, y = iris
    model = FobaClassifier(k=2).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    assert clone(model).get_params() == FobaClassifier(k=2).get_params()
    search = GridSearchCV(FobaClassifier(), {"k": [0, 2]}, cv=3, scoring="neg_log_loss").fit(X, y)
    assert search.best_params_ == {"k": 2}


def test_selector_takes_several_classes(iris):
    X, y = iris
    labels = load_iris().target_names[y]
    selector = FobaSelector(k=2, loss="logistic", alpha=1e-4).fit(X, labels)
    model = FobaClassifier(k=2).fit(X, labels)
    np.testing.assert_array_equal(selector.support_, model.support_)
    assert selector.set_output(transform="pandas").transform(X).shape == (150, 2)
    with pytest.raises(ValueError, match="y has 3 classes, but the squared_hinge loss is for two"):
        FobaSelector(loss="squared_hinge").fit(X, y)


def test_two_classes_stay_a_logistic_regression():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = FobaClassifier(k=3).fit(X, pd.Categorical(np.where(y, "benign", "malignant")))
    assert model.coef_.shape == (1, 30)
    assert model.decision_function(X).shape == (569,)


def test_separated_classes_are_reported():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.digitize(X[:, 1], [-0.5, 0.5])
    with pytest.warns(ConvergenceWarning, match="separate the data.*set alpha > 0"):
        FobaClassifier(k=1, alpha=0.0).fit(X, y)


def test_intercepts_sum_to_zero_even_if_coefficients_enter_singly():
    X, y = load_wine(return_X_y=True)
    model = FobaClassifier(k=3, by="feature").fit(X, y)
    assert np.count_nonzero(model.coef_) == 3
    assert abs(model.intercept_.sum()) < 1e-9
