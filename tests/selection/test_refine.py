"""Refinement: what always holds of it, for any objective, and how it is watched and stopped."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from threadpoolctl import threadpool_limits

from forback import FobaClassifier, FobaRegressor, Refinement, select
from forback.core.status import StopReason
from forback.objectives import ChainCRF, GaussianCovariance, LeastSquares, Multinomial
from forback.selection.rules import METHODS
from support.problems import make_design, make_problem
from support.written import Ridged

#: A search that ends soon.
SHORT_SEARCH = Refinement(effort=12)


def linear(loss):
    def make(seed, **options):
        design = ("gaussian", "correlated", "binary", "duplicated")[seed % 4]
        options = {"n": 40, "p": 8, "fit_intercept": seed % 3 == 0, **options}
        return make_problem(loss, design, seed, **options).objective()

    return make


def softmax(seed):
    rng = np.random.default_rng(seed)
    X = make_design("correlated", 50, 5, rng)
    y = (X @ rng.normal(size=(5, 3)) + rng.gumbel(size=(50, 3))).argmax(axis=1)
    y[:3] = range(3)
    return Multinomial(X, y, ridge=1e-2)


def chain(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat(rng.integers(0, 2, 30), 2)
    y[:2] = 0, 1
    X = (rng.random((60, 4)) < np.where(y[:, None] == np.arange(4) % 2, 0.7, 0.3)) * 1.0
    return ChainCRF(X, y, [20, 25, 15], ridge=1e-2)


def graph(seed):
    rng = np.random.default_rng(seed)
    mixed = np.eye(5) + 0.5 * rng.normal(size=(5, 5))
    return GaussianCovariance.from_data(rng.normal(size=(60, 5)) @ mixed, ridge=1e-2)


def function(seed):
    rng = np.random.default_rng(seed)
    X = make_design("correlated", 40, 6, rng)
    return Ridged(X, (X[:, 0] + rng.normal(size=40) > 0).astype(float)).objective("hessian")


LINEAR = {loss: linear(loss) for loss in ("squared", "logistic", "poisson", "huber")}
QUICK = st.sampled_from(sorted(LINEAR))
FAMILIES = {**LINEAR, "softmax": softmax, "chain": chain, "graph": graph, "function": function}
SEEDS = st.integers(0, 10**6)


def moves(path):
    return [(step.action, step.feature, step.value) for step in path.steps]


def exchanges(path):
    return [step for descent in path.descents for step in descent.steps]


def told(path):
    """All of a path, bit for bit."""
    descents = [
        (descent.start, descent.origin.value, descent.origin.support.tolist(), descent.ending)
        for descent in path.descents
    ]
    steps = [(step.out, step.feature, step.value, step.score) for step in exchanges(path)]
    return moves(path), descents, steps


def assert_sound(objective, path, groups=None, always=()):
    """Whatever refinement came by is the minimum over as many blocks as it should be."""
    steepest = np.abs(objective.gradient(path.start)).max()
    for descent in path.descents:
        assert descent.ending
        for point in descent.points:
            chosen = np.setdiff1d(point.support[point.support < objective.n_candidates], always)
            assert np.array_equal(np.unique(point.support), point.support)
            assert set(always) <= set(point.support.tolist())
            labels = chosen if groups is None else np.array(groups)[chosen]
            assert len(set(labels.tolist())) == point.size
            value, gradient = objective.value_and_gradient(point.dense(objective.dim))
            assert value == pytest.approx(point.value, rel=1e-9, abs=1e-12)
            assert np.abs(gradient[point.support]).max() <= 1e-5 * steepest
        values = [point.value for point in descent.points]
        assert values == sorted(values, reverse=True)


def best_exchange(objective, point, blocks):
    """The least Q after an exchange of one block, by a fit of each."""
    inside = [block for block in blocks if block[0] in point.support]
    outside = [block for block in blocks if block[0] not in point.support]
    values = [
        objective.minimise(np.union1d(np.setdiff1d(point.support, out), into)).value
        for out, into in product(inside, outside)
    ]
    return min(values, default=np.inf)


# Laws ------------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(
    family=st.sampled_from(sorted(FAMILIES)),
    seed=SEEDS,
    method=st.sampled_from(sorted(METHODS)),
    k=st.integers(1, 4),
    ratio=st.sampled_from([0.0, 0.5, 0.9]),
    backward=st.sampled_from(["coordinate", "refit"]),
    refine=st.sampled_from(["swap", SHORT_SEARCH, Refinement(starts="path", shortlist=1)]),
)
def test_no_answer_is_worse_than_the_literal_one(family, seed, method, k, ratio, backward, refine):
    objective = FAMILIES[family](seed)
    by = "feature" if family != "softmax" else None
    options = {"method": method, "ratio": ratio, "backward": backward, "by": by}
    literal = select(objective, k, **options)
    path = select(objective, k, **options, refine=refine)
    assert moves(path) == moves(literal)
    size = path.answer(k).size
    coarse = objective.resolution(path[size])
    assert path[size].value <= literal.best(size).value + coarse
    if size:
        assert path.refined(size).value <= literal.best(size).value + coarse
        assert {point.size for descent in path.descents for point in descent.points} == {size}
        assert_sound(objective, path, np.arange(objective.n_candidates) // 3 if not by else None)


@settings(max_examples=80)
@given(
    loss=QUICK,
    seed=SEEDS,
    groups=st.lists(st.sampled_from("abcde"), min_size=8, max_size=8),
    always=st.sampled_from([(), (2,), (0, 5)]),
    k=st.integers(1, 3),
    refine=st.sampled_from(["swap", SHORT_SEARCH]),
)
def test_groups_change_places_whole_and_what_is_always_in_stays(
    loss, seed, groups, always, k, refine
):
    objective = LINEAR[loss](seed)
    free = sorted({label for j, label in enumerate(groups) if j not in always})
    k = min(k, len(free))
    options = {"groups": groups, "by": "group", "always": list(always)}
    literal, path = select(objective, k, **options), select(objective, k, **options, refine=refine)
    size = path.answer(k).size
    coarse = objective.resolution(path[size])
    assert path[size].value <= literal.best(size).value + coarse
    assert_sound(objective, path, groups, always)
    if size and loss == "squared":
        columns = np.setdiff1d(np.arange(8), always)
        blocks = [columns[np.array(groups)[columns] == label] for label in free]
        point = path.refined(size)
        least = point.value - 2.0 * objective.resolution(point)
        assert best_exchange(objective, point, blocks) >= least


@settings(max_examples=60)
@given(seed=SEEDS, k=st.integers(1, 6), ridge=st.sampled_from([0.0, 1e-2]))
def test_no_exchange_of_one_feature_is_left_in_least_squares(seed, k, ridge):
    objective = linear("squared")(seed, ridge=ridge)
    path = select(objective, k, refine="swap")
    point = path[path.answer(k).size]
    least = point.value - 2.0 * objective.resolution(point)
    assert best_exchange(objective, point, [[j] for j in range(8)]) >= least


@settings(max_examples=60)
@given(
    loss=QUICK,
    seed=SEEDS,
    by=st.sampled_from(["group", "feature"]),
    k=st.sampled_from([None, 3]),
    budget=st.sampled_from([1.0, 2.5, 4.0]),
    refine=st.sampled_from(["swap", SHORT_SEARCH]),
)
def test_a_refined_answer_costs_no_more_than_it_may(loss, seed, by, k, budget, refine):
    objective = LINEAR[loss](seed)
    prices = dict(zip("abcde", [0.5, 1.0, 1.0, 2.0, 3.0], strict=True))
    options = {"groups": [*"aabbccde"], "by": by, "costs": prices, "budget": budget, "k": k}
    literal, path = select(objective, **options), select(objective, **options, refine=refine)
    end = literal.end
    most = budget if k is not None else literal.cost(end)
    for descent in path.descents:
        assert all(path.cost(point) <= most * (1 + 1e-12) for point in descent.points)
    rounding = objective.resolution(end)  # two copies of a column differ by as much
    assert path[end.size].value <= end.value + rounding
    assert path.within(budget).value <= literal.within(budget).value + rounding


@settings(max_examples=16)
@given(family=st.sampled_from(sorted(FAMILIES)), seed=SEEDS)
def test_the_same_call_gives_the_same_bits(family, seed):
    options = {"by": "feature", "refine": SHORT_SEARCH, "random_state": seed}
    paths = [select(FAMILIES[family](seed), 3, **options) for _ in range(2)]
    assert told(paths[0]) == told(paths[1])


def test_kicks_go_by_the_seed():
    objective = make_problem("squared", "correlated", 3, n=60, p=60, ridge=1e-3).objective()
    refine = Refinement(starts="marginal", effort=60)
    one, two = (
        select(objective, 10, refine=refine, random_state=seed)
        for seed in (3, np.random.default_rng(3))
    )
    assert told(one) == told(two)
    others = [select(objective, 10, refine=refine, random_state=seed) for seed in range(4)]
    assert len({str(told(path)) for path in others}) > 1


@settings(max_examples=60)
@given(
    loss=QUICK,
    seed=SEEDS,
    order=st.permutations(range(10)),
    k=st.integers(1, 5),
    method=st.sampled_from(["foba-gdt", "foba-obj"]),
)
def test_the_order_of_columns_does_not_matter(loss, seed, order, k, method):
    design = ("gaussian", "correlated")[seed % 2]
    problem = make_problem(loss, design, seed, n=50, p=10, fit_intercept=True)
    options = {"k": k, "method": method, "refine": "swap"}
    plain = select(problem.objective(), **options)[k]
    problem.X = problem.X[:, order]
    moved = select(problem.objective(), **options)[k]
    assert moved.value == pytest.approx(plain.value, rel=1e-9)
    assert {order[j] for j in moved.support[:-1]} == set(plain.support[:-1].tolist())


@settings(max_examples=40)
@given(loss=QUICK, seed=SEEDS, k=st.integers(1, 4), powers=st.integers(0, 6))
def test_units_of_columns_do_not_matter_where_scores_have_none(loss, seed, k, powers):
    problem = make_problem(loss, "correlated", seed, n=60, p=8, ridge=0.0, fit_intercept=True)
    options = {"k": k, "method": "foba-obj", "refine": "swap"}
    plain = select(problem.objective(), **options)[k]
    scale = 10.0 ** np.random.default_rng(seed).uniform(-powers, powers, size=8)
    problem.X = problem.X * scale
    scaled = select(problem.objective(), **options)[k]
    assert scaled.value == pytest.approx(plain.value, rel=1e-7)
    assert scaled.support.tolist() == plain.support.tolist()


@pytest.mark.parametrize("n", [40, 9])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_with_an_intercept_it_does_not_matter_where_zero_is(loss, n):
    for seed in range(5):
        problem = make_problem(loss, "correlated", seed, n=n, p=12, fit_intercept=True)
        plain = select(problem.objective(), 4, refine="swap")[4]
        for shift in (1e3, 1e5):
            problem.X = problem.X + shift
            moved = select(problem.objective(), 4, refine="swap")[4]
            assert moved.support.tolist() == plain.support.tolist()
            assert moved.value == pytest.approx(plain.value, rel=1e-6)


def test_of_equal_answers_the_first_is_taken():
    """Descents that meet differ by rounding; the order of entry must not go by that."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 80)) + rng.normal(size=(60, 1))
        X[:, 0] = X[:, 1:4].sum(axis=1) + 0.5 * rng.normal(size=60)
        y = X[:, 1:5].sum(axis=1) + rng.normal(size=60)
        path = select(LeastSquares(X, y, fit_intercept=True), 4, refine="swap")
        points = [point for descent in path.descents for point in descent.points]
        for best, among in ((path.refined(4), points), (path[4], [*path.points, *points])):
            same = [point for point in among if np.array_equal(point.support, best.support)]
            assert best is same[0]


