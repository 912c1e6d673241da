"""`python -m benchmarks`: forback against its peers and against the floor of k passes over X."""

from __future__ import annotations

from pathlib import Path

import typer

from benchmarks.runner.plan import listing, make_plan
from benchmarks.runner.plan import run as run_plan
from benchmarks.runner.plot import blank
from benchmarks.runner.race import Rules


def main(
    quick: bool = typer.Option(False, "--quick", help="Small sizes: does everything run?"),
    only: list[str] = typer.Option([], "--only", help="A workload; may be repeated."),  # noqa: B008
    rounds: int = typer.Option(5, "--rounds", min=1, help="Timed runs of each contestant."),
    threads: int = typer.Option(2, "--threads", min=1, help="Threads for everybody."),
    out: Path = typer.Option("forback-bench", "--out", help="Folder for the results."),  # noqa: B008
    no_growth: bool = typer.Option(False, "--no-growth", help="Skip the growth study."),
    show: bool = typer.Option(False, "--list", help="List the workloads and stop."),
) -> None:
    """Time forback against its peers and against the floor of k passes over X."""
    if show:
        typer.echo(listing())
        return
    try:
        plan = make_plan(only, quick, not no_growth, Rules(rounds, threads))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--only") from error
    # The end would be a bad time to find that nothing can be written or drawn.
    try:
        out.mkdir(parents=True, exist_ok=True)
        blank(1.0, 1.0)
    except (OSError, ImportError) as error:
        raise typer.BadParameter(str(error), param_hint="--out") from error
    typer.echo(run_plan(plan, out, say=lambda line: typer.echo(line, err=True)))


app = typer.Typer(add_completion=False)
app.command()(main)

if __name__ == "__main__":
    app()
