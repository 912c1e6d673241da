"""Loss x design x ridge, intercept, offset, weights: every generalised linear model.

    Q(beta) = sum_i w_i loss(offset_i + x_i' beta + intercept, y_i) + 1/2 sum_j ridge_j beta_j^2

with the weights w divided by their sum. Coordinate p, if there is one, is the intercept: always
in, never penalised.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from forback import validation
from forback.numerics import State, newton
from forback.objectives.columns import Columns
from forback.objectives.designs import (
    Block,
    Design,
    absolute_product,
    make_design,
)
from forback.objectives.losses import LOSSES, Loss
from forback.objectives.restricted import Restricted
from forback.protocols import NEGLIGIBLE, Blocks, Floats, Ints, Point


class GLM:
    """A generalised linear model: any pointwise loss on any linear predictor.

    Parameters
    ----------
    loss : str or Loss
        "squared", "logistic", "poisson", "gamma", "huber", "squared_hinge", or an object with
        the members of `forback.objectives.losses.Loss`, such as ``Huber(threshold=2.0)``.
    X : array, SciPy sparse matrix or data frame of shape (n, p)
        Never modified. Contiguous float64 input is not copied; sparse input is held as CSC.
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
    ) -> None:
        chosen = validation.check_loss(loss, LOSSES)
        matrix, names = validation.check_matrix(X)
        n, p = matrix.shape
        response = validation.check_response(y, n, chosen.domain, chosen.name)
        offset = validation.check_offset(offset, n)
        weights = validation.check_weights(sample_weight, n)
        matrix, response, offset, weights = validation.drop_weightless(
            weights, matrix, response, offset, weights
        )
        self._assemble(
            chosen,
            make_design(matrix),
            response,
            ridge=validation.check_ridge(ridge, p),
            fit_intercept=validation.check_flag(fit_intercept, "fit_intercept"),
            offset=offset,
            weights=weights,
            tol=validation.check_number(tol, "tol", low=0.0, open_low=True),
            max_iter=validation.check_integer(max_iter, "max_iter", low=1),
        )
        self.feature_names: tuple[str, ...] | None = names

    @classmethod
    def trusted(cls, loss: Loss, matrix: Any, y: Floats, **parts: Any) -> GLM:
        """Build from parts that were checked already: what an estimator calls."""
        glm = cls.__new__(cls)
        glm._assemble(loss, make_design(matrix), y, **parts)
        glm.feature_names = None
        return glm

    def _assemble(
        self,
        loss: Loss,
        design: Design,
        y: Floats,
        *,
        ridge: Floats,
        fit_intercept: bool,
        offset: Floats,
        weights: Floats,
        tol: float,
        max_iter: int,
    ) -> None:
        self.loss = loss
        self.design = design
        self.y = y
        self.offset = offset
        self.n_candidates = design.shape[1]
        self.fit_intercept = fit_intercept
        self.dim = self.n_candidates + fit_intercept
        self.ridge = np.concatenate([ridge, np.zeros(int(fit_intercept))])
        share = weights / weights.max()
        self.weights = share / share.sum()
        # Whole weights count repeated rows; any others say how much a row matters.
        repeats = weights.max() < 2**53 and bool(np.all(weights == np.floor(weights)))
        self.n_samples = float(weights.sum() if repeats else len(weights))
        self.tol = tol
        self.max_iter = max_iter

    # What the loop calls -------------------------------------------------------------------

    def minimise(self, support: Ints, start: Point | None = None) -> Point:
        """beta-hat(support) by Newton's method on the n x |support| block."""
        problem = self._restricted(support, self.offset)
        state, note = self._newton(
            problem, self._start(problem, support, start), self._residual_scale
        )
        return Point(support, state.coef, state.value, cache=state.cache, note=note)

    def gradient(self, point: Point) -> Floats:
        """The gradient at `point`: one pass over X."""
        with np.errstate(over="ignore", invalid="ignore"):
            residual = self.weights * self.loss.d1(self._eta(point), self.y)
            gradient = self._back_project(residual)
        gradient[point.support] += self.ridge[point.support] * point.coef
        return gradient

    def decrease_if_added(self, point: Point, blocks: Blocks) -> Floats:
        """Goodness of FoBa-obj: closed form for a quadratic loss, else one Newton per column."""
        if not blocks.are_single:
            return self._decrease_of_groups(point, blocks)
        if self._is_quadratic:
            return _squares_over(self.gradient(point), self._curvatures, blocks.coordinates)
        scores = np.empty(len(blocks))
        negligible = NEGLIGIBLE * max(self._unit, abs(point.value))
        for place, columns in self._columns(point, blocks.coordinates):
            scores[place] = columns.largest_decrease(negligible)
        return scores

    def increase_if_removed(self, point: Point, blocks: Blocks) -> Floats:
        """Badness: Q with the block set to zero and nothing refitted, minus Q."""
        if not blocks.are_single:
            return self._increase_of_groups(point, blocks)
        if self._is_quadratic:
            coef = point.coef[np.searchsorted(point.support, blocks.coordinates)]
            return 0.5 * (coef * np.sqrt(self._curvature(blocks.coordinates))) ** 2
        scores = np.empty(len(blocks))
        for place, columns in self._columns(point, blocks.coordinates):
            scores[place] = columns.change(-columns.coef)
        return scores

    def value_and_gradient(self, beta: Floats) -> tuple[float, Floats]:
        """Q and its gradient at any dense vector of length `dim`."""
        support = np.flatnonzero(beta)
        state = self._restricted(support, self.offset).at(beta[support])
        return state.value, self.gradient(
            Point(support, beta[support], state.value, 0, state.cache)
        )

    def unit(self, start: Point) -> float:
        """The size of Q against which a change is rounding: 1, or Q before any feature is in.

        A real response has no natural scale, so squared and Huber losses take their own.
        """
        return self._unit or abs(start.value)

    def information(self, point: Point) -> tuple[float, float, int]:
        """(log-likelihood, number of rows, degrees of freedom) for information criteria."""
        penalty = 0.5 * float(self.ridge[point.support] @ point.coef**2)
        loglik = self.loss.loglik(point.value - penalty, self.y, self.weights)
        if loglik is None:
            raise ValueError(
                f"the {self.loss.name} loss has no likelihood, so no information criterion can "
                "compare sizes: choose k by cross-validation (GridSearchCV over k), or give k, "
                "epsilon or delta"
            )
        return self.n_samples * loglik, self.n_samples, len(point.support)

    # Facts about the data, computed once ------------------------------------------------------

    @property
    def _unit(self) -> float:
        """A size of Q that is never rounding: 1, but for a real response, which has any scale."""
        return 0.0 if self.loss.domain == "real" else 1.0

    @property
    def _is_quadratic(self) -> bool:
        low, high = self.loss.curvature
        return low == high

    @cached_property
    def _always(self) -> State:
        """The fit before any feature is in: the intercept, or nothing."""
        support = np.arange(self.n_candidates, self.dim)
        problem = self._restricted(support, self.offset)
        # An intercept first of all makes up for the offset.
        starts = [problem.at(np.full(len(support), a)) for a in (0.0, -self.weights @ self.offset)]
        state = min(starts, key=lambda start: start.value)
        for _ in range(2):  # again, because the first fit improves the scale it is judged by
            state, _ = self._newton(problem, state, self._steepness(state.cache))
        if not np.isfinite(state.value):
            raise ValueError(
                f"y or offset is too large: the {self.loss.name} loss overflows before any feature "
                "is in; divide y by a constant or shift the offset"
            )
        return state

    @cached_property
    def _spread(self) -> float:
        """The mean loss at the mean of y."""
        centre = np.full_like(self.y, self.weights @ self.y)
        with np.errstate(over="ignore"):
            return float(self.weights @ self.loss.value(centre, self.y))

    @cached_property
    def _residual_scale(self) -> Floats:
        return self._steepness(self._always.cache)

    @cached_property
    def _curvatures(self) -> Floats:
        return self._curvature(np.arange(self.n_candidates))

    def _curvature(self, coordinates: Ints) -> Floats:
        """The second derivative of a quadratic Q along each of some candidates."""
        curvature = np.full(len(coordinates), self.loss.curvature[1])
        for place, chunk in self.design.chunks(coordinates):
            curvature[place] *= chunk.sum(chunk.per_row(self.weights) * chunk.values**2)
        curvature += self.ridge[coordinates]
        return curvature

    def gradient_scale(self, coordinates: Ints) -> Floats:
        """The weighted mean of |x_ij loss'_i| before any feature is in: what `tol` refers to."""
        return absolute_product(self._block(coordinates), self._residual_scale)

    # Pieces ----------------------------------------------------------------------------------

    def _steepness(self, eta: Floats) -> Floats:
        slopes = np.abs(self.loss.d1(eta, self.y))
        # The second term keeps a column whose rows happen to fit exactly from having scale zero.
        return np.asarray(self.weights * (slopes + 1e-6 * (self.weights @ slopes)))

    def _block(self, support: Ints) -> Block:
        intercept = bool(len(support)) and support[-1] == self.n_candidates
        return self.design.block(support[: len(support) - intercept], intercept=intercept)

    def _restricted(self, support: Ints, base: Floats) -> Restricted:
        block = self._block(support)
        return Restricted(self.loss, block, base, self.y, self.weights, self.ridge[support])

    def _start(self, problem: Restricted, support: Ints, start: Point | None) -> State:
        """A warm start, unless starting from the intercept is better.

        It is where one of two nearly equal columns with huge coefficients has just left.
        """
        if start is not None:
            warm = problem.at(start.dense(self.dim)[support])
            if warm.value <= self._always.value:
                return warm
        cold = np.zeros(self.dim)
        cold[self.n_candidates :] = self._always.coef
        return problem.at(cold[support])

    def _newton(
        self, problem: Restricted, state: State, residual_scale: Floats
    ) -> tuple[State, str]:
        scale = absolute_product(problem.block, residual_scale)
        # Where Q has no unit, a perfect fit still needs something that rounding is small against.
        unit = self._unit or NEGLIGIBLE * self._spread
        return newton(problem, state, scale, unit=unit, tol=self.tol, max_iter=self.max_iter)

    def _eta(self, point: Point) -> Floats:
        if point.cache is not None:
            return np.asarray(point.cache)
        return np.asarray(self.offset + self._block(point.support) @ point.coef)

    def _back_project(self, residual: Floats) -> Floats:
        gradient = self.design.back_project(residual)
        return np.append(gradient, residual.sum()) if self.fit_intercept else gradient

    def _columns(self, point: Point, coordinates: Ints) -> Iterator[tuple[slice, Columns]]:
        eta, beta = self._eta(point), point.dense(self.dim)
        for place, chunk in self.design.chunks(coordinates):
            own = coordinates[place]
            yield (
                place,
                Columns(self.loss, chunk, self.y, self.weights, eta, self.ridge[own], beta[own]),
            )

    def _decrease_of_groups(self, point: Point, blocks: Blocks) -> Floats:
        eta, beta = self._eta(point), point.dense(self.dim)
        fixed = 0.5 * float(self.ridge @ beta**2)
        scores = np.empty(len(blocks))
        for index, coordinates in enumerate(blocks):
            own = beta[coordinates]
            problem = self._restricted(coordinates, eta)
            if own.any():
                problem = self._restricted(coordinates, eta - problem.block @ own)
            state, _ = self._newton(problem, problem.at(own), self._residual_scale)
            outside = fixed - 0.5 * float(self.ridge[coordinates] @ own**2)
            scores[index] = point.value - state.value - outside
        return np.maximum(scores, 0.0)

    def _increase_of_groups(self, point: Point, blocks: Blocks) -> Floats:
        eta, beta = self._eta(point), point.dense(self.dim)
        before = self.loss.value(eta, self.y)
        scores = np.empty(len(blocks))
        for index, coordinates in enumerate(blocks):
            own = beta[coordinates]
            with np.errstate(over="ignore", invalid="ignore"):
                after = self.loss.value(eta - self._block(coordinates) @ own, self.y)
                change = float(self.weights @ (after - before))
            scores[index] = change - 0.5 * float(self.ridge[coordinates] @ own**2)
        return scores


class Logistic(GLM):
    """Mean of log(1 + exp(-margin)) plus ridge, for y in {0, 1}, {-1, 1} or bool.

    See `GLM` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from forback import select
    >>> from forback.objectives import Logistic
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> path = select(Logistic(X, X[:, 3] > 0, ridge=0.01), k=1)
    >>> path.steps[0].feature
    3
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        ridge: Any = 0.0,
        fit_intercept: bool = False,
        offset: Any = None,
        sample_weight: Any = None,
        tol: float = 1e-10,
        max_iter: int = 100,
    ) -> None:
        super().__init__(
            "logistic", X, y, ridge=ridge, fit_intercept=fit_intercept, offset=offset,
            sample_weight=sample_weight, tol=tol, max_iter=max_iter,
        )  # fmt: skip


def _squares_over(gradient: Floats, curvatures: Floats, coordinates: Ints) -> Floats:
    """g^2 / (2 h), and 0 for a column without curvature; written to survive h of 1e300."""
    h = curvatures[coordinates]
    root = np.sqrt(np.where(h > 0, h, 1.0))
    return np.where(h > 0, 0.5 * (gradient[coordinates] / root) ** 2, 0.0)
