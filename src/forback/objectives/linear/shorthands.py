"""`LeastSquares` and `Logistic`: short for a `GLM` with that loss."""

from __future__ import annotations

from typing import Any, Unpack

from forback.objectives.linear.data import Settings
from forback.objectives.linear.objective import GLM


class LeastSquares(GLM):
    """Mean of (y - eta)^2 / 2 plus ridge: see `GLM` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from forback import select
    >>> from forback.objectives import LeastSquares
    >>> X = np.eye(4)
    >>> path = select(LeastSquares(X, [3.0, 0.0, 2.0, 0.0]), k=2)
    >>> path.coef(2).tolist()
    [3.0, 0.0, 2.0, 0.0]
    """

    def __init__(self, X: Any, y: Any, **settings: Unpack[Settings]) -> None:
        super().__init__("squared", X, y, **settings)


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

    def __init__(self, X: Any, y: Any, **settings: Unpack[Settings]) -> None:
        super().__init__("logistic", X, y, **settings)
