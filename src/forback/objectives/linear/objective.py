"""Loss x design x ridge, intercept, offset, weights: every generalised linear model.

    Q(beta) = sum_i w_i loss(offset_i + x_i' beta + intercept, y_i) + 1/2 sum_j ridge_j beta_j^2

with the weights w divided by their sum. Coordinate p, if there is one, is the intercept: always
in, never penalised.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from forback.core.blocks import Blocks
from forback.core.features import Features
from forback.core.objective import HessianBounds, Likelihood, Objective, PermutableResponse, Scores
from forback.core.point import Point
from forback.core.types import Floats, Ints
from forback.core.units import Units
from forback.designs.design import second_moments
from forback.designs.make import make_design
from forback.objectives.linear.blocks import BlockScores
from forback.objectives.linear.data import LinearData
from forback.objectives.linear.exchanges import exchange_scores, promises, removal_order
from forback.objectives.linear.fit import GlmCache
from forback.objectives.linear.lines import Lines
from forback.objectives.linear.losses import LOSSES, NEVER_NEGATIVE, Loss
from forback.objectives.linear.quadratic_fit import MomentCache, choose_fits
from forback.objectives.linear.removals import cheapest_removals, least_costs
from forback.objectives.linear.rescaling import in_range
from forback.objectives.linear.rows import ETA_RTOL, Rows
from forback.objectives.linear.slopes import Leading, choose_slopes
from forback.solvers.best_first import cheapest_refits
from forback.solvers.kernels.vectors import dot_of_sizes
from forback.solvers.linalg import projection_costs
from forback.validation.arrays import (
    check_matrix,
    check_offset,
    check_response,
    check_ridge,
    check_weights,
    drop_weightless,
    share_out,
)
from forback.validation.losses import check_loss
from forback.validation.scalars import check_choice, check_flag, check_integer, check_number

#: "mixed": double precision only where single precision does not decide.
PRECISIONS = ("double", "mixed")


class GLM(Objective):
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

    shares_out_work = True

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
        ridge = check_ridge(ridge, p, labels=names)
        matrix, response, offset, weights = drop_weightless(
            weights, matrix, response, offset, weights
        )
        shares, n_samples = share_out(weights)
        data = LinearData(
            chosen,
            make_design(matrix),
            response,
            weights=shares,
            n_samples=n_samples,
            ridge=ridge,
            fit_intercept=check_flag(fit_intercept, "fit_intercept"),
            offset=offset,
            tol=check_number(tol, "tol", low=0.0, open_low=True),
            max_iter=check_integer(max_iter, "max_iter", low=1),
            names=names,
            precision=precision,
        )
        self._assemble(data)

    @classmethod
    def from_data(cls, data: LinearData) -> Self:
        """Build from checked parts.

        Parameters
        ----------
        data : LinearData

        Returns
        -------
        GLM
        """
        glm = cls.__new__(cls)
        glm._assemble(data)
        return glm

    def _assemble(self, data: LinearData) -> None:
        self.data = data
        self.feature_names = data.names
        self.n_candidates = data.n_candidates
        self.dim = data.dim
        self.is_quadratic = data.is_quadratic
        self.infimum = 0.0 if isinstance(data.loss, NEVER_NEGATIVE) else -np.inf
        self.loss = data.loss
        self.design = data.design
        self.y = data.y
        self.ridge = data.ridge
        self.fit_intercept = data.fit_intercept
        self.n_samples = data.n_samples
        self._fits = (data.fits or choose_fits(data))(data)
        self._blocks = BlockScores(data, self._fits)
        self._find_leading = data.slopes or choose_slopes(data)

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"the {self.loss.name} loss"

    @property
    def features(self) -> Features:
        """What the columns are called."""
        return Features(self.n_candidates, self.feature_names)

    def minimise(self, support: Ints, start: Point | None = None) -> Point:
        """Return beta-hat(F), the minimiser of Q over a support."""
        return self._fits.minimise(self, support, start)

    def value_and_gradient(self, beta: Floats) -> tuple[float, Floats]:
        """Return Q and its gradient at any dense vector of length `dim`."""
        support = np.flatnonzero(beta)
        problem = self.data.restricted(support)
        state = problem.at(beta[support])
        rows = self.data.on_all_rows(problem, state)
        cache = GlmCache(self, problem.block, rows, None, {})
        return state.value, self.gradient(Point(support, beta[support], state.value, cache=cache))

    def gradient(self, point: Point) -> Floats:
        """Return the gradient at a point: from the moments it was made of, or by a pass over X."""
        made = self.own_cache(point, MomentCache)
        if made is not None:
            columns = self.data.columns_of(point.support)
            gradient = made.moments.gradient(columns, point.coef[: len(columns)])
            return np.append(gradient, 0.0) if self.fit_intercept else gradient
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = self.data.back_project(self._rows(point).residual)
        gradient[point.support] += self.data.full_ridge[point.support] * point.coef
        return gradient

    def gradient_scale(self, coordinates: Ints) -> Floats:
        """Return what `tol` refers to: the mean of |x_ij loss'_i| before any feature is in.

        Parameters
        ----------
        coordinates : int array

        Returns
        -------
        float array of the same length
        """
        return self._fits.extent(coordinates)[0]

    # Scores ------------------------------------------------------------------------------------

    def gradient_norms(self, point: Point, blocks: Blocks, *, only_best: bool = False) -> Scores:
        """Return the norm of the gradient over each block: the goodness of FoBa-gdt."""
        quick = only_best and blocks.are_single
        gradient, n_exact = self._leading(point, blocks, quick, self.data.equal_weights)
        return Scores(blocks.norms(gradient), n_exact)

    def _leading(self, point: Point, blocks: Blocks, quick: bool, weight: Floats) -> Leading:
        """The gradient, exact where it may be the largest by weight if there is a quick way.

        It is exact where the best of all candidates may be, so all must be blocks.
        """
        cache = self.own_cache(point, GlmCache)
        found = None
        if quick and cache and blocks.cover(self.n_candidates):
            found = self._find_leading(self.data, point, cache, weight)
        return (self.gradient(point), len(blocks)) if found is None else found

    def decrease_if_added(self, point: Point, blocks: Blocks, *, only_best: bool = False) -> Scores:
        """Return how far Q falls when each block alone is optimised: the goodness of FoBa-obj.

        That has a closed form for a quadratic loss; any other takes a Newton iteration per column.
        """
        if not blocks.are_single:
            rows = self._rows(point)
            return self._blocks.decreases(point, blocks, rows, self.gradient, only_best=only_best)
        if self.data.is_quadratic:
            return self._quadratic_decrease(point, blocks, only_best)
        lines = self._lines(point)
        negligible = self.data.negligible(point.value)
        if not only_best:
            return Scores.exact(lines.decreases(blocks.coordinates, negligible))
        # A column inside may promise more than any outside, where a fit ended early.
        inside = np.zeros(self.dim, dtype=bool)
        inside[point.support] = True
        outside = np.flatnonzero(~inside[blocks.coordinates])
        scores = np.zeros(len(blocks))
        n_exact = 0
        if len(outside):
            scores[outside], n_exact = lines.screened_decreases(
                blocks.coordinates[outside], negligible
            )
        return Scores(scores, n_exact)

    def _quadratic_decrease(self, point: Point, blocks: Blocks, only_best: bool) -> Scores:
        """g^2 / (2 h), and 0 for a column without curvature; written to survive h of 1e300."""
        roots = self.data.inverse_roots
        gradient, n_exact = self._leading(point, blocks, only_best, roots)
        own = blocks.coordinates
        return Scores(0.5 * (gradient[own] * roots[own]) ** 2, n_exact)

    def increase_if_removed(
        self, point: Point, blocks: Blocks, *, below: float | None = None
    ) -> Scores:
        """Return how far Q rises when each block is set to zero without a refit: the badness."""
        if not blocks.are_single:
            return Scores.exact(self._blocks.increases(point, blocks, self._rows(point)))
        cache = self._concordant(point)
        if below is not None and cache is not None:
            largest = self._fits.extent(point.support)[1]
            return cheapest_removals(cache, self._lines(point), largest, point, blocks, below)
        if not self.data.is_quadratic:
            return Scores.exact(self._lines(point).increases(blocks.coordinates))
        place = np.searchsorted(point.support, blocks.coordinates)
        curvature = self._curvatures_inside(point)[place]
        return Scores.exact(0.5 * (point.coef[place] * np.sqrt(curvature)) ** 2)

    def increase_after_refit(
        self, point: Point, blocks: Blocks, *, below: float | None = None
    ) -> Scores:
        """Return how far Q rises when each block leaves and the others are refitted.

        That has a closed form for a quadratic loss; bounds spare a self-concordant one refits.
        """
        if self.data.is_quadratic:
            problem = self.data.restricted(point.support)
            A, _ = problem.square_root(problem.at(point.coef))
            places = blocks.places_in(point.support)
            return Scores.exact(projection_costs(A, point.coef, places))
        cache = None if below is None else self._concordant(point)
        ridge = self.data.full_ridge[point.support]
        lower = None if cache is None else least_costs(cache, point, ridge, blocks)
        return cheapest_refits(self, point, blocks, lower, below)

    def decrease_if_exchanged(
        self, point: Point, inside: Blocks, outside: Blocks, *, estimate: bool = False
    ) -> Scores:
        """Return how far Q falls when a block gives way to another and all others are refitted."""
        if estimate or self.data.is_quadratic:
            return exchange_scores(self, point, inside, outside)
        return super().decrease_if_exchanged(point, inside, outside)

    def has_quick_exchanges(self, blocks: Blocks) -> bool:
        """Return whether all exchanges are estimated in the time of a few fits: they are."""
        return True

    def promise(self, point: Point, blocks: Blocks) -> Floats:
        """Return guesses at how far Q falls when each block is added: one pass over X."""
        return promises(self, point, blocks)

    def cheapest_removals(self, point: Point, blocks: Blocks, most: int) -> Ints:
        """Return which blocks leave first when, each time, that one leaves that costs least."""
        return removal_order(self, point, blocks, most)

    def resolution(self, point: Point) -> float:
        """Return the change of Q at a point that may be rounding."""
        negligible = self.data.negligible(point.value)
        made = self.own_cache(point, MomentCache)
        if made is not None:  # a few units of y'y
            return negligible + ETA_RTOL * made.moments.total
        largest = self._fits.extent(point.support)[1]
        size = dot_of_sizes(largest, point.coef) + self.data.largest_offset
        return negligible + self._rows(point).rounding(size)

    # Capabilities ------------------------------------------------------------------------------

    def likelihood(self) -> Likelihood | None:
        """Return the likelihood behind Q; None where the loss has none."""
        if self.loss.loglik(1.0, self.y, self.data.weights) is None:
            return None
        return Likelihood(self.data.n_samples, self.data.log_likelihood)

    def hessian_bounds(self) -> HessianBounds:
        """Return matrices between which the Hessian lies, from the range of loss''."""
        low, high = self.loss.curvature
        second = second_moments(self.design, self.data.weights, self.fit_intercept)
        ridge = np.diag(self.data.full_ridge)
        return HessianBounds(low * second + ridge, high * second + ridge if high < np.inf else None)

    def rescaled(self) -> tuple[GLM, Units] | None:
        """Return the model in units in which everything can be squared; None: it is already."""
        found = in_range(self.data)
        return None if found is None else (self.from_data(found[0]), found[1])

    def response(self) -> PermutableResponse:
        """Return the response whose rows can change places, for ``epsilon="auto"``."""
        return PermutableResponse(self.design.shape[0], self._permuted)

    def _permuted(self, order: Ints, point: Point) -> GLM:
        """Put the rows of y in another order, so that nothing explains them.

        What `point` predicts becomes their offset and moves along, and so do their weights.
        """
        offset = self._rows(point).eta[order]
        weights = self.data.weights[order]
        return self.from_data(replace(self.data, y=self.y[order], offset=offset, weights=weights))

    # Pieces ------------------------------------------------------------------------------------

    def _rows(self, point: Point) -> Rows:
        """Eta and the like at a point: those of its cache, or computed once more."""
        cache = self.own_cache(point, GlmCache)
        return self._fits.rows(point) if cache is None else cache.rows

    def _concordant(self, point: Point) -> GlmCache | None:
        """What a point carries along, if the loss is self-concordant."""
        code = self.data.response.code
        return self.own_cache(point, GlmCache) if code is not None and code.concordant else None

    def _curvatures_inside(self, point: Point) -> Floats:
        """The second derivative of a quadratic Q along each coordinate of the support."""
        made = self.own_cache(point, MomentCache)
        if made is not None:
            return made.moments.curvatures[point.support]
        cache = self.own_cache(point, GlmCache)
        if cache is not None and cache.hessian is not None:
            return cache.hessian.diagonal()
        return np.append(self.data.curvatures, 1.0)[point.support]

    def _lines(self, point: Point) -> Lines:
        data = self.data
        rows = self._rows(point)
        coef = point.dense(self.dim)[: self.n_candidates]
        return Lines(data.response, data.design, rows, data.ridge, coef, data.single_precision)
