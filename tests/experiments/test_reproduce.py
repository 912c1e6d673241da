"""The run of experiments: what is kept, what is written, and what was committed."""

import json
import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from benchmarks.contract import Unavailable
from experiments import reproduce as module
from experiments.__main__ import app
from experiments.report.figures import Figure, Line, Panel, draw
from experiments.report.page import Claim, Section, markdown_page
from experiments.reproduce import NAMES, PREFACE, TITLE, chapters, reproduce, write_page
from experiments.study import Experiment, Part, read_rows
from forback.report.tables import Table

RESULTS = Path(__file__).resolve().parents[2] / "experiments" / "results"


@contextmanager
def silent(name, parts):
    yield iter(parts)


# A made-up experiment ----------------------------------------------------------------------------


class Toy:
    """An experiment of three parts that counts how often each is run."""

    def __init__(self):
        self.done = []
        self.broken = None

    def run(self, number):
        if self.broken == number:
            raise KeyboardInterrupt
        self.done.append(number)
        return [{"part": number, "value": 0.1 * number, "word": "a,b", "nothing": None}]

    def parts(self, quick):
        return [Part(f"part {n}", lambda n=n: self.run(n)) for n in range(1 if quick else 3)]

    def section(self, rows):
        line = Line("values", list(rows["part"]), list(rows["value"]))
        return Section(
            intro="Toys",
            comparison=f"{len(rows)} rows",
            claims=[Claim("they are one", f"they are {len(rows)}", len(rows) == 1)],
            figures=[Figure("toy", "A line", [Panel("toys", "part", "value", [line])])],
            tables=[Table("All", ["part"], [[str(part)] for part in rows["part"]])],
        )


@pytest.fixture
def toy(monkeypatch):
    made = Toy()
    experiment = Experiment("toy", "A toy", made.parts, made.section)
    monkeypatch.setattr(module, "find", lambda name: experiment)
    for place in ("experiments.reproduce.NAMES", "experiments.__main__.NAMES"):
        monkeypatch.setattr(place, ("toy",))
    return made


@pytest.fixture
def undrawn(monkeypatch):
    """Spare the drawing."""
    monkeypatch.setattr(module, "draw", lambda figure, folder: None)


def test_rows_files_figures_and_page(toy, tmp_path):
    assert reproduce(["toy"], tmp_path, quick=False, progress=silent) == ["toy"]
    expected = {"toy.csv", "toy.png", "toy.svg", "README.md", "runs.json"}
    assert {file.name for file in tmp_path.iterdir()} == expected
    last = read_rows(tmp_path / "toy.csv").iloc[2]
    assert (last["part"], last["value"], last["word"]) == (2, 0.2, "a,b")
    assert pd.isna(last["nothing"])
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| they are one | they are 3 | no |" in page
    assert "![A line](toy.png)" in page
    assert "<details><summary>All</summary>\n\n| part |\n| --- |\n| 0 |" in page
    assert "[toy.csv](toy.csv), by `python -m experiments toy`; date: " in page


@pytest.mark.usefixtures("undrawn")
def test_a_run_that_was_interrupted_goes_on(toy, tmp_path):
    toy.broken = 1
    with pytest.raises(KeyboardInterrupt):
        reproduce(["toy"], tmp_path, quick=False, progress=silent)
    assert toy.done == [0]
    assert not (tmp_path / "toy.csv").exists()
    toy.broken = None
    reproduce(["toy"], tmp_path, quick=False, progress=silent)
    assert toy.done == [0, 1, 2]
    assert list(read_rows(tmp_path / "toy.csv")["part"]) == [0, 1, 2]
    reproduce(["toy"], tmp_path, quick=False, progress=silent)  # what is finished is done anew
    assert toy.done == [0, 1, 2, 0, 1, 2]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("what", ["other code", "cut", "nonsense"])
