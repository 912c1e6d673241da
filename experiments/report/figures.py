"""Figures from data: lines, bars and floor plans in panels, as PNG and SVG.

A `Figure` says what is to be seen; `draw` is the only one that knows matplotlib. SVG files take
the colour of the text around them (`currentColor`), so that a page can show them light and dark.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runner.plot import blank
from forback.files.atomic import write

#: Written where the colour of the text is meant, and replaced in SVG files.
INK = "#010203"

#: Told apart by the colour-blind, and visible on white and on black (after Okabe and Ito).
COLOURS = ("#0083c9", "#d5730a", "#00997a", "#c7568f", "#8a7f00", "#a06cd5", "#7f7f7f")

#: Colour, mark and line style of each method, the same in every figure.
STYLES: Mapping[str, tuple[str, str, str]] = {
    "foba-gdt": (COLOURS[0], "o", "-"),
    "forward-gdt": (COLOURS[1], "s", "--"),
    "foba-obj": (COLOURS[2], "^", "-"),
    "forward-obj": (COLOURS[3], "v", "--"),
    "l1": (COLOURS[4], "D", ":"),
    "l1 refitted": (COLOURS[5], "P", ":"),
    "refined": (COLOURS[3], "*", "-"),
}
MARKS = "oXd*<>p"

#: Up to so many places on a horizontal axis have a tick each.
MAX_TICKS = 10


@dataclass(frozen=True)
class Line:
    """A method's values; `low` and `high` shade how sure they are.

    Attributes
    ----------
    label : str
    x : Sequence[float]
    y : Sequence[float]
    low : Sequence[float] | None
    high : Sequence[float] | None
    like : str
        Whose colour and mark to take, if not the label's own.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    like: str = ""


@dataclass(frozen=True)
class Panel:
    """Lines over one horizontal axis.

    Attributes
    ----------
    title : str
    x_label : str
    y_label : str
    lines : Sequence[Line]
    log_x : bool
    log_y : bool
    from_zero : bool
        Whether the vertical axis begins at zero.
    """

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    log_x: bool = False
    log_y: bool = False
    from_zero: bool = False


@dataclass(frozen=True)
class Bars:
    """A group of bars for each name, one for each label.

    Attributes
    ----------
    title : str
    y_label : str
    names : Sequence[str]
    heights : Mapping[str, Sequence[float]]
        Label -> a height for each name.
    """

    title: str
    y_label: str
    names: Sequence[str]
    heights: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Plan:
    """Rooms and the ellipses that sensors watch; some sensors are chosen.

    Attributes
    ----------
    title : str
    rooms : Mapping[str, tuple[float, float, float, float]]
    names : Sequence[str]
    positions : Sequence[tuple[float, float]]
    ellipses : Sequence[tuple[float, float, float]]
    chosen : Sequence[Sequence[str]]
        Names chosen first, then those that came in later.
    labels : Sequence[str]
        What the groups of `chosen` are.
    """

    title: str
    rooms: Mapping[str, tuple[float, float, float, float]]
    names: Sequence[str]
    positions: Sequence[tuple[float, float]]
    ellipses: Sequence[tuple[float, float, float]]
    chosen: Sequence[Sequence[str]]
    labels: Sequence[str]


@dataclass(frozen=True)
class Figure:
    """Panels in rows of `columns`; `name` becomes the name of the files."""

    name: str
    caption: str
    panels: Sequence[Panel | Bars | Plan] = field(default_factory=list)
    columns: int = 2


def draw(figure: Figure, folder: Path) -> None:
    """Write `name.png` and `name.svg` to a folder.

    Parameters
    ----------
    figure : Figure
        What is to be seen.
    folder : Path
        Where the files go; files of these names are replaced.
    """
    canvas = blank(1.0, 1.0)
    import matplotlib

    coloured = ["text.color", "xtick.color", "ytick.color"]
    coloured += ["axes.labelcolor", "axes.edgecolor", "axes.titlecolor"]
    settings = {"font.size": 9.0, "svg.fonttype": "none", "svg.hashsalt": figure.name}
    with matplotlib.rc_context(settings | dict.fromkeys(coloured, INK)):
        _arrange(canvas, figure)
        pixels = io.BytesIO()
        canvas.savefig(pixels, format="png", dpi=110, metadata={"Software": None})
        stream = io.StringIO()
        canvas.savefig(
            stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    svg = stream.getvalue().replace(INK, "currentColor")
    svg = "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"
    write(folder / f"{figure.name}.png", pixels.getvalue())
    write(folder / f"{figure.name}.svg", svg)


def _arrange(canvas: Any, figure: Figure) -> None:
    """Lay the panels out: bars and plans have a row of their own."""
    rows: list[list[Panel | Bars | Plan]] = []
    for panel in figure.panels:
        fits = rows and len(rows[-1]) < figure.columns
        if fits and isinstance(panel, Panel) and isinstance(rows[-1][0], Panel):
            rows[-1].append(panel)
        else:
            rows.append([panel])
    heights = [5.6 if isinstance(row[0], Plan) else 3.1 for row in rows]
    canvas.set_size_inches(8.4, sum(heights) + 0.3)
    parts = canvas.subfigures(len(rows), 1, height_ratios=heights, squeeze=False)[:, 0]
    for part, row in zip(parts, rows, strict=True):
        columns = 1
        if isinstance(row[0], Panel):
            columns = figure.columns if len(rows) > 1 else len(row)
        axes = part.subplots(1, columns, squeeze=False)[0]
        for place, panel in zip(axes, row, strict=False):
            _DRAWERS[type(panel)](place, panel)
        for place in axes[len(row) :]:
            place.set_axis_off()


def _style(label: str, number: int) -> tuple[str, str, str]:
    """Return colour, mark and line style of a label: its own where it has one."""
    if label in STYLES:
        return STYLES[label]
    return COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)], "-"


