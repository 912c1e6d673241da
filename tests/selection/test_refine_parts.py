"""Every part of refinement does something: each start, other sizes, pairs, kicks, budgets."""

import numpy as np
import pytest

from forback import FobaRegressor, Refinement, select
from forback.datasets import make_correlated
from forback.objectives import LeastSquares, from_function
from forback.selection.refinement import STARTS
from forback.selection.ties import highest, leading


def names(path):
    return [descent.start for descent in path.descents]


@pytest.fixture(scope="module")
def correlated():
    data = make_correlated(60, 50, 8, structure="ar", rho=0.9, random_state=0)
    return LeastSquares(data.X, data.y)


# Starts ------------------------------------------------------------------------------------------


def test_all_starts_are_made_in_order():
    data = make_correlated(100, 60, 4, structure="ar", rho=0.9, random_state=1)
    path = select(LeastSquares(data.X, data.y), 4, refine="swap")
    assert names(path)[:4] == ["path", "overshoot", "deep", "marginal"]
    assert [descent.origin.size for descent in path.descents[:4]] == [4] * 4


@pytest.mark.parametrize("start", STARTS[:-1])
def test_a_start_that_is_asked_for_is_the_only_one(start):
    data = make_correlated(100, 60, 4, structure="ar", rho=0.9, random_state=1)
    path = select(LeastSquares(data.X, data.y), 4, refine=Refinement(starts=start))
    assert names(path) == [start]


@pytest.mark.parametrize("start", ["deep", "overshoot"])
def test_where_no_start_is_left_the_run_itself_is_one(start):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 8))
    path = select(LeastSquares(X, rng.normal(size=20)), 8, refine=Refinement(starts=start))
    assert names(path) == ["path"]
    assert path.refined(8).size == 8


def test_where_it_starts_matters(correlated):
    """What is left of many columns that leave one by one is not what came in one by one."""
    ends = {
        start: select(correlated, 8, refine=Refinement(starts=start)).descents[0].origin.value
        for start in ("path", "overshoot", "deep", "marginal")
    }
    assert len(set(ends.values())) >= 3
    assert ends["deep"] < ends["path"]


def test_a_way_by_other_sizes_is_told_where_it_led_lower(correlated):
    alone = select(correlated, 8, refine=Refinement(starts="marginal"))
    path = select(correlated, 8, refine=Refinement(starts=("marginal", "neighbours")))
    assert names(path)[0] == "marginal"
    assert any(name.startswith("by way of size ") for name in names(path)[1:])
    assert path[8].value < alone[8].value
    lowest = [min(point.value for point in descent.points) for descent in path.descents]
    assert lowest == sorted(lowest, reverse=True)


# The search --------------------------------------------------------------------------------------


def test_exchanges_of_two_come_before_kicks(correlated):
    path = select(correlated, 8, refine=Refinement(starts="marginal", effort=60))
    found = names(path)[1:]
    assert "two for two" in found
    two = path.descents[names(path).index("two for two")]
    assert all(step.action == "exchange" for step in two.steps)
    before = path.descents[0].end.support
    assert len(np.setdiff1d(two.end.support, before)) >= 2


def test_kicks_lead_lower_where_exchanges_end():
    found = []
    for seed in (4, 5, 6):
        data = make_correlated(60, 50, 10, structure="factors", rho=0.8, random_state=seed)
        objective = LeastSquares(data.X, data.y)
        path = select(objective, 10, refine=Refinement(starts="path", effort=150))
        found += names(path)
        lowest = [min(point.value for point in descent.points) for descent in path.descents]
        assert lowest == sorted(lowest, reverse=True)
    assert any(name.startswith("kick ") for name in found)


def test_seconds_end_a_search_and_alone_begin_one(correlated):
    path = select(correlated, 8, refine=Refinement(starts="marginal", effort=1e9, seconds=0.0))
    assert names(path) == ["marginal"]
    path = select(correlated, 8, refine=Refinement(starts="marginal", seconds=0.3))
    assert len(names(path)) > 1


def test_progress_is_shown_to_its_end(correlated, capsys):
    select(correlated, 8, refine=Refinement(starts="marginal", effort=5, progress=True))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("\rsearch ")
    assert err.splitlines()[-1].startswith("search 100%, ")
    assert err.endswith("\n")
    select(correlated, 8, refine=Refinement(starts="marginal", effort=5))
    assert capsys.readouterr().err == ""


def test_progress_ends_its_line_whatever_ends_the_search(correlated, capsys):
    refine = Refinement(starts="marginal", effort=60, progress=True)
    select(correlated, 8, refine=refine, callback=lambda step: step.start == "two for two")
    assert capsys.readouterr().err.endswith("\n")


