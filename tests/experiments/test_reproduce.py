"""`forback reproduce`: what is kept, what is written, and the page in a real browser."""

import json
import os
import re
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from experiments.page import Claim, Section
from experiments.workloads import Unavailable
from support.browser import find_browser, look_at
from typer.testing import CliRunner

from experiments import reproduce as module
from experiments.__main__ import make_app
from experiments.reproduce import NAMES, find, read_rows, reproduce, write_page, write_rows
from experiments.study import Experiment, Part, mean_line, where
from forback.report.figures import Figure, Line, Panel
from forback.report.tables import Table

RESULTS = Path(__file__).resolve().parents[2] / "experiments" / "results"


@contextmanager
def silent(name, parts):
    yield iter(parts)


def figures_of(name, rows):
    return [figure.name for figure in find(name).section(rows).figures]


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
        line = Line("values", [r["part"] for r in rows], [r["value"] for r in rows])
        return Section(
            intro="Toys <b>&</b>", comparison=f"{len(rows)} rows",
            claims=[Claim("they are one", f"they are {len(rows)}", len(rows) == 1)],
            figures=[Figure("toy", "A line", [Panel("toys", "part", "value", [line])])],
            tables=[Table("All", ["part"], [[str(r["part"])] for r in rows])],
        )  # fmt: skip


@pytest.fixture
def toy(monkeypatch):
    made = Toy()
    experiment = Experiment("toy", "A toy", made.parts, made.section)
    monkeypatch.setattr(module, "find", lambda name: experiment)
    monkeypatch.setattr(module, "NAMES", ("toy",))
    return made


def test_rows_files_figures_and_page(toy, tmp_path):
    assert reproduce(["toy"], tmp_path, quick=False, progress=silent) == ["toy"]
    expected = {"toy.csv", "toy.png", "toy.svg", "index.html", "README.md", "runs.json"}
    assert {file.name for file in tmp_path.iterdir()} == expected
    rows = read_rows(tmp_path / "toy.csv")
    assert rows[2] == {"part": 2, "value": 0.2, "word": "a,b", "nothing": None}
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Toys &lt;b&gt;&amp;&lt;/b&gt;" in page
    assert "<td>they are 3</td><td>no</td>" in page
    assert "currentColor" in page
    assert "![A line](toy.png)" in (tmp_path / "README.md").read_text(encoding="utf-8")
    facts = json.loads((tmp_path / "runs.json").read_text(encoding="utf-8"))["toy"]
    assert facts["command"] == "forback reproduce toy"


def test_a_run_that_was_interrupted_goes_on(toy, tmp_path, monkeypatch):
    toy.broken = 1
    with pytest.raises(KeyboardInterrupt):
        reproduce(["toy"], tmp_path, quick=False, progress=silent)
    assert toy.done == [0]
    assert not (tmp_path / "toy.csv").exists()
    toy.broken = None
    reproduce(["toy"], tmp_path, quick=False, progress=silent)
    assert toy.done == [0, 1, 2]
    assert [row["part"] for row in read_rows(tmp_path / "toy.csv")] == [0, 1, 2]
    reproduce(["toy"], tmp_path, quick=False, progress=silent)  # what is finished is done anew
    assert toy.done == [0, 1, 2, 0, 1, 2]


def test_parts_of_other_code_or_another_size_are_done_again(toy, tmp_path, monkeypatch):
    toy.broken = 2
    with pytest.raises(KeyboardInterrupt):
        reproduce(["toy"], tmp_path, quick=False, progress=silent)
    toy.broken = None
    monkeypatch.setattr(module, "_mark", lambda name, quick: "other code")
    reproduce(["toy"], tmp_path, quick=False, progress=silent)
    assert toy.done == [0, 1, 0, 1, 2]


