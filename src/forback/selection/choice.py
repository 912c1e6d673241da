"""Which size: information criteria along a path."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from forback.protocols import Point
from forback.selection.path import Path

#: What a degree of freedom costs, by criterion, for n rows.
PENALTIES: dict[str, Callable[[float], float]] = {"aic": lambda n: 2.0, "bic": math.log}


def criterion_value(objective: Any, point: Point, criterion: str) -> float:
    """-2 log-likelihood plus the penalty; the lower, the better."""
    loglik, n, df = objective.information(point)
    return float(-2.0 * loglik + PENALTIES[criterion](n) * df)


def choose_point(objective: Any, path: Path, criterion: str) -> Point:
    """The point whose size is best by the criterion; of equals, the smallest."""
    points = [path.best(size) for size in path.sizes]
    return min(points, key=lambda point: criterion_value(objective, point, criterion))
