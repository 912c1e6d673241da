"""`forback bench`: who may take part, whether ratios are right, and what is written."""

import csv
import os
import socket
import sys
import time
from dataclasses import replace
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from experiments.bench import make_plan
from experiments.choices import Choice
from experiments.contestants import CONTESTANTS, Contestant, entrants, make_objective
from experiments.growth import GrowthPoint, fit, growth
from experiments.race import Rules, Runner, pinned, race, summarise
from experiments.worker import LONG_ENOUGH, Judgement, Reading, peak_memory, serve, timed
from experiments.workloads import (
    WORKLOADS,
    Aim,
    Size,
    Unavailable,
    Workload,
    autoregressive,
    faster_than,
    synthetic,
)
from scipy.sparse import csc_array
from typer.testing import CliRunner

from experiments import growth as growth_module
from experiments import machine, output
from experiments.__main__ import make_app
from support.fakes import QUITTER, RAISER, SLEEPER, STRANGER, TINY

QUIET = [].append


def answers(workload, contestant, *requests):
    """What a worker answers, without a process."""
    ours, theirs = Pipe()
    for request in (*requests, ""):
        ours.send(request)
    serve(theirs, workload, contestant)
    found = []
    while ours.poll():
        found.append(ours.recv())
    return found


def finished(name, seconds=(), floors=(), status="", is_late=False):
    """The outcome of a runner, made up."""
    return SimpleNamespace(
        name=name,
        timed=[Reading(*pair) for pair in zip(seconds, floors, strict=True)],
        judgement=Judgement(features=3, value=1.0, X_bytes=1600),
        extra=800,
        status=status,
        is_late=is_late,
        limit=120.0,
    )


# Workloads and contestants ----------------------------------------------------------------------


def test_every_workload_names_contestants_that_exist():
    for name, workload in WORKLOADS.items():
        assert workload.name == name
        assert set(workload.contestants) <= set(CONTESTANTS) - {"forback"}
        present = {"forback", "floor", *workload.contestants}
        rows = [aim.row for aim in workload.aims]
        assert len(set(rows)) == len(rows)
        assert {side for aim in workload.aims for side in (aim.subject, aim.against)} <= present
        assert workload.aims
        assert not workload.quick().aims


