"""The paper's table of a1a, a2a and w1a: objective, training and test error for S = 10 .. 70."""

import numpy as np
import pandas as pd
import pytest

from experiments.paper.uci import (
    NAMES,
    PAPER,
    PENALTY,
    PRINTED,
    SHIFTED,
    SIZES,
    agreement,
    greedy,
    load,
    run_part,
)
from forback import select


@pytest.fixture(scope="module")
def table(data_folder):
    cache = {}

    def rows(name, method):
        if (name, method) not in cache:
            try:
                cache[name, method] = pd.DataFrame(run_part(name, method, folder=data_folder))
            except FileNotFoundError as absent:
                pytest.skip(str(absent))
        return cache[name, method]

    return rows


@pytest.mark.parametrize("method", PAPER)
@pytest.mark.parametrize("name", ["a1a", "a2a"])
def test_objectives_and_errors_are_the_printed_ones(table, name, method):
    rows = table(name, method)
    assert rows["S"].tolist() == rows["size"].tolist() == list(SIZES)
    assert agreement(rows).all(axis=None), rows


@pytest.mark.parametrize(("method", "agreeing"), [("foba-obj", 0), ("foba-gdt", 1)])
def test_with_lambda_beside_the_mean_they_are_not(data_folder, method, agreeing):
    """Of 28 objectives one is then as printed: the paper's code adds lambda to the sum."""
    found = 0
    for name in ("a1a", "a2a"):
        problem = load(name, data_folder)
        n = len(problem.train.y)
        points = greedy(problem, SIZES, method, penalty=n * PENALTY)
        printed = PRINTED[name, method][0]
        ours = np.array([n * point.value for point in points])
        found += int(np.sum(np.abs(ours - printed) <= 0.5))
    assert found == agreeing


@pytest.mark.parametrize("method", PAPER)
def test_w1a_lands_a_few_percent_above_the_printed_objectives(table, method):
    """An exact implementation does not reproduce w1a; how far off it is, is what is asserted."""
    rows = table("w1a", method)
    ratios = rows["objective"] / rows["printed_objective"]
    assert ratios.between(1.0, 1.05, inclusive="neither").all()


def test_w1a_has_the_printed_order_of_methods(table):
    one, two = (table("w1a", method) for method in PAPER)
    for measure in ("objective", "printed_objective"):
        assert (one[measure] < two[measure]).all()


@pytest.mark.parametrize("method", SHIFTED)
def test_w1a_is_as_printed_with_one_feature_more_and_a_smaller_lambda(table, method):
    """Not what the paper says: what its numbers say. One cell may depend on the last bits."""
    rows = table("w1a", method)
    assert rows["size"].tolist() == [S + 1 for S in SIZES]
    for measure in ("objective", "train_error"):
        assert agreement(rows)[measure].sum() >= len(rows) - 1, measure
    assert rows["test_error"].tolist() == pytest.approx(rows["printed_test_error"], abs=6e-4)


@pytest.mark.parametrize("name", NAMES)
def test_every_point_of_these_paths_is_optimal(table, data_folder, name):
    table(name, "foba-gdt")  # skips if the files are absent
    objective = load(name, data_folder).objective()
    path = select(objective, k=70)
    assert len(path.points[1::10]) > 7
    for point in path.points[1::10]:
        gradient = objective.gradient(point)[point.support]
        assert np.all(np.abs(gradient) <= 1e-8 * objective.gradient_scale(point.support))
