"""What may be chosen: groups of columns, and the blocks, names and costs made of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from forback.core.blocks import Blocks
from forback.core.costs import GroupCosts
from forback.core.features import Features
from forback.core.types import ColumnLabels, Ints


@dataclass(frozen=True)
class Alone:
    """The label of a column that is a group of its own."""

    column: int


@dataclass(frozen=True)
class Groups:
    """Which group each column is in; by default every column is one of its own.

    Attributes
    ----------
    group : Ints
        The number of each column's group, in order of first appearance.
    labels : Mapping[Hashable, int] | None
        Their numbers by label, where there are labels.
    columns : ColumnLabels | None
        The labels of the columns, where they have any.
    """

    group: Ints
    labels: Mapping[Hashable, int] | None
    columns: ColumnLabels | None

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


@dataclass(frozen=True)
class Candidates:
    """What may be chosen, under which names, and what it costs.

    Attributes
    ----------
    blocks : Blocks
        What enters and leaves together.
    names : sequence of str or None
        Names of the blocks, by the number that a Step reports.
    group_costs : GroupCosts
        Which group each candidate belongs to, and what groups cost.
    by : {"group", "feature"}
        Whether blocks are groups or single candidates.
    features : Features
        Which column of X each candidate belongs to.
    groups : Groups
        Which group each column belongs to, and what groups are called.
    """

    blocks: Blocks
    names: Sequence[str] | None
    group_costs: GroupCosts
    by: str
    features: Features
    groups: Groups

    def columns(self, block: int) -> tuple[int, ...]:
        """Return the columns of X that a block consists of."""
        return tuple(self.features.columns_of(self.blocks[block]).tolist())


def group_blocks(owner: Ints, free: Ints, always: Ints) -> Blocks:
    """A block of each group that has free candidates, reported under the group's number."""
    order = free[np.argsort(owner[free], kind="stable")]
    filled, first = np.unique(owner[order], return_index=True)
    members = np.split(order, first[1:]) if len(order) else []
    return Blocks.of(members, always, filled)
