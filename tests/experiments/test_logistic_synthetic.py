"""Two classes with a known truth: where algorithms stop, and what is made of it."""

from statistics import fmean

import numpy as np
import pytest
from experiments.logistic_synthetic import (
    METHODS,
    RIDGE,
    ahead,
    early,
    f_measure,
    make_objective,
    run,
    section,
    study,
)

from experiments import logistic_synthetic as module
from experiments.reproduce import read_rows, write_rows
from forback import select
from forback.certificates import theory_thresholds
from forback.core.blocks import Blocks
from forback.datasets import make_logistic
from forback.report.figures import draw


def test_f_measure():
    one, two = np.array([1, 2, 3]), np.array([2, 3, 4, 5])
    assert f_measure(one, two) == pytest.approx(4 / 7)
    assert f_measure(one, one) == 1.0
    assert f_measure(np.zeros(0, np.intp), two) == 0.0


@pytest.mark.parametrize("method", METHODS)
def test_runs_end_when_nothing_is_as_good_as_at_the_truth(method):
    data = make_logistic(60, 80, 4, random_state=2)
    objective = make_objective(data)
    known = theory_thresholds(objective, data.support)
    end = run(objective, method, known).end
    outside = np.setdiff1d(np.arange(80), end.support)
    if method.endswith("gdt"):
        assert np.abs(objective.gradient(end)[outside]).max() < known.practical_epsilon
    else:
        blocks = Blocks.singles(outside, np.zeros(0, np.intp))
        assert objective.decrease_if_added(end, blocks).max() < known.practical_delta


def test_early_is_the_mean_over_five_sizes_and_goes_on_with_the_last():
    data = make_logistic(60, 20, 4)
    path = select(make_objective(data), k=7, method="forward-gdt")
    values = [step.value for step in path.steps]
    assert early(path) == pytest.approx(fmean(values[:5]))
    short = select(make_objective(data), k=2, method="forward-gdt")
    assert early(short) == pytest.approx((values[0] + 4 * values[1]) / 5)


def test_whoever_finds_the_support_finds_bar_beta():
    rows = study(5, RIDGE, 3)
    assert [row["method"] for row in rows[:4]] == list(METHODS)
    assert {row["seed"] for row in rows} == {0, 1, 2}
    exact = [row for row in rows if row["f_measure"] == 1.0]
    assert exact
    for row in exact:
        assert row["nonzeros"] == 5
        assert row["error"] < 1e-6
        assert row["objective"] == pytest.approx(row["bar_objective"], rel=1e-6)
    assert all(row["error"] > 1e-3 for row in rows if row["f_measure"] < 1.0)


def made_up(gain, ridges=(RIDGE,), trials=6):
    """Rows in which backward steps are worth so much."""
    rng = np.random.default_rng(0)
    return [
        {
            "ridge": ridge, "sparsity": k, "seed": seed, "method": method,
            "f_measure": base + gain * method.startswith("foba"),
            "error": 0.2 + 0.1 * method.endswith("obj"),
            "objective": 0.5 + base / 100 - 0.001 * method.endswith("obj"),
            "nonzeros": 8 - (gain > 0) * method.startswith("foba"),
            "removed": int(gain > 0 and method.startswith("foba")),
            "early": 0.9 - 0.1 * method.endswith("obj"), "bar_objective": 0.5,
        }
        for ridge in ridges
        for k in (5, 6)
        for seed, base in enumerate(rng.uniform(0.5, 0.6, trials))
        for method in METHODS
    ]  # fmt: skip


def test_ahead_means_beyond_chance():
    rows = made_up(0.05)
    assert ahead(rows, "foba-gdt", "forward-gdt", "f_measure")
    assert not ahead(rows, "forward-gdt", "foba-gdt", "f_measure")
    assert ahead(rows, "forward-gdt", "foba-gdt", "f_measure", -1.0)
    same = made_up(0.0)
    assert not ahead(same, "foba-gdt", "forward-gdt", "f_measure")
    for number, row in enumerate(same):  # a difference in one trial of twelve may be chance
        row["f_measure"] += 0.1 * (number == 0)
    assert not ahead(same, "foba-gdt", "forward-gdt", "f_measure")


@pytest.mark.parametrize(("gain", "agrees"), [(0.05, True), (0.0, False)])
def test_claims_follow_the_rows(gain, agrees):
    claims = section(made_up(gain)).claims
    assert [claim.agrees for claim in claims] == [agrees, agrees, True, True, True]
    assert "against 0.55" in claims[0].found


def test_the_section_of_a_small_study(tmp_path):
    rows = [row for ridge in (RIDGE, module.BESIDE_SUM) for row in study(5, ridge, 2)]
    write_rows(rows, tmp_path / "rows.csv")
    read = read_rows(tmp_path / "rows.csv")
    assert read == rows
    found = section(read)
    assert len(found.claims) == 5
    assert [figure.name for figure in found.figures] == [
        "logistic-synthetic", "logistic-synthetic-beside-sum",
    ]  # fmt: skip
    assert "With a ridge of 0.0001" in found.comparison
    means = found.tables[1].rows[0]
    gdt = [row for row in rows if row["ridge"] == RIDGE and row["method"] == "foba-gdt"]
    assert means[:3] == ["5", "FoBa-gdt", f"{fmean(row['f_measure'] for row in gdt):.3f}"]
    draw(found.figures[0], tmp_path)
    assert (tmp_path / "logistic-synthetic.png").stat().st_size > 10_000


def test_one_ridge_will_do():
    found = section(made_up(0.05, [module.BESIDE_SUM], trials=1))
    assert len(found.figures) == 1
    assert "4 of 4 FoBa runs" in found.comparison


def test_parts():
    assert len(module.parts(False)) == 20
    labels = [part.label for part in module.parts(True)]
    assert len(set(labels)) == len(labels) == 4
