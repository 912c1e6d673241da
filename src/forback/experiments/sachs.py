"""`forback reproduce sachs`: edges between proteins, beside the network of Sachs et al. (2005)."""

from __future__ import annotations

import os

import numpy as np

from forback.datasets import load_cytometry
from forback.objectives import GaussianCovariance
from forback.report import markdown_table
from forback.selection.path import Path
from forback.selection.select import select

#: The network of Sachs et al. (2005) without arrows: the 17 edges that bnlearn's repository has.
NETWORK = (
    "Raf-Mek Mek-Erk Plcg-PIP2 Plcg-PIP3 PIP3-PIP2 Erk-Akt PKA-Raf PKA-Mek PKA-Erk PKA-Akt PKA-P38 "
    "PKA-Jnk PKC-Raf PKC-Mek PKC-P38 PKC-Jnk PKC-PKA"
)

#: Known from the literature before, and reported as missed.
MISSED = "Plcg-PKC PIP2-PKC PIP3-Akt"

EDGES = 20


def known(edges: str) -> set[frozenset[str]]:
    """Pairs of proteins."""
    return {frozenset(edge.split("-")) for edge in edges.split()}


def find_path(folder: str | os.PathLike[str] | None = None, k: int = EDGES) -> Path:
    """FoBa-gdt to k edges, on the correlations of the logarithms."""
    data = load_cytometry(folder=folder)
    S = np.corrcoef(data.X, rowvar=False)
    return select(GaussianCovariance(S, len(data.X), names=data.names), k=k)


def table(path: Path) -> str:
    """A line for each step: who came or went, and what the network says about the two."""
    network, missed = known(NETWORK), known(MISSED)
    rows, hits = [], 0
    for number, step in enumerate(path.steps, 1):
        name = path.name(step.feature)
        pair = frozenset(name.split("-"))
        inside = "yes" if pair in network else "missed there" if pair in missed else ""
        hits += (1 if step.action == "add" else -1) * (pair in network)
        sign = "+" if step.action == "add" else "-"
        rows.append(
            [str(number), f"{sign} {name}", str(step.size), f"{step.value:.4f}", inside, str(hits)]
        )
    header = ["step", "edge", "edges in", "objective", "in the network", "of the network so far"]
    return markdown_table(header, rows)
