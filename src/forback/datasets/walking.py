"""Where the simulated person is, tick by tick, and when they move."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forback.datasets.floorplan import ENTRANCE, ROOMS, Spot, room_of, route
from forback.datasets.routine import ACTIVITIES, AWAY, OTHERS, SLEEPING, Episode
from forback.protocols import Floats, Ints

#: Metres per second.
PACE = 0.9
#: How long one stays at each spot while busy here and there, in seconds.
ERRAND = 40.0


@dataclass(frozen=True)
class Motion:
    """The moments at which somebody moved."""

    tick: Ints
    spot: Floats  #: (n, 2)
    strength: Floats  #: from 0 to 1, the chance that a sensor with this spot in view notices


def motions(episodes: list[Episode], tick: float, rng: np.random.Generator) -> Iterator[Motion]:
    """Where and when there is motion, an episode at a time; a tick is so many seconds."""
    spot = ACTIVITIES[SLEEPING].place
    for episode in episodes:
        first, last = math.ceil(episode.start / tick), math.ceil(episode.end / tick)
        for goal, start, stop in _stays(episode.activity, first, last, tick, rng):
            walk = _walk(spot, goal, tick)[: stop - start]
            yield Motion(np.arange(start, start + len(walk)), walk, np.ones(len(walk)))
            start += len(walk)
            spot = (float(walk[-1, 0]), float(walk[-1, 1])) if len(walk) else spot
            if start < stop and episode.activity != AWAY:
                stay = _stay(episode.activity, goal, stop - start, tick, rng)
                yield Motion(start + stay.tick, stay.spot, stay.strength)
        if episode.activity == AWAY:
            spot = ENTRANCE


def _stays(
    activity: int, first: int, last: int, tick: float, rng: np.random.Generator
) -> Iterator[tuple[Spot, int, int]]:
    """The spots that an episode is spent at, from tick to tick: one, or several on errands."""
    if activity != OTHERS:
        yield ACTIVITIES[activity].place, first, last
        return
    length = max(1, math.ceil(ERRAND / tick))
    rooms = list(ROOMS.values())
    for start in range(first, last, length):
        x0, y0, x1, y1 = rooms[rng.integers(len(rooms))]
        goal = (float(rng.uniform(x0 + 0.3, x1 - 0.3)), float(rng.uniform(y0 + 0.3, y1 - 0.3)))
        yield goal, start, min(start + length, last)


def _walk(start: Spot, goal: Spot, tick: float) -> Floats:
    """The spots at the ticks of a walk, the last one at the goal; none if one is there already."""
    corners = np.array(route(start, goal))
    reached = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(corners, axis=0).T))])
    n_ticks = math.ceil(reached[-1] / (PACE * tick))
    walked = np.minimum(np.arange(1, n_ticks + 1) * PACE * tick, reached[-1])
    return np.stack([np.interp(walked, reached, corners[:, axis]) for axis in (0, 1)], axis=1)


def _stay(activity: int, goal: Spot, n_ticks: int, tick: float, rng: np.random.Generator) -> Motion:
    """Gestures on the spot and shifts to another spot nearby, within the room."""
    habits = ACTIVITIES[activity]
    shifts = rng.random(n_ticks) < -math.expm1(-habits.shifts * tick)
    gestures = rng.random(n_ticks) < -math.expm1(-habits.gestures * tick)
    shifts[0] = True  # one settles
    offsets = rng.normal(0.0, habits.spread, (int(shifts.sum()), 2))
    x0, y0, x1, y1 = list(ROOMS.values())[room_of(np.array([goal]))[0]]
    spots = np.clip(np.array(goal) + offsets, (x0 + 0.1, y0 + 0.1), (x1 - 0.1, y1 - 0.1))
    held = np.cumsum(shifts) - 1
    moving = np.flatnonzero(shifts | gestures)
    strength = np.where(shifts[moving], 0.9, rng.uniform(0.3, 1.0, len(moving)))
    return Motion(moving, spots[held[moving]], strength)
