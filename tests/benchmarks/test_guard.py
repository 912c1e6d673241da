"""The guard of speed: what it times, and when it says "slower"."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUARD = ROOT / "benchmarks" / "guard"


def load(name):
    spec = importlib.util.spec_from_file_location(name, GUARD / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def guard(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    return load("run")


def test_every_workload_is_listed(guard):
    assert guard.names() == list(load("workloads").WORKLOADS)


def test_three_of_four_pairs_must_agree(guard):
    quiet, slower = [1.0], [1.1]
    assert not guard.is_slower(guard.summary(15 * quiet), 1.05)
    assert not guard.is_slower(guard.summary(10 * slower + 5 * quiet), 1.05)
    assert guard.is_slower(guard.summary(12 * slower + 3 * quiet), 1.05)
    assert guard.is_slower(guard.summary(15 * slower), 1.05)


def test_a_tree_is_timed_in_a_process_of_its_own(guard):
    assert guard.in_new_process(ROOT, "least-squares-small", span=0.01) > 0.0
    with pytest.raises(SystemExit, match="nothing failed under"):
        guard.in_new_process(ROOT, "nothing", span=0.01)


def test_the_check_of_indices_is_measured(guard):
    assert guard.index_check(n=2000, p=100) > 0.0
