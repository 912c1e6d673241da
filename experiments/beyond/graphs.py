"""How well greedy edges and the graphical lasso find a known graph.

The comparison of Johnson, Jalali and Ravikumar (2012), on graphs of our own: both methods are told
the number of edges, and the F1 score says how many of them are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from benchmarks.contestants.glasso import tuned_lasso
from experiments.report.figures import Figure, Panel
from experiments.report.page import Claim, Section
from experiments.study import Experiment, Part, Row, f_measure, mean_line
from forback import FobaCovariance
from forback.datasets import Graph, make_graph
from forback.report.tables import Table

KINDS = ("chain", "star")
VARIABLES = 36
ROWS = (30, 40, 60, 120, 240, 480)

#: 20 seeds are what one would look at; 200, those 20 included, tell what was chance.
FEW_SEEDS = 20
SEEDS = 200

Edges = set[tuple[int, int]]


def parts(quick: bool) -> list[Part]:
    """List a part for each kind of graph and number of rows."""
    seeds = 2 if quick else SEEDS
    rows: Sequence[int] = (60, 480) if quick else ROWS
    return [
        Part(f"{kind}, {n} rows", partial(run_part, kind, n, seeds)) for kind in KINDS for n in rows
    ]


def run_part(kind: str, n: int, seeds: int) -> list[Row]:
    """Draw graphs, look for as many edges as there are, and compare with the truth."""
    rows: list[Row] = []
    for seed in range(seeds):
        graph = make_graph(kind, n=n, p=VARIABLES, random_state=seed)
        true = {(i, j) for i, j in graph.edges.tolist()}
        row = {
            "kind": kind,
            "rows": n,
            "edges": len(true),
            "seed": seed,
            "foba": f_measure(greedy_edges(graph), true),
            "lasso": f_measure(lasso_edges(graph), true),
        }
        rows.append(row)
    return rows


def greedy_edges(graph: Graph) -> Edges:
    """Find as many edges as there are by FoBa-gdt."""
    return set(FobaCovariance(k=len(graph.edges)).fit(graph.X).edges_)


def lasso_edges(graph: Graph) -> Edges:
    """Find as many edges as there are, or nearly, by a graphical lasso tuned to that number."""
    precision = tuned_lasso(graph.X, len(graph.edges))[1]
    return {(int(i), int(j)) for i, j in np.argwhere(np.triu(precision, 1) != 0.0)}


# What to tell --------------------------------------------------------------------------------


def section(rows: pd.DataFrame) -> Section:
    """Show F1 against the number of rows, and count how often a graph is found exactly."""
    few = rows[rows["seed"] < FEW_SEEDS]
    panels = [
        Panel(
            f"{kind} of {VARIABLES} variables",
            "rows",
            "mean F1",
            [
                mean_line("FobaCovariance", own, "rows", "foba", "foba-gdt"),
                mean_line("graphical lasso", own, "rows", "lasso", "l1"),
            ],
            log_x=True,
        )
        for kind, own in rows.groupby("kind", sort=False)
    ]
    ahead = is_ahead(rows)
    found = (
        f"F1 at least the graphical lasso's in {ahead.sum()} of {len(ahead)} cases over "
        f"{rows['seed'].nunique()} seeds, in {is_ahead(few).sum()} over the first "
        f"{few['seed'].nunique()}"
    )
    return Section(
        intro=(
            "Gaussian variables whose graph is known, a chain or a star. Both methods are told the "
            "number of edges, the graphical lasso by bisection on its penalty. Not an experiment "
            "of the paper, which names covariance selection as a use of its algorithms."
        ),
        comparison=f"Greedy edges: {found}.",
        claims=[
            Claim(
                "Johnson, Jalali and Ravikumar (2012): greedy needs fewer rows than the graphical "
                "lasso",
                found,
                bool(ahead.all()),
            )
        ],
        figures=[Figure("graphs", "Mean F1, shaded by two standard errors", panels)],
        tables=[_table(few), _table(rows)] if len(few) < len(rows) else [_table(rows)],
    )


def is_ahead(rows: pd.DataFrame) -> pd.Series:
    """Tell, for each kind of graph and number of rows, if greedy's mean F1 is as high."""
    means = rows.groupby(["kind", "rows"])[["foba", "lasso"]].mean()
    return means["foba"] >= means["lasso"]


def _table(rows: pd.DataFrame) -> Table:
    methods = {"foba": "FobaCovariance", "lasso": "graphical lasso"}
    lines = []
    for (kind, n), case in rows.groupby(["kind", "rows"], sort=False):
        means = [f"{case[name].mean():.3f}" for name in methods]
        exact = [f"{(case[name] == 1.0).sum()} of {len(case)}" for name in methods]
        lines.append([kind, str(n), str(case["edges"].iloc[0]), *means, *exact])
    header = [f"{what} {name}" for what in ("F1", "exact") for name in methods.values()]
    return Table(f"{rows['seed'].nunique()} seeds", ["graph", "rows", "edges", *header], lines)


EXPERIMENT = Experiment("graphs", "Known graphs: greedy edges, graphical lasso", parts, section)