def _draw_panel(axes: Any, panel: Panel) -> None:
    for number, line in enumerate(panel.lines):
        colour, mark, dashes = _style(line.like or line.label, number)
        axes.plot(line.x, line.y, dashes, marker=mark, ms=4, lw=1.4, color=colour, label=line.label)
        if line.low is not None and line.high is not None:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.15, lw=0)
    _dress(axes, panel.title, panel.x_label, panel.y_label)
    _scale(axes, panel)
    if panel.from_zero:
        axes.set_ylim(bottom=0.0)
    axes.legend(frameon=False, fontsize=7.5)


def _scale(axes: Any, panel: Panel) -> None:
    """Set logarithms where asked for, and ticks where there is something to read off."""
    from matplotlib.ticker import MaxNLocator, NullFormatter

    places = sorted({float(x) for line in panel.lines for x in line.x})
    whole = all(place.is_integer() for place in places)
    if panel.log_x:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    if len(places) <= MAX_TICKS and (panel.log_x or whole):
        axes.set_xticks(places, [f"{place:g}" for place in places])
    elif whole and not panel.log_x:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    heights = [float(y) for line in panel.lines for y in line.y if y > 0]
    if panel.log_y:
        axes.set_yscale("log")
        if heights and max(heights) > 10.0 * min(heights):
            axes.yaxis.set_minor_formatter(NullFormatter())


def _draw_bars(axes: Any, panel: Bars) -> None:
    width = 0.8 / max(1, len(panel.heights))
    places = np.arange(len(panel.names))
    for number, (label, heights) in enumerate(panel.heights.items()):
        shift = (number - 0.5 * (len(panel.heights) - 1)) * width
        axes.bar(places + shift, heights, width, color=COLOURS[number], label=label)
    _dress(axes, panel.title, "", panel.y_label)
    axes.set_xticks(places, panel.names, rotation=35, ha="right", fontsize=7.5)
    above = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": len(panel.heights)}
    axes.legend(frameon=False, fontsize=7.5, **above)


def _draw_plan(axes: Any, panel: Plan) -> None:
    from matplotlib.patches import Ellipse, Rectangle

    for name, (x0, y0, x1, y1) in panel.rooms.items():
        axes.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, ec=INK, lw=1.2))
        axes.text(x0 + 0.12, y1 - 0.38, name, fontsize=7.5, style="italic")
    groups = {name: number for number, names in enumerate(panel.chosen) for name in names}
    sensors = zip(panel.names, panel.positions, panel.ellipses, strict=True)
    for name, (x, y), (a, b, angle) in sensors:
        number = groups.get(name)
        colour = COLOURS[-1 if number is None else number]
        width = 0.5 if number is None else 1.4
        axes.add_patch(Ellipse((x, y), 2 * a, 2 * b, angle=angle, fill=False, ec=colour, lw=width))
        text = {"fontsize": 6} if number is None else {"fontsize": 8, "weight": "bold"}
        axes.text(x, y, name, ha="center", va="center", color=colour, **text)
    for number, label in enumerate(panel.labels):
        axes.plot([], [], "o", color=COLOURS[number], label=label)
    axes.set_title(panel.title, fontsize=9)
    axes.autoscale_view()
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3)


def _dress(axes: Any, title: str, x_label: str, y_label: str) -> None:
    axes.set_title(title, fontsize=9)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(alpha=0.25, lw=0.6)
    axes.patch.set_visible(False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


_DRAWERS: dict[type, Callable[[Any, Any], None]] = {
    Panel: _draw_panel,
    Bars: _draw_bars,
    Plan: _draw_plan,
}
