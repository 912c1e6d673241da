"""FobaCRF: scikit-learn's checks, what it takes and gives, sensors, paths, reports."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from forback import FobaCRF, select
from forback.datasets import make_chain, make_home
from forback.designs.make import make_design
from forback.designs.standardized import column_scales
from forback.objectives import ChainCRF
from support.problems import information

METHODS = ("foba-gdt", "foba-obj", "forward-gdt", "forward-obj")

NEIGHBOURS = "the label of a row depends on the rows before and after it"


def meaningless_for_sequences(estimator):
    return {
        "check_methods_subset_invariance": NEIGHBOURS,
        "check_methods_sample_order_invariance": NEIGHBOURS,
    }


@parametrize_with_checks(
    [FobaCRF(k=2), FobaCRF(budget=2, by="group", decode="posterior", start_end=True)],
    expected_failed_checks=meaningless_for_sequences,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def chain():
    return make_chain(400)


@pytest.fixture(scope="module")
def model(chain):
    return FobaCRF(k=8).fit(chain.X, chain.y, chain.lengths)


def pieces(rows, lengths):
    return np.split(rows, np.cumsum(lengths)[:-1])


def slow_labels(X, weights, decode):
    """The codes of one sequence's labels, from scores of labels and of pairs."""
    coef, transitions, bias, start, end = weights
    here = X @ coef + bias
    here[0] += start
    here[-1] += end
    if decode == "posterior":
        return slow_marginals(here, transitions).argmax(axis=1)
    best, origin = here[0], []
    for row in here[1:]:
        table = best[:, None] + transitions
        origin.append(table.argmax(axis=0))
        best = table.max(axis=0) + row
    labels = [int(best.argmax())]
    for step in reversed(origin):
        labels.append(int(step[labels[-1]]))
    return np.array(labels[::-1])


def slow_marginals(here, transitions):
    ahead, behind = [here[0]], [np.zeros(len(transitions))]
    for row in here[1:]:
        ahead.append(logsumexp(ahead[-1][:, None] + transitions, axis=0) + row)
    for row in here[:0:-1]:
        behind.append(logsumexp(transitions + row + behind[-1], axis=1))
    both = np.array(ahead) + np.array(behind[::-1])
    return np.exp(both - logsumexp(both, axis=1, keepdims=True))


def all_slow_labels(chain, weights, decode):
    rows = pieces(chain.X.astype(float), chain.lengths)
    return np.concatenate([slow_labels(part, weights, decode) for part in rows])


@pytest.mark.parametrize("decode", ["viterbi", "posterior"])
@pytest.mark.parametrize("start_end", [False, True])
def test_predictions_are_those_of_the_weights(decode, start_end, chain):
    model = FobaCRF(k=6, decode=decode, start_end=start_end)
    model.fit(chain.X, chain.y, chain.lengths)
    assert model.start_.any() == model.end_.any() == start_end
    found = model.predict(chain.X, chain.lengths)
    weights = model.coef_, model.transitions_, model.intercept_, model.start_, model.end_
    slow = all_slow_labels(chain, weights, decode)
    np.testing.assert_array_equal(found, model.classes_[slow])
    marginals = model.predict_marginals(chain.X, chain.lengths)
    assert marginals.shape == (400, 4)
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0, rtol=1e-12)
    if decode == "posterior":
        np.testing.assert_array_equal(found, model.classes_[marginals.argmax(axis=1)])
    assert model.score(chain.X, chain.y, chain.lengths) == np.mean(found == chain.y) > 0.7


