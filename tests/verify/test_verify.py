"""A small sample of every part of `make verify`; that parts notice, and count, what is wrong."""

from pathlib import Path

import numpy as np
import pytest

from hostile.harness import Skip
from verify import refined, subsets, thresholds
from verify.__main__ import PARTS, main
from verify.part import Part

RESULTS = Path(__file__).parent / "results.md"

#: Cases of every part that `make test` tries. The attacks have a sample of their own.
SAMPLE = {"reference": 15, "subsets": 12, "refined": 4, "thresholds": 6, "lemmas": 4, "contract": 6}


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_every_part(name):
    tally = PARTS[name].run(SAMPLE[name], seed=10**6)
    assert tally.tried == SAMPLE[name]
    assert tally.wrong == []
    assert sum(tally.skipped.values()) < SAMPLE[name] // 2


def sometimes_wrong(rng):
    draw = rng.random()
    if draw < 0.2:
        raise Skip("too small")
    assert draw < 0.8, "too large"
    return [{"draw": draw}]


def never_many(rows):
    return f"{len(rows)} rows", ["too many rows"] if len(rows) > 5 else []


def test_what_is_wrong_is_counted_with_its_seed_and_can_be_had_again():
    part = Part("some", "Draws.", 100, sometimes_wrong, never_many)
    tally = part.run(40, seed=7)
    assert tally.tried == 40 == sum(tally.skipped.values()) + len(tally.wrong) - 1 + len(tally.rows)
    assert list(tally.skipped) == ["too small"]
    assert tally.table == f"{len(tally.rows)} rows"
    (seed, words), *_ = tally.wrong
    assert "AssertionError: too large" in words
    assert tally.wrong[-1] == (None, "too many rows")
    assert part.run(1, seed).wrong == [(seed, words)]


def test_a_warning_is_wrong():
    tally = Part("warns", "", 1, lambda rng: np.float64(1e308) * 10.0).run(1)
    assert "RuntimeWarning" in tally.wrong[0][1]


def test_false_claims_of_a_certificate_are_noticed(monkeypatch):
    """A best subset that is said to be worse than it is makes answers better than the best."""
    honest = subsets.enumerate_subsets

    def raised(*given):
        return {subset: value + 1e-3 for subset, value in honest(*given).items()}

    monkeypatch.setattr(subsets, "enumerate_subsets", raised)
    tally = subsets.SUBSETS.run(3)
    assert len(tally.wrong) == 3
    assert "not that of the reference" in tally.wrong[0][1]


def test_too_many_false_features_are_wrong():
    rows = [
        {"cell": ("squared", "foba-gdt", "noise alone"), "false": number < 40, "missed": False}
        for number in range(200)
    ]
    _, wrong = thresholds.summarise(rows)
    assert wrong == [
        "all, both, noise alone: noise was taken 40 times of 200",
        "squared, foba-gdt, noise alone: noise was taken 40 times of 200",
    ]
    _, wrong = thresholds.summarise(rows[30:])
    assert wrong == []


def reached(number, *last_misses):
    return {refine: number > last for refine, last in zip(refined.LEAST, last_misses, strict=True)}


def test_too_many_misses_are_wrong():
    rows = [
        {"family": "squared", "seed": n, "design": "ar", None: False, **reached(n, 7, 1)}
        for n in range(200)
    ]
    table, wrong = refined.summarise(rows)
    assert "| squared | 200 | 0.0% | 96.0% | 99.0% |" in table
    assert "squared 1 (ar, search)" in table
    assert wrong == []
    rows = [{**row, **reached(row["seed"], 10, 2)} for row in rows]
    assert refined.summarise(rows)[1] == [
        "squared: swap misses 11 of 200",
        "squared: search misses 3 of 200",
    ]


def test_the_command_writes_its_counts_and_ends_with_their_status(tmp_path, capsys, monkeypatch):
    out = tmp_path / "results.md"
    assert main(["reference", "--cases", "3", "--jobs", "1", "--out", str(out)]) == 0
    assert "reference: 3 tried, 0 skipped, 0 wrong" in capsys.readouterr().out
    assert "| 3 | 0 | 0 |" in out.read_text(encoding="utf-8")
    monkeypatch.setitem(PARTS, "some", Part("some", "Draws.", 100, sometimes_wrong))
    assert main(["some", "--scale", "0.2", "--jobs", "1", "--out", str(out)]) == 1
    assert "WRONG, seed" in capsys.readouterr().out
    assert "**wrong**: seed" in out.read_text(encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert "got nothing" in capsys.readouterr().err


def test_the_committed_results_are_of_every_part_and_nothing_is_wrong():
    rows = [line.split(" | ") for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    counts = {row[0].removeprefix("| "): row[3:6] for row in rows if len(row) == 7}
    assert set(PARTS) <= set(counts)
    for name in PARTS:
        tried, skipped, wrong = (int(cell.replace(",", "")) for cell in counts[name])
        assert tried >= 100
        assert skipped < tried // 2
        assert wrong == 0
