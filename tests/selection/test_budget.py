"""Prices and budgets: groups that are paid for once, refunds, and what a Path says of costs."""

import math
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from forback import Path, select
from forback.objectives import ChainCRF, LeastSquares
from forback.objectives.linear.quadratic_fit import CholeskyFit
from forback.objectives.linear.slopes import by_products
from reference.algorithm1 import foba
from support.hard_problems import build, by_strategy, hard_data
from support.problems import make_problem

METHODS = ("foba-gdt", "foba-obj", "forward-gdt", "forward-obj")


def moves(path):
    return [(step.action, step.feature) for step in path.steps]


def expected_steps(problem, method, by, labels, prices, budget, k, always, ratio):
    """(action, number, features, cost) of every step, by the slow transcription."""
    Q, p = problem.reference(), problem.X.shape[1]
    names = list(dict.fromkeys(labels))
    whole = [[j] for j in range(p)]
    if by == "group":
        whole = [[j for j in range(p) if labels[j] == name] for name in names]
    free = [[j for j in block if j not in always] for block in whole]
    numbers = [number for number, block in enumerate(free) if block]
    blocks = [free[number] for number in numbers]
    given_away = {labels[j] for j in always}

    def cost(chosen):
        paid = {labels[j] for b in chosen for j in blocks[b]} - given_away
        return math.fsum(prices[label] for label in paid)

    steps = foba(
        Q, blocks, [*always, *range(p, Q.dim)],
        gradient_rule=method.endswith("gdt"), backward=method.startswith("foba"), k=k, ratio=ratio,
        affordable=lambda chosen: cost(chosen) <= budget + 1e-9,
    )  # fmt: skip
    for action, b, chosen, beta in steps:
        features = sorted(j for c in chosen for j in blocks[c])
        yield action, numbers[b], features, cost(chosen), Q.value(beta)


def assert_same_steps(problem, method, *, by, groups, costs, budget, k=None, always=(), ratio=0.5):
    options = {"groups": groups, "by": by, "costs": costs, "budget": budget, "k": k, "ratio": ratio}
    path = select(problem.objective(), method=method, always=list(always), **options)
    p = problem.X.shape[1]
    labels = list(range(p)) if groups is None else groups
    prices = dict.fromkeys(labels, 1.0) if costs is None else costs
    wanted = (by, labels, prices, budget, k, always, ratio)
    expected = list(expected_steps(problem, method, *wanted))
    assert moves(path) == [(action, number) for action, number, *_ in expected]
    for step, (_, _, features, cost, value) in zip(path.steps, expected, strict=True):
        own = [j for j in step.point.support if j < p and j not in always]
        assert own == features
        assert step.cost == pytest.approx(cost)
        assert step.cost <= budget * (1 + 1e-9)
        assert step.groups == len({labels[j] for j in (*own, *always)})
        assert step.value == pytest.approx(value, rel=1e-9, abs=1e-9)
    return path


@settings(max_examples=150, deadline=None)
@given(
    loss=st.sampled_from(["squared", "logistic"]),
    design=st.sampled_from(["gaussian", "correlated", "binary", "duplicated"]),
    seed=st.integers(0, 10**6),
    method=st.sampled_from(METHODS),
    by=st.sampled_from(["feature", "group"]),
    groups=st.none() | st.lists(st.sampled_from("abcd"), min_size=7, max_size=7),
    prices=st.none() | st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.7, 1.0, 2.0]), min_size=7),
    budget=st.sampled_from([0.3, 1.0, 1.2, 2.0, 2.9, 4.0]),
    k=st.sampled_from([None, 2, 4]),
    always=st.sampled_from([(), (2,), (0, 5)]),
)
def test_every_step_is_the_references(loss, design, seed, method, by, groups, prices, **rest):
    problem = make_problem(loss, design, seed, n=30, p=7, fit_intercept=seed % 2 == 0)
    labels = list(range(7)) if groups is None else groups
    costs = None if prices is None else dict(zip(dict.fromkeys(labels), prices, strict=False))
    always, budget, k = rest["always"], rest["budget"], rest["k"]
    outside = [label for j, label in enumerate(labels) if j not in always]
    charged = {label: 1.0 if costs is None else costs[label] for label in outside}
    charged.update((labels[j], 0.0) for j in always if labels[j] in charged)
    sizes = len(charged) if by == "group" else len(outside)
    assume(k is None or k <= sizes)
    options = {"by": by, "groups": groups, "costs": costs, **rest}
    if charged and min(charged.values()) > budget:
        with pytest.raises(ValueError, match="buys nothing"):
            select(problem.objective(), method=method, **options)
    else:
        assert_same_steps(problem, method, **options)


