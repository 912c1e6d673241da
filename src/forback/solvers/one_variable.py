"""Convex functions of one variable: one at a time by secants, many at once by Newton's method."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from forback.core.tolerances import (
    DECREASE_RTOL,
    LINE_MAX_ITER,
    LINE_STEP_RTOL,
    NEGLIGIBLE_FRACTION,
    SMALLEST_DIVISOR,
)
from forback.core.types import Floats, Ints
from forback.solvers.bfgs import MIN_BOUNDING_CURVATURE
from forback.solvers.convexity import SLOPE_FALL_RTOL, NotConvex

#: Secants, at most; a few dozen are more than enough.
MAX_SECANTS = 100

#: After so many secants that fail to halve a bracket of the minimum, its middle is tried.
MAX_SLOW_SECANTS = 4

#: A secant goes no closer to an end of the bracket than this fraction of its width.
BRACKET_MARGIN = 0.01

#: The fraction of a gap that a golden section leaves on one side.
GOLDEN = 0.381966

#: A bracket of the minimum is not narrowed further than this, relative to the step.
BRACKET_WIDTH_RTOL = 1e-8

#: A Newton step that gains less than this fraction of what is negligible ends a search.
NEWTON_GAIN_FRACTION = 1e-4

#: A function of one variable, from 0: its change and its slope there.
Line = Callable[[float], tuple[float, float]]

#: The changes of some of many functions at one step each.
Changes = Callable[[Ints, Floats], Floats]


@dataclass(slots=True)
class End:
    """A place on a line: how far along, the change of the function, its slope.

    In Anderson and Bjorck's method the slope of an end that stays twice counts for less.
    """

    step: float
    value: float
    slope: float
    weight: float


def largest_decrease(
    line: Line,
    slope: float,
    step: float,
    least: float,
    negligible: float,
    best_so_far: float = 0.0,
    noise: float = 0.0,
) -> tuple[float, bool]:
    """Return how far a convex function falls below its value at 0, and whether that is exact.

    Parameters
    ----------
    line : callable
        From a step, the change of the function and its slope there.
    slope : float
        The slope at 0.
    step : float
        Where to begin. Once the minimum lies between two ends, secants (Anderson and Bjorck's)
        follow.
    least : float
        A curvature that the function never falls below. Where it is too small to tell what is left
        to gain, the curvature between two places has to do.
    negligible : float
        A decrease that does not count.
    best_so_far : float
        Where the tangents at the ends rule out a decrease of so much, the bound that they give is
        returned: it is not exact.
    noise : float
        Slopes may be wrong by so much.
    """
    if slope == 0.0:
        return 0.0, True
    slope = float(slope)  # infinite numbers are no reason to warn
    step = float(step)
    bracket = _Bracket(slope)
    best = 0.0
    for _ in range(MAX_SECANTS):
        low = bracket.low
        if step == low.step:  # the rest is rounding
            break
        value, ahead = map(float, line(step))
        here = End(step, value, ahead, ahead)
        best = min(best, here.value)
        curvature = (here.slope - low.slope) / (here.step - low.step)
        sure = least if least >= MIN_BOUNDING_CURVATURE else curvature
        left = 0.5 * here.slope * here.slope / sure if sure > 0.0 else np.inf
        if left <= max(-DECREASE_RTOL * best, NEGLIGIBLE_FRACTION * negligible):
            return -min(best, here.value - left), True
        bracket.add(here)
        low, high = bracket.low, bracket.high
        if high is None:
            far = min(4.0 * abs(step), abs(here.slope) / max(curvature, SMALLEST_DIVISOR))
            step -= math.copysign(far, here.slope)
            continue
        bound = _tangents_meet(low, high)
        allowed = negligible + noise * max(abs(low.step), abs(high.step))
        if bound > allowed + SLOPE_FALL_RTOL * (abs(low.value) + abs(high.value)):
            raise NotConvex(
                "the function is not convex, or its gradient is wrong: along a coordinate, "
                f"tangents to it meet {bound:.3g} above the place where it starts to fall"
            )
        if -bound < best_so_far:
            return -bound, False
        if low.weight == high.weight:  # of rounding only
            break
        step = bracket.following()
    return -best, True


class _Bracket:
    """The minimum of a convex function lies between two ends, as soon as there is a second one."""

    def __init__(self, slope: float) -> None:
        self.low = End(0.0, 0.0, slope, slope)
        self.high: End | None = None
        self._narrowest = math.inf
        self._slow = 0

    def add(self, here: End) -> None:
        """Let a new place take the end on its side of the minimum."""
        still_falling = here.slope * self.low.slope > 0.0
        replaced, kept = (self.low, self.high) if still_falling else (self.high, self.low)
        if replaced is not None and kept is not None:
            fade = 1.0 - here.slope / replaced.slope
            kept.weight *= fade if fade > 0.0 else 0.5
        if still_falling:
            self.low = here
        else:
            self.high = here

    def following(self) -> float:
        """The next step: by a secant, or the middle.

        Secants are of no use where the slope hardly changes but in one place, nor where it is
        infinite, outside the domain.
        """
        assert self.high is not None
        width = abs(self.high.step - self.low.step)
        if width <= 0.5 * self._narrowest:
            self._narrowest = width
            self._slow = 0
        else:
            self._slow += 1
        fraction = 0.5
        if self._slow < MAX_SLOW_SECANTS and math.isfinite(self.high.slope):
            fraction = self.low.weight / (self.low.weight - self.high.weight)
        fraction = min(max(fraction, BRACKET_MARGIN), 1.0 - BRACKET_MARGIN)
        return self.low.step + fraction * (self.high.step - self.low.step)


def _tangents_meet(low: End, high: End) -> float:
    """The value where the tangents at both ends meet: a convex function lies above it."""
    if high.slope == low.slope:
        return min(low.value, high.value)
    rise = high.value - low.value - high.slope * (high.step - low.step)
    return low.value + low.slope * rise / (low.slope - high.slope)


class Lines(Protocol):
    """Functions of one variable each, all evaluated at once."""

    def slope_and_curvature(self, step: Floats) -> tuple[Floats, Floats]:
        """Return the first and second derivative of each at its step."""

    def only(self, kept: Ints) -> Self:
        """Return some of them."""


class _Search(NamedTuple):
    """Newton's method along many lines: one entry per line that is not done."""

    step: Floats
    low: Floats  #: the bracket of the minimum
    high: Floats
    longest: Floats  #: how far the next step may go
    stretch: Floats  #: by how much a step is lengthened
    slope_before: Floats

    def only(self, kept: Ints) -> _Search:
        return _Search(*(part[kept] for part in self))


def minimisers(lines: Lines, longest: Floats, negligible: float) -> Floats:
    """Return where each line is least, by Newton's method kept inside a bracket of the minimum.

    The first step goes no further than `longest`.
    """
    count = len(longest)
    active = np.arange(count)
    answer = np.zeros(count)
    zero = np.zeros(count)
    search = _Search(zero, zero - np.inf, zero + np.inf, longest, zero + 1.0, zero)
    for _ in range(LINE_MAX_ITER):
        slope, curvature = lines.slope_and_curvature(search.step)
        answer[active] = search.step
        following, done = _newton_steps(search, slope, curvature, negligible)
        if done.all():
            break
        keep = np.flatnonzero(~done)
        if len(keep) < len(active):
            lines, active, following = lines.only(keep), active[keep], following.only(keep)
        search = following
    return answer


def _newton_steps(
    search: _Search, slope: Floats, curvature: Floats, negligible: float
) -> tuple[_Search, NDArray[np.bool_]]:
    """The search after another Newton step along each line, and which lines are done."""
    step, longest = search.step, search.longest
    low = np.where(slope < 0, step, search.low)
    high = np.where(slope > 0, step, search.high)
    before = search.slope_before
    # Straight stretches say nothing about how far it is: a step cut short, or one that hardly
    # changed the slope, is followed by a longer one.
    straight = (slope != 0) & (np.sign(slope) == np.sign(before))
    straight &= np.abs(slope) > 0.5 * np.abs(before)
    stretch = np.where(straight, 4.0 * search.stretch, 1.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        newton = np.where(slope == 0, 0.0, -slope / curvature)
        gain = np.where(slope == 0, 0.0, np.abs(0.5 * slope * newton))
        # Where it is straight and nothing says how far to go, any step will do.
        lost = np.isinf(newton) & np.isinf(longest)
        most = np.where(lost, stretch * np.maximum(1.0, np.abs(step)), longest)
        following = step + np.clip(stretch * newton, -most, most)
        longest = np.where(np.abs(newton) > longest, 4.0 * longest, longest)
        # Outside the bracket, or overflown: the middle of the bracket, which is then finite.
        inside = (low < following) & (following < high)
        following = np.where(inside, following, 0.5 * (low + high))
    done = np.abs(newton) <= LINE_STEP_RTOL * np.abs(step)
    done |= gain <= NEWTON_GAIN_FRACTION * negligible
    done |= ~np.isfinite(following) | (following == step)
    return _Search(following, low, high, longest, stretch, slope), done


class _Enclosure(NamedTuple):
    """Around the minimum of each function: (step, change) left of, at, and right of a low place."""

    left: Floats
    middle: Floats
    right: Floats

    def only(self, kept: Ints) -> _Enclosure:
        return _Enclosure(*(part[:, kept] for part in self))

    def gaps(self) -> tuple[Floats, Floats, Floats, Floats]:
        """How far both ends are from the middle, with signs, and how much higher they are."""
        a, rise_a = self.left - self.middle
        b, rise_b = self.right - self.middle
        return a, b, rise_a, rise_b

    def left_to_gain(self) -> Floats:
        """How far below the middle a convex function can be between the ends, at most.

        Beyond the middle it lies above the line through the middle and the end on the other side.
        """
        a, b, rise_a, rise_b = self.gaps()
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            most = np.maximum(-a * rise_b / b, -b * rise_a / a)
        return np.where(np.isnan(most), np.inf, most)

    def golden(self) -> Floats:
        """A step into the longer of the two gaps."""
        a, b, _, _ = self.gaps()
        return np.asarray(self.middle[0] + GOLDEN * np.where(np.abs(a) > np.abs(b), a, b))

    def towards_vertex(self, goal: Floats) -> Floats:
        """Where the parabola through three places is least; a golden section if there is none.

        Where that is next to the middle, a step into the longer gap, so short that what is gained
        by less is below the goal: so that both ends come close.
        """
        a, b, rise_a, rise_b = self.gaps()
        longer = np.where(np.abs(a) > np.abs(b), a, b)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            curvature = (rise_a / a - rise_b / b) / (a - b)
            move = -0.5 * (rise_a / a - curvature * a) / curvature
            near = np.minimum(np.sqrt(goal / curvature), 0.5 * np.abs(longer))
            move = np.where(np.abs(move) < near, np.copysign(near, longer), move)
        sound = np.isfinite(move) & (curvature > 0.0)
        return np.where(sound, self.middle[0] + move, self.golden())

    def tightened(self, trial: Floats) -> _Enclosure:
        """The three places around the minimum now that a fourth is known."""
        left, middle, right = self
        beyond = (trial[0] - middle[0]) * (right[0] - left[0]) > 0.0
        lower = trial[1] < middle[1]
        new_left = np.where(beyond & lower, middle, np.where(~beyond & ~lower, trial, left))
        new_right = np.where(beyond & ~lower, trial, np.where(~beyond & lower, middle, right))
        return _Enclosure(new_left, np.where(lower, trial, middle), new_right)


def bracketed(change: Changes, steps: Floats, negligible: float) -> Floats:
    """Return how far each of many functions falls below its value at 0, from values alone.

    ``change(some, steps)`` gives the changes of some of them; `steps` are guesses, downhill, at
    where they are least, and zero where they are level. A minimum is first enclosed by three
    steps, then by parabolas through them, with a golden section where these do not help.
    """
    active = np.flatnonzero(steps != 0.0)
    decrease = np.zeros(len(steps))
    around = _enclosed(change, steps, active)
    for iteration in range(LINE_MAX_ITER):
        step, value = around.middle
        decrease[active] = np.maximum(-value, 0.0)
        goal = np.maximum(DECREASE_RTOL * decrease[active], NEGLIGIBLE_FRACTION * negligible)
        width = np.abs(around.right[0] - around.left[0])
        done = around.left_to_gain() <= goal
        done |= (value >= 0.0) | (width <= BRACKET_WIDTH_RTOL * np.abs(step))
        keep = np.flatnonzero(~done)
        if len(keep) == 0:
            break
        active, around = active[keep], around.only(keep)
        step = around.towards_vertex(goal[keep]) if iteration % 3 else around.golden()
        around = around.tightened(np.stack([step, change(active, step)]))
    return decrease


def _enclosed(change: Changes, steps: Floats, active: Ints) -> _Enclosure:
    """Enclose the minimum of each of the active: outward while it falls, back while it rises."""
    step = steps[active]
    middle = np.stack([step, change(active, step)])
    falls = middle[1] < 0.0
    left, right = np.zeros_like(middle), middle.copy()
    moving = np.arange(len(active))
    for _ in range(LINE_MAX_ITER):
        if len(moving) == 0:
            break
        out = falls[moving]
        step = middle[0, moving] * np.where(out, 2.0, 0.25)
        trial = np.stack([step, change(active[moving], step)])
        here = middle[:, moving]
        lower = trial[1] < here[1]
        # Out: the old middle is now left. Back: the old middle is now right.
        left[:, moving] = np.where(out & lower, here, left[:, moving])
        right[:, moving] = np.where(out, trial, np.where(lower, here, right[:, moving]))
        here = np.where(~out | lower, trial, here)
        middle[:, moving] = here
        moving = moving[np.where(out, lower, (here[1] >= 0.0) & (step != 0.0))]
    return _Enclosure(left, middle, right)
