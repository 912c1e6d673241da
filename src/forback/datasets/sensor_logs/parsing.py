"""Parsers of the sensor logs: from text to named spans of time.

Every public copy has a few irregular lines; the docstring of its reader says how they are treated.
Headers, and lines that do not begin like an event, are skipped; an event that cannot be parsed
is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from forback.datasets.sensor_logs.encoding import LONG_AGO, MICROSECONDS_PER_SECOND, NEVER

T = TypeVar("T")

#: (start, end, name), times in microseconds since 1970.
Span = tuple[int, int, str]
#: (time, sensor, whether it goes on, label); a label, where there is one, holds until the next.
Event = tuple[int, str, bool, str | None]

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
#: Whether a sensor goes on, by the value of its event; an absent item has been taken: it is in use.
IS_ON = dict.fromkeys(["ON", "OPEN", "ABSENT"], True)
IS_ON |= dict.fromkeys(["OFF", "CLOSE", "PRESENT"], False)
#: Misspelt values in casas-adlmr.
MISSPELT = {"OPENv": "OPEN", "OF": "OFF"}


@dataclass(frozen=True)
class Record:
    """One recording: the spans in which each sensor was on, and those of each activity."""

    sensors: list[Span]
    activities: list[Span]

    def limits(self) -> tuple[int, int]:
        """Return the first moment of the recording and the one after the last."""
        times = [time for span in self.sensors for time in span[:2]]
        changes = [time for time in times if time not in (LONG_AGO, NEVER)]
        starts, ends, _ = zip(*self.activities, strict=True) if self.activities else ((), (), ())
        return min([*changes, *starts]), max([*(time + 1 for time in changes), *ends])


def parse_time(date: str, time: str) -> int:
    """Return the microseconds from 1970 to an ISO date and a time.

    Examples
    --------
    >>> parse_time("1970-01-02", "00:00:00.5")
    86400500000
    """
    return int(np.datetime64(f"{date}T{time}", "us").astype(np.int64))


def read_adlmr(text: str) -> Record:
    """Parse a file of casas-adlmr: date, time, sensor, value, then pairs of resident and task.

    The two residents act simultaneously and have a joint label: "6+7" while resident 1 is at task
    6 and resident 2 at task 7, each task holding until that resident's next event; "-" stands for
    a resident not seen so far.

    Empty lines and the sentence "Missing rest of the data" (P09) are skipped. A date without its
    first digit, "008-11-11" (P03), and the values "OPENv" and "OF" (P23) are completed. The pair
    "211" (P06) is resident 2 at task 11. A third pair that repeats the second (P04) adds nothing.
    The three events without a pair (P02, P19) leave the tasks unchanged.
    """
    tasks = {"1": "-", "2": "-"}

    def parse(line: str) -> Event:
        date, time, sensor, value, *pairs = line.split()
        at = parse_time(f"2{date}" if re.match(r"\d{3}-", date) else date, time)
        if len(pairs) == 1:
            pairs = [pairs[0][0], pairs[0][1:]]
        tasks.update(zip(pairs[::2], pairs[1::2], strict=True))
        resident_1, resident_2 = tasks.values()
        label = f"{resident_1}+{resident_2}" if pairs else None
        return at, sensor, IS_ON[MISSPELT.get(value, value)], label

    return _record(_parsed("casas-adlmr", text, parse, start=r"\d"))


def read_smarthome(text: str) -> Record:
    """Parse casas-al-smarthome: date, time, place, part of it, value, activity.

    A sensor is a place and a part of it, such as "Bathroom/BathroomLight"; an activity holds
    until the next event.
    """

    def parse(line: str) -> Event:
        date, time, place, part, value, activity = line.split()
        return parse_time(date, time), f"{place}/{part}", IS_ON[value], activity

    return _record(_parsed("casas-al-smarthome", text, parse))


def read_ordonez(sensors: str, activities: str) -> Record:
    """Parse ordonez-adl: start, end, then location, type and place of a sensor, or an activity.

    A sensor is all three together, such as "Door PIR Kitchen". Three activities of home A end
    before they begin (1 and 2 December); their minutes and seconds fit the next activity, so the
    end is taken to be the first such minute and second after the start.
    """

    def parse(line: str) -> Span:
        date, time, end_date, end_time, *name = line.split()
        start = parse_time(date, time)
        end = parse_time(end_date, end_time)
        if end < start:
            end = start + (end - start) % (3600 * MICROSECONDS_PER_SECOND)
        return start, end, " ".join(name)

    texts = (sensors, activities)
    return Record(*(list(_parsed("ordonez-adl", text, parse, start=r"\d")) for text in texts))


def read_kasteren(sensors: str, activities: str) -> Record:
    """Parse van-kasteren-2008: start, end and a number, whose name is in the head of the file.

    The last line of each file, "Length: ...", is skipped.
    """
    return Record(list(_kasteren_rows(sensors)), list(_kasteren_rows(activities)))


def _kasteren_rows(text: str) -> Iterator[Span]:
    names: dict[str, str] = dict(re.findall(r"^\s*\[?\s*(\d+)\]?:?\s*'(.+?)'\s*$", text, re.M))

    def parse(line: str) -> Span:
        start, end, key = line.split("\t")[:3]
        return _kasteren_time(start), _kasteren_time(end), names[key.strip()]

    return _parsed("van-kasteren-2008", text, parse, start=r"\d+-[A-Z]")


def _kasteren_time(stamp: str) -> int:
    # Not strptime: the month that it calls "Mar" depends on the locale.
    date, time = stamp.split()
    day, month, year = date.split("-")
    return parse_time(f"{year}-{MONTHS.index(month) + 1:02d}-{day}", time)


def _parsed(log: str, text: str, parse: Callable[[str], T], start: str = "") -> Iterator[T]:
    """Parse the lines that begin like `start`, a pattern; errors name the log and the line."""
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        if line and re.match(start, line):
            try:
                yield parse(line)
            except (KeyError, ValueError) as error:
                raise ValueError(f"{log}: line {number} cannot be read: {line!r}") from error


def _record(events: Iterable[Event]) -> Record:
    """Turn events into spans.

    A sensor whose first event is to go off has been on all the time before; one that is on at
    the end stays on. An event "on" while on changes nothing.
    """
    spans: list[Span] = []
    since: dict[str, int | None] = {}  # None while it is off
    marks: list[tuple[int, str]] = []
    last = LONG_AGO
    for at, sensor, on, label in events:
        start = since.get(sensor, None if on else LONG_AGO)
        if start is not None and not on:
            spans.append((start, at, sensor))
        kept = at if start is None else start
        since[sensor] = kept if on else None
        if label is not None:
            marks.append((at, label))
        last = max(last, at)
    spans += [(start, NEVER, sensor) for sensor, start in since.items() if start is not None]
    ends = [at for at, _ in marks[1:]] + [last + 1]
    held = [(at, end, name) for (at, name), end in zip(marks, ends, strict=True) if at < end]
    return Record(spans, held)
