"""Who ends lower: problems, how everybody is judged, and how results are counted."""

import math

import numpy as np
import pandas as pd
import pytest

from benchmarks.contract import Choice, Contestant, Unavailable
from benchmarks.quality.__main__ import compete
from benchmarks.quality.instances import FAMILIES, N_COLUMNS, N_ROWS, drawn, instances
from benchmarks.quality.summary import duels, excess, page


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_same_seed_gives_the_same_numbers(family, loss):
    one, two, other = (drawn(family, loss, seed).problem for seed in (3, 3, 4))
    assert np.array_equal(one.X, two.X)
    assert np.array_equal(one.y, two.y)
    assert not np.array_equal(one.X, other.X)
    assert one.X.shape == (N_ROWS, N_COLUMNS)
    np.testing.assert_allclose(one.X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(one.X.std(axis=0), 1.0)
    assert (set(one.y) == {0.0, 1.0}) == (loss == "logistic")


def test_columns_of_a_family_are_as_close_as_its_name_says():
    blocks = np.corrcoef(drawn("blocks-0.95", "squared", 0).problem.X, rowvar=False)
    assert blocks[:10, :10].min() > 0.9
    assert np.abs(blocks[:10, 10:]).max() < 0.5
    decoys = np.corrcoef(drawn("decoys", "squared", 0).problem.X, rowvar=False)
    assert np.sort(np.abs(decoys), axis=0)[-4].max() > 0.5  # with each of three parts
    assert np.abs(np.corrcoef(drawn("equal-0.7", "squared", 0).problem.X.T)).min() > 0.4


def test_a_table_whose_file_is_absent_is_left_out_and_named(monkeypatch):
    monkeypatch.delenv("FORBACK_DATA", raising=False)
    told = []
    made = list(instances(range(2), ["spambase", "decoys squared"], told.append))
    assert [instance.group for instance in made] == ["decoys squared"] * 2
    assert len(told) == 1
    assert told[0].startswith("spambase is left out: spambase/spam.data.xz is absent")


def test_real_tables(data_folder, monkeypatch):
    monkeypatch.setenv("FORBACK_DATA", str(data_folder))
    made = list(instances(range(0), ["colon", "diabetes", "leukemia"]))
    assert {instance.group: instance.problem.X.shape for instance in made} == {
        "colon": (62, 2000),
        "leukemia": (72, 7129),
        "diabetes": (442, 64),
    }
    assert [instance.problem.k for instance in made if instance.group == "colon"] == [3, 6, 10]


def contestant(choose):
    return Contestant("somebody", choose)


def test_everybody_is_judged_by_a_refit_of_what_they_chose():
    instance = drawn("decoys", "squared", 0)
    best = compete(contestant(lambda problem: lambda: Choice(np.arange(10))), instance)
    X, y = instance.problem.X[:, :10], instance.problem.y
    left = y - X @ np.linalg.lstsq(X, y)[0]
    assert best["objective"] == pytest.approx(0.5 * np.mean(left**2))
    assert best["seconds"] >= 0.0

    def cannot(problem):
        raise Unavailable("no")

    assert compete(contestant(cannot), instance)["objective"] == math.inf
    with pytest.raises(ValueError, match="somebody chose 11 of k=10 features"):
        compete(contestant(lambda problem: lambda: Choice(np.arange(11))), instance)


def rows_of(**objectives):
    return [
        {"group": "g", "seed": seed, "contestant": name, "objective": value, "seconds": 0.1}
        for name, values in objectives.items()
        for seed, value in enumerate(values)
    ]


def test_wins_ties_and_losses_are_counted():
    rows = rows_of(
        us=[1.0, 1.0, 2.0, 1.0 + 5e-7], one=[2.0, 1.0, 1.0, 1.0], two=[1.5, math.inf, 3.0, 1.1]
    )
    wide = pd.DataFrame(rows).pivot(
        index=["group", "seed"], columns="contestant", values="objective"
    )
    counted = duels(wide, "us", ["one", "two"])
    assert counted.loc["all"].tolist() == [1, 2, 1]
    assert excess(wide)["us"].tolist() == pytest.approx([0.0, 0.0, 1.0, 5e-7])
    assert math.isnan(excess(wide)["two"].iloc[1])
    text = page(pd.DataFrame(rows), ["us"], ["one", "two", "absent"])
    assert "## us against the best of the others" in text
    assert "| all | 1 | 2 | 1 |" in text
