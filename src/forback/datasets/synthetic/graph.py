"""Gaussian samples whose precision matrix has the zeros of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forback.core.types import Floats, Ints
from forback.validation.scalars import check_choice, check_generator, check_integer

#: Number of edges of a random graph, per variable.
EDGES_PER_VARIABLE = 2

#: Lower bound on the eigenvalues of a random graph's precision matrix.
MIN_EIGENVALUE = 0.3


@dataclass(frozen=True)
class Graph:
    """A Gaussian sample and the graph of its precision matrix.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        The sample.
    precision : ndarray of shape (p, p)
        The true precision matrix, zero where there is no edge.
    edges : ndarray of shape (n_edges, 2)
        Pairs of variables, the lower number first.
    """

    X: Floats
    precision: Floats
    edges: Ints


def make_graph(kind: str = "chain", *, n: int = 200, p: int = 36, random_state: Any = 0) -> Graph:
    """Simulate a Gaussian sample with mean zero whose precision matrix has the zeros of a graph.

    ========  ===================================================================================
    kind      edges
    ========  ===================================================================================
    chain     between consecutive variables; diagonal 1, entries -0.4
    star      between variable 0 and one in five of the others; diagonal 1, entries
              -0.9 / sqrt(number of edges)
    random    2p random pairs; entries of either sign, magnitudes uniform on [0.2, 0.5]; the
              diagonal exceeds the absolute row sum by 0.3
    ========  ===================================================================================

    Parameters
    ----------
    kind : {"chain", "star", "random"}
        The graph.
    n, p : int
        Number of rows and of variables, of which there must be at least 2.
    random_state : int, numpy.random.Generator or None
        Seed or generator; None draws different data at every call.

    Returns
    -------
    Graph
        Holds `X`, `precision` and `edges`.

    Examples
    --------
    >>> graph = make_graph("star", n=100, p=36)
    >>> graph.X.shape, len(graph.edges)
    ((100, 36), 7)
    """
    check_choice(kind, "kind", GRAPH_KINDS)
    n = check_integer(n, "n", low=1)
    p = check_integer(p, "p", low=2)
    rng = check_generator(random_state)
    precision = GRAPH_KINDS[kind](p, rng)
    # Theta = C C': if z is white noise, C'^-1 z has the covariance Theta^-1.
    factor = np.linalg.cholesky(precision)
    X = np.linalg.solve(factor.T, rng.normal(size=(p, n))).T
    edges = np.argwhere(np.triu(precision, 1) != 0.0)
    return Graph(np.ascontiguousarray(X), precision, edges)


def _chain_precision(p: int, rng: np.random.Generator) -> Floats:
    return np.eye(p) - 0.4 * (np.eye(p, k=1) + np.eye(p, k=-1))


def _star_precision(p: int, rng: np.random.Generator) -> Floats:
    leaves = np.arange(1, 1 + max(1, (p - 1) // 5))
    precision = np.eye(p)
    precision[0, leaves] = precision[leaves, 0] = -0.9 / np.sqrt(len(leaves))
    return precision


def _random_precision(p: int, rng: np.random.Generator) -> Floats:
    i, j = np.triu_indices(p, 1)
    picked = rng.choice(len(i), min(len(i), EDGES_PER_VARIABLE * p), replace=False)
    entries = rng.uniform(0.2, 0.5, len(picked)) * rng.choice([-1.0, 1.0], len(picked))
    precision = np.zeros((p, p))
    precision[i[picked], j[picked]] = precision[j[picked], i[picked]] = entries
    return precision + np.diag(np.abs(precision).sum(axis=1) + MIN_EIGENVALUE)


#: How the precision matrix of each kind of graph is made, for p variables and a generator.
GRAPH_KINDS = {"chain": _chain_precision, "star": _star_precision, "random": _random_precision}
