"""FobaRegressor and FobaClassifier: linear models with at most k features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import special
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score

from forback.core.types import Floats
from forback.core.units import exponent
from forback.estimators.base import documented
from forback.estimators.linear_base import FobaLinear
from forback.objectives.linear.losses import LOSSES, LogisticLoss, Loss
from forback.validation.containers import check_container, refuse_mask
from forback.validation.losses import check_loss

REGRESSION_LOSSES = {name: LOSSES[name] for name in ("squared", "huber", "poisson", "gamma")}


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class FobaRegressor(RegressorMixin, FobaLinear):  # type: ignore[misc]
    """Regression with at most k features, chosen by the forward-backward greedy algorithm.

    Parameters
    ----------
    {FobaEstimator.Parameters}
    {FobaLinear.Parameters}
    loss : {"squared", "huber", "poisson", "gamma"} or Loss
        Poisson and gamma have a log link: `predict` returns ``exp(X @ coef_ + intercept_)``.
        "huber" is linear for abs(residual) > 1.35 in the units of y; ``Huber(threshold)`` of
        `forback.objectives` sets another. It has no likelihood: give `k`, or choose it by CV.
        Your own: ``PointwiseLoss(value, d1, d2)``.

    Attributes
    ----------
    coef_ : array of shape (p,)
        Zero for the columns that were not chosen.
    intercept_ : float
    {FobaEstimator.Attributes}

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

    loss: str | Loss = "squared"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose features and fit the model.

        Parameters
        ----------
        X : array, SciPy sparse matrix or data frame of shape (n, p)
        y : array of length n
        sample_weight : array of length n, optional
            Weights of rows; whole numbers count repeated rows.

        Returns
        -------
        self
        """
        loss = check_loss(self.loss, REGRESSION_LOSSES)
        _, coef, intercept = self._fit(X, y, sample_weight, loss)
        self.coef_ = coef[0]
        self.intercept_ = float(intercept[0])
        self._loss = loss
        return self

    def predict(self, X: Any) -> Floats:
        """Predict the mean of y for each row of X.

        Parameters
        ----------
        X : array, SciPy sparse matrix or data frame of shape (n, p)

        Returns
        -------
        array of length n
        """
        eta = self._linear_predictor(X)
        return np.asarray(self._loss.mean(eta))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R^2 of `predict`.

        Parameters
        ----------
        X : array, SciPy sparse matrix or data frame of shape (n, p)
        y : array of length n
        sample_weight : array of length n, optional

        Returns
        -------
        float
        """
        y, prediction = _squarable(check_container(y, "y"), self.predict(X))
        refuse_mask(sample_weight, "sample_weight")
        return float(r2_score(y, prediction, sample_weight=sample_weight))


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class FobaClassifier(ClassifierMixin, FobaLinear):  # type: ignore[misc]
    """Logistic regression with at most k features, chosen by forward-backward greedy.

    Softmax regression where there are more than two classes: a feature then has a coefficient for
    each class, which enter and leave together, and sum to zero. With ``by="feature"`` they enter
    and leave one by one, `k` counts them, and only the intercepts sum to zero.

    Parameters
    ----------
    {FobaEstimator.Parameters}
    {FobaLinear.Parameters}

    Attributes
    ----------
    classes_ : array of shape (K,)
        The labels of the rows that count, sorted.
    coef_ : array of shape (1, p) for two classes, (K, p) for more
        Zero for the columns that were not chosen. Two classes: for the second against the first.
    intercept_ : array of shape (1,) or (K,)
    {FobaEstimator.Attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from forback import FobaClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = FobaClassifier(k=3, method="foba-obj").fit(X, y)
    >>> [X.columns[j] for j in model.selected_]
    ['worst texture', 'worst area', 'worst concave points']
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

    alpha: float | None = 1e-4

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose features and fit the model.

        Parameters
        ----------
        X : array, SciPy sparse matrix or data frame of shape (n, p)
        y : sequence of n class labels
        sample_weight : array of length n, optional
            Weights of rows; whole numbers count repeated rows.

        Returns
        -------
        self
        """
        found = self._fit(X, y, sample_weight, LogisticLoss())
        self.classes_, self.coef_, self.intercept_ = found
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return the log-odds of the second of two classes, or a score for each of more.

        Parameters
        ----------
        X : array, SciPy sparse matrix or data frame of shape (n, p)

        Returns
        -------
        array of shape (n,) or (n, K)
        """
        return self._linear_predictor(X)

    def predict_proba(self, X: Any) -> Floats:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array, SciPy sparse matrix or data frame of shape (n, p)

        Returns
        -------
        array of shape (n, K)
        """
        eta = self.decision_function(X)
        if eta.ndim == 2:
            return np.asarray(special.softmax(eta, axis=1))
        return np.column_stack([special.expit(-eta), special.expit(eta)])

    def predict_log_proba(self, X: Any) -> Floats:
        """Predict the log-probability of each class, exact where the probability rounds to 0.

        Parameters
        ----------
        X : array, SciPy sparse matrix or data frame of shape (n, p)

        Returns
        -------
        array of shape (n, K)
        """
        eta = self.decision_function(X)
        if eta.ndim == 2:
            return np.asarray(special.log_softmax(eta, axis=1))
        return np.column_stack([special.log_expit(-eta), special.log_expit(eta)])

    def predict(self, X: Any) -> Any:
        """Predict the most probable class of each row of X.

        Parameters
        ----------
        X : array, SciPy sparse matrix or data frame of shape (n, p)

        Returns
        -------
        array of n labels
        """
        eta = self.decision_function(X)
        return self.classes_[eta.argmax(axis=1) if eta.ndim == 2 else (eta > 0).astype(np.intp)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict`.

        Parameters
        ----------
        X : array, SciPy sparse matrix or data frame of shape (n, p)
        y : sequence of n class labels
        sample_weight : array of length n, optional

        Returns
        -------
        float
        """
        refuse_mask(sample_weight, "sample_weight")
        return float(super().score(X, check_container(y, "y"), sample_weight))


def _squarable(y: Any, prediction: Floats) -> tuple[Any, Floats]:
    """Return both times a power of two with which neither is too small, or too large, to square."""
    array = np.asarray(y)
    if array.dtype.kind != "f" or not array.size:
        return y, prediction
    power = exponent(float(max(np.abs(array).max(), np.abs(prediction).max(initial=0.0))))
    return (y, prediction) if power == 0 else (np.ldexp(array, power), np.ldexp(prediction, power))
