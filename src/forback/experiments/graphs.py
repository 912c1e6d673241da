"""`forback reproduce graphs`: how well greedy edges and the graphical lasso find a known graph.

The comparison of Johnson, Jalali and Ravikumar (2012), on graphs of our own: both methods are told
the number of edges, and the F1 score says how many of them are right.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import mean

import numpy as np
from sklearn.covariance import empirical_covariance, graphical_lasso
from sklearn.exceptions import ConvergenceWarning

from forback.datasets import Graph, make_graph
from forback.estimators.covariance import FobaCovariance
from forback.protocols import Floats
from forback.report import format_table, markdown_table

KINDS = ("chain", "star")
VARIABLES = 36
ROWS = (30, 40, 60, 120, 240, 480)
SEEDS = 20

#: So often the penalty of a graphical lasso is tried before the nearest number of edges will do.
TRIES = 30

#: The accuracy of scikit-learn's inner lasso. At its default of 1e-4 the outer loop often runs into
#: its limit of 100 rounds; with this a few will do, and a fit takes far less time.
INNER = 1e-8

Edges = set[tuple[int, int]]


@dataclass(frozen=True)
class Finding:
    """How well the edges of one kind of graph are found from so many rows, over some seeds."""

    kind: str
    rows: int
    edges: int
    seeds: int
    foba: float  #: mean F1 of FobaCovariance
    lasso: float  #: mean F1 of the graphical lasso
    foba_exact: int  #: how often the graph found is the true one
    lasso_exact: int


def study(
    kinds: Iterable[str] = KINDS,
    rows: Iterable[int] = ROWS,
    seeds: int = SEEDS,
    say: Callable[[str], None] = lambda line: None,
) -> list[Finding]:
    """Draw graphs, look for as many edges as there are, and compare with the truth."""
    findings = []
    for kind in kinds:
        for n in rows:
            say(f"{kind}, {n} rows")
            graphs = [make_graph(kind, n=n, p=VARIABLES, random_state=s) for s in range(seeds)]
            found = [(greedy_edges(graph), lasso_edges(graph)) for graph in graphs]
            scores = [
                tuple(f1(edges, true_edges(graph)) for edges in both)
                for both, graph in zip(found, graphs, strict=True)
            ]
            foba, lasso = zip(*scores, strict=True)
            findings.append(
                Finding(
                    kind, n, len(graphs[0].edges), seeds, mean(foba), mean(lasso),
                    sum(score == 1.0 for score in foba), sum(score == 1.0 for score in lasso),
                )
            )  # fmt: skip
    return findings


def true_edges(graph: Graph) -> Edges:
    """The edges of a graph as pairs."""
    return {(i, j) for i, j in graph.edges.tolist()}


def f1(found: Edges, true: Edges) -> float:
    """The harmonic mean of the shares of edges found that are true and of true ones found."""
    return 2.0 * len(found & true) / (len(found) + len(true))


def greedy_edges(graph: Graph) -> Edges:
    """As many edges as there are, by FoBa-gdt."""
    return set(FobaCovariance(k=len(graph.edges)).fit(graph.X).edges_)


def lasso_edges(graph: Graph) -> Edges:
    """As many edges as there are, or nearly, by a graphical lasso with the penalty for that."""
    precision = tuned_lasso(graph.X, len(graph.edges))[1]
    return {(int(i), int(j)) for i, j in np.argwhere(np.triu(precision, 1) != 0.0)}


def tuned_lasso(X: Floats, k: int) -> tuple[float, Floats]:
    """The penalty for which a graphical lasso on correlations has k edges, and its precision.

    By bisection; where no penalty gives exactly k edges, the nearest number met.
    """
    S = empirical_covariance((X - X.mean(axis=0)) / X.std(axis=0))
    high = float(np.abs(np.triu(S, 1)).max())  # from here on there are no edges
    low = 0.0
    best: tuple[float, float, Floats] | None = None
    for _ in range(TRIES):
        penalty = 0.5 * (low + high)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                precision = graphical_lasso(S, penalty, enet_tol=INNER)[1]
            except FloatingPointError:  # too small a penalty for so few rows
                low = penalty
                continue
        count = int(np.count_nonzero(np.triu(precision, 1)))
        if best is None or abs(count - k) < best[0]:
            best = abs(count - k), penalty, precision
        if count == k:
            break
        low, high = (penalty, high) if count > k else (low, penalty)
    assert best is not None  # the first penalties are large enough for any data
    return best[1:]


# Tables ------------------------------------------------------------------------------------------

HEADER = [
    "graph", "rows", "edges", "F1 FobaCovariance", "F1 graphical lasso", "exact FobaCovariance",
    "exact graphical lasso",
]  # fmt: skip


def cells(findings: Iterable[Finding]) -> list[list[str]]:
    """A line of text for each finding."""
    return [
        [
            one.kind, str(one.rows), str(one.edges), f"{one.foba:.3f}", f"{one.lasso:.3f}",
            f"{one.foba_exact} of {one.seeds}", f"{one.lasso_exact} of {one.seeds}",
        ]
        for one in findings
    ]  # fmt: skip


def write(findings: list[Finding], folder: Path, command: str) -> str:
    """Write `graphs.csv` and `graphs.md`, and return the text to print."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "graphs.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, [field.name for field in fields(Finding)])
        writer.writeheader()
        writer.writerows(asdict(one) for one in findings)
    seeds = findings[0].seeds
    text = (
        f"# Known graphs\n\nWritten by `{command}`: {VARIABLES} variables, {seeds} seeds, both "
        "methods told the number of edges, the graphical lasso by bisection on its penalty. F1 is "
        "a mean over the seeds; exact is how often the graph found is the true one.\n\n"
        f"{markdown_table(HEADER, cells(findings))}\n"
    )
    (folder / "graphs.md").write_text(text, encoding="utf-8")
    return format_table(HEADER, cells(findings))
