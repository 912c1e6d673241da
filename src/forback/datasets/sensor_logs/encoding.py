"""From sensor intervals to fixed-interval binary matrices, as in van Kasteren et al. (2008).

Times are whole microseconds since 1970, so that no interval is lost to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forback.core.types import Ints

Times = NDArray[np.int64]

SECOND = 1_000_000
DAY = 86_400 * SECOND
#: A span whose start or end was not seen has one of these.
LONG_AGO: int = np.iinfo(np.int64).min
NEVER: int = np.iinfo(np.int64).max

ENCODINGS = ("raw", "change", "last")
#: The label of intervals that nobody annotated.
NO_LABEL = "none"


@dataclass(frozen=True)
class Spans:
    """Stretches of time, each belonging to a sensor or a label by number."""

    start: Times
    end: Times
    which: Ints

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, int]]) -> Spans:
        """Spans from (start, end, which), sorted by start."""
        table = np.array(sorted(rows), dtype=np.int64).reshape(-1, 3)
        return cls(table[:, 0], table[:, 1], table[:, 2].astype(np.intp))


@dataclass(frozen=True)
class Grid:
    """Intervals one after the other; the last of a sequence may be cut short."""

    start: Times
    end: Times
    lengths: Ints  #: intervals per sequence

    def place(self, time: Times) -> Ints:
        """The interval that each moment is in; -1 before the first, the last one after it."""
        return np.searchsorted(self.start, time, side="right") - 1


def grid_by_day(begin: int, end: int, interval: int) -> Grid:
    """Intervals counted from every midnight on: a sequence for each day.

    It starts with the interval that `begin` is in and stops with that of the last moment before
    `end`. Where the interval does not divide the day, midnight cuts the last one short.
    """
    starts, ends, lengths = [], [], []
    for midnight in range(begin // DAY * DAY, end, DAY):
        first = (max(begin, midnight) - midnight) // interval * interval
        start = midnight + np.arange(first, min(DAY, end - midnight), interval, dtype=np.int64)
        starts.append(start)
        ends.append(np.minimum(start + interval, midnight + DAY))
        lengths.append(len(start))
    return Grid(np.concatenate(starts), np.concatenate(ends), np.array(lengths, dtype=np.intp))


def grid_at_once(begin: int, end: int, interval: int) -> Grid:
    """Intervals counted from `begin` on: one sequence."""
    start = np.arange(begin, end, interval, dtype=np.int64)
    return Grid(start, start + interval, np.array([len(start)]))


def encode(spans: Spans, n_sensors: int, grid: Grid, encoding: str) -> NDArray[np.uint8]:
    """One row per interval, one column per sensor.

    raw: 1 where the sensor is on at some moment of the interval. change: 1 where it goes on or
    off. last: 1 for the sensor that went on or off last, in this interval or before, and for no
    other; before the first change, for none.

    Examples
    --------
    >>> grid = grid_at_once(0, 40 * SECOND, 10 * SECOND)
    >>> spans = Spans.of([(12 * SECOND, 31 * SECOND, 0)])
    >>> [encode(spans, 1, grid, name)[:, 0].tolist() for name in ENCODINGS]
    [[0, 1, 1, 1], [0, 1, 0, 1], [0, 1, 1, 1]]
    """
    spans = _united(spans)
    if encoding == "raw":
        return _raw(spans, n_sensors, grid)
    X = np.zeros((len(grid.start), n_sensors), dtype=np.uint8)
    time = np.concatenate([spans.start, spans.end])
    sensor = np.concatenate([spans.which, spans.which])
    seen = (time != LONG_AGO) & (time != NEVER)
    order = np.argsort(time[seen], kind="stable")
    time, sensor = time[seen][order], sensor[seen][order]
    if encoding == "change":
        X[grid.place(time), sensor] = 1
        return X
    latest = np.searchsorted(time, grid.end, side="left") - 1
    some = np.flatnonzero(latest >= 0)
    X[some, sensor[latest[some]]] = 1
    return X


def _raw(spans: Spans, n_sensors: int, grid: Grid) -> NDArray[np.uint8]:
    # A sensor that goes on and off at the same moment was on for that moment.
    first = np.maximum(grid.place(spans.start), 0)
    last = grid.place(np.maximum(spans.end - 1, spans.start))
    steps = np.zeros((len(grid.start) + 1, n_sensors), dtype=np.int32)
    np.add.at(steps, (first, spans.which), 1)
    np.add.at(steps, (last + 1, spans.which), -1)
    np.cumsum(steps, axis=0, out=steps)
    return (steps[:-1] > 0).astype(np.uint8)


def _united(spans: Spans) -> Spans:
    """The same with overlapping spans of a sensor made one: inside of one nothing changes."""
    rows: list[tuple[int, int, int]] = []
    open_until: dict[int, int] = {}
    for start, end, which in sorted(
        zip(spans.start.tolist(), spans.end.tolist(), spans.which.tolist(), strict=True)
    ):
        if which in open_until and start < rows[open_until[which]][1]:
            place = open_until[which]
            rows[place] = (rows[place][0], max(rows[place][1], end), which)
        else:
            open_until[which] = len(rows)
            rows.append((start, end, which))
    return Spans.of(rows)


def label(spans: Spans, names: Sequence[str], grid: Grid) -> NDArray[np.str_]:
    """Per interval the annotation that covers most of it, `NO_LABEL` where there is none at all.

    Where annotations overlap, the one that began last has the time: a visit to the toilet
    interrupts a night. Of two that cover as much, the first in `names` is taken.
    """
    order = np.lexsort((-spans.end, spans.start))
    edges = np.unique(np.concatenate([spans.start, spans.end, grid.start, grid.end]))
    holder = np.full(len(edges) - 1, -1, dtype=np.intp)
    for start, end, which in zip(
        spans.start[order], spans.end[order], spans.which[order], strict=True
    ):
        holder[np.searchsorted(edges, start) : np.searchsorted(edges, end)] = which
    interval = grid.place(edges[:-1])
    inside = (holder >= 0) & (interval >= 0)
    inside &= edges[:-1] < grid.end[interval]
    # Seconds by interval and label; the intervals are many, the labels of each few.
    pairs, back = np.unique(interval[inside] * len(names) + holder[inside], return_inverse=True)
    covered = np.bincount(back, weights=np.diff(edges)[inside], minlength=len(pairs))
    rows, labels = np.divmod(pairs, max(len(names), 1))
    best = np.lexsort((-labels, covered, rows))  # the last of each row counts
    chosen = np.full(len(grid.start), len(names), dtype=np.intp)
    chosen[rows[best]] = labels[best]
    return np.array([*names, NO_LABEL])[chosen]
