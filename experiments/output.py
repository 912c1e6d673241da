"""The tables, notes and files of `forback bench`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.growth import Growth, GrowthPoint
from experiments.race import Row, Verdict
from experiments.ratios import Mark, ratio_figure
from forback.files.atomic import write
from forback.report.tables import Table, markdown_table

#: Objectives closer than this, relatively, are the same.
SAME = 1e-6


# Tables ----------------------------------------------------------------------------------------


def results_table(rows: Sequence[Row]) -> Table:
    """A line for each contestant of each workload."""
    header = [
        "workload",
        "contestant",
        "seconds",
        "x forback",
        "x floor",
        "objective",
        "features",
        "extra MB",
        "x size of X",
        "aim or remark",
    ]
    return Table("Time, objective and memory", header, [_result_cells(row) for row in rows])


def _result_cells(row: Row) -> list[str]:
    return [
        row.workload,
        row.contestant,
        _text(row.seconds) if row.stopped_at is None else f"> {row.stopped_at:g}",
        _text(row.over_forback),
        _text(row.over_floor),
        _text(row.objective, 6),
        _text(row.features),
        _text(None if row.extra_bytes is None else row.extra_bytes / 1e6),
        _text(row.extra_over_X),
        "; ".join(filter(None, [row.status, _aim_text(row.verdict)])),
    ]


def _aim_text(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    aim = verdict.aim
    sign = "<" if verdict.is_bound else "="
    claim = f"{aim.subject} / {aim.against} {sign} {verdict.ratio:.3g}, aim {aim.limit:.3g}"
    return f"{claim}: {_met_text(verdict.met)}"


def growth_table(exponents: Sequence[Growth]) -> Table:
    """A line for each study."""
    header = ["loss", "grows", "exponent", "of the floor", "aim", ""]
    rows = [
        [
            growth.loss,
            growth.axis,
            f"{growth.exponent:.2f}",
            f"{growth.floor_exponent:.2f}",
            _text(growth.limit),
            "" if growth.limit is None else _met_text(growth.met),
        ]
        for growth in exponents
    ]
    return Table("How the time of a whole path grows: size to the power of", header, rows)


def _met_text(met: bool | None) -> str:
    return {True: "met", False: "not met", None: "undecided"}[met]


def _text(number: float | None, digits: int = 3) -> str:
    return "" if number is None else f"{number:.{digits}g}"


# Notes -----------------------------------------------------------------------------------------


def notes(rows: Sequence[Row], aims: int) -> list[str]:
    """What the table alone does not say aloud, `aims` being how many there were to judge."""
    lines = ["Small sizes show that everything runs; aims are judged at full size."]
    if aims:
        met = [row.verdict.met for row in rows if row.verdict is not None]
        lines = [f"Aims met: {met.count(True)} of {aims}; not judged: {aims - len(met)}."]
    base = {row.workload: row for row in rows if row.contestant == "forback"}
    for row in rows:
        lines += _better_objective(row, base[row.workload])
    return lines


def _better_objective(row: Row, base: Row) -> list[str]:
    """Say where somebody reached a lower objective than forback, and at what price in time."""
    if row.objective is None or base.objective is None or row.over_forback is None:
        return []
    if row.objective >= base.objective - SAME * abs(base.objective):
        return []
    if row.over_forback >= 1:
        price = f"takes {row.over_forback:.3g} times as long as forback but"
    else:
        price = f"takes {row.over_forback:.3g} of forback's time and"
    return [
        f"{row.workload}: {row.contestant} {price} reaches a lower objective, "
        f"{row.objective:.6g} against {base.objective:.6g}."
    ]


# Files -----------------------------------------------------------------------------------------


def write_results(rows: Sequence[Row], folder: Path) -> str:
    """`results.csv`: the figures in full."""
    return _write_csv(folder / "results.csv", [_flat(row) for row in rows])


def _flat(row: Row) -> dict[str, Any]:
    record = asdict(row)
    del record["verdict"]
    verdict = row.verdict
    record["aim"] = verdict and f"{verdict.aim.subject} / {verdict.aim.against}"
    record["aim_limit"] = verdict and verdict.aim.limit
    record["aim_ratio"] = verdict and verdict.ratio
    record["aim_ratio_is_bound"] = verdict and verdict.is_bound
    record["aim_met"] = verdict and verdict.met
    return record


def write_growth(points: Iterable[GrowthPoint], folder: Path) -> str:
    """`growth.csv`: the medians to which the exponents are fitted."""
    records = [
        {
            "loss": point.loss,
            "axis": point.axis,
            **asdict(point.size),
            "seconds": point.seconds,
            "floor": point.floor,
        }
        for point in points
    ]
    return _write_csv(folder / "growth.csv", records)


def _write_csv(file: Path, records: Sequence[Mapping[str, Any]]) -> str:
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, list(records[0]))
    writer.writeheader()
    writer.writerows(records)
    write(file, stream.getvalue())
    return file.name


def write_markdown(
    facts: Mapping[str, str], tables: Sequence[Table], notes: Sequence[str], folder: Path
) -> str:
    """`results.md`: the machine, the tables and the notes."""
    parts = ["# forback bench", "\n".join(f"- {name}: {fact}" for name, fact in facts.items())]
    parts += [f"## {table.title}\n\n{markdown_table(table.header, table.rows)}" for table in tables]
    parts.append("\n".join(f"- {note}" for note in notes))
    file = folder / "results.md"
    write(file, "\n\n".join(parts) + "\n")
    return file.name


def write_figure(rows: Sequence[Row], folder: Path) -> str:
    """`results.png`: everybody's time over forback's."""
    groups: dict[str, dict[str, Mark]] = {}
    base = {row.workload: row.seconds for row in rows if row.contestant == "forback"}
    for row in rows:
        mark = _mark(row, base[row.workload])
        if mark is not None and row.contestant != "forback":
            groups.setdefault(row.workload, {})[row.contestant] = mark
    file = folder / "results.png"
    ratio_figure(
        groups, "time / forback's time   ( |  aim,  \u25b6  stopped by the time limit)", file
    )
    return file.name


def _mark(row: Row, base: float | None) -> Mark | None:
    if row.over_forback is not None:
        return Mark(row.over_forback, aim=_aim_place(row.verdict))
    if row.stopped_at is not None and base is not None:
        return Mark(row.stopped_at / base, is_bound=True, aim=_aim_place(row.verdict))
    return None


def _aim_place(verdict: Verdict | None) -> float | None:
    """Where an aim is, as a multiple of forback's time; aims of another kind have no place."""
    if verdict is None:
        return None
    if verdict.aim.subject == "forback":
        return 1 / verdict.aim.limit
    return verdict.aim.limit if verdict.aim.against == "forback" else None
