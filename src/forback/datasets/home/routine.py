"""The daily routine of the simulated person: which activity, when and for how long."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from forback.core.types import Floats
from forback.datasets.home.floorplan import ENTRANCE, Spot

SECONDS_PER_HOUR = 3600.0
SECONDS_PER_DAY = 24 * SECONDS_PER_HOUR
#: When the simulation begins, shortly before getting up, in seconds after midnight.
START_SECONDS = 6 * SECONDS_PER_HOUR
#: The middle of a night's sleep, in seconds after midnight.
MIDDLE_OF_SLEEP_SECONDS = 2.6 * SECONDS_PER_HOUR


@dataclass(frozen=True)
class Activity:
    """What a person does at one place.

    Attributes
    ----------
    name : str
        The paper's label.
    thousands : float
        Training samples in the paper's table, in thousands: proportional to the time spent.
    place : tuple of float
        Where it is done, (x, y) in metres.
    minutes : float
        Typical length of an episode.
    gestures : float
        Movements on the spot per second.
    shifts : float
        Changes of position per second.
    spread : float
        Standard deviation of those positions around the place, in metres.
    times : tuple of float
        Relative frequency at six times of day: from 0, 6, 10, 14, 18 and 21 o'clock on.
    """

    name: str
    thousands: float
    place: Spot
    minutes: float
    gestures: float
    shifts: float
    spread: float
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
#: Factor by which the second activity is more frequent right after the first.
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
    """An activity, by number, and when it starts and ends, in seconds of the simulation."""

    activity: int
    start: float
    end: float


def shares() -> Floats:
    """Return the fraction of time of each activity."""
    thousands = np.array([activity.thousands for activity in ACTIVITIES])
    return np.asarray(thousands / thousands.sum())


def plan(seconds: float, rng: np.random.Generator) -> list[Episode]:
    """Draw the episodes of so many seconds, with about the fractions of time of `shares`.

    Nights are placed first, as long as the fraction of sleep requires. Each waking activity has a
    quota of the remaining time; an activity that lags behind its quota becomes more probable.

    Parameters
    ----------
    seconds : float
        Length of the simulation.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    list of Episode
        Episodes without gaps, in order.

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
            previous = episodes[-1].activity if episodes else SLEEPING
            lag = left - pace * (seconds - asleep - awake)  # positive where it is behind its quota
            activity = _choose(lag, left, previous, clock, rng)
            length = min(_length(activity, left[activity], rng), bedtime - clock)
            episodes.append(Episode(activity, clock, clock + length))
            left[activity] -= length
            clock += length
            awake += length
    return [episode for episode in episodes if episode.end > episode.start]


def _nights(seconds: float, rng: np.random.Generator) -> list[tuple[float, float]]:
    """Draw when each night starts and ends, in seconds of the simulation."""
    n_nights = math.ceil((START_SECONDS + seconds) / SECONDS_PER_DAY) + 1
    middles = np.arange(n_nights) * SECONDS_PER_DAY + MIDDLE_OF_SLEEP_SECONDS - START_SECONDS
    middles[1:] += rng.normal(0.0, 0.4 * SECONDS_PER_HOUR, n_nights - 1)
    stretch = rng.uniform(0.93, 1.07, n_nights)
    quota = shares()[SLEEPING] * seconds
    low = 5.0 * SECONDS_PER_HOUR
    high = 10.0 * SECONDS_PER_HOUR
    for _ in range(40):  # bisection: total sleep grows with the length of a night
        length = (low + high) / 2
        starts = np.clip(middles - stretch * length / 2, 0.0, seconds)
        ends = np.clip(middles + stretch * length / 2, 0.0, seconds)
        if (ends - starts).sum() < quota:
            low = length
        else:
            high = length
    return [(float(a), float(b)) for a, b in zip(starts, ends, strict=True) if b > a]


def _night(start: float, end: float, left: Floats, rng: np.random.Generator) -> list[Episode]:
    """Draw a night's sleep, about every second time interrupted by a visit to the toilet."""
    middle = start + (end - start) * rng.uniform(0.4, 0.7)
    visit = min(_length(TOILET, left[TOILET], rng), end - middle)
    if rng.random() < 0.5 or left[TOILET] < visit or middle - start < SECONDS_PER_HOUR:
        return [Episode(SLEEPING, start, end)]
    left[TOILET] -= visit
    return [
        Episode(SLEEPING, start, middle),
        Episode(TOILET, middle, middle + visit),
        Episode(SLEEPING, middle + visit, end),
    ]


def _choose(
    lag: Floats, left: Floats, previous: int, clock: float, rng: np.random.Generator
) -> int:
    """Draw the next activity by its lag (in seconds), the previous one and the time of day."""
    hour = (START_SECONDS + clock) % SECONDS_PER_DAY / SECONDS_PER_HOUR
    part = int(np.searchsorted([6, 10, 14, 18, 21], hour, side="right"))
    typical = np.array([60 * activity.minutes for activity in ACTIVITIES])
    episodes = np.where(left > 0, lag / typical, -np.inf)
    episodes[previous] = -np.inf
    follows = np.array([FOLLOWS.get((NAMES[previous], name), 1.0) for name in NAMES])
    times = np.array([activity.times[part] for activity in ACTIVITIES])
    urgency = np.exp(np.clip(2.5 * episodes, -9.0, 9.0))
    # An activity half an episode ahead of its quota waits, so that some of it is left for later.
    weights = np.where(episodes > -0.5, follows * times * urgency, 0.0)
    if not weights.any():
        return AWAY if previous != AWAY else OTHERS
    return int(rng.choice(len(weights), p=weights / weights.sum()))


def _length(activity: int, left: float, rng: np.random.Generator) -> float:
    """Draw the length of an episode in seconds; all that is left if that is little more."""
    typical = 60 * ACTIVITIES[activity].minutes
    if left < 1.4 * typical:
        return max(float(left), 30.0)
    return typical * math.exp(np.clip(rng.normal(0.0, 0.3), -0.6, 0.6))
