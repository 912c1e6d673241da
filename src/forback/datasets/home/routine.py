"""The day of the simulated person: which activity when, for how long."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from forback.core.types import Floats
from forback.datasets.home.floorplan import ENTRANCE, Spot

HOUR = 3600.0
DAY = 24 * HOUR
#: The clock when the simulation begins, in seconds after midnight: shortly before getting up.
START = 6 * HOUR
#: The middle of every night, after the midnight it follows.
MIDNIGHT_SLEEP = 2.6 * HOUR


@dataclass(frozen=True)
class Activity:
    """What a person does at one place."""

    name: str
    thousands: float  #: training samples in the paper's table, in thousands: its share of time
    place: Spot
    minutes: float  #: of a usual episode
    gestures: float  #: movements on the spot per second
    shifts: float  #: changes of position per second
    spread: float  #: how far from the place those go, in metres
    #: How likely at night, in the morning, at noon, in the afternoon, evening, late: from 0, 6,
    #: 10, 14, 18 and 21 o'clock on.
    times: tuple[float, float, float, float, float, float]


ALL_DAY = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
MEALS = (0.1, 1.5, 2.0, 0.3, 3.0, 0.2)
AFTER_COOKING = (0.02, 0.2, 0.2, 0.1, 0.2, 0.05)
DESK = (0.3, 0.7, 1.0, 1.5, 1.0, 1.5)
WASHING = (0.3, 3.0, 0.7, 0.5, 1.0, 3.0)

ACTIVITIES: tuple[Activity, ...] = (
    Activity("Sleeping", 81, (1.2, 7.7), 450, 0.0015, 0.0004, 0.15, ALL_DAY),
    Activity("Out of Home", 66, ENTRANCE, 140, 0, 0, 0, (0.1, 1.0, 2.0, 2.0, 1.0, 0.2)),
    Activity("Using Computer", 64, (6.9, 8.0), 60, 0.1, 0.004, 0.18, DESK),
    Activity("Relaxing", 25, (10.6, 7.5), 35, 0.05, 0.003, 0.25, (1, 0.4, 0.7, 1, 2, 2.5)),
    Activity("Eating", 6.4, (9.6, 2.3), 13, 0.3, 0.01, 0.2, AFTER_COOKING),
    Activity("Cooking", 5.2, (7.2, 0.8), 11, 0.6, 0.12, 0.55, MEALS),
    Activity("Showering", 3.9, (0.8, 0.8), 10, 0.6, 0.05, 0.25, WASHING),
    Activity("No Event", 3.4, (9.4, 6.3), 6, 0.02, 0.005, 0.5, ALL_DAY),
    Activity("Using Toilet", 2.5, (3.7, 0.9), 2.2, 0.25, 0.02, 0.12, ALL_DAY),
    Activity("Hygiene", 1.6, (2.4, 1.3), 2.8, 0.7, 0.05, 0.2, WASHING),
    Activity("Dishwashing", 1.5, (6.1, 0.7), 3.5, 0.8, 0.08, 0.35, AFTER_COOKING),
    Activity("Beverage Preparation", 1.4, (5.2, 0.8), 2.0, 0.6, 0.12, 0.45, ALL_DAY),
    Activity("Bath Cleaning", 0.5, (1.2, 0.9), 1.3, 1.0, 0.2, 0.5, WASHING),
    Activity("Others", 6.5, (3.4, 4.5), 5, 0.4, 0.05, 0.3, ALL_DAY),
)
NAMES = [activity.name for activity in ACTIVITIES]
SLEEPING, AWAY, TOILET, OTHERS = map(
    NAMES.index, ["Sleeping", "Out of Home", "Using Toilet", "Others"]
)
#: How much more likely the second is right after the first.
FOLLOWS = {
    ("Sleeping", "Using Toilet"): 10.0,
    ("Sleeping", "Hygiene"): 6.0,
    ("Using Toilet", "Hygiene"): 4.0,
    ("Showering", "Hygiene"): 4.0,
    ("Bath Cleaning", "Showering"): 5.0,
    ("Cooking", "Eating"): 100.0,
    ("Eating", "Dishwashing"): 30.0,
    ("Eating", "Hygiene"): 2.0,
    ("Dishwashing", "Beverage Preparation"): 2.0,
    ("Beverage Preparation", "Using Computer"): 3.0,
    ("Beverage Preparation", "Relaxing"): 3.0,
    ("Out of Home", "Using Toilet"): 2.0,
    ("Out of Home", "Hygiene"): 2.0,
    ("Others", "Out of Home"): 2.0,
    ("Using Computer", "Beverage Preparation"): 2.0,
    ("Using Computer", "Using Toilet"): 2.0,
    ("Cooking", "Showering"): 0.1,
    ("Cooking", "Out of Home"): 0.1,
}


@dataclass(frozen=True)
class Episode:
    """An activity, by number, from one second to another."""

    activity: int
    start: float
    end: float


def shares() -> Floats:
    """The fraction of time of each activity."""
    thousands = [activity.thousands for activity in ACTIVITIES]
    return np.array(thousands) / sum(thousands)


def plan(seconds: float, rng: np.random.Generator) -> list[Episode]:
    """Episodes that fill so many seconds, in about the shares of the table.

    Nights come first: they are as long as the share of sleep asks for. Each waking activity has
    the rest of its share to spend, and what is behind its pace becomes more likely.

    Examples
    --------
    >>> episodes = plan(86400.0, np.random.default_rng(0))
    >>> episodes[0].start, episodes[-1].end
    (0.0, 86400.0)
    """
    nights = _nights(seconds, rng)
    quota = shares() * seconds
    asleep = sum(end - start for start, end in nights)
    left = quota * (seconds - asleep) / quota[1:].sum()
    left[SLEEPING] = 0.0
    pace = left / max(seconds - asleep, 1.0)
    episodes: list[Episode] = []
    awake = 0.0
    for wake, bedtime in pairwise([0.0, *(edge for night in nights for edge in night), seconds]):
        if (wake, bedtime) in nights:
            episodes += _night(wake, bedtime, left, rng)
            continue
        clock = wake
        while clock < bedtime:
            before = episodes[-1].activity if episodes else SLEEPING
            due = left - pace * (seconds - asleep - awake)  # positive where it lags behind
            activity = _choose(due, left, before, clock, rng)
            length = min(_length(activity, left[activity], rng), bedtime - clock)
            episodes.append(Episode(activity, clock, clock + length))
            left[activity] -= length
            clock += length
            awake += length
    return [episode for episode in episodes if episode.end > episode.start]


def _nights(seconds: float, rng: np.random.Generator) -> list[tuple[float, float]]:
    """From when to when it is night, in seconds of the simulation."""
    n_nights = math.ceil((START + seconds) / DAY) + 1
    middles = np.arange(n_nights) * DAY + MIDNIGHT_SLEEP - START
    middles[1:] += rng.normal(0.0, 0.4 * HOUR, n_nights - 1)
    stretch = rng.uniform(0.93, 1.07, n_nights)
    asked = shares()[SLEEPING] * seconds
    low, high = 5.0 * HOUR, 10.0 * HOUR
    for _ in range(40):  # bisection: sleep grows with the length of a night
        length = (low + high) / 2
        starts = np.clip(middles - stretch * length / 2, 0.0, seconds)
        ends = np.clip(middles + stretch * length / 2, 0.0, seconds)
        low, high = (length, high) if (ends - starts).sum() < asked else (low, length)
    return [(float(a), float(b)) for a, b in zip(starts, ends, strict=True) if b > a]


def _night(start: float, end: float, left: Floats, rng: np.random.Generator) -> list[Episode]:
    """A night's sleep, now and then with a way to the toilet in the middle."""
    middle = start + (end - start) * rng.uniform(0.4, 0.7)
    visit = min(_length(TOILET, left[TOILET], rng), end - middle)
    if rng.random() < 0.5 or left[TOILET] < visit or middle - start < HOUR:
        return [Episode(SLEEPING, start, end)]
    left[TOILET] -= visit
    return [
        Episode(SLEEPING, start, middle),
        Episode(TOILET, middle, middle + visit),
        Episode(SLEEPING, middle + visit, end),
    ]


