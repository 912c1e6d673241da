"""Spans of time to matrices: small ones, worked out by hand."""

from itertools import pairwise

import numpy as np
import pytest

from forback.datasets.sensor_logs.encoding import (
    LONG_AGO,
    MICROSECONDS_PER_DAY,
    MICROSECONDS_PER_SECOND,
    NEVER,
    encode,
    label,
    starts_by_day,
)

S = MICROSECONDS_PER_SECOND
GRID = np.arange(0, 60 * S, 10 * S)  # six intervals of ten seconds


def columns(rows, encoding, n_sensors=2, grid=GRID):
    spans = [(start * S, end * S, which) for start, end, which in rows]
    return encode(spans, n_sensors, grid, encoding).T.tolist()


def test_raw_is_on_wherever_it_is_on_at_all():
    rows = [(12, 31, 0), (35, 40, 1)]  # on until 40 exactly is not on in the interval from 40 on
    assert columns(rows, "raw") == [[0, 1, 1, 1, 0, 0], [0, 0, 0, 1, 0, 0]]


def test_change_is_where_it_goes_on_or_off():
    rows = [(12, 31, 0), (35, 40, 1)]
    assert columns(rows, "change") == [[0, 1, 0, 1, 0, 0], [0, 0, 0, 1, 1, 0]]


def test_last_is_one_sensor_until_another_changes():
    rows = [(12, 31, 0), (35, 40, 1)]
    assert columns(rows, "last") == [[0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    assert columns([(12, 55, 0), (21, 22, 1)], "last") == [[0, 1, 0, 0, 0, 1], [0, 0, 1, 1, 1, 0]]


def test_a_change_at_the_border_belongs_to_the_interval_that_begins():
    assert columns([(10, 20, 0)], "raw", 1) == [[0, 1, 0, 0, 0, 0]]
    assert columns([(10, 20, 0)], "change", 1) == [[0, 1, 1, 0, 0, 0]]
    assert columns([(10, 20, 0)], "last", 1) == [[0, 1, 1, 1, 1, 1]]


def test_a_moment_counts():
    assert columns([(30, 30, 0)], "raw", 1) == [[0, 0, 0, 1, 0, 0]]
    assert columns([(30, 30, 0)], "change", 1) == [[0, 0, 0, 1, 0, 0]]


def test_within_an_overlap_nothing_changes():
    rows = [(5, 35, 0), (12, 18, 0), (30, 45, 0)]
    assert columns(rows, "raw", 1) == [[1, 1, 1, 1, 1, 0]]
    assert columns(rows, "change", 1) == [[1, 0, 0, 0, 1, 0]]


def test_what_was_not_seen_is_no_change():
    spans = [(LONG_AGO, 15 * S, 0), (35 * S, NEVER, 1)]
    raw, change, last = (
        encode(spans, 2, GRID, name).T.tolist() for name in ("raw", "change", "last")
    )
    assert raw == [[1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    assert change == [[0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0]]
    assert last == [[0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]


@pytest.mark.parametrize("encoding", ["raw", "change", "last"])
def test_no_span_at_all(encoding):
    X = encode([], 3, GRID, encoding)
    assert X.shape == (6, 3)
    assert X.dtype == np.uint8
    assert not X.any()


def test_against_one_interval_after_the_other():
    rng = np.random.default_rng(0)
    rows = [
        (int(start), int(start + length), int(which))
        for start, length, which in zip(
            rng.integers(0, 3 * MICROSECONDS_PER_DAY, 60),
            rng.integers(0, MICROSECONDS_PER_DAY, 60),
            rng.integers(0, 4, 60),
            strict=True,
        )
    ]
    last = max(row[1] for row in rows) + 1
    grid = np.concatenate(starts_by_day(min(row[0] for row in rows), last, 7013 * S))
    raw = encode(rows, 4, grid, "raw")
    for place, (start, end) in enumerate(pairwise([*grid, last])):
        for sensor in range(4):
            on = any(a < end and (b > start or a == b == start) for a, b, w in rows if w == sensor)
            assert raw[place, sensor] == on


def test_days_begin_at_midnight():
    days = starts_by_day(MICROSECONDS_PER_DAY - 25 * S, MICROSECONDS_PER_DAY + 15 * S, 10 * S)
    assert [(day // S - 86_400).tolist() for day in days] == [[-30, -20, -10], [0, 10]]


def test_midnight_cuts_an_interval_that_does_not_fit():
    days = starts_by_day(0, 2 * MICROSECONDS_PER_DAY, 50_000 * S)
    assert [(day // S).tolist() for day in days] == [[0, 50_000], [86_400, 136_400]]


def labels(rows, names, grid=GRID):
    return label([(a * S, b * S, w) for a, b, w in rows], names, grid).tolist()


def test_the_label_that_covers_most_is_taken():
    rows = [(0, 14, 0), (14, 33, 1)]
    assert labels(rows, ["eat", "cook"]) == ["eat", "cook", "cook", "cook", "none", "none"]


def test_any_annotation_beats_none():
    assert labels([(28, 29, 0)], ["eat"]) == ["none", "none", "eat", "none", "none", "none"]


def test_the_later_of_two_interrupts():
    rows = [(0, 60, 0), (19, 41, 1)]
    names = ["sleep", "toilet"]
    assert labels(rows, names) == ["sleep", "sleep", "toilet", "toilet", "sleep", "sleep"]
    # begun at once, the shorter one interrupts
    assert labels([(0, 60, 0), (0, 10, 1)], names) == ["toilet"] + ["sleep"] * 5


def test_a_tie_goes_to_the_first_name():
    assert labels([(0, 5, 1), (5, 10, 0)], ["a", "b"])[0] == "a"


def test_no_label_at_all():
    assert labels([], []) == ["none"] * 6