def test_what_is_fitted_fits_together(chain, model):
    assert model.classes_.tolist() == [1, 2, 3, 4]
    assert model.coef_.shape == (14, 4)
    assert model.transitions_.shape == (4, 4)
    assert model.intercept_.shape == model.start_.shape == model.end_.shape == (4,)
    assert model.support_.shape == (14,)
    assert model.support_.dtype == bool
    assert np.count_nonzero(model.coef_) == model.k_ == 8
    np.testing.assert_array_equal(model.support_, model.coef_.any(axis=1))
    assert sorted(model.selected_) == np.flatnonzero(model.support_).tolist()
    assert model.selected_sensors_ == model.selected_.tolist()
    assert model.n_features_in_ == 14
    assert model.n_iter_ == len(model.path_.steps)
    assert model.objective_value_ == model.path_[8].value
    objective = ChainCRF(chain.X, chain.y, chain.lengths, ridge=1 / 400)
    parts = [model.coef_.ravel(), model.transitions_.ravel(), model.intercept_]
    value, gradient = objective.value_and_gradient(np.concatenate(parts))
    assert value == pytest.approx(model.objective_value_, rel=1e-12)
    assert np.abs(gradient[model.path_[8].support]).max() < 1e-5


def test_the_path_is_that_of_select(chain):
    for method in METHODS:
        options = {"k": 5, "method": method, "by": "feature"}
        model = FobaCRF(**options).fit(chain.X, chain.y, chain.lengths)
        path = select(ChainCRF(chain.X, chain.y, chain.lengths, ridge=1 / 400), **options)
        assert [s.feature for s in model.path_.steps] == [s.feature for s in path.steps]
        entered = dict.fromkeys(s.feature // 4 for s in path.steps if s.action == "add")
        assert model.selected_.tolist() == [j for j in entered if model.support_[j]]


def test_every_way_to_give_the_data_gives_the_same_model(chain, model):
    frame = pd.DataFrame(chain.X, columns=[f"f{j}" for j in range(14)])
    rows, labels = pieces(chain.X, chain.lengths), pieces(chain.y, chain.lengths)
    frames = [pd.DataFrame(part, columns=frame.columns) for part in rows]
    ways = [
        (chain.X.tolist(), chain.y.tolist(), chain.lengths.tolist()),
        (frame, pd.Series(chain.y), pd.Series(chain.lengths)),
        (pl.DataFrame(dict(frame.items())), pl.Series(chain.y), chain.lengths),
        (sparse.csr_matrix(chain.X), chain.y, chain.lengths),
        (rows, labels, None),
        (tuple(rows), [part.tolist() for part in labels], None),
        ([part.tolist() for part in rows], labels, None),
        (frames, [pd.Series(part) for part in labels], None),
        ([sparse.csr_array(part) for part in rows], chain.y, None),
        (chain.X, labels, chain.lengths),
    ]
    expected = model.predict(chain.X, chain.lengths)
    for X, y, lengths in ways:
        other = FobaCRF(k=8).fit(X, y, lengths)
        np.testing.assert_allclose(other.coef_, model.coef_, atol=1e-6)
        assert other.selected_.tolist() == model.selected_.tolist()
        np.testing.assert_array_equal(other.predict(X, lengths), expected)
        assert other.score(X, y, lengths) == model.score(chain.X, chain.y, chain.lengths)
        named = [f"f{j}" for j in model.selected_]
        assert other.selected_sensors_ in (model.selected_sensors_, named)
        assert hasattr(other, "feature_names_in_") == (other.selected_sensors_ == named)


def test_one_long_sequence_is_the_default(chain):
    alone = FobaCRF(k=3).fit(chain.X, chain.y)
    same = FobaCRF(k=3).fit([chain.X], [chain.y])
    np.testing.assert_array_equal(alone.coef_, same.coef_)
    cut = FobaCRF(k=3).fit(chain.X, chain.y, chain.lengths)
    assert np.abs(alone.transitions_ - cut.transitions_).max() > 1e-3


SENSORS = [
    ["left", "left", "mid", "mid", "mid", *[(1, "x")] * 4, *[frozenset("ab")] * 5],
    [10, 10, 20, 20, 20, *[-1] * 4, *["2.5"] * 5],
    np.repeat([7, 3, 5, 1], [2, 3, 4, 5]),
]


@pytest.mark.parametrize("groups", SENSORS)
@pytest.mark.parametrize("by", ["feature", "group"])
def test_sensors_are_called_by_their_labels_in_order_of_entry(groups, by, chain):
    model = FobaCRF(groups=groups, by=by, budget=3).fit(chain.X, chain.y, chain.lengths)
    first = list(dict.fromkeys(groups[j] for j in model.selected_))
    assert len(first) == 3
    assert model.selected_sensors_ == first
    assert not any(isinstance(label, np.generic) for label in model.selected_sensors_)
    assert model.path_.groups(model.path_.end) == [str(label) for label in first]
    if by == "group":
        assert model.k_ == 3
        assert sorted(model.selected_) == [j for j in range(14) if groups[j] in first]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("by", ["feature", "group"])
def test_budgets_and_prices(method, by, chain):
    costs = {0: 1, 1: 1, 2: 3, 3: 2}
    options = {"groups": chain.groups, "by": by, "method": method, "costs": costs, "budget": 4}
    fit = {"X": chain.X, "y": chain.y, "lengths": chain.lengths}
    alone, with_k = FobaCRF(**options).fit(**fit), FobaCRF(3, **options).fit(**fit)
    for model in (alone, with_k):
        spent = sum(costs[sensor] for sensor in model.selected_sensors_)
        assert spent == model.path_.cost(model.path_.end) <= 4
        assert all(step.cost <= 4 for step in model.path_.steps)
    assert "of 4)" in alone.path_.stop_reason
    assert alone.path_.cost(alone.path_.end) == 4  # what is left pays for one more sensor
    literal = FobaCRF(**options, unaffordable="stop", refine=None).fit(**fit)
    assert literal.path_.cost(literal.path_.end) == 3  # sensor 3 is wanted next, for 2
    assert literal.path_.end.value >= alone.objective_value_
    per_column = [costs[group] for group in chain.groups]
    listed = FobaCRF(**{**options, "costs": per_column}).fit(**fit)
    np.testing.assert_array_equal(listed.coef_, alone.coef_)


def test_by_group_whole_sensors_enter(chain):
    model = FobaCRF(k=2, by="group", groups=chain.groups).fit(chain.X, chain.y, chain.lengths)
    assert model.k_ == len(model.selected_sensors_) == 2
    assert model.support_.sum() == np.isin(chain.groups, model.selected_sensors_).sum()
    assert (model.coef_[model.support_] != 0).all()
    single = FobaCRF(k=2, by="group").fit(chain.X, chain.y, chain.lengths)
    assert single.support_.sum() == 2
    assert [step.groups for step in single.path_.steps if step.action == "add"][:2] == [1, 2]


def test_always_is_in_and_free(chain):
    model = FobaCRF(budget=1, always=[0, 5]).fit(chain.X, chain.y, chain.lengths)
    assert model.selected_[:2].tolist() == model.selected_sensors_[:2] == [0, 5]
    assert len(model.selected_sensors_) == 3
    assert (model.coef_[[0, 5]] != 0).all()
    assert model.path_.cost(model.path_.end) == 1
    nothing = FobaCRF(k=0).fit(chain.X, chain.y, chain.lengths)
    assert nothing.k_ == 0
    assert nothing.selected_sensors_ == []
    assert not nothing.coef_.any()
    assert nothing.transitions_.any()


def test_thresholds_and_criteria_choose_the_size(chain):
    fit = {"X": chain.X, "y": chain.y, "lengths": chain.lengths}
    by_slope = FobaCRF(epsilon=0.03).fit(**fit)
    by_gain = FobaCRF(method="foba-obj", delta=0.03).fit(**fit)
    for model in (by_slope, by_gain):
        assert 0 < model.k_ < 56
        assert "below the threshold 0.03" in model.path_.stop_reason
    objective = ChainCRF(**fit, ridge=1 / 400)
    for criterion, price in (("bic", np.log(400)), ("aic", 2.0)):
        model = FobaCRF(criterion=criterion, k_max=20).fit(**fit)
        values = {}
        for size in model.path_.sizes:
            loglik, n, df = information(objective, model.path_[size])
            assert (n, df) == (400, size + 4 * 4 + 4)
            values[size] = -2.0 * loglik + price * df
        assert model.k_ == min(values, key=values.get)
        assert model.objective_value_ == model.path_[model.k_].value


def test_error_report_adds_up(chain, model):
    found = model.predict(chain.X, chain.lengths)
    table = confusion_matrix(chain.y, found, labels=model.classes_)
    report = model.error_report(chain.X, chain.y, chain.lengths)
    assert [row.error for row in report] == sorted((row.error for row in report), reverse=True)
    assert sorted(row.label for row in report) == [1, 2, 3, 4]
    for row in report:
        wrong = table[row.label - 1].copy()
        assert row.steps == wrong.sum()
        wrong[row.label - 1] = 0
        assert row.error == pytest.approx(wrong.sum() / row.steps)
        assert row.taken_for == (model.classes_[wrong.argmax()] if wrong.any() else None)
    missed = sum(row.steps * row.error for row in report)
    assert 1.0 - missed / 400 == pytest.approx(model.score(chain.X, chain.y, chain.lengths))
    few = model.error_report(chain.X[:1], chain.y[:1])
    assert [row.steps for row in few] == [1, 0, 0, 0]
    assert all(np.isnan(row.error) and row.taken_for is None for row in few[1:])


@pytest.mark.parametrize("decode", ["viterbi", "posterior"])
def test_error_reports_of_other_sizes_are_those_of_the_path(decode, chain, monkeypatch):
    model = FobaCRF(k=6, decode=decode).fit(chain.X, chain.y, chain.lengths)
    fits = {k: FobaCRF(k, decode=decode).fit(chain.X, chain.y, chain.lengths) for k in (0, 2, 4)}
    monkeypatch.setattr(ChainCRF, "minimise", None)  # nothing is fitted from here on
    new = make_chain(200, random_state=1)
    data = new.X, new.y, new.lengths
    assert model.error_report(*data, size=6) == model.error_report(*data)
    for size, alone in fits.items():
        assert model.error_report(*data, size=size) == alone.error_report(*data)
    assert model.error_report(*data, size=np.int64(2)) == fits[2].error_report(*data)
    for score in model.score_path(*data):
        report = model.error_report(*data, size=score.size)
        missed = sum(row.steps * row.error for row in report if row.steps)
        assert missed / 200 == pytest.approx(score.error)


def test_error_report_by_whole_sensors_counts_them(chain):
    data = chain.X, chain.y, chain.lengths
    options = {"by": "group", "groups": chain.groups}
    model, alone = (FobaCRF(k, **options).fit(*data) for k in (3, 1))
    assert model.error_report(*data, size=1) == alone.error_report(*data)


BAD_SIZES = [
    (9, KeyError, "size 9 was never visited; the sizes visited are .0, 1, .* 8."),
    (-1, ValueError, "size must be at least 0, got -1"),
    (2.0, TypeError, "size must be an integer, got 2.0"),
    (True, TypeError, "size must be an integer, got True"),
]


@pytest.mark.parametrize(("size", "error", "message"), BAD_SIZES)
def test_bad_sizes_are_named(size, error, message, chain, model):
    with pytest.raises(error, match=message):
        model.error_report(chain.X, chain.y, chain.lengths, size=size)


@pytest.mark.parametrize("decode", ["viterbi", "posterior"])
def test_score_path_is_the_error_of_every_size(decode, chain):
    model = FobaCRF(k=6, decode=decode, groups=chain.groups, start_end=True)
    model.fit(chain.X, chain.y, chain.lengths)
    new = make_chain(200, random_state=1)
    scores = model.score_path(new.X, new.y, new.lengths)
    assert [row.size for row in scores] == model.path_.sizes == list(range(7))
    for row in scores:
        point = model.path_[row.size]
        parts = np.split(point.dense(model.path_.dim), np.cumsum([56, 16, 4, 4]))
        weights = (parts[0].reshape(14, 4), parts[1].reshape(4, 4), *parts[2:])
        found = model.classes_[all_slow_labels(new, weights, decode)]
        assert row.error == pytest.approx(np.mean(found != new.y))
        assert row.sensors == row.cost == len(model.path_.groups(point))
        assert row.objective == point.value
    assert scores[-1].error == pytest.approx(1.0 - model.score(new.X, new.y, new.lengths))


def test_a_home_is_labelled_from_few_sensors():
    home = make_home(2000, interval=120)
    frame = pd.DataFrame(home.X, columns=home.sensor_names)
    model = FobaCRF(budget=3).fit(frame[:1500], home.y[:1500])
    assert len(model.selected_sensors_) == 3
    assert set(model.selected_sensors_) <= set(home.sensor_names)
    guess = (home.y[1500:] == pd.Series(home.y[:1500]).mode()[0]).mean()
    assert model.score(frame[1500:], home.y[1500:]) > guess + 0.1
    assert model.predict(frame[1500:]).dtype == home.y.dtype


def test_labels_of_any_kind_come_back(chain):
    mixed = np.empty(4, dtype=object)
    mixed[:] = ["a", 1, ("t", 1), 2.5]
    for names in (np.array(["w", "x", "y", "z"]), np.array([-2, 0, 5, 9]), np.arange(4.0), mixed):
        y = names[chain.y - 1]
        model = FobaCRF(k=2).fit(chain.X, y, chain.lengths)
        assert set(model.predict(chain.X, chain.lengths)) <= set(names.tolist())
        assert set(model.classes_.tolist()) == set(names.tolist())
        assert 0.3 < model.score(chain.X, y.tolist(), chain.lengths) < 1.0


def test_pickle_clone_and_parameters(chain):
    given = {"k": 3, "groups": chain.groups.tolist(), "budget": 2.0, "decode": "posterior"}
    model = FobaCRF(**given)
    assert model.get_params().items() >= given.items()
    model.fit(chain.X, chain.y, chain.lengths)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.coef_, model.coef_)
    assert copy.selected_sensors_ == model.selected_sensors_
    assert copy.score_path(chain.X, chain.y) == model.score_path(chain.X, chain.y)
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    for ask in (fresh.predict, fresh.predict_marginals):
        with pytest.raises(NotFittedError):
            ask(chain.X)
    again = fresh.set_params(k=2, decode="viterbi").fit(chain.X, chain.y, chain.lengths)
    assert again.k_ == 2
    before = again.predict_marginals(chain.X)
    again.set_params(k=9, alpha=3.0, groups=None)
    np.testing.assert_array_equal(again.predict_marginals(chain.X), before)


def test_a_grid_search_over_budgets(chain):
    search = GridSearchCV(FobaCRF(groups=chain.groups), {"budget": [1, 2]}, cv=2)
    search.fit(chain.X, chain.y)
    assert len(search.best_estimator_.selected_sensors_) == search.best_params_["budget"]


def test_fitting_changes_nothing_it_was_given(chain):
    X, y, lengths = chain.X.astype(float), chain.y.copy(), chain.lengths.copy()
    for array in (X, y, lengths):
        array.flags.writeable = False
    FobaCRF(k=2).fit(X, y, lengths).predict(X, lengths)
    csr = sparse.csr_array(X)
    before = csr.copy()
    FobaCRF(k=2).fit(csr, y, lengths).predict(csr)
    assert (csr != before).nnz == 0


BAD = [
    ({"k": 57}, ValueError, "k=57 is more than the 56 candidates"),
    ({"k": 15, "by": "group"}, ValueError, "k=15 is more than the 14 candidates"),
    ({"by": "sensor"}, ValueError, "by must be one of"),
    ({"budget": -1}, ValueError, "budget must lie"),
    ({"budget": 0.5}, ValueError, "budget=0.5 buys nothing"),
    ({"costs": [1.0] * 56, "budget": 2}, ValueError, "one price per column: 14, got 56"),
    ({"groups": list(range(56))}, ValueError, "one label per column: 14, got 56"),
    ({"always": [14]}, ValueError, "always holds column 14; columns are numbered 0 to 13"),
    ({"decode": "map"}, ValueError, "decode must be one of .*got 'map'"),
    ({"criterion": "cp"}, ValueError, "criterion must be one of"),
    ({"method": "omp"}, ValueError, "method must be one of"),
    ({"delta": 0.1}, ValueError, "delta=0.1 is the threshold of the obj methods"),
    ({"alpha": -1.0}, ValueError, "alpha must lie"),
    ({"start_end": 1}, TypeError, "start_end must be True or False"),
    ({"tol": 0.0}, ValueError, "tol must lie"),
    ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD)
