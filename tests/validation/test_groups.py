"""Groups of columns and their prices: the ways to give them, and the ways to get them wrong."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from forback import select
from forback.objectives import LeastSquares

X = np.random.default_rng(0).normal(size=(30, 4))
Y = X[:, 0] + 0.1 * X[:, 1]
PAIRS = ["a", "a", "b", "b"]

BAD = [
    ({"groups": [0, 1]}, ValueError, "groups must have one label per column: 4, got 2"),
    ({"groups": "abcd"}, TypeError, "groups must be one label per column"),
    ({"groups": 3}, TypeError, "groups must be one label per column"),
    ({"groups": np.zeros((2, 2))}, ValueError, r"groups .*shape \(2, 2\)"),
    ({"groups": [0, 1, None, 2]}, ValueError, "groups must label every column, got None"),
    ({"groups": [0, 1, np.nan, 2]}, ValueError, "groups must label every column, got nan"),
    ({"groups": [0, 1, pd.NA, 2]}, ValueError, "groups must label every column, got <NA>"),
    ({"groups": [[0], [1], [2], [3]]}, TypeError, "groups must hold hashable labels"),
    ({"groups": [0.5, 1, 1, 2]}, ValueError, "whole numbers, got the label 0.5; prices belong"),
    ({"groups": {0: ("column", 1)}}, ValueError, "A tuple lists columns.*one label per column"),
    ({"groups": {0: (1, 9)}}, ValueError, "column 9.*A tuple lists columns"),
    ({"groups": {7: "a"}}, ValueError, "groups holds column 7; columns are numbered 0 to 3"),
    ({"groups": {"a": [0, 1], "b": []}}, ValueError, "groups gives 'b' no columns; leave it out"),
    ({"groups": {"a": [0, 1], "b": [1]}}, ValueError, "groups puts the column 1 into two groups"),
    ({"groups": {"a": [0, 0]}}, ValueError, "groups puts the column 0 into two groups"),
    ({"groups": {"a": [0, 4]}}, ValueError, "groups holds column 4; columns are numbered 0 to 3"),
    ({"groups": {"a": ["tap"]}}, ValueError, "the column 'tap', but columns have no names"),
    ({"groups": [("a", [1])] * 4}, TypeError, r"hashable labels.*got \('a', \[1\]\)"),
    ({"groups": {*"abcd"}}, TypeError, "groups must be a list or an array, got a set"),
    ({"costs": [1, 2]}, ValueError, "costs must have one price per column: 4, got 2"),
    ({"costs": 3}, TypeError, "costs must be one price per column or a mapping .*got 3"),
    ({"costs": np.array(3)}, TypeError, r"costs must be one price per column.*got array\(3\)"),
    ({"costs": "1111"}, TypeError, "costs must be one price per column .*got '1111'"),
    ({"costs": {1, 2, 3, 4}}, TypeError, "costs must be a list or an array, got a set"),
    ({"costs": np.ones((4, 2))}, TypeError, r"costs\[0\] must be a number"),
    ({"costs": [1, -1, 1, 1]}, ValueError, r"costs\[1\] must lie in \[0, inf\), got -1"),
    ({"costs": [1, np.nan, 1, 1]}, ValueError, r"costs\[1\] must lie .*got nan"),
    ({"costs": [1, 1, np.inf, 1]}, ValueError, r"costs\[2\] must lie .*got inf"),
    ({"costs": [1, 1, None, 1]}, TypeError, r"costs\[2\] must be a number, got None"),
    ({"costs": {}}, ValueError, "costs has no price for '0'; give one for every group"),
    ({"costs": {"a": 1}, "groups": PAIRS}, ValueError, "costs has no price for 'b'; give one"),
    ({"costs": {"a": 1, "b": 1, "c": 1}, "groups": PAIRS}, ValueError, "price for 'c', to which"),
    ({"costs": {"a": 1, "b": 1, 4: 1}, "groups": PAIRS}, ValueError, "price for 4, to which no"),
    ({"costs": {"a": 1, "b": "x"}, "groups": PAIRS}, TypeError, r"costs\['b'\] must be a number"),
    ({"costs": [1, 2, 1, 1], "groups": PAIRS}, ValueError, "'a' different prices, 1 and 2"),
    ({"costs": {0: 1, 1: 2, "b": 1}, "groups": PAIRS}, ValueError, "'a' different prices, 1 and"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD)
def test_bad_groups_and_prices_are_named(options, error, message):
    given = repr(options)
    with pytest.raises(error, match=message):
        select(LeastSquares(X, Y), **options)
    assert repr(options) == given


@pytest.mark.parametrize("label", [np.longdouble(0.5), Decimal("0.5"), Fraction(1, 2), 1j, np.inf])
def test_a_label_is_no_fraction_of_any_kind(label):
    with pytest.raises(ValueError, match=r"^groups must hold names or whole numbers"):
        select(LeastSquares(X, Y), 1, groups=[label, 1, 1, 1])


def test_groups_as_mappings():
    for several in ((0, 1), [0, 1], {0, 1}, np.array([0, 1]), range(2), pd.Index([0, 1])):
        path = select(LeastSquares(X, Y), groups={"both": several, "rest": (2, 3)})
        assert path.group_costs.group_of.tolist() == [0, 0, 1, 1]


def test_names_that_a_frame_does_not_have_are_named():
    objective = LeastSquares(pd.DataFrame(X, columns=[*"wxyz"]), Y)
    with pytest.raises(ValueError, match="groups names the column 'v'; columns are"):
        select(objective, groups={"one": ["w", "v"]})
    with pytest.raises(ValueError, match="costs has a price for 'v', to which no column belongs"):
        select(objective, costs={"v": 1})
    with pytest.raises(ValueError, match="costs has no price for 'x'"):
        select(objective, costs={"w": 1, "y": 2, "z": 3})
    path = select(objective, costs={"w": 1, "y": 2, "z": 3}, always=["x"])
    assert path.group_costs.prices.tolist() == [1, 0, 2, 3]


def test_groups_and_prices_may_be_given_in_many_ways():
    objective = LeastSquares(pd.DataFrame(X, columns=[*"wxyz"]), Y)
    given = [
        (["p", "q", "p", "r"], {"p": 2, "q": 1, "r": 3}),
        (np.array(["p", "q", "p", "r"]), np.array([2, 1, 2, 3])),
        ({"w": "p", "x": "q", "y": "p", "z": "r"}, pd.Series({"p": 2, "r": 3, "q": 1})),
        ({"p": ["w", "y"], "q": ["x"], "r": {"z"}}, [2, 1, 2.0, 3]),
        ({"p": pd.Index(["w", "y"]), "q": range(1, 2), "r": pd.Series(["z"])}, (2, 1, 2, 3)),
        ({"p": np.array([0, 2]), "q": ["x"], "r": {"z": 1}.keys()}, {"y": 2, 1: 1, "r": 3}),
        (pd.Series({"w": "p", "x": "q", "y": "p", "z": "r"}), {"w": 2, "x": 1, "z": 3, "p": 2}),
    ]
    for groups, costs in given:
        path = select(objective, groups=groups, costs=costs, by="feature")
        assert path.group_costs.group_of.tolist() == [0, 1, 0, 2]
        assert path.group_costs.prices.tolist() == [2, 1, 3]
        assert path.group_costs.names == ("p", "q", "r")
    # A column outside every group, and one whose name is a group's.
    path = select(objective, groups={"w": ["y", "z"]}, costs={0: 4, "x": 2, "y": 3})
    assert path.group_costs.group_of.tolist() == [0, 1, 2, 2]
    assert path.group_costs.names == ("w", "x", "w")
    assert path.group_costs.prices.tolist() == [4, 2, 3]