def _choose(due: Floats, left: Floats, before: int, clock: float, rng: np.random.Generator) -> int:
    """The next activity: plausible after the one before, at this hour, and due."""
    hour = (START + clock) % DAY / HOUR
    part = int(np.searchsorted([6, 10, 14, 18, 21], hour, side="right"))
    usual = np.array([60 * activity.minutes for activity in ACTIVITIES])
    lag = np.where(left > 0, due / usual, -np.inf)
    lag[before] = -np.inf
    follows = np.array([FOLLOWS.get((NAMES[before], name), 1.0) for name in NAMES])
    times = np.array([activity.times[part] for activity in ACTIVITIES])
    # What is half an episode ahead waits, so that something of it is left for later.
    weights = np.where(lag > -0.5, follows * times * np.exp(np.clip(2.5 * lag, -9.0, 9.0)), 0.0)
    if not weights.any():
        return AWAY if before != AWAY else OTHERS
    return int(rng.choice(len(weights), p=weights / weights.sum()))


def _length(activity: int, left: float, rng: np.random.Generator) -> float:
    """Seconds of an episode: about as usual, or all that is left if that is little more."""
    usual = 60 * ACTIVITIES[activity].minutes
    if left < 1.4 * usual:
        return max(float(left), 30.0)
    return usual * math.exp(np.clip(rng.normal(0.0, 0.3), -0.6, 0.6))