@pytest.mark.parametrize("refine", ["swap", SHORT_SEARCH])
@pytest.mark.parametrize("ridge", [0.0, 1e-3])
@pytest.mark.parametrize("loss", sorted(LINEAR))
def test_copies_and_empty_columns_do_no_harm(loss, ridge, refine):
    for seed in range(4):
        problem = make_problem(loss, "gaussian", seed, n=40, p=5, ridge=ridge)
        plain = select(problem.objective(), 3, refine=refine)[3]
        problem.X = np.column_stack([problem.X, problem.X, np.zeros(40)])
        path = select(problem.objective(), 3, refine=refine)
        assert_sound(problem.objective(), path)
        if ridge:  # which two copies may share
            assert path[3].value <= plain.value + 1e-9 * abs(plain.value)
        else:
            assert path[3].value == pytest.approx(plain.value, rel=1e-6)


@pytest.mark.parametrize("spare", [0, 1, 2])
@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_a_search_with_hardly_anything_left_outside(loss, spare):
    """A kick can ban no more blocks than are left over."""
    for seed in range(5):
        objective = LINEAR[loss](4 * seed)
        path = select(objective, 8 - spare, refine=Refinement(effort=40), random_state=seed)
        assert_sound(objective, path)


@settings(max_examples=30)
@given(seed=SEEDS, method=st.sampled_from(["foba-gdt", "foba-obj"]))
def test_an_answer_does_not_depend_on_what_sizes_were_looked_at(seed, method):
    for loss, kind in (("squared", FobaRegressor), ("logistic", FobaClassifier)):
        problem = make_problem(loss, "correlated", seed, n=60, p=10)
        options = {"method": method, "alpha": 1e-2}
        by_criterion = kind(**options, k_max=9).fit(problem.X, problem.y)
        k = by_criterion.k_
        if k:
            given_k = kind(k, **options).fit(problem.X, problem.y)
            ours, theirs = by_criterion.path_.refined(k), given_k.path_.refined(k)
            assert ours.support.tolist() == theirs.support.tolist()
            assert by_criterion.objective_value_ == pytest.approx(
                given_k.objective_value_, rel=1e-12
            )