def test_what_is_kept_is_done_again_where_it_is_not_ours(what, toy, tmp_path, monkeypatch):
    toy.broken = 2
    with pytest.raises(KeyboardInterrupt):
        reproduce(["toy"], tmp_path, quick=False, progress=silent)
    file = tmp_path / "toy.partial"
    if what == "other code":
        monkeypatch.setattr(module, "code_digest", lambda: "other code")
    elif what == "cut":
        file.write_bytes(file.read_bytes()[:-5])
    else:
        file.write_bytes(b"\xff")
    toy.broken = None
    reproduce(["toy"], tmp_path, quick=False, progress=silent)
    assert toy.done == [0, 1, 0, 1, 2]


@pytest.mark.usefixtures("undrawn")
def test_missing_parts_are_named_without_this_machines_folders(toy, tmp_path):
    def run(number):
        if number == 0:
            raise FileNotFoundError(f"not below {tmp_path}")
        if number == 1:
            raise Unavailable("a peer is not installed")
        return [{"part": number, "value": 1.0}]

    toy.run = run
    said = []
    reproduce(["toy"], tmp_path, quick=False, progress=silent, say=said.append)
    assert said[0].startswith("toy: left out (part 0): not below")
    assert said[1] == "toy: left out (part 1): a peer is not installed"
    text = (tmp_path / "runs.json").read_text(encoding="utf-8")
    assert "part 0 (its data is absent); part 1 (a peer is not installed)" in text
    assert str(tmp_path) not in text
    toy.run = lambda number: run(0)
    assert reproduce(["toy"], tmp_path, quick=False, progress=silent) == []


@pytest.mark.usefixtures("undrawn")
def test_a_quick_look_replaces_nothing_that_took_long(toy, tmp_path):
    reproduce(["toy"], tmp_path, quick=False, progress=silent)
    with pytest.raises(ValueError, match="holds full results of toy; give a quick look another"):
        reproduce(["toy"], tmp_path, quick=True, progress=silent)
    assert len(read_rows(tmp_path / "toy.csv")) == 3
    other = tmp_path / "other"
    other.mkdir()
    toy.broken = 2
    with pytest.raises(KeyboardInterrupt):
        reproduce(["toy"], other, quick=False, progress=silent)
    toy.broken = None
    reproduce(["toy"], other, quick=True, progress=silent)
    page = (other / "README.md").read_text(encoding="utf-8")
    assert "a quick look" in page
    assert "`python -m experiments toy --quick`" in page
    said, toy.done = [], []
    reproduce(["toy"], other, quick=False, progress=silent, say=said.append)
    assert said == ["toy: 2 of 3 parts were done before"]
    assert toy.done == [2]


