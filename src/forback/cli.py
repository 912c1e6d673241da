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
    """Run the command line, or say what to install."""
    try:
        import typer  # noqa: F401
    except ImportError:
        sys.exit('The command line needs typer: pip install "forback[cli]"')
    try:
        try:
            make_app()()
        finally:
            _flush()
    except OSError as error:
        sys.exit(f"forback: {_blame(error)}")


def _flush() -> None:
    if sys.stdout is not None:  # as it is where it was closed from the start
        sys.stdout.flush()


def _blame(error: OSError) -> str:
    """What cannot be written to: standard output, if that is full or nobody reads it any more."""
    try:
        print()  # what could not be written is forgotten, so flushing once more would not tell
        _flush()
    except OSError as broken:
        # Python would try once more at the end, and say so.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return f"standard output cannot be written to: {broken.strerror}"
    return str(error)


def make_app() -> typer.Typer:
    """The typer application, built on demand so that importing this module needs no extra."""
    import typer

    app = typer.Typer(
        help="Chooses the few features that matter, for any smooth convex loss.",
        no_args_is_help=True,
        add_completion=False,
    )

    @app.callback()
    def root() -> None:
        pass

    @app.command()
    def version() -> None:
        """Print the version."""
        typer.echo(forback.__version__)

    _add_demo(app)

    @app.command()
    def warm() -> None:
        """Compile the kernels now, so that nobody waits for them later."""
        from forback.warm import warm_up

        start = time.perf_counter()
        warm_up(say=lambda line: typer.echo(line, err=True))
        typer.echo(f"ready after {time.perf_counter() - start:.0f} s; the next start takes no time")

    return app


def _add_demo(app: typer.Typer) -> None:
    import typer

    @app.command()
    def demo(
        sensors: int = typer.Option(15, "--sensors", min=1, max=40, help="The most to choose."),
        steps: int = typer.Option(20_000, "--steps", min=4000, help="Steps to simulate."),
        seed: int = typer.Option(0, "--seed", min=0, help="Of the simulation."),
        tabular: bool = typer.Option(False, "--tabular", help="Two bundled tables instead."),
        k: int = typer.Option(7, "--k", min=0, max=10, help="With --tabular: how many columns."),
    ) -> None:
        """Choose sensors of a simulated home that tell what a person does there.

        With --tabular: features of two bundled data sets, by the four algorithms of the paper.
        """
        from forback.demo import Simulation, tables

        typer.echo(f"forback {forback.__version__}\n")
        typer.echo(
            "(on a new machine kernels are compiled first, for up to half a minute)", err=True
        )
        if tabular:
            typer.echo(tables(k))
            return
        home = Simulation(steps, seed)
        typer.echo(f"{home.description}\n")
        with typer.progressbar(length=sensors, label="choosing sensors", file=sys.stderr) as bar:
            model = home.choose(sensors, lambda step: bar.update(max(step.groups - bar.pos, 0)))
        typer.echo(f"\n{home.story(model)}")
