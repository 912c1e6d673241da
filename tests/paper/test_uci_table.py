"""The paper's table of a1a, a2a and w1a: objective, training and test error for S = 10 .. 70."""

import numpy as np
import pytest
from experiments.uci import MEASURES, NAMES, PAPER, SHIFTED, SIZES, agreeing, agrees, load, study

from forback import select


@pytest.fixture(scope="module")
def table(data_folder):
    cache = {}

    def rows(name, method):
        if (name, method) not in cache:
            try:
                cache[name, method] = study(name, method, folder=data_folder)
            except FileNotFoundError as absent:
                pytest.skip(str(absent))
        return cache[name, method]

    return rows


@pytest.mark.parametrize("method", PAPER)
@pytest.mark.parametrize("name", ["a1a", "a2a"])
def test_objectives_and_errors_are_the_printed_ones(table, name, method):
    rows = table(name, method)
    assert [row["S"] for row in rows] == [row["size"] for row in rows] == list(SIZES)
    for row in rows:
        assert abs(row["objective"] - row["printed_objective"]) <= 1.0, row
        for measure in MEASURES:
            assert agrees(row, measure), (measure, row)
    assert agreeing(rows) == 21


@pytest.mark.parametrize("method", PAPER)
def test_w1a_lands_a_few_percent_above_the_printed_objectives(table, method):
    """An exact implementation does not reproduce w1a; how far off it is, is what is asserted."""
    ratios = np.array([row["objective"] / row["printed_objective"] for row in table("w1a", method)])
    assert np.all(ratios > 1.0)
    assert np.all(ratios < 1.05)


def test_w1a_has_the_printed_order_of_methods(table):
    for one, two in zip(table("w1a", "foba-obj"), table("w1a", "foba-gdt"), strict=True):
        assert one["objective"] < two["objective"]
        assert one["printed_objective"] < two["printed_objective"]


@pytest.mark.parametrize("method", SHIFTED)
def test_w1a_is_as_printed_with_one_feature_more_and_a_smaller_lambda(table, method):
    """Not what the paper says: what its numbers say. One cell may depend on the last bits."""
    rows = table("w1a", method)
    assert [row["size"] for row in rows] == [S + 1 for S in SIZES]
    for measure in ("objective", "train_error"):
        assert sum(agrees(row, measure) for row in rows) >= len(rows) - 1, measure
    for row in rows:
        assert row["test_error"] == pytest.approx(row["printed_test_error"], abs=6e-4)


@pytest.mark.parametrize("name", NAMES)
def test_every_point_of_these_paths_is_optimal(table, data_folder, name):
    table(name, "foba-gdt")  # skips if the files are absent
    objective = load(name, data_folder).objective()
    path = select(objective, k=70)
    assert len(path.points[1::10]) > 7
    for point in path.points[1::10]:
        gradient = objective.gradient(point)[point.support]
        assert np.all(np.abs(gradient) <= 1e-8 * objective.gradient_scale(point.support))
