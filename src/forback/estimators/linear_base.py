"""What the linear estimators share: from X and y to coefficients on the user's scale."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from forback.core.types import Floats
from forback.designs.design import Design
from forback.designs.make import make_design
from forback.designs.standardized import Scaling, standardized
from forback.estimators.base import FobaEstimator
from forback.objectives.linear.data import LinearData
from forback.objectives.linear.losses import LogisticLoss, Loss
from forback.objectives.linear.objective import GLM
from forback.objectives.softmax.data import SoftmaxData
from forback.objectives.softmax.objective import SoftmaxObjective
from forback.selection.run import in_range
from forback.validation.arrays import (
    check_response,
    check_weights,
    drop_weightless,
    share_out,
    tidy_matrix,
)
from forback.validation.scalars import check_flag, check_integer, check_number
from forback.validation.sequences import check_several_classes

#: The types in which X is kept; any other becomes the first.
FLOATS = [np.float64, np.float32]


@dataclass(eq=False, repr=False, kw_only=True)
class FobaLinear(FobaEstimator):
    """A linear model with few features; the public estimators add what y means.

    Parameters
    ----------
    alpha : float
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
        1 prints a line before the first step, and one per step.
    random_state : int, numpy.random.Generator or None
        Seed of ``epsilon="auto"``, of ``delta="auto"`` and of the kicks of ``refine="search"``;
        nothing else is random.
    """

    fit_intercept: bool = True
    random_state: Any = 0
    loss: str | Loss = field(default="logistic", init=False)  #: where it is no parameter

    def _fit(self, X: Any, y: Any, sample_weight: Any, loss: Loss) -> tuple[Any, Floats, Floats]:
        """Choose features, set what is fitted, and return classes, coefficients and intercepts.

        Coefficients and intercepts have one row, or one per class. A loss of two classes takes any
        labels; for any other there are no classes.
        """
        has_classes = loss.domain == "binary"
        X, y = self._validated(X, y, accept_sparse="csc", dtype=FLOATS, y_numeric=not has_classes)
        weights = check_weights(sample_weight, X.shape[0])
        classes = None
        if has_classes:
            classes, y = check_classes(y, weights)
        else:
            y = check_response(y, X.shape[0], loss.domain, loss.name)
        objective, scaling = self._objective(X, y, weights, loss, classes)
        scaled, units = in_range(objective)
        candidates = self._candidates(scaled)
        point = self._choose(scaled, candidates)
        self._set_columns(candidates, point)
        if units is not None:
            point = units.point(point)
        p = X.shape[1]
        has_intercept = objective.fit_intercept
        table = point.dense(objective.dim).reshape(p + has_intercept, -1).T
        last = table[:, p] if has_intercept else np.zeros(len(table))
        coef, intercepts = scaling.to_users_scale(table[:, :p], last)
        if len(table) > 1 and has_intercept:  # a constant common to all classes is arbitrary
            intercepts = intercepts - intercepts.mean()
        return classes, coef, intercepts

    def _objective(
        self, X: Any, y: Any, weights: Floats, loss: Loss, classes: Any
    ) -> tuple[GLM | SoftmaxObjective, Scaling]:
        """Return the objective on the scale fitted, and how that scale follows from the user's."""
        fit_intercept = check_flag(self.fit_intercept, "fit_intercept")
        kept, y, kept_weights = drop_weightless(weights, X, y, weights)
        shares, n_samples = share_out(kept_weights)
        stored = make_design(tidy_matrix(kept))
        design: Design = stored
        scaling = Scaling(np.zeros(X.shape[1]), np.ones(X.shape[1]))
        if check_flag(self.standardize, "standardize"):
            design, scaling = standardized(stored, shares, center=fit_intercept)
        parts: dict[str, Any] = {
            "ridge": np.full(X.shape[1], check_number(self.alpha, "alpha", low=0.0)),
            "fit_intercept": fit_intercept,
            "weights": shares,
            "n_samples": n_samples,
            "names": self._labels,
            "tol": check_number(self.tol, "tol", low=0.0, open_low=True),
            "max_iter": check_integer(self.max_iter, "max_iter", low=1),
        }
        if classes is None or len(classes) == 2:
            data = LinearData(loss, design, y, offset=np.zeros(len(y)), **parts)
            return GLM.from_data(data), scaling
        if not isinstance(loss, LogisticLoss):
            raise ValueError(
                f"y has {len(classes)} classes, but the {loss.name} loss is for two; choose "
                'loss="logistic", or two of the classes'
            )
        classes_data = SoftmaxData(classes, design, y, **parts)
        return SoftmaxObjective(classes_data), scaling

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
        tags.target_tags.positive_only = self.loss in ("poisson", "gamma")
        return tags


def check_classes(y: Any, weights: Floats) -> tuple[Any, Any]:
    """Return the labels of the rows that count, sorted, and y as their numbers.

    Two classes are 0.0 and 1.0, as losses want them. Rows that do not count get any number.
    """
    try:
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
    except (TypeError, ValueError) as error:
        raise type(error)(f"y must hold class labels of one type: {error}") from error
    present = np.unique(codes[weights > 0])
    check_several_classes(classes[present])
    codes = np.searchsorted(present, codes)
    return classes[present], codes.astype(np.float64) if len(present) == 2 else codes