def test_bad_parameters_are_named(options, error, message, chain):
    model = FobaCRF(**options)
    with pytest.raises(error, match=message):
        model.fit(chain.X, chain.y, chain.lengths)
    assert not hasattr(model, "coef_")


def test_bad_data_is_named(chain, model):
    X, y = chain.X, chain.y
    noise = np.random.default_rng(0).normal(size=400)
    other = pickle.loads(pickle.dumps(model)).set_params(decode="map")
    refused = [
        (lambda: FobaCRF().fit(X, noise), "y is continuous: it holds 400 different"),
        (lambda: FobaCRF().fit(X, noise.tolist()), "y is continuous"),
        (lambda: FobaCRF().fit(X, None), "requires y to be passed"),
        (lambda: FobaCRF().fit(X, np.ones(400)), "only one class, 1.0"),
        (lambda: FobaCRF().fit(X, y, chain.lengths[:-1]), "lengths add up to"),
        (lambda: model.score(X, np.where(y == 1, 9, y)), "previously unseen labels: 9"),
        (lambda: model.error_report(X, ["a"] * 400), "unseen labels: 'a'"),
        (lambda: model.score_path(X, np.full(400, 8)), "unseen labels: 8"),
        (lambda: model.score(X, y[:5]), r"one label per row of X, shape \(400,\).*\(5,\)"),
        (lambda: model.predict(X[:, :5]), "X has 5 features, but FobaCRF is expecting 14"),
        (lambda: model.predict([X[:, :5]]), "X has 5 features, but FobaCRF is expecting 14"),
        (lambda: model.predict_marginals(X, [1, 2]), "lengths add up to 3, but X has 400 rows"),
        (lambda: model.predict([X, X], [400, 400]), "lengths is for several sequences in one"),
        (lambda: other.predict(X), "decode must be one of"),
    ]
    for call, message in refused:
        with pytest.raises(ValueError, match=message):
            call()


