"""SoftmaxData: the checked parts of a softmax regression, and facts that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from forback.core.types import ColumnLabels, Floats, Ints
from forback.designs.design import Design
from forback.objectives.softmax.problem import Coefficients, Labels, RestrictedSoftmax
from forback.solvers.newton import State

#: This share of the mean steepness is added to that of each row, so that a column whose rows happen
#: to fit exactly does not have scale zero.
MIN_STEEPNESS = 1e-6


@dataclass(frozen=True, eq=False)
class SoftmaxData:
    """What a softmax regression is made of; everything has been checked.

    Attributes
    ----------
    classes : Any
        The K labels.
    design : Design
    codes : Ints
        The class of each row, by number.
    weights : Floats
        The weight of each row; they add up to 1.
    n_samples : float
        How many observations the rows stand for.
    ridge : Floats
        The penalty of each column.
    fit_intercept : bool
    tol : float
    max_iter : int
    names : sequence, optional
        What the columns are called.
    """

    classes: Any
    design: Design
    codes: Ints
    weights: Floats
    n_samples: float
    ridge: Floats
    fit_intercept: bool
    tol: float
    max_iter: int
    names: ColumnLabels | None = None

    @property
    def n_classes(self) -> int:
        """The number of classes, K."""
        return len(self.classes)

    @property
    def n_candidates(self) -> int:
        """The number of coefficients that may be chosen: each column with each class."""
        return self.design.shape[1] * self.n_classes

    @cached_property
    def full_ridge(self) -> Floats:
        """The penalty of each coefficient, intercepts included."""
        return np.append(self.ridge, [0.0] * self.fit_intercept).repeat(self.n_classes)

    @cached_property
    def labels(self) -> Labels:
        """The class of each row and its weight."""
        return Labels(self.codes, self.weights, self.n_classes)

    @cached_property
    def is_far(self) -> bool:
        """Whether there are intercepts, and columns so far from zero that they hide them."""
        return self.fit_intercept and self.design.is_far_from_zero

    @cached_property
    def always(self) -> State:
        """The fit before any feature is in: the logarithms of the shares of the classes."""
        shares = np.bincount(self.codes, self.weights, self.n_classes)
        logs = np.log(np.maximum(shares, np.finfo(float).tiny))
        intercepts = np.arange(self.n_candidates, len(self.full_ridge))
        return self.restricted(intercepts).at((logs - logs.mean())[: len(intercepts)])

    @cached_property
    def steepness(self) -> Floats:
        """How steep each row is for each class before any feature is in, n x K."""
        slopes = np.abs(self.always.cache.residual)
        return np.asarray(slopes + MIN_STEEPNESS * self.weights[:, None] * slopes.sum(axis=0))

    @cached_property
    def inverse_roots(self) -> Floats:
        """One over the root of each column's mean square."""
        squares = self.design.three_sums(self.weights, self.weights)[1]
        root = np.sqrt(squares + self.ridge)
        return np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)

    def restricted(self, coordinates: Ints) -> RestrictedSoftmax:
        """Return Q as a function of some coefficients, the others zero."""
        own = Coefficients.of(coordinates, self.n_classes)
        block = np.ones((self.design.shape[0], len(own.columns)))
        columns = own.columns[own.columns < self.design.shape[1]]
        block[:, : len(columns)] = self.design.toarray(columns)
        return RestrictedSoftmax(self.labels, block, own, self.full_ridge[coordinates])
