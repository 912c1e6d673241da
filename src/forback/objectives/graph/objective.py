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
from typing import Any, NamedTuple, Self

import numpy as np

from forback.core.blocks import Blocks
from forback.core.features import Features
from forback.core.objective import Likelihood, Objective, Scores
from forback.core.point import Point
from forback.core.status import Status
from forback.core.types import ColumnLabels, Floats, Ints
from forback.objectives.graph.fit import ComponentFit, CorrelationProblem, GraphCache
from forback.objectives.graph.lines import EdgeLines
from forback.objectives.graph.problem import RestrictedLogDet
from forback.solvers.linalg import ridge_penalty
from forback.solvers.newton import State
from forback.validation import covariance as moments
from forback.validation.arrays import check_ridge
from forback.validation.scalars import check_integer, check_names, check_number


class KnownCovariance(NamedTuple):
    """A symmetric, positive semidefinite matrix with positive variances: nothing is checked."""

    matrix: Floats
    labels: ColumnLabels | None = None


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
    If S is singular (fewer rows than variables, or collinear ones) Q may be unbounded below on some
    supports. A fit then stops where neighbours predict all but 1e-8 of the variance of a variable,
    and its point has a note. With ridge there always is a minimiser.

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
        known = S if isinstance(S, KnownCovariance) else moments.check_covariance(S)
        matrix, labels = known
        p = len(matrix)
        given = check_names(names, p, per="variable")
        self.variables: ColumnLabels | None = labels if given is None else given
        self.n_samples = None
        if n_samples is not None:
            self.n_samples = check_integer(n_samples, "n_samples", low=1)
        self.n_variables = p
        self.n_candidates = p * (p - 1) // 2
        self.dim = self.n_candidates + p
        self.ridge = check_ridge(ridge, self.n_candidates, per="edge")
        self.tol = check_number(tol, "tol", low=0.0, open_low=True)
        self.max_iter = check_integer(max_iter, "max_iter", low=1)
        self._deviation = np.sqrt(matrix.diagonal())
        if (self._deviation != 1.0).any():
            matrix = matrix / self._deviation[:, None] / self._deviation
            np.fill_diagonal(matrix, 1.0)
        settings = (self.ridge, self.tol, self.max_iter)
        self._problem = CorrelationProblem(matrix, self._deviation, *settings)
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
        """Return the objective of the rows of X.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
        assume_centered : bool
            Whether the covariance is taken about zero instead of the mean.
        ridge, tol, max_iter
            As in the constructor.

        Returns
        -------
        GaussianCovariance
        """
        _, S, labels = moments.covariance_of(X, assume_centered=assume_centered)
        known = KnownCovariance(S, labels)
        return cls(known, len(X), ridge=ridge, tol=tol, max_iter=max_iter)

    def minimise(self, support: Ints, start: Point | None = None) -> Point:
        """Return beta-hat(F), the minimiser of Q over a support, warm-started at `start`.

        Theta is block diagonal over the components of the graph. Only those are fitted that are
        not at their minimum yet.

        Parameters
        ----------
        support : int array
            Sorted coordinates, those of the diagonal included.
        start : Point, optional
            Where to begin; of any support.

        Returns
        -------
        Point
            Its status is ``UNBOUNDED`` where Q is taken to be unbounded below.
        """
        support = np.asarray(support, dtype=np.intp)
        if len(support) < self.n_variables or support[-self.n_variables] != self.n_candidates:
            raise ValueError(
                f"support must hold the diagonal, coordinates {self.n_candidates} to {self.dim - 1}"
            )
        cache = self.own_cache(start, GraphCache)
        fit = ComponentFit(self._problem, support, start, cache)
        status = fit.run()
        note = status.note(max_iter=self.max_iter)
        if status is Status.UNBOUNDED:
            note = f"{note}: S is singular on variables that its edges join"
        value = float(fit.shares.sum()) + self._offset
        coef = fit.coef / self._problem.scale[support]
        return Point(support, coef, value, 0, GraphCache(self, fit.W, fit.shares), note, status)

    def gradient(self, point: Point) -> Floats:
        """Return the gradient of Q: S minus the inverse of Theta, twice for an edge.

        Parameters
        ----------
        point : Point

        Returns
        -------
        float array of length dim
        """
        scale = self._problem.scale
        slopes = self._problem.slopes(self._inverse(point))
        inside = point.support
        slopes[inside] += self._problem.ridge[inside] * (point.coef * scale[inside])
        return np.asarray(slopes * scale)

    def decrease_if_added(self, point: Point, blocks: Blocks, *, only_best: bool = False) -> Scores:
        """Return how far Q falls when each block alone is optimised: the goodness of FoBa-obj.

        Parameters
        ----------
        point : Point
        blocks : Blocks
        only_best : bool
            Makes no difference: all scores are exact.

        Returns
        -------
        Scores
        """
        if blocks.are_single:
            lines = self._lines(point, blocks.coordinates)
            falls = -lines.rise(lines.lowest())
        else:
            alone = [self._block_alone(point, block) for block in blocks]
            ends = [self._problem.newton(problem, here).state for problem, here in alone]
            falls = np.array([a[1].value - b.value for a, b in zip(alone, ends, strict=True)])
        return Scores.exact(np.maximum(falls, 0.0))

    def increase_if_removed(
        self, point: Point, blocks: Blocks, *, below: float | None = None
    ) -> Scores:
        """Return how far Q rises when each block is set to zero without a refit: the badness.

        It may be infinite: without the block, Theta need not be positive definite.

        Parameters
        ----------
        point : Point
        blocks : Blocks
            Blocks inside the support.
        below : float, optional
            Makes no difference: all scores are exact.

        Returns
        -------
        Scores
        """
        if blocks.are_single:
            lines = self._lines(point, blocks.coordinates)
            return Scores.exact(lines.rise(-lines.theta))
        alone = [self._block_alone(point, block) for block in blocks]
        rises = [problem.at(np.zeros_like(here.coef)).value - here.value for problem, here in alone]
        return Scores.exact(np.array(rises))

    def value_and_gradient(self, beta: Floats) -> tuple[float, Floats]:
        """Return Q and its gradient at any dense vector.

        Parameters
        ----------
        beta : float array of length dim

        Returns
        -------
        value : float
            Infinite where Theta is not positive definite.
        gradient : float array of length dim
            NaN there.
        """
        scale = self._problem.scale
        whole = self._problem.restricted(np.arange(self.dim))
        state = whole.at(np.asarray(beta, dtype=np.float64) * scale)
        return state.value + self._offset, state.gradient * scale

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
        """The two variables of each candidate, an array of shape (n_candidates, 2)."""
        both = np.column_stack([self._problem.i, self._problem.j])
        return both[: self.n_candidates]

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
        """Return the coordinate of the edge between two variables.

        Parameters
        ----------
        one, other
            Labels, or numbers, of two variables.

        Returns
        -------
        int
        """
        i, j = sorted(
            moments.check_variable(variable, self.n_variables, self.variables, "an edge")
            for variable in (one, other)
        )
        if i == j:
            raise ValueError(f"an edge joins two variables, got {one!r} and {other!r}")
        return i * (2 * self.n_variables - i - 1) // 2 + j - i - 1

    def precision(self, point: Point) -> Floats:
        """Return Theta at a point.

        Parameters
        ----------
        point : Point

        Returns
        -------
        float array of shape (p, p)
        """
        theta = np.zeros((self.n_variables, self.n_variables))
        i, j = self._problem.i[point.support], self._problem.j[point.support]
        theta[i, j] = theta[j, i] = point.coef
        return theta

    def covariance(self, point: Point) -> Floats:
        """Return the inverse of Theta at a point.

        Parameters
        ----------
        point : Point

        Returns
        -------
        float array of shape (p, p)
            It is S on the diagonal and, without ridge, on the edges.
        """
        return np.asarray(self._inverse(point) * self._deviation[:, None] * self._deviation)

    def _inverse(self, point: Point) -> Floats:
        """The inverse of Theta, worked out again if the point has lost it."""
        if (cache := self.own_cache(point, GraphCache)) is not None:
            return cache.W
        coef = point.coef * self._problem.scale[point.support]
        inverse = self._problem.restricted(point.support).at(coef).cache
        if inverse is None:
            raise ValueError("point is not positive definite")
        return np.asarray(inverse.W)

    def _lines(self, point: Point, coordinates: Ints) -> EdgeLines:
        """Q along single edges from a point."""
        theta = point.dense(self.dim)[coordinates] * self._problem.scale[coordinates]
        return self._problem.lines(self._inverse(point), coordinates, theta)

    def _block_alone(self, point: Point, block: Ints) -> tuple[RestrictedLogDet, State]:
        """Q as a function of the edges of a block, and where the point is."""
        theta = point.dense(self.dim)[block] * self._problem.scale[block]
        return self._problem.block_alone(self._inverse(point), block, theta)
