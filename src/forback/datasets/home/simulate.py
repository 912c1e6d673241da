"""A simulated smart home: one person, 14 activities, 40 ceiling motion sensors."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forback.core.types import Floats, Ints
from forback.datasets.home.floorplan import ROOMS, SENSORS, sensitivity
from forback.datasets.home.routine import (
    ACTIVITIES,
    NAMES,
    SECONDS_PER_HOUR,
    START_SECONDS,
    Episode,
    plan,
)
from forback.datasets.home.walking import motions
from forback.validation.scalars import check_generator, check_integer, check_number

#: The midnight before the simulation begins.
FIRST_DAY = np.datetime64("2014-06-23T00:00:00.000", "ms")


@dataclass(frozen=True)
class Home:
    """Sensor readings, activities, and the plan of the home.

    Attributes
    ----------
    X : ndarray of shape (n_steps, 40)
        1 where a sensor fired within the interval, else 0.
    y : ndarray of shape (n_steps,)
        Name of the activity in the middle of each interval.
    timestamps : ndarray of shape (n_steps,)
        Start of each interval, as datetime64.
    sensor_names : tuple of str
        Names of the columns, "s01" to "s40".
    positions : ndarray of shape (40, 2)
        Position of each sensor, in metres.
    ellipses : ndarray of shape (40, 3)
        Area that each sensor covers: two semi-axes in metres, and the angle of the first in
        degrees.
    rooms : dict
        Room -> (x0, y0, x1, y1), in metres.
    places : dict
        Activity -> (x, y), in metres.
    """

    X: NDArray[np.uint8]
    y: NDArray[np.str_]
    timestamps: NDArray[np.datetime64]
    sensor_names: tuple[str, ...]
    positions: Floats
    ellipses: Floats
    rooms: Mapping[str, tuple[float, float, float, float]]
    places: Mapping[str, tuple[float, float]]


def make_home(
    n_steps: int = 20_000,
    *,
    interval: float = 10.0,
    noise: float = 0.15,
    false_alarms: float = 0.2,
    dead_time: float = 3.0,
    random_state: Any = 0,
) -> Home:
    """Simulate a person at home under motion sensors, as in the paper's application.

    The person follows a daily routine of the paper's 14 activities, each at its place and for
    about the fraction of time in the paper's table, walks there through the doors, and moves on
    the spot: hardly when asleep, much when cooking, not at all when out. Every few minutes there
    is a short errand elsewhere in the home. A sensor fires when it notices motion within its
    ellipse and its room. The fractions hold from about two days on; the clock starts at six in the
    morning.

    Neighbouring places (stove, sink and kettle; tub and basin) share sensors, some sensors are
    redundant, and a few see next to nothing.

    Parameters
    ----------
    n_steps : int
        Number of intervals; the paper's training set has 270,000 of one second.
    interval : float
        Length of an interval in seconds, at least 0.1 and below an hour.
    noise : float
        Probability in [0, 1) that a sensor misses a motion that it would have noticed.
    false_alarms : float
        Rate of firings without motion, per sensor and hour.
    dead_time : float
        Seconds after a firing in which a sensor cannot fire again.
    random_state : int, numpy.random.Generator or None
        Seed or generator; None draws different data at every call.

    Returns
    -------
    Home
        Holds `X`, `y`, `timestamps`, `sensor_names`, and the plan: `positions`, `ellipses`,
        `rooms`, `places`.

    Examples
    --------
    >>> home = make_home(500, random_state=1)
    >>> home.X.shape, home.sensor_names[0], str(home.y[0])
    ((500, 40), 's01', 'Sleeping')
    """
    n_steps = check_integer(n_steps, "n_steps", low=1)
    interval = check_number(interval, "interval", low=0.1, high=SECONDS_PER_HOUR)
    noise = check_number(noise, "noise", low=0.0, high=1.0)
    false_alarms = check_number(false_alarms, "false_alarms", low=0.0)
    dead_time = check_number(dead_time, "dead_time", low=0.0)
    rng = check_generator(random_state)
    # Ticks of about a second, a whole number of them to an interval.
    per_interval = max(1, round(interval))
    tick = interval / per_interval
    episodes = plan(n_steps * interval, rng)
    n_ticks = n_steps * per_interval
    noticed = _notice(episodes, tick, noise, rng)
    n_alarms = rng.poisson(false_alarms * tick / SECONDS_PER_HOUR * n_ticks, len(SENSORS))
    X = np.zeros((n_steps, len(SENSORS)), dtype=np.uint8)
    for sensor in range(len(SENSORS)):
        alarms = rng.integers(0, n_ticks, n_alarms[sensor])
        ticks = np.union1d(noticed[sensor], alarms)
        X[_after_dead_time(ticks[ticks < n_ticks], dead_time / tick) // per_interval, sensor] = 1
    elapsed = np.rint(np.arange(n_steps) * (interval * 1000)).astype("timedelta64[ms]")
    return Home(
        X=X,
        y=_labels(episodes, interval * (np.arange(n_steps, dtype=np.float64) + 0.5)),
        timestamps=FIRST_DAY + np.timedelta64(int(START_SECONDS), "s") + elapsed,
        sensor_names=tuple(f"s{number + 1:02d}" for number in range(len(SENSORS))),
        positions=SENSORS[:, :2].copy(),
        ellipses=SENSORS[:, 2:].copy(),
        rooms=dict(ROOMS),
        places={activity.name: activity.place for activity in ACTIVITIES},
    )


def _notice(
    episodes: list[Episode], tick: float, noise: float, rng: np.random.Generator
) -> list[Ints]:
    """Return, for each sensor, the ticks at which it notices motion, in order."""
    noticed = []
    for motion in motions(episodes, tick, rng):
        chance = (1.0 - noise) * motion.strength[:, None] * sensitivity(motion.spot)
        rows, sensors = np.nonzero(rng.random(chance.shape) < chance)
        noticed.append((motion.tick[rows], sensors))
    ticks, sensors = map(np.concatenate, zip(*noticed, strict=True))
    return [ticks[sensors == sensor] for sensor in range(len(SENSORS))]


def _after_dead_time(ticks: Ints, dead_ticks: float) -> Ints:
    """Keep those of sorted ticks that are at least `dead_ticks` after the last one kept."""
    times = ticks.tolist()
    kept: list[int] = []
    place = 0
    while place < len(times):
        kept.append(times[place])
        place = bisect_left(times, times[place] + dead_ticks, lo=place + 1)
    return np.array(kept, dtype=np.intp)


def _labels(episodes: list[Episode], moments: Floats) -> NDArray[np.str_]:
    """Return the name of the activity at each moment."""
    starts = [episode.start for episode in episodes]
    names = np.array([NAMES[episode.activity] for episode in episodes])
    return names[np.searchsorted(starts, moments, side="right") - 1]
