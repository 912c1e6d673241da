"""Real sensor logs of homes as fixed-interval binary matrices."""

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
    SECOND,
    Grid,
    Spans,
    encode,
    grid_at_once,
    grid_by_day,
    label,
)
from forback.datasets.sensor_logs.parsing import Record, Span
from forback.validation.scalars import check_choice, check_number


@dataclass(frozen=True)
class SensorLog:
    """Binary sensor readings and activities, an interval a row."""

    X: NDArray[np.uint8]  #: (n_intervals, n_sensors)
    y: NDArray[np.str_]  #: the activity of each interval, "none" where nothing is annotated
    timestamps: NDArray[np.datetime64]  #: when each interval begins
    lengths: Ints  #: intervals per sequence: a day, or a file of casas-adlmr
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
    name                 what it is
    ===================  =====================================================================
    casas-adlmr          26 pairs of people at 15 scripted tasks in an apartment, 37 sensors
    casas-al-smarthome   one home, 30 days, 12 sensors, 30 activities
    ordonez-a            one home, two weeks, 12 sensors, 9 activities
    ordonez-b            one home, three weeks, 12 sensors, 10 activities
    van-kasteren-2008    one home, 28 days, 14 sensors, 7 activities
    ===================  =====================================================================

    The label of an interval is the activity that covers most of it, and "none" where nothing is
    annotated at all. Where annotations overlap, the one that began last has the time. The two
    people of casas-adlmr act at once and have a joint label: "6+7" for resident 1 at task 6 and
    resident 2 at task 7. In both casas logs each event carries a label, which holds until the
    next. What is done about irregular lines is said in `forback.datasets.sensor_logs.parsing`.

    Every day is a sequence, with intervals counted from midnight, the first and last day cut to
    what was recorded; in casas-adlmr every file is one, with intervals from its first event on.

    Parameters
    ----------
    name : str
        One of those above.
    interval : float
        Seconds of an interval, from 0.1 on and below a day.
    encoding : {"raw", "change", "last"}
        As in van Kasteren et al. (2008). "raw": 1 where the sensor is on at some moment of the
        interval (on, open, or the item taken away). "change": 1 where it goes on or off. "last":
        1 for the one sensor that went on or off last, until another does.
    folder : path, optional
        Where the data lies, in folders named like the logs (``ordonez-adl`` for both of them). By
        default below the folder that the environment variable FORBACK_DATA names, else in the
        user's cache (``~/.cache/forback``), else it is downloaded into that.

    Returns
    -------
    SensorLog
        With `X`, `y`, `timestamps`, `lengths` and `sensor_names`.

    Examples
    --------
    >>> log = load_sensor_log("ordonez-a", encoding="last")  # doctest: +SKIP
    >>> log.X.shape, len(log.lengths)  # doctest: +SKIP
    ((20456, 12), 15)
    >>> load_sensor_log("aruba")
    Traceback (most recent call last):
    ValueError: name must be one of ['casas-adlmr', ...]; met 'aruba'
    """
    check_choice(name, "name", READERS)
    check_choice(encoding, "encoding", ENCODINGS)
    interval = check_number(interval, "interval", low=0.1, high=86_400.0)
    texts = [read(source, folder) for source in SOURCES[name]]
    if name == "casas-adlmr":
        records, make_grid = [READERS[name](text) for text in texts], grid_at_once
    else:
        records, make_grid = [READERS[name](*texts)], grid_by_day
    step = round(interval * SECOND)
    return assemble(records, [make_grid(*record.limits(), step) for record in records], encoding)


def assemble(records: list[Record], grids: list[Grid], encoding: str) -> SensorLog:
    """One log of several records, each on its grid; sensors and labels are sorted by name."""
    sensors = sorted({span[2] for record in records for span in record.sensors})
    names = sorted({span[2] for record in records for span in record.activities})
    pairs = list(zip(records, grids, strict=True))
    return SensorLog(
        X=np.concatenate(
            [encode(_numbered(r.sensors, sensors), len(sensors), g, encoding) for r, g in pairs]
        ),
        y=np.concatenate([label(_numbered(r.activities, names), names, g) for r, g in pairs]),
        timestamps=np.concatenate([g.start for g in grids]).astype("datetime64[us]")
        .astype("datetime64[ms]"),
        lengths=np.concatenate([g.lengths for g in grids]),
        sensor_names=tuple(sensors),
    )  # fmt: skip


def _numbered(spans: list[Span], names: list[str]) -> Spans:
    numbers = {name: number for number, name in enumerate(names)}
    return Spans.of([(start, end, numbers[name]) for start, end, name in spans])
