"""Least squares: a GLM whose removal costs after refitting have a closed form."""

from __future__ import annotations

from typing import Any

import numpy as np

from forback.numerics import projection_costs
from forback.objectives.linear import GLM
from forback.protocols import Blocks, Floats, Point


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
    ) -> None:
        super().__init__(
            "squared", X, y, ridge=ridge, fit_intercept=fit_intercept, offset=offset,
            sample_weight=sample_weight, tol=tol, max_iter=max_iter,
        )  # fmt: skip

    def increase_after_refit(self, point: Point, blocks: Blocks) -> Floats:
        """Removal costs after refitting, in closed form."""
        problem = self._restricted(point.support, self.offset)
        A, _ = problem.square_root(problem.at(point.coef))
        places = [np.searchsorted(point.support, block) for block in blocks]
        return projection_costs(A, point.coef, places)
