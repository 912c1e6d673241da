"""Two classes with a known truth: where algorithms stop, and what is made of it."""

from statistics import fmean

import numpy as np
import pandas as pd
import pytest

from experiments.paper.logistic_synthetic import (
    LAMBDA_BESIDE_MEAN,
    LAMBDA_BESIDE_SUM,
    ahead,
    early,
    make_objective,
    parts,
    run_part,
    run_to_threshold,
    section,
)
from experiments.study import TITLES, read_rows, write_rows
from forback import select
from forback.certificates import theory_thresholds
from forback.core.blocks import Blocks
from forback.datasets import make_logistic


@pytest.mark.parametrize("method", TITLES)
def test_runs_end_when_nothing_is_as_good_as_at_the_truth(method):
    data = make_logistic(60, 80, 4, random_state=2)
    objective = make_objective(data)
    known = theory_thresholds(objective, data.support)
    end = run_to_threshold(objective, method, known).end
    outside = np.setdiff1d(np.arange(80), end.support)
    if method.endswith("gdt"):
        assert np.abs(objective.gradient(end)[outside]).max() < known.practical_epsilon
    else:
        blocks = Blocks.singles(outside, np.zeros(0, np.intp))
        assert objective.decrease_if_added(end, blocks).values.max() < known.practical_delta


def test_early_is_the_mean_over_five_sizes_and_goes_on_with_the_last():
    data = make_logistic(60, 20, 4)
    path = select(make_objective(data), k=7, method="forward-gdt")
    values = [step.value for step in path.steps]
    assert early(path) == pytest.approx(fmean(values[:5]))
    short = select(make_objective(data), k=2, method="forward-gdt")
    assert early(short) == pytest.approx((values[0] + 4 * values[1]) / 5)


def test_whoever_finds_the_support_finds_bar_beta():
    rows = run_part(5, LAMBDA_BESIDE_MEAN, 3)
    assert [row["method"] for row in rows[:4]] == list(TITLES)
    assert {row["seed"] for row in rows} == {0, 1, 2}
    exact = [row for row in rows if row["f_measure"] == 1.0]
    assert exact
    for row in exact:
        assert row["nonzeros"] == 5
        assert row["error"] < 1e-6
        assert row["objective"] == pytest.approx(row["bar_objective"], rel=1e-6)
    assert all(row["error"] > 1e-3 for row in rows if row["f_measure"] < 1.0)


def made_up(gain, ridges=(LAMBDA_BESIDE_MEAN,), trials=6):
    """Rows in which backward steps are worth so much."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "ridge": ridge,
            "sparsity": k,
            "seed": seed,
            "method": method,
            "f_measure": base + gain * method.startswith("foba"),
            "error": 0.2 + 0.1 * method.endswith("obj"),
            "objective": 0.5 + base / 100 - 0.001 * method.endswith("obj"),
            "nonzeros": 8 - (gain > 0) * method.startswith("foba"),
            "removed": int(gain > 0 and method.startswith("foba")),
            "early": 0.9 - 0.1 * method.endswith("obj"),
            "bar_objective": 0.5,
        }
        for ridge in ridges
        for k in (5, 6)
        for seed, base in enumerate(rng.uniform(0.5, 0.6, trials))
        for method in TITLES
    ]
    return pd.DataFrame(rows)


def test_ahead_means_beyond_chance():
    rows = made_up(0.05)
    assert ahead(rows, "foba-gdt", "forward-gdt", "f_measure")
    assert not ahead(rows, "forward-gdt", "foba-gdt", "f_measure")
    assert ahead(rows, "forward-gdt", "foba-gdt", "f_measure", -1.0)
    same = made_up(0.0)
    assert not ahead(same, "foba-gdt", "forward-gdt", "f_measure")
    same.loc[0, "f_measure"] += 0.1  # a difference in one trial of twelve may be chance
    assert not ahead(same, "foba-gdt", "forward-gdt", "f_measure")


@pytest.mark.parametrize(("gain", "agrees"), [(0.05, True), (0.0, False)])
def test_claims_follow_the_rows(gain, agrees):
    claims = section(made_up(gain)).claims
    assert [claim.agrees for claim in claims] == [agrees, agrees, True, True, True]
    assert "against 0.55" in claims[0].found


def test_the_section_of_a_small_study(tmp_path):
    rows = run_part(5, LAMBDA_BESIDE_MEAN, 2) + run_part(5, LAMBDA_BESIDE_SUM, 2)
    write_rows(rows, tmp_path / "rows.csv")
    read = read_rows(tmp_path / "rows.csv")
    assert read.to_dict("records") == rows
    found = section(read)
    assert len(found.claims) == 5
    assert [table.title for table in found.tables] == [
        "The same claims, ridge 0.01",
        "Means of 2 trials, ridge 0.0001",
        "Means of 2 trials, ridge 0.01",
    ]
    gdt = [row for row in rows if row["ridge"] == 0.01 and row["method"] == "foba-gdt"]
    f_measure = fmean(row["f_measure"] for row in gdt)
    assert found.tables[2].rows[0][:3] == ["5", "FoBa-gdt", f"{f_measure:.3f}"]


def test_the_reading_of_the_papers_code_comes_first():
    worse = made_up(0.0, [LAMBDA_BESIDE_MEAN])
    better = made_up(0.05, [LAMBDA_BESIDE_SUM])
    found = section(pd.concat([worse, better]))
    names = [figure.name for figure in found.figures]
    assert names == ["logistic-synthetic-beside-sum", "logistic-synthetic"]
    assert found.claims == section(better).claims
    ours, theirs = found.comparison.split("Added to the mean, as the paper's formula has it")
    assert ours.startswith("With lambda added to the sum of the losses (ridge 0.0001")
    assert "5 of the 5 claims hold" in ours
    assert "the tables of a1a and a2a, below, prove for the paper's code" in ours
    assert "3 of the 5 claims hold" in theirs


def test_one_ridge_will_do():
    found = section(made_up(0.05, [LAMBDA_BESIDE_SUM], trials=1))
    assert len(found.figures) == 1
    assert "4 of 4 FoBa runs" in found.comparison


def test_parts():
    assert len(parts(False)) == 20
    labels = [part.label for part in parts(True)]
    assert len(set(labels)) == len(labels) == 4
