"""Each format in small, with its irregular lines."""

import pytest

from forback.datasets.sensor_logs.encoding import LONG_AGO, NEVER
from forback.datasets.sensor_logs.encoding import MICROSECONDS_PER_SECOND as SECOND
from forback.datasets.sensor_logs.parsing import (
    parse_time,
    read_adlmr,
    read_kasteren,
    read_ordonez,
    read_smarthome,
)


def at(time, date="2008-11-11"):
    return parse_time(date, time)


def test_moments():
    assert parse_time("1970-01-01", "00:00:01") == SECOND
    assert parse_time("1970-01-01", "00:00:01.25") == 1_250_000
    assert parse_time("2008-11-10", "14:28:18.78605") % SECOND == 786_050


ADLMR = """\
2008-11-11\t08:00:00.5\tM01\tON
2008-11-11\t08:00:01\tM22\tOFF 2 2
2008-11-11\t08:00:02\tM02\tON 1 1
008-11-11\t08:00:03\tM01\tOF 2 7
2008-11-11\t08:00:04\tD12\tOPENv 2 7 1 6
2008-11-11\t08:00:05\tM17\tON  211
2008-11-11\t08:00:06\tI04\tABSENT 2 13 1 13 1 13
2008-11-11\t08:00:07\tM02\tON 1 13
2008-11-11\t08:00:08\tI04\tPRESENT 1 13
2008-11-11\t08:00:09\tM02\tOFF

Missing rest of the data
"""


def test_adlmr():
    record = read_adlmr(ADLMR)
    assert sorted(record.sensors) == [
        (LONG_AGO, at("08:00:01"), "M22"),  # it went off, so it was on
        (at("08:00:00.5"), at("08:00:03"), "M01"),
        (at("08:00:02"), at("08:00:09"), "M02"),  # on again while on
        (at("08:00:04"), NEVER, "D12"),
        (at("08:00:05"), NEVER, "M17"),
        (at("08:00:06"), at("08:00:08"), "I04"),
    ]
    assert record.activities == [
        (at("08:00:01"), at("08:00:02"), "-+2"),
        (at("08:00:02"), at("08:00:03"), "1+2"),
        (at("08:00:03"), at("08:00:04"), "1+7"),
        (at("08:00:04"), at("08:00:05"), "6+7"),
        (at("08:00:05"), at("08:00:06"), "6+11"),
        (at("08:00:06"), at("08:00:07"), "13+13"),
        (at("08:00:07"), at("08:00:08"), "13+13"),
        (at("08:00:08"), at("08:00:09") + 1, "13+13"),
    ]
    assert record.limits() == (at("08:00:00.5"), at("08:00:09") + 1)


def test_smarthome():
    record = read_smarthome(
        "2011-06-15 01:03:39.5 Bedroom Bedroom ON Sleep\n"
        "2011-06-15 01:03:40 Bedroom Bedroom OFF Sleep\n"
        "2011-06-15 01:04:00 OutsideDoor FrontDoor OPEN Leave_Home\n"
    )

    def on(time):
        return parse_time("2011-06-15", time)

    assert record.sensors == [
        (on("01:03:39.5"), on("01:03:40"), "Bedroom/Bedroom"),
        (on("01:04:00"), NEVER, "OutsideDoor/FrontDoor"),
    ]
    assert record.activities == [
        (on("01:03:39.5"), on("01:03:40"), "Sleep"),
        (on("01:03:40"), on("01:04:00"), "Sleep"),
        (on("01:04:00"), on("01:04:00") + 1, "Leave_Home"),
    ]


def test_ordonez():
    record = read_ordonez(
        "Start time          \tEnd time            \tLocation\tType\t\tPlace\n"
        "--------------------\t--------------------\t--------\t--------\t-----\n"
        "2011-11-28 02:27:59\t\t2011-11-28 10:18:11\t\tBed\t\t\tPressure\tBedroom\n"
        "2011-11-28 16:10:05\t\t2011-11-28 16:10:05\t\tBasin\t\tPIR\t\t\tBathroom",
        "Start time          \tEnd time            \tActivity\t\n"
        "--------------------\t--------------------\t--------\n"
        "2011-12-01 19:28:51\t\t2011-12-01 16:29:59\t\tToileting\t\n"
        "2011-12-02 12:27:47 \t2011-12-01 11:35:49\t\tBreakfast\n",
    )
    early, late = at("02:27:59", "2011-11-28"), at("10:18:11", "2011-11-28")
    basin = at("16:10:05", "2011-11-28")
    assert record.sensors == [
        (early, late, "Bed Pressure Bedroom"),
        (basin, basin, "Basin PIR Bathroom"),
    ]
    # the ends are before the starts: minutes and seconds are kept, the hour is the next that fits
    assert record.activities == [
        (at("19:28:51", "2011-12-01"), at("19:29:59", "2011-12-01"), "Toileting"),
        (at("12:27:47", "2011-12-02"), at("12:35:49", "2011-12-02"), "Breakfast"),
    ]


def test_kasteren():
    record = read_kasteren(
        "ID: sensor id (see list below)\r\n\r\nSensor IDs are: \r\n"
        "    [ 5]    'Hall-Toilet door'  \r\n    [24]    'Hall-Bedroom door' \r\n\r\n"
        "Start time          \tEnd time            \tID\tVal\r\n"
        "--------------------\t--------------------\t--\t---\r\n"
        "25-Feb-2008 00:20:14\t26-Mar-2008 00:22:57\t24\t1\r\n"
        "25-Feb-2008 09:36:43\t25-Feb-2008 09:37:04\t5\t1\r\nLength: 2",
        "activity id list:\r\n4: 'use toilet'\r\n10:'go to bed'\r\n\r\n"
        "25-Feb-2008 00:22:46\t25-Feb-2008 09:34:12\t10\r\nLength: 1",
    )
    day = "2008-02-25"
    assert record.sensors == [
        (at("00:20:14", day), at("00:22:57", "2008-03-26"), "Hall-Bedroom door"),
        (at("09:36:43", day), at("09:37:04", day), "Hall-Toilet door"),
    ]
    assert record.activities == [(at("00:22:46", day), at("09:34:12", day), "go to bed")]


@pytest.mark.parametrize(
    ("reader", "texts", "name"),
    [
        (read_adlmr, ["2008-11-11\t08:00:00\tM01\tMAYBE 1 1"], "casas-adlmr"),
        (read_adlmr, ["2008-11-11\t08:00:00\tM01\tON 1 1 2"], "casas-adlmr"),
        (read_adlmr, ["2008-11-11\t08:00:00\tM01\tON 3 1"], "casas-adlmr"),
        (read_adlmr, ["2008-11-11\tM01"], "casas-adlmr"),
        (read_smarthome, ["2011-06-15 25:00:00 A B ON Sleep"], "casas-al-smarthome"),
        (read_smarthome, ["2011-06-15 01:00:00 A B ON"], "casas-al-smarthome"),
        (read_ordonez, ["2011-11-28 02:27:59", ""], "ordonez-adl"),
        (read_kasteren, ["25-Foo-2008 00:20:14\t25-Feb-2008 00:22:57\t24\t1", ""], "van-kasteren"),
        (read_kasteren, ["25-Feb-2008 00:20:14\t25-Feb-2008 00:22:57\t24\t1", ""], "van-kasteren"),
    ],
)
def test_other_lines_are_errors(reader, texts, name):
    with pytest.raises(ValueError, match=rf"{name}.*: line 1 cannot be read: '"):
        reader(*texts)
