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

from dataclasses import replace
from functools import cached_property
from typing import Any, final

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
from forback.core.types import Floats, Ints
from forback.core.units import Units
from forback.designs.design import second_moments
from forback.designs.make import make_design
from forback.objectives.linear.kernels.lines import NOISE
from forback.objectives.softmax import bounds, exchanges, fit
from forback.objectives.softmax.data import SoftmaxData
from forback.objectives.softmax.lines import INSIDE, OTHER, WHOLE, SoftmaxLines, kinds_of
from forback.objectives.softmax.problem import Coefficients, Predictions
from forback.objectives.softmax.rescaling import classes_in_range
from forback.solvers.best_first import best_first, cheapest_refits, to_match
from forback.solvers.linalg import ridge_penalty
from forback.validation.arrays import (
    check_matrix,
    check_ridge,
    check_weights,
    drop_weightless,
    share_out,
)
from forback.validation.scalars import check_flag, check_integer, check_number
from forback.validation.sequences import check_labels, check_several_classes


class SoftmaxObjective(Objective):
    """A softmax regression made from checked parts; `Multinomial` is the one that checks them."""

    name = "Multinomial"
    infimum = 0.0

    def __init__(self, data: SoftmaxData) -> None:
        self.data = data
        self.feature_names = data.names
        self.n_candidates = data.n_candidates
        self.dim = len(data.full_ridge)
        self.classes = data.classes
        self.ridge = data.full_ridge
        self.fit_intercept = data.fit_intercept
        self.n_samples = data.n_samples

    @cached_property
    def features(self) -> Features:
        """What the candidates are called: each column with each class, a column's together."""
        width = self.data.design.shape[1]
        return Features.crossed(self.feature_names, width, self.classes, together=True)

    # What the loop calls -------------------------------------------------------------------

    def minimise(self, support: Ints, start: Point | None = None) -> Point:
        """Return beta-hat(F), the minimiser of Q over a support, by Newton's method."""
        return fit.minimise(self.data, self, np.asarray(support, dtype=np.intp), start)

    def value_and_gradient(self, beta: Floats) -> tuple[float, Floats]:
        """Return Q and its gradient at any dense vector of coefficients."""
        support = np.flatnonzero(beta)
        scores = self.data.restricted(support).predict(beta[support])
        predictions = self.data.labels.predictions(scores)
        value = predictions.value + ridge_penalty(self.ridge, beta)
        return value, self._back_project(predictions.residual) + self.ridge * beta

    def gradient(self, point: Point) -> Floats:
        """Return the gradient of Q at a point: one pass over X, for all classes."""
        slopes = self._back_project(self._predictions(point).residual)
        return slopes + self.ridge * point.dense(self.dim)

    def decrease_if_added(self, point: Point, blocks: Blocks, *, only_best: bool = False) -> Scores:
        """Return how far Q falls when each block alone is optimised: the goodness of FoBa-obj.

        For a whole column that is a problem of K coefficients.
        """
        kinds, columns = kinds_of(blocks, len(self.classes))
        if only_best:
            kinds[np.isin(blocks.firsts, point.support)] = INSIDE
        lines = self._lines(point)
        negligible = self.resolution(point)
        scores = np.zeros(len(blocks))
        others = np.flatnonzero(kinds == OTHER)
        scores[others], n_exact = self._other_decreases(point, blocks.take(others), only_best)
        for label in np.unique(kinds[kinds >= 0]):
            some = kinds == label
            line = lines.of_class(label)
            if only_best:
                scores[some], exact = line.screened_decreases(columns[some], negligible)
                n_exact += exact
            else:
                scores[some] = line.decreases(columns[some], negligible)
        whole = kinds == WHOLE
        if not only_best:
            scores[whole] = lines.decreases(columns[whole], negligible)
            return Scores.exact(scores)
        if whole.any():
            best_so_far = to_match(scores)
            scores[whole], exact = lines.screened_decreases(columns[whole], negligible, best_so_far)
            n_exact += exact
        return Scores(scores, n_exact)

    def increase_if_removed(
        self, point: Point, blocks: Blocks, *, below: float | None = None
    ) -> Scores:
        """Return how far Q rises when each block is set to zero without a refit: the badness."""
        kinds, columns = kinds_of(blocks, len(self.classes))
        lines = self._lines(point)
        scores = np.empty(len(blocks))
        for label in np.unique(kinds[kinds >= 0]):
            some = kinds == label
            scores[some] = lines.of_class(label).increases(columns[some])
        scores[kinds == WHOLE] = lines.increases(columns[kinds == WHOLE])
        beta = point.dense(self.dim)
        before = lines.predictions
        for block in np.flatnonzero(kinds == OTHER).tolist():
            own = blocks[block]
            moved = before.logs - self.data.restricted(own).predict(beta[own])
            penalty = ridge_penalty(self.ridge[own], beta[own])
            scores[block] = self.data.labels.predictions(moved).value - before.value - penalty
        return Scores.exact(scores)

    def increase_after_refit(
        self, point: Point, blocks: Blocks, *, below: float | None = None
    ) -> Scores:
        """Return how far Q rises when each block leaves and the others are refitted.

        Bounds spare refits where columns are in as a whole.
        """
        lower = None
        if below is not None:
            lower = bounds.least_costs(self.data, self._predictions(point), point, blocks)
        return cheapest_refits(self, point, blocks, lower, below)

    def decrease_if_exchanged(
        self, point: Point, inside: Blocks, outside: Blocks, *, estimate: bool = False
    ) -> Scores:
        """Return how far Q falls when a block gives way to another and all others are refitted."""
        both = [kinds_of(blocks, len(self.classes)) for blocks in (inside, outside)]
        if not estimate or any((kinds != WHOLE).any() for kinds, _ in both):
            return super().decrease_if_exchanged(point, inside, outside, estimate=estimate)
        pair = (both[0][1], both[1][1])
        gains = exchanges.exchange_gains(self._shared(point), point, self._slopes(point), pair)
        return Scores(gains, 0)

    def has_quick_exchanges(self, blocks: Blocks) -> bool:
        """Return whether all exchanges are estimated in no time: those of whole columns are."""
        return bool((kinds_of(blocks, len(self.classes))[0] == WHOLE).all())

    def promise(self, point: Point, blocks: Blocks) -> Floats:
        """Return guesses at how far Q falls when each block is added."""
        return blocks.sums(self._shared(point).promises(self._slopes(point)).ravel())

    def cheapest_removals(self, point: Point, blocks: Blocks, most: int) -> Ints:
        """Return which blocks leave first when, each time, that one leaves that costs least."""
        kinds, columns = kinds_of(blocks, len(self.classes))
        if (kinds != WHOLE).any():
            return super().cheapest_removals(point, blocks, most)
        return exchanges.removal_order(self._shared(point), point, columns, most)

    # What a softmax regression can do besides ----------------------------------------------

    def likelihood(self) -> Likelihood:
        """Return the likelihood behind Q, for information criteria."""
        return Likelihood(self.n_samples, self._log_likelihood)

    def _log_likelihood(self, point: Point) -> tuple[float, int]:
        penalty = ridge_penalty(self.ridge[point.support], point.coef)
        whole = Coefficients.of(point.support, len(self.classes)).whole
        return -self.n_samples * (point.value - penalty), len(point.support) - len(whole)

    def hessian_bounds(self) -> HessianBounds:
        """Return matrices between which the Hessian lies everywhere.

        The second derivative of log sum exp is at most 1/2 in every direction.
        """
        gram = second_moments(self.data.design, self.data.weights, self.fit_intercept)
        ridge = np.diag(self.ridge)
        return HessianBounds(ridge, np.kron(gram, 0.5 * np.eye(len(self.classes))) + ridge)

    def response(self) -> PermutableResponse:
        """Return the labels, whose rows can change places, for ``epsilon="auto"``."""
        return PermutableResponse(self.data.design.shape[0], self._permuted)

    def _permuted(self, order: Ints, point: Point) -> SoftmaxObjective:
        codes, weights = self.data.codes[order], self.data.weights[order]
        return SoftmaxObjective(replace(self.data, codes=codes, weights=weights))

    def rescaled(self) -> tuple[SoftmaxObjective, Units] | None:
        """Return this objective in units in which nothing is too small to be squared."""
        found = classes_in_range(self.data)
        return None if found is None else (SoftmaxObjective(found[0]), found[1])

    # Pieces --------------------------------------------------------------------------------

    def _predictions(self, point: Point) -> Predictions:
        cache = self.own_cache(point, fit.SoftmaxCache)
        if cache is not None:
            return cache.predictions
        problem = self.data.restricted(point.support)
        return problem.predictions_again(point.coef, far=self.data.is_far)

    def _shared(self, point: Point) -> exchanges.Shared:
        return exchanges.Shared.at(self.data, self._predictions(point).probabilities)

    def _slopes(self, point: Point) -> Floats:
        """The gradient over all columns, p x K."""
        return self.gradient(point)[: self.n_candidates].reshape(-1, len(self.classes))

    def _back_project(self, residual: Floats) -> Floats:
        slopes = self.data.design.back_project_all(residual).ravel()
        return np.append(slopes, residual.sum(axis=0)) if self.fit_intercept else slopes

    def _lines(self, point: Point) -> SoftmaxLines:
        table = point.dense(self.dim)[: self.n_candidates].reshape(-1, len(self.classes))
        return SoftmaxLines(self.data, self._predictions(point), table)

    def _other_decreases(self, point: Point, blocks: Blocks, only_best: bool) -> Scores:
        """Decreases of blocks of any coefficients; with `only_best` by bounds where these do."""
        before = self._predictions(point)

        def solve(some: Ints, best_so_far: float) -> tuple[Floats, int]:
            left = some[most[some] >= best_so_far]
            for block in left.tolist():
                most[block] = self._block_decrease(point, blocks[block], before)
            return most[some], len(left)

        most = np.full(len(blocks), np.inf)
        if not only_best or not len(blocks):
            return Scores.exact(solve(np.arange(len(blocks)), 0.0)[0])
        expected = most.copy()
        slopes = self._slopes(point)
        for which, columns in bounds.sets_of_columns(blocks, len(self.classes)):
            found = bounds.most_falls(self.data, before, slopes, columns)
            expected[which], most[which] = found
        return best_first(expected, solve, slack=NOISE * self.resolution(point), batch=1)

    def _block_decrease(self, point: Point, block: Ints, predictions: Predictions) -> float:
        """Return how far Q falls when the coefficients of a block are optimised, others held."""
        coef = point.dense(self.dim)[block]
        problem = self.data.restricted(block)
        problem = replace(problem, base=predictions.logs - problem.predict(coef))
        start = problem.at(coef)
        penalty = ridge_penalty(problem.ridge, coef)
        mean_penalty = penalty - ridge_penalty(problem.ridge, problem.own.centred(coef))
        end = fit.solve(self.data, problem, start).state
        return max(start.value + mean_penalty - end.value, 0.0)


@final
class Multinomial(SoftmaxObjective):
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
        check_several_classes(classes[present])
        shares, n_samples = share_out(weights)
        data = SoftmaxData(
            classes[present],
            make_design(matrix),
            codes,
            weights=shares,
            n_samples=n_samples,
            ridge=check_ridge(ridge, p, labels=names),
            fit_intercept=check_flag(fit_intercept, "fit_intercept"),
            tol=check_number(tol, "tol", low=0.0, open_low=True),
            max_iter=check_integer(max_iter, "max_iter", low=1),
            names=names,
        )
        super().__init__(data)
