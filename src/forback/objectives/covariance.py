"""Gaussian covariance selection: the precision matrix with few edges.

    Q(Theta) = -log det Theta + tr(S Theta) + 1/2 sum_{i<j} ridge_ij theta_ij^2

Candidates are the edges i < j in the order of ``numpy.triu_indices(p, 1)``, with the coordinate
theta_ij = theta_ji; the diagonal comes after them and is always in.

Inside, S is a correlation matrix: with d_i^2 = S_ii the coordinates are d_i d_j theta_ij, and Q is
less by sum_i log S_ii. So the units of the variables do not matter.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from forback import threads, validation
from forback.kernels.logdet import components
from forback.numerics import UNBOUNDED, Minimum, State, newton, steepness
from forback.objectives.edge_lines import Lines, make_lines
from forback.objectives.logdet import RUNAWAY, Entries, RunsAway, invert
from forback.protocols import Blocks, Floats, Ints, Point

#: A start that is not positive definite is tried with off-diagonal entries halved so often.
HALVINGS = 6

#: From so many entries on a second thread helps to factor a Hessian.
MANY = 1000


@dataclass(frozen=True)
class Fit:
    """What a point of a `GaussianCovariance` carries along."""

    objective: GaussianCovariance  #: whose point it is: nobody else can use it
    W: Floats  #: the inverse of Theta, for correlations; zero between components of the graph
    shares: Floats  #: the part of Q that each component has, at its lowest variable


class GaussianCovariance:
    """Twice the negative log-likelihood per row of a Gaussian, up to a constant, plus ridge.

    Parameters
    ----------
    S : array or data frame of shape (p, p)
        The empirical covariance. Names of a data frame become names of edges, such as "Raf-Mek";
        otherwise edges are called "0-1", "0-2" and so on.
    n_samples : int, optional
        How many rows S is made of; only information criteria need it.
    ridge : float or array of length p (p - 1) / 2
        The L2 penalty of the edges; the diagonal has none.
    tol : float
        `minimise` stops when no |W_ij - S_ij| exceeds `tol` times sqrt(S_ii S_jj), where W is the
        inverse of Theta.
    max_iter : int
        Newton steps per fit.

    Notes
    -----
    If S is singular (fewer rows than variables, or collinear ones) Q may fall without end on some
    supports. A fit then stops where a variable is told by its neighbours to all but 1e-8 of its
    variance, and its point has a note. With ridge there always is a minimiser.

    Examples
    --------
    >>> import numpy as np
    >>> from forback import select
    >>> from forback.objectives import GaussianCovariance
    >>> X = np.random.default_rng(0).normal(size=(500, 4)) @ np.array(
    ...     [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    ... )
    >>> path = select(GaussianCovariance.from_data(X), k=2)
    >>> [path.name(step.feature) for step in path.steps]
    ['0-1', '1-2']
    """

    def __init__(
        self,
        S: Any,
        n_samples: int | None = None,
        *,
        ridge: Any = 0.0,
        tol: float = 1e-10,
        max_iter: int = 100,
    ) -> None:
        matrix, self.variables = validation.check_covariance(S)
        if n_samples is not None:
            n_samples = validation.check_integer(n_samples, "n_samples", low=1)
        p = len(matrix)
        self._n_samples, self.n_variables = n_samples, p
        self.n_candidates, self.dim = p * (p - 1) // 2, p * (p + 1) // 2
        upper, diagonal = np.triu_indices(p, 1), np.arange(p)
        self._i = np.concatenate([upper[0], diagonal]).astype(np.intp)
        self._j = np.concatenate([upper[1], diagonal]).astype(np.intp)
        self._places = self._i * p + self._j  # in a matrix written row by row
        self.ridge = validation.check_ridge(ridge, self.n_candidates, per="edge")
        self.tol = validation.check_number(tol, "tol", low=0.0, open_low=True)
        self.max_iter = validation.check_integer(max_iter, "max_iter", low=1)
        self._deviation = deviation = np.sqrt(matrix.diagonal())
        self._scale = deviation[self._i] * deviation[self._j]
        self._offset = 2.0 * float(np.log(deviation).sum())
        self._S = matrix / deviation[:, None] / deviation
        np.fill_diagonal(self._S, 1.0)
        self._s = self._S.ravel()[self._places]
        self._counts = np.where(self._i == self._j, 1.0, 2.0)
        own = np.concatenate([self.ridge, np.zeros(p)])
        self._ridge = np.divide(own / self._scale, self._scale, out=own, where=own > 0.0)

    @classmethod
    def from_data(
        cls,
        X: Any,
        *,
        assume_centered: bool = False,
        ridge: Any = 0.0,
        tol: float = 1e-10,
        max_iter: int = 100,
    ) -> Self:
        """The objective of the rows of X; their covariance is taken about their mean, or zero."""
        _, S, names = validation.covariance_of(X, assume_centered=assume_centered)
        objective = cls(S, len(X), ridge=ridge, tol=tol, max_iter=max_iter)
        objective.variables = names
        return objective

    # What the loop calls -----------------------------------------------------------------------

    def minimise(self, support: Ints, start: Point | None = None) -> Point:
        """beta-hat(F): the minimiser of Q over `support`, warm-started at `start`.

        Theta is block diagonal over the components of the graph. Only those are fitted that are
        not at their minimum yet.
        """
        support = np.asarray(support, dtype=np.intp)
        if len(support) < self.n_variables or support[-self.n_variables] != self.n_candidates:
            raise ValueError(
                f"support must hold the diagonal, coordinates {self.n_candidates} to {self.dim - 1}"
            )
        draft = _Draft(self, support, start)
        notes = [self._refit(draft, part) for part in draft.unfinished()]
        if draft.has_run_away():
            notes = [UNBOUNDED]
        note = "; ".join(dict.fromkeys(filter(None, notes)))
        value = float(draft.shares.sum()) + self._offset
        fit = Fit(self, draft.W, draft.shares)
        return Point(support, draft.coef / self._scale[support], value, 0, fit, note)

    def gradient(self, point: Point) -> Floats:
        """The gradient of Q: S minus the inverse of Theta, twice where an entry counts twice."""
        W = self._inverse(point)
        slopes = self._counts * (self._s - W.ravel()[self._places])
        coef = point.coef * self._scale[point.support]
        slopes[point.support] += self._ridge[point.support] * coef
        return np.asarray(slopes * self._scale)

    def decrease_if_added(self, point: Point, blocks: Blocks) -> Floats:
        """For each block, how far Q falls when its coordinates alone are optimised."""
        if blocks.are_single:
            lines = self._lines(point, blocks.coordinates)
            return np.maximum(-lines.rise(lines.lowest()), 0.0)
        return np.array([self._fall(point, block) for block in blocks])

    def increase_if_removed(self, point: Point, blocks: Blocks) -> Floats:
        """For each block, Q with its coordinates set to zero minus Q; may be infinite."""
        if blocks.are_single:
            lines = self._lines(point, blocks.coordinates)
            return lines.rise(-lines.theta)
        rises = []
        for block in blocks:
            problem, here = self._alone(point, block)
            rises.append(problem.at(np.zeros(len(block))).value - here.value)
        return np.array(rises)

    def value_and_gradient(self, beta: Floats) -> tuple[float, Floats]:
        """Q and its gradient at any dense vector of length `dim`.

        Infinite, with a gradient of NaN, where Theta is not positive definite.
        """
        coef = np.asarray(beta, dtype=np.float64) * self._scale
        state = Entries(self._i, self._j, self._S, self._ridge).at(coef)
        return state.value + self._offset, state.gradient * self._scale

    def information(self, point: Point) -> tuple[float, float, int]:
        """(log-likelihood, number of rows, degrees of freedom) for information criteria.

        Minus infinity where there is no minimiser, so that no criterion prefers such a point.
        """
        if self._n_samples is None:
            raise ValueError(
                "information criteria need the number of rows: give n_samples, as in "
                "GaussianCovariance(S, n_samples=100)"
            )
        n, df = self._n_samples, len(point.support)
        if UNBOUNDED in point.note:
            return -math.inf, float(n), df
        edges = point.support < self.n_candidates
        ridge = self.ridge[point.support[edges]]
        fit = point.value - 0.5 * float(ridge @ point.coef[edges] ** 2)
        return -0.5 * n * (fit + self.n_variables * math.log(2.0 * math.pi)), float(n), df

    # What a graph knows besides ----------------------------------------------------------------

    @property
    def n_samples(self) -> int:
        """The number of rows."""
        if self._n_samples is None:
            raise ValueError("n_samples was not given")
        return self._n_samples

    @property
    def edges(self) -> Ints:
        """The two variables of each candidate, P x 2."""
        n = self.n_candidates
        return np.column_stack([self._i[:n], self._j[:n]])

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """A name for each candidate: its variables, such as "Raf-Mek", or their numbers."""
        for names in (self.variables, None):
            names = names or tuple(map(str, range(self.n_variables)))
            pairs = tuple(f"{names[i]}-{names[j]}" for i, j in self.edges.tolist())
            if len(set(pairs)) == len(pairs):  # "a-b" and "c" are no better than "a" and "b-c"
                break
        return pairs

    def edge(self, one: int | str, other: int | str) -> int:
        """The coordinate of the edge between two variables, given by number or name."""
        i, j = sorted(self._variable(variable) for variable in (one, other))
        if i == j:
            raise ValueError(f"an edge joins two variables; met {one!r} and {other!r}")
        return i * (2 * self.n_variables - i - 1) // 2 + j - i - 1

    def precision(self, point: Point) -> Floats:
        """Theta as a p x p matrix."""
        theta = np.zeros((self.n_variables, self.n_variables))
        i, j = self._i[point.support], self._j[point.support]
        theta[i, j] = theta[j, i] = point.coef
        return theta

    def covariance(self, point: Point) -> Floats:
        """The inverse of Theta, p x p; it agrees with S on the diagonal and on the edges."""
        return np.asarray(self._inverse(point) * self._deviation[:, None] * self._deviation)

    def _variable(self, variable: int | str) -> int:
        return validation.check_variable(variable, self.n_variables, self.variables, "an edge")

    # Pieces ------------------------------------------------------------------------------------

    def _inverse(self, point: Point) -> Floats:
        """The inverse of Theta, worked out again if the point has lost it."""
        if isinstance(point.cache, Fit) and point.cache.objective is self:
            return point.cache.W
        i, j = self._i[point.support], self._j[point.support]
        entries = Entries(i, j, self._S, self._ridge[point.support])
        inverse = entries.at(point.coef * self._scale[point.support]).cache
        if inverse is None:
            raise ValueError("point is not positive definite")
        return np.asarray(inverse.W)

    def _refit(self, draft: _Draft, part: Ints) -> str:
        """Minimise Q over the entries of one component, and return what to know about it."""
        nodes = np.flatnonzero(draft.root == draft.root[draft.i[part[0]]])
        place = np.searchsorted(nodes, draft.i[part]), np.searchsorted(nodes, draft.j[part])
        S = self._S[np.ix_(nodes, nodes)]
        problem = Entries(*place, S, self._ridge[draft.support[part]])
        with threads.one_blas_thread() if len(part) < MANY else nullcontext():
            found = self._newton(problem, _inside(problem, draft.coef[part]))
        draft.finish(part, nodes, found.state)
        return found.note

    def _newton(self, problem: Entries, state: State) -> Minimum:
        if steepness(state, problem.counts) <= self.tol:
            return Minimum(state, "", None)
        try:
            return newton(
                problem, state, problem.counts, unit=1.0, tol=self.tol, max_iter=self.max_iter
            )
        except RunsAway as end:
            return Minimum(end.state, UNBOUNDED, None)

    def _lines(self, point: Point, coordinates: Ints) -> Lines:
        """Q along single edges from a point."""
        W, theta = self._inverse(point), point.dense(self.dim)[coordinates]
        return self._lines_at(W, coordinates, theta * self._scale[coordinates])

    def _lines_at(self, W: Floats, coordinates: Ints, theta: Floats) -> Lines:
        diagonal, i, j = W.diagonal(), self._i[coordinates], self._j[coordinates]
        return make_lines(
            W.ravel()[self._places[coordinates]], diagonal[i], diagonal[j],
            self._s[coordinates], theta, self._ridge[coordinates],
        )  # fmt: skip

    def _alone(self, point: Point, block: Ints) -> tuple[Entries, State]:
        """Q as a function of the edges of a block, and where the point is.

        Only the variables U that they touch matter: det Theta changes as that of the inverse of W
        on U, the precision of these variables by themselves.
        """
        i, j = self._i[block], self._j[block]
        nodes = np.unique(np.concatenate([i, j]))
        inside = np.ix_(nodes, nodes)
        own = invert(self._inverse(point)[inside])[1]
        assert own is not None  # a principal part of what is positive definite
        here = point.dense(self.dim)[block] * self._scale[block]
        i, j, rest = np.searchsorted(nodes, i), np.searchsorted(nodes, j), own.W
        rest[i, j] -= here
        rest[j, i] -= here
        problem = Entries(i, j, self._S[inside], self._ridge[block], rest)
        return problem, problem.at(here)

    def _fall(self, point: Point, block: Ints) -> float:
        """How far Q falls when the edges of a block are optimised, the rest held."""
        problem, here = self._alone(point, block)
        return max(here.value - self._newton(problem, here).state.value, 0.0)


class _Draft:
    """A fit under way: entries of Theta, its inverse, and which components still need work."""

    def __init__(self, objective: GaussianCovariance, support: Ints, start: Point | None) -> None:
        self.objective, self.support = objective, support
        self.i, self.j = objective._i[support], objective._j[support]
        p = objective.n_variables
        self._edges = support[:-p]
        self.root = components(self.i[:-p], self.j[:-p], p)
        self.coef = (self.i == self.j).astype(np.float64)
        self.W, self.shares = np.eye(p), np.ones(p)
        self._stale = np.zeros(p, dtype=np.bool_)  # variables whose part of W is out of date
        if start is not None:
            self._take_over(start)

    def _take_over(self, start: Point) -> None:
        """Begin at another point, with what it knows."""
        objective = self.objective
        before = start.dense(objective.dim) * objective._scale
        self.coef = before[self.support]
        if not isinstance(start.cache, Fit) or start.cache.objective is not objective:
            self._stale[:] = True
        else:
            self.W, self.shares = start.cache.W.copy(), start.cache.shares.copy()
            inside = np.zeros((2, objective.dim), dtype=np.bool_)
            inside[0, start.support] = inside[1, self.support] = True
            left = start.support[~inside[1, start.support] & (start.coef != 0.0)]
            self._stale[objective._i[left]] = self._stale[objective._j[left]] = True
            joined = self._edges[~inside[0, self._edges]]
            if len(joined) == 1 and not self._stale.any():
                self._let_in(joined)
        self._reset(self._stale & (np.bincount(self.root, minlength=len(self.root))[self.root] == 1))

    def _let_in(self, joined: Ints) -> None:
        """Begin with the new edge near its best.

        Without ridge the entries (i, i), (j, j) and (i, j) are set so that W is S there: a step of
        iterative proportional fitting. Where i and j were not connected, that is the minimiser.
        """
        objective, place = self.objective, int(np.searchsorted(self._edges, joined[0]))
        i, j = int(self.i[place]), int(self.j[place])
        if objective._ridge[joined[0]] > 0.0:
            self.coef[place] = objective._lines_at(self.W, joined, np.zeros(1)).lowest()[0]
        else:
            a, b, w, p = self.W[i, i], self.W[j, j], self.W[i, j], len(self.root)
            # Two variables that are the same run away at once, to where nothing overflows.
            s = float(np.clip(objective._S[i, j], 0.1 / RUNAWAY - 1.0, 1.0 - 0.1 / RUNAWAY))
            wanted, met = (1.0 - s) * (1.0 + s), a * b - w * w
            self.coef[place] += w / met - s / wanted
            self.coef[i - p] += 1.0 / wanted - b / met
            self.coef[j - p] += 1.0 / wanted - a / met
        self._stale[[i, j]] = True

    def _reset(self, alone: Any) -> None:
        """Variables without edges have the minimiser 1."""
        self.coef[-len(alone) :][alone] = 1.0
        self.W[alone] = self.W[:, alone] = 0.0
        self.W[alone, alone] = 1.0
        self.shares[alone] = 1.0
        self._stale[alone] = False

    def unfinished(self) -> list[Ints]:
        """The entries of each component that is not at its minimum."""
        objective = self.objective
        own = objective._places[self.support]
        counts = objective._counts[self.support]
        slopes = counts * (objective._s[self.support] - self.W.ravel()[own])
        slopes += objective._ridge[self.support] * self.coef
        steep = self._stale.copy()
        steep[self.i[np.abs(slopes) > objective.tol * counts]] = True
        roots = self.root[self.i]
        return [np.flatnonzero(roots == root) for root in np.unique(self.root[steep])]

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
        return bool(far.any()) and not self.objective.ridge.all()


def _inside(problem: Entries, coef: Floats) -> State:
    """The state at some entries or, where these are not positive definite, at smaller ones."""
    diagonal = problem.i == problem.j
    for _ in range(HALVINGS):
        state = problem.at(coef)
        if np.isfinite(state.value):
            return state
        coef = np.where(diagonal, coef, 0.5 * coef)
    return problem.at(diagonal.astype(np.float64))
