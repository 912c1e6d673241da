"""What is written about a run, how time grows, and the command."""

import os
import socket
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.contract import Aim
from benchmarks.runner import growth as growth_module
from benchmarks.runner import machine, output
from benchmarks.runner import plan as plan_module
from benchmarks.runner.growth import GrowthPoint, fit, growth
from benchmarks.runner.plan import make_plan
from benchmarks.runner.race import Rules, Verdict
from benchmarks.workloads import WORKLOADS, Size
from support.fakes import made_up_rows


@pytest.fixture
def rows():
    return made_up_rows()


@pytest.fixture
def results(rows):
    return output.results_frame(rows)


# Tables and notes -------------------------------------------------------------------------------


def test_the_table_says_what_came_of_aims(rows):
    open_end = Verdict(Aim("forback", "late", 0.001), 0.02, True, None)
    undecided = [replace(row, verdict=open_end) if row.verdict is None else row for row in rows]
    table = output.results_table(output.results_frame(undecided))
    cells = {line[1]: line for line in table.rows}
    assert cells["peer"][2:4] == ["6", "3"]
    assert cells["peer"][-1] == "forback / peer = 0.333, aim 0.5: met"
    assert cells["forback-obj"][-1] == "forback-obj / forback = 3, aim 2.5: not met"
    assert cells["late"][2] == "> 120"
    assert cells["late"][-1] == "stopped after 120 s; forback / late < 0.0167, aim 0.1: met"
    assert cells["absent"][-1] == "not installed; forback / late < 0.02, aim 0.001: undecided"
    assert cells["forback"][-1].endswith("undecided")


def test_notes_say_who_reached_a_lower_objective(rows):
    base, *_, floor = rows
    slow = replace(base, contestant="slow", over_forback=3.0, objective=0.9)
    fast = replace(base, contestant="fast", over_forback=0.5, objective=0.8)
    same = replace(base, contestant="same", over_forback=2.0, objective=1.0 - 1e-9)
    frame = output.results_frame([base, slow, fast, same, floor])
    first, *lines = output.notes(frame, n_aims=3)
    assert first == "Aims met: 1 of 3; not judged: 2."
    assert lines == [
        "tiny: slow takes 3 times as long as forback but reaches a lower objective, 0.9 against 1.",
        "tiny: fast takes 0.5 of forback's time and reaches a lower objective, 0.8 against 1.",
    ]


def test_files_hold_what_the_table_shows(results, tmp_path):
    output.write_results(results, tmp_path)
    records = pd.read_csv(tmp_path / "results.csv").set_index("contestant")
    assert records.loc["peer", "over_forback"] == 3.0
    assert records.loc["peer", "aim"] == "forback / peer"
    assert records.loc["peer", "aim_met"] in (True, "True")
    assert records.loc["late", "stopped_at"] == 120.0
    assert "tiny,peer,,,6.0,3.0,3.0,1.0,3,800,0.5," in (tmp_path / "results.csv").read_text()
    assert output.write_figure(results, tmp_path) == "results.png"
    assert (tmp_path / "results.png").read_bytes().startswith(b"\x89PNG")


def test_the_columns_are_those_of_the_committed_results(results):
    committed = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
    assert list(results) == list(pd.read_csv(committed / "results.csv"))


# The machine ------------------------------------------------------------------------------------


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
    text = " ".join(machine.describe("python -m benchmarks", Rules(rounds=1)).values())
    assert socket.gethostname() not in text
    assert os.getcwd() not in text
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
    assert found.is_met is False
    cells = output.growth_table([found]).rows[0]
    assert cells == ["squared", "n", "1.50", "1.00", "1.05", "not met"]
    assert fit(points, limit=None).is_met is None


def one_second(work):
    """In the place of a clock."""
    work()
    return 1.0


def test_one_size_doubles_at_a_time(monkeypatch, tmp_path):
    monkeypatch.setattr(growth_module, "timed", one_second)
    points = [
        *growth_module.study("squared", "p", Size(30, 10, 2), repeats=1),
        *growth_module.study("logistic", "k", Size(30, 20, 1), repeats=1),
    ]
    assert [point.size.p for point in points] == [10, 20, 40, 80, 20, 20, 20, 20]
    assert [point.size.k for point in points] == [2, 2, 2, 2, 1, 2, 4, 8]
    output.write_growth(points, tmp_path)
    written = pd.read_csv(tmp_path / "growth.csv")
    committed = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "growth.csv"
    assert list(written) == list(pd.read_csv(committed))
    assert written["k"].tolist() == [2, 2, 2, 2, 1, 2, 4, 8]


class Inline:
    """In the place of a process."""

    def __init__(self, *arguments, **options):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def submit(self, function, *arguments):
        return SimpleNamespace(result=lambda: function(*arguments))


def test_every_axis_of_every_loss_is_studied(monkeypatch):
    monkeypatch.setattr(growth_module, "timed", one_second)
    monkeypatch.setattr(growth_module, "ProcessPoolExecutor", Inline)
    monkeypatch.setattr(growth_module, "SMALL_BASES", {"p": Size(30, 10, 2), "k": Size(30, 20, 1)})
    points, exponents = growth(Rules(rounds=1, threads=1), True, [].append)
    studies = [(loss, axis) for loss in ("squared", "logistic") for axis in ("p", "k")]
    assert [(one.loss, one.axis) for one in exponents] == studies
    assert len(points) == 16


# The command ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_imports")
def test_the_command_writes_everything(rows, tmp_path, monkeypatch):
    def no_race(workload, contestants, aims, rules, say):
        assert (workload.size, aims, rules) == (workload.small, [], Rules(1, 2))
        assert [contestant.name for contestant in contestants] == ["forback", "forback-obj"]
        return rows

    monkeypatch.setattr(plan_module, "race", no_race)
    out = tmp_path / "results"
    arguments = ["--quick", "--only", "obj-logistic", "--rounds", "1", "--no-growth"]
    result = CliRunner().invoke(app, [*arguments, "--out", str(out)])
    assert result.exit_code == 0, result.output
    for word in ("[1/1] obj-logistic", "forback-obj", "Written: results.csv"):
        assert word in result.output
    written = ["results.csv", "results.md", "results.png"]
    assert sorted(file.name for file in out.iterdir()) == written
    text = (out / "results.md").read_text()
    command = "--quick --only obj-logistic --rounds 1 --threads 2 --no-growth"
    assert f"`python -m benchmarks {command}`" in text
    assert str(tmp_path) not in text


def test_the_command_lists_and_refuses(tmp_path, monkeypatch):
    listed = CliRunner().invoke(app, ["--list"]).output
    assert all(name in listed for name in WORKLOADS)
    refused = CliRunner().invoke(app, ["--only", "nothing"])
    assert refused.exit_code == 2
    with pytest.raises(ValueError, match="no workload is called 'nothing'; there are ls-gaussian"):
        make_plan(["nothing"], False, True, Rules())
    file = tmp_path / "file"
    file.touch()
    assert CliRunner().invoke(app, ["--quick", "--out", str(file / "below")]).exit_code == 2
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    refused = CliRunner().invoke(app, ["--quick", "--out", str(tmp_path)])
    assert refused.exit_code == 2
    assert 'pip install "forback[report]"' in " ".join(refused.output.replace("│", "").split())
