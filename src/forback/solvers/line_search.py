"""Convex functions of one variable: one at a time by secants, many at once by Newton's method."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from forback.core.types import Floats, Ints
from forback.solvers.bfgs import TELLING
from forback.solvers.convexity import BENT, NotConvex
from forback.solvers.linalg import TINY

#: A decrease is known when what is left to gain is below this share of it.
SETTLED = 1e-11

#: Newton's method ends when its step is this small against the way it came: the decrease is then
#: exact to about the square of it.
PRECISION = 1e-7

MAX_ITER = 200


#: So many secants may fail to halve a bracket of the minimum.
PATIENCE = 4

#: The share of a gap that a golden section leaves on one side.
GOLDEN = 0.381966


#: A function of one variable, from 0: its change and its slope there.
Line = Callable[[float], tuple[float, float]]


@dataclass(slots=True)
class End:
    """A place on a line: how far along, the change of the function, its slope."""

    step: float
    value: float
    slope: float


def largest_decrease(
    line: Line,
    slope: float,
    step: float,
    least: float,
    negligible: float,
    enough: float = 0.0,
    noise: float = 0.0,
) -> tuple[float, bool]:
    """How far a convex function falls below its value at 0, from its slope there.

    `least` is a curvature that it never falls below; where that is too little to tell what is left
    to gain, the curvature between two places has to do.

    Begins at `step`, then by secants (Anderson and Bjorck's) once the minimum lies between two
    ends. Where their tangents rule out that the decrease is `enough`, that bound will do: whether
    the answer is exact comes with it. Slopes may be wrong by `noise`.
    """
    if slope == 0.0:
        return 0.0, True
    slope, step = float(slope), float(step)  # infinite numbers are no reason to warn
    low, high, best = End(0.0, 0.0, slope), None, 0.0
    weight_low, weight_high = slope, 0.0
    widest, slow = math.inf, 0
    for _ in range(100):
        if step == low.step:  # the rest is rounding
            break
        here = End(step, *map(float, line(step)))
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
            far = min(4.0 * abs(step), abs(here.slope) / max(bend, TINY))
            step -= math.copysign(far, here.slope)
            continue
        bound = _tangents_meet(low, high)
        width = abs(high.step - low.step)
        off = noise * max(abs(low.step), abs(high.step))
        if bound > negligible + BENT * (abs(low.value) + abs(high.value)) + off:
            raise NotConvex(
                "the function is not convex, or its gradient is wrong: along a coordinate, "
                f"tangents to it meet {bound:.3g} above the place where it starts to fall"
            )
        if -bound < enough:
            return -bound, False
        if weight_low == weight_high:  # of rounding only
            break
        # Secants are of no use where the slope hardly changes but in one place, nor where it is
        # infinite, outside the domain: then the middle.
        widest, slow = (width, 0) if width <= 0.5 * widest else (widest, slow + 1)
        useful = slow < PATIENCE and math.isfinite(high.slope)
        share = weight_low / (weight_low - weight_high) if useful else 0.5
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
            # Where it is straight and nothing says how far to go, any step will do.
            lost = np.isinf(newton) & np.isinf(longest)
            most = np.where(lost, stretch * np.maximum(1.0, np.abs(step)), longest)
            following = step + np.clip(stretch * newton, -most, most)
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


def bracketed(change: Callable[[Ints, Floats], Floats], steps: Floats, negligible: float) -> Floats:
    """How far each of many functions falls below its value at 0, from values alone.

    ``change(some, steps)`` gives the changes of some of them; `steps` are guesses, downhill, at
    where they are least, and zero where they are level. A minimum is first enclosed by three
    steps, then by parabolas through them, with a golden section where these do not help.
    """
    active = np.flatnonzero(steps != 0.0)
    decrease = np.zeros(len(steps))
    left, middle, right = _enclosed(change, steps, active)
    for iteration in range(MAX_ITER):
        decrease[active] = np.maximum(-middle[1], 0.0)
        goal = np.maximum(SETTLED * decrease[active], 1e-3 * negligible)
        width = np.abs(right[0] - left[0])
        done = _left_to_gain(left, middle, right) <= goal
        done |= (middle[1] >= 0.0) | (width <= 1e-8 * np.abs(middle[0]))
        keep = np.flatnonzero(~done)
        if len(keep) == 0:
            break
        active, goal = active[keep], goal[keep]
        left, middle, right = left[:, keep], middle[:, keep], right[:, keep]
        step = _golden(left, middle, right)
        if iteration % 3:
            step = _towards_vertex(left, middle, right, goal)
        trial = np.stack([step, change(active, step)])
        left, middle, right = _tightened(left, middle, right, trial)
    return decrease


def _left_to_gain(left: Floats, middle: Floats, right: Floats) -> Floats:
    """How far below the middle a convex function can be between the ends, at most.

    Beyond the middle it lies above the line through the middle and the end on the other side.
    """
    a, b = left[0] - middle[0], right[0] - middle[0]
    rise_a, rise_b = left[1] - middle[1], right[1] - middle[1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        most = np.maximum(-a * rise_b / b, -b * rise_a / a)
    return np.where(np.isnan(most), np.inf, most)


def _enclosed(
    change: Callable[[Ints, Floats], Floats], steps: Floats, active: Ints
) -> tuple[Floats, Floats, Floats]:
    """(step, change) left, at and right of a lower place, for each of the active."""
    step = steps[active]
    middle = np.stack([step, change(active, step)])
    factor = np.where(middle[1] < 0.0, 2.0, 0.25)  # out while it falls, back while it rises
    left, right = np.zeros_like(middle), middle.copy()
    moving = np.arange(len(active))
    for _ in range(MAX_ITER):
        if len(moving) == 0:
            break
        out = factor[moving] > 1.0
        step = middle[0, moving] * factor[moving]
        trial = np.stack([step, change(active[moving], step)])
        lower = trial[1] < middle[1, moving]
        # Out: the old middle is now left. Back: the old middle is now right.
        left[:, moving] = np.where(out & lower, middle[:, moving], left[:, moving])
        right[:, moving] = np.where(
            out, trial, np.where(lower, middle[:, moving], right[:, moving])
        )
        accept = np.where(out, lower, True)
        middle[:, moving] = np.where(accept, trial, middle[:, moving])
        more = np.where(out, lower, (middle[1, moving] >= 0.0) & (step != 0.0))
        moving = moving[more]
    return left, middle, right


def _towards_vertex(left: Floats, middle: Floats, right: Floats, goal: Floats) -> Floats:
    """Where the parabola through three places is least; a golden section where there is none.

    Where that is next to the middle, a step into the longer gap, so short that what is gained by
    less is below the goal: so that both ends come close.
    """
    a, b = left[0] - middle[0], right[0] - middle[0]
    rise_a, rise_b = left[1] - middle[1], right[1] - middle[1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        bend = (rise_a / a - rise_b / b) / (a - b)
        move = -0.5 * (rise_a / a - bend * a) / bend
        near = np.sqrt(goal / bend)
    longer = np.where(np.abs(a) > np.abs(b), a, b)
    near = np.minimum(near, 0.5 * np.abs(longer))
    with np.errstate(invalid="ignore"):
        move = np.where(np.abs(move) < near, np.copysign(near, longer), move)
    sound = np.isfinite(move) & (bend > 0.0)
    return np.where(sound, middle[0] + move, _golden(left, middle, right))


def _golden(left: Floats, middle: Floats, right: Floats) -> Floats:
    """A step into the longer of the two gaps."""
    a, b = left[0] - middle[0], right[0] - middle[0]
    return np.asarray(middle[0] + GOLDEN * np.where(np.abs(a) > np.abs(b), a, b))


def _tightened(
    left: Floats, middle: Floats, right: Floats, trial: Floats
) -> tuple[Floats, Floats, Floats]:
    """The three places around the minimum now that a fourth is known."""
    beyond = (trial[0] - middle[0]) * (right[0] - left[0]) > 0.0
    lower = trial[1] < middle[1]
    new_left = np.where(beyond & lower, middle, np.where(~beyond & ~lower, trial, left))
    new_right = np.where(beyond & ~lower, trial, np.where(~beyond & lower, middle, right))
    return new_left, np.where(lower, trial, middle), new_right
