"""Loss x design x ridge, intercept, offset, weights: every generalised linear model.

    Q(beta) = sum_i w_i loss(offset_i + x_i' beta + intercept, y_i) + 1/2 sum_j ridge_j beta_j^2

with the weights w divided by their sum. Coordinate p, if there is one, is the intercept: always
in, never penalised.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from forback.core.blocks import Blocks
from forback.core.features import Features
from forback.core.objective import HessianBounds, Likelihood, PermutableResponse, Scores
from forback.core.point import Point
from forback.core.tolerances import NEGLIGIBLE, SCREENING_RTOL
from forback.core.types import ColumnLabels, Floats, Ints
from forback.core.units import Units
from forback.designs.dense import Dense
from forback.designs.design import Design, second_moments
from forback.designs.make import make_design
from forback.designs.single_precision import Coarse
from forback.designs.sparse import Sparse
from forback.objectives.linear.fit import Fit, LinearFits
from forback.objectives.linear.kernels.lines import cheapest_removals
from forback.objectives.linear.lines import Lines
from forback.objectives.linear.losses import LOSSES, Loss
from forback.objectives.linear.problem import Restricted
from forback.objectives.linear.rescaling import in_range
from forback.solvers.kernels.vectors import dot_of_sizes
from forback.solvers.linalg import ridge_penalty
from forback.validation.arrays import (
    check_matrix,
    check_offset,
    check_response,
    check_ridge,
    check_weights,
    drop_weightless,
)
from forback.validation.losses import check_loss
from forback.validation.scalars import check_choice, check_flag, check_integer, check_number

PRECISIONS = ("double", "mixed")


class GLM(LinearFits):
    """A generalised linear model: any pointwise loss on any linear predictor.

    Parameters
    ----------
    loss : str or Loss
        "squared", "logistic", "poisson", "gamma", "huber", "squared_hinge", or an object with
        the members of `forback.objectives.Loss`, such as ``Huber(threshold=2.0)`` or your own,
        ``PointwiseLoss(value, d1, d2)``.
    X : array, SciPy sparse matrix or data frame of shape (n, p)
        Never modified. Contiguous float64 or float32 input is not copied, and float32 is added up
        in double; sparse input is held as CSC.
    y : array of length n
        In the loss's domain: real, nonnegative (Poisson), positive (gamma), or two classes coded
        0/1, -1/1 or bool (logistic, squared hinge).
    ridge : float or array of length p
        The L2 penalty of each coefficient.
    fit_intercept : bool
        Adds coordinate p: always in, not penalised.
    offset : array of length n, optional
        Added to the linear predictor.
    sample_weight : array of length n, optional
        Nonnegative; only ratios matter for Q. For information criteria, whole weights count
        repeated rows and any others leave the number of rows as it is.
    tol : float
        `minimise` stops when each |gradient| is below `tol` times its scale: the weighted mean
        of |x_ij loss'_i| before any feature is in.
    max_iter : int
        Newton steps per fit.
    precision : {"double", "mixed"}
        "mixed" holds a second copy of X in single precision (half of X more memory), finds the few
        columns that may be the best by a pass over that copy and a bound on its rounding, and
        scores only those in double: the same answer for half the memory traffic, where X is large.

    Examples
    --------
    >>> import numpy as np
    >>> from forback import select
    >>> from forback.objectives import GLM
    >>> X = np.random.default_rng(0).normal(size=(200, 6))
    >>> y = np.random.default_rng(1).poisson(np.exp(1.0 + X[:, 2]))
    >>> path = select(GLM("poisson", X, y, fit_intercept=True), k=1)
    >>> path[1].support.tolist()
    [2, 6]
    """

    def __init__(
        self,
        loss: str | Loss,
        X: Any,
        y: Any,
        *,
        ridge: Any = 0.0,
        fit_intercept: bool = False,
        offset: Any = None,
        sample_weight: Any = None,
        tol: float = 1e-10,
        max_iter: int = 100,
        precision: str = "double",
    ) -> None:
        check_choice(precision, "precision", PRECISIONS)
        chosen = check_loss(loss, LOSSES)
        matrix, names = check_matrix(X)
        n, p = matrix.shape
        response = check_response(y, n, chosen.domain, chosen.name)
        offset = check_offset(offset, n)
        weights = check_weights(sample_weight, n)
        matrix, response, offset, weights = drop_weightless(
            weights, matrix, response, offset, weights
        )
        self._assemble(
            chosen,
            make_design(matrix),
            response,
            ridge=check_ridge(ridge, p, labels=names),
            fit_intercept=check_flag(fit_intercept, "fit_intercept"),
            offset=offset,
            weights=weights,
            tol=check_number(tol, "tol", low=0.0, open_low=True),
            max_iter=check_integer(max_iter, "max_iter", low=1),
        )
        self.feature_names: ColumnLabels | None = names
        self._precision = precision

    @classmethod
    def trusted(cls, loss: Loss, design: Design, y: Floats, **parts: Any) -> GLM:
        """Build from parts that were checked already: what an estimator calls."""
        glm = cls.__new__(cls)
        glm._assemble(loss, design, y, offset=np.zeros(len(y)), **parts)
        glm.feature_names = None
        return glm

    _precision = "double"

    @cached_property
    def _coarse(self) -> Coarse | None:
        """X in single precision, if that is asked for."""
        if self._precision == "double":
            return None
        assert isinstance(self.design, Dense | Sparse)  # no estimator asks for it
        return Coarse(self.design)

    # What the loop calls -------------------------------------------------------------------

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"the {self.loss.name} loss"

    @property
    def features(self) -> Features:
        """What the columns are called."""
        return Features(self.n_candidates, self.feature_names)

    def gradient(self, point: Point) -> Floats:
        """The gradient at `point`: one pass over X."""
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = self._back_project(self._rows(point).residual)
        gradient[point.support] += self.ridge[point.support] * point.coef
        return gradient

    def gradient_norms(self, point: Point, blocks: Blocks, *, only_best: bool = False) -> Scores:
        """Return the norm of the gradient over each block: the goodness of FoBa-gdt."""
        # The quick way is exact where the best of all candidates may be, so all must be blocks.
        whole = blocks.are_single and blocks.cover(self.n_candidates)
        if only_best and whole:
            found = self._leading(point, lambda: np.ones(self.n_candidates))
            if found is not None:
                return Scores(blocks.norms(found[0]), found[1])
        return super().gradient_norms(point, blocks)

    def _leading(self, point: Point, weight: Callable[[], Floats]) -> tuple[Floats, int] | None:
        """The gradient, exact where it may be the largest by weight, if there is a quick way."""
        if self._coarse is None:
            return None
        slopes, exact = self._coarse.leading(
            self._rows(point).residual, weight(), self._columns_of(point)
        )
        return self._widened(slopes), exact

    def _columns_of(self, point: Point) -> Ints:
        """The support without what is always in."""
        return point.support[: np.searchsorted(point.support, self.n_candidates)]

    def _widened(self, slopes: Floats) -> Floats:
        return np.append(slopes, np.zeros(self.dim - len(slopes)))

    def decrease_if_added(self, point: Point, blocks: Blocks, *, only_best: bool = False) -> Scores:
        """Return how far Q falls when each block alone is optimised: the goodness of FoBa-obj.

        That has a closed form for a quadratic loss; any other takes a Newton iteration per column.
        """
        if not blocks.are_single:
            return Scores.exact(self._decrease_of_groups(point, blocks))
        if self._is_quadratic:
            return self._quadratic_decrease(point, blocks, only_best)
        lines, negligible = self._lines(point), self._negligible(point)
        if not only_best:
            return Scores.exact(lines.decreases(blocks.coordinates, negligible))
        # A column inside may promise more than any outside, where a fit ended early.
        inside = np.zeros(self.dim, dtype=bool)
        inside[point.support] = True
        outside = np.flatnonzero(~inside[blocks.coordinates])
        scores, n_exact = np.zeros(len(blocks)), 0
        if len(outside):
            scores[outside], n_exact = lines.screened_decreases(
                blocks.coordinates[outside], negligible
            )
        return Scores(scores, n_exact)

    def _quadratic_decrease(self, point: Point, blocks: Blocks, only_best: bool) -> Scores:
        # The quick way is exact where the best of all candidates may be, so all must be blocks.
        found = None
        if only_best and blocks.cover(self.n_candidates):
            found = self._leading(point, lambda: self._inverse_roots)
        gradient, n_exact = (self.gradient(point), len(blocks)) if found is None else found
        return Scores(_squares_over(gradient, self._curvatures, blocks.coordinates), n_exact)

    def increase_if_removed(
        self, point: Point, blocks: Blocks, *, below: float | None = None
    ) -> Scores:
        """Return how far Q rises when each block is set to zero without a refit: the badness."""
        if not blocks.are_single:
            return Scores.exact(self._increase_of_groups(point, blocks))
        if below is not None and (found := self._cheapest_removals(point, blocks, below)):
            return found
        if not self._is_quadratic:
            return Scores.exact(self._lines(point).increases(blocks.coordinates))
        place = np.searchsorted(point.support, blocks.coordinates)
        curvature = self._curvatures_inside(point)[place]
        return Scores.exact(0.5 * (point.coef[place] * np.sqrt(curvature)) ** 2)

    def _cheapest_removals(self, point: Point, blocks: Blocks, below: float) -> Scores | None:
        """Return badness that is exact where it may be the smallest and below a limit.

        Bounds from self-concordance rule the others out; None where there are none.
        """
        fit, code = self._fit(point), self._response.code
        if fit is None or code is None or not code.concordant:
            return None
        places = np.searchsorted(point.support, blocks.coordinates)
        rows, (_, largest) = fit.rows.of(fit.block), self._extent(point.support)
        sums = fit.block.three_sums(rows.residual, rows.bend)
        scores, left = cheapest_removals(
            *sums, largest, point.coef, self.ridge[point.support], places, below
        )
        lines = self._lines(point)
        if len(left) and (bounds := lines.increase_bounds(blocks.coordinates[left])):
            scores[left], upper = bounds
            least = min(below, float(upper.min()))
            left = left[bounds[0] <= least + SCREENING_RTOL * abs(least)]
        if len(left):
            scores[left] = lines.increases(blocks.coordinates[left])
        return Scores(scores, len(left))

    def value_and_gradient(self, beta: Floats) -> tuple[float, Floats]:
        """Q and its gradient at any dense vector of length `dim`."""
        support = np.flatnonzero(beta)
        problem = self._restricted(support, self._block(support))
        state = problem.at(beta[support])
        fit = Fit(self, problem.block, self._everywhere(problem, state), None)
        return state.value, self.gradient(Point(support, beta[support], state.value, cache=fit))

    def resolution(self, point: Point) -> float:
        """The change of Q at a point that may be rounding."""
        largest = self._extents[1][point.support]
        if np.isnan(largest).any():
            largest = self._extent(point.support)[1]
        size = dot_of_sizes(largest, point.coef) + self._largest_offset
        return self._negligible(point) + self._rows(point).rounding(size)

    def likelihood(self) -> Likelihood | None:
        """Return the likelihood behind Q; None where the loss has none."""
        if self.loss.loglik(1.0, self.y, self.weights) is None:
            return None
        return Likelihood(self.n_samples, self._log_likelihood)

    def _log_likelihood(self, point: Point) -> tuple[float, int]:
        mean_loss = point.value - ridge_penalty(self.ridge[point.support], point.coef)
        loglik = self.loss.loglik(mean_loss, self.y, self.weights)
        assert loglik is not None  # `likelihood` has asked
        return self.n_samples * loglik, len(point.support)

    def hessian_bounds(self) -> HessianBounds:
        """Return matrices between which the Hessian lies, from the range of loss''."""
        low, high = self.loss.curvature
        second, ridge = self._second_moments, np.diag(self.ridge)
        return HessianBounds(low * second + ridge, high * second + ridge if high < np.inf else None)

    def rescaled(self) -> tuple[GLM, Units] | None:
        """The same in units in which nothing is too small to be squared; None: it is already."""
        parts = in_range(self)
        if parts is None:
            return None
        other = type(self).__new__(type(self))
        other._assemble(*parts.data, fit_intercept=self.fit_intercept, **parts.settings)
        other.n_samples, other.feature_names = self.n_samples, self.feature_names
        return other, parts.units

    def response(self) -> PermutableResponse:
        """Return the response whose rows can change places, for ``epsilon="auto"``."""
        return PermutableResponse(self.design.shape[0], self._permuted)

    def _permuted(self, order: Ints, point: Point) -> GLM:
        """The same X with the rows of y in another order, so that nothing explains them.

        What `point` predicts becomes their offset and moves along, and so do their weights.
        """
        other = type(self).__new__(type(self))
        other._assemble(
            self.loss, self.design, self.y[order],
            ridge=self.ridge[: self.n_candidates], fit_intercept=self.fit_intercept,
            offset=self._eta(point)[order], weights=self.weights[order],
            tol=self.tol, max_iter=self.max_iter,
        )  # fmt: skip
        other.feature_names, other._precision = self.feature_names, self._precision
        return other

    # Facts about the data, computed once ------------------------------------------------------

    @cached_property
    def _second_moments(self) -> Floats:
        return second_moments(self.design, self.weights, self.fit_intercept)

    @property
    def _is_quadratic(self) -> bool:
        low, high = self.loss.curvature
        return low == high

    @cached_property
    def _curvatures(self) -> Floats:
        """The second derivative of a quadratic Q along every candidate."""
        _, squares, _ = self.design.three_sums(self.weights, self.weights)
        return np.asarray(self.loss.curvature[1] * squares + self.ridge[: self.n_candidates])

    @cached_property
    def _largest_offset(self) -> float:
        return float(np.abs(self.offset).max())

    @cached_property
    def _inverse_roots(self) -> Floats:
        root = np.sqrt(self._curvatures)
        return np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)

    # Pieces ----------------------------------------------------------------------------------

    def _curvatures_inside(self, point: Point) -> Floats:
        """The second derivative of a quadratic Q along each coordinate of the support."""
        fit = self._fit(point)
        if fit is not None and fit.hessian is not None:
            return np.diag(fit.hessian)
        return np.append(self._curvatures, 1.0)[point.support]

    def _back_project(self, residual: Floats) -> Floats:
        gradient = self.design.back_project(residual)
        return np.append(gradient, residual.sum()) if self.fit_intercept else gradient

    def _lines(self, point: Point) -> Lines:
        p = self.n_candidates
        coef = point.dense(self.dim)[:p]
        rows = self._rows(point)
        return Lines(self._response, self.design, rows, self.ridge[:p], coef, self._coarse)

    def _negligible(self, point: Point) -> float:
        return NEGLIGIBLE * max(self._unit, abs(point.value))

    def _decrease_of_groups(self, point: Point, blocks: Blocks) -> Floats:
        eta, beta = self._eta(point), point.dense(self.dim)
        scores = np.empty(len(blocks))
        for index, coordinates in enumerate(blocks):
            problem = self._alone(coordinates, eta, beta)
            start = problem.at(beta[coordinates])
            end = self._newton(
                problem, start, self.gradient_scale(coordinates, problem.block)
            ).state
            scores[index] = start.value - end.value
        return np.maximum(scores, 0.0)

    def _increase_of_groups(self, point: Point, blocks: Blocks) -> Floats:
        eta, beta = self._eta(point), point.dense(self.dim)
        scores = np.empty(len(blocks))
        for index, coordinates in enumerate(blocks):
            problem = self._alone(coordinates, eta, beta)
            own = beta[coordinates]
            scores[index] = problem.at(np.zeros_like(own)).value - problem.at(own).value
        return scores

    def _alone(self, coordinates: Ints, eta: Floats, beta: Floats) -> Restricted:
        """Q as a function of some coordinates, up to a constant; the others stay where they are."""
        block = self._block(coordinates)
        base = block.take(eta)
        if beta[coordinates].any():
            base = base - block.predict(beta[coordinates])
        return Restricted(self._response.of(block), block, base, self.ridge[coordinates])


def _squares_over(gradient: Floats, curvatures: Floats, coordinates: Ints) -> Floats:
    """g^2 / (2 h), and 0 for a column without curvature; written to survive h of 1e300."""
    h = curvatures[coordinates]
    root = np.sqrt(np.where(h > 0, h, 1.0))
    return np.where(h > 0, 0.5 * (gradient[coordinates] / root) ** 2, 0.0)