@pytest.mark.parametrize("method", ["foba-gdt", "foba-obj"])
@pytest.mark.parametrize("by", ["feature", "group"])
def test_long_runs_where_groups_do_leave(method, by):
    refunds = 0
    for seed in range(55, 75):
        problem = make_problem("logistic", "correlated", seed, n=60, p=12, fit_intercept=True)
        groups, costs = [*"aabbccddeeff"], dict(zip("abcdef", [1, 2, 3, 1, 2, 3], strict=True))
        for k in (None, 6):
            options = {"groups": groups, "by": by, "costs": costs, "budget": 9, "ratio": 0.9}
            path = assert_same_steps(problem, method, k=k, **options)
            spent = [step.cost for step in path.steps]
            refunds += sum(after < before for before, after in pairwise(spent))
        if refunds:
            return
    pytest.fail("no group ever left")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("by", ["feature", "group"])
@pytest.mark.parametrize("k", [None, 4])
def test_a_budget_for_everything_is_no_budget(method, by, k):
    for seed in range(5):
        objective = make_problem("logistic", "correlated", seed, n=50, p=10).objective()
        options = {"method": method, "groups": [*"abcdeabcde"], "by": by, "k": k}
        free, rich = select(objective, **options), select(objective, budget=5, **options)
        assert moves(free) == moves(rich)
        assert free.stop_reason == rich.stop_reason
        assert [step.cost for step in free.steps] == [step.cost for step in rich.steps]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [None, 3])
def test_groups_of_one_are_the_same_by_group_and_by_feature(method, k):
    for seed in range(5):
        objective = make_problem("squared", "correlated", seed, n=50, p=8).objective()
        costs = {f"g{j}": 1 + j % 3 for j in range(8)}
        options = {"method": method, "k": k, "costs": costs, "budget": 5, "groups": list(costs)}
        one, other = (select(objective, by=by, **options) for by in ("feature", "group"))
        assert moves(one) == moves(other)
        assert one.stop_reason == other.stop_reason


def a_detour():
    """Column 0 is nearly the sum of 1 and 2: it enters first and leaves once they are in."""
    Z = np.linalg.qr(np.random.default_rng(0).normal(size=(50, 4)))[0] * np.sqrt(50)
    X = np.column_stack([Z[:, 0] + Z[:, 1] + Z[:, 2], Z[:, 1:]])
    return LeastSquares(X, Z[:, 1] + Z[:, 2] + 0.1 * Z[:, 3])


@pytest.mark.parametrize("method", ["foba-gdt", "foba-obj"])
@pytest.mark.parametrize("k", [None, 3])
def test_what_leaves_gives_its_price_back(method, k):
    options = {"groups": [*"abbc"], "by": "feature", "budget": 2, "k": k}
    path = select(a_detour(), method=method, **options)
    assert moves(path) == [("add", 0), ("add", 1), ("add", 2), ("remove", 0), ("add", 3)]
    assert [step.cost for step in path.steps] == [1, 2, 2, 1, 2]
    assert [step.groups for step in path.steps] == [1, 2, 2, 1, 2]
    assert path.groups(path.end) == ["b", "c"]
    forward = select(a_detour(), method=method.replace("foba", "forward"), **options)
    assert moves(forward) == moves(path)[:3]
    left = "the remaining budget (0 of 2)"
    assert forward.stop_reason == (
        f"the best candidate, of c, costs 1, more than {left}" if k is None else "size 3 reached"
    )


