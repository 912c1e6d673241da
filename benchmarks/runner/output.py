"""The tables, notes and files that tell of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.runner.growth import Growth, GrowthPoint
from benchmarks.runner.plot import draw_ratios
from benchmarks.runner.race import Row
from forback.files.atomic import write
from forback.report.tables import Table, markdown_table

#: Objectives closer than this, relatively, are the same.
SAME_OBJECTIVE = 1e-6

#: Said of an aim: met, not met, or neither, where a time limit left it open.
MET = {True: "met", False: "not met", None: "undecided"}

#: Columns of the results and their headings in the table; what comes last is put together.
HEADINGS = {
    "workload": "workload",
    "contestant": "contestant",
    "seconds": "seconds",
    "over_forback": "x forback",
    "over_floor": "x floor",
    "objective": "objective",
    "features": "features",
    "extra_mb": "extra MB",
    "extra_over_X": "x size of X",
    "remark": "aim or remark",
}


def results_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Tabulate rows: a line for each contestant of each workload, aims and verdicts in columns."""
    records = []
    for row in rows:
        record = asdict(row)
        del record["verdict"]
        verdict = row.verdict
        record["aim"] = verdict and f"{verdict.aim.subject} / {verdict.aim.against}"
        record["aim_limit"] = verdict and verdict.aim.limit
        record["aim_ratio"] = verdict and verdict.ratio
        record["aim_ratio_is_bound"] = verdict and verdict.is_bound
        record["aim_met"] = verdict and verdict.is_met
        records.append(record)
    numbers = dict.fromkeys(
        ["stopped_at", "seconds", "over_forback", "over_floor", "objective"], float
    )
    counts = dict.fromkeys(["features", "extra_bytes"], "Int64")
    return pd.DataFrame(records).astype(numbers | counts)


# Tables ----------------------------------------------------------------------------------------


def results_table(results: pd.DataFrame) -> Table:
    """Format the results for reading."""
    text = results.assign(
        seconds=[
            _text(row.seconds) if pd.isna(row.stopped_at) else f"> {row.stopped_at:g}"
            for row in results.itertuples()
        ],
        objective=results["objective"].map(lambda value: _text(value, 6)),
        extra_mb=results["extra_bytes"] / 1e6,
        remark=[_remark(row) for row in results.itertuples()],
    )[list(HEADINGS)]
    for name in ("over_forback", "over_floor", "features", "extra_mb", "extra_over_X"):
        text[name] = text[name].map(_text)
    return Table("Time, objective and memory", list(HEADINGS.values()), text.to_numpy().tolist())


def _remark(row: Any) -> str:
    """Say why there are no figures, or what came of the aim."""
    if pd.isna(row.aim):
        return str(row.status)
    sign = "<" if row.aim_ratio_is_bound else "="
    met = MET[None if pd.isna(row.aim_met) else bool(row.aim_met)]
    aim = f"{row.aim} {sign} {row.aim_ratio:.3g}, aim {row.aim_limit:.3g}: {met}"
    return "; ".join(filter(None, [row.status, aim]))


def growth_table(exponents: Sequence[Growth]) -> Table:
    """Format a line for each study."""
    header = ["loss", "grows", "exponent", "of the floor", "aim", ""]
    rows = [
        [
            growth.loss,
            growth.axis,
            f"{growth.exponent:.2f}",
            f"{growth.floor_exponent:.2f}",
            _text(growth.limit),
            "" if growth.limit is None else MET[growth.is_met],
        ]
        for growth in exponents
    ]
    return Table("How the time of a whole path grows: size to the power of", header, rows)


def _text(number: Any, digits: int = 3) -> str:
    return "" if number is None or pd.isna(number) else f"{number:.{digits}g}"


# Notes -----------------------------------------------------------------------------------------


def notes(results: pd.DataFrame, n_aims: int) -> list[str]:
    """Say what the table alone does not; `n_aims` is how many aims there were to judge."""
    lines = ["Small sizes show that everything runs; aims are judged at full size."]
    if n_aims:
        judged = results["aim"].notna().sum()
        met = (results["aim_met"] == True).sum()  # noqa: E712
        lines = [f"Aims met: {met} of {n_aims}; not judged: {n_aims - judged}."]
    base = results[results["contestant"] == "forback"].set_index("workload")["objective"]
    ours = results["workload"].map(base)
    lower = results["objective"] < ours - SAME_OBJECTIVE * ours.abs()
    for row, best in zip(results[lower].itertuples(), ours[lower], strict=True):
        if row.over_forback >= 1:
            price = f"takes {row.over_forback:.3g} times as long as forback but"
        else:
            price = f"takes {row.over_forback:.3g} of forback's time and"
        lines.append(
            f"{row.workload}: {row.contestant} {price} reaches a lower objective, "
            f"{row.objective:.6g} against {best:.6g}."
        )
    return lines


# Files -----------------------------------------------------------------------------------------


def write_results(results: pd.DataFrame, folder: Path) -> str:
    """Write `results.csv`: the figures in full."""
    write(folder / "results.csv", results.to_csv(index=False))
    return "results.csv"


def write_growth(points: Sequence[GrowthPoint], folder: Path) -> str:
    """Write `growth.csv`: the medians to which the exponents are fitted."""
    columns = ["loss", "axis", "n", "p", "k", "seconds", "floor"]
    found = pd.DataFrame([{**asdict(point), **asdict(point.size)} for point in points])
    write(folder / "growth.csv", found[columns].to_csv(index=False))
    return "growth.csv"


def write_markdown(
    facts: Mapping[str, str], tables: Sequence[Table], notes: Sequence[str], folder: Path
) -> str:
    """Write `results.md`: the machine, the tables and the notes."""
    parts = ["# Benchmarks", "\n".join(f"- {name}: {fact}" for name, fact in facts.items())]
    parts += [f"## {table.title}\n\n{markdown_table(table.header, table.rows)}" for table in tables]
    parts.append("\n".join(f"- {note}" for note in notes))
    write(folder / "results.md", "\n\n".join(parts) + "\n")
    return "results.md"


def write_figure(results: pd.DataFrame, folder: Path) -> str:
    """Write `results.png`: everybody's time over forback's."""
    base = results[results["contestant"] == "forback"].set_index("workload")["seconds"]
    others = results[results["contestant"] != "forback"]
    bounds = others["stopped_at"] / others["workload"].map(base)
    marks = others.assign(
        ratio=others["over_forback"].fillna(bounds),
        is_bound=others["stopped_at"].notna(),
        place_of_aim=[_place_of_aim(row) for row in others.itertuples()],
    )
    draw_ratios(marks.dropna(subset="ratio"), folder / "results.png")
    return "results.png"


def _place_of_aim(row: Any) -> float | None:
    """Return an aim as a multiple of forback's time; aims of another kind have no place."""
    subject, _, against = ("" if pd.isna(row.aim) else row.aim).partition(" / ")
    if subject == "forback":
        return float(1 / row.aim_limit)
    return float(row.aim_limit) if against == "forback" else None
