"""FobaCovariance: scikit-learn's checks, what it takes and gives, sizes, groups, graphs."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.covariance import EmpiricalCovariance, empirical_covariance, log_likelihood
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from forback import FobaCovariance, FobaRegressor, select
from forback.datasets import make_graph
from forback.objectives import GaussianCovariance, LeastSquares
from forback.selection.criteria import choose_point, criterion_value
from support.problems import information


@parametrize_with_checks(
    [
        FobaCovariance(),
        FobaCovariance(k=1, standardize=False, method="foba-obj"),
        FobaCovariance(criterion="cv", cv=2, k_max=1, alpha=0.1),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def graph():
    return make_graph("chain", n=300, p=8, random_state=1)


@pytest.fixture(scope="module")
def frame(graph):
    return pd.DataFrame(graph.X * np.logspace(-2, 3, 8) + 7.0, columns=list("abcdefgh"))


def pairs(graph):
    return {tuple(edge) for edge in graph.edges.tolist()}


def test_the_graph_is_found(graph):
    for method in ("foba-gdt", "foba-obj", "forward-gdt", "forward-obj"):
        model = FobaCovariance(k=7, method=method).fit(graph.X)
        assert set(model.edges_) == pairs(graph)
        assert model.k_ == 7
    chosen = FobaCovariance().fit(graph.X).edges_
    assert pairs(graph) <= set(chosen)
    assert len(chosen) <= 9


def test_what_is_fitted_is_on_the_users_scale(frame):
    model = FobaCovariance(k=9).fit(frame)
    S = empirical_covariance(frame)
    np.testing.assert_allclose(model.location_, frame.mean())
    np.testing.assert_allclose(model.covariance_ @ model.precision_, np.eye(8), atol=1e-8)
    i, j = zip(*(map("abcdefgh".index, edge) for edge in model.edges_), strict=True)
    unit = np.sqrt(np.outer(np.diag(S), np.diag(S)))
    off = np.abs(model.covariance_ - S) / unit
    assert off[i, j].max() < 1e-8
    assert np.diag(off).max() < 1e-8
    assert np.count_nonzero(np.triu(model.precision_, 1)) == len(model.edges_) == 9
    objective = GaussianCovariance.from_data(frame)
    edges = [objective.edge(*edge) for edge in model.edges_]
    point = objective.minimise(np.sort([*edges, *range(28, 36)]))
    np.testing.assert_allclose(model.precision_, objective.precision(point), rtol=1e-5, atol=1e-12)
    values = [step.value for step in model.path_.steps]
    assert model.objective_value_ == values[-1]
    assert model.n_iter_ == len(values)


def test_score_is_the_mean_log_likelihood(graph):
    model = FobaCovariance(k=7).fit(graph.X[:200])
    new = graph.X[200:]
    about_mean = empirical_covariance(new - model.location_, assume_centered=True)
    expected = log_likelihood(about_mean, model.precision_)
    assert model.score(new) == pytest.approx(expected, rel=1e-12)
    full = FobaCovariance(k=28).fit(graph.X)
    plain = EmpiricalCovariance().fit(graph.X)
    assert full.score(new) == pytest.approx(plain.score(new), rel=1e-9)
    np.testing.assert_allclose(full.mahalanobis(new), plain.mahalanobis(new), rtol=1e-6)
    assert full.error_norm(plain.covariance_) < 1e-12
    np.testing.assert_array_equal(model.get_precision(), model.precision_)


def test_centred_data(graph):
    X = graph.X + 3.0
    model = FobaCovariance(k=28, assume_centered=True).fit(X)
    np.testing.assert_array_equal(model.location_, np.zeros(8))
    np.testing.assert_allclose(model.covariance_, X.T @ X / len(X), rtol=1e-6)


def test_sizes_by_information_criteria(graph):
    sizes = {}
    for criterion in ("aic", "bic", "ebic"):
        model = FobaCovariance(criterion=criterion).fit(graph.X)
        objective = GaussianCovariance(np.corrcoef(graph.X, rowvar=False), len(graph.X))
        values = {}
        for size in model.path_.sizes:
            loglik, n, df = information(objective, model.path_.best(size))
            values[size] = -2 * loglik + (2 if criterion == "aic" else np.log(n)) * df
            if criterion == "ebic":
                values[size] += np.log(np.prod([(28 - i) / (i + 1) for i in range(size)]))
        assert model.k_ == min(values, key=values.get)
        assert max(model.path_.sizes) == 28
        sizes[criterion] = model.k_
    assert sizes["aic"] >= sizes["bic"] >= sizes["ebic"]
    assert FobaCovariance(gamma=0.0).fit(graph.X).k_ == sizes["bic"]
    assert FobaCovariance(gamma=1e6).fit(graph.X).k_ in (0, 28)  # one graph of each
    assert max(FobaCovariance(k_max=4).fit(graph.X).path_.sizes) == 4


def test_ebic_for_other_estimators():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40))
    y = 2.0 * X[:, 3] + rng.normal(size=60)
    bic, ebic = (FobaRegressor(criterion=c).fit(X, y).k_ for c in ("bic", "ebic"))
    assert 1 <= ebic <= bic
    objective = LeastSquares(X, y)
    path = select(objective, k=10)
    likelihood = objective.likelihood()
    values = [criterion_value(likelihood, path.best(k), "ebic", 40) for k in path.sizes]
    assert choose_point(objective, path, "ebic", 40).size == path.sizes[int(np.argmin(values))]
    for k in path.sizes:
        gap = values[k] - criterion_value(likelihood, path.best(k), "bic", 40)
        assert gap == pytest.approx(sum(np.log((40 - i) / (i + 1)) for i in range(k)))


def test_size_by_cross_validation(graph):
    folds = KFold(3, shuffle=True, random_state=0)
    model = FobaCovariance(criterion="cv", cv=folds, k_max=12).fit(graph.X)
    results = model.cv_results_
    assert model.k_ == results["sizes"][results["mean_test_score"].argmax()]
    for number, (train, test) in enumerate(folds.split(graph.X)):
        for size in (0, 3, 7):
            path = FobaCovariance(k=size).fit(graph.X[train])
            found = results[f"split{number}_test_score"][list(results["sizes"]).index(size)]
            assert found == pytest.approx(path.score(graph.X[test]), rel=1e-9)
    rows = [results[f"split{number}_test_score"] for number in range(3)]
    np.testing.assert_allclose(results["mean_test_score"], np.mean(rows, axis=0))
    np.testing.assert_allclose(results["std_test_score"], np.std(rows, axis=0))
    search = GridSearchCV(FobaCovariance(), {"k": [0, 3, 7]}, cv=folds).fit(graph.X)
    assert search.best_params_ == {"k": 7}


def test_thresholds_and_budgets(graph):
    some = FobaCovariance(epsilon=0.2).fit(graph.X)
    assert 0 < some.k_ < 28
    assert "below the threshold 0.2" in some.path_.stop_reason
    few = FobaCovariance(budget=3).fit(graph.X)
    assert few.k_ == 3
    dear = {(0, 1): 10.0}
    costs = {edge: dear.get(edge, 1.0) for edge in pairs(graph)} | {
        (i, j): dear.get((i, j), 1.0) for i in range(8) for j in range(i + 1, 8)
    }
    cheap = FobaCovariance(k=6, costs=costs, budget=6).fit(graph.X)
    assert (0, 1) not in cheap.edges_
    assert cheap.path_.cost(cheap.path_.end) == 6.0


def test_edges_that_are_always_in(frame):
    for always in ([("a", "h"), ("c", "b")], [(0, 7), [1, 2]], ["a-h", "b-c"], [[0, 7], [1, 2]]):
        model = FobaCovariance(k=3, always=always).fit(frame)
        assert model.edges_[:2] == [("a", "h"), ("b", "c")]
        assert len(model.edges_) == 5
        assert model.k_ == 3
        assert model.precision_[0, 7] != 0.0
    with pytest.raises(ValueError, match="an edge names the variable 'z'"):
        FobaCovariance(always=[("a", "z")]).fit(frame)


def test_groups_of_edges(graph):
    everything = [(i, j) for i in range(8) for j in range(i + 1, 8)]
    by_edge = {edge: edge[0] for edge in everything}
    by_label = {f"from {i}": [edge for edge in everything if edge[0] == i] for i in range(7)}
    listed = [edge[0] for edge in everything]
    models = [FobaCovariance(k=2, groups=g).fit(graph.X) for g in (by_edge, by_label, listed)]
    for model in models:
        assert model.k_ == 2
        assert model.edges_ == models[0].edges_
        firsts = {i for i, _ in model.edges_}
        assert set(model.edges_) == {edge for edge in everything if edge[0] in firsts}
    prices = {f"from {i}": 1.0 + i for i in range(7)}
    model = FobaCovariance(groups=by_label, costs=prices, budget=3.5).fit(graph.X)
    assert model.path_.cost(model.path_.end) <= 3.5
    single = FobaCovariance(k=4, groups=by_label, by="feature").fit(graph.X)
    assert single.k_ == len(single.edges_) == 4


def test_names_copies_and_pickles(frame):
    model = FobaCovariance(k=5).fit(frame)
    assert list(model.feature_names_in_) == list("abcdefgh")
    assert all(isinstance(name, str) for edge in model.edges_ for name in edge)
    assert model.path_.name(0) == "a-b"
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.precision_, model.precision_)
    assert clone(model).get_params() == model.get_params()
    assert FobaCovariance(k=5).fit(pl.from_pandas(frame)).edges_ == model.edges_
    assert FobaCovariance(k=5).fit(frame.to_numpy()).edges_ == [
        ("abcdefgh".index(i), "abcdefgh".index(j)) for i, j in model.edges_
    ]


def test_networkx(frame):
    model = FobaCovariance(k=7).fit(frame)
    network = model.to_networkx()
    assert list(network.nodes) == list("abcdefgh")
    assert {frozenset(edge) for edge in network.edges} == {frozenset(e) for e in model.edges_}
    R = model.precision_ / np.sqrt(np.outer(np.diag(model.precision_), np.diag(model.precision_)))
    for i, j, found in network.edges(data=True):
        place = "abcdefgh".index(i), "abcdefgh".index(j)
        assert found["precision"] == model.precision_[place]
        assert found["partial_correlation"] == pytest.approx(-R[place])
    with pytest.raises(NotFittedError):
        FobaCovariance().to_networkx()


def test_without_networkx_there_is_a_line_to_type(without_extras):
    without_extras(
        "import numpy as np\n"
        "from forback import FobaCovariance\n"
        "model = FobaCovariance(k=1).fit(np.random.default_rng(0).normal(size=(20, 3)))\n"
        "try:\n"
        "    model.to_networkx()\n"
        "except ImportError as error:\n"
        "    assert 'pip install networkx' in str(error)\n"
        "else:\n"
        "    raise AssertionError('networkx was found')\n"
    )


@pytest.mark.filterwarnings("ignore:the .* criterion prefers:UserWarning")
@pytest.mark.filterwarnings("ignore:only .* of k=15 features:UserWarning")  # or all, by rounding
def test_singular_data_warns_and_criteria_stay_clear_of_it():
    X = np.random.default_rng(0).normal(size=(4, 6))
    with pytest.warns(ConvergenceWarning, match="singular, so their precision runs to infinity"):
        FobaCovariance(k=15).fit(X)
    for criterion in ("aic", "bic", "ebic", "cv"):
        model = FobaCovariance(criterion=criterion, cv=2).fit(X)
        assert "no minimiser" not in model.path_[model.k_].note
        assert np.isfinite(model.score(X))
    assert FobaCovariance(k=15, alpha=0.1).fit(X).k_ == 15


def test_a_criterion_that_wants_more_than_was_considered_says_so():
    X = make_graph("chain", n=10, p=20).X
    with pytest.warns(UserWarning, match="prefers .* the most that were considered; set k_max"):
        model = FobaCovariance().fit(X)
    assert model.k_ <= 22  # an eighth of the degrees of freedom per variable
    assert FobaCovariance(k_max=4).fit(X).k_ <= 4


def test_a_copy_of_a_variable_is_named_where_it_ends_the_choice():
    X = make_graph("chain", n=300, p=6).X
    with pytest.warns(UserWarning, match="with the edge 0-6 the covariance of X is singular"):
        model = FobaCovariance().fit(np.c_[X, X[:, 0]])
    assert model.k_ == 0
    assert FobaCovariance(alpha=0.01).fit(np.c_[X, X[:, 0]]).k_ >= 5


def test_all_groups_in_is_no_limit():
    one, other = (np.random.default_rng(seed) for seed in (2, 102))
    X = one.normal(size=(9, 5)) + 3 * other.normal(size=(9, 1))
    # Silently: five groups are all there are, and as many as would be considered.
    assert FobaCovariance(criterion="aic", groups=[*"aabbccddee"]).fit(X).k_ == 5


@pytest.mark.parametrize("labels", [[2, 1, 0], ["0-2", "x", "y"]])
def test_labels_that_look_like_edges_are_labels(labels, graph):
    prices = {(0, 1): 10, (0, 2): 1, (1, 2): 1}
    ledger = FobaCovariance(k=1, groups=labels, costs=prices).fit(graph.X[:, :3]).path_.group_costs
    assert ledger.prices.tolist() == [10, 1, 1]
    ledger = (
        FobaCovariance(k=1, groups={1: [(1, 2)]}, costs={1: 5})
        .fit(graph.X[:, :3])
        .path_.group_costs
    )
    assert ledger.prices[ledger.group_of].tolist() == [1, 1, 5]


def test_bad_prices_labels_and_folds(graph):
    def fit(**options):
        return FobaCovariance(**options).fit(graph.X[:, :4])

    with pytest.raises(ValueError, match=r"costs gives \(1, 0\).* two prices"):
        fit(budget=2, costs={(0, 1): 1, (1, 0): 2})
    with pytest.raises(ValueError, match=r"costs\[\(0, 1\)\] must lie in"):
        fit(budget=2, costs={(0, 1): -1})
    for name in ("groups", "costs"):
        with pytest.raises(ValueError, match=f"{name} must have one entry per edge: 6, got 4"):
            fit(k=1, **{name: [1, 1, 1, 1]})
    with pytest.raises(ValueError, match="cv must give one fold or more"):
        fit(criterion="cv", cv=iter([]))
    with pytest.raises(ValueError, match="variables have no names"):
        fit(k=1, always=[("a", "b")])


def test_prices_of_some_edges_are_enough(graph):
    model = FobaCovariance(
        budget=5, groups={"first": [(0, 1), (1, 2)]}, costs={"first": 3, (2, 3): 4}
    ).fit(graph.X)
    assert model.path_.cost(model.path_.end) <= 5
    assert (2, 3) not in model.edges_ or len(model.edges_) <= 2


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"always": (0, 4)}, "always must hold edges, pairs of names or numbers, got 0"),
        ({"always": [(4, 0), (0, 4)]}, "always lists an edge twice"),
        ({"groups": {"g": [(0, 99)]}}, r"groups holds the edge \(0, 99\)"),
        ({"groups": {(0, 1): "g", (1, 0): "h"}}, "groups puts an edge into two groups"),
        ({"groups": {"g": []}}, "groups gives 'g' no edges"),
        ({"costs": {(0, 0): 1}, "budget": 2}, r"costs holds the edge \(0, 0\)"),
    ],
)
def test_edges_that_are_none(graph, wanted, message):
    with pytest.raises((TypeError, ValueError), match=message):
        FobaCovariance(k=2, **wanted).fit(graph.X)


def test_what_an_earlier_choice_left_behind_goes(graph):
    model = FobaCovariance(criterion="cv", k_max=8).fit(graph.X)
    assert not hasattr(model.set_params(criterion="bic").fit(graph.X), "cv_results_")


def test_a_variable_that_is_constant_in_a_fold_is_named_with_it():
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[:, 2] = np.arange(20) == 3
    with pytest.raises(ValueError, match=r"training fold of cv has 10 rows.*variable 2"):
        FobaCovariance(criterion="cv", cv=2).fit(X)


BAD = [
    ({"criterion": "cp"}, ValueError, "criterion must be one of"),
    ({"gamma": -1.0}, ValueError, "gamma must lie in"),
    ({"k": 29}, ValueError, "k=29 is more than the 28 candidates"),
    ({"alpha": -1.0}, ValueError, "alpha must lie in"),
    ({"standardize": 1}, TypeError, "standardize must be True or False"),
    ({"assume_centered": "no"}, TypeError, "assume_centered must be True or False"),
    ({"always": [(0, 0)]}, ValueError, "an edge joins two variables"),
    ({"method": "foba"}, ValueError, "method must be one of"),
    ({"criterion": "cv", "cv": "five"}, ValueError, "cv"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD)
def test_bad_parameters(options, error, message, graph):
    with pytest.raises(error, match=message):
        FobaCovariance(**options).fit(graph.X)


def test_bad_data(frame):
    with pytest.raises(ValueError, match="1 sample"):
        FobaCovariance().fit(frame[:1])
    with pytest.raises(ValueError, match="1 feature"):
        FobaCovariance().fit(frame[["a"]])
    with pytest.raises(ValueError, match="variable 'still' of X has the variance 0"):
        FobaCovariance().fit(frame.assign(still=0.1))
    with pytest.raises(ValueError, match="variable 8 of X has the variance 0"):
        FobaCovariance().fit(frame.assign(still=0.1).to_numpy())
    with pytest.raises(ValueError, match="NaN"):
        FobaCovariance().fit(frame.assign(a=np.nan))
