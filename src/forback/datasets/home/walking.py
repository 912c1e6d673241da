"""Where the simulated person is, tick by tick, and when they move."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forback.core.types import Floats, Ints
from forback.datasets.home.floorplan import ENTRANCE, ROOMS, Spot, room_of, route
from forback.datasets.home.routine import ACTIVITIES, AWAY, OTHERS, SLEEPING, Activity, Episode

#: Metres per second.
PACE = 0.9
#: How long an errand takes, the way there included, and how long one stays put between two, in
#: seconds. Whoever is busy here and there ("Others") goes from errand to errand.
ERRAND = 40.0
BETWEEN_ERRANDS = 300.0


@dataclass(frozen=True)
class Motion:
    """The moments at which somebody moved."""

    tick: Ints
    spot: Floats  #: (n, 2)
    strength: Floats  #: from 0 to 1, the chance that a sensor with this spot in view notices


def motions(episodes: list[Episode], tick: float, rng: np.random.Generator) -> Iterator[Motion]:
    """Where and when there is motion, a stay at a time; a tick is so many seconds."""
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
    """At one spot from tick to tick, the walk there included."""

    goal: Spot
    start: int
    stop: int
    habits: Activity  #: whose gestures and shifts are made


def _stays(episode: Episode, tick: float, rng: np.random.Generator) -> Iterator[_Stay]:
    """The spots that an episode is spent at: its place, and now and then an errand elsewhere."""
    activity = ACTIVITIES[episode.activity]
    start, last = math.ceil(episode.start / tick), math.ceil(episode.end / tick)
    settled = episode.activity in (SLEEPING, AWAY)
    while start < last:
        if episode.activity != OTHERS:
            seconds = math.inf if settled else rng.exponential(BETWEEN_ERRANDS)
            stop = min(last, start + 1 + int(min(seconds / tick, last - start)))
            yield _Stay(activity.place, start, stop, activity)
            start = stop
        if start < last:
            stop = min(last, start + math.ceil(ERRAND / tick))
            yield _Stay(_somewhere(rng), start, stop, ACTIVITIES[OTHERS])
            start = stop


def _somewhere(rng: np.random.Generator) -> Spot:
    """Anywhere in any room, at a distance from the walls."""
    x0, y0, x1, y1 = list(ROOMS.values())[rng.integers(len(ROOMS))]
    return float(rng.uniform(x0 + 0.3, x1 - 0.3)), float(rng.uniform(y0 + 0.3, y1 - 0.3))


def _walk(start: Spot, goal: Spot, tick: float) -> Floats:
    """The spots at the ticks of a walk, the last one at the goal; none if one is there already."""
    corners = np.array(route(start, goal))
    reached = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(corners, axis=0).T))])
    n_ticks = math.ceil(reached[-1] / (PACE * tick))
    walked = np.minimum(np.arange(1, n_ticks + 1) * PACE * tick, reached[-1])
    return np.stack([np.interp(walked, reached, corners[:, axis]) for axis in (0, 1)], axis=1)


def _fidget(stay: _Stay, start: int, tick: float, rng: np.random.Generator) -> Motion:
    """Gestures on the spot and shifts to another spot nearby, within the room."""
    n_ticks, habits = stay.stop - start, stay.habits
    shifts = rng.random(n_ticks) < -math.expm1(-habits.shifts * tick)
    gestures = rng.random(n_ticks) < -math.expm1(-habits.gestures * tick)
    shifts[0] = True  # one settles
    offsets = rng.normal(0.0, habits.spread, (int(shifts.sum()), 2))
    x0, y0, x1, y1 = list(ROOMS.values())[room_of(np.array([stay.goal]))[0]]
    spots = np.clip(np.array(stay.goal) + offsets, (x0 + 0.1, y0 + 0.1), (x1 - 0.1, y1 - 0.1))
    held = np.cumsum(shifts) - 1
    moving = np.flatnonzero(shifts | gestures)
    strength = np.where(shifts[moving], 0.9, rng.uniform(0.3, 1.0, len(moving)))
    return Motion(start + moving, spots[held[moving]], strength)
