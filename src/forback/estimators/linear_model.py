"""What the linear estimators share: from a checked X, y and loss to a chosen point."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from forback.core.types import ColumnLabels, Floats
from forback.designs.design import Design
from forback.designs.make import make_design
from forback.designs.standardized import Scaling, standardized
from forback.estimators.base import FobaEstimator
from forback.objectives.linear.data import LinearData
from forback.objectives.linear.losses import LogisticLoss, Loss
from forback.objectives.linear.objective import GLM
from forback.objectives.softmax.objective import Multinomial
from forback.selection.run import in_range
from forback.validation.arrays import drop_weightless, share_out, tidy_matrix
from forback.validation.scalars import check_flag, check_integer, check_number

LINEAR = """alpha : float
        Ridge penalty: ``alpha / 2 * sum(coef**2)`` next to the mean of the loss, on the scale
        fitted. For n rows, ``LogisticRegression(C=1 / (n * alpha))`` and
        ``Ridge(alpha=n * alpha)`` of scikit-learn penalise alike.
    fit_intercept : bool
        Whether to fit an intercept; it is never penalised.
    standardize : bool
        Whether to select on columns of unit variance, and of mean zero with an intercept;
        coefficients come back on your scale. X is not copied for it, and stays sparse if it is.
    tol : float
        Accuracy of each fit, relative to the gradient before any feature is in.
    max_iter : int
        Newton steps per fit.
    verbose : int
        1 prints a line per step.
    random_state : int, numpy.random.Generator or None
        Of ``epsilon="auto"`` and ``delta="auto"``; nothing else is random."""


#: Makes an objective of X, y and the settings of a fit.
Build = Callable[..., Any]


def with_loss(loss: Loss) -> Build:
    """For a model with one linear predictor."""
    return partial(_linear, loss)


def _linear(loss: Loss, design: Design, y: Floats, **parts: Any) -> GLM:
    return GLM.from_data(LinearData.of(loss, design, y, **parts))


def with_classes(loss: Loss, classes: Any) -> Build:
    """For class labels: those of `loss` if there are two, softmax regression if there are more."""
    if len(classes) == 2:
        return with_loss(loss)
    if not isinstance(loss, LogisticLoss):
        raise ValueError(
            f"y has {len(classes)} classes, but the {loss.name} loss is for two; choose "
            'loss="logistic", or two of the classes'
        )
    return partial(_softmax, classes)


def _softmax(classes: Any, *data: Any, names: ColumnLabels | None, **parts: Any) -> Any:
    objective = Multinomial.trusted(classes, *data, **parts)
    objective.feature_names = names
    return objective


class FobaLinear(FobaEstimator):
    """A linear model with few features; the public estimators add what y means."""

    def __init__(
        self,
        k: int | None = None,
        *,
        loss: str | Loss = "squared",
        method: str = "foba-gdt",
        criterion: str = "bic",
        k_max: int | None = None,
        ratio: float = 0.5,
        backward: str = "coordinate",
        epsilon: float | str | None = None,
        delta: float | str | None = None,
        groups: Any = None,
        by: str = "group",
        always: Any = None,
        costs: Any = None,
        budget: float | None = None,
        alpha: float = 0.0,
        fit_intercept: bool = True,
        standardize: bool = True,
        tol: float = 1e-8,
        max_iter: int = 100,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.k = k
        self.loss = loss
        self.method = method
        self.criterion = criterion
        self.k_max = k_max
        self.ratio = ratio
        self.backward = backward
        self.epsilon = epsilon
        self.delta = delta
        self.groups = groups
        self.by = by
        self.always = always
        self.costs = costs
        self.budget = budget
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.random_state = random_state

    def _select(self, X: Any, y: Any, build: Build, weights: Floats) -> tuple[Floats, Floats]:
        """Choose features for checked input, set what is fitted, return coefs and intercepts.

        One row of coefficients, or one per class.
        """
        objective, scaling = self._objective(X, y, build, weights)
        scaled, units = in_range(objective)
        candidates = self._candidates(scaled)
        point = self._choose(scaled, candidates)
        self._set_columns(candidates, point)
        p, intercept = X.shape[1], objective.fit_intercept
        if units is not None:
            point = units.point(point)
        table = point.dense(objective.dim).reshape(p + intercept, -1).T
        last = table[:, p] if intercept else np.zeros(len(table))
        coef, intercepts = scaling.to_users_scale(table[:, :p], last)
        # What all classes have in common says nothing.
        return coef, intercepts - intercepts.mean() if len(table) > 1 and intercept else intercepts

    def _objective(self, X: Any, y: Any, build: Build, weights: Floats) -> tuple[Any, Scaling]:
        intercept = check_flag(self.fit_intercept, "fit_intercept")
        kept, y, kept_weights = drop_weightless(weights, X, y, weights)
        stored = make_design(tidy_matrix(kept))
        design: Design = stored
        scaling = Scaling(np.zeros(X.shape[1]), np.ones(X.shape[1]))
        if check_flag(self.standardize, "standardize"):
            design, scaling = standardized(stored, share_out(kept_weights)[0], center=intercept)
        objective = build(
            design,
            y,
            ridge=np.full(X.shape[1], check_number(self.alpha, "alpha", low=0.0)),
            fit_intercept=intercept,
            weights=kept_weights,
            tol=check_number(self.tol, "tol", low=0.0, open_low=True),
            max_iter=check_integer(self.max_iter, "max_iter", low=1),
            names=self._labels,
        )
        return objective, scaling

    def _linear_predictor(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = self._validated(X, accept_sparse="csr", dtype=np.float64, reset=False)
        several = np.ndim(self.coef_) == 2 and len(self.coef_) > 1
        coef = self.coef_.T if several else np.ravel(self.coef_)
        with np.errstate(over="ignore", invalid="ignore"):
            eta = np.asarray(safe_sparse_dot(X, coef, dense_output=True) + self.intercept_)
        if not np.isfinite(eta).all():
            row = int(np.flatnonzero(~np.isfinite(eta.reshape(len(eta), -1)).all(axis=1))[0])
            raise ValueError(
                f"X must hold numbers for which a prediction is below 1e308, got larger ones at "
                f"row {row}; give numbers like those of fit"
            )
        return eta

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags
