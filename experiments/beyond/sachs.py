"""Edges between proteins, beside the network of Sachs et al. (2005)."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd

from experiments.report.page import Section
from experiments.study import Experiment, Part, Row
from forback import Path, select
from forback.datasets import load_cytometry
from forback.objectives import GaussianCovariance
from forback.report.tables import Table

#: The network of Sachs et al. (2005) without arrows: the 17 edges that bnlearn's repository has.
NETWORK = (
    "Raf-Mek Mek-Erk Plcg-PIP2 Plcg-PIP3 PIP3-PIP2 Erk-Akt PKA-Raf PKA-Mek PKA-Erk PKA-Akt PKA-P38 "
    "PKA-Jnk PKC-Raf PKC-Mek PKC-P38 PKC-Jnk PKC-PKA"
)

#: Known from the literature before, and reported as missed.
MISSED = "Plcg-PKC PIP2-PKC PIP3-Akt"

EDGES = 20


def known(edges: str) -> set[frozenset[str]]:
    """Split a list of edges into pairs of proteins."""
    return {frozenset(edge.split("-")) for edge in edges.split()}


def find_path(folder: str | os.PathLike[str] | None = None, k: int = EDGES) -> Path:
    """Run FoBa-gdt to k edges on the correlations of the logarithms."""
    data = load_cytometry(folder=folder)
    S = np.corrcoef(data.X, rowvar=False)
    return select(GaussianCovariance(S, len(data.X), names=data.names), k=k)


def steps(path: Path) -> list[Row]:
    """Describe each step: the edge added or removed, and whether the network has it."""
    network, missed = known(NETWORK), known(MISSED)
    rows: list[Row] = []
    hits = 0
    for number, step in enumerate(path.steps, 1):
        name = path.name(step.feature)
        pair = frozenset(name.split("-"))
        inside = "yes" if pair in network else "missed there" if pair in missed else ""
        hits += (1 if step.action == "add" else -1) * (pair in network)
        sign = "+" if step.action == "add" else "-"
        row = {
            "step": number,
            "edge": f"{sign} {name}",
            "edges": step.size,
            "objective": step.value,
            "known": inside,
            "hits": hits,
        }
        rows.append(row)
    return rows


def table(rows: pd.DataFrame) -> Table:
    """Format the steps as a table."""
    header = ["step", "edge", "edges in", "objective", "in the network", "of the network so far"]
    shown = rows.assign(objective=rows["objective"].map("{:.4f}".format)).fillna({"known": ""})
    return Table("Steps", header, shown.astype(str).to_numpy().tolist())


def parts(quick: bool) -> list[Part]:
    """List a single part, since the run is short."""
    return [Part("proteins", lambda: steps(find_path(k=5 if quick else EDGES)))]


def section(rows: pd.DataFrame) -> Section:
    """Show the steps and count the edges that are in the network."""
    last = rows.iloc[-1]
    return Section(
        intro=(
            "Edges between 11 proteins in 7466 single cells (Sachs et al. 2005), chosen one by one "
            "by FoBa-gdt on the correlations of logarithms, beside the network of 17 edges that "
            "was published from interventions. Not an experiment of the paper."
        ),
        comparison=(
            f"Of the first {last['edges']} edges, {last['hits']} are in the published network."
        ),
        tables=[table(rows)],
    )


EXPERIMENT = Experiment(
    "sachs", "Edges between proteins", parts, section, "public data (docs/datasets.md)"
)
