"""From sensor intervals to fixed-interval binary matrices, as in van Kasteren et al. (2008).

Times are whole microseconds since 1970, so that no interval is lost to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from forback.core.types import Ints

Times = NDArray[np.int64]
#: A span of time, (start, end, which), where `which` is the number of a sensor or a label.
NumberedSpan = tuple[int, int, int]

MICROSECONDS_PER_SECOND = 1_000_000
MICROSECONDS_PER_DAY = 86_400 * MICROSECONDS_PER_SECOND
#: Start of a span that began before the recording.
LONG_AGO: int = np.iinfo(np.int64).min
#: End of a span that outlasted the recording.
NEVER: int = np.iinfo(np.int64).max

ENCODINGS = ("raw", "change", "last")
#: Label of intervals without any annotation.
NO_LABEL = "none"


def starts_by_day(begin: int, end: int, interval: int) -> list[Times]:
    """Return when intervals start that count from every midnight: an array for each day.

    The first interval is the one that `begin` is in, the last one that of the moment before `end`.
    Where the interval does not divide the day, midnight cuts the last one short.
    """
    day = MICROSECONDS_PER_DAY
    starts = []
    for midnight in range(begin // day * day, end, day):
        first = (max(begin, midnight) - midnight) // interval * interval
        offsets = np.arange(first, min(day, end - midnight), interval, dtype=np.int64)
        starts.append(midnight + offsets)
    return starts


def _place(time: Times, starts: Times) -> Ints:
    """Return the interval that each moment is in; the first one before all, the last one after."""
    return np.searchsorted(starts[1:], time, side="right")


def encode(
    spans: Sequence[NumberedSpan], n_sensors: int, starts: Times, encoding: str
) -> NDArray[np.uint8]:
    """Encode sensor spans as a binary matrix, one row per interval and one column per sensor.

    Parameters
    ----------
    spans : sequence of (start, end, sensor)
        When which sensor was on.
    n_sensors : int
        Number of columns.
    starts : ndarray of int
        When the intervals start; each ends where the next one starts.
    encoding : {"raw", "change", "last"}
        "raw": 1 where the sensor is on at some moment of the interval. "change": 1 where it goes on
        or off. "last": 1 for the sensor that went on or off last, in this interval or before, 0 for
        all others and before the first change.

    Returns
    -------
    ndarray of shape (n_intervals, n_sensors)
        Zeros and ones.

    Examples
    --------
    >>> starts = np.arange(0, 40, 10)
    >>> [encode([(12, 31, 0)], 1, starts, name)[:, 0].tolist() for name in ENCODINGS]
    [[0, 1, 1, 1], [0, 1, 0, 1], [0, 1, 1, 1]]
    """
    merged = sorted(_merge_overlaps(spans))
    start, end, which = np.array(merged, dtype=np.int64).reshape(-1, 3).T
    X = np.zeros((len(starts), n_sensors), dtype=np.uint8)
    if encoding == "raw":
        first = _place(start, starts)
        # A sensor that goes on and off at the same moment counts as on at that moment.
        stop = _place(np.maximum(end - 1, start), starts) + 1
        for row, next_row, sensor in zip(first, stop, which, strict=True):
            X[row:next_row, sensor] = 1
        return X
    time = np.concatenate([start, end])
    order = np.argsort(time, kind="stable")
    changes = order[(time[order] != LONG_AGO) & (time[order] != NEVER)]
    time = time[changes]
    changed = np.tile(which, 2)[changes]
    if encoding == "change":
        X[_place(time, starts), changed] = 1
        return X
    latest = np.searchsorted(time, [*starts[1:], NEVER], side="left") - 1
    some = np.flatnonzero(latest >= 0)
    X[some, changed[latest[some]]] = 1
    return X


def _merge_overlaps(spans: Sequence[NumberedSpan]) -> list[NumberedSpan]:
    """Merge overlapping spans of a sensor, which does not change within them."""
    rows: list[NumberedSpan] = []
    for start, end, which in sorted(spans, key=itemgetter(2, 0, 1)):
        if rows and rows[-1][2] == which and start < rows[-1][1]:
            rows[-1] = (rows[-1][0], max(rows[-1][1], end), which)
        else:
            rows.append((start, end, which))
    return rows


def label(spans: Sequence[NumberedSpan], names: Sequence[str], starts: Times) -> NDArray[np.str_]:
    """Label each interval by the annotation that covers most of it, or by `NO_LABEL`.

    Where annotations overlap, the one that began last counts: a visit to the toilet interrupts a
    night. Of two that cover as much, the first in `names` is taken. No annotation lies outside of
    the intervals.
    """
    moments = np.array([span[:2] for span in spans], dtype=np.int64).ravel()
    edges = np.unique(np.concatenate([moments, starts]))
    holder = np.full(len(edges) - 1, -1, dtype=np.intp)
    for start, end, which in sorted(spans, key=lambda span: (span[0], -span[1], span[2])):
        holder[np.searchsorted(edges, start) : np.searchsorted(edges, end)] = which
    held = np.flatnonzero(holder >= 0)
    # Time by interval and label; the intervals are many, the labels of each few.
    interval = _place(edges[held], starts)
    pairs, back = np.unique(interval * len(names) + holder[held], return_inverse=True)
    covered = np.bincount(back, weights=np.diff(edges)[held])
    rows, labels = np.divmod(pairs, max(len(names), 1))
    best = np.lexsort((-labels, covered, rows))  # the last of each row counts
    chosen = np.full(len(starts), len(names), dtype=np.intp)
    chosen[rows[best]] = labels[best]
    return np.array([*names, NO_LABEL])[chosen]
