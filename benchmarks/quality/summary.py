"""From objectives to wins, ties and losses."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from forback.report.tables import markdown_table

#: Objectives are ties within this, relative to Q above its floor, which is 0 for both losses.
TIE_RTOL = 1e-6


def page(table: pd.DataFrame, ours: Sequence[str], peers: Sequence[str]) -> str:
    """Write the tables of a comparison."""
    wide = table.pivot(index=["group", "seed"], columns="contestant", values="objective")
    seconds = table.pivot(index=["group", "seed"], columns="contestant", values="seconds")
    rivals = [name for name in peers if name in wide]
    parts = ["# Who ends lower", ""]
    everybody = pd.DataFrame(
        {
            "best known in": (wide.le(wide.min(axis=1) * (1 + TIE_RTOL), axis=0)).sum(),
            "of": wide.lt(float("inf")).sum(),
            "mean excess": excess(wide).mean(),
            "median seconds": seconds.median(),
        }
    ).sort_values("mean excess")
    parts += [_markdown(everybody), ""]
    for name in ours if rivals else ():
        parts += [f"## {name} against the best of the others", ""]
        parts += [_markdown(duels(wide, name, rivals)), ""]
    parts += ["## Mean excess over the best known", ""]
    parts += [_markdown(excess(wide).groupby(level=0, sort=False).mean(), 3), ""]
    parts += ["## Median seconds", ""]
    parts += [_markdown(seconds.groupby(level=0, sort=False).median(), 2), ""]
    return "\n".join(parts)


def excess(wide: pd.DataFrame) -> pd.DataFrame:
    """How far everybody is above the best known, relatively; nothing where they had no answer."""
    best = wide.min(axis=1)
    return wide.replace(float("inf"), float("nan")).sub(best, axis=0).div(best, axis=0)


def duels(wide: pd.DataFrame, name: str, rivals: Sequence[str]) -> pd.DataFrame:
    """Count, by group, where somebody is lower than the best of some rivals, ties and is higher."""
    own, best = wide[name], wide[list(rivals)].min(axis=1)
    outcome = pd.DataFrame(
        {
            "wins": own < best * (1 - TIE_RTOL),
            "ties": (own - best).abs() <= best * TIE_RTOL,
            "losses": own > best * (1 + TIE_RTOL),
        }
    )
    by_group = outcome.groupby(level=0, sort=False).sum()
    by_group.loc["all"] = by_group.sum()
    return by_group


def _markdown(frame: pd.DataFrame, digits: int = 4) -> str:
    rows = [
        [str(label), *("" if pd.isna(value) else f"{value:.{digits}g}" for value in row)]
        for label, row in zip(frame.index, frame.to_numpy(dtype=float), strict=True)
    ]
    return markdown_table(["", *map(str, frame.columns)], rows)
