"""Convex functions of one variable: one at a time by secants, many at once by Newton's method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from forback.numerics import TINY
from forback.protocols import Floats, Ints
from forback.quasi_newton import TELLING

#: A decrease is known when what is left to gain is below this share of it.
SETTLED = 1e-11

#: Newton's method ends when its step is this small against the way it came: the decrease is then
#: exact to about the square of it.
PRECISION = 1e-7
MAX_ITER = 200

#: A function of one variable, from 0: its change and its slope there.
Line = Callable[[float], tuple[float, float]]


@dataclass(slots=True)
class End:
    """A place on a line: how far along, the change of the function, its slope."""

    step: float
    value: float
    slope: float


def largest_decrease(
    line: Line, slope: float, step: float, least: float, negligible: float, enough: float = 0.0
) -> tuple[float, bool]:
    """How far a convex function falls below its value at 0, from its slope there.

    `least` is a curvature that it never falls below; where that is too little to tell what is left
    to gain, the curvature between two places has to do.

    Begins at `step`, then by secants (Anderson and Bjorck's) once the minimum lies between two
    ends. Where their tangents rule out that the decrease is `enough`, that bound will do: whether
    the answer is exact comes with it.
    """
    if slope == 0.0:
        return 0.0, True
    low, high, best = End(0.0, 0.0, slope), None, 0.0
    weight_low, weight_high = slope, 0.0
    for _ in range(100):
        if step == low.step:  # the rest is rounding
            break
        here = End(step, *line(step))
        best = min(best, here.value)
        bend = (here.slope - low.slope) / (here.step - low.step)
        curvature = least if least >= TELLING else bend
        left = 0.5 * here.slope * here.slope / curvature if curvature > 0.0 else np.inf
        if left <= max(-SETTLED * best, 1e-3 * negligible):
            return -min(best, here.value - left), True
        if here.slope * slope > 0.0:  # still falling; an end that stays twice counts for less
            weight_high *= _fade(here.slope, low.slope)
            low, weight_low = here, here.slope
        else:
            weight_low *= _fade(here.slope, high.slope) if high else 1.0
            high, weight_high = here, here.slope
        if high is None:
            step -= np.sign(here.slope) * min(4.0 * abs(step), abs(here.slope) / max(bend, TINY))
            continue
        bound = _tangents_meet(low, high)
        if -bound < enough:
            return -bound, False
        if weight_low == weight_high:  # of rounding only
            break
        share = weight_low / (weight_low - weight_high)
        step = low.step + min(max(share, 0.01), 0.99) * (high.step - low.step)
    return -best, True


def _fade(slope: float, before: float) -> float:
    """By how much the slope of the other end shrinks, in Anderson and Bjorck's method."""
    kept = 1.0 - slope / before
    return kept if kept > 0.0 else 0.5


def _tangents_meet(low: End, high: End) -> float:
    """The value where the tangents at both ends meet: a convex function lies above it."""
    if high.slope == low.slope:
        return min(low.value, high.value)
    rise = high.value - low.value - high.slope * (high.step - low.step)
    return low.value + low.slope * rise / (low.slope - high.slope)


class Lines(Protocol):
    """Functions of one variable each, all evaluated at once."""

    def slope_and_curvature(self, step: Floats) -> tuple[Floats, Floats]:
        """The first and second derivative of each at its step."""

    def only(self, kept: Ints) -> Self:
        """The same for some of them."""


def minimisers(lines: Lines, longest: Floats, negligible: float) -> Floats:
    """Where each is least, by Newton's method kept inside a bracket of the minimum.

    The first step goes no further than `longest`.
    """
    count = len(longest)
    active = np.arange(count)
    answer, step = np.zeros(count), np.zeros(count)
    low, high = np.full(count, -np.inf), np.full(count, np.inf)
    # Straight stretches say nothing about how far it is: a step cut short, or one that hardly
    # changed the slope, is followed by a longer one.
    stretch, before = np.ones(count), np.zeros(count)
    for _ in range(MAX_ITER):
        slope, curvature = lines.slope_and_curvature(step)
        low, high = np.where(slope < 0, step, low), np.where(slope > 0, step, high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = np.where(slope == 0, 0.0, -slope / curvature)
            expected = np.where(slope == 0, 0.0, np.abs(0.5 * slope * newton))
        straight = (slope != 0) & (np.sign(slope) == np.sign(before))
        straight &= np.abs(slope) > 0.5 * np.abs(before)
        stretch, before = np.where(straight, 4.0 * stretch, 1.0), slope
        with np.errstate(over="ignore"):
            following = step + np.clip(stretch * newton, -longest, longest)
            longest = np.where(np.abs(newton) > longest, 4.0 * longest, longest)
        # Outside the bracket, or overflown: the middle of the bracket, which is then finite.
        outside = ~((low < following) & (following < high))
        with np.errstate(invalid="ignore"):
            following = np.where(outside, 0.5 * (low + high), following)
        done = (np.abs(newton) <= PRECISION * np.abs(step)) | (expected <= 1e-4 * negligible)
        done |= ~np.isfinite(following) | (following == step)
        answer[active] = step
        if done.all():
            break
        keep = np.flatnonzero(~done)
        if len(keep) < len(active):
            lines, active = lines.only(keep), active[keep]
            low, high, longest = low[keep], high[keep], longest[keep]
            stretch, before = stretch[keep], before[keep]
        step = following[keep]
    return answer
