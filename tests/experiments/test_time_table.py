"""Times beside the paper's: what is run, and what is made of seconds; nothing here is timed."""

import pytest
from experiments.time_table import (
    METHODS,
    PRINTED,
    parts,
    printed,
    seconds_of,
    section,
    study,
    timed,
)

from experiments import time_table
from experiments.reproduce import read_rows, write_rows


def test_the_table_as_printed():
    assert printed("logistic", 5, "foba-gdt") == 0.0196
    assert printed("logistic", 14, "forward-obj") == 22.5
    assert printed("CRF", 10, "forward-gdt") == 0.52
    assert printed("CRF", 30, "foba-obj") == 90.4
    for lines in PRINTED.values():
        for times in lines.values():
            assert len(times) == len(METHODS)
            gdt, forward_gdt, obj, forward_obj = times
            assert forward_gdt < gdt < forward_obj <= obj


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(time_table, "WORDS", 60)
    monkeypatch.setattr(time_table, "REPEATS", {"logistic": 1, "CRF": 1})


def test_what_is_run(small):
    rows = study("CRF", 3, 1) + study("logistic", 5, 1)
    assert [row["method"] for row in rows] == [*METHODS, *METHODS]
    for row in rows:
        assert row["seconds"] > 0.0
        assert 1 <= row["solved"] <= row["candidates"]
        assert row["candidates"] == {"CRF": 56, "logistic": 500}[row["model"]]
        if row["model"] == "CRF":
            assert row["features"] == 3
        if row["method"].endswith("gdt"):  # a gradient knows every candidate
            assert row["solved"] == row["candidates"]
    obj = [row for row in rows if row["model"] == "logistic" and row["method"].endswith("obj")]
    assert all(row["solved"] < 50 for row in obj)


def test_the_quickest_run_counts(monkeypatch):
    clock = iter([0.0, 5.0, 10.0, 12.0, 20.0, 23.0])
    monkeypatch.setattr(time_table.time, "perf_counter", lambda: next(clock))
    assert timed(lambda: "path", 3) == (2.0, "path")


def made_up(times, models=("logistic", "CRF"), seeds=3):
    """Rows with so many seconds for each method; one seed is slow, which a median overlooks."""
    return [
        {
            "model": model, "sparsity": k, "seed": seed, "method": method,
            "seconds": seconds * (100.0 if seed == 1 else 1.0), "steps": k, "features": k,
            "solved": 2.5, "candidates": 500,
        }
        for model in models
        for k in list(PRINTED[model])[:2]
        for seed in range(seeds)
        for method, seconds in zip(METHODS, times, strict=True)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("times", "ratio", "verdicts"),
    [
        ((1.0, 0.5, 30.0, 20.0), "30", [True, True, None]),  # dearer both times
        ((1.0, 1.0, 2.0, 1.9), "2.00", [None, None, None]),  # alike both times
        ((1.0, 1.0, 0.9, 1.0), "0.90", [False, False, None]),
    ],
)
def test_claims_follow_the_ratios(times, ratio, verdicts):
    found = section(made_up(times))
    assert [claim.agrees for claim in found.claims] == verdicts
    assert f"FoBa-obj takes {ratio} times as long" in found.comparison


def test_more_expensive_for_chains_only():
    rows = made_up((1.0, 1.0, 20.0, 20.0), ["logistic"]) + made_up((1, 1, 40.0, 20.0), ["CRF"])
    assert section(rows).claims[-1].agrees is True


def test_the_section_has_both_tables_and_takes_one_model(tmp_path):
    rows = made_up((0.01, 0.005, 0.02, 0.02), ["CRF"])
    write_rows(rows, tmp_path / "rows.csv")
    rows = read_rows(tmp_path / "rows.csv")
    assert seconds_of(rows, "CRF", 10, "foba-gdt") == 0.01
    found = section(rows)
    assert len(found.claims) == 1
    seconds, ratios = found.tables
    assert seconds.rows[0][:4] == ["CRF", "10", "1.02e+00", "1.00e-02"]
    assert ratios.rows[0] == ["CRF", "10", "39", "2.00", "36", "4.00", "2.10", "1.00"]
    assert [panel.title for panel in found.figures[0].panels] == ["CRF, the paper", "CRF, here"]
    assert "3 of them (CRF)" in found.intro
    assert "12 years" in found.intro


def test_parts():
    assert len(parts(False)) == 9
    assert [part.label for part in parts(True)] == [
        "logistic, 5 features", "logistic, 14 features", "CRF, 10 features",
    ]  # fmt: skip
