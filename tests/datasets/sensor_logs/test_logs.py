"""The real logs: their known figures, and the public function."""

import numpy as np
import pytest

from forback.datasets import load_sensor_log
from forback.datasets.download import SOURCES, read
from forback.datasets.sensor_logs.encoding import LONG_AGO, NEVER
from forback.datasets.sensor_logs.encoding import MICROSECONDS_PER_SECOND as SECOND
from forback.datasets.sensor_logs.load import READERS, assemble
from forback.datasets.sensor_logs.parsing import Record, read_adlmr, read_kasteren, read_ordonez

#: name -> sensors, activities, sequences
FIGURES = {
    "casas-al-smarthome": (12, 30, 30),
    "ordonez-a": (12, 9, 15),
    "ordonez-b": (12, 10, 23),
    "van-kasteren-2008": (14, 7, 28),
}


@pytest.fixture
def texts(data_folder):
    return lambda name: [read(source, data_folder) for source in SOURCES[name]]


@pytest.mark.parametrize(
    ("name", "reader", "n_spans", "n_activities"),
    [
        ("ordonez-a", read_ordonez, 409, 248),
        ("ordonez-b", read_ordonez, 2334, 493),
        ("van-kasteren-2008", read_kasteren, 1319, 245),
    ],
)
def test_every_row_is_read(texts, name, reader, n_spans, n_activities):
    record = reader(*texts(name))
    assert len(record.sensors) == n_spans
    assert len(record.activities) == n_activities
    assert all(start <= end for start, end, _ in record.sensors)
    assert all(start < end for start, end, _ in record.activities)


@pytest.mark.parametrize("name", list(FIGURES))
@pytest.mark.parametrize("encoding", ["raw", "change", "last"])
def test_logs_by_day(data_folder, name, encoding):
    log = load_sensor_log(name, interval=300.0, encoding=encoding, folder=data_folder)
    n_sensors, _, n_days = FIGURES[name]
    assert log.X.shape == (len(log.y), n_sensors)
    assert log.X.dtype == np.uint8
    assert len(log.sensor_names) == n_sensors
    assert log.lengths.sum() == len(log.y) == len(log.timestamps)
    assert len(log.lengths) == n_days
    first = np.concatenate([[0], np.cumsum(log.lengths)[:-1]])
    days = log.timestamps.astype("datetime64[D]")
    assert (log.timestamps[first[1:]] == days[first[1:]]).all()
    assert len(np.unique(days)) == n_days
    assert (np.diff(log.timestamps) == np.timedelta64(300, "s")).all()
    if encoding == "last":
        assert (log.X.sum(axis=1) <= 1).all()


@pytest.mark.parametrize("name", list(FIGURES))
def test_labels_of_short_intervals(data_folder, name):
    log = load_sensor_log(name, interval=20.0, folder=data_folder)
    assert len(set(log.y) - {"none"}) == FIGURES[name][1]
    # Only the two logs of CASAS are annotated without a gap.
    assert ("none" in log.y) == (name != "casas-al-smarthome")


def test_the_first_rows_of_van_kasteren(data_folder):
    log = load_sensor_log("van-kasteren-2008", folder=data_folder)
    assert str(log.timestamps[0]) == "2008-02-25T00:20:00.000"
    # The bedroom door is open from 00:20:14 to 00:22:57; the person goes to bed at 00:22:46.
    door = log.sensor_names.index("Hall-Bedroom door")
    assert log.X[:5, door].tolist() == [1, 1, 1, 0, 0]
    assert log.X[:5].sum() == 3
    assert log.y[:5].tolist() == ["none", "none", "go to bed", "go to bed", "go to bed"]
    change = load_sensor_log("van-kasteren-2008", encoding="change", folder=data_folder)
    assert change.X[:5, door].tolist() == [1, 0, 1, 0, 0]
    last = load_sensor_log("van-kasteren-2008", encoding="last", folder=data_folder)
    assert last.X[:5, door].tolist() == [1, 1, 1, 1, 1]


