"""Least squares: a GLM of its own name."""

from __future__ import annotations

from typing import Any

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
        precision: str = "double",
    ) -> None:
        super().__init__(
            "squared",
            X,
            y,
            ridge=ridge,
            fit_intercept=fit_intercept,
            offset=offset,
            sample_weight=sample_weight,
            tol=tol,
            max_iter=max_iter,
            precision=precision,
        )
