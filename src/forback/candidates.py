"""What may be chosen: columns by number or name, groups of them, and the blocks they make.

As in `forback.validation`, messages name the argument, what was met and what to do about it.
"""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forback.protocols import Blocks, Ints
from forback.validation import check_flag


def check_columns(columns: Any, n: int, names: Sequence[str] | None, name: str) -> Ints:
    """Column numbers, sorted, from names, numbers, a mask or a mapping column -> bool."""
    if columns is None:
        return np.zeros(0, dtype=np.intp)
    if isinstance(columns, str | bytes | numbers.Number) or not isinstance(columns, Iterable):
        raise TypeError(
            f"{name} must be a list of column numbers or names, or a mask; met {columns!r}. "
            f"For one column give [{columns!r}]"
        )
    columns = _by_name(columns)
    if isinstance(columns, Mapping):
        columns = [column for column, flag in columns.items() if check_flag(flag, name)]
    items = list(columns)
    if items and all(isinstance(item, bool | np.bool_) for item in items):
        if len(items) != n:
            raise ValueError(f"{name} is a mask of length {len(items)}; there are {n} columns")
        return np.flatnonzero(items)
    places = _places(names)
    found = [_column(item, n, places, name) for item in items]
    if len(set(found)) < len(found):
        raise ValueError(f"{name} lists a column twice: {items!r}; a mask holds True and False")
    return np.array(sorted(found), dtype=np.intp)


def _by_name(values: Any) -> Any:
    """A pandas Series indexed by names as a mapping; anything else as it is."""
    if hasattr(values, "to_dict") and all(isinstance(label, str) for label in values.index):
        return values.to_dict()
    return values


def _places(names: Sequence[str] | None) -> dict[str, int] | None:
    return None if names is None else {column: place for place, column in enumerate(names)}


def _column(item: Any, n: int, places: Mapping[str, int] | None, name: str) -> int:
    if isinstance(item, str):
        if places is None:
            raise ValueError(
                f"{name} names the column {item!r}, but X has no column names; give numbers, or "
                "pass X as a data frame"
            )
        if item not in places:
            raise ValueError(f"{name} names the column {item!r}, which X does not have")
        return places[item]
    if isinstance(item, bool | np.bool_) or not isinstance(item, numbers.Integral):
        raise TypeError(f"{name} must hold column numbers or names; met {item!r}")
    column = int(item)
    if not 0 <= column < n:
        raise ValueError(f"{name} holds column {column}; columns are numbered 0 to {n - 1}")
    return column


@dataclass(frozen=True)
class _Alone:
    """The label of a column that is a group of its own."""

    column: int


def check_groups(groups: Any, n: int, names: Sequence[str] | None) -> list[Hashable]:
    """One label per column, from a sequence of labels or a mapping column -> label.

    Columns that a mapping leaves out are groups of their own.
    """
    groups = _by_name(groups)
    if isinstance(groups, Mapping):
        labels: list[Hashable] = [_Alone(column) for column in range(n)]
        places = _places(names)
        for column, label in groups.items():
            labels[_column(column, n, places, "groups")] = _label(label)
        return labels
    if isinstance(groups, str | bytes) or not isinstance(groups, Iterable):
        raise TypeError(
            f"groups must be one label per column or a mapping column -> label; met {groups!r}"
        )
    shape = getattr(groups, "shape", (n,))
    if len(shape) != 1:
        raise ValueError(f"groups must be one label per column, shape ({n},); met shape {shape}")
    labels = [_label(label) for label in groups]
    if len(labels) != n:
        raise ValueError(f"groups must have one label per column: {n}; met {len(labels)}")
    return labels


def _label(label: Any) -> Hashable:
    if not isinstance(label, Hashable):
        raise TypeError(f"groups must hold hashable labels, such as names; met {label!r}")
    try:
        missing = label is None or bool(label != label)
    except TypeError:  # pandas.NA cannot even be compared
        missing = True
    if missing:
        raise ValueError(f"groups must label every column; met {label!r}")
    return label


def make_blocks(
    n_candidates: int, dim: int, *, groups: Any, always: Any, names: Sequence[str] | None
) -> tuple[Blocks, tuple[str, ...] | None]:
    """The candidates as blocks, and the blocks' names where there are any."""
    insisted = check_columns(always, n_candidates, names, "always")
    always_in = np.concatenate([insisted, np.arange(n_candidates, dim)])
    free = np.setdiff1d(np.arange(n_candidates), insisted, assume_unique=True)
    if groups is None:
        return Blocks.singles(free, always_in), None if names is None else tuple(names)
    labels = check_groups(groups, n_candidates, names)
    numbering = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    members: list[list[int]] = [[] for _ in numbering]
    for column in free:
        members[numbering[labels[column]]].append(int(column))
    filled = [number for number, block in enumerate(members) if block]
    blocks = Blocks.of(
        [np.array(members[number], dtype=np.intp) for number in filled],
        always_in,
        np.array(filled, dtype=np.intp),
    )
    return blocks, tuple(_block_name(label, names) for label in numbering)


def _block_name(label: Hashable, names: Sequence[str] | None) -> str:
    if isinstance(label, _Alone):
        return str(label.column) if names is None else names[label.column]
    return str(label)
