"""Warm starts: runs that begin at a support that somebody gives, or go on where another ended."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forback import FobaRegressor, Path, select
from forback.objectives import GLM, LeastSquares, Logistic
from forback.selection.rules import METHODS
from support.problems import make_problem

LOSSES = ("squared", "logistic", "poisson")


def told(path):
    """What steps say of themselves, but for the last digits."""
    return [(step.action, step.feature, step.size) for step in path.steps]


@pytest.fixture(scope="module")
def noisy():
    """Six columns that count, and six of noise."""
    X = np.random.default_rng(0).normal(size=(200, 12))
    noise = np.random.default_rng(1).normal(size=200)
    return LeastSquares(X, X[:, :6] @ [3.0, 2.5, 2.0, 1.5, 1.0, 0.5] + noise, fit_intercept=True)


# Going on ----------------------------------------------------------------------------------------


@given(
    loss=st.sampled_from(LOSSES),
    seed=st.integers(0, 2**16),
    method=st.sampled_from(sorted(METHODS)),
    backward=st.sampled_from(["coordinate", "refit"]),
    sizes=st.tuples(st.integers(1, 4), st.integers(4, 7)),
)
def test_a_path_that_is_continued_is_the_longer_path(loss, seed, method, backward, sizes):
    short, long = sizes
    design = ("gaussian", "correlated")[seed % 2]
    objective = make_problem(loss, design, seed, n=50, p=8, ridge=1e-3).objective()
    options = {"method": method, "backward": backward}
    whole = select(objective, long, **options)
    begun = select(objective, short, **options)
    continued = select(objective, long, start=begun, **options)
    assert told(continued) == told(whole)
    assert told(continued)[: len(begun.steps)] == told(begun)
    values = [[step.value for step in path.steps] for path in (continued, whole)]
    assert values[0] == pytest.approx(values[1], rel=1e-9, abs=1e-12)
    assert continued.stop_reason == whole.stop_reason


@pytest.mark.parametrize("loss", ["logistic", "huber", "squared_hinge"])
def test_a_path_that_came_close_to_zero_is_continued(loss):
    for seed in range(5):
        X = np.random.default_rng(seed).normal(size=(20, 6))
        y = 2.0 * X[:, 0] - X[:, 3]
        objective = GLM(loss, X, y if loss == "huber" else y > 0)
        select(objective, 3, start=select(objective, 2))


def test_a_path_whose_values_are_too_small_for_a_number_is_continued(noisy):
    X = np.random.default_rng(0).normal(size=(20, 6))
    objective = LeastSquares(X, 2.0**-600 * (X[:, 0] + X[:, 3] - X[:, 5]))
    assert select(objective, 3, start=select(objective, 2)).end.size == 3


@pytest.mark.parametrize("seed", range(10))
def test_a_path_that_ended_in_a_perfect_fit_is_continued(seed):
    X = np.random.default_rng(seed).normal(size=(50, 400))
    objective = LeastSquares(X, X[:, :3] @ [1.0, -2.0, 0.5])
    short = select(objective, 3)
    assert told(select(objective, 5, start=short)) == told(select(objective, 5))


def test_a_saved_path_is_continued(noisy, tmp_path):
    select(noisy, 2).save(tmp_path / "path.json")
    continued = select(noisy, 5, start=Path.load(tmp_path / "path.json"))
    assert told(continued) == told(select(noisy, 5))


def test_refined_answers_stay_on_a_path_that_goes_on(noisy):
    short = select(noisy, 3, refine="swap")
    longer = select(noisy, 4, start=short, refine="swap")
    assert longer.refined(3).value == short.refined(3).value
    assert longer.descents[: len(short.descents)] == short.descents
    assert longer.refined(4).value <= longer.best(4).value


# Beginning somewhere -----------------------------------------------------------------------------


def test_all_that_is_given_comes_in_by_one_step(noisy):
    path = select(noisy, 4, start=[9, 0, 2])
    first = path.steps[0]
    assert (first.action, first.size) == ("start", 3)
    assert {first.feature, *first.others} == {0, 2, 9}
    fitted = noisy.minimise(np.array([0, 2, 9, 12]))
    assert first.value == pytest.approx(fitted.value, rel=1e-12)
    assert path.sizes[:2] == [0, 3]


def test_it_leaves_again_but_no_size_without_a_gain_is_reduced(noisy):
    path = select(noisy, 6, start=[7, 8, 9])
    assert not {7, 8, 9} & set(path.end.support.tolist())
    removed = [step for step in path.steps if step.action == "remove"]
    assert {step.feature for step in removed} == {7, 8, 9}
    assert min(step.size for step in removed) == 2  # from 3, whose gain is known


@pytest.mark.parametrize("ratio", [0.3, 0.9])
def test_the_gain_of_its_size_is_what_its_cheapest_block_costs(ratio):
    """Worked out by hand: what is added to {a, b} must cost less than that to let one leave."""
    X = np.eye(4)[:, :3] * 2.0  # orthogonal columns: Q falls by b^2 / 2 for each
    y = np.array([1.0, 0.6, 0.5, 0.0])
    path = select(LeastSquares(X, y), 3, start=[0, 1], ratio=ratio)
    assert told(path) == [("start", 0, 2), ("add", 2, 3)]
    assert path.steps[1].change == pytest.approx(0.5 * 0.5**2 / 4)
    shorter = select(LeastSquares(X[:, :2], y), 2, start=[0], ratio=ratio)
    assert told(shorter) == [("start", 0, 1), ("add", 1, 2)]


@pytest.mark.parametrize(
    "start",
    [
        ["x2", "x9"],
        np.isin(np.arange(12), [2, 9]),
        {f"x{j}": j in (2, 9) for j in range(12)},
        pd.Series([True, True], ["x9", "x2"]),
    ],
)
def test_columns_are_given_as_anywhere_else(start):
    X = pd.DataFrame(
        np.random.default_rng(2).normal(size=(40, 12)), columns=[f"x{j}" for j in range(12)]
    )
    objective = LeastSquares(X, X["x3"])
    assert select(objective, 3, start=start).steps[0].point.support.tolist() == [2, 9]


def test_a_point_is_a_start(noisy):
    answer = select(noisy, 3)[3]
    path = select(noisy, 4, start=answer)
    assert path.best(3).support.tolist() == answer.support.tolist()
    assert path.end.value <= select(noisy, 4).end.value * (1 + 1e-12)


def test_groups_come_in_whole(noisy):
    groups = [*"aabbccddeeff"]
    path = select(noisy, 2, groups=groups, start=[4, 5])
    assert path.steps[0].name == "c"
    with pytest.raises(ValueError, match=r"start holds only a part of the group c; give all of it"):
        select(noisy, 2, groups=groups, start=[4])


def test_an_intercept_and_what_is_always_in_are_no_part_of_it(noisy):
    path = select(noisy, 3, always=[1], start=[0, 1])
    assert path.steps[0].size == 1
    assert path[1].support.tolist() == [0, 1, 12]


def test_nothing_is_a_start_like_none(noisy):
    assert told(select(noisy, 3, start=[])) == told(select(noisy, 3))


def test_an_estimator_can_be_checked_against_a_start(noisy):
    """An earlier answer of an estimator, by the mask that it has."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 8))
    y = X[:, 2] - X[:, 5] + 0.1 * rng.normal(size=60)
    model = FobaRegressor(k=2).fit(X, y)
    path = select(LeastSquares(X, y, fit_intercept=True), 2, start=model.support_)
    assert path.end.support.tolist() == [2, 5, 8]


