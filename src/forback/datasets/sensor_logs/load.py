"""Public sensor logs of homes as binary matrices with a row per interval."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forback.core.types import Ints
from forback.datasets.download import SOURCES, read
from forback.datasets.sensor_logs import parsing
from forback.datasets.sensor_logs.encoding import (
    ENCODINGS,
    MICROSECONDS_PER_SECOND,
    NumberedSpan,
    Times,
    encode,
    label,
    starts_by_day,
)
from forback.datasets.sensor_logs.parsing import Record, Span
from forback.validation.scalars import check_choice, check_number


@dataclass(frozen=True)
class SensorLog:
    """Binary sensor readings and activities, one row per interval.

    Attributes
    ----------
    X : ndarray of shape (n_intervals, n_sensors)
        Encoded readings, 0 or 1.
    y : ndarray of shape (n_intervals,)
        Activity of each interval, "none" where nothing is annotated.
    timestamps : ndarray of shape (n_intervals,)
        Start of each interval, as datetime64.
    lengths : ndarray of shape (n_sequences,)
        Number of intervals of each sequence: a day, or a file of casas-adlmr.
    sensor_names : tuple of str
        Names of the columns.
    """

    X: NDArray[np.uint8]
    y: NDArray[np.str_]
    timestamps: NDArray[np.datetime64]
    lengths: Ints
    sensor_names: tuple[str, ...]


READERS: dict[str, Callable[..., Record]] = {
    "casas-adlmr": parsing.read_adlmr,
    "casas-al-smarthome": parsing.read_smarthome,
    "ordonez-a": parsing.read_ordonez,
    "ordonez-b": parsing.read_ordonez,
    "van-kasteren-2008": parsing.read_kasteren,
}


def load_sensor_log(
    name: str,
    *,
    interval: float = 60.0,
    encoding: str = "raw",
    folder: str | os.PathLike[str] | None = None,
) -> SensorLog:
    """Read a public log of binary sensors in a home, cut into intervals.

    ===================  =====================================================================
    name                 content
    ===================  =====================================================================
    casas-adlmr          26 pairs of people at 15 scripted tasks in an apartment, 37 sensors
    casas-al-smarthome   one home, 30 days, 12 sensors, 30 activities
    ordonez-a            one home, two weeks, 12 sensors, 9 activities
    ordonez-b            one home, three weeks, 12 sensors, 10 activities
    van-kasteren-2008    one home, 28 days, 14 sensors, 7 activities
    ===================  =====================================================================

    The label of an interval is the activity that covers most of it, "none" where nothing is
    annotated. Where annotations overlap, the one that began last counts. The two people of
    casas-adlmr act simultaneously and have a joint label: "6+7" for resident 1 at task 6 and
    resident 2 at task 7. In both casas logs each event carries a label, which holds until the
    next. `forback.datasets.sensor_logs.parsing` documents how irregular lines are treated.

    Every day is a sequence, with intervals counted from midnight, the first and last day limited
    to what was recorded; in casas-adlmr every file is one, with intervals from its first event on.

    Parameters
    ----------
    name : str
        One of the names above.
    interval : float
        Length of an interval in seconds, at least 0.1 and below a day.
    encoding : {"raw", "change", "last"}
        As in van Kasteren et al. (2008). "raw": 1 where the sensor is on at some moment of the
        interval (on, open, or the item taken away). "change": 1 where it goes on or off. "last":
        1 for the one sensor that went on or off last, until another does.
    folder : str or path, optional
        A folder of public data files, in folders named like the logs (``ordonez-adl`` for both of
        them). By default the files are looked for below the folder named by the environment
        variable FORBACK_DATA, then in the user's cache (``~/.cache/forback``); if neither has them,
        they are downloaded into the cache.

    Returns
    -------
    SensorLog
        Holds `X`, `y`, `timestamps`, `lengths` and `sensor_names`.

    Examples
    --------
    >>> log = load_sensor_log("ordonez-a", encoding="last")  # doctest: +SKIP
    >>> log.X.shape, len(log.lengths)  # doctest: +SKIP
    ((20456, 12), 15)
    >>> load_sensor_log("aruba")
    Traceback (most recent call last):
    ValueError: name must be one of ['casas-adlmr', ...], got 'aruba'
    """
    check_choice(name, "name", READERS)
    check_choice(encoding, "encoding", ENCODINGS)
    interval = check_number(interval, "interval", low=0.1, high=86_400.0)
    texts = [read(source, folder) for source in SOURCES[name]]
    step = round(interval * MICROSECONDS_PER_SECOND)
    if name == "casas-adlmr":
        records = [READERS[name](text) for text in texts]
        starts = [[np.arange(*record.limits(), step, dtype=np.int64)] for record in records]
    else:
        records = [READERS[name](*texts)]
        starts = [starts_by_day(*records[0].limits(), step)]
    return assemble(records, starts, encoding)


def assemble(records: list[Record], starts: list[list[Times]], encoding: str) -> SensorLog:
    """Encode several records as one log; sensors and labels are sorted.

    `starts` has, for each record, an array for each of its sequences: when its intervals start.
    """
    sensors = sorted({span[2] for record in records for span in record.sensors})
    names = sorted({span[2] for record in records for span in record.activities})
    grids = [np.concatenate(sequences) for sequences in starts]
    readings = []
    activities = []
    for record, grid in zip(records, grids, strict=True):
        readings.append(encode(_number(record.sensors, sensors), len(sensors), grid, encoding))
        activities.append(label(_number(record.activities, names), names, grid))
    return SensorLog(
        X=np.concatenate(readings),
        y=np.concatenate(activities),
        timestamps=np.concatenate(grids).astype("datetime64[us]").astype("datetime64[ms]"),
        lengths=np.array([len(sequence) for sequences in starts for sequence in sequences]),
        sensor_names=tuple(sensors),
    )


def _number(spans: list[Span], names: list[str]) -> list[NumberedSpan]:
    """Replace the names of spans by their places in `names`."""
    numbers = {name: number for number, name in enumerate(names)}
    return [(start, end, numbers[name]) for start, end, name in spans]