@pytest.mark.parametrize("text", ["{", "3", '{"toy": 3}', "\x00"])
def test_a_damaged_file_of_runs_is_noticed_before_the_work(text, toy, tmp_path):
    (tmp_path / "runs.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"runs\.json is damaged \(.*\); remove it"):
        reproduce(["toy"], tmp_path, quick=False, progress=silent)
    assert toy.done == []
    result = run("toy", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "damaged" in result.output


# The command ------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_the_list_names_them_all():
    for result in (run("--list"), run()):
        assert result.exit_code == 0
        assert all(name in result.output for name in NAMES)


def test_an_interrupt_says_how_to_go_on(toy, tmp_path):
    toy.broken = 1
    result = run("toy", "--out", str(tmp_path))
    assert result.exit_code == 130
    assert "The same command goes on where it was" in result.output


def test_bad_names_folders_and_missing_extras_are_refused(tmp_path, monkeypatch):
    result = run("nothing", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "no experiment is called 'nothing'" in result.output
    (tmp_path / "file").touch()
    assert run("theory", "--out", str(tmp_path / "file" / "below")).exit_code == 2
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("theory", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert 'pip install "forback[report]"' in " ".join(result.output.replace("│", "").split())


def test_without_pandas_it_says_what_to_install(without_extras):
    without_extras(
        "try:\n"
        "    import experiments\n"
        "except ImportError as error:\n"
        "    assert str(error).endswith('is not installed: pip install -e \".[experiments]\"')\n"
        "else:\n"
        "    raise SystemExit('no word about it')\n"
    )


# All of them ------------------------------------------------------------------------------------


@pytest.fixture
def at_hand(tmp_path, monkeypatch):
    """The data that is there; nothing is downloaded."""
    data = RESULTS.parents[2] / "shared" / "data"
    if "FORBACK_DATA" not in os.environ and data.is_dir():
        monkeypatch.setenv("FORBACK_DATA", str(data))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no-cache"))

    def no_network(*arguments, **options):
        raise OSError("tests do not download")

    monkeypatch.setattr("forback.datasets.download.urlopen", no_network)


#: Of these the figures are drawn, which takes its time: bars, a plan, logarithmic axes, bands.
DRAWN = ("sensors", "theory")


@pytest.mark.slow
@pytest.mark.usefixtures("at_hand")
def test_every_experiment_has_a_quick_version(tmp_path, monkeypatch):
    def draw_some(figure, folder):
        if figure.name.startswith(DRAWN):
            draw(figure, folder)

    monkeypatch.setattr(module, "draw", draw_some)
    folder = tmp_path / "quick"
    result = run("all", "--quick", "--out", str(folder))
    assert result.exit_code == 0, result.output
    done = {chapter.name: chapter.section for chapter in chapters(folder)}
    assert set(NAMES) - set(done) <= {"uci", "sachs"}  # which need data
    for name, section in done.items():
        for figure in section.figures:
            check_lines(figure)
            if name in DRAWN:
                assert (folder / f"{figure.name}.png").read_bytes()[:4] == b"\x89PNG"
                assert "<svg" in (folder / f"{figure.name}.svg").read_text(encoding="utf-8")
    rows = read_rows(folder / "sensors.csv")
    assert rows.loc[(rows["what"] == "curve") & (rows["sensors"] == 0), "chosen"].isna().all()
    log = rows[(rows["home"] == "ordonez-a") & (rows["what"] == "all")]
    if len(log):  # read in the encoding with fewer training errors
        used, other = log.to_dict("records")
        assert (used["encoding"], used["used"], other["used"]) == ("raw", 1, 0)
        assert used["train_error"] < other["train_error"]
        assert (used["sensors"], used["weights"]) == (12, 12 * used["labels"])


def check_lines(figure):
    """What matplotlib would stumble on."""
    lines = [line for panel in figure.panels if isinstance(panel, Panel) for line in panel.lines]
    for line in lines:
        edges = [line.low or line.y, line.high or line.y]
        assert len(line.x) > 0
        assert np.isfinite(np.array([line.x, line.y, *edges], dtype=float)).all()


# What was committed -----------------------------------------------------------------------------


def test_the_committed_results_are_all_there_and_in_full():
    runs = json.loads((RESULTS / "runs.json").read_text(encoding="utf-8"))
    assert list(runs) == list(NAMES)
    for facts in runs.values():
        assert not {"left out", "note"} & set(facts)
    assert not list(RESULTS.glob("*.partial"))


def test_the_committed_page_is_what_the_rows_say():
    found = chapters(RESULTS)
    assert [chapter.name for chapter in found] == list(NAMES)
    text = (RESULTS / "README.md").read_text(encoding="utf-8")
    assert markdown_page(TITLE, PREFACE, found) == text
    for chapter in found:
        for figure in chapter.section.figures:
            assert (RESULTS / f"{figure.name}.png").is_file()
            assert (RESULTS / f"{figure.name}.svg").is_file()


def test_a_page_can_be_made_again_from_the_files(tmp_path):
    shutil.copy(RESULTS / "graphs.csv", tmp_path)
    runs = json.loads((RESULTS / "runs.json").read_text(encoding="utf-8"))
    (tmp_path / "runs.json").write_text(json.dumps({"graphs": runs["graphs"]}), encoding="utf-8")
    write_page(tmp_path)
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    _, _, chapter = page.partition("## ")
    assert chapter.strip() in (RESULTS / "README.md").read_text(encoding="utf-8")
    assert (tmp_path / "graphs.png").is_file()
