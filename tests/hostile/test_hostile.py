"""A small sample of the attacks, and whatever `make fuzz` has found so far."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hostile import fuzz, harness
from hostile.harness import ATTACKS, Case, attack, is_fine, kept_cases, refused, run_case

#: Seeds of every attack that `make test` tries.
SEEDS = range(12)

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_a_sample_of_every_attack(name):
    answers = [run_case(Case(name, seed)) for seed in SEEDS]
    assert [answer for answer in answers if not is_fine(answer)] == []
    assert answers.count(None) > len(SEEDS) // 3  # most have something to say


@pytest.mark.parametrize("case", kept_cases(), ids=lambda case: f"{case.attack}-{case.seed}")
def test_what_was_found_stays_mended(case):
    assert is_fine(run_case(case))


# The harness itself -----------------------------------------------------------------------------


def broken_attack(body):
    """Run an attack that does something it should not."""
    name = f"broken_{body.__name__}"
    body.__name__ = name
    attack(body)
    try:
        return run_case(Case(name, 0))
    finally:
        del ATTACKS[name]


def test_the_harness_notices():
    def wrong(rng):
        raise AssertionError("wrong")

    def warns(rng):
        np.float64(1e308) * 10.0

    def draws(rng):
        np.random.random()  # noqa: NPY002

    def litters(rng):
        Path("left").write_text("behind")

    def filters(rng):
        import warnings

        warnings.simplefilter("ignore")

    def hangs(rng):
        while True:
            pass

    assert "AssertionError: wrong" in broken_attack(wrong)
    assert "RuntimeWarning" in broken_attack(warns)
    assert "something global" in broken_attack(draws)
    assert "left behind" in broken_attack(litters)
    assert "filters" in broken_attack(filters)
    limit, harness.LIMIT = harness.LIMIT, 1
    try:
        assert "TimeoutError" in broken_attack(hangs)
    finally:
        harness.LIMIT = limit
    with pytest.raises(AssertionError, match="says too little"), refused(ValueError):
        raise ValueError("no")


def test_a_process_that_dies_is_a_finding_and_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "FOUND", tmp_path)
    worker = fuzz.Worker()
    worker.process.kill()
    answer = worker.run(Case("permutations", 0))
    assert "the process ended" in answer
    Case("permutations", 0).keep(answer)
    assert kept_cases() == [Case("permutations", 0)]
    assert worker.run(Case("permutations", 0)) is None
    worker.stop()


def test_the_command_counts_what_it_tried():
    done = subprocess.run(
        [sys.executable, "-m", "hostile.fuzz", "--runs", "6", "--only", "permutations",
         "--only", "saved_files", "--jobs", "1"],
        cwd=HERE.parent, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 tried, 0 skipped, 0 found" in done.stdout
