"""Figures from data: files that a page can show on any ground."""

import re

import pytest

from experiments.report.figures import INK, Bars, Figure, Line, Panel, Plan, draw

LINE = Line("FoBa", [1, 10, 100], [0.1, 0.2, 0.4], [0.0, 0.1, 0.3], [0.2, 0.3, 0.5], "foba-gdt")
PANEL = Panel("errors", "rows", "error", [LINE, Line("other", [1, 10], [0.3, 0.2])])
LOGS = Panel("times", "rows", "seconds", [LINE], log_x=True, log_y=True)
BARS = Bars("activities", "error", ["eating", "sleeping"], {"10": [0.1, 0.2], "15": [0.0, 0.1]})
PLAN = Plan(
    "home",
    {"kitchen": (0.0, 0.0, 4.0, 3.0)},
    ["s1", "s2", "s3"],
    [(1.0, 1.0), (2.0, 2.0), (3.0, 1.0)],
    [(0.5, 0.3, 0.0), (0.5, 0.3, 45.0), (0.5, 0.3, 90.0)],
    [["s1"], ["s3"]],
    ["first", "later"],
)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    draw(Figure("all", "Everything", [PANEL, LOGS, BARS, PLAN]), folder)
    return folder


def test_a_figure_is_a_png_and_an_svg(drawn):
    assert (drawn / "all.png").read_bytes().startswith(b"\x89PNG")
    svg = (drawn / "all.svg").read_text(encoding="utf-8")
    for text in ("errors", "times", "activities", "kitchen", "s2", "first", "later", "FoBa"):
        assert f">{text}<" in svg


def test_an_svg_takes_the_colour_of_the_text_around_it(drawn):
    svg = (drawn / "all.svg").read_text(encoding="utf-8")
    assert "currentColor" in svg
    assert INK not in svg
    assert not re.search(r"[ \t]\n", svg)


def test_the_same_figure_is_the_same_file(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        draw(Figure("bars", "Bars", [BARS]), tmp_path / name)
    for file in ("bars.png", "bars.svg"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
