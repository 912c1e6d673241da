"""Slopes of a convex function rise: what to say where they do not."""

from __future__ import annotations

import numpy as np

from forback.core.objective import ObjectiveError
from forback.core.types import Floats, Ints

#: So much, relatively, may a slope fall where it should rise before a function is not convex.
BENT = 1e-6


def check_rising(
    coordinates: Ints, steps: Floats, before: Floats, after: Floats, noise: float = 0.0
) -> None:
    """Raise where the slope of a convex function has fallen on the way, by more than `noise`."""
    allowed = BENT * (np.abs(before) + np.abs(after)) + noise
    fallen = (after - before) * np.sign(steps) < -allowed
    if fallen.any():
        j = int(np.flatnonzero(fallen)[0])
        raise not_convex(f"along coordinate {coordinates[j]}", before[j], after[j])


class NotConvex(ObjectiveError):
    """A slope, or a value, that no convex function has there."""


def not_convex(where: str, before: float, after: float) -> NotConvex:
    """What to say about a slope that falls."""
    return NotConvex(
        "the function is not convex, or its gradient is wrong: "
        f"{where} its slope falls, from {before:.6g} to {after:.6g}"
    )