@pytest.mark.parametrize("name", [name for name in WORKLOADS if name not in ("a9a", "w8a")])
def test_small_workloads_are_what_they_say(name):
    workload = WORKLOADS[name].quick()
    problem, again = workload.problem(), workload.problem()
    assert problem.X.shape == (workload.size.n, workload.size.p)
    assert np.array_equal(problem.y, again.y)
    p = workload.size.p
    candidates = {"chain": 14 * p, "chain-gradient": 14 * p, "graph": p * (p - 1) // 2}
    assert make_objective(problem).n_candidates == candidates.get(workload.loss, p)


def test_real_data_is_skipped_with_a_reason_where_it_is_absent(monkeypatch, tmp_path):
    monkeypatch.setenv("FORBACK_DATA", str(tmp_path))
    with pytest.raises(Unavailable, match=r"^a9a is absent: set FORBACK_DATA"):
        WORKLOADS["a9a"].problem()


def test_real_data_where_it_is_present(data_folder, monkeypatch):
    monkeypatch.setenv("FORBACK_DATA", str(data_folder))
    problem = WORKLOADS["a9a"].quick().problem()
    assert problem.X.shape == (2000, 123)
    assert set(problem.y) == {-1.0, 1.0}


def test_neighbours_of_an_autoregressive_design_are_correlated():
    X = autoregressive(np.random.default_rng(0), 4000, 6)
    correlations = np.corrcoef(X, rowvar=False)
    assert np.allclose(correlations, 0.9 ** abs(np.subtract.outer(range(6), range(6))), atol=0.08)


@pytest.mark.parametrize(("name", "peer"), [("abess-k", "abess"), ("skscope-omp", "skscope")])
def test_a_missing_peer_is_skipped_with_the_line_to_type(name, peer, monkeypatch):
    for module in (peer, "jax"):
        monkeypatch.setitem(sys.modules, module, None)
    (answer,) = answers(TINY, CONTESTANTS[name])
    assert answer == f'{peer} is not installed: pip install "forback[experiments]"'


def easy(loss):
    return Workload("easy", loss, synthetic, Size(300, 12, 3), Size(300, 12, 3), (), (), 1e-3)


def assert_good(workload, judgement):
    objective = make_objective(workload.problem())
    empty, truth = (objective.minimise(np.arange(size)).value for size in (0, 3))
    assert judgement.features == 3
    assert empty - judgement.value > 0.8 * (empty - truth)


IN_JAX = ["forback-jax", "skscope-omp", "skscope-foba"]


@pytest.mark.parametrize("name", [name for name in CONTESTANTS if name not in IN_JAX])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_contestants_choose_columns_that_matter(name, loss):
    status, *rest = answers(easy(loss), CONTESTANTS[name], "judge")
    if status:
        pytest.skip(status)
    assert_good(easy(loss), *rest)


@pytest.mark.parametrize(
    ("workload", "names"),
    [
        ("crf-gradient", ["forback", "crfsuite-iterations"]),
        ("crf-sensors", ["forback", "crfsuite-l1"]),
    ],
)
def test_contestants_for_chains_do_their_task(workload, names):
    for name in names:
        status, *rest = answers(WORKLOADS[workload].quick(), CONTESTANTS[name], "judge")
        if status:
            pytest.skip(status)
        (judgement,) = rest
        if workload == "crf-gradient":
            assert (judgement.features, judgement.value) == (None, None)
        else:
            assert judgement.features >= 5
            assert judgement.value < 0.1  # before any sensor is in it is 0.12


@pytest.mark.parametrize("name", IN_JAX)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_contestants_in_jax_choose_columns_that_matter(name, loss):
    """In a process of their own: with JAX in this one, other tests could not fork."""
    runner = Runner(easy(loss), CONTESTANTS[name], Rules())
    try:
        if runner.status:
            pytest.skip(runner.status)
        runner.prepare()
        assert_good(easy(loss), runner.judgement)
    finally:
        runner.stop()


@pytest.mark.parametrize("name", [*IN_JAX, "sklearn-omp", "l1-path"])
def test_contestants_say_what_they_cannot_do(name):
    problem = WORKLOADS["poisson"].quick().problem()
    with pytest.raises(Unavailable, match="it has no poisson loss"):
        CONTESTANTS[name].prepare(problem)
    with pytest.raises(Unavailable, match="it needs a dense X"):
        CONTESTANTS[name].prepare(replace(problem, X=csc_array(problem.X), loss="squared"))


# The worker and the race ------------------------------------------------------------------------


def test_a_worker_judges_weighs_and_times():
    ready, judgement, extra, reading = answers(
        TINY, CONTESTANTS["forback"], "judge", "weigh", "time"
    )
    assert ready == ""
    problem = TINY.problem()
    support = CONTESTANTS["forback"].prepare(problem)().support
    value = make_objective(problem).minimise(support).value
    assert judgement == Judgement(3, value, problem.X.nbytes)
    assert extra is None or extra >= 0
    assert reading.seconds > 0 < reading.floor


def test_memory_is_that_of_the_work():
    held = peak_memory(lambda: np.ones(10**7))
    assert held is None or 0.9 * 8e7 < held < 1.2 * 8e7


def test_the_floor_can_count_additions(monkeypatch):
    passes = []
    monkeypatch.setattr("experiments.worker.LONG_ENOUGH", 0.0)
    monkeypatch.setattr("experiments.worker.products", lambda X, r, n: passes.append(n))
    choice = Choice(np.arange(3), additions=5)
    busy = Contestant("forback", lambda problem: lambda: choice)
    for per_addition in (False, True):
        answers(replace(TINY, floor_per_addition=per_addition), busy, "judge", "time")
    assert passes == [3, 5]


def test_what_is_short_is_repeated():
    runs = []
    seconds = timed(lambda: runs.append(time.sleep(0.03)))
    assert len(runs) >= 2
    assert 0.03 <= seconds <= 0.2
    assert len(runs) * seconds >= LONG_ENOUGH


def test_a_worker_says_why_it_cannot():
    assert answers(TINY, RAISER, "judge") == ["", "RuntimeError: no luck today"]
    assert answers(TINY, STRANGER) == ["not from here"]


def test_a_race_reports_everybody_and_outlives_who_dies():
    lines = []
    contestants = [*entrants(TINY.contestants), QUITTER]
    rows = {row.contestant: row for row in race(TINY, contestants, Rules(2, 1), lines.append)}
    assert list(rows) == ["forback", "sklearn-omp", "quitter", "floor"]
    assert rows["forback"].over_forback == 1.0
    assert rows["forback"].objective == pytest.approx(rows["sklearn-omp"].objective)
    assert rows["sklearn-omp"].verdict.met is False
    assert rows["floor"].verdict.met is True
    assert rows["quitter"].status == "its process died (exit code 3)"
    assert "  quitter: its process died (exit code 3)" in lines
    assert lines[-1] == "  round 2 of 2"


def test_a_contestant_that_is_late_is_ended():
    (late,) = race(TINY, [SLEEPER], Rules(1, 1, limit=0.5), QUIET)
    assert late.seconds is None
    assert late.stopped_at == 0.5
    assert late.status == "stopped after 0.5 s"


def test_threads_are_pinned_inside_only():
    before = dict(os.environ)
    with pinned(3):
        assert os.environ["OPENBLAS_NUM_THREADS"] == os.environ["NUMBA_NUM_THREADS"] == "3"
    assert dict(os.environ) == before


# Figures and files ------------------------------------------------------------------------------


def made_up_rows():
    aims = (*faster_than(floor=2.5, peer=0.5, late=0.1), Aim("forback-obj", "forback", 2.5))
    return summarise(
        replace(TINY, aims=aims),
        [
            finished("forback", (1.0, 4.0, 2.0), (1.0, 1.0, 1.0)),
            finished("forback-obj", (3.0, 4.0, 6.0), (1.0, 1.0, 1.0)),
            finished("peer", (4.0, 8.0, 6.0), (2.0, 2.0, 2.0)),
            finished("late", status="stopped after 120 s", is_late=True),
            finished("absent", status="not installed"),
        ],
    )


def test_ratios_are_medians_over_rounds():
    rows = {row.contestant: row for row in made_up_rows()}
    assert rows["peer"].over_forback == 3.0  # of 4, 2, 3; not the ratio of the medians
    assert rows["peer"].over_floor == 3.0
    assert rows["peer"].extra_over_X == 0.5
    assert rows["peer"].verdict.ratio == pytest.approx(1 / 3)
    assert rows["peer"].verdict.met is True
    assert rows["forback-obj"].verdict.ratio == 3.0
    assert rows["forback-obj"].verdict.met is False
    assert rows["floor"].verdict.ratio == 2.0
    assert rows["floor"].over_forback == 0.5
    assert rows["late"].verdict.is_bound
    assert rows["late"].verdict.ratio == 2.0 / 120.0
    assert rows["late"].verdict.met is True
    assert rows["absent"].verdict is None


def test_a_bound_that_proves_nothing_is_undecided():
    rows = summarise(
        replace(TINY, aims=faster_than(late=0.001)),
        [finished("forback", (2.0,), (1.0,)), finished("late", status="stopped", is_late=True)],
    )
    assert rows[1].verdict.met is None
    assert "undecided" in output.results_table(rows).rows[1][-1]


def test_notes_say_who_reached_a_lower_objective():
    base, *_, floor = made_up_rows()
    slow = replace(base, contestant="slow", over_forback=3.0, objective=0.9)
    fast = replace(base, contestant="fast", over_forback=0.5, objective=0.8)
    same = replace(base, contestant="same", over_forback=2.0, objective=1.0 - 1e-9)
    first, *lines = output.notes([base, slow, fast, same, floor], aims=3)
    assert first == "Aims met: 1 of 3; not judged: 2."
    assert lines == [
        "tiny: slow takes 3 times as long as forback but reaches a lower objective, 0.9 against 1.",
        "tiny: fast takes 0.5 of forback's time and reaches a lower objective, 0.8 against 1.",
    ]


def test_files_hold_what_the_table_shows(tmp_path):
    rows = made_up_rows()
    output.write_results(rows, tmp_path)
    with (tmp_path / "results.csv").open(newline="") as stream:
        records = {record["contestant"]: record for record in csv.DictReader(stream)}
    assert float(records["peer"]["over_forback"]) == 3.0
    assert records["peer"]["aim"] == "forback / peer"
    assert records["peer"]["aim_met"] == "True"
    assert records["late"]["stopped_at"] == "120.0"
    assert output.write_figure(rows, tmp_path) == "results.png"
    assert (tmp_path / "results.png").read_bytes().startswith(b"\x89PNG")


def test_a_figure_without_matplotlib_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "forback\[report\]"'):
        output.write_figure(made_up_rows(), tmp_path)


def test_importing_is_timed_beyond_what_it_needs(monkeypatch):
    assert len(machine._import_seconds(["import json", "pass"])) == 2
    turns = iter([[1.0, 0.01, 0.2], [2.0, 0.03, 0.4]])
    monkeypatch.setattr(machine, "_import_seconds", lambda statements: next(turns))
    assert machine.import_cost(repeats=2) == (
        "dependencies 1.50 s; `import forback` adds 0.020 s, all its names 0.320 s"
    )


@pytest.fixture
def no_imports(monkeypatch):
    """Spare the new interpreters that time imports."""
    monkeypatch.setattr(machine, "import_cost", lambda repeats: "not timed")


@pytest.mark.usefixtures("no_imports")
def test_the_description_names_no_host_and_no_path():
    text = " ".join(machine.describe("forback bench", Rules(rounds=1)).values())
    assert socket.gethostname() not in text
    assert str(Path.cwd()) not in text
    assert sys.prefix not in text
    for word in ("numpy", "scikit-learn", "cores", "not timed"):
        assert word in text


# Growth -----------------------------------------------------------------------------------------


def test_exponents_are_those_of_the_times():
    points = [
        GrowthPoint("squared", "n", Size(n, 10, 2), 3e-6 * n**1.5, 1e-6 * n)
        for n in (1000, 2000, 4000)
    ]
    found = fit(points, limit=1.05)
    assert found.exponent == pytest.approx(1.5)
    assert found.floor_exponent == pytest.approx(1.0)
    assert found.met is False
    assert output.growth_table([found]).rows[0] == [
        "squared",
        "n",
        "1.50",
        "1.00",
        "1.05",
        "not met",
    ]
    assert fit(points, limit=None).met is None


def test_growth_doubles_one_size_at_a_time(monkeypatch, tmp_path):
    monkeypatch.setattr(growth_module, "SMALL_BASES", {"p": Size(30, 10, 2), "k": Size(30, 20, 1)})
    points, exponents = growth(Rules(rounds=1, threads=1), True, QUIET)
    assert [(e.loss, e.axis) for e in exponents] == [
        (loss, axis) for loss in ("squared", "logistic") for axis in ("p", "k")
    ]
    assert [point.size.p for point in points[:4]] == [10, 20, 40, 80]
    assert [point.size.k for point in points[4:8]] == [1, 2, 4, 8]
    output.write_growth(points, tmp_path)
    assert (tmp_path / "growth.csv").read_text().count("\n") == 1 + 16


# The command line -------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_imports")
def test_the_command_runs_a_quick_workload(tmp_path):
    out = tmp_path / "results"
    arguments = ["bench", "--quick", "--only", "obj-logistic", "--rounds", "1", "--no-growth"]
    result = CliRunner().invoke(make_app(), [*arguments, "--out", str(out)])
    assert result.exit_code == 0, result.output
    for word in ("[1/1] obj-logistic", "round 1 of 1", "forback-obj", "Written: results.csv"):
        assert word in result.output
    assert sorted(file.name for file in out.iterdir()) == [
        "results.csv",
        "results.md",
        "results.png",
    ]
    text = (out / "results.md").read_text()
    assert "`forback bench --quick --only obj-logistic --rounds 1 --threads 2 --no-growth`" in text
    assert str(tmp_path) not in text


def test_the_command_lists_and_refuses():
    listed = CliRunner().invoke(make_app(), ["bench", "--list"]).output
    assert all(name in listed for name in WORKLOADS)
    refused = CliRunner().invoke(make_app(), ["bench", "--only", "nothing"])
    assert refused.exit_code == 2
    with pytest.raises(ValueError, match="no workload is called 'nothing'; there are ls-gaussian"):
        make_plan(["nothing"], False, True, Rules())
