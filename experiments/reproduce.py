"""`forback reproduce`: run experiments, keep what is done, write CSV files, figures and a page.

The CSV files are the results: figures and page are made from them, whoever wrote them.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import forback
from experiments.machine import cpu_model, installed
from experiments.page import Chapter, html_page, markdown_page
from experiments.study import Experiment, Part, Row
from experiments.workloads import Unavailable
from forback.files.atomic import write
from forback.files.schema import listing, mapping, parse, record, scalar, word
from forback.report.figures import draw

#: In the order of the page; each is in the module of its name.
NAMES = (
    "logistic-synthetic", "time-table", "uci", "crf-synthetic", "sensors", "theory",
    "least-squares", "graphs", "sachs",
)  # fmt: skip

TITLE = "forback: the experiments"
PREFACE = (
    "Every table and figure of 'Forward-Backward Greedy Algorithms for General Convex Smooth "
    "Functions over A Cardinality Constraint' (ICML 2014) that can be had again, and a few more. "
    "Written by `forback reproduce`; the CSV files beside this page hold the figures in full."
)

#: Shows a list of parts and hands them out one by one: a progress bar, or nothing.
Progress = Callable[[str, Sequence[Part]], AbstractContextManager[Iterator[Part]]]

QUICK = "a quick look: few trials and small sizes, so that verdicts mean little"

#: Why parts were left out.
Missing = dict[str, Exception]

#: A line of what is kept: a label, and the rows of its part.
_PAIR = listing(lambda value, field: value, length=2)
_ROWS = listing(mapping(scalar))


def find(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in NAMES:
        raise ValueError(f"no experiment is called {name!r}; there are {', '.join(NAMES)}")
    module = import_module(f"experiments.{name.replace('-', '_')}")
    experiment: Experiment = module.EXPERIMENT
    return experiment


def reproduce(
    names: Sequence[str],
    folder: Path,
    *,
    quick: bool,
    progress: Progress,
    say: Callable[[str], None] = lambda line: None,
) -> list[str]:
    """Run experiments one after the other and write everything; return the names of those done.

    Parts done by a run that ended early are not done again, if it was the same code.
    """
    runs = _runs(folder)  # the end would be a bad time to find that it cannot be read
    full = [name for name in names if "note" not in runs.get(name, {"note": ""})]
    if quick and full:
        raise ValueError(
            f"{folder} holds full results of {', '.join(full)}; give a quick look another folder"
        )
    done = []
    for name in names:
        experiment, start = find(name), time.monotonic()
        rows, missing, before = _run(experiment, folder, quick, progress, say)
        for reason in dict.fromkeys(map(str, missing.values())):
            labels = [label for label, why in missing.items() if str(why) == reason]
            say(f"{name}: left out ({'; '.join(labels)}): {reason}")
        if not rows:
            continue
        write_rows(rows, folder / f"{name}.csv")
        _note_run(folder, name, _facts(name, quick, start, missing, before))
        done.append(name)
    if done:
        write_page(folder)
    for name in names:
        _partial(folder, name, quick).unlink(missing_ok=True)
    return done


# Running ---------------------------------------------------------------------------------------


def _run(
    experiment: Experiment,
    folder: Path,
    quick: bool,
    progress: Progress,
    say: Callable[[str], None],
) -> tuple[list[Row], Missing, bool]:
    """The rows of all parts, why some are missing, and whether some were there already."""
    parts, mark = experiment.parts(quick), _mark(experiment.name, quick)
    file = _partial(folder, experiment.name, quick)
    kept = _read_partial(file, mark)
    found, missing = dict(kept), Missing()
    todo = [part for part in parts if part.label not in found]
    if kept:
        say(f"{experiment.name}: {len(kept)} of {len(parts)} parts were done before")
    with progress(experiment.name, todo) as shown:
        for part in shown:
            try:
                rows = part.run()
            except (Unavailable, FileNotFoundError) as error:
                missing[part.label] = error
                continue
            found[part.label] = rows
            _write_partial(file, mark, found)
    return [row for part in parts for row in found.get(part.label, [])], missing, bool(kept)


def _partial(folder: Path, name: str, quick: bool) -> Path:
    return folder / f"{name}{'.quick' if quick else ''}.partial"


def _mark(name: str, quick: bool) -> str:
    """What must be the same for parts to go together: the experiment, its size, the code."""
    source, digest = Path(forback.__file__).parent, hashlib.sha256()
    for file in sorted(source.rglob("*.py")):
        digest.update(file.read_bytes())
    return f"{name} {'quick' if quick else 'full'} {digest.hexdigest()}"


def _write_partial(file: Path, mark: str, found: dict[str, list[Row]]) -> None:
    lines = [json.dumps(mark), *(json.dumps([label, rows]) for label, rows in found.items())]
    write(file, "\n".join(lines) + "\n")


def _read_partial(file: Path, mark: str) -> dict[str, list[Row]]:
    """The parts that are kept; what is not as we write it is left out, and done again."""
    kept: dict[str, list[Row]] = {}
    if not file.is_file():
        return kept
    with contextlib.suppress(ValueError):
        first, *lines = file.read_text(encoding="utf-8").splitlines()
        if parse(first) != mark:
            return kept
        for line in lines:  # the last one may have been cut
            label, rows = _PAIR(parse(line, finite=False), "a line")
            kept[word()(label, "a label")] = _ROWS(rows, "rows")
    return kept


# Files -----------------------------------------------------------------------------------------


def write_rows(rows: Sequence[Row], file: Path) -> None:
    """Write rows as CSV; they may have different columns."""
    header = list(dict.fromkeys(column for row in rows for column in row))
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, header, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write(file, stream.getvalue())


def read_rows(file: Path) -> list[Row]:
    """Read such rows: numbers are numbers again, what is empty is None."""
    with file.open(newline="", encoding="utf-8") as stream:
        return [{key: _typed(text) for key, text in row.items()} for row in csv.DictReader(stream)]


def _typed(text: str) -> Any:
    if text == "":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"True": True, "False": False}.get(text, text)


def _facts(name: str, quick: bool, start: float, missing: Missing, resumed: bool) -> dict[str, str]:
    """How the rows came about, for the foot of their section."""
    seconds = time.monotonic() - start
    facts = {
        "command": f"forback reproduce {name}{' --quick' if quick else ''}",
        "date": datetime.now(UTC).date().isoformat(),
        "took": f"{seconds:.0f} s{', the rest before' if resumed else ''}",
        "CPU": cpu_model(),
        "packages": ", ".join([f"forback {forback.__version__}", *installed()]),
    }
    if quick:
        facts["note"] = QUICK
    if missing:
        # What is said about a missing file names folders of this machine.
        reasons = {label: str(why) if isinstance(why, Unavailable) else "its data is absent"
                   for label, why in missing.items()}  # fmt: skip
        facts["left out"] = "; ".join(f"{label} ({why})" for label, why in reasons.items())
    return facts


def _note_run(folder: Path, name: str, facts: dict[str, str]) -> None:
    runs = {**_runs(folder), name: facts}
    text = json.dumps({key: runs[key] for key in NAMES if key in runs}, indent=1)
    write(folder / "runs.json", text + "\n")


def _runs(folder: Path) -> dict[str, dict[str, str]]:
    file = folder / "runs.json"
    if not file.is_file():
        return {}
    facts = mapping(word())
    try:
        content = parse(file.read_text(encoding="utf-8"))
        return record(dict.fromkeys(NAMES, facts), partial=True)(content, "")
    except ValueError as error:
        raise ValueError(f"{file} is damaged ({error}); remove it") from error


def write_page(folder: Path) -> None:
    """Draw the figures of every CSV file there and write `index.html` and `README.md`."""
    chapters = []
    for name, facts in _runs(folder).items():
        experiment = find(name)
        section = experiment.section(read_rows(folder / f"{name}.csv"))
        drawings = [draw(figure, folder) for figure in section.figures]
        chapters.append(Chapter(name, experiment.title, section, drawings, facts))
    for file, render in (("index.html", html_page), ("README.md", markdown_page)):
        write(folder / file, render(TITLE, PREFACE, chapters))
