"""The command line: `forback demo`, `forback bench`. Needs the extra ``[cli]``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import forback
from forback.report import format_table

if TYPE_CHECKING:
    import typer


def main() -> None:
    """Run the command line, or say what to install."""
    try:
        import typer  # noqa: F401
    except ImportError:
        sys.exit('The command line needs typer: pip install "forback[cli]"')
    make_app()()


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

    @app.command()
    def demo(
        k: int = typer.Option(7, "--k", min=0, max=10, help="How many features to choose."),
    ) -> None:
        """Choose features of two bundled data sets by the four algorithms of the paper."""
        from sklearn.datasets import load_breast_cancer, load_diabetes

        typer.echo(f"forback {forback.__version__}: at most k = {k} features, four algorithms")
        typer.echo(
            "(on a new machine kernels are compiled first, for about half a minute)", err=True
        )
        typer.echo("")
        bunch = load_breast_cancer()
        title = "Breast cancer, logistic regression: test score is accuracy"
        typer.echo(_demo_table(title, forback.FobaClassifier(k), bunch))
        typer.echo("")
        bunch = load_diabetes(scaled=False)
        title = "Diabetes progression, least squares: test score is R^2"
        typer.echo(_demo_table(title, forback.FobaRegressor(k), bunch))

    @app.command()
    def warm() -> None:
        """Compile the kernels now, so that nobody waits for them later."""
        from forback.experiments.warm import warm_up

        start = time.perf_counter()
        warm_up(say=lambda line: typer.echo(line, err=True))
        typer.echo(f"ready after {time.perf_counter() - start:.0f} s; the next start takes no time")

    _add_bench(app)
    return app


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
        typer.echo(run(plan, out, say=lambda line: typer.echo(line, err=True)))


def _demo_table(title: str, estimator: Any, bunch: Any) -> str:
    """Fit the four methods on three quarters of the rows and tabulate them."""
    from sklearn.base import clone
    from sklearn.model_selection import train_test_split

    from forback.selection.select import METHODS

    X, X_test, y, y_test = train_test_split(bunch.data, bunch.target, random_state=0)
    rows = []
    for method in METHODS:
        model = clone(estimator).set_params(method=method).fit(X, y)  # compiles, the first time
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        names = ", ".join(bunch.feature_names[j] for j in model.selected_)
        score = model.score(X_test, y_test)
        rows.append(
            [
                method,
                f"{model.objective_value_:.4g}",
                f"{score:.3f}",
                str(model.n_iter_),
                f"{seconds:.3f}",
                names or "(none)",
            ]
        )
    header = [
        "method",
        "objective",
        "test score",
        "steps",
        "seconds",
        "features, in order of entry",
    ]
    size = f"{len(X)} rows to learn from, {len(X_test)} to test, {X.shape[1]} columns"
    return f"{title} ({size})\n" + format_table(header, rows)
