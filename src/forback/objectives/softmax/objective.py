"""Softmax regression: K classes, a row of K coefficients for each column.

    Q(beta) = sum_i w_i [log sum_c exp(eta_ic) - eta_i,y(i)] + 1/2 sum_j ridge_j sum_c beta_jc^2

with eta_ic = x_i' beta_.c + intercept_c and the weights w divided by their sum. Coordinate
``j * K + c`` is column j with class c; the last K, if there is an intercept, are the intercepts:
always in, never penalised.

All K coefficients of a column may rise alike and nothing changes but the penalty: the answer is the
one of least norm, so the coefficients of a column that is wholly in sum to zero, and so do the
intercepts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from forback.core.blocks import Blocks
from forback.core.features import Features
from forback.core.objective import (
    HessianBounds,
    Likelihood,
    Objective,
    PermutableResponse,
    Scores,
)
from forback.core.point import Point
from forback.core.types import ColumnLabels, Floats, Ints
from forback.core.units import Units
from forback.designs.design import Design, second_moments
from forback.designs.make import make_design
from forback.objectives.softmax.lines import Kinds, SoftmaxLines
from forback.objectives.softmax.problem import Labels, Part, Restricted, RowScores
from forback.objectives.softmax.rescaling import classes_in_range
from forback.solvers import threads
from forback.solvers.kernels.vectors import overlap
from forback.solvers.linalg import ridge_penalty
from forback.solvers.newton import Minimum, State, newton
from forback.validation.arrays import (
    check_matrix,
    check_ridge,
    check_weights,
    drop_weightless,
    share_out,
)
from forback.validation.scalars import check_flag, check_integer, check_number
from forback.validation.sequences import check_labels

#: A decrease must miss the best by more than this, relatively, to be ruled out.
NEARLY = 1e-8

#: From so many entries of the columns, times classes, on a second thread helps.
MANY = 1 << 22


@dataclass(frozen=True, slots=True)
class Fit:
    """What a point of a softmax regression carries along."""

    owner: Multinomial  #: whose point it is: nobody else can use it
    scores: RowScores
    hessian: Floats | None  #: one that was computed on the way, close to the end


class Multinomial(Objective):
    """Softmax regression on K classes; a column's K coefficients enter and leave together.

    Parameters
    ----------
    X : array, SciPy sparse matrix or data frame of shape (n, p)
        Never modified. Contiguous float64 or float32 input is not copied; sparse input is held as
        CSC and only the columns of a support are made dense.
    y : sequence of n labels
        Any hashable labels, of at least two classes.
    ridge : float or array of length p
        The L2 penalty of the coefficients of each column.
    fit_intercept : bool
        Adds an intercept per class: always in, not penalised.
    sample_weight : array of length n, optional
        Nonnegative; only ratios matter for Q. For information criteria, whole weights count
        repeated rows and any others leave the number of rows as it is.
    tol : float
        `minimise` stops when each |gradient| is below `tol` times its scale: the weighted mean
        of |x_ij (P_ic - Y_ic)| before any feature is in.
    max_iter : int
        Newton steps per fit.

    Attributes
    ----------
    classes : array of length K
        The labels of the rows that count, sorted where they can be.

    Notes
    -----
    With two classes this is `Logistic` with half the ridge, whose coefficient is that of the second
    class minus that of the first.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from forback import select
    >>> from forback.objectives import Multinomial
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> objective = Multinomial(X, y, ridge=1e-3, fit_intercept=True)
    >>> path = select(objective, k=2, method="foba-obj")
    >>> [path.name(step.feature) for step in path.steps]
    ['petal width (cm)', 'petal length (cm)']
    >>> path.coef(2).reshape(-1, 3)[3].round(1).tolist()
    [-2.0, -1.9, 3.9]
    """

    infimum = 0.0

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        ridge: Any = 0.0,
        fit_intercept: bool = False,
        sample_weight: Any = None,
        tol: float = 1e-10,
        max_iter: int = 100,
    ) -> None:
        matrix, names = check_matrix(X)
        n, p = matrix.shape
        classes, codes = check_labels(y, np.array([n]))
        weights = check_weights(sample_weight, n)
        matrix, codes, weights = drop_weightless(weights, matrix, codes, weights)
        present, codes = np.unique(codes, return_inverse=True)
        if len(present) < 2:
            raise ValueError(
                f"y holds one class only, {classes[present].tolist()[0]!r}, among the rows that "
                "count: there is nothing to tell apart"
            )
        self._assemble(
            classes[present],
            make_design(matrix),
            codes,
            ridge=check_ridge(ridge, p, labels=names),
            fit_intercept=check_flag(fit_intercept, "fit_intercept"),
            weights=weights,
            tol=check_number(tol, "tol", low=0.0, open_low=True),
            max_iter=check_integer(max_iter, "max_iter", low=1),
        )
        self.feature_names: ColumnLabels | None = names

    @classmethod
    def trusted(cls, classes: Any, design: Design, codes: Ints, **parts: Any) -> Multinomial:
        """Build from parts that were checked already: what an estimator calls."""
        objective = cls.__new__(cls)
        objective._assemble(classes, design, codes, **parts)
        objective.feature_names = None
        return objective

    def _assemble(
        self,
        classes: Any,
        design: Design,
        codes: Ints,
        *,
        ridge: Floats,
        fit_intercept: bool,
        weights: Floats,
        tol: float,
        max_iter: int,
    ) -> None:
        self.classes = classes
        self.design = design
        self.fit_intercept = fit_intercept
        p, self._k = design.shape[1], len(classes)
        self.n_candidates = p * self._k
        self.dim = self.n_candidates + fit_intercept * self._k
        self.weights, self.n_samples = share_out(weights)
        self.ridge = np.append(ridge, np.zeros(int(fit_intercept))).repeat(self._k)
        self.tol = tol
        self.max_iter = max_iter
        self.codes = codes
        self._labels = Labels(codes, self.weights, self._k)

    # What the loop calls -------------------------------------------------------------------

    def minimise(self, support: Ints, start: Point | None = None) -> Point:
        """beta-hat(support) by Newton's method."""
        support = np.asarray(support, dtype=np.intp)
        problem = self._restricted(support)
        minimum = self._newton(problem, *self._start(problem, support, start))
        state = minimum.state
        coef = problem.part.centred(state.coef)
        scores = self._labels.levelled(state.cache, np.inf) if self._is_far else state.cache
        fit = Fit(self, scores, minimum.hessian)
        note = minimum.status.note(max_iter=self.max_iter)
        return Point(support, coef, state.value, 0, fit, note, minimum.status)

    def gradient(self, point: Point) -> Floats:
        """The gradient at `point`: one pass over X, for all classes."""
        gradient = self._back_project(self._scores(point).residual)
        gradient[point.support] += self.ridge[point.support] * point.coef
        return gradient

    def decrease_if_added(self, point: Point, blocks: Blocks, *, only_best: bool = False) -> Scores:
        """Return how far Q falls when each block alone is optimised: the goodness of FoBa-obj.

        For a whole column that is a problem of K coefficients.
        """
        kinds = Kinds.of(blocks, self._k, outside=point if only_best else None)
        scores = np.zeros(len(blocks))
        lines, negligible = self._lines(point), self.resolution(point)
        n_exact = len(kinds.others)
        for block in kinds.others:
            scores[block] = self._fall(point, blocks[block], lines.scores)
        for label, some, columns in kinds.by_class():
            along = lines.of_class(label)
            if only_best:
                scores[some], exact = along.screened_decreases(columns, negligible)
                n_exact += exact
            else:
                scores[some] = along.decreases(columns, negligible)
        if not only_best:
            scores[kinds.whole] = lines.decreases(kinds.columns, negligible)
            return Scores.exact(scores)
        if len(kinds.whole):
            columns, least = kinds.columns, float(scores.max())
            table = self.gradient(point).reshape(-1, self._k)
            promise = np.linalg.norm(table[columns], axis=1) * self._inverse_roots[columns]
            scores[kinds.whole], exact = lines.screened_decreases(
                columns, promise, negligible, least * (1.0 - NEARLY)
            )
            n_exact += exact
        return Scores(scores, n_exact)

    def increase_if_removed(
        self, point: Point, blocks: Blocks, *, below: float | None = None
    ) -> Scores:
        """Return how far Q rises when each block is set to zero without a refit: the badness."""
        scores, kinds, lines = np.empty(len(blocks)), Kinds.of(blocks, self._k), self._lines(point)
        for label, some, columns in kinds.by_class():
            scores[some] = lines.of_class(label).increases(columns)
        scores[kinds.whole] = lines.increases(kinds.columns)
        beta = point.dense(self.dim)
        for block in kinds.others:
            own = blocks[block]
            moved = lines.scores.logs - self._restricted(own).predict(beta[own])
            penalty = ridge_penalty(self.ridge[own], beta[own])
            scores[block] = self._labels.at(moved).value - lines.scores.value - penalty
        return Scores.exact(scores)

    def response(self) -> PermutableResponse:
        """Return the response whose rows can change places, for ``epsilon="auto"``."""
        return PermutableResponse(self.design.shape[0], self._permuted)

    def _permuted(self, order: Ints, point: Point) -> Multinomial:
        """The same X with the labels in another order, so that nothing explains them.

        What `point` predicts cannot move along: classes have no offsets.
        """
        other = type(self).__new__(type(self))
        other._assemble(
            self.classes, self.design, self.codes[order],
            ridge=self.ridge[: self.n_candidates : self._k], fit_intercept=self.fit_intercept,
            weights=self.weights[order], tol=self.tol, max_iter=self.max_iter,
        )  # fmt: skip
        other.feature_names = self.feature_names
        return other

    def rescaled(self) -> tuple[Multinomial, Units] | None:
        """The same in units in which nothing is too small to be squared; None: it is already."""
        return classes_in_range(self)

    def hessian_bounds(self) -> HessianBounds:
        """Return matrices between which the Hessian lies everywhere.

        The second derivative of log sum exp is at most 1/2 in every direction.
        """
        gram = second_moments(self.design, self.weights, self.fit_intercept)
        ridge = np.diag(self.ridge)
        return HessianBounds(ridge, np.kron(gram, 0.5 * np.eye(self._k)) + ridge)

    def value_and_gradient(self, beta: Floats) -> tuple[float, Floats]:
        """Q and its gradient at any dense vector of length `dim`."""
        support = np.flatnonzero(beta)
        scores = self._labels.at(self._restricted(support).predict(beta[support]))
        value = scores.value + ridge_penalty(self.ridge, beta)
        return value, self._back_project(scores.residual) + self.ridge * beta

    def likelihood(self) -> Likelihood:
        """Return the likelihood behind Q, for information criteria."""
        return Likelihood(self.n_samples, self._log_likelihood)

    def _log_likelihood(self, point: Point) -> tuple[float, int]:
        # A column that is wholly in, and the intercepts, have K - 1 degrees of freedom.
        penalty = ridge_penalty(self.ridge[point.support], point.coef)
        df = len(point.support) - len(Part.of(point.support, self._k).whole)
        return -self.n_samples * (point.value - penalty), df

    @cached_property
    def features(self) -> Features:
        """What the candidates are called: each column with each class, a column's together."""
        width = self.design.shape[1]
        return Features.crossed(self.feature_names, width, self.classes, together=True)

    # Facts about the data, computed once ---------------------------------------------------

    @cached_property
    def _always(self) -> State:
        """The fit before any feature is in: the logarithms of the shares of the classes."""
        shares = np.bincount(self.codes, self.weights, self._k)
        logs = np.log(np.maximum(shares, np.finfo(float).tiny))
        problem = self._restricted(np.arange(self.n_candidates, self.dim))
        return problem.at((logs - logs.mean())[: self.dim - self.n_candidates])

    @cached_property
    def _steepness(self) -> Floats:
        """How steep each row is for each class before any feature is in, n x K."""
        slopes = np.abs(self._always.cache.residual)
        # The second term keeps a column whose rows happen to fit exactly from having scale zero.
        return np.asarray(slopes + 1e-6 * self.weights[:, None] * slopes.sum(axis=0))

    @cached_property
    def _inverse_roots(self) -> Floats:
        """One over the root of each column's mean square."""
        squares = self.design.three_sums(self.weights, self.weights)[1]
        root = np.sqrt(squares + self.ridge[: self.n_candidates : self._k])
        return np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)

    # Pieces --------------------------------------------------------------------------------

    def _restricted(self, coordinates: Ints, base: Floats | float = 0.0) -> Restricted:
        part = Part.of(coordinates, self._k)
        block = np.ones((self.design.shape[0], len(part.columns)))
        columns = part.columns[part.columns < self.design.shape[1]]
        block[:, : len(columns)] = self.design.toarray(columns)
        return Restricted(self._labels, block, part, self.ridge[coordinates], base)

    def _newton(self, problem: Restricted, state: State, guess: Floats | None = None) -> Minimum:
        part = problem.part
        scale = (np.abs(problem.block).T @ self._steepness)[part.place, part.label]
        with threads.one_blas_thread(when=problem.block.size * self._k < MANY):
            return newton(
                problem, state, scale, unit=1.0, tol=self.tol, max_iter=self.max_iter, guess=guess
            )

    def _start(
        self, problem: Restricted, support: Ints, start: Point | None
    ) -> tuple[State, Floats | None]:
        """A warm start with a Hessian to try, unless starting from the intercepts is better."""
        if start is not None and len(support):
            warm, guess = self._warm(problem, support, start)
            if warm.value <= self._always.value:
                return warm, guess
        cold = np.zeros(len(support))
        cold[np.searchsorted(support, self.n_candidates) :] = self._always.coef
        return problem.at(cold), None

    def _warm(
        self, problem: Restricted, support: Ints, start: Point
    ) -> tuple[State, Floats | None]:
        place, old = overlap(support, start.support)
        coef, fit = np.zeros(len(support)), self._fit(start)
        coef[place] = start.coef[old]
        if fit is None:
            return problem.at(coef), None
        # Where nothing left, what came has coefficient zero: the scores are what they were.
        stays = len(old) == len(start.coef)
        state = problem.state(coef, fit.scores) if stays else problem.at(coef)
        if fit.hessian is None or len(old) == 0:
            return state, None
        # What is known of a column serves where all of it was in and still is.
        before = Part.of(start.support, self._k).whole.ravel()
        kept = np.isin(place, problem.part.whole.ravel()) & np.isin(old, before)
        known = fit.hessian[old[kept][:, None], old[kept]]
        return state, problem.bordered(known, place[kept], state)

    def _fit(self, point: Point) -> Fit | None:
        return self.own_cache(point, Fit)

    def _scores(self, point: Point) -> RowScores:
        fit = self._fit(point)
        if fit is not None:
            return fit.scores
        problem = self._restricted(point.support)
        return problem.scores_again(point.coef, far=self._is_far)

    @cached_property
    def _is_far(self) -> bool:
        """Whether there are intercepts, and columns so far from zero that they hide them."""
        return self.fit_intercept and self.design.is_far_from_zero

    def _back_project(self, residual: Floats) -> Floats:
        slopes = self.design.back_project_all(residual).ravel()
        return np.append(slopes, residual.sum(axis=0)) if self.fit_intercept else slopes

    def _lines(self, point: Point) -> SoftmaxLines:
        table = point.dense(self.dim)[: self.n_candidates].reshape(-1, self._k)
        ridge = self.ridge[: self.n_candidates : self._k]
        return SoftmaxLines(self._labels, self.design, self._scores(point), ridge, table)

    def _fall(self, point: Point, coordinates: Ints, scores: RowScores) -> float:
        """How far Q falls by some coefficients, the others held."""
        own = point.dense(self.dim)[coordinates]
        problem = self._restricted(coordinates)
        problem = replace(problem, base=scores.logs - problem.predict(own))
        start = problem.at(own)
        left = problem.part.centred(own)
        mean_costs = ridge_penalty(problem.ridge, own) - ridge_penalty(problem.ridge, left)
        return max(start.value + mean_costs - self._newton(problem, start).state.value, 0.0)
