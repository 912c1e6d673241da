"""What may be chosen: groups of columns, and the blocks, names and costs made of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from forback.core.blocks import Blocks
from forback.core.costs import Ledger
from forback.core.types import ColumnLabels, Ints


@dataclass(frozen=True)
class Alone:
    """The label of a column that is a group of its own."""

    column: int


@dataclass(frozen=True)
class Groups:
    """Which group each column is in; by default every column is one of its own."""

    group: Ints  #: the number of each column's group, in order of first appearance
    labels: Mapping[Hashable, int] | None  #: their numbers by label, where there are labels
    columns: ColumnLabels | None  #: the labels of the columns, where they have any

    @cached_property
    def _in_order(self) -> list[Hashable]:
        return list(self.labels or ())

    @property
    def count(self) -> int:
        """The number of groups."""
        return len(self.group) if self.labels is None else len(self.labels)

    @cached_property
    def names(self) -> tuple[str, ...] | None:
        """A name for each group, where there are labels or columns have names."""
        if self.labels is None:
            return None if self.columns is None else tuple(map(str, self.columns))
        return tuple(str(self.label(number)) for number in range(self.count))

    def name(self, number: int) -> str:
        """The name of a group, or its number."""
        return str(number) if self.names is None else self.names[number]

    def label(self, number: int) -> Hashable:
        """What the user calls a group: its label, or the name or number of its one column."""
        if self.labels is None:
            return number if self.columns is None else self.columns[number]
        label = self._in_order[number]
        if not isinstance(label, Alone):
            return label
        return label.column if self.columns is None else self.columns[label.column]


def cross_names(names: ColumnLabels | None, width: int, labels: Iterable[Any]) -> tuple[str, ...]:
    """A name for each of `width` columns with each label: column by column, "age:setosa"."""
    columns = range(width) if names is None else names
    return tuple(f"{column}:{label}" for column, label in product(columns, labels))


@dataclass(frozen=True)
class Candidates:
    """What may be chosen, under which names, and what it costs."""

    blocks: Blocks
    names: Sequence[str] | None  #: of the blocks, by the number that a Step reports
    ledger: Ledger
    by: str  #: "group" or "feature"


def group_blocks(owner: Ints, free: Ints, always: Ints) -> Blocks:
    """A block of each group that has free candidates, reported under the group's number."""
    order = free[np.argsort(owner[free], kind="stable")]
    filled, first = np.unique(owner[order], return_index=True)
    members = np.split(order, first[1:]) if len(order) else []
    return Blocks.of(members, always, filled)
