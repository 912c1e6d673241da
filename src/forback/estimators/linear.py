"""FobaRegressor, FobaClassifier and FobaSelector: linear models with at most k features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import special
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.metrics import r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from forback.core.types import Floats
from forback.core.units import exponent
from forback.estimators.base import documented
from forback.estimators.linear_model import LINEAR, FobaLinear, with_classes, with_loss
from forback.objectives.linear.losses import LOSSES, LogisticLoss
from forback.validation.arrays import check_response, check_weights
from forback.validation.containers import check_container, refuse_mask
from forback.validation.losses import check_loss

#: What X is kept in.
FLOATS = [np.float64, np.float32]

REGRESSION = {name: LOSSES[name] for name in ("squared", "huber", "poisson", "gamma")}


@documented(linear=LINEAR)
class FobaRegressor(RegressorMixin, FobaLinear):  # type: ignore[misc]
    """Regression with at most k features, chosen by the forward-backward greedy algorithm.

    Parameters
    ----------
    {choice}
    {linear}
    loss : {"squared", "huber", "poisson", "gamma"} or Loss
        Poisson and gamma have a log link: `predict` returns ``exp(X @ coef_ + intercept_)``.
        "huber" straightens beyond residuals of 1.35 in the units of y; ``Huber(threshold)`` of
        `forback.objectives` sets another. It has no likelihood: give `k`, or choose it by CV.
        Your own: ``PointwiseLoss(value, d1, d2)``.

    Attributes
    ----------
    coef_ : array of shape (p,)
        Zero for the columns that were not chosen.
    intercept_ : float
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from forback import FobaRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = FobaRegressor(k=3).fit(X, y)
    >>> [X.columns[j] for j in model.selected_]
    ['bmi', 's5', 'bp']
    >>> round(model.score(X, y), 2)
    0.48
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose features and fit; weights count rows."""
        loss = check_loss(self.loss, REGRESSION)
        checked, y = self._validated(X, y, accept_sparse="csc", dtype=FLOATS, y_numeric=True)
        n = checked.shape[0]
        y = check_response(y, n, loss.domain, loss.name)
        weights = check_weights(sample_weight, n)
        coef, intercept = self._select(checked, y, with_loss(loss), weights)
        self.coef_, self.intercept_ = coef[0], float(intercept[0])
        self._loss = loss
        return self

    def predict(self, X: Any) -> Floats:
        """The expected y of each row."""
        eta = self._linear_predictor(X)
        return np.asarray(self._loss.mean(eta))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination R^2 of `predict`."""
        y, prediction = _squarable(check_container(y, "y"), self.predict(X))
        refuse_mask(sample_weight, "sample_weight")
        return float(r2_score(y, prediction, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss in ("poisson", "gamma")
        return tags


@documented(linear=LINEAR)
class FobaClassifier(ClassifierMixin, FobaLinear):  # type: ignore[misc]
    """Logistic regression with at most k features, chosen by forward-backward greedy.

    Softmax regression where there are more than two classes: a feature then has a coefficient for
    each class, which enter and leave together, and sum to zero. With ``by="feature"`` they enter
    and leave one by one, `k` counts them, and only the intercepts sum to zero.

    Parameters
    ----------
    {choice}
    {linear}

    Attributes
    ----------
    classes_ : array of shape (K,)
        The labels of the rows that count, sorted.
    coef_ : array of shape (1, p) for two classes, (K, p) for more
        Zero for the columns that were not chosen. Two classes: for the second against the first.
    intercept_ : array of shape (1,) or (K,)
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from forback import FobaClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = FobaClassifier(k=3, method="foba-obj").fit(X, y)
    >>> [X.columns[j] for j in model.selected_]
    ['worst perimeter', 'worst smoothness', 'worst texture']
    >>> round(model.score(X, y), 2)
    0.97

    Three classes:

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = FobaClassifier(k=2).fit(X, y)
    >>> [X.columns[j] for j in model.selected_]
    ['petal length (cm)', 'sepal length (cm)']
    >>> model.coef_.shape, round(model.score(X, y), 2)
    ((3, 4), 0.97)
    """

    def __init__(
        self,
        k: int | None = None,
        *,
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
        alpha: float = 1e-4,
        fit_intercept: bool = True,
        standardize: bool = True,
        tol: float = 1e-8,
        max_iter: int = 100,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            k,
            loss="logistic",
            method=method,
            criterion=criterion,
            k_max=k_max,
            ratio=ratio,
            backward=backward,
            epsilon=epsilon,
            delta=delta,
            groups=groups,
            by=by,
            always=always,
            costs=costs,
            budget=budget,
            alpha=alpha,
            fit_intercept=fit_intercept,
            standardize=standardize,
            tol=tol,
            max_iter=max_iter,
            verbose=verbose,
            random_state=random_state,
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose features and fit; weights count rows."""
        checked, y = self._validated(X, y, accept_sparse="csc", dtype=FLOATS)
        weights = check_weights(sample_weight, checked.shape[0])
        self.classes_, labels = class_labels(y, weights)
        build = with_classes(LogisticLoss(), self.classes_)
        self.coef_, self.intercept_ = self._select(checked, labels, build, weights)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Log-odds of the second of two classes, for each row; else a score for each class."""
        return self._linear_predictor(X)

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of all classes, for each row."""
        eta = self.decision_function(X)
        if eta.ndim == 2:
            return np.asarray(special.softmax(eta, axis=1))
        mean = LogisticLoss().mean
        return np.column_stack([mean(-eta), mean(eta)])

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the probabilities, exact where the probabilities round to 0."""
        eta = self.decision_function(X)
        if eta.ndim == 2:
            return np.asarray(special.log_softmax(eta, axis=1))
        return -np.column_stack([np.logaddexp(0.0, eta), np.logaddexp(0.0, -eta)])

    def predict(self, X: Any) -> Any:
        """The most probable class of each row."""
        eta = self.decision_function(X)
        return self.classes_[eta.argmax(axis=1) if eta.ndim == 2 else (eta > 0).astype(np.intp)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows, by weight, whose class `predict` tells right."""
        refuse_mask(sample_weight, "sample_weight")
        return float(super().score(X, check_container(y, "y"), sample_weight))


@documented(linear=LINEAR)
class FobaSelector(SelectorMixin, FobaLinear):  # type: ignore[misc]
    """Keeps the k columns that a forward-backward greedy model uses: a step of a Pipeline.

    Parameters
    ----------
    {choice}
    {linear}
    loss : {"squared", "logistic", "poisson", "gamma", "huber", "squared_hinge"} or Loss
        What the columns should be good for; "squared_hinge" takes any two labels, "logistic" any
        two or more. Your own: ``PointwiseLoss(value, d1, d2)``.

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from forback import FobaSelector
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> selector = FobaSelector(k=3, loss="logistic", method="foba-obj", alpha=1e-4).fit(X, y)
    >>> selector.get_feature_names_out().tolist()
    ['worst texture', 'worst perimeter', 'worst smoothness']
    >>> selector.transform(X).shape
    (569, 3)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose features; weights count rows."""
        loss = check_loss(self.loss, LOSSES)
        checked, y = self._validated(
            X, y, accept_sparse="csc", dtype=FLOATS, y_numeric=loss.domain != "binary"
        )
        weights = check_weights(sample_weight, checked.shape[0])
        build = with_loss(loss)
        if loss.domain == "binary":
            classes, y = class_labels(y, weights)
            build = with_classes(loss, classes)
        else:
            y = check_response(y, checked.shape[0], loss.domain, loss.name)
        self._select(checked, y, build, weights)
        return self

    def transform(self, X: Any) -> Any:
        """X with the chosen columns only."""
        check_is_fitted(self)
        return super().transform(self._sound(X))

    def inverse_transform(self, X: Any) -> Any:
        """The chosen columns in their places, with zeros for all others."""
        return super().inverse_transform(check_container(X, "X"))

    def _get_support_mask(self) -> Any:
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss in ("poisson", "gamma")
        return tags


def _squarable(y: Any, prediction: Floats) -> tuple[Any, Floats]:
    """Both times a power of two with which neither is too small, or too large, to be squared."""
    array = np.asarray(y)
    if array.dtype.kind != "f" or not array.size:
        return y, prediction
    power = exponent(float(max(np.abs(array).max(), np.abs(prediction).max(initial=0.0))))
    return (y, prediction) if power == 0 else (np.ldexp(array, power), np.ldexp(prediction, power))


def class_labels(y: Any, weights: Floats) -> tuple[Any, Any]:
    """The labels of the rows that count, sorted, and y as their numbers; 0/1 as the losses want it.

    Rows that do not count get any number.
    """
    try:
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
    except (TypeError, ValueError) as error:
        raise type(error)(f"y must hold class labels of one type: {error}") from error
    present = np.unique(codes[weights > 0])
    if len(present) < 2:
        raise ValueError(
            f"y holds only one class, {classes[present].tolist()[0]!r}, among the rows that count; "
            "a classifier needs samples of at least two classes"
        )
    codes = np.searchsorted(present, codes)
    return classes[present], codes.astype(np.float64) if len(present) == 2 else codes