def test_whole_groups_give_their_price_back_too():
    path = select(a_detour(), groups=[*"abbc"], budget=2)
    assert moves(path) == [("add", 0), ("add", 1), ("remove", 0), ("add", 2)]
    assert [step.cost for step in path.steps] == [1, 2, 1, 2]


def test_a_group_stays_paid_for_until_its_last_feature_leaves():
    path = select(a_detour(), groups=[*"aaab"], by="feature", budget=1)
    assert moves(path)[3] == ("remove", 0)
    assert [step.cost for step in path.steps] == [1, 1, 1, 1]


def test_alone_a_budget_ends_the_run_and_with_k_the_unaffordable_is_passed_over():
    X = np.linalg.qr(np.random.default_rng(0).normal(size=(30, 5)))[0]
    objective = LeastSquares(X, X @ [5.0, 4.0, 3.0, 2.0, 1.0])
    costs = [1, 3, 1, 3, 0]
    alone = select(objective, costs=costs, budget=2)
    assert moves(alone) == [("add", 0)]
    assert "of 1, costs 3, more than the remaining budget (1 of 2)" in alone.stop_reason
    both = select(objective, k=4, costs=costs, budget=2)
    assert moves(both) == [("add", 0), ("add", 2), ("add", 4)]
    assert both.stop_reason == "no remaining candidate fits the remaining budget (0 of 2)"
    assert select(objective, k=2, costs=costs, budget=2).stop_reason == "size 2 reached"


def test_what_costs_nothing_needs_no_budget():
    X = np.linalg.qr(np.random.default_rng(0).normal(size=(30, 4)))[0]
    objective = LeastSquares(X, X @ [4.0, 3.0, 2.0, 1.0])
    path = select(objective, costs=[1, 0, 1, 0], budget=0, k=4)
    assert moves(path) == [("add", 1), ("add", 3)]
    assert path.cost(path.end) == 0.0
    assert moves(select(objective, costs=[0] * 4, budget=0)) == moves(select(objective))


def test_prices_that_add_up_to_the_budget_but_for_rounding_are_affordable():
    X = np.linalg.qr(np.random.default_rng(0).normal(size=(30, 3)))[0]
    objective = LeastSquares(X, X @ [3.0, 2.0, 1.0])
    assert 0.1 + 0.2 > 0.3
    for k in (None, 3):
        path = select(objective, k=k, costs=[0.1, 0.2, 1e-3], budget=0.3)
        assert moves(path) == [("add", 0), ("add", 1)]
        assert "the remaining budget (0 of" in path.stop_reason
        assert path.within(0.3) is path.end
    tenths = select(objective, costs=[0.1] * 3, budget=0.1 * 3)
    assert tenths.end.size == 3


