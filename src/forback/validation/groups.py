"""Checks of groups of columns, and of their costs."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Hashable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from forback.core.candidates import Alone, Groups
from forback.core.types import ColumnLabels, Floats, Ints
from forback.validation.columns import by_index, find_column, places_of
from forback.validation.containers import as_list, refuse_unordered
from forback.validation.scalars import can_be_hashed, check_number, is_missing

#: Larger prices could add up to infinity.
LARGEST_PRICE = 1e300


def check_groups(groups: Any, n: int, labels: ColumnLabels | None) -> list[Hashable]:
    """Return one group label per column.

    Parameters
    ----------
    groups : list of labels, or mapping
        What the user passed. A mapping is column -> label, or label -> collection of columns;
        columns that it leaves out are groups of their own.
    n : int
        Number of columns.
    labels : tuple or None
        Column labels of X.

    Returns
    -------
    list
        A hashable label for each column.
    """
    groups = by_index(groups, "groups")
    if isinstance(groups, Mapping):
        return _from_mapping(groups, n, places_of(labels))
    listed = as_list(groups, "groups", "one label per column or a mapping column -> label")
    shape = getattr(groups, "shape", (n,))
    if len(shape) != 1:
        raise ValueError(f"groups must be one label per column, shape ({n},), got shape {shape}")
    found = [_check_label(label) for label in listed]
    if len(found) != n:
        raise ValueError(f"groups must have one label per column: {n}, got {len(found)}")
    return found


def _from_mapping(
    groups: Mapping[Any, Any], n: int, places: Mapping[Hashable, int] | None
) -> list[Hashable]:
    found: list[Hashable] = [Alone(column) for column in range(n)]
    for key, value in groups.items():
        several = _lists_columns(value)
        if not isinstance(value, set | frozenset):
            refuse_unordered(value, f"groups[{key!r}]")
        if several and len(value) == 0:
            raise ValueError(f"groups gives {key!r} no columns; leave it out or list its columns")
        for column in value if several else [key]:
            try:
                place = find_column(column, n, places, "groups")
            except (TypeError, ValueError) as error:
                if not isinstance(value, tuple):
                    raise
                raise type(error)(
                    f"{error}. A tuple lists columns, as a list does; for labels that are tuples "
                    "give groups as one label per column"
                ) from error
            if not isinstance(found[place], Alone):
                raise ValueError(f"groups puts the column {column!r} into two groups")
            found[place] = _check_label(key if several else value)
    return found


def _lists_columns(value: Any) -> bool:
    """Return whether this is a list, a tuple, a set or an array, but no text."""
    holds = isinstance(value, Collection) and not isinstance(value, str | bytes)
    return holds and getattr(value, "ndim", 1) > 0


def _check_label(label: Any) -> Hashable:
    """Return a group label as Python's own type; integral floats become integers."""
    if not can_be_hashed(label):
        raise TypeError(f"groups must hold hashable labels, such as names, got {label!r}")
    if is_missing(label):
        raise ValueError(f"groups must label every column, got {label!r}")
    if isinstance(label, np.generic):
        label = label.item()
    if not isinstance(label, numbers.Number) or isinstance(label, bool | int):
        return label
    with suppress(OverflowError, TypeError, ValueError):  # infinite or complex numbers
        if label == int(label):  # type: ignore[call-overload]
            return int(label)  # type: ignore[call-overload,no-any-return]
    raise ValueError(
        f"groups must hold names or whole numbers, got the label {label!r}; prices belong in costs"
    )


def check_costs(costs: Any, groups: Groups, free: Ints) -> Floats:
    """Return a price for each group.

    Parameters
    ----------
    costs : None, list with a price per column, or mapping group -> price
        What the user passed; None means 1 for every group.
    groups : Groups
        The groups of columns.
    free : ndarray of int
        Groups whose price is 0 whatever `costs` says.

    Returns
    -------
    ndarray of float
        The prices, by group.
    """
    prices = np.full(len(groups.labels), 1.0 if costs is None else np.nan)
    for number, key, price in () if costs is None else _priced(costs, groups):
        price = check_number(price, f"costs[{key!r}]", low=0.0)
        if prices[number] != price and not np.isnan(prices[number]):
            raise ValueError(
                f"costs gives the columns of {str(groups.labels[number])!r} different prices, "
                f"{prices[number]:g} and {price:g}; a group is paid for once"
            )
        prices[number] = price
    prices[free] = 0.0
    if np.isnan(prices).any():
        missing = str(groups.labels[int(np.flatnonzero(np.isnan(prices))[0])])
        raise ValueError(f"costs has no price for {missing!r}; give one for every group")
    if prices.max(initial=0.0) > LARGEST_PRICE:
        raise ValueError(
            f"costs must be below {LARGEST_PRICE:.0e}, got {prices.max():.3g}, or their sum would "
            "overflow; divide them by a constant"
        )
    return prices


def _priced(costs: Any, groups: Groups) -> list[tuple[int, Any, Any]]:
    """Return the number of a group, what the user calls it and its price, for each that has one."""
    costs = by_index(costs, "costs")
    if isinstance(costs, Mapping):
        return [(_find_group(key, groups), key, price) for key, price in costs.items()]
    listed = as_list(costs, "costs", "one price per column or a mapping group -> price")
    if len(listed) != len(groups.group):
        raise ValueError(
            f"costs must have one price per column: {len(groups.group)}, got {len(listed)}"
        )
    return [(groups.group[j], j, price) for j, price in enumerate(listed)]


def _find_group(key: Any, groups: Groups) -> int:
    """Return the number of a group, by its label or by one of its columns."""
    if can_be_hashed(key) and key in groups.numbers:
        return groups.numbers[key]
    places = places_of(groups.columns)
    try:
        return int(groups.group[find_column(key, len(groups.group), places, "costs")])
    except (TypeError, ValueError) as error:
        raise ValueError(f"costs has a price for {key!r}, to which no column belongs") from error
