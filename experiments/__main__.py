"""`python -m experiments reproduce` and `python -m experiments bench`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from experiments.study import Part
from forback.report.figures import blank
from forback.report.tables import format_table

#: Where `reproduce` writes, in full and with --quick.
RESULTS, QUICK = "experiments/results", "experiments/quick"


def _make_folder(folder: Path) -> None:
    """Before the work begins: its end would be a bad time to find that there is no place."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(str(error), param_hint="--out") from error


def _add_reproduce(app: typer.Typer) -> None:
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
        from experiments.reproduce import NAMES, find
        from experiments.reproduce import reproduce as run

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

    def label(part: Part | None) -> str:
        return "" if part is None else part.label

    with typer.progressbar(parts, label=name, item_show_func=label, file=sys.stderr) as bar:
        yield iter(bar)


def _add_bench(app: typer.Typer) -> None:
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
        from experiments.bench import listing, make_plan, run
        from experiments.race import Rules

        if show:
            typer.echo(listing())
            return
        try:
            plan = make_plan(only, quick, not no_growth, Rules(rounds, threads))
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--only") from error
        _make_folder(out)
        typer.echo(run(plan, out, say=lambda line: typer.echo(line, err=True)))


def make_app() -> typer.Typer:
    """Both commands."""
    app = typer.Typer(no_args_is_help=True, add_completion=False)
    _add_reproduce(app)
    _add_bench(app)
    return app


if __name__ == "__main__":
    make_app()()
