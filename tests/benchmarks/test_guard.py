"""The guard of speed: when it says "slower", and that it runs under another tree."""

import ast
import sys
from pathlib import Path

import pytest

from benchmarks.guard.__main__ import in_new_process, index_check, is_slower, summary
from benchmarks.guard.workloads import WORKLOADS

ROOT = Path(__file__).resolve().parents[2]


def test_three_of_four_pairs_must_agree():
    quiet, slower = [1.0], [1.1]
    assert not is_slower(summary(15 * quiet), 1.05)
    assert not is_slower(summary(10 * slower + 5 * quiet), 1.05)
    assert is_slower(summary(12 * slower + 3 * quiet), 1.05)
    assert is_slower(summary(15 * slower), 1.05)


def test_jobs_use_public_names_only():
    """An older forback has other rooms; its public names are the same."""
    tree = ast.parse((ROOT / "benchmarks" / "guard" / "workloads.py").read_text(encoding="utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {name for name in modules if name.startswith(("forback", "benchmarks", "experiments"))}
    assert ours == {"forback", "forback.objectives"}


@pytest.mark.slow
def test_a_tree_is_timed_in_a_process_of_its_own():
    assert in_new_process(ROOT, "least-squares-small", span=0.01) > 0.0


def test_a_job_that_fails_is_named(monkeypatch):
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(SystemExit, match="huber failed under"):
        in_new_process(ROOT, "huber")


def test_every_job_makes_something_to_time():
    assert len(WORKLOADS) > 20
    assert callable(WORKLOADS["least-squares-small"]())


def test_the_check_of_indices_is_measured():
    assert index_check(n=2000, p=100) > 0.0