# Budgets -----------------------------------------------------------------------------------------


def priced(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 24)) + 1.5 * rng.normal(size=(40, 1))
    y = X @ (rng.normal(size=24) * (rng.random(24) < 0.4)) + rng.normal(size=40)
    groups = np.repeat(np.arange(8), 3).tolist()
    prices = [1.0 + group % 3 for group in groups]
    return LeastSquares(X, y), {"groups": groups, "costs": prices, "budget": 6.0}


def found_with(options, name, action):
    """The first of some problems where a start of that name takes a step of that kind."""
    for seed in range(20):
        objective, money = priced(seed)
        path = select(objective, refine="swap", **money, **options)
        for descent in path.descents:
            for step in descent.steps:
                if descent.start == name and step.action == action:
                    return path, step
    raise AssertionError(f"no {action} from {name!r} in any problem")


def test_goodness_per_price_is_a_start():
    objective, money = priced(0)
    assert "per price" in names(select(objective, refine="swap", by="group", **money))


def test_one_group_gives_way_to_several_blocks():
    path, step = found_with({"by": "feature", "k": 4}, "one for several", "exchange")
    assert step.others
    assert all(path.cost(point) <= 6.0 for descent in path.descents for point in descent.points)


def test_money_that_is_left_buys_more():
    for name in ("path", "overshoot", "deep", "marginal", "per price", "one for several"):
        try:
            _, step = found_with({"by": "group"}, name, "add")
        except AssertionError:
            continue
        assert step.change > 0.0
        return
    raise AssertionError("nothing was ever bought with what was left")


# What is said ------------------------------------------------------------------------------------


def test_an_error_in_refinement_says_that_it_was_there():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6)) + rng.normal(size=(30, 1))
    y = X[:, :3].sum(axis=1) + rng.normal(size=30)
    calls, most = [], np.inf

    def squares(beta):
        calls.append(beta)
        if len(calls) > most:
            raise RuntimeError("enough")
        misfit = X @ beta - y
        return 0.5 * misfit @ misfit / 30, X.T @ misfit / 30

    select(from_function(squares, 6), 3)
    most = 2 * len(calls) + 3  # the same again, and a little of refinement
    with pytest.raises(RuntimeError) as caught:
        select(from_function(squares, 6), 3, refine="swap")
    assert "in refinement (size 3)" in caught.value.__notes__[0]
    assert caught.value.path.end.size == 3


def test_repr_tells_the_best_answer(correlated):
    short = select(correlated, 2, refine="swap")
    path = select(correlated, 5, start=short, refine="swap")
    assert f"size 5, objective {path.refined(5).value:.6g}>" in repr(path)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"starts": 5}, TypeError, r"starts must be some of 'path', .*, got 5"),
        ({"starts": None}, TypeError, r"starts must be some of 'path', .*, got None"),
        ({"starts": "dep"}, ValueError, r"starts must be some of .* got 'dep'"),
        ({"starts": "neighbours"}, ValueError, r"the last not alone; got 'neighbours'"),
        ({"starts": []}, ValueError, r"starts must be some of .* got \[\]"),
        ({"shortlist": 0}, ValueError, "shortlist must be"),
        ({"effort": -1.0}, ValueError, "effort must lie in"),
        ({"seconds": -1.0}, ValueError, "seconds must lie in"),
        ({"progress": "yes"}, TypeError, "progress must be"),
    ],
)
def test_bad_knobs_are_named(options, error, message):
    with pytest.raises(error, match=message):
        Refinement(**options)


@pytest.mark.parametrize("refine", ["swop", 3, True])
def test_a_bad_refine_is_named(refine):
    wanted = r'refine must be None, "swap", "search" or a Refinement'
    with pytest.raises((ValueError, TypeError), match=wanted):
        FobaRegressor(k=1, refine=refine).fit(np.eye(4), np.arange(4.0))


# The best of many --------------------------------------------------------------------------------


def test_the_best_of_many_scores_are_those_of_a_stable_sort():
    rng = np.random.default_rng(0)
    for _ in range(300):
        shape = tuple(rng.integers(1, 12, size=rng.integers(1, 3)))
        scores = rng.integers(0, 6, size=shape).astype(float)
        scores[rng.random(shape) < 0.2] = -np.inf
        count = int(rng.integers(1, 15))
        expected = np.argsort(-scores.ravel(), kind="stable")[:count]
        assert np.array_equal(leading(scores, count), expected)


def test_an_infinite_score_is_the_highest():
    assert highest(np.array([1.0, np.inf, np.inf])) == 1
    assert highest(np.array([-np.inf, -np.inf])) == 0
