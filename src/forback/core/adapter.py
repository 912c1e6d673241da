"""An objective that somebody wrote without the base class, seen as one: the only probing here."""

from __future__ import annotations

from typing import Any

import numpy as np

from forback.core.blocks import Blocks
from forback.core.features import Features
from forback.core.objective import (
    HessianBounds,
    Likelihood,
    Objective,
    PermutableResponse,
    Scores,
)
from forback.core.point import Point
from forback.core.types import Floats, Ints

#: What an objective cannot do without, and what it is for.
REQUIRED = {
    "dim": "the number of coordinates",
    "n_candidates": "how many of them may be chosen",
    "minimise": "minimise(support, start) -> Point",
    "value_and_gradient": "value_and_gradient(beta) -> (Q, gradient)",
}


def as_objective(given: Any) -> Objective:
    """Return an objective as it is, or anything with the members of one behind the base class.

    Parameters
    ----------
    given : Objective or any object with the members in `REQUIRED`

    Returns
    -------
    Objective

    Raises
    ------
    TypeError
        Where a member is missing, which the message names.
    """
    if isinstance(given, Objective):
        return given
    wanted = "objective must be an Objective, such as LeastSquares(X, y)"
    if isinstance(given, type):
        raise TypeError(f"{wanted}, got the class {given.__name__}; make one of it")
    missing = [f"{name}, {what}" for name, what in REQUIRED.items() if not hasattr(given, name)]
    if missing:
        raise TypeError(f"{wanted}, got {type(given).__name__}, which lacks {'; '.join(missing)}")
    return _Adapted(given)


class _Adapted(Objective):
    """Another object's members where it has them, and the defaults where not."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.dim = int(given.dim)
        self.n_candidates = int(given.n_candidates)
        self.infimum = float(getattr(given, "infimum", -np.inf))

    @property
    def name(self) -> str:
        """What messages call it."""
        return type(self.given).__name__

    @property
    def features(self) -> Features:
        """What the candidates are called, by `feature_names`, `columns` and `candidate_names`."""
        own = getattr(self.given, "features", None)
        if isinstance(own, Features):
            return own
        names = getattr(self.given, "feature_names", None)
        candidate_names = getattr(self.given, "candidate_names", None)
        return Features(
            self.n_candidates,
            None if names is None else tuple(names),
            getattr(self.given, "columns", None),
            None if candidate_names is None else tuple(map(str, candidate_names)),
            getattr(self.given, "default_by", "feature") == "group",
        )

    def minimise(self, support: Ints, start: Point | None = None) -> Point:
        """Return what the object returns."""
        point: Point = self.given.minimise(support, start)
        return point

    def value_and_gradient(self, beta: Floats) -> tuple[float, Floats]:
        """Return what the object returns."""
        value, gradient = self.given.value_and_gradient(beta)
        return value, gradient

    def gradient(self, point: Point) -> Floats:
        """Return what the object returns, or a slow twin."""
        own = getattr(self.given, "gradient", None)
        return super().gradient(point) if own is None else np.asarray(own(point))

    def decrease_if_added(self, point: Point, blocks: Blocks, *, only_best: bool = False) -> Scores:
        """Return what the object returns, or a slow twin."""
        return self._scores("decrease_if_added", point, blocks)

    def increase_if_removed(
        self, point: Point, blocks: Blocks, *, below: float | None = None
    ) -> Scores:
        """Return what the object returns, or a slow twin."""
        return self._scores("increase_if_removed", point, blocks)

    def increase_after_refit(
        self, point: Point, blocks: Blocks, *, below: float | None = None
    ) -> Scores:
        """Return what the object returns, or a slow twin."""
        return self._scores("increase_after_refit", point, blocks)

    def _scores(self, name: str, point: Point, blocks: Blocks) -> Scores:
        """What the object's method of a name returns, scores or an array; else the slow twin."""
        own = getattr(self.given, name, None)
        found = getattr(super(), name)(point, blocks) if own is None else own(point, blocks)
        return found if isinstance(found, Scores) else Scores.exact(np.asarray(found, np.float64))

    def resolution(self, point: Point) -> float:
        """Return what the object returns, or 1e-12 max(1, abs(Q))."""
        own = getattr(self.given, "resolution", None)
        return super().resolution(point) if own is None else float(own(point))

    def likelihood(self) -> Likelihood | None:
        """Return the likelihood behind `information(point)`, which returns (loglik, n, df)."""
        own = getattr(self.given, "information", None)
        if own is None:
            return None
        nowhere = Point(
            np.arange(self.n_candidates, self.dim), np.zeros(self.dim - self.n_candidates), 1.0
        )

        def evaluate(point: Point) -> tuple[float, int]:
            loglik, _, df = own(point)
            return loglik, df

        return Likelihood(float(own(nowhere)[1]), evaluate)

    def hessian_bounds(self) -> HessianBounds | None:
        """Return the two matrices of `hessian_range()`."""
        own = getattr(self.given, "hessian_range", None)
        return None if own is None else HessianBounds(*own())

    def response(self) -> PermutableResponse | None:
        """Return the response behind `permuted(order, point)` and `n_rows`."""
        own = getattr(self.given, "permuted", None)
        if own is None:
            return None
        return PermutableResponse(
            int(self.given.n_rows), lambda order, point: as_objective(own(order, point))
        )
