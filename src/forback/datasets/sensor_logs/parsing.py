"""The formats of the sensor logs: text in, named spans of time out.

Every public copy has a few irregular lines. What is done about each is said in the docstring of
its reader. Headers, and whatever does not begin like an event, are skipped; an event that cannot be
read is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from forback.datasets.sensor_logs.encoding import LONG_AGO, NEVER, SECOND

#: (start, end, name), times in microseconds since 1970.
Span = tuple[int, int, str]
#: (time, sensor, whether it goes on).
Event = tuple[int, str, bool]
#: (time, label), the label holding until the next.
Mark = tuple[int, str]

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
#: An item that is absent has been taken: it is in use.
VALUES = {
    "ON": True, "OPEN": True, "ABSENT": True,
    "OFF": False, "CLOSE": False, "PRESENT": False,
}  # fmt: skip
#: Slips of the pen in casas-adlmr.
SLIPS = {"OPENv": "OPEN", "OF": "OFF"}


@dataclass(frozen=True)
class Record:
    """One recording: when which sensor was on, and when what was done."""

    sensors: list[Span]
    activities: list[Span]

    def limits(self) -> tuple[int, int]:
        """The first moment that anything is known about, and the one after the last."""
        times = [time for span in self.sensors for time in span[:2]]
        changes = [time for time in times if time not in (LONG_AGO, NEVER)]
        begin = min([*changes, *(start for start, _, _ in self.activities)])
        return begin, max(
            [*(time + 1 for time in changes), *(end for _, end, _ in self.activities)]
        )


def moment(date: str, time: str) -> int:
    """Microseconds since 1970 of an ISO date and a time.

    Examples
    --------
    >>> moment("1970-01-02", "00:00:00.5")
    86400500000
    """
    return int(np.datetime64(f"{date}T{time}", "us").astype(np.int64))


def read_adlmr(text: str) -> Record:
    """One file of casas-adlmr: date, time, sensor, value, then pairs of resident and task.

    The two residents act at once, so the label is a joint one: "6+7" while resident 1 is at task
    6 and resident 2 at task 7, each task holding until that resident's next event; "-" stands for
    a resident not seen so far.

    Empty lines and the sentence "Missing rest of the data" (P09) are skipped. A date without its
    first digit, "008-11-11" (P03), and the values "OPENv" and "OF" (P23) are completed. The pair
    "211" (P06) is resident 2 at task 11. A third pair that repeats the second (P04) adds nothing.
    The three events without a pair (P02, P19) leave the tasks as they are.
    """
    events: list[Event] = []
    marks: list[Mark] = []
    tasks = {"1": "-", "2": "-"}
    for number, line in _lines(text):
        fields = line.split()
        if not re.match(r"\d", line):
            continue
        try:
            date, time, sensor, value, *pairs = fields
            at = moment(f"2{date}" if re.match(r"\d{3}-", date) else date, time)
            events.append((at, sensor, VALUES[SLIPS.get(value, value)]))
            if len(pairs) == 1:
                pairs = [pairs[0][0], pairs[0][1:]]
            tasks |= dict(zip(pairs[::2], pairs[1::2], strict=True))
            resident_1, resident_2 = tasks.values()
        except (KeyError, ValueError) as error:
            raise ValueError(f"casas-adlmr: line {number} cannot be read: {line!r}") from error
        if pairs:
            marks.append((at, f"{resident_1}+{resident_2}"))
    return _record(events, marks)


def read_smarthome(text: str) -> Record:
    """casas-al-smarthome: date, time, place, part of it, value, activity.

    A sensor is a place and a part of it, such as "Bathroom/BathroomLight"; an activity holds
    until the next event.
    """
    events: list[Event] = []
    marks: list[Mark] = []
    for number, line in _lines(text):
        try:
            date, time, place, part, value, activity = line.split()
            at = moment(date, time)
            events.append((at, f"{place}/{part}", VALUES[value]))
        except (KeyError, ValueError) as error:
            raise ValueError(
                f"casas-al-smarthome: line {number} cannot be read: {line!r}"
            ) from error
        marks.append((at, activity))
    return _record(events, marks)


def read_ordonez(sensors: str, activities: str) -> Record:
    """ordonez-adl: start, end, and either location, type and place of a sensor, or an activity.

    A sensor is all three together, such as "Door PIR Kitchen". Three activities of home A end
    before they begin (1 and 2 December); their minutes and seconds fit what comes next, so that
    the end is taken to be the first such minute and second after the start.
    """
    return Record(list(_ordonez_rows(sensors)), list(_ordonez_rows(activities)))


def _ordonez_rows(text: str) -> Iterator[Span]:
    for number, line in _lines(text):
        if not re.match(r"\d", line):
            continue  # the head of the table
        try:
            date, time, end_date, end_time, *name = line.split()
            start, end = moment(date, time), moment(end_date, end_time)
        except ValueError as error:
            raise ValueError(f"ordonez-adl: line {number} cannot be read: {line!r}") from error
        if end < start:
            end = start + (end - start) % (3600 * SECOND)
        yield start, end, " ".join(name)


def read_kasteren(sensors: str, activities: str) -> Record:
    """van-kasteren-2008: start, end and number, the names of the numbers in the head of the file.

    The last line of each file, "Length: ...", is skipped.
    """
    return Record(list(_kasteren_rows(sensors)), list(_kasteren_rows(activities)))


def _kasteren_rows(text: str) -> Iterator[Span]:
    names: dict[str, str] = dict(re.findall(r"^\s*\[?\s*(\d+)\]?:?\s*'(.+?)'\s*$", text, re.M))
    for number, line in _lines(text):
        if not re.match(r"\d+-[A-Z]", line):
            continue
        try:
            start, end, key = line.split("\t")[:3]
            yield _kasteren_moment(start), _kasteren_moment(end), names[key.strip()]
        except (KeyError, ValueError) as error:
            message = f"van-kasteren-2008: line {number} cannot be read: {line!r}"
            raise ValueError(message) from error


def _kasteren_moment(stamp: str) -> int:
    # Not strptime: what it calls "Mar" depends on the locale.
    date, time = stamp.split()
    day, month, year = date.split("-")
    return moment(f"{year}-{MONTHS.index(month) + 1:02d}-{day}", time)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield number, line.strip()


def _record(events: Iterable[Event], marks: list[Mark]) -> Record:
    """Spans from events.

    A sensor whose first event is to go off has been on all the time before; one that is on at
    the end stays on. To go on again while on changes nothing.
    """
    spans: list[Span] = []
    since: dict[str, int | None] = {}  # None while it is off
    last = LONG_AGO
    for at, sensor, on in events:
        last = max(last, at)
        if on:
            since[sensor] = at if since.get(sensor) is None else since[sensor]
        else:
            start = since.get(sensor, LONG_AGO)
            if start is not None:
                spans.append((start, at, sensor))
            since[sensor] = None
    spans += [(start, NEVER, sensor) for sensor, start in since.items() if start is not None]
    ends = [at for at, _ in marks[1:]] + [last + 1]
    held = [(at, end, name) for (at, name), end in zip(marks, ends, strict=True) if at < end]
    return Record(spans, held)
