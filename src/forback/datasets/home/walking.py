"""Where the simulated person is, tick by tick, and when they move."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forback.core.types import Floats, Ints
from forback.datasets.home.floorplan import ENTRANCE, ROOMS, Spot, room_of, route
from forback.datasets.home.routine import ACTIVITIES, AWAY, OTHERS, SLEEPING, Activity, Episode

#: Walking speed, in metres per second.
SPEED = 0.9
#: Length of an errand, the walk there included. The activity "Others" consists of errands only.
ERRAND_SECONDS = 40.0
#: Mean time between two errands.
SECONDS_BETWEEN_ERRANDS = 300.0


@dataclass(frozen=True)
class Motion:
    """When and where the person moved.

    Attributes
    ----------
    tick : ndarray of shape (n,)
        The moments.
    spot : ndarray of shape (n, 2)
        The positions, in metres.
    strength : ndarray of shape (n,)
        Probability that a sensor right above notices.
    """

    tick: Ints
    spot: Floats
    strength: Floats


def motions(episodes: list[Episode], tick: float, rng: np.random.Generator) -> Iterator[Motion]:
    """Draw the motion during the episodes, a stay at a time; `tick` is its length in seconds."""
    spot = ACTIVITIES[SLEEPING].place
    for episode in episodes:
        for stay in _stays(episode, tick, rng):
            walk = _walk(spot, stay.goal, tick)[: stay.stop - stay.start]
            start = stay.start + len(walk)
            yield Motion(np.arange(stay.start, start), walk, np.ones(len(walk)))
            spot = (float(walk[-1, 0]), float(walk[-1, 1])) if len(walk) else spot
            if start < stay.stop and stay.habits is not ACTIVITIES[AWAY]:
                yield _fidget(stay, start, tick, rng)
        if episode.activity == AWAY:
            spot = ENTRANCE


@dataclass(frozen=True)
class _Stay:
    """A stay at `goal` from tick `start` to `stop`, the walk there included, moving as `habits`."""

    goal: Spot
    start: int
    stop: int
    habits: Activity


def _stays(episode: Episode, tick: float, rng: np.random.Generator) -> Iterator[_Stay]:
    """Draw the stays of an episode: at its place, interrupted by errands elsewhere."""
    activity = ACTIVITIES[episode.activity]
    start = math.ceil(episode.start / tick)
    last = math.ceil(episode.end / tick)
    settled = episode.activity in (SLEEPING, AWAY)
    while start < last:
        if episode.activity != OTHERS:
            seconds = math.inf if settled else rng.exponential(SECONDS_BETWEEN_ERRANDS)
            stop = min(last, start + 1 + int(min(seconds / tick, last - start)))
            yield _Stay(activity.place, start, stop, activity)
            start = stop
        if start < last:
            stop = min(last, start + math.ceil(ERRAND_SECONDS / tick))
            yield _Stay(_somewhere(rng), start, stop, ACTIVITIES[OTHERS])
            start = stop


def _somewhere(rng: np.random.Generator) -> Spot:
    """Draw a room and a spot in it, at a distance from the walls."""
    x0, y0, x1, y1 = list(ROOMS.values())[rng.integers(len(ROOMS))]
    return float(rng.uniform(x0 + 0.3, x1 - 0.3)), float(rng.uniform(y0 + 0.3, y1 - 0.3))


def _walk(start: Spot, goal: Spot, tick: float) -> Floats:
    """Return the position at each tick of a walk, the last one at the goal; empty if start is."""
    corners = np.array(route(start, goal))
    reached = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(corners, axis=0).T))])
    n_ticks = math.ceil(reached[-1] / (SPEED * tick))
    walked = np.minimum(np.arange(1, n_ticks + 1) * SPEED * tick, reached[-1])
    return np.stack([np.interp(walked, reached, corners[:, axis]) for axis in (0, 1)], axis=1)


def _fidget(stay: _Stay, start: int, tick: float, rng: np.random.Generator) -> Motion:
    """Draw gestures on the spot and shifts to spots nearby, within the room."""
    habits = stay.habits
    n_ticks = stay.stop - start
    shifts = rng.random(n_ticks) < -math.expm1(-habits.shifts * tick)
    gestures = rng.random(n_ticks) < -math.expm1(-habits.gestures * tick)
    shifts[0] = True  # on arrival
    offsets = rng.normal(0.0, habits.spread, (int(shifts.sum()), 2))
    x0, y0, x1, y1 = list(ROOMS.values())[room_of(np.array([stay.goal]))[0]]
    spots = np.clip(np.array(stay.goal) + offsets, (x0 + 0.1, y0 + 0.1), (x1 - 0.1, y1 - 0.1))
    current = np.cumsum(shifts) - 1
    moving = np.flatnonzero(shifts | gestures)
    strength = np.where(shifts[moving], 0.9, rng.uniform(0.3, 1.0, len(moving)))
    return Motion(start + moving, spots[current[moving]], strength)
