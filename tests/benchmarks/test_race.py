"""Contestants in processes of their own, taking turns: whether ratios are right."""

import os
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.contestants import discover
from benchmarks.contract import Aim, Choice, Contestant, make_objective
from benchmarks.runner.race import Rules, _turns, pinned, race, summarise
from benchmarks.runner.worker import Judgement, Reading
from support.fakes import QUITTER, RAISER, SLEEPER, STRANGER, TINY, finished, made_up_rows
from support.workers import answers

CONTESTANTS = discover()


# Workers ----------------------------------------------------------------------------------------


def test_a_worker_judges_and_times():
    ready, judgement, reading = answers(TINY, CONTESTANTS["forback"], "judge", "time")
    assert ready == ""
    problem = TINY.problem()
    support = CONTESTANTS["forback"].prepare(problem)().support
    value = make_objective(problem).minimise(support).value
    assert judgement == Judgement(3, value, problem.X.nbytes)
    assert isinstance(reading, Reading)


def test_the_floor_can_count_additions(monkeypatch):
    passes = []
    monkeypatch.setattr("benchmarks.runner.worker.timed", lambda work: work())
    monkeypatch.setattr("benchmarks.runner.worker.products", lambda X, r, n: passes.append(n))
    choice = Choice(np.arange(3), additions=5)
    busy = Contestant("forback", lambda problem: lambda: choice)
    for per_addition in (False, True):
        answers(replace(TINY, floor_per_addition=per_addition), busy, "judge", "time")
    assert passes == [3, 5]


def test_a_worker_says_why_it_cannot():
    assert answers(TINY, RAISER, "judge") == ["", "RuntimeError: no luck today"]
    assert answers(TINY, STRANGER) == ["not from here"]


# Races ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_race_reports_everybody_and_outlives_who_dies():
    lines = []
    aims = [Aim("forback", "floor", 1e9)]
    found = race(TINY, [CONTESTANTS["forback"], QUITTER], aims, Rules(2, 1), lines.append)
    rows = {row.contestant: row for row in found}
    assert list(rows) == ["forback", "quitter", "floor"]
    assert rows["forback"].over_forback == 1.0
    assert rows["forback"].features == 3
    assert rows["floor"].verdict.is_met is True
    assert rows["quitter"].status == "its process died (exit code 3)"
    assert "  quitter: its process died (exit code 3)" in lines
    assert lines[-1] == "  round 2 of 2"


def test_the_first_is_always_first_and_the_others_rotate():
    turns = [_turns(["forback", "a", "b", "c"], number) for number in range(4)]
    assert turns[0] == turns[3] == ["forback", "a", "b", "c"]
    assert turns[1] == ["forback", "b", "c", "a"]
    assert _turns(["forback"], 5) == ["forback"]


@pytest.mark.slow
def test_a_contestant_that_is_late_is_ended():
    (late,) = race(TINY, [SLEEPER], [], Rules(1, 1, limit=0.5), [].append)
    assert late.seconds is None
    assert late.stopped_at == 0.5
    assert late.status == "stopped after 0.5 s"


def test_threads_are_pinned_inside_only():
    before = dict(os.environ)
    with pinned(3):
        assert os.environ["OPENBLAS_NUM_THREADS"] == os.environ["NUMBA_NUM_THREADS"] == "3"
    assert dict(os.environ) == before


# Figures ----------------------------------------------------------------------------------------


def test_ratios_are_medians_over_rounds():
    rows = {row.contestant: row for row in made_up_rows()}
    assert rows["peer"].over_forback == 3.0  # of 4, 2, 3; not the ratio of the medians
    assert rows["peer"].over_floor == 3.0
    assert rows["peer"].extra_over_X == 0.5
    assert rows["peer"].verdict.ratio == pytest.approx(1 / 3)
    assert rows["peer"].verdict.is_met is True
    assert rows["forback-obj"].verdict.ratio == 3.0
    assert rows["forback-obj"].verdict.is_met is False
    assert rows["floor"].verdict.ratio == 2.0
    assert rows["floor"].over_forback == 0.5
    assert rows["late"].verdict.is_bound
    assert rows["late"].verdict.ratio == 2.0 / 120.0
    assert rows["late"].verdict.is_met is True
    assert rows["absent"].verdict is None


def test_a_bound_that_proves_nothing_is_undecided():
    rows = summarise(
        "tiny",
        [Aim("forback", "late", 0.001)],
        [finished("forback", (2.0,), (1.0,)), finished("late", status="stopped", is_late=True)],
    )
    assert rows[1].verdict.is_met is None