def test_a_cut_line_is_done_again(toy, tmp_path):
    toy.broken = 2
    with pytest.raises(KeyboardInterrupt):
        reproduce(["toy"], tmp_path, quick=False, progress=silent)
    file = tmp_path / "toy.partial"
    file.write_text(file.read_text(encoding="utf-8")[:-5], encoding="utf-8")
    toy.broken = None
    reproduce(["toy"], tmp_path, quick=False, progress=silent)
    assert toy.done == [0, 1, 1, 2]


def test_missing_parts_are_named_without_this_machines_folders(toy, tmp_path, monkeypatch):
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
    assert "a quick look" in (other / "index.html").read_text(encoding="utf-8")
    said, toy.done = [], []
    reproduce(["toy"], other, quick=False, progress=silent, say=said.append)
    assert said == ["toy: 2 of 3 parts were done before"]
    assert toy.done == [2]


DEEP = "[" * 990 + "]" * 990


@pytest.mark.parametrize(
    "text", ["{", "[]", "3", '{"toy": 3}', '{"toy": {"date": 3}}', '{"other": {}}', DEEP,
             '{"toy": {}, "toy": {}}', "9" * 5000, f'{{"toy": {DEEP}}}'],
)  # fmt: skip
def test_a_damaged_file_of_runs_is_noticed_before_the_work(text, toy, tmp_path):
    (tmp_path / "runs.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"runs\.json is damaged \(.*\); remove it"):
        reproduce(["toy"], tmp_path, quick=False, progress=silent)
    assert toy.done == []


@pytest.mark.parametrize(
    "line", ["3", "[[], []]", '["part 0", 3]', '["part 0", [3]]', '["part 0", [{"a": []}]]',
             '["part 0", [{"part": 1}], 3]', '{"part 0": [], "b": []}', DEEP, f'["part 0", {DEEP}]',
             "9" * 5000, "\udcff"],
)  # fmt: skip
def test_what_is_kept_is_done_again_where_it_is_not_ours(line, toy, tmp_path):
    mark = json.dumps(module._mark("toy", False))
    text = f"{mark}\n{line}\n".encode("utf-8", "surrogateescape")
    (tmp_path / "toy.partial").write_bytes(text)
    reproduce(["toy"], tmp_path, quick=False, progress=silent)
    assert toy.done == [0, 1, 2]
    (tmp_path / "toy.partial").write_text(line.replace("\udcff", ""), encoding="utf-8")
    reproduce(["toy"], tmp_path, quick=False, progress=silent)
    assert toy.done == [0, 1, 2] * 2


def test_rows_that_hold_no_number_are_kept(toy, tmp_path):
    module._write_partial(tmp_path / "p", "mark", {"part 0": [{"a": float("inf"), "b": None}]})
    kept = module._read_partial(tmp_path / "p", "mark")
    assert kept == {"part 0": [{"a": float("inf"), "b": None}]}


def test_what_is_read_is_what_was_written(tmp_path):
    rows = [{"a": 1, "b": 0.1 + 0.2, "c": "x", "d": True}, {"a": 2, "e": 1e-300}]
    write_rows(rows, tmp_path / "rows.csv")
    first, second = read_rows(tmp_path / "rows.csv")
    assert first == {"a": 1, "b": 0.1 + 0.2, "c": "x", "d": True, "e": None}
    assert second["e"] == 1e-300
    assert where([first, second], a=2) == [second]


def test_lines_of_means():
    rows = [{"x": x, "y": y} for x, y in ((2, 1.0), (1, 3.0), (1, 5.0))]
    line = mean_line("m", rows, "x", "y")
    assert (line.x, line.y) == ([1, 2], [4.0, 1.0])
    assert line.low == [2.0, 1.0]


# The command ------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(make_app(), ["reproduce", *arguments])


def test_the_list_names_them_all():
    for result in (run("--list"), run()):
        assert result.exit_code == 0
        assert all(name in result.output for name in NAMES)


def test_an_interrupt_says_how_to_go_on(toy, tmp_path):
    toy.broken = 1
    result = run("toy", "--out", str(tmp_path))
    assert result.exit_code == 130
    assert "The same command goes on where it was" in result.output


def test_bad_names_and_missing_extras_are_refused(tmp_path, monkeypatch):
    result = run("nothing", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "no experiment is called 'nothing'" in result.output
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("theory", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert 'pip install "forback[report]"' in " ".join(result.output.replace("│", "").split())


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


def test_every_experiment_has_a_quick_version(at_hand, tmp_path):
    folder = tmp_path / "quick"
    result = run("all", "--quick", "--out", str(folder))
    assert result.exit_code == 0, result.output
    done = json.loads((folder / "runs.json").read_text(encoding="utf-8"))
    assert set(NAMES) - set(done) <= {"uci", "sachs"}  # which need data
    for name in done:
        rows = read_rows(folder / f"{name}.csv")
        for figure in figures_of(name, rows):
            assert (folder / f"{figure}.png").read_bytes()[:4] == b"\x89PNG"
            assert "<svg" in (folder / f"{figure}.svg").read_text(encoding="utf-8")
    if find_browser() is not None:
        check_page(folder, tmp_path, width=390, dark=True)


# The page -------------------------------------------------------------------------------------


def check_page(folder, space, *, width, dark):
    """Every figure is there, nothing sticks out, nothing is fetched, colours fit the scheme."""
    seen = look_at(folder / "index.html", space, width=width, dark=dark)
    runs = json.loads((folder / "runs.json").read_text(encoding="utf-8"))
    expected = [
        f"{name}-{figure}"
        for name in runs
        for figure in figures_of(name, read_rows(folder / f"{name}.csv"))
    ]
    assert [figure["id"] for figure in seen["figures"]] == expected
    assert seen["sections"] == list(runs)
    for figure in seen["figures"]:
        assert figure["width"] > 0.8 * min(width, 900)
        assert figure["height"] > 100
        assert figure["shapes"] > 20
        assert figure["texts"] > 5
        assert figure["ink"] == seen["ink"]
    assert seen["needed"] <= seen["width"]
    assert seen["failed"] == seen["requests"] == []
    bright = [sum(map(int, re.findall(r"\d+", seen[part])[:3])) for part in ("background", "ink")]
    assert (bright[0] < 150 and bright[1] > 600) if dark else (bright[0] > 700 and bright[1] < 150)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1100])
def test_the_committed_page_in_a_browser(width, dark, tmp_path):
    if find_browser() is None:
        pytest.skip("no browser: install chromium to look at the page")
    check_page(RESULTS, tmp_path, width=width, dark=dark)


def test_the_page_fetches_nothing():
    page = (RESULTS / "index.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert not re.search(r"""(src|href)=["']https?:""", page)
    assert "@import" not in page


def test_the_committed_results_are_all_there_and_in_full():
    runs = json.loads((RESULTS / "runs.json").read_text(encoding="utf-8"))
    assert list(runs) == list(NAMES)
    for name, facts in runs.items():
        assert facts["command"] == f"forback reproduce {name}"
        assert "left out" not in facts
    assert not list(RESULTS.glob("*.partial"))


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_page_says_what_the_rows_say(name):
    section = find(name).section(read_rows(RESULTS / f"{name}.csv"))
    text = (RESULTS / "README.md").read_text(encoding="utf-8")
    assert section.comparison in text
    for claim in section.claims:
        assert f"| {claim.said} | {claim.found} | {claim.verdict} |" in text
    for figure in section.figures:
        assert (RESULTS / f"{figure.name}.png").is_file()
        assert (RESULTS / f"{figure.name}.svg").is_file()


def test_a_page_can_be_made_again_from_the_files(tmp_path):
    for file in [*RESULTS.glob("*.csv"), RESULTS / "runs.json"]:
        shutil.copy(file, tmp_path)
    write_page(tmp_path)
    assert (tmp_path / "README.md").read_bytes() == (RESULTS / "README.md").read_bytes()
