"""Chain CRFs on random sequences: what a run measures, and when the paper's sentences hold."""

import pandas as pd
import pytest

from experiments.paper.crf_synthetic import (
    QUICK_SEEDS,
    SEEDS,
    SIZES,
    TEST_SEED_SHIFT,
    parts,
    run_part,
    section,
)
from experiments.study import TITLES
from forback import FobaCRF
from forback.datasets import make_chain
from support.rows import where


@pytest.fixture(scope="module")
def rows():
    return [row for seed in (0, 1) for row in run_part(seed, words=150, sizes=(3, 6))]


def test_a_run_measures_what_an_estimator_would(rows):
    assert len(rows) == 2 * len(TITLES) * 2
    known, new = make_chain(150, random_state=1), make_chain(150, random_state=1 + TEST_SEED_SHIFT)
    for method in ("forward-gdt", "forward-obj"):
        for size in (3, 6):
            model = FobaCRF(size, method=method, alpha=1e-4, refine=None)
            model.fit(known.X, known.y, known.lengths)
            (row,) = where(rows, seed=1, method=method, features=size)
            assert row["objective"] == pytest.approx(model.objective_value_, rel=1e-9)
            wrong = 1.0 - model.score(known.X, known.y, known.lengths)
            assert row["train_error"] == pytest.approx(wrong)
            assert row["test_error"] == pytest.approx(1.0 - model.score(new.X, new.y, new.lengths))
            assert row["test_error"] != row["train_error"]


def test_more_weights_and_later_visits_only_lower_the_objective(rows):
    for method in TITLES:
        both = (where(rows, method=method, features=size) for size in (3, 6))
        for few, many in zip(*both, strict=True):
            assert many["objective"] < few["objective"]
            assert few["best_objective"] <= few["objective"]


def test_the_versions_have_their_runs():
    assert [len(parts(quick)) for quick in (True, False)] == [QUICK_SEEDS, SEEDS] == [2, 20]
    assert SIZES == (10, 15, 20, 25, 30)


def test_the_section_of_a_small_version(rows):
    told = section(pd.DataFrame(rows))
    (figure,) = told.figures
    assert [len(panel.lines) for panel in figure.panels] == [4, 4, 4]
    assert len(told.claims) == 4
    (table,) = told.tables
    assert len(table.rows) == 2 * 4
    first = where(rows, method="foba-obj", features=3)
    mean = sum(row["objective"] for row in first) / 2
    assert table.rows[0][:3] == ["3", "FoBa-obj", f"{mean:.4f}"]


def made_up(**objectives):
    """Rows of two runs; per algorithm the means at 10 and at 30 features, of all measures alike."""
    shift = {0: -0.01, 1: 0.01}
    return [
        {
            "seed": seed,
            "method": method.replace("_", "-"),
            "features": size,
            "train_error": value + shift[seed],
            "test_error": value + shift[seed],
            "objective": value + shift[seed],
            "best_objective": value + shift[seed],
        }
        for method, values in objectives.items()
        for size, value in zip((10, 30), values, strict=True)
        for seed in shift
    ]


def verdicts(rows):
    return [claim.agrees for claim in section(pd.DataFrame(rows)).claims]


def test_the_claims_hold_where_the_means_say_so():
    obj = {"foba_obj": (0.3, 0.2), "forward_obj": (0.301, 0.2)}
    gdt = {"foba_gdt": (0.35, 0.2), "forward_gdt": (0.4, 0.21)}
    assert verdicts(made_up(**obj, **gdt)) == [True, True, True, True]
    worse = {"foba_gdt": (0.25, 0.2), "forward_gdt": (0.25, 0.3)}
    assert verdicts(made_up(**obj, **worse)) == [False, False, True, False]
    apart = {"foba_obj": (0.3, 0.2), "forward_obj": (0.32, 0.2)}
    assert verdicts(made_up(**apart, **gdt)) == [True, True, False, True]


def test_one_measure_out_of_three_is_neither_yes_nor_no():
    rows = made_up(
        foba_obj=(0.3, 0.2), forward_obj=(0.3, 0.2), foba_gdt=(0.3, 0.2), forward_gdt=(0.3, 0.2)
    )
    assert verdicts(rows) == [False, False, True, False]
    for row in rows:
        if row["method"] == "foba-gdt" and row["features"] == 10:
            row["test_error"] -= 0.005
    assert verdicts(rows)[3] is None
    assert "the same model in 2 of 2 runs" in section(pd.DataFrame(rows)).claims[3].found
