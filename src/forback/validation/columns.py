"""Checks of columns, by number or label."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from forback.core.types import ColumnLabels, Ints
from forback.validation.containers import refuse_mask, refuse_unordered
from forback.validation.scalars import can_be_hashed, check_flag


def check_columns(columns: Any, n: int, labels: ColumnLabels | None, name: str) -> Ints:
    """Return sorted column numbers.

    Parameters
    ----------
    columns : None, list of labels or numbers, mask, or mapping column -> bool
        What the user passed.
    n : int
        Number of columns.
    labels : tuple or None
        Column labels of X.
    name : str
        What messages call the argument.

    Returns
    -------
    ndarray of int
        The columns; none where `columns` is None.
    """
    if columns is None:
        return np.zeros(0, dtype=np.intp)
    if isinstance(columns, str | bytes | numbers.Number) or not isinstance(columns, Iterable):
        raise TypeError(
            f"{name} must be a list of column numbers or names, or a mask, got {columns!r}; "
            f"for one column give [{columns!r}]"
        )
    refuse_mask(columns, name)
    indexed = by_index(columns, name)
    if isinstance(indexed, Mapping) and (indexed is columns or _all_flags(indexed.values())):
        columns = [column for column, flag in indexed.items() if check_flag(flag, name)]
    elif not isinstance(columns, set | frozenset):
        refuse_unordered(columns, name)
    items = list(columns)
    if items and _all_flags(items):
        if len(items) != n:
            raise ValueError(f"{name} must be a mask of length {n}, got length {len(items)}")
        return np.flatnonzero(items)
    places = places_of(labels)
    found = [find_column(item, n, places, name) for item in items]
    if len(set(found)) < len(found):
        raise ValueError(f"{name} lists a column twice: {items!r}; a mask holds True and False")
    return np.array(sorted(found), dtype=np.intp)


def _all_flags(items: Iterable[Any]) -> bool:
    return all(isinstance(item, bool | np.bool_) for item in items)


def by_index(values: Any, name: str) -> Any:
    """Return a pandas Series as a mapping from its index; anything else unchanged."""
    if not hasattr(values, "to_dict") or getattr(values, "ndim", 0) != 1:
        return values
    if not values.index.is_unique:
        twice = values.index[values.index.duplicated()][0]
        raise ValueError(f"{name} must have an index without repetitions, got {twice!r} twice")
    return values.to_dict()


def places_of(labels: ColumnLabels | None) -> dict[Hashable, int] | None:
    """Return a mapping from label to column number; None where there are no labels."""
    return None if labels is None else {label: place for place, label in enumerate(labels)}


def find_column(
    item: Any, n: int, places: Mapping[Hashable, int] | None, name: str, noun: str = "column"
) -> int:
    """Return the number of a column, from its label where columns have labels, else its number.

    Where all labels are strings, an integer cannot be one and is a column number.

    Parameters
    ----------
    item : label or int
        What the user passed.
    n : int
        Number of columns.
    places : mapping or None
        From labels to column numbers.
    name, noun : str
        What messages call the argument and a column.

    Returns
    -------
    int
        From 0 to n - 1.
    """
    is_flag = isinstance(item, bool | np.bool_)
    if places is not None and not is_flag and can_be_hashed(item) and item in places:
        return places[item]
    shown = ", ".join(str(label) for label in list(places or ())[:6])
    shown += ", ..." if places is not None and len(places) > 6 else ""
    if isinstance(item, str):
        if places is None:
            raise ValueError(
                f"{name} names the {noun} {item!r}, but {noun}s have no names; give numbers, or "
                "pass X as a data frame"
            )
        raise ValueError(f"{name} names the {noun} {item!r}; {noun}s are {shown}")
    if places is not None and not all(isinstance(label, str) for label in places):
        raise ValueError(
            f"{name} must hold {noun} labels, got {item!r}; {noun}s are {shown}, so numbers are "
            f"labels as well. To count {noun}s from 0 pass X.to_numpy()"
        )
    if is_flag or not isinstance(item, numbers.Integral):
        raise TypeError(f"{name} must hold {noun} numbers or names, got {item!r}")
    column = int(item)
    if not 0 <= column < n:
        raise ValueError(f"{name} holds {noun} {column}; {noun}s are numbered 0 to {n - 1}")
    return column
