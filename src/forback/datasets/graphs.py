"""Gaussian samples whose precision matrix is that of a known graph, and a real one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np

from forback.datasets.files import read
from forback.datasets.sources import CYTOMETRY
from forback.protocols import Floats, Ints
from forback.validation import check_choice, check_generator, check_integer

KINDS = ("chain", "star", "random")

#: Edges per variable of a random graph.
DENSITY = 2

#: What the eigenvalues of a random graph's precision matrix are kept above.
LEAST = 0.3

#: The proteins, as Sachs et al. write them, in the order of the columns.
PROTEINS = ("Raf", "Mek", "Plcg", "PIP2", "PIP3", "Erk", "Akt", "PKA", "PKC", "P38", "Jnk")


@dataclass(frozen=True)
class Graph:
    """Rows of a Gaussian and the graph of its precision matrix."""

    X: Floats  #: (n, p)
    precision: Floats  #: (p, p), zero where there is no edge
    edges: Ints  #: (number of edges, 2), each row with the lower variable first


@dataclass(frozen=True)
class Cytometry:
    """Proteins measured in single cells."""

    X: Floats  #: (7466, 11), natural logarithms
    names: tuple[str, ...]  #: of the proteins


def make_graph(kind: str = "chain", *, n: int = 200, p: int = 36, random_state: Any = 0) -> Graph:
    """Draw n rows of a Gaussian with mean zero whose precision matrix is that of a graph.

    ========  ===================================================================================
    kind      edges
    ========  ===================================================================================
    chain     between neighbours: a diagonal of 1, entries of -0.4
    star      between variable 0 and one in five of the others: a diagonal of 1, entries that
              make the partial correlations with the hub -0.9 / sqrt(number of edges)
    random    2p of them anywhere, entries of 0.2 to 0.5 of either sign; the diagonal exceeds the
              sum of a row by 0.3
    ========  ===================================================================================

    Parameters
    ----------
    kind : {"chain", "star", "random"}
        Which graph.
    n, p : int
        Rows and variables; at least two variables.
    random_state : int, numpy.random.Generator or None
        The seed. None gives other data at every call.

    Returns
    -------
    Graph
        With `X`, `precision` and `edges`.

    Examples
    --------
    >>> graph = make_graph("star", n=100, p=36)
    >>> graph.X.shape, len(graph.edges)
    ((100, 36), 7)
    """
    check_choice(kind, "kind", KINDS)
    n, p = check_integer(n, "n", low=1), check_integer(p, "p", low=2)
    rng = check_generator(random_state)
    make = {"chain": _chain, "star": _star, "random": _random}[kind]
    precision = make(p, rng)
    # Theta = C C': if z is white noise, C'^-1 z has the covariance wanted.
    factor = np.linalg.cholesky(precision)
    X = np.linalg.solve(factor.T, rng.normal(size=(p, n))).T
    edges = np.argwhere(np.triu(precision, 1) != 0.0)
    return Graph(np.ascontiguousarray(X), precision, edges)


def _chain(p: int, rng: np.random.Generator) -> Floats:
    return np.eye(p) - 0.4 * (np.eye(p, k=1) + np.eye(p, k=-1))


def _star(p: int, rng: np.random.Generator) -> Floats:
    leaves = np.arange(1, p)[: max(1, (p - 1) // 5)]
    precision = np.eye(p)
    precision[0, leaves] = precision[leaves, 0] = -0.9 / np.sqrt(len(leaves))
    return precision


def _random(p: int, rng: np.random.Generator) -> Floats:
    i, j = np.triu_indices(p, 1)
    picked = rng.choice(len(i), min(len(i), DENSITY * p), replace=False)
    entries = rng.uniform(0.2, 0.5, len(picked)) * rng.choice([-1.0, 1.0], len(picked))
    precision = np.zeros((p, p))
    precision[i[picked], j[picked]] = precision[j[picked], i[picked]] = entries
    return precision + np.diag(np.abs(precision).sum(axis=1) + LEAST)


def load_cytometry(*, folder: str | os.PathLike[str] | None = None) -> Cytometry:
    """Read the flow cytometry of Sachs et al. (2005): 11 proteins in 7466 cells.

    Parameters
    ----------
    folder : str or path, optional
        A folder of public data files. Without one the file is looked for below the folder that the
        environment variable FORBACK_DATA names, else in the user's cache (``~/.cache/forback``),
        else it is downloaded into that.

    Returns
    -------
    Cytometry
        With `X`, natural logarithms of the measurements, and `names`.

    Examples
    --------
    >>> load_cytometry().X.shape  # doctest: +SKIP
    (7466, 11)
    """
    text = read(CYTOMETRY, folder)
    X = np.loadtxt(StringIO(text), delimiter=",", skiprows=1)
    return Cytometry(X, PROTEINS)
