"""A fit of a precision matrix under way, component by component of its graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forback.core.point import Point
from forback.core.types import Floats, Ints
from forback.objectives.graph.kernels.logdet import components
from forback.objectives.graph.kernels.sweeps import sweep
from forback.objectives.graph.lines import Lines, make_lines
from forback.objectives.graph.problem import RUNAWAY, Entries
from forback.solvers.newton import State

#: A start that is not positive definite is tried with off-diagonal entries halved so often.
HALVINGS = 6

#: Sweeps over the variables of a component before Newton's method takes over.
SWEEPS = 50


@dataclass(frozen=True)
class Standard:
    """The problem on the scale of correlations, coordinate by coordinate: edges, then diagonal."""

    S: Floats  #: of unit diagonal
    i: Ints  #: the entry (i, j) of each coordinate, i <= j
    j: Ints
    places: Ints  #: the same in a matrix written row by row
    counts: Floats  #: how often an entry is in the matrix: 1 on the diagonal, else 2
    s: Floats  #: what S is there
    ridge: Floats
    scale: Floats  #: a coordinate here over that of the user

    @property
    def n_variables(self) -> int:
        """The number of variables."""
        return len(self.S)

    def lines(self, W: Floats, coordinates: Ints, theta: Floats) -> Lines:
        """Q along single entries, from where the inverse is W and these entries are `theta`."""
        diagonal, i, j = W.diagonal(), self.i[coordinates], self.j[coordinates]
        return make_lines(
            W.ravel()[self.places[coordinates]], diagonal[i], diagonal[j],
            self.s[coordinates], theta, self.ridge[coordinates],
        )  # fmt: skip


#: With a larger one no edge is told from none.
LARGEST_RIDGE = 1e100


def standardise(matrix: Floats, ridge: Floats) -> Standard:
    """The same problem with variables of unit variance."""
    p, deviation = len(matrix), np.sqrt(matrix.diagonal())
    upper, diagonal = np.triu_indices(p, 1), np.arange(p)
    i = np.concatenate([upper[0], diagonal]).astype(np.intp)
    j = np.concatenate([upper[1], diagonal]).astype(np.intp)
    scale = deviation[i] * deviation[j]
    S = matrix / deviation[:, None] / deviation
    np.fill_diagonal(S, 1.0)
    own = np.concatenate([ridge, np.zeros(p)])
    with np.errstate(over="ignore"):
        own = np.divide(own / scale, scale, out=np.zeros_like(own), where=own > 0.0)
    own = np.minimum(own, LARGEST_RIDGE)
    counts = np.where(i == j, 1.0, 2.0)
    return Standard(S, i, j, i * p + j, counts, S[i, j], own, scale)


@dataclass(frozen=True)
class Fit:
    """What a point carries along."""

    entries: Standard  #: whose point it is: nobody else can use it
    W: Floats  #: the inverse of Theta, for correlations; zero between components of the graph
    shares: Floats  #: the part of Q that each component has, at its lowest variable


class Draft:
    """A fit under way: entries of Theta, its inverse, and which components still need work."""

    def __init__(self, entries: Standard, support: Ints, start: Point | None) -> None:
        self.entries, self.support = entries, support
        self.i, self.j = entries.i[support], entries.j[support]
        p = entries.n_variables
        self._edges = support[:-p]
        self.root = components(self.i[:-p], self.j[:-p], p)
        self.coef = (self.i == self.j).astype(np.float64)
        self.W, self.shares = np.eye(p), np.ones(p)
        self._stale = np.ones(p, dtype=np.bool_)  # variables whose part of W is out of date
        self._knows_nothing = True
        if start is not None:
            self._take_over(start)
        alone = np.bincount(self.root, minlength=p)[self.root] == 1
        self._reset(self._stale & alone)

    def _take_over(self, start: Point) -> None:
        """Begin at another point, with what it knows."""
        entries = self.entries
        before = start.dense(len(entries.i)) * entries.scale
        self.coef = before[self.support]
        if not isinstance(start.cache, Fit) or start.cache.entries is not entries:
            return
        self._knows_nothing = False
        self.W, self.shares = start.cache.W.copy(), start.cache.shares.copy()
        inside = np.zeros((2, len(entries.i)), dtype=np.bool_)
        inside[0, start.support] = inside[1, self.support] = True
        joined = self._edges[~inside[0, self._edges]]
        changed = np.concatenate([joined, start.support[~inside[1, start.support]]])
        self._stale[:] = False
        self._stale[entries.i[changed]] = self._stale[entries.j[changed]] = True
        if len(changed) == len(joined) == 1:  # begin with the new edge at its best
            best = entries.lines(self.W, joined, np.zeros(1)).lowest()[0]
            self.coef[np.searchsorted(self._edges, joined[0])] = best

    def _reset(self, alone: Any) -> None:
        """Variables without edges have the minimiser 1."""
        self.coef[-len(alone) :][alone] = 1.0
        self.W[alone] = self.W[:, alone] = 0.0
        self.W[alone, alone] = 1.0
        self.shares[alone] = 1.0
        self._stale[alone] = False

    def unfinished(self, tol: float) -> list[Ints]:
        """The entries of each component that is not at its minimum."""
        entries = self.entries
        own = entries.places[self.support]
        counts = entries.counts[self.support]
        slopes = counts * (entries.s[self.support] - self.W.ravel()[own])
        slopes += entries.ridge[self.support] * self.coef
        steep = self._stale.copy()
        steep[self.i[np.abs(slopes) > tol * counts]] = True
        roots = self.root[self.i]
        return [np.flatnonzero(roots == root) for root in np.unique(self.root[steep])]

    def begin(self, part: Ints, nodes: Ints, problem: Entries, tol: float) -> State:
        """Where the fit of one component begins: without ridge, where sweeps have all but done it.

        They give up where variables are nearly collinear; nothing is lost then but time.
        """
        coef = self.coef[part]
        if not problem.ridge.any():
            W = (self.entries.S if self._knows_nothing else self.W)[np.ix_(nodes, nodes)]
            sweep(problem.i, problem.j, problem.S, W, self._stale[nodes], tol, SWEEPS, coef)
        return _inside_domain(problem, coef)

    def finish(self, part: Ints, nodes: Ints, state: State) -> None:
        """Take over the minimum of one component."""
        self.coef[part] = state.coef
        self.W[nodes] = 0.0
        self.W[:, nodes] = 0.0
        self.W[np.ix_(nodes, nodes)] = state.cache.W
        self.shares[nodes] = 0.0
        self.shares[nodes[0]] = state.value

    def has_run_away(self) -> bool:
        """Whether some variable is all but told by its neighbours, and no ridge holds it back."""
        far = self.coef[-len(self.root) :] > RUNAWAY
        return bool(far.any()) and not self.entries.ridge[: -len(self.root)].all()


def _inside_domain(problem: Entries, coef: Floats) -> State:
    """The state at some entries or, where Q is infinite or no better than at the identity, there.

    Before that, smaller entries off the diagonal are tried.
    """
    diagonal = problem.i == problem.j
    for _ in range(HALVINGS):
        state = problem.at(coef)
        if state.value <= len(problem.S):  # what Q is at the identity
            return state
        coef = np.where(diagonal, coef, 0.5 * coef)
    return problem.at(diagonal.astype(np.float64))
