"""What may be chosen: groups of columns, and the blocks, names and costs made of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

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
    labels : Sequence[Hashable]
        What the user calls each group: its label, or the name or number of its one column.
    numbers : Mapping[Hashable, int]
        The numbers of groups by the labels that the user gave them.
    columns : ColumnLabels | None
        The labels of the columns, where they have any.
    """

    group: Ints
    labels: Sequence[Hashable]
    numbers: Mapping[Hashable, int]
    columns: ColumnLabels | None

    @property
    def names(self) -> tuple[str, ...] | None:
        """A name for each group, where groups have labels or columns have names."""
        return tuple(map(str, self.labels)) if self.numbers or self.columns else None


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


def make_blocks(by: str, group_of: Ints, free: Ints, always: Ints) -> Blocks:
    """A block of each free candidate, or of each group that has any, under the group's number."""
    if by == "feature" or np.array_equal(group_of, np.arange(len(group_of))):
        return Blocks.singles(free, always)
    order = free[np.argsort(group_of[free], kind="stable")]
    filled, first = np.unique(group_of[order], return_index=True)
    members = np.split(order, first[1:]) if len(order) else []
    return Blocks.of(members, always, filled)
