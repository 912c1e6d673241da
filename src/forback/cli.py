"""The command line: `forback demo`. Needs the extra ``[cli]``."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import forback

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
        typer.echo("")
        bunch = load_breast_cancer()
        title = "Breast cancer, logistic regression: test score is accuracy"
        typer.echo(_demo_table(title, forback.FobaClassifier(k), bunch))
        typer.echo("")
        bunch = load_diabetes(scaled=False)
        title = "Diabetes progression, least squares: test score is R^2"
        typer.echo(_demo_table(title, forback.FobaRegressor(k), bunch))

    return app


def _demo_table(title: str, estimator: Any, bunch: Any) -> str:
    """Fit the four methods on three quarters of the rows and tabulate them."""
    from sklearn.base import clone
    from sklearn.model_selection import train_test_split

    from forback.selection.select import METHODS

    X, X_test, y, y_test = train_test_split(bunch.data, bunch.target, random_state=0)
    rows = []
    for method in METHODS:
        start = time.perf_counter()
        model = clone(estimator).set_params(method=method).fit(X, y)
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


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned by spaces under a ruled header."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    widths[-1] = len(header[-1])

    def line(cells: Sequence[str]) -> str:
        return "  ".join(
            cell.ljust(width) for cell, width in zip(cells, widths, strict=True)
        ).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *map(line, rows)])
