"""`python -m benchmarks.quality`: every contestant's objective at equal k, and its time."""

from __future__ import annotations

import math
import time
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import typer

from benchmarks.contestants import discover
from benchmarks.contract import Contestant, Unavailable, refit
from benchmarks.quality.instances import Instance, instances
from benchmarks.quality.summary import page

#: Who is compared, by the names of `benchmarks/contestants`.
FORBACK = ("forback", "forback-swap", "forback-search")
PEERS = (
    "abess-path",
    "abess-k",
    "skscope-foba",
    "skscope-scope",
    "skscope-omp",
    "sklearn-omp",
    "l1-path",
)


def compete(contestant: Contestant, instance: Instance) -> dict[str, Any]:
    """Let somebody choose, and judge what was chosen; of nothing, infinity."""
    problem = instance.problem
    row = {"group": instance.group, "seed": instance.seed, "contestant": contestant.name}
    try:
        run = contestant.prepare(problem)
    except Unavailable:
        return {**row, "objective": math.inf, "seconds": math.nan}
    begun = time.perf_counter()
    choice = run()
    seconds = time.perf_counter() - begun
    assert choice.support is not None
    point = refit(problem, choice.support)
    if point.size > problem.k:
        raise ValueError(f"{contestant.name} chose {point.size} of k={problem.k} features")
    return {**row, "objective": point.value, "seconds": seconds}


def main(
    seeds: int = typer.Option(20, "--seeds", min=1, help="How many problems of each family."),
    first: int = typer.Option(1000, "--first", min=0, help="The first seed."),
    only: list[str] = typer.Option([], "--only", help="A family or table."),  # noqa: B008
    contestant: list[str] = typer.Option([], "--contestant", help="Who takes part."),  # noqa: B008
    out: Path = typer.Option("forback-quality", "--out", help="Folder for the results."),  # noqa: B008
) -> None:
    """Compare objectives at equal k, refitted by the judge, on families and tables."""
    out.mkdir(parents=True, exist_ok=True)
    everybody = discover()
    taking_part = [everybody[name] for name in contestant or [*FORBACK, *PEERS]]
    rows = []
    for instance in instances(range(first, first + seeds), only, partial(typer.echo, err=True)):
        typer.echo(f"{instance.group} {instance.seed}", err=True)
        rows += [compete(one, instance) for one in taking_part]
    table = pd.DataFrame(rows)
    table.to_csv(out / "quality.csv", index=False, float_format="%.10g")
    text = page(table, [name for name in FORBACK if name in set(table.contestant)], PEERS)
    (out / "quality.md").write_text(text, encoding="utf-8")
    typer.echo(text)


if __name__ == "__main__":
    typer.run(main)