def test_columns_under_other_names_are_refused(chain):
    frame = pd.DataFrame(chain.X, columns=[f"f{j}" for j in range(14)])
    model = FobaCRF(k=2).fit(frame, chain.y)
    for other in (frame[frame.columns[::-1]], [frame.rename(columns={"f3": "g"})]):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(other)


def test_too_few_steps_are_reported_where_fit_was_called(chain):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FobaCRF(k=2, max_iter=1).fit(chain.X, chain.y)
    assert [warning.category for warning in caught] == [ConvergenceWarning]
    assert "increase max_iter" in str(caught[0].message)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("by", ["feature", "group"])
def test_what_is_fitted_is_optimal_on_what_was_chosen(by):
    home = make_home(3000)
    model = FobaCRF(budget=3, by=by, alpha=1e-3, start_end=True).fit(home.X, home.y)
    objective = ChainCRF(home.X, home.y, ridge=1e-3, start_end=True)
    parts = (model.coef_, model.transitions_, model.intercept_, model.start_, model.end_)
    beta = np.concatenate([part.ravel() for part in parts])
    value, gradient = objective.value_and_gradient(beta)
    chosen = np.append(np.flatnonzero(model.coef_), np.arange(model.coef_.size, objective.dim))
    steepest = np.abs(objective.value_and_gradient(np.zeros(objective.dim))[1]).max()
    assert np.abs(gradient[chosen]).max() <= 1e-6 * steepest
    assert value == pytest.approx(model.objective_value_, rel=1e-12)