def test_a_visit_interrupts_a_night(data_folder):
    log = load_sensor_log("van-kasteren-2008", interval=10.0, folder=data_folder)
    # From 03:13:40 to 03:14:41 within a night.
    start = np.datetime64("2008-02-26T03:13:30")
    rows = np.searchsorted(log.timestamps, start + np.array([0, 10, 60, 70]))
    assert log.y[rows].tolist() == ["go to bed", "use toilet", "use toilet", "go to bed"]


def test_adlmr_has_a_sequence_for_each_file(data_folder, texts):
    log = load_sensor_log("casas-adlmr", interval=5.0, folder=data_folder)
    assert len(log.lengths) == 26
    assert log.lengths.sum() == len(log.y) == len(log.X)
    kinds = [name[0] for name in log.sensor_names]
    assert (kinds.count("M"), kinds.count("D"), kinds.count("I")) == (27, 8, 2)
    assert log.X.any(axis=0).all()
    tasks = {task for label in set(log.y) - {"none"} for task in label.split("+")}
    assert tasks - {"-"} == {str(task) for task in range(1, 16)}
    first = np.concatenate([[0], np.cumsum(log.lengths)[:-1]])
    assert str(log.timestamps[0]) == "2008-11-10T14:28:17.986"
    assert (np.diff(log.timestamps[first]) > np.timedelta64(0, "ms")).all()


def test_adlmr_events_are_all_read(texts):
    files = texts("casas-adlmr")
    lines = [line for text in files for line in text.splitlines() if line.strip()]
    assert len(lines) == 17_235
    records = [read_adlmr(text) for text in files]
    # Every event with a label starts a stretch of one, but for those at the same moment.
    n_marks = sum(len(record.activities) for record in records)
    assert 17_235 - 1 - 3 - 40 <= n_marks <= 17_235 - 1 - 3
    assert all(end > LONG_AGO for record in records for _, end, _ in record.sensors)


def test_assembling_two_records_by_hand():
    one = Record([(2 * SECOND, 12 * SECOND, "b")], [(0, 15 * SECOND, "eat")])
    two = Record([(LONG_AGO, 4 * SECOND, "a"), (11 * SECOND, NEVER, "b")], [(0, SECOND, "cook")])
    grid = [np.array([0, 10 * SECOND])]
    log = assemble([one, two], [grid, grid], "raw")
    assert log.sensor_names == ("a", "b")
    assert log.X.tolist() == [[0, 1], [0, 1], [1, 0], [0, 1]]
    assert log.y.tolist() == ["eat", "eat", "cook", "none"]
    assert log.lengths.tolist() == [2, 2]
    change = assemble([one, two], [grid, grid], "change")
    assert change.X.tolist() == [[0, 1], [0, 1], [1, 0], [0, 1]]
    last = assemble([one, two], [grid, grid], "last")
    assert last.X.tolist() == [[0, 1], [0, 1], [1, 0], [0, 1]]  # the second record starts anew


def test_every_log_has_a_reader_and_files():
    assert set(READERS) == set(SOURCES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "aruba"}, r"name must be one of \['casas-adlmr', .*'van-kasteren-2008'\], got"),
        (
            {"encoding": "pulse"},
            r"encoding must be one of \['change', 'last', 'raw'\], got 'pulse'",
        ),
        ({"interval": 0.0}, r"interval must lie in \[0.1, 86400\)"),
        ({"interval": -60.0}, "interval must lie in"),
        ({"interval": 86_400.0}, "interval must lie in"),
    ],
)
def test_bad_values_are_named(arguments, message):
    arguments = {"name": "ordonez-a"} | arguments
    with pytest.raises(ValueError, match=message):
        load_sensor_log(**arguments)


def test_a_bad_type_is_named():
    with pytest.raises(TypeError, match="interval must be a number"):
        load_sensor_log("ordonez-a", interval="60")
