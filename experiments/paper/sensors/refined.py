"""What refinement, beyond the paper, makes of the literal answer at each number of sensors."""

from __future__ import annotations

import pandas as pd

from experiments.paper.sensors.claims import curve
from experiments.report.figures import Figure, Line, Panel
from forback.report.tables import Table

#: Objectives that differ by less than this share are the same, as far as fits can tell.
SAME_RTOL = 1e-6


def beside(rows: pd.DataFrame, home: str) -> pd.DataFrame:
    """Put refined and literal answers side by side for each number of sensors (but 0) of both."""
    both = curve(rows, home, "refined").merge(
        curve(rows, home, "foba-gdt"), on="sensors", suffixes=("", "_literal")
    )
    both = both[both["sensors"] > 0]
    change = both["objective"] / both["objective_literal"] - 1.0
    return both.assign(change=change, lower=change < -SAME_RTOL, higher=change > SAME_RTOL)


def homes(rows: pd.DataFrame) -> list[str]:
    """List the homes with refined answers."""
    return [home for home in rows["home"].unique() if len(beside(rows, home))]


def figure(rows: pd.DataFrame) -> Figure:
    """Draw how much lower the objective is."""
    lines = []
    for home in homes(rows):
        both = beside(rows, home)
        lines.append(Line(home, list(both["sensors"]), list(100.0 * both["change"])))
    panel = Panel("refined answers", "sensors", "objective, % beside the literal one", lines)
    caption = "How far refinement lowers the objective of FoBa-gdt at each number of sensors"
    return Figure("sensors-refined", caption, [panel])


def table(rows: pd.DataFrame) -> Table:
    """Tabulate how often the refined objective is lower, and what that does to errors."""
    lines = []
    for home in homes(rows):
        both = beside(rows, home)
        lines.append(
            [
                home,
                str(len(both)),
                str(both["lower"].sum()),
                str((~both["lower"] & ~both["higher"]).sum()),
                str(both["higher"].sum()),
                f"{both['change'].mean():.2%}",
                f"{both['change'].min():.2%}",
                f"{both['error_literal'].mean():.2%}",
                f"{both['error'].mean():.2%}",
            ]
        )
    header = ["home", "numbers of sensors", "objective lower", "the same", "higher", "mean change"]
    header += ["largest fall", "mean test error, literal", "refined"]
    return Table("Refined answers beside literal ones, FoBa-gdt-CRF", header, lines)


def sentence(rows: pd.DataFrame) -> str:
    """Sum the homes up."""
    both = pd.concat([beside(rows, home) for home in homes(rows)])
    lower, higher = both["lower"].sum(), both["higher"].sum()
    fewer = (both["error"] < both["error_literal"]).sum()
    more = (both["error"] > both["error_literal"]).sum()
    return (
        f"Refined, the objective is lower in {lower} and higher in {higher} of {len(both)} cases "
        f"(a home and a number of sensors); the test error is lower in {fewer}, higher in {more}."
    )
