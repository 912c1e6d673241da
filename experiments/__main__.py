"""`python -m experiments NAME`: run the paper's experiments again."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from benchmarks.runner.plot import blank
from experiments.reproduce import NAMES, check_folder, find, reproduce
from experiments.study import Part
from forback.report.tables import format_table

HERE = Path(__file__).resolve().parent

#: Where results go, in full and with --quick.
RESULTS = HERE / "results"
QUICK_RESULTS = HERE / "quick"


def main(
    name: str = typer.Argument("", help="An experiment, or all."),
    quick: bool = typer.Option(False, "--quick", help="Few trials, small sizes: a minute."),
    show: bool = typer.Option(False, "--list", help="List the experiments and stop."),
    out: str = typer.Option(
        "",
        "--out",
        help="Folder for the results; else experiments/results, or experiments/quick if quick.",
    ),
) -> None:
    """Run experiments of the paper again: CSV files, figures, one page.

    A run that was interrupted goes on where it was, if the code is the same; one that ended begins
    anew.
    """
    if show or not name:
        found = [find(one) for one in NAMES]
        lines = [[one.name, one.title, one.needs] for one in found]
        typer.echo(format_table(["name", "what", "needs"], lines))
        return
    if name != "all" and name not in NAMES:
        wanted = f"no experiment is called {name!r}; there are all, {', '.join(NAMES)}"
        raise typer.BadParameter(wanted, param_hint="NAME")
    folder = Path(out) if out else QUICK_RESULTS if quick else RESULTS
    names = NAMES if name == "all" else [name]
    # The end would be a bad time to find that nothing can be written or drawn.
    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_folder(names, folder, quick)
        blank(1.0, 1.0)
    except (OSError, ValueError, ImportError) as error:
        raise typer.BadParameter(str(error), param_hint="--out") from error
    try:
        done = reproduce(names, folder, quick=quick, progress=show_parts, say=_say)
    except KeyboardInterrupt:
        typer.echo("\nStopped. The same command goes on where it was.", err=True)
        raise typer.Exit(130) from None
    if not done:
        raise typer.Exit(2)
    typer.echo(f"{', '.join(done)}: see {folder / 'README.md'}")


def _say(line: str) -> None:
    typer.echo(line, err=True)


@contextmanager
def show_parts(name: str, parts: Sequence[Part]) -> Iterator[Iterator[Part]]:
    """Show a progress bar on the terminal that names the part under way."""

    def label(part: Part | None) -> str:
        return "" if part is None else part.label

    with typer.progressbar(parts, label=name, item_show_func=label, file=sys.stderr) as bar:
        yield iter(bar)


app = typer.Typer(add_completion=False)
app.command()(main)

if __name__ == "__main__":
    app()
