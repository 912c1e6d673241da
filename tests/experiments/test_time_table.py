"""Times beside the paper's: what is run, and what is made of seconds; nothing here is timed."""

import pandas as pd
import pytest

from experiments.paper import time_table
from experiments.paper.time_table import PRINTED, parts, printed_for, run_part, seconds_of, section
from experiments.study import TITLES, read_rows, write_rows


def test_the_table_as_printed():
    lines = [(model, k) for model, sizes in PRINTED.items() for k in sizes]
    rows = [
        {"model": model, "sparsity": k, "method": method, "seconds": 1.0}
        for model, k in lines
        for method in TITLES
    ]
    printed = printed_for(pd.DataFrame(rows))
    assert list(printed.index) == lines
    assert printed.loc[("logistic", 5), "foba-gdt"] == 0.0196
    assert printed.loc[("logistic", 14), "forward-obj"] == 22.5
    assert printed.loc[("CRF", 10), "forward-gdt"] == 0.52
    assert printed.loc[("CRF", 30), "foba-obj"] == 90.4
    assert (printed["forward-gdt"] < printed["foba-gdt"]).all()
    assert (printed["foba-gdt"] < printed["forward-obj"]).all()
    assert (printed["forward-obj"] <= printed["foba-obj"]).all()


@pytest.fixture
def few_words(monkeypatch):
    monkeypatch.setattr(time_table, "WORDS", 60)


@pytest.mark.usefixtures("few_words")
def test_what_is_run():
    rows = run_part("CRF", 3, 1, 1) + run_part("logistic", 5, 1, 1)
    assert [row["method"] for row in rows] == [*TITLES, *TITLES]
    for row in rows:
        assert 1 <= row["solved"] <= row["candidates"]
        assert row["candidates"] == {"CRF": 56, "logistic": 500}[row["model"]]
        if row["model"] == "CRF":
            assert row["features"] == 3
        if row["method"].endswith("gdt"):  # a gradient knows every candidate
            assert row["solved"] == row["candidates"]
    obj = [row for row in rows if row["model"] == "logistic" and row["method"].endswith("obj")]
    assert all(row["solved"] < 50 for row in obj)


@pytest.mark.usefixtures("few_words")
def test_the_quickest_run_counts(monkeypatch):
    monkeypatch.setattr(time_table, "repeat", lambda run, number, repeat: [5.0, 2.0, 3.0])
    assert {row["seconds"] for row in run_part("CRF", 2, 1, 3)} == {2.0}


def made_up(times, models=("logistic", "CRF"), seeds=3):
    """Rows with so many seconds for each method; one seed is slow, which a median overlooks."""
    rows = [
        {
            "model": model,
            "sparsity": k,
            "seed": seed,
            "method": method,
            "seconds": seconds * (100.0 if seed == 1 else 1.0),
            "steps": k,
            "features": k,
            "solved": 2.5,
            "candidates": 500,
        }
        for model in models
        for k in list(PRINTED[model])[:2]
        for seed in range(seeds)
        for method, seconds in zip(TITLES, times, strict=True)
    ]
    return pd.DataFrame(rows)


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
    alike = made_up((1.0, 1.0, 20.0, 20.0), ["logistic"])
    dearer = made_up((1.0, 1.0, 40.0, 20.0), ["CRF"])
    assert section(pd.concat([alike, dearer])).claims[-1].agrees is True


def test_the_section_has_both_tables_and_takes_one_model(tmp_path):
    rows = made_up((0.01, 0.005, 0.02, 0.02), ["CRF"])
    write_rows(rows.to_dict("records"), tmp_path / "rows.csv")
    rows = read_rows(tmp_path / "rows.csv")
    assert seconds_of(rows).loc[("CRF", 10), "foba-gdt"] == 0.01
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
        "logistic, 5 features",
        "logistic, 14 features",
        "CRF, 10 features",
    ]