# What is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": [0, 1, 2]}, r"start holds 3 features or groups, more than k=2"),
        ({"start": [0, 1], "budget": 1.5}, r"start costs 2, more than budget=1\.5"),
        ({"start": [0, 12]}, "start"),
        ({"start": [0, 0]}, "start"),
        ({"start": ["a"]}, "start"),
        ({"start": np.ones(5, dtype=bool)}, "start"),
    ],
)
def test_a_bad_start_is_named(noisy, options, message):
    with pytest.raises(ValueError, match=message):
        select(noisy, 2, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "foba-obj"}, "start is a path with method='foba-gdt', not 'foba-obj'"),
        ({"ratio": 0.3}, "start is a path with ratio=0.5, not 0.3"),
        ({"backward": "refit"}, "start is a path with backward='coordinate', not 'refit'"),
        ({"k": 1}, "start is a path to size 3, beyond k=1"),
        ({"costs": [2.0] * 12}, "start is a path with other costs; give the same"),
        ({"always": [3]}, "start is a path of other candidates"),
        ({"groups": [*"aabbccddeeff"]}, "start is a path"),
    ],
)
def test_a_path_goes_on_with_the_same_settings_only(noisy, options, message):
    path = select(noisy, 3)
    with pytest.raises(ValueError, match=message):
        select(noisy, **{"k": 4, **options}, start=path)


def test_a_path_of_other_data_is_noticed(noisy):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 12))
    other = LeastSquares(X, rng.normal(size=200), fit_intercept=True)
    with pytest.raises(ValueError, match="start is a path of other data"):
        select(other, 4, start=select(noisy, 3))
    with pytest.raises(ValueError, match="start is a path of other candidates"):
        select(Logistic(X[:, :5], X[:, 0] > 0, ridge=0.1), 4, start=select(noisy, 3))
    with pytest.raises(ValueError, match="start is a point of another objective"):
        select(Logistic(X[:, :3], X[:, 0] > 0, ridge=0.1), 3, start=select(noisy, 3)[3])
