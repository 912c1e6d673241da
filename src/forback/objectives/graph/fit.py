"""A fit of a precision matrix under way, component by component of its graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forback.core.point import Point
from forback.core.status import Status
from forback.core.types import Floats, Ints
from forback.objectives.graph.kernels.curvature import components
from forback.objectives.graph.kernels.sweeps import sweep
from forback.objectives.graph.lines import EdgeLines
from forback.objectives.graph.problem import (
    MAX_UNIT_PRECISION,
    Diverged,
    RestrictedLogDet,
    invert,
)
from forback.solvers import threads
from forback.solvers.newton import Minimum, State, newton, steepness

if TYPE_CHECKING:
    from forback.objectives.graph.objective import GaussianCovariance

#: A start that is not positive definite is tried with off-diagonal entries halved so often.
MAX_START_HALVINGS = 6

#: Sweeps over the variables of a component before Newton's method takes over.
MAX_SWEEPS = 50

#: From this many entries on a second thread helps to factor a Hessian.
MIN_ENTRIES_FOR_BLAS_THREADS = 1000

#: A ridge is cut to this, on the scale of correlations: an edge then makes no difference.
MAX_EDGE_RIDGE = 1e100


class CorrelationProblem:
    """The problem for variables of unit variance. Coordinates are edges, then the diagonal.

    Attributes
    ----------
    S : Floats
        A covariance with unit diagonal.
    n_variables : int
    i : Ints
        The entry (i, j) of each coordinate, i <= j.
    j : Ints
    places : Ints
        The place of each entry in a matrix written row by row.
    counts : Floats
        The number of times that an entry is in the matrix: 1 on the diagonal, else 2.
    s : Floats
        The entry of S.
    ridge : Floats
    scale : Floats
        A coordinate here over that of the user.
    tol : float
        The size of gradient at which a fit ends, for each coordinate relative to its count.
    max_iter : int
        Newton steps per fit.
    """

    def __init__(
        self, S: Floats, deviation: Floats, ridge: Floats, tol: float, max_iter: int
    ) -> None:
        """The problem of a correlation matrix, for a user's variables with these deviations."""
        p = len(S)
        upper_i, upper_j = np.triu_indices(p, 1)
        diagonal = np.arange(p)
        self.S = S
        self.n_variables = p
        self.i = np.concatenate([upper_i, diagonal])
        self.j = np.concatenate([upper_j, diagonal])
        self.places = self.i * p + self.j
        self.counts = np.where(self.i == self.j, 1.0, 2.0)
        self.s = S[self.i, self.j]
        self.scale = deviation[self.i] * deviation[self.j]
        self.ridge = np.zeros(len(self.i))
        with np.errstate(over="ignore"):
            own = ridge / self.scale[:-p] / self.scale[:-p]
        self.ridge[:-p] = np.minimum(own, MAX_EDGE_RIDGE)
        self.tol = tol
        self.max_iter = max_iter

    def slopes(self, W: Floats, coordinates: Ints | slice = np.s_[:]) -> Floats:
        """Return the gradient of Q without its ridge, where the inverse of Theta is W."""
        off = self.s[coordinates] - W.ravel()[self.places[coordinates]]
        return np.asarray(self.counts[coordinates] * off)

    def lines(self, W: Floats, coordinates: Ints, theta: Floats) -> EdgeLines:
        """Q along single entries, from where the inverse is W and these entries are `theta`."""
        root = np.sqrt(W.diagonal())
        unit = root[self.i[coordinates]] * root[self.j[coordinates]]
        w = W.ravel()[self.places[coordinates]] / unit
        ridge = self.ridge[coordinates] / unit / unit
        return EdgeLines(w, self.s[coordinates] / unit, theta * unit, ridge)

    def restricted(self, coordinates: Ints) -> RestrictedLogDet:
        """Q as a function of some entries, the others being zero."""
        i, j = self.i[coordinates], self.j[coordinates]
        return RestrictedLogDet(i, j, self.S, self.ridge[coordinates])

    def block_alone(self, W: Floats, block: Ints, theta: Floats) -> tuple[RestrictedLogDet, State]:
        """Q as a function of the edges of a block, from where they are `theta`.

        Only the variables U that they touch matter: det Theta changes as that of the inverse of W
        on U, the precision of these variables by themselves.
        """
        ends = np.array([self.i[block], self.j[block]])
        nodes = np.unique(ends)
        i, j = np.searchsorted(nodes, ends)
        inside = np.ix_(nodes, nodes)
        own = invert(W[inside])[1]
        assert own is not None  # a principal part of what is positive definite
        rest = own.W
        rest[i, j] -= theta
        rest[j, i] -= theta
        problem = RestrictedLogDet(i, j, self.S[inside], self.ridge[block], rest)
        return problem, problem.at(theta)

    def newton(self, problem: RestrictedLogDet, state: State) -> Minimum:
        """Minimise Q over some entries by Newton's method."""
        counts = problem.counts
        if steepness(state, counts) <= self.tol:
            return Minimum(state, Status.CONVERGED, None)
        try:
            return newton(problem, state, counts, unit=1.0, tol=self.tol, max_iter=self.max_iter)
        except Diverged as end:
            return Minimum(end.state, Status.UNBOUNDED, None)


