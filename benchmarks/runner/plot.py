"""An empty figure, and that of a run: ratios on a logarithmic axis."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pandas as pd

from forback.files.atomic import write

LABEL = "time / forback's time   ( |  aim,  \u25b6  stopped by the time limit)"


def blank(width: float, height: float) -> Any:
    """Make an empty matplotlib figure with no global state and no display."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "forback[report]"') from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def draw_ratios(marks: pd.DataFrame, file: Path) -> None:
    """Draw a line for each workload and a colour for each contestant.

    Parameters
    ----------
    marks : DataFrame
        With columns workload, contestant, ratio, is_bound (an arrowhead instead of a dot) and
        place_of_aim (a tick; missing where there is none).
    file : Path
        A PNG file.
    """
    workloads = list(marks["workload"].unique())
    heights = marks["workload"].map(workloads.index)
    figure = blank(9, 1.5 + 0.38 * len(workloads))
    axes = figure.add_subplot()
    for number, name in enumerate(marks["contestant"].unique()):
        own = marks["contestant"] == name
        for shape, chosen in (("o", own & ~marks["is_bound"]), (">", own & marks["is_bound"])):
            label = name if shape == "o" else None
            axes.plot(
                marks["ratio"][chosen], heights[chosen], shape, color=f"C{number}", label=label
            )
        axes.plot(marks["place_of_aim"][own], heights[own], "|", color=f"C{number}", ms=14)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel(LABEL)
    axes.set_yticks(range(len(workloads)), workloads)
    axes.set_ylim(len(workloads) - 0.5, -0.5)
    axes.grid(axis="x", which="both", alpha=0.3)
    if len(marks):
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    pixels = io.BytesIO()
    figure.savefig(pixels, format="png", dpi=150)
    write(file, pixels.getvalue())
