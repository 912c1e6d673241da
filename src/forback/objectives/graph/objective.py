"""Gaussian covariance selection: the precision matrix with few edges.

    Q(Theta) = -log det Theta + tr(S Theta) + 1/2 sum_{i<j} ridge_ij theta_ij^2

Candidates are the edges i < j in the order of ``numpy.triu_indices(p, 1)``, with the coordinate
theta_ij = theta_ji; the diagonal comes after them and is always in.

Inside, S is a correlation matrix: with d_i^2 = S_ii the coordinates are d_i d_j theta_ij, and Q is
less by sum_i log S_ii. So the units of the variables do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from forback.core.blocks import Blocks
from forback.core.features import Features
from forback.core.objective import Likelihood, Objective, Scores
from forback.core.point import Point
from forback.core.status import Status
from forback.core.types import ColumnLabels, Floats, Ints
from forback.objectives.graph.fit import Draft, Fit, standardise
from forback.objectives.graph.lines import Lines
from forback.objectives.graph.problem import Entries, RunsAway, invert
from forback.solvers import threads
from forback.solvers.linalg import ridge_penalty
from forback.solvers.newton import Minimum, State, newton, steepness
from forback.validation import covariance as moments
from forback.validation.arrays import check_ridge
from forback.validation.scalars import check_integer, check_names, check_number

#: From so many entries on a second thread helps to factor a Hessian.
MANY = 1000


class GaussianCovariance(Objective):
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
    names : sequence of str, optional
        Names of the variables, if S has none.
    tol : float
        `minimise` stops when no |W_ij - S_ij| exceeds `tol` times sqrt(S_ii S_jj), where W is the
        inverse of Theta, or where rounding allows no more: near collinear variables, that is.
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
        names: Sequence[str] | None = None,
        tol: float = 1e-10,
        max_iter: int = 100,
    ) -> None:
        matrix, own = moments.check_covariance(S)
        given = check_names(names, len(matrix), per="variable")
        self.variables: ColumnLabels | None = own if given is None else given
        if n_samples is not None:
            n_samples = check_integer(n_samples, "n_samples", low=1)
        p = len(matrix)
        self.n_samples = n_samples
        self.n_variables = p
        self.n_candidates, self.dim = p * (p - 1) // 2, p * (p + 1) // 2
        self.ridge = check_ridge(ridge, self.n_candidates, per="edge")
        self.tol = check_number(tol, "tol", low=0.0, open_low=True)
        self.max_iter = check_integer(max_iter, "max_iter", low=1)
        self._entries = standardise(matrix, self.ridge)
        self._deviation = np.sqrt(matrix.diagonal())
        self._offset = 2.0 * float(np.log(self._deviation).sum())

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
        _, S, labels = moments.covariance_of(X, assume_centered=assume_centered)
        objective = cls(S, len(X), ridge=ridge, tol=tol, max_iter=max_iter)
        objective.variables = labels
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
        draft = Draft(self._entries, support, start)
        endings = [self._refit(draft, part) for part in draft.unfinished(self.tol)]
        unfinished = [status for status in endings if status is not Status.CONVERGED]
        status = unfinished[0] if unfinished else Status.CONVERGED
        if draft.has_run_away():
            status = Status.UNBOUNDED
        note = status.note(max_iter=self.max_iter)
        if status is Status.UNBOUNDED:
            note = f"{note}: S is singular on variables that its edges join"
        value = float(draft.shares.sum()) + self._offset
        fit = Fit(self._entries, draft.W, draft.shares)
        coef = draft.coef / self._entries.scale[support]
        return Point(support, coef, value, 0, fit, note, status)

    def gradient(self, point: Point) -> Floats:
        """The gradient of Q: S minus the inverse of Theta, twice where an entry counts twice."""
        W = self._inverse(point)
        slopes = self._entries.counts * (self._entries.s - W.ravel()[self._entries.places])
        coef = point.coef * self._entries.scale[point.support]
        slopes[point.support] += self._entries.ridge[point.support] * coef
        return np.asarray(slopes * self._entries.scale)

    def decrease_if_added(self, point: Point, blocks: Blocks, *, only_best: bool = False) -> Scores:
        """Return how far Q falls when each block alone is optimised: the goodness of FoBa-obj."""
        if not blocks.are_single:
            return Scores.exact(np.array([self._fall(point, block) for block in blocks]))
        lines = self._lines(point, blocks.coordinates)
        return Scores.exact(np.maximum(-lines.rise(lines.lowest()), 0.0))

    def increase_if_removed(
        self, point: Point, blocks: Blocks, *, below: float | None = None
    ) -> Scores:
        """Return how far Q rises when each block is set to zero without a refit: the badness.

        It may be infinite: without the block, Theta need not be positive definite.
        """
        if blocks.are_single:
            lines = self._lines(point, blocks.coordinates)
            return Scores.exact(lines.rise(-lines.theta))
        rises = []
        for block in blocks:
            problem, here = self._alone(point, block)
            rises.append(problem.at(np.zeros(len(block))).value - here.value)
        return Scores.exact(np.array(rises))

    def value_and_gradient(self, beta: Floats) -> tuple[float, Floats]:
        """Q and its gradient at any dense vector of length `dim`.

        Infinite, with a gradient of NaN, where Theta is not positive definite.
        """
        coef = np.asarray(beta, dtype=np.float64) * self._entries.scale
        state = Entries(self._entries.i, self._entries.j, self._entries.S, self._entries.ridge).at(
            coef
        )
        return state.value + self._offset, state.gradient * self._entries.scale

    def likelihood(self) -> Likelihood | None:
        """Return the likelihood behind Q; None where the number of rows was not given."""
        if self.n_samples is None:
            return None
        return Likelihood(float(self.n_samples), partial(self._log_likelihood, self.n_samples))

    def _log_likelihood(self, n: int, point: Point) -> tuple[float, int]:
        """Minus infinity where there is no minimiser, so that no criterion prefers such a point."""
        df = len(point.support)
        if point.status is Status.UNBOUNDED:
            return -math.inf, df
        edges = point.support < self.n_candidates
        ridge = self.ridge[point.support[edges]]
        fit = point.value - ridge_penalty(ridge, point.coef[edges])
        return -0.5 * n * (fit + self.n_variables * math.log(2.0 * math.pi)), df

    # What a graph knows besides ----------------------------------------------------------------

    @property
    def name(self) -> str:
        """What messages call it."""
        return "GaussianCovariance" + (" without n_samples" if self.n_samples is None else "")

    @property
    def features(self) -> Features:
        """What the edges are called."""
        return Features(self.n_candidates, self.feature_names)

    @property
    def edges(self) -> Ints:
        """The two variables of each candidate, P x 2."""
        n = self.n_candidates
        return np.column_stack([self._entries.i[:n], self._entries.j[:n]])

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """A name for each candidate: its variables, such as "Raf-Mek", or their numbers."""
        for names in (self.variables, None):
            names = names or tuple(range(self.n_variables))
            pairs = tuple(f"{names[i]}-{names[j]}" for i, j in self.edges.tolist())
            if len(set(pairs)) == len(pairs):  # "a-b" and "c" are no better than "a" and "b-c"
                break
        return pairs

    def edge(self, one: Any, other: Any) -> int:
        """The coordinate of the edge between two variables, given by number or label."""
        i, j = sorted(self._variable(variable) for variable in (one, other))
        if i == j:
            raise ValueError(f"an edge joins two variables, got {one!r} and {other!r}")
        return i * (2 * self.n_variables - i - 1) // 2 + j - i - 1

    def precision(self, point: Point) -> Floats:
        """Theta as a p x p matrix."""
        theta = np.zeros((self.n_variables, self.n_variables))
        i, j = self._entries.i[point.support], self._entries.j[point.support]
        theta[i, j] = theta[j, i] = point.coef
        return theta

    def covariance(self, point: Point) -> Floats:
        """The inverse of Theta, p x p; it is S on the diagonal and, without ridge, on the edges."""
        return np.asarray(self._inverse(point) * self._deviation[:, None] * self._deviation)

    def _variable(self, variable: Any) -> int:
        return moments.check_variable(variable, self.n_variables, self.variables, "an edge")

    # Pieces ------------------------------------------------------------------------------------

    def _inverse(self, point: Point) -> Floats:
        """The inverse of Theta, worked out again if the point has lost it."""
        if isinstance(point.cache, Fit) and point.cache.entries is self._entries:
            return point.cache.W
        i, j = self._entries.i[point.support], self._entries.j[point.support]
        entries = Entries(i, j, self._entries.S, self._entries.ridge[point.support])
        inverse = entries.at(point.coef * self._entries.scale[point.support]).cache
        if inverse is None:
            raise ValueError("point is not positive definite")
        return np.asarray(inverse.W)

    def _refit(self, draft: Draft, part: Ints) -> Status:
        """Minimise Q over the entries of one component, and return how that ended."""
        nodes = np.flatnonzero(draft.root == draft.root[draft.i[part[0]]])
        place = np.searchsorted(nodes, draft.i[part]), np.searchsorted(nodes, draft.j[part])
        S = self._entries.S[np.ix_(nodes, nodes)]
        problem = Entries(*place, S, self._entries.ridge[draft.support[part]])
        with threads.one_blas_thread(when=len(part) < MANY):
            found = self._newton(problem, draft.begin(part, nodes, problem, self.tol))
        draft.finish(part, nodes, found.state)
        return found.status

    def _newton(self, problem: Entries, state: State) -> Minimum:
        if steepness(state, problem.counts) <= self.tol:
            return Minimum(state, Status.CONVERGED, None)
        try:
            return newton(
                problem, state, problem.counts, unit=1.0, tol=self.tol, max_iter=self.max_iter
            )
        except RunsAway as end:
            return Minimum(end.state, Status.UNBOUNDED, None)

    def _lines(self, point: Point, coordinates: Ints) -> Lines:
        """Q along single edges from a point."""
        theta = point.dense(self.dim)[coordinates] * self._entries.scale[coordinates]
        return self._entries.lines(self._inverse(point), coordinates, theta)

    def _alone(self, point: Point, block: Ints) -> tuple[Entries, State]:
        """Q as a function of the edges of a block, and where the point is.

        Only the variables U that they touch matter: det Theta changes as that of the inverse of W
        on U, the precision of these variables by themselves.
        """
        i, j = self._entries.i[block], self._entries.j[block]
        nodes = np.unique(np.concatenate([i, j]))
        inside = np.ix_(nodes, nodes)
        own = invert(self._inverse(point)[inside])[1]
        assert own is not None  # a principal part of what is positive definite
        here = point.dense(self.dim)[block] * self._entries.scale[block]
        i, j, rest = np.searchsorted(nodes, i), np.searchsorted(nodes, j), own.W
        rest[i, j] -= here
        rest[j, i] -= here
        problem = Entries(i, j, self._entries.S[inside], self._entries.ridge[block], rest)
        return problem, problem.at(here)

    def _fall(self, point: Point, block: Ints) -> float:
        """How far Q falls when the edges of a block are optimised, the rest held."""
        problem, here = self._alone(point, block)
        return max(here.value - self._newton(problem, here).state.value, 0.0)