@dataclass(frozen=True)
class GraphCache:
    """What a point of a `GaussianCovariance` carries along.

    Attributes
    ----------
    owner : GaussianCovariance
    W : Floats
        The inverse of Theta, for correlations; zero between components of the graph.
    shares : Floats
        The part of Q that each component has, at its lowest variable.
    """

    owner: GaussianCovariance
    W: Floats
    shares: Floats


class ComponentFit:
    """A fit under way: entries of Theta, its inverse, and which components still need work."""

    def __init__(
        self,
        problem: CorrelationProblem,
        support: Ints,
        start: Point | None,
        cache: GraphCache | None,
    ) -> None:
        p = problem.n_variables
        self.problem = problem
        self.support = support
        self.i = problem.i[support]
        self.j = problem.j[support]
        self.root = components(self.i[:-p], self.j[:-p], p)
        self.coef = (self.i == self.j).astype(np.float64)
        if start is not None:
            self.coef = (start.dense(len(problem.i)) * problem.scale)[support]
        if start is None or cache is None:
            self.W = problem.S.copy()
            self.shares = np.ones(p)
            self._stale = np.ones(p, dtype=np.bool_)  # variables whose part of W is out of date
        else:
            self._take_over(start, cache)
        alone = np.bincount(self.root, minlength=p)[self.root] == 1
        self._reset(self._stale & alone)

    def _take_over(self, start: Point, cache: GraphCache) -> None:
        """Begin with the inverse of another point, out of date where edges have come or gone."""
        problem = self.problem
        self.W = cache.W.copy()
        self.shares = cache.shares.copy()
        is_changed = np.zeros(len(problem.i), dtype=np.bool_)  # many times as fast as np.setxor1d
        is_changed[self.support] = True
        is_changed[start.support] ^= True
        changed = np.flatnonzero(is_changed)
        self._stale = np.zeros(problem.n_variables, dtype=np.bool_)
        self._stale[problem.i[changed]] = True
        self._stale[problem.j[changed]] = True
        has_joined = len(self.support) > len(start.support)
        if len(changed) == 1 and has_joined:  # begin with the new edge at its best
            best = problem.lines(self.W, changed, np.zeros(1)).lowest()[0]
            self.coef[np.searchsorted(self.support, changed[0])] = best

    def _reset(self, alone: Any) -> None:
        """Set variables without edges to their minimiser, 1."""
        self.coef[-len(alone) :][alone] = 1.0
        self.W[alone] = 0.0
        self.W[:, alone] = 0.0
        self.W[alone, alone] = 1.0
        self.shares[alone] = 1.0
        self._stale[alone] = False

    def run(self) -> Status:
        """Fit every component that is not at its minimum; return how the first of them ended.

        The status is ``UNBOUNDED`` where neighbours all but determine some variable, and no ridge
        holds it back.
        """
        problem = self.problem
        gradient = problem.slopes(self.W, self.support)
        gradient += problem.ridge[self.support] * self.coef
        due = self._stale.copy()
        due[self.i[np.abs(gradient) > problem.tol * problem.counts[self.support]]] = True
        roots = self.root[self.i]
        status = Status.CONVERGED
        for root in np.unique(self.root[due]):
            ending = self._fit_component(np.flatnonzero(self.root == root), roots == root)
            status = ending if status is Status.CONVERGED else status
        p = problem.n_variables
        has_diverged = (self.coef[-p:] > MAX_UNIT_PRECISION).any()
        return Status.UNBOUNDED if has_diverged and not problem.ridge[:-p].all() else status

    def _fit_component(self, nodes: Ints, part: NDArray[np.bool_]) -> Status:
        """Minimise Q over the entries of one component, and return how that ended.

        Without ridge sweeps all but do the work. They give up where variables are nearly
        collinear; nothing is lost then but time.
        """
        inside = np.ix_(nodes, nodes)
        i = np.searchsorted(nodes, self.i[part])
        j = np.searchsorted(nodes, self.j[part])
        S = self.problem.S[inside]
        problem = RestrictedLogDet(i, j, S, self.problem.ridge[self.support[part]])
        coef = self.coef[part]
        with threads.one_blas_thread(when=len(coef) < MIN_ENTRIES_FOR_BLAS_THREADS):
            if not problem.ridge.any():
                W = self.W[inside]
                sweep(i, j, S, W, self._stale[nodes], self.problem.tol, MAX_SWEEPS, coef)
            found = self.problem.newton(problem, _inside_domain(problem, coef))
        self.coef[part] = found.state.coef
        self.W[nodes] = 0.0
        self.W[:, nodes] = 0.0
        self.W[inside] = found.state.cache.W
        self.shares[nodes] = 0.0
        self.shares[nodes[0]] = found.state.value
        return found.status


def _inside_domain(problem: RestrictedLogDet, coef: Floats) -> State:
    """The state at some entries or, where Q is infinite or no better than at the identity, there.

    Before that, smaller entries off the diagonal are tried.
    """
    diagonal = problem.i == problem.j
    for _ in range(MAX_START_HALVINGS):
        state = problem.at(coef)
        if state.value <= len(problem.S):  # what Q is at the identity
            return state
        coef = np.where(diagonal, coef, 0.5 * coef)
    return problem.at(diagonal.astype(np.float64))
