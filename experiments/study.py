"""What an experiment of `forback reproduce` is: parts that give rows, and a section about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from experiments.page import Section
from forback.report.figures import Line

#: A line of a CSV file: text, whole numbers and floats, None where there is nothing.
Row = dict[str, Any]


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
    section: Callable[[list[Row]], Section]  #: what the rows, as the CSV file has them, tell
    needs: str = ""  #: what must be there besides the package


def where(rows: Iterable[Row], /, **values: Any) -> list[Row]:
    """The rows that have these values."""
    return [row for row in rows if all(row.get(key) == value for key, value in values.items())]


def values_of(rows: Iterable[Row], column: str) -> list[Any]:
    """The different values of a column, in order of appearance."""
    return list(dict.fromkeys(row[column] for row in rows))


def mean_of(rows: Sequence[Row], column: str) -> float:
    """The mean of a column."""
    return fmean(row[column] for row in rows)


def mean_line(label: str, rows: Sequence[Row], x: str, y: str, like: str = "") -> Line:
    """Means of `y` over the rows of each `x`, shaded by two standard errors."""
    places, means, errors = [], [], []
    for place in sorted(values_of(rows, x)):
        sample = [row[y] for row in rows if row[x] == place]
        places.append(place)
        means.append(fmean(sample))
        errors.append(2.0 * stdev(sample) / len(sample) ** 0.5 if len(sample) > 1 else 0.0)
    low = [mean - error for mean, error in zip(means, errors, strict=True)]
    high = [mean + error for mean, error in zip(means, errors, strict=True)]
    return Line(label, places, means, low, high, like)