# Whoever watches --------------------------------------------------------------------------------


@pytest.fixture
def proxies():
    """Columns 0 and 1 are close to what 2, 3 and 4, 5 come to; each pair explains all but noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 9))
    X[:, 0] = X[:, 2] + X[:, 3] + 0.3 * rng.normal(size=200)
    X[:, 1] = X[:, 4] + X[:, 5] + 0.3 * rng.normal(size=200)
    return LeastSquares(X, X[:, 2:6].sum(axis=1) + 0.1 * rng.normal(size=200))


ONE_START = Refinement(starts="marginal")


def test_the_callback_sees_every_exchange(proxies):
    seen = []
    path = select(proxies, 4, refine=ONE_START, callback=seen.append)
    assert seen == [*path.steps, *exchanges(path)]
    made = exchanges(path)
    assert len(made) >= 2
    inside = set(path.descents[0].origin.support.tolist())
    before = path.descents[0].origin.value
    for step in made:
        assert (step.action, step.size, step.start) == ("exchange", 4, "marginal")
        assert step.out in inside
        assert step.feature not in inside
        inside = inside - {step.out} | {step.feature}
        assert set(step.point.support.tolist()) == inside
        assert step.change == pytest.approx(before - step.value)
        assert step.score == pytest.approx(step.change)  # exact where Q is quadratic
        before = step.value
    assert path[4].support.tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize("number", [0, 1])
def test_a_truthy_answer_ends_refinement(proxies, number):
    whole = select(proxies, 4, refine=ONE_START)
    seen = []

    def stop(step):
        seen.append(step)
        return sum(step.action == "exchange" for step in seen) > number

    path = select(proxies, 4, refine=ONE_START, callback=stop)
    assert [step.value for step in exchanges(path)] == [
        step.value for step in exchanges(whole)[: number + 1]
    ]
    assert path.descents[-1].ending == StopReason.CALLBACK.value
    assert (path.stop, path.stop_reason) == (whole.stop, whole.stop_reason)
    assert moves(path) == moves(whole)
    assert path[4].value == exchanges(path)[-1].value


def test_a_literal_run_that_was_stopped_is_not_refined(proxies):
    stopped = select(proxies, 4, refine="swap", callback=lambda step: step.size == 2)
    assert stopped.descents == []
    assert select(proxies, 4, refine="swap", max_steps=2).descents == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError("enough")])
def test_what_interrupts_an_exchange_has_the_path_so_far(proxies, error):
    seen = []

    def interrupt(step):
        seen.append(step)
        if step.action == "exchange":
            raise error

    with pytest.raises((KeyboardInterrupt, RuntimeError)) as caught:
        select(proxies, 4, refine=ONE_START, callback=interrupt)
    path = caught.value.path
    assert moves(path) == moves(select(proxies, 4))
    assert exchanges(path) == [seen[-1]]
    assert path[4].value == min(path.best(4).value, seen[-1].value)
    assert path.refined(4).value == seen[-1].value


@pytest.mark.parametrize("refine", ["swap", SHORT_SEARCH])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_nothing_of_the_users_and_nothing_global_changes(loss, refine):
    problem = make_problem(loss, "correlated", 3, n=50, p=10)
    before = problem.X.copy(), problem.y.copy()
    problem.X.flags.writeable = problem.y.flags.writeable = False
    state = np.random.get_state()[1].tobytes()  # noqa: NPY002  the one that must not be touched
    select(problem.objective(), 4, refine=refine)
    assert np.random.get_state()[1].tobytes() == state  # noqa: NPY002
    assert np.array_equal(problem.X, before[0])
    assert np.array_equal(problem.y, before[1])


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_any_number_of_threads_gives_the_same_features(loss, monkeypatch):
    problem = make_problem(loss, "correlated", 5, n=1200, p=100, fit_intercept=True)
    found = []
    for count in (1, 2, 4):
        monkeypatch.setenv("OMP_NUM_THREADS", str(count))
        with threadpool_limits(count, user_api="blas"):
            path = select(problem.objective(), 6, refine="swap")
            found.append([path[6].support.tolist(), [s.feature for s in exchanges(path)]])
    assert found[0] == found[1] == found[2]


# Named cases ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_two_features_and_what_looks_like_both(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 100))
    proxy = a + b + 0.5 * rng.normal(size=100)
    X = np.column_stack([proxy, a, b, rng.normal(size=(100, 5))])
    assert FobaRegressor(2).fit(X, a + b).support_.nonzero()[0].tolist() == [1, 2]
    assert 0 in FobaRegressor(2, refine=None).fit(X, a + b).selected_


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", [FobaRegressor, FobaClassifier])
def test_a_decoy_that_greed_takes_first_does_not_stay(kind, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 10))
    total = X[:, 1:4].sum(axis=1)
    X[:, 7] = total + 0.5 * rng.normal(size=400)
    y = total + 0.1 * rng.normal(size=400)
    y = y if kind is FobaRegressor else y > 0
    alpha = 0.0 if kind is FobaRegressor else 1e-3
    literal = kind(3, alpha=alpha, refine=None).fit(X, y)
    assert literal.path_.steps[0].feature == 7
    assert 7 in literal.selected_
    assert kind(3, alpha=alpha).fit(X, y).support_.nonzero()[0].tolist() == [1, 2, 3]


def test_breast_cancer_is_no_worse_than_a_longer_run():
    X, y = load_breast_cancer(return_X_y=True)
    for alpha in (0.0, 1e-2):
        refined = FobaClassifier(8, alpha=alpha).fit(X, y)
        longer = FobaClassifier(16, alpha=alpha, refine=None).fit(X, y)
        assert refined.objective_value_ <= longer.path_.best(8).value * (1 + 1e-9)
