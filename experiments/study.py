"""What an experiment is: parts that give rows, and a section that a table of all rows makes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.report.figures import Line
from experiments.report.page import Section
from forback.files.atomic import write

#: A line of a CSV file: text, whole numbers and floats, None where there is nothing.
Row = dict[str, Any]

#: The algorithms as the paper writes them, in the order of its table of times.
TITLES = {
    "foba-gdt": "FoBa-gdt",
    "forward-gdt": "Forward-gdt",
    "foba-obj": "FoBa-obj",
    "forward-obj": "Forward-obj",
}


@dataclass(frozen=True)
class Part:
    """A piece of an experiment that is done at once; what it gives is kept if the run ends early.

    It may raise `Unavailable` or FileNotFoundError: it is then left out, with the reason.
    """

    label: str
    run: Callable[[], list[Row]]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper, or one of ours beside it."""

    name: str
    title: str
    parts: Callable[[bool], list[Part]]  #: of the quick version or the full one
    section: Callable[[pd.DataFrame], Section]  #: what the rows, as the CSV file has them, tell
    needs: str = ""  #: what must be there besides the package


# Rows ------------------------------------------------------------------------------------------


def write_rows(rows: Sequence[Row], file: Path) -> None:
    """Write rows as CSV; they may have different columns."""
    # As objects: a whole number stays one beside rows that lack it.
    write(file, pd.DataFrame(rows, dtype=object).to_csv(index=False))


def read_rows(file: Path) -> pd.DataFrame:
    """Read such rows: only what is empty is missing, whatever words there are."""
    return pd.read_csv(file, keep_default_na=False, na_values=[""])


def mean_line(label: str, rows: pd.DataFrame, x: str, y: str, like: str = "") -> Line:
    """Make a line of the means of `y` for each `x`, shaded by two standard errors."""
    groups = rows.groupby(x)[y]
    means = groups.mean()
    errors = 2.0 * groups.sem().fillna(0.0)  # one row alone has none
    low, high = (list(edge) for edge in (means - errors, means + errors))
    return Line(label, list(means.index), list(means), low, high, like)


# Judging ---------------------------------------------------------------------------------------


def f_measure(found: Collection[Hashable], true: Collection[Hashable]) -> float:
    """Return the paper's 2 |F and F bar| / (|F| + |F bar|), also known as F1."""
    return 2.0 * len(set(found) & set(true)) / (len(found) + len(true))


def beyond_chance(gaps: pd.Series) -> int:
    """Return the sign of a mean of paired differences, 0 within two standard errors of zero."""
    limit = 2.0 * gaps.sem() if len(gaps) > 1 else 0.0
    return int(gaps.mean() > limit) - int(gaps.mean() < -limit)


def verdict(*answers: bool) -> bool | None:
    """Return True if all hold, False if none does, else None."""
    return True if all(answers) else None if any(answers) else False


def seven_digits(value: Any) -> float:
    """Round a number for a CSV file, whose readers need no more digits."""
    return float(f"{value:.7g}")