# Columns on one scale -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def loud():
    """A true binary sensor, a true real one in odd units, and a loud column of noise."""
    rng = np.random.default_rng(0)
    y = np.repeat(rng.integers(0, 3, 80), 10)
    X = np.column_stack(
        [
            (rng.random(800) < np.where(y == 1, 0.8, 0.2)).astype(float),
            10.0 * rng.normal(size=800),
            1e-2 * (y + rng.normal(size=800)),
        ]
    )
    return X, y


def test_a_loud_column_of_noise_does_not_beat_a_true_sensor(loud):
    X, y = loud
    for method in METHODS:
        model = FobaCRF(budget=2, method=method).fit(X, y)
        assert sorted(model.selected_sensors_) == [0, 2], method
    literal = FobaCRF(budget=2, standardize=False, refine=None).fit(X, y)
    assert 1 in literal.selected_sensors_


def test_units_of_a_column_move_its_weights_and_nothing_else(loud):
    X, y = loud
    factors = np.array([1.0, 1e3, 1e-2])  # a binary column stays as it is
    plain = FobaCRF(k=4).fit(X, y)
    for other in (X * factors, sparse.csr_array(X * factors)):
        scaled = FobaCRF(k=4).fit(other, y)
        assert [s.feature for s in scaled.path_.steps] == [s.feature for s in plain.path_.steps]
        np.testing.assert_allclose(scaled.coef_ * factors[:, None], plain.coef_, rtol=1e-6)
        np.testing.assert_array_equal(scaled.predict(other), plain.predict(X))
        errors = [score.error for score in scaled.score_path(other, y)]
        assert errors == [score.error for score in plain.score_path(X, y)]
        size = plain.path_.sizes[2]
        assert scaled.error_report(other, y, size=size) == plain.error_report(X, y, size=size)


