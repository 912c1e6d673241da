"""LinearData: the checked parts of a generalised linear model, and facts that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypedDict

import numpy as np

from forback.core.point import Point
from forback.core.tolerances import NEGLIGIBLE
from forback.core.types import ColumnLabels, Floats, Ints
from forback.designs.dense import Dense
from forback.designs.design import Block, Design, PreviousBlock
from forback.designs.single_precision import SinglePrecision
from forback.designs.sparse import Sparse
from forback.designs.standardized import standardized
from forback.objectives.linear.losses import Huber, Loss, Poisson, Squared, code_of
from forback.objectives.linear.problem import Response, Restricted
from forback.objectives.linear.rows import Rows
from forback.solvers.linalg import ridge_penalty
from forback.solvers.newton import State

#: A larger y has squares that overflow.
LARGEST_RESPONSE = 2.0**500


class Settings(TypedDict, total=False):
    """What a generalised linear model may be given by keyword; `GLM` says what each means."""

    ridge: Any
    fit_intercept: bool
    offset: Any
    sample_weight: Any
    tol: float
    max_iter: int
    precision: str


@dataclass(frozen=True, eq=False)
class LinearData:
    """What a generalised linear model is made of; everything has been checked.

    Attributes
    ----------
    loss : Loss
    design : Design
    y : float array of length n
    weights : float array of length n
        They add up to 1.
    offset : float array of length n
    ridge : float array of length p
        The penalty of each column.
    fit_intercept : bool
    tol : float
    max_iter : int
    n_samples : float
        How many observations the rows stand for.
    names : tuple of labels, optional
        What the columns are called.
    precision : {"double", "mixed"}
    fits : callable, optional
        How Q is minimised, made from the data: `NewtonFit`, `CholeskyFit` or `MomentFit`. By
        default the data decide.
    slopes : callable, optional
        How the largest slopes are found: `by_passes`, `by_single_precision` or `by_products`. By
        default the data decide.
    """

    loss: Loss
    design: Design
    y: Floats
    weights: Floats
    offset: Floats
    ridge: Floats
    fit_intercept: bool
    tol: float
    max_iter: int
    n_samples: float
    names: ColumnLabels | None = None
    precision: str = "double"
    fits: Callable[[LinearData], Any] | None = None
    slopes: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.loss, Huber):
            size = float(self.weights @ np.abs(self.y - self.offset))
            loss = replace(self.loss, typical=size if 0.0 < size < np.inf else 1.0)
            object.__setattr__(self, "loss", loss)
        if isinstance(self.loss, Squared) and (
            max(np.abs(self.y).max(), np.abs(self.offset).max()) > LARGEST_RESPONSE
        ):
            raise ValueError(
                f"y and offset must be below {LARGEST_RESPONSE:.0e} for the squared loss, whose "
                "value would overflow; divide them by a constant"
            )

    # Facts, computed once ----------------------------------------------------------------------

    @property
    def n_candidates(self) -> int:
        """The number of columns."""
        return self.design.shape[1]

    @property
    def dim(self) -> int:
        """The number of columns, and one more for an intercept."""
        return self.n_candidates + self.fit_intercept

    @cached_property
    def full_ridge(self) -> Floats:
        """The penalty of every coordinate: an intercept has none."""
        return np.concatenate([self.ridge, np.zeros(int(self.fit_intercept))])

    @cached_property
    def response(self) -> Response:
        """Loss, y and weights together."""
        return Response(self.loss, code_of(self.loss), self.y, self.weights)

    @property
    def is_squared(self) -> bool:
        """Whether the loss is the squared one, for which there are methods of its own."""
        return type(self.loss) is Squared  # a subclass may differ in anything

    @cached_property
    def is_quadratic(self) -> bool:
        """Whether the Hessian is the same everywhere."""
        low, high = self.loss.curvature
        return low == high

    @cached_property
    def is_far_from_zero(self) -> bool:
        """Whether there is an intercept, and columns are so far from zero that it hides them."""
        return self.fit_intercept and self.design.is_far_from_zero

    @cached_property
    def standardized(self) -> tuple[LinearData, Floats]:
        """The same with standardised columns, and one unit for each coordinate.

        With an intercept Q is the same function of coefficients in these units, and sums of
        products of columns that are far from zero keep their digits.
        """
        assert isinstance(self.design, Dense | Sparse)  # what is a view already is not far
        design, scaling = standardized(self.design, self.weights, center=True)
        data = replace(self, design=design, ridge=self.ridge / scaling.scale**2)
        return data, np.append(scaling.scale, 1.0)

    @cached_property
    def mean_response(self) -> float:
        """The weighted mean of y."""
        return float(self.weights @ self.y)

    @cached_property
    def rounding_unit(self) -> float:
        """A size of Q that is never rounding: 1, but for responses that have a scale of their own.

        A real one has any, counts have their mean: with an intercept, Q goes with it.
        """
        if self.loss.domain == "real":
            return 0.0
        return min(1.0, self.mean_response or 1.0) if isinstance(self.loss, Poisson) else 1.0

    @cached_property
    def newton_unit(self) -> float:
        """The rounding unit; where Q has none, something that is small against its spread.

        A perfect fit, too, needs something that rounding is small against.
        """
        if self.rounding_unit:
            return self.rounding_unit
        centre = np.full_like(self.y, self.mean_response)
        with np.errstate(over="ignore"):
            return NEGLIGIBLE * float(self.weights @ self.loss.value(centre, self.y))

    def negligible(self, value: float) -> float:
        """Return a change of Q that is no progress where Q has some value."""
        return NEGLIGIBLE * max(self.rounding_unit, abs(value))

    @cached_property
    def largest_offset(self) -> float:
        """The largest absolute offset."""
        return float(np.abs(self.offset).max())

    @cached_property
    def curvatures(self) -> Floats:
        """The second derivative of a quadratic Q along every column."""
        _, squares, _ = self.design.three_sums(self.weights, self.weights)
        return np.asarray(self.loss.curvature[1] * squares + self.ridge)

    @cached_property
    def inverse_roots(self) -> Floats:
        """One over the root of the curvature along every column; 0 where there is none."""
        root = np.sqrt(self.curvatures)
        return np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)

    @cached_property
    def equal_weights(self) -> Floats:
        """One for each column: slopes are compared as they are."""
        return np.ones(self.n_candidates)

    @cached_property
    def single_precision(self) -> SinglePrecision | None:
        """The design beside its copy in single precision, where that is wanted."""
        return SinglePrecision(self.design) if self.precision == "mixed" else None

    @cached_property
    def offset_only(self) -> tuple[float, Rows]:
        """Mean loss and derivatives where no column is in, not even the intercept."""
        return self.response.at(self.offset)

    # Pieces ------------------------------------------------------------------------------------

    def has_intercept(self, support: Ints) -> bool:
        """Return whether the intercept is in."""
        return self.fit_intercept and bool(len(support)) and support[-1] == self.n_candidates

    def columns_of(self, support: Ints) -> Ints:
        """Return the support without the intercept."""
        return support[: len(support) - self.has_intercept(support)]

    def block(self, support: Ints, previous: PreviousBlock | None = None) -> Block:
        """Return the columns of a support, some of them taken from a previous block."""
        columns = self.columns_of(support)
        return self.design.block(columns, intercept=len(columns) < len(support), previous=previous)

    def restricted(
        self, support: Ints, block: Block | None = None, largest: Floats | None = None
    ) -> Restricted:
        """Return Q on a support; `largest` is the largest entry of each column, where known."""
        block = self.block(support) if block is None else block
        response = self.response.of(block)
        base = block.take(self.offset)
        elsewhere = 0.0 if block.rows is None else self.offset_only[0] - response.at(base)[0]
        return Restricted(response, block, base, self.full_ridge[support], elsewhere, largest)

    def on_all_rows(self, problem: Restricted, state: State) -> Rows:
        """Return eta and the like of a fit that may have left out rows without entries."""
        own: Rows = state.cache
        if problem.block.rows is None:
            return own
        everywhere = [whole.copy() for whole in self.offset_only[1]]
        for whole, part in zip(everywhere, own, strict=True):
            whole[problem.block.rows] = part
        return Rows(*everywhere)

    def log_likelihood(self, point: Point) -> tuple[float, int]:
        """Return the log-likelihood of a point and its degrees of freedom."""
        penalty = ridge_penalty(self.full_ridge[point.support], point.coef)
        loglik = self.loss.loglik(point.value - penalty, self.y, self.weights)
        assert loglik is not None  # who asks has made sure
        return self.n_samples * loglik, len(point.support)

    def back_project(self, residual: Floats) -> Floats:
        """Return X' residual, and the sum of the residual for an intercept: one pass over X."""
        gradient = self.design.back_project(residual)
        return np.append(gradient, residual.sum()) if self.fit_intercept else gradient
