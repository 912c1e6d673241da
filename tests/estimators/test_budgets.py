"""by, groups, costs and budget of the linear estimators: frames, clones, grid searches."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from forback import FobaClassifier, FobaRegressor, FobaSelector, select
from forback.objectives import LeastSquares

ESTIMATORS = [FobaRegressor, FobaClassifier, FobaSelector]


@pytest.fixture(scope="module")
def cancer():
    """Thirty columns: mean, error and worst of ten measurements, each a sensor."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X, y


def sensor_of(name):
    words = name.split()
    return " ".join(words[:-1] if words[-1] == "error" else words[1:])


def sensors(X):
    """sensor -> names of its columns."""
    names = {}
    for name in X.columns:
        names.setdefault(sensor_of(name), []).append(name)
    return names


def used(model, X):
    return list(dict.fromkeys(sensor_of(X.columns[j]) for j in model.selected_))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("by", ["feature", "group"])
def test_a_budget_limits_the_sensors_in_use(estimator, by, cancer):
    X, y = cancer
    groups = sensors(X)
    assert {len(names) for names in groups.values()} == {3}
    model = estimator(groups=groups, by=by, budget=3).fit(X, y)
    assert len(used(model, X)) == 3
    answer = model.path_[model.k_]
    assert model.path_.groups(answer) == used(model, X)
    assert model.path_.cost(answer) == 3
    assert answer.value == model.objective_value_ <= model.path_.end.value
    assert "of 3)" in model.path_.stop_reason
    if by == "group":
        assert model.k_ == 3
        assert model.support_.sum() == 9
    else:
        assert model.k_ == model.support_.sum() >= 3
    assert model.k_ == model.path_.end.size
    literal = estimator(groups=groups, by=by, budget=3, refine=None).fit(X, y)
    assert literal.path_.groups(literal.path_.end) == used(literal, X)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_prices_by_name_and_per_column_are_the_same(estimator, cancer):
    X, y = cancer
    groups = sensors(X)
    prices = {sensor: 1.0 + len(sensor) % 3 for sensor in groups}
    options = {"groups": groups, "by": "feature", "budget": 4.0, "k": 6}
    named = estimator(costs=prices, **options).fit(X, y)
    listed = estimator(costs=[prices[sensor_of(name)] for name in X], **options).fit(X, y)
    series = estimator(costs=pd.Series(prices), **options).fit(X, y)
    by_column = {names[-1]: prices[sensor] for sensor, names in groups.items()}
    columns = estimator(costs=by_column, **options).fit(X, y)
    for model in (listed, series, columns):
        assert model.selected_.tolist() == named.selected_.tolist()
    spent = sum(prices[sensor] for sensor in used(named, X))
    assert spent == named.path_.cost(named.path_[named.k_]) <= 4.0


