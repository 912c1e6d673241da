"""The command line: `forback demo` and `forback warm`. Needs the extra ``[cli]``."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import forback

if TYPE_CHECKING:
    import typer


def main() -> None:
    """Run the command line; exit with one line of text if typer is missing or a write fails."""
    try:
        import typer  # noqa: F401
    except ImportError:
        sys.exit('The command line needs typer: pip install "forback[cli]"')
    try:
        try:
            make_app()()
        finally:
            print(end="", flush=True)
    except OSError as error:
        sys.exit(f"forback: {_describe(error)}")


def _describe(error: OSError) -> str:
    """Describe a failed write: to standard output, if that is full or closed, or to a file."""
    try:
        # Flushing alone would not fail again: what could not be written is dropped.
        print(flush=True)
    except OSError as broken:
        # Python flushes once more at exit and would report the failure again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return f"standard output cannot be written to: {broken.strerror}"
    return str(error)


def make_app() -> typer.Typer:
    """Build the typer application, on demand, so that importing this module needs no extra.

    Returns
    -------
    typer.Typer
        The commands `version`, `demo` and `warm`.
    """
    import typer

    app = typer.Typer(
        help="Chooses the few features that matter, for any smooth convex loss.",
        no_args_is_help=True,
        add_completion=False,
    )

    @app.command()
    def version() -> None:
        """Print the version."""
        typer.echo(forback.__version__)

    @app.command()
    def demo(
        sensors: int = typer.Option(15, "--sensors", min=1, max=40, help="Sensors at most."),
        steps: int = typer.Option(20_000, "--steps", min=4000, help="Steps to simulate."),
        seed: int = typer.Option(0, "--seed", min=0, help="Seed of the simulation."),
        tabular: bool = typer.Option(False, "--tabular", help="Two bundled data sets instead."),
        k: int = typer.Option(7, "--k", min=0, max=10, help="With --tabular: columns at most."),
    ) -> None:
        """Choose the sensors of a simulated home that recognise a person's activities.

        With --tabular: features of two bundled data sets, by the four algorithms of the paper.
        """
        from forback.demo import Simulation, tables

        typer.echo(f"forback {forback.__version__}\n")
        typer.echo("(the first run compiles kernels, for up to half a minute)", err=True)
        if tabular:
            typer.echo(tables(k))
            return
        home = Simulation(steps, seed)
        typer.echo(f"{home.description}\n")
        with typer.progressbar(length=sensors, label="choosing sensors", file=sys.stderr) as bar:
            model = home.choose(sensors, lambda step: bar.update(max(step.groups - bar.pos, 0)))
        typer.echo(f"\n{home.report(model)}")

    @app.command()
    def warm() -> None:
        """Compile all kernels now, so that later runs start without delay."""
        from forback.warm import warm_up

        start = time.perf_counter()
        warm_up(say=lambda line: typer.echo(line, err=True))
        typer.echo(f"compiled in {time.perf_counter() - start:.0f} s and cached for later runs")

    return app
