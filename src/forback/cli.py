"""The command line: `forback demo`, `reproduce`, `bench`. Needs the extra ``[cli]``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import forback
from forback.report.figures import blank
from forback.report.tables import format_table

if TYPE_CHECKING:
    import typer

    from forback.experiments.study import Part

#: Where `reproduce` writes, in full and with --quick.
RESULTS, QUICK = "experiments/results", "experiments/quick"


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
        from forback.experiments.warm import warm_up

        start = time.perf_counter()
        warm_up(say=lambda line: typer.echo(line, err=True))
        typer.echo(f"ready after {time.perf_counter() - start:.0f} s; the next start takes no time")

    _add_reproduce(app)
    _add_bench(app)
    return app


def _make_folder(folder: Path) -> None:
    """Before the work begins: its end would be a bad time to find that there is no place."""
    import typer

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(str(error), param_hint="--out") from error


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
        from forback.experiments.demo import Simulation, tables

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


def _add_reproduce(app: typer.Typer) -> None:
    import typer

    @app.command()
    def reproduce(
        name: str = typer.Argument("", help="An experiment, or all."),
        quick: bool = typer.Option(False, "--quick", help="Few trials, small sizes: a minute."),
        show: bool = typer.Option(False, "--list", help="List the experiments and stop."),
        out: str = typer.Option(
            "", "--out", help=f"Folder for the results; else {RESULTS}, or {QUICK} if quick."
        ),
    ) -> None:
        """Run experiments of the paper again: CSV files, figures, one page.

        A run that was interrupted goes on where it was, if the code is the same; one that ended
        begins anew.
        """
        from forback.experiments.reproduce import NAMES, find
        from forback.experiments.reproduce import reproduce as run

        if show or not name:
            found = [find(one) for one in NAMES]
            lines = [[one.name, one.title, one.needs] for one in found]
            typer.echo(format_table(["name", "what", "needs"], lines))
            return
        if name != "all" and name not in NAMES:
            wanted = f"no experiment is called {name!r}; there are all, {', '.join(NAMES)}"
            raise typer.BadParameter(wanted, param_hint="NAME")
        folder = Path(out or (QUICK if quick else RESULTS))
        _make_folder(folder)
        try:
            blank(1.0, 1.0)  # the end would be a bad time to find that nothing can be drawn
        except ImportError as error:
            raise typer.BadParameter(str(error), param_hint="NAME") from error
        names = NAMES if name == "all" else [name]
        try:
            done = run(
                names, folder, quick=quick, progress=_show_parts,
                say=lambda line: typer.echo(line, err=True),
            )  # fmt: skip
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--out") from error
        except KeyboardInterrupt:
            typer.echo("\nStopped. The same command goes on where it was.", err=True)
            raise typer.Exit(130) from None
        if not done:
            raise typer.Exit(2)
        typer.echo(f"{', '.join(done)}: see {folder / 'index.html'}")


@contextmanager
def _show_parts(name: str, parts: Sequence[Part]) -> Iterator[Iterator[Part]]:
    """A progress bar on the terminal that names the part under way."""
    import typer

    def label(part: Part | None) -> str:
        return "" if part is None else part.label

    with typer.progressbar(parts, label=name, item_show_func=label, file=sys.stderr) as bar:
        yield iter(bar)


def _add_bench(app: typer.Typer) -> None:
    import typer

    @app.command()
    def bench(
        quick: bool = typer.Option(False, "--quick", help="Small sizes: does everything run?"),
        only: list[str] = typer.Option([], "--only", help="A workload; may be repeated."),  # noqa: B008
        rounds: int = typer.Option(5, "--rounds", min=1, help="Timed runs of each contestant."),
        threads: int = typer.Option(2, "--threads", min=1, help="Threads for everybody."),
        out: Path = typer.Option("forback-bench", "--out", help="Folder for the results."),  # noqa: B008
        no_growth: bool = typer.Option(False, "--no-growth", help="Skip the growth study."),
        show: bool = typer.Option(False, "--list", help="List the workloads and stop."),
    ) -> None:
        """Time forback against its peers and against the floor of k passes over X."""
        from forback.experiments.bench import listing, make_plan, run
        from forback.experiments.race import Rules

        if show:
            typer.echo(listing())
            return
        try:
            plan = make_plan(only, quick, not no_growth, Rules(rounds, threads))
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--only") from error
        _make_folder(out)
        typer.echo(run(plan, out, say=lambda line: typer.echo(line, err=True)))
