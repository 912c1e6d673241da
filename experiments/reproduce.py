"""Run experiments, keep what is done, write CSV files, figures and a page.

The CSV files are the results: figures and page are made from them, whoever wrote them.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import forback
from benchmarks.contract import Unavailable
from benchmarks.runner.machine import cpu_model, installed
from experiments.report.figures import draw
from experiments.report.page import Chapter, markdown_page
from experiments.study import Experiment, Part, Row, read_rows, write_rows
from forback.files.atomic import write

#: Where each experiment is, in the order of the page.
MODULES = {
    "logistic-synthetic": "paper.logistic_synthetic",
    "time-table": "paper.time_table",
    "uci": "paper.uci",
    "crf-synthetic": "paper.crf_synthetic",
    "sensors": "paper.sensors.section",
    "theory": "paper.theory",
    "least-squares": "paper.least_squares",
    "graphs": "beyond.graphs",
    "sachs": "beyond.sachs",
}
NAMES = tuple(MODULES)

TITLE = "forback: the experiments"
PREFACE = (
    "Every table and figure of 'Forward-Backward Greedy Algorithms for General Convex Smooth "
    "Functions over A Cardinality Constraint' (ICML 2014) that can be had again, and a few more. "
    "Written by `python -m experiments all`; the CSV files beside this page hold the figures in "
    "full."
)

#: Shows a list of parts and hands them out one by one: a progress bar, or nothing.
Progress = Callable[[str, Sequence[Part]], AbstractContextManager[Iterator[Part]]]
Say = Callable[[str], None]

QUICK = "a quick look: few trials and small sizes, so that verdicts mean little"

#: Why parts were left out.
Missing = dict[str, Exception]

#: How the rows of each experiment came about.
Runs = dict[str, dict[str, str]]


def find(name: str) -> Experiment:
    """Import the experiment of that name."""
    experiment: Experiment = import_module(f"experiments.{MODULES[name]}").EXPERIMENT
    return experiment


def reproduce(
    names: Sequence[str],
    folder: Path,
    *,
    quick: bool,
    progress: Progress,
    say: Say = lambda line: None,
) -> list[str]:
    """Run experiments one after the other and write everything; return the names of those done.

    Parts done by a run that ended early are not done again, if it was the same code.
    """
    runs = check_folder(names, folder, quick)
    done = []
    for name in names:
        start = time.monotonic()
        rows, missing, resumed = _run(find(name), folder, quick, progress, say)
        for reason in dict.fromkeys(map(str, missing.values())):
            labels = [label for label, why in missing.items() if str(why) == reason]
            say(f"{name}: left out ({'; '.join(labels)}): {reason}")
        if not rows:
            continue
        write_rows(rows, folder / f"{name}.csv")
        runs[name] = _facts(quick, time.monotonic() - start, missing, resumed)
        in_order = {key: runs[key] for key in NAMES if key in runs}
        write(folder / "runs.json", json.dumps(in_order, indent=1) + "\n")
        done.append(name)
    if done:
        write_page(folder)
    for name in names:
        _kept_file(folder, name, quick).unlink(missing_ok=True)
    return done


def check_folder(names: Sequence[str], folder: Path, quick: bool) -> Runs:
    """Refuse a folder whose list of runs is damaged, or where a quick look would replace more."""
    runs = read_runs(folder)
    full = [name for name in names if name in runs and "note" not in runs[name]]
    if quick and full:
        raise ValueError(
            f"{folder} holds full results of {', '.join(full)}; give a quick look another folder"
        )
    return runs


def _run(
    experiment: Experiment, folder: Path, quick: bool, progress: Progress, say: Say
) -> tuple[list[Row], Missing, bool]:
    """Run the parts; return all rows, why some are missing, and whether some were kept."""
    parts = experiment.parts(quick)
    file = _kept_file(folder, experiment.name, quick)
    kept = _read_kept(file)
    resumed = bool(kept)
    if resumed:
        say(f"{experiment.name}: {len(kept)} of {len(parts)} parts were done before")
    missing = Missing()
    with progress(experiment.name, [part for part in parts if part.label not in kept]) as shown:
        for part in shown:
            try:
                kept[part.label] = part.run()
            except (Unavailable, FileNotFoundError) as error:
                missing[part.label] = error
            else:
                write(file, json.dumps([code_digest(), kept]))
    return [row for part in parts for row in kept.get(part.label, [])], missing, resumed


# What an interrupted run leaves ----------------------------------------------------------------


def _kept_file(folder: Path, name: str, quick: bool) -> Path:
    return folder / f"{name}{'.quick' if quick else ''}.partial"


def _read_kept(file: Path) -> dict[str, list[Row]]:
    """Read the rows of parts done before by the same code; none if the file is anything else."""
    with suppress(OSError, ValueError):
        digest, kept = json.loads(file.read_bytes())
        if digest == code_digest():
            return dict(kept)
    return {}


def code_digest() -> str:
    """Return a fingerprint of the code: rows of different code do not go together."""
    digest = hashlib.sha256()
    for root in (Path(forback.__file__).parent, Path(__file__).parent):
        for file in sorted(root.rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


# Files -----------------------------------------------------------------------------------------


def _facts(quick: bool, seconds: float, missing: Missing, resumed: bool) -> dict[str, str]:
    """Describe how the rows came about, for the foot of their section."""
    facts = {
        "date": datetime.now(UTC).date().isoformat(),
        "took": f"{seconds:.0f} s{', the rest before' if resumed else ''}",
        "CPU": cpu_model(),
        "packages": ", ".join([f"forback {forback.__version__}", *installed()]),
    }
    if quick:
        facts["note"] = QUICK
    if missing:
        # What is said about a missing file names folders of this machine.
        reasons = [
            f"{label} ({why if isinstance(why, Unavailable) else 'its data is absent'})"
            for label, why in missing.items()
        ]
        facts["left out"] = "; ".join(reasons)
    return facts


def read_runs(folder: Path) -> Runs:
    """Read how the rows in a folder came about, for each experiment that is there."""
    file = folder / "runs.json"
    if not file.is_file():
        return {}
    try:
        runs = json.loads(file.read_bytes())
        return {
            name: {key: str(text) for key, text in runs[name].items() if key != "command"}
            for name in NAMES
            if name in runs
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{file} is damaged ({error}); remove it") from error


def chapters(folder: Path) -> list[Chapter]:
    """Make a chapter of each CSV file of a folder."""
    found = []
    for name, facts in read_runs(folder).items():
        experiment = find(name)
        section = experiment.section(read_rows(folder / f"{name}.csv"))
        command = f"python -m experiments {name}{' --quick' if 'note' in facts else ''}"
        found.append(Chapter(name, experiment.title, section, command, facts))
    return found


def write_page(folder: Path) -> None:
    """Draw the figures of every CSV file there and write `README.md`."""
    found = chapters(folder)
    for chapter in found:
        for figure in chapter.section.figures:
            draw(figure, folder)
    write(folder / "README.md", markdown_page(TITLE, PREFACE, found))
