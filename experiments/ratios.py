"""Ratios on a logarithmic axis: the figure of `forback bench`."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forback.files.atomic import write
from forback.report.figures import blank


@dataclass(frozen=True)
class Mark:
    """A ratio in a figure: at least so much where it is a bound, and what it is aimed at."""

    ratio: float
    is_bound: bool = False
    aim: float | None = None


def ratio_figure(
    groups: Mapping[str, Mapping[str, Mark]], label: str, file: str | os.PathLike[str]
) -> None:
    """Draw ratios on a logarithmic axis, a line for each group, a colour for each name."""
    figure = blank(9, 1.5 + 0.38 * len(groups))
    axes = figure.add_subplot()
    names = list(dict.fromkeys(name for marks in groups.values() for name in marks))
    for number, name in enumerate(names):
        _draw_marks(axes, name, [marks.get(name) for marks in groups.values()], f"C{number}")
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel(label)
    axes.set_yticks(range(len(groups)), list(groups))
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.grid(axis="x", which="both", alpha=0.3)
    if names:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    pixels = io.BytesIO()
    figure.savefig(pixels, format="png", dpi=150)
    write(file, pixels.getvalue())


def _draw_marks(axes: Any, name: str, marks: Sequence[Mark | None], colour: str) -> None:
    """One name's marks: a dot each, an arrowhead for a bound, a tick where the aim is."""
    places = [(place, mark) for place, mark in enumerate(marks) if mark is not None]
    for shape, is_bound in (("o", False), (">", True)):
        chosen = [(place, mark) for place, mark in places if mark.is_bound is is_bound]
        axes.plot(
            [mark.ratio for _, mark in chosen], [place for place, _ in chosen], shape,
            color=colour, label=None if is_bound else name,
        )  # fmt: skip
    aims = [(mark.aim, place) for place, mark in places if mark.aim is not None]
    axes.plot([aim for aim, _ in aims], [place for _, place in aims], "|", color=colour, ms=14)