@pytest.mark.filterwarnings("ignore:the features chosen separate the data")
def test_weights_are_on_the_users_scale(loud):
    X, y = loud
    model = FobaCRF(k=4, alpha=0.0, refine=None).fit(X, y)
    weights = model.coef_, model.transitions_, model.intercept_, model.start_, model.end_
    np.testing.assert_array_equal(
        model.predict(X), model.classes_[slow_labels(X, weights, "viterbi")]
    )
    # Without a ridge the fit on given weights does not depend on the scale.
    objective = ChainCRF(X, y, ridge=0.0)
    parts = [model.coef_.ravel(), model.transitions_.ravel(), model.intercept_]
    value, _ = objective.value_and_gradient(np.concatenate(parts))
    assert value == pytest.approx(model.objective_value_, rel=1e-9)


@pytest.mark.parametrize("columns_of", [np.asfortranarray, sparse.csc_array])
def test_columns_of_at_most_two_values_are_left_alone(columns_of):
    rng = np.random.default_rng(1)
    columns = {
        "binary": rng.integers(0, 2, 60),
        "signs": 2 * rng.integers(0, 2, 60) - 1,
        "constant": np.full(60, 7),
        "mostly zero": np.where(rng.random(60) < 0.1, 5, 0),
        "three": rng.integers(-1, 2, 60),
        "real": rng.normal(size=60),
    }
    X = np.column_stack([*columns.values()]).astype(float)
    share = np.full(60, 1 / 60)
    scales = column_scales(make_design(columns_of(X)), share)
    assert scales[:4].tolist() == [1.0, 1.0, 1.0, 1.0]
    np.testing.assert_allclose(scales[4:], X[:, 4:].std(axis=0), rtol=1e-12)
    far = column_scales(make_design(columns_of(X + 1e6)), share)
    np.testing.assert_allclose(far[4:], X[:, 4:].std(axis=0), rtol=1e-6)


def test_the_default_ridge_is_a_standard_normal_prior(chain):
    fit = {"X": chain.X, "y": chain.y, "lengths": chain.lengths}
    default, given = FobaCRF(k=3).fit(**fit), FobaCRF(k=3, alpha=1 / 400).fit(**fit)
    np.testing.assert_array_equal(default.coef_, given.coef_)
