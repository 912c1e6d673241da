"""The named problems: what they are made of, and what is aimed at."""

import numpy as np
import pytest

from benchmarks.contestants import discover, entrants
from benchmarks.contract import Unavailable, make_objective
from benchmarks.workloads import WORKLOADS, Size, ar, correlated


def test_every_workload_of_a_contestant_exists_and_every_aim_has_its_own_row():
    named = {name for contestant in discover().values() for name in contestant.workloads}
    assert named == set(WORKLOADS)
    for name, workload in WORKLOADS.items():
        assert workload.name == name
        contestants = entrants(name)
        present = {"floor", *(contestant.name for contestant in contestants)}
        aims = workload.aims(contestants)
        assert aims
        assert {side for aim in aims for side in (aim.subject, aim.against)} <= present
        assert len({aim.row for aim in aims}) == len(aims)


#: The others take longer, or need files; contestants and experiments try them.
QUICK = [name for name in WORKLOADS if name not in ("a9a", "w8a", "crf-gradient", "crf-sensors")]


@pytest.mark.parametrize("name", QUICK)
def test_small_workloads_are_what_they_say(name):
    workload = WORKLOADS[name].quick()
    problem, again = workload.problem(), workload.problem()
    p = workload.size.p
    assert problem.X.shape == (workload.size.n, p)
    assert np.array_equal(problem.y, again.y)
    n_candidates = p * (p - 1) // 2 if workload.loss == "graph" else p
    assert make_objective(problem).n_candidates == n_candidates


def test_real_data_is_skipped_with_a_reason_where_it_is_absent(monkeypatch, tmp_path):
    def no_network(*arguments, **options):
        raise OSError("tests do not download")

    monkeypatch.setattr("forback.datasets.download.urlopen", no_network)
    monkeypatch.setenv("FORBACK_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(Unavailable, match=r"^a9a is absent: set FORBACK_DATA"):
        WORKLOADS["a9a"].problem()


def test_real_data_where_it_is_present(data_folder, monkeypatch):
    monkeypatch.setenv("FORBACK_DATA", str(data_folder))
    problem = WORKLOADS["a9a"].quick().problem()
    assert problem.X.shape == (2000, 123)
    assert set(problem.y) == {-1.0, 1.0}


def test_columns_are_as_correlated_as_the_name_says():
    size = Size(4000, 6, 2)
    for make, rho in ((correlated, 0.0), (ar, 0.9)):
        X, _ = make(np.random.default_rng(0), size, "squared")
        expected = rho ** abs(np.subtract.outer(range(6), range(6)))
        assert np.allclose(np.corrcoef(X, rowvar=False), expected, atol=0.08)


def test_responses_are_of_the_kind_that_the_loss_wants():
    rng = np.random.default_rng(0)
    size = Size(2000, 5, 4)
    _, classes = correlated(rng, size, "logistic")
    assert set(classes) == {0.0, 1.0}
    assert 0.4 < classes.mean() < 0.6
    _, counts = correlated(rng, size, "poisson")
    assert np.array_equal(counts, np.round(counts))
    assert 0.5 < counts.mean() < 2.0
