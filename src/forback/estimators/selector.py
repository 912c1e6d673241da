"""FobaSelector: the columns of a linear model with at most k features, as a step of a Pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from forback.estimators.base import documented
from forback.estimators.linear_base import FobaLinear
from forback.objectives.linear.losses import LOSSES, Loss
from forback.validation.containers import check_container
from forback.validation.losses import check_loss


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class FobaSelector(SelectorMixin, FobaLinear):  # type: ignore[misc]
    """Keeps the k columns that a forward-backward greedy model uses: a step of a Pipeline.

    Parameters
    ----------
    {FobaEstimator.Parameters}
    {FobaLinear.Parameters}
    loss : {"squared", "logistic", "poisson", "gamma", "huber", "squared_hinge", "auto"} or Loss
        Loss whose fit ranks the columns; "squared_hinge" takes any two labels, "logistic" any two
        or more. "auto": "logistic" where y is text, bool or categorical, "squared" where it holds
        fractions; whole numbers may be either, so they are refused. Your own:
        ``PointwiseLoss(value, d1, d2)``.

    Attributes
    ----------
    {FobaEstimator.Attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from forback import FobaSelector
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> selector = FobaSelector(k=3, loss="logistic", method="foba-obj", alpha=1e-4).fit(X, y)
    >>> selector.get_feature_names_out().tolist()
    ['worst texture', 'worst area', 'worst concave points']
    >>> selector.transform(X).shape
    (569, 3)
    """

    loss: str | Loss = "squared"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose features.

        Parameters
        ----------
        X : array, SciPy sparse matrix or data frame of shape (n, p)
        y : array of length n
            Numbers in the domain of the loss, or class labels.
        sample_weight : array of length n, optional
            Weights of rows; whole numbers count repeated rows.

        Returns
        -------
        self
        """
        named = _loss_for(y) if isinstance(self.loss, str) and self.loss == "auto" else self.loss
        self._fit(X, y, sample_weight, check_loss(named, LOSSES))
        return self

    def transform(self, X: Any) -> Any:
        """Return X with the chosen columns only.

        Parameters
        ----------
        X : array, SciPy sparse matrix or data frame of shape (n, p)

        Returns
        -------
        array or SciPy sparse matrix of shape (n, number of columns chosen)
        """
        check_is_fitted(self)
        return super().transform(self._sound(X))

    def inverse_transform(self, X: Any) -> Any:
        """Return the chosen columns in their places, with zeros for all others.

        Parameters
        ----------
        X : array or SciPy sparse matrix of shape (n, number of columns chosen)

        Returns
        -------
        array or SciPy sparse matrix of shape (n, p)
        """
        return super().inverse_transform(check_container(X, "X"))

    def _get_support_mask(self) -> Any:
        check_is_fitted(self)
        return self.support_


def _loss_for(y: Any) -> str:
    """Return the loss that the kind of y asks for."""
    check_container(y, "y")
    values = np.asarray(y)
    if values.dtype.kind in "biufc" and values.dtype != bool:
        if type_of_target(values, input_name="y").startswith("continuous"):
            return "squared"
        raise ValueError(
            'loss="auto" cannot tell whether the whole numbers in y are classes, counts or '
            'amounts; give loss="logistic", "poisson" or "squared"'
        )
    return "logistic"
