"""Slopes of a convex function rise: what to say where they do not."""

from __future__ import annotations

import numpy as np

from forback.core.objective import ObjectiveError
from forback.core.types import Floats, Ints

#: A slope may fall by this fraction of itself where it should rise: that is rounding.
SLOPE_FALL_RTOL = 1e-6


class NotConvex(ObjectiveError):
    """A slope, or a value, that no convex function has at that place."""


def not_convex(where: str, before: float, after: float) -> NotConvex:
    """Return the error about a slope that falls."""
    return NotConvex(
        "the function is not convex, or its gradient is wrong: "
        f"{where} its slope falls, from {before:.6g} to {after:.6g}"
    )


def check_rising(
    coordinates: Ints, steps: Floats, before: Floats, after: Floats, noise: float = 0.0
) -> None:
    """Raise if the slope along some coordinate falls from 0 to its step, by more than `noise`."""
    allowed = SLOPE_FALL_RTOL * (np.abs(before) + np.abs(after)) + noise
    fallen = (after - before) * np.sign(steps) < -allowed
    if fallen.any():
        j = int(np.flatnonzero(fallen)[0])
        raise not_convex(f"along coordinate {coordinates[j]}", before[j], after[j])