def test_without_k_a_budget_needs_no_criterion():
    """A loss without a likelihood cannot choose a size by BIC, but can spend a budget."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 8))
    y = X[:, :5] @ [3.0, 2.0, 1.0, 0.5, 0.1] + 0.1 * rng.normal(size=100)
    with pytest.raises(ValueError, match="cross-validation"):
        FobaRegressor(loss="huber").fit(X, y)
    assert FobaRegressor(loss="huber", budget=2).fit(X, y).selected_.tolist() == [0, 1]
    # Four more would pay by BIC; two are paid for.
    assert FobaRegressor().fit(X, y).k_ >= 4
    assert FobaRegressor(budget=2, k_max=1).fit(X, y).k_ == 2


def test_k_with_a_budget_passes_over_what_is_too_dear_without_a_warning():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4))
    y = X @ [4.0, 3.0, 2.0, 1.0] + 0.1 * rng.normal(size=100)
    model = FobaRegressor(k=3, costs=[1, 5, 1, 1], budget=2).fit(X, y)
    assert model.selected_.tolist() == [0, 2]
    assert model.k_ == 2


def test_a_budget_alone_passes_over_what_is_too_dear_while_it_buys_something():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4))
    y = X @ [4.0, 3.0, 2.0, 1.0] + 0.1 * rng.normal(size=100)
    prices = {"costs": [1, 5, 1, 1], "budget": 2, "refine": None}
    assert FobaRegressor(**prices).fit(X, y).selected_.tolist() == [0, 2]
    assert FobaRegressor(unaffordable="stop", **prices).fit(X, y).selected_.tolist() == [0]
    dear = {"costs": [5, 5, 5, 1], "budget": 3, "refine": None}
    assert FobaRegressor(**dear).fit(X, y).selected_.tolist() == [3]
    with pytest.warns(UserWarning, match="no feature was chosen: the best candidate, of 0, costs"):
        assert FobaRegressor(unaffordable="stop", **dear).fit(X, y).k_ == 0
    with pytest.raises(ValueError, match=r"unaffordable must be one of \['pass', 'stop'\]"):
        FobaRegressor(unaffordable="skip", **dear).fit(X, y)


@pytest.mark.parametrize("by", ["feature", "group"])
def test_at_equal_prices_both_readings_of_a_budget_are_one(by, cancer):
    X, y = cancer
    options = {"groups": sensors(X), "by": by, "budget": 4, "refine": None}
    passing = FobaRegressor(**options).fit(X, y)
    stopping = FobaRegressor(unaffordable="stop", **options).fit(X, y)
    assert [s.feature for s in passing.path_.steps] == [s.feature for s in stopping.path_.steps]
    assert passing.path_.stop_reason == stopping.path_.stop_reason


def test_affordable_columns_that_do_not_help_are_told_from_dear_ones_that_would():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    X[:, 2] = X[:, 0]
    y = X[:, 0] + 0.5 * X[:, 1] + 0.1 * rng.normal(size=100)
    model = FobaRegressor(k=2, costs=[1, 5, 1], budget=2).fit(X, y)
    assert model.selected_.tolist() == [0]
    reason = "no candidate within the remaining budget (1 of 2) lowers the objective"
    assert model.path_.stop_reason == reason
    with pytest.warns(UserWarning, match="only 2 of k=3 features were chosen: no candidate left"):
        FobaRegressor(k=3, costs=[1, 1, 1], budget=3).fit(X, y)


def test_estimator_and_select_agree(cancer):
    X, y = cancer
    Z = StandardScaler().fit_transform(X)
    labels = [sensor_of(name) for name in X]
    for k in (None, 7):
        for method in ("foba-gdt", "foba-obj"):
            options = {"groups": labels, "by": "feature", "budget": 4, "method": method, "k": k}
            model = FobaRegressor(**options).fit(X, y)
            path = select(LeastSquares(Z, y, fit_intercept=True), **options)
            assert [s.feature for s in path.steps] == [s.feature for s in model.path_.steps]
            assert [s.cost for s in path.steps] == [s.cost for s in model.path_.steps]
            assert path.stop_reason == model.path_.stop_reason


def test_always_by_name_is_free(cancer):
    X, y = cancer
    options = {"groups": sensors(X), "by": "feature", "budget": 2}
    model = FobaClassifier(always=["mean area"], **options).fit(X, y)
    assert model.selected_[0] == list(X.columns).index("mean area")
    assert used(model, X)[0] == "area"
    assert len(used(model, X)) == 3
    assert model.path_.cost(model.path_.end) == 2


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_clones_have_the_same_parameters_and_fit_alike(estimator, cancer):
    X, y = cancer
    groups = sensors(X)
    given = {"groups": groups, "by": "feature", "budget": 2.5, "costs": dict.fromkeys(groups, 1.25)}
    model = estimator(**given)
    params = model.get_params()
    assert {name: params[name] for name in given} == given
    copy = clone(model.fit(X, y))
    assert not hasattr(copy, "support_")
    assert copy.get_params() == params
    assert copy.fit(X, y).selected_.tolist() == model.selected_.tolist()
    assert model.set_params(budget=1.25, by="group").fit(X, y).k_ == 1


def test_a_grid_search_over_budgets(cancer):
    X, y = cancer
    model = FobaClassifier(groups=sensors(X), by="feature")
    search = GridSearchCV(model, {"budget": [1, 2, 4], "by": ["feature", "group"]}, cv=3)
    search.fit(X, y)
    assert len(search.cv_results_["params"]) == 6
    assert search.best_params_["budget"] > 1
    best = search.best_estimator_
    assert len(used(best, X)) == search.best_params_["budget"]


@pytest.mark.parametrize("verbose", [0, 1])
def test_verbose_names_what_enters(verbose, cancer, capsys):
    X, y = cancer
    options = {"groups": sensors(X), "verbose": verbose, "refine": None}
    FobaRegressor(by="group", budget=1, **options).fit(X, y)
    FobaRegressor(by="feature", k=1, **options).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 * verbose
    for line, names in zip(lines[1::2], (sensors(X), X.columns), strict=False):
        assert line.removeprefix("+ ").split("  size ")[0] in names


def test_verbose_names_what_is_exchanged(cancer, capsys):
    X, y = cancer
    FobaRegressor(k=1, verbose=1).fit(X, y)
    first, added, *exchanged = capsys.readouterr().out.splitlines()
    assert first == "foba-gdt among 30 candidates"
    assert added.startswith("+ ")
    assert exchanged == []  # the best single column is the first one
    FobaRegressor(k=8, verbose=1).fit(X, y)
    lines = [line for line in capsys.readouterr().out.splitlines() if " + " in line]
    assert lines
    out, into = lines[0].removeprefix("- ").split("  size ")[0].split(" + ")
    assert {out, into} <= {*X.columns}


BAD = [
    ({"budget": -1}, ValueError, "budget must lie"),
    ({"budget": "all"}, TypeError, "budget must be a number, got 'all'"),
    ({"budget": 0.5}, ValueError, "budget=0.5 buys nothing: the cheapest candidate, radius, costs"),
    ({"costs": [1, 2]}, ValueError, "costs must have one price per column: 30, got 2"),
    ({"costs": {"radius": 1}}, ValueError, "costs has no price for 'texture'"),
    ({"costs": {"weight": 1}}, ValueError, "costs has a price for 'weight'"),
    ({"by": "sensor"}, ValueError, "by must be one of"),
    (
        {"groups": {"one": ["mean radios"]}},
        ValueError,
        "the column 'mean radios'; columns are mean radius",
    ),
]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("options", "error", "message"), BAD)
def test_bad_input_is_named(estimator, options, error, message, cancer):
    X, y = cancer
    model = estimator(**{"groups": sensors(X), **options})
    before = X.copy()
    with pytest.raises(error, match=message):
        model.fit(X, y)
    pd.testing.assert_frame_equal(X, before)
    assert not hasattr(model, "support_")
    assert not hasattr(model, "path_")
