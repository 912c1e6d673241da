"""Rows on their way to a page: written, read, averaged and judged."""

import numpy as np
import pandas as pd
import pytest

from experiments.study import (
    beyond_chance,
    f_measure,
    mean_line,
    read_rows,
    seven_digits,
    verdict,
    write_rows,
)


def test_what_is_read_is_what_was_written(tmp_path):
    rows = [
        {"a": 1, "b": 0.1, "c": "None", "d": True, "f": 7},
        {"a": 2, "b": 1e-300, "d": False, "e": float("inf")},
    ]
    write_rows(rows, tmp_path / "rows.csv")
    text = (tmp_path / "rows.csv").read_text(encoding="utf-8")
    assert text.splitlines()[1] == "1,0.1,None,True,7,"
    first, second = read_rows(tmp_path / "rows.csv").to_dict("records")
    assert {key: first[key] for key in "abcdf"} == rows[0]
    assert {key: second[key] for key in "abde"} == rows[1]
    assert pd.isna(first["e"])
    assert pd.isna(second["c"])


def test_lines_of_means():
    rows = pd.DataFrame({"x": [2, 1, 1], "y": [1.0, 3.0, 5.0]})
    line = mean_line("m", rows, "x", "y")
    assert (line.x, line.y) == ([1, 2], [4.0, 1.0])
    assert line.low == pytest.approx([2.0, 1.0])


def test_f_measure():
    one, two = np.array([1, 2, 3]), np.array([2, 3, 4, 5])
    assert f_measure(one, two) == pytest.approx(4 / 7)
    assert f_measure(one, one) == 1.0
    assert f_measure(np.zeros(0, np.intp), two) == 0.0
    assert f_measure({(0, 1), (0, 2)}, {(0, 1), (1, 2)}) == 0.5


def test_chance_is_within_two_standard_errors():
    assert beyond_chance(pd.Series([1.0, 1.1, 0.9])) == 1
    assert beyond_chance(pd.Series([-1.0, -1.1, -0.9])) == -1
    assert beyond_chance(pd.Series([3.0, -1.0, -1.0])) == 0
    assert beyond_chance(pd.Series([0.0, 0.0])) == 0
    assert beyond_chance(pd.Series([0.1])) == 1


def test_a_verdict_is_partly_where_answers_differ():
    assert verdict(True, True) is True
    assert verdict(True, False) is None
    assert verdict(False, False) is False


def test_numbers_are_cut_to_seven_digits():
    assert seven_digits(np.float64(1 / 3)) == 0.3333333