@pytest.mark.parametrize("by", ["feature", "group"])
def test_always_is_free_and_makes_its_group_free(by):
    X = np.linalg.qr(np.random.default_rng(0).normal(size=(30, 6)))[0]
    objective = LeastSquares(X, X @ [6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    options = {"groups": [*"aabbcc"], "by": by, "always": [0], "costs": {"a": 9, "b": 2, "c": 1}}
    path = select(objective, budget=2, k=3 if by == "feature" else 2, **options)
    assert path.cost(path.start) == 0.0
    assert path.groups(path.start) == ["a"]
    assert path.groups(path.end) == ["a", "b"]
    assert [step.cost for step in path.steps] == ([0, 2, 2] if by == "feature" else [0, 2])
    everything = select(objective, always=range(6), budget=0)
    assert everything.steps == []


@pytest.fixture
def costly():
    for seed in range(100):
        problem = make_problem("squared", "correlated", seed, n=40, p=10, fit_intercept=True)
        costs = dict(zip("edcba", [1.0, 2.0, 0.5, 0.25, 4.0], strict=True))
        options = {"groups": [*"eeddccbbaa"], "by": "feature", "costs": costs, "budget": 6.5}
        path = select(problem.objective(), k=8, **options)
        spent = [step.cost for step in path.steps]
        if any(after < before for before, after in pairwise(spent)):
            return path
    return pytest.fail("no group ever left")


def test_within_is_the_best_point_for_the_money(costly):
    prices = dict(zip("edcba", [1.0, 2.0, 0.5, 0.25, 4.0], strict=True))
    for point in costly.points:
        assert costly.cost(point) == sum(prices[name] for name in costly.groups(point))
    for money in (0, 0.25, 0.5, 1, 2.75, 3.5, 6.5, 1e9):
        values = [point.value for point in costly.points if costly.cost(point) <= money]
        assert costly.within(money).value == min(values)
        assert any(costly.within(money) is point for point in costly.points)
    assert costly.within(0) is costly.start
    with pytest.raises(KeyError, match="no point of this path costs -1 or less"):
        costly.within(-1)


def test_groups_of_a_point_come_in_order_of_entry(costly):
    owner, inside = "eeddccbbaa", []
    for step in costly.steps:
        if step.action == "add":
            inside.append(step.feature)
        else:
            inside.remove(step.feature)
        names = list(dict.fromkeys(owner[j] for j in inside))
        assert costly.groups(step.point) == names
        assert (step.groups, step.cost) == (len(names), costly.cost(step.point))
    with pytest.raises(ValueError, match="not one of this path's points"):
        costly.groups(costly.start.__class__(np.array([0]), np.array([1.0]), 0.0))


def test_the_callback_sees_what_was_spent():
    seen = []
    path = select(a_detour(), groups=[*"abbc"], by="feature", callback=seen.append)
    assert [(step.groups, step.cost) for step in seen][:4] == [(1, 1), (2, 2), (2, 2), (1, 1)]
    assert seen == path.steps
    stopped = select(a_detour(), groups=[*"abbc"], callback=lambda step: step.cost >= 2)
    assert stopped.cost(stopped.end) == 2


def test_the_table_of_steps_tells_groups_and_cost(costly):
    frame = costly.to_frame()
    assert {"groups", "cost", "name", "size"} <= set(frame.columns)
    assert frame["cost"].tolist() == [step.cost for step in costly.steps]
    assert frame["groups"].tolist() == [step.groups for step in costly.steps]


def test_saving_and_loading_keeps_groups_and_prices(costly, tmp_path):
    costly.save(tmp_path / "path.json")
    loaded = Path.load(tmp_path / "path.json")
    assert dict(loaded.settings) == dict(costly.settings)
    assert (loaded.settings["budget"], loaded.settings["by"]) == (6.5, "feature")
    for mine, theirs in zip(costly.points, loaded.points, strict=True):
        assert loaded.groups(theirs) == costly.groups(mine)
        assert loaded.cost(theirs) == costly.cost(mine)
    assert loaded.within(2).value == costly.within(2).value
    pd.testing.assert_frame_equal(loaded.to_frame(), costly.to_frame())
    text = (tmp_path / "path.json").read_text()
    for other in ('"format": 1', '"format": 5', '"former": 4'):
        (tmp_path / "other.json").write_text(text.replace('"format": 4', other))
        with pytest.raises(ValueError, match=r"other.json' is not a path saved by forback"):
            Path.load(tmp_path / "other.json")


def test_without_names_groups_are_called_by_number():
    path = select(a_detour(), k=2)
    assert path.groups(path[2]) == ["0", "1"]
    assert path.cost(path[2]) == 2
    mapped = select(a_detour(), k=2, by="feature", groups={7: [1, 2]})
    assert mapped.groups(mapped[2]) == ["0", "7"]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("precision", ["double", "mixed"])
def test_passing_over_with_screened_scores_is_passing_over_with_exact_ones(loss, method, precision):
    """The best candidate is unaffordable, so that screening must not stop at its score."""
    strategies = {}
    if (loss, precision) == ("squared", "double"):  # kept products, as for large tables
        strategies = {"fits": CholeskyFit, "slopes": partial(by_products, min_used=0)}
    for seed in range(4):
        X, y = hard_data(loss, "copies", seed, n=60, p=80)
        X[:, 0] = 2.0 * y + 0.1 * X[:, 0]
        costs = [50.0, *np.random.default_rng(seed).integers(1, 4, size=79)]
        options = {"k": 5, "costs": costs, "budget": 8, "method": method}
        objective = by_strategy(loss, X, y, ridge=0.01, precision=precision, **strategies)
        path = select(objective, **options)
        plain = select(build(loss, X, y, ridge=0.01, hidden=True), **options)
        assert moves(path) == moves(plain)
        scores = [[step.score for step in each.steps] for each in (path, plain)]
        np.testing.assert_allclose(*scores, rtol=1e-7)


def test_in_a_chain_prices_and_groups_are_those_of_columns():
    rng = np.random.default_rng(0)
    y = np.repeat(rng.integers(0, 3, size=60), 5)
    X = (rng.random((300, 4)) < 0.2 + 0.6 * (y[:, None] == [0, 1, 2, 0])).astype(float)
    frame = pd.DataFrame(X, columns=["door", "bed", "tap", "sofa"])
    path = select(ChainCRF(frame, y), budget=2, by="feature")
    assert len(path.groups(path.end)) == path.cost(path.end) == 2
    assert path.steps[0].size == 1
    rooms = {"hall": ["door", "sofa"], "rest": ["bed", "tap"]}
    options = {"groups": rooms, "costs": {"hall": 1, "rest": 5}}
    singly = select(ChainCRF(frame, y), budget=5, k=4, by="feature", **options)
    assert set(singly.groups(singly.end)) in ({"hall"}, {"rest"})
    whole = select(ChainCRF(frame, y), budget=6, **options)
    assert whole.end.size == 2
    assert whole.cost(whole.end) == 6
    assert len(whole.steps[0].point.support) == 6 + 3 * 3 + 3
    free = select(ChainCRF(frame, y), budget=1, always=["door"], by="feature")
    assert free.groups(free.start) == ["door"]
    assert free.cost(free.start) == 0
    assert len(free.groups(free.end)) == 2


X = np.random.default_rng(0).normal(size=(30, 4))
Y = X[:, 0] + 0.1 * X[:, 1]

BAD = [
    ({"budget": -1}, ValueError, r"budget must lie in \[0, inf\), got -1"),
    ({"budget": np.nan}, ValueError, "budget must lie .*got nan"),
    ({"budget": np.inf}, ValueError, "budget must lie .*got inf"),
    ({"budget": "3"}, TypeError, r"budget must be a number, got '3' \(str\)"),
    ({"budget": True}, TypeError, "budget must be a number, got True"),
    ({"budget": [2]}, TypeError, r"budget must be a number, got \[2\]"),
    ({"budget": 0}, ValueError, "budget=0 buys nothing: the cheapest .*0, costs 1; raise budget"),
    ({"budget": 1, "costs": [4, 3, 2, 3]}, ValueError, "the cheapest candidate, 2, costs 2;"),
    ({"by": "sensor"}, ValueError, r"by must be one of \['feature', 'group'\], got 'sensor'"),
    ({"by": 1}, ValueError, "by must be one of .*got 1"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD)
def test_bad_budgets_are_named(options, error, message):
    given = repr(options)
    with pytest.raises(error, match=message):
        select(LeastSquares(X, Y), **options)
    assert repr(options) == given
