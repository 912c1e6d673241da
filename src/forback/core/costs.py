"""GroupCosts: what is bought together, and what it costs. A group is paid for once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from forback.core.blocks import Blocks
from forback.core.types import Floats, Ints


@dataclass(frozen=True)
class GroupCosts:
    """Groups of candidates and their prices.

    A group (a sensor, say) is in use as soon as one of its candidates is, and paid for once. What
    is in from the start costs nothing.

    Attributes
    ----------
    group_of : int array
        The group of each candidate.
    prices : float array
        The price of each group.
    names : sequence of str or None
        The name of each group.
    """

    group_of: Ints
    prices: Floats
    names: Sequence[str] | None = None

    def used(self, support: Ints) -> Ints:
        """Return the groups that some coordinates belong to, in the order of their first one."""
        candidates = support[support < len(self.group_of)]
        if self._are_single:
            return candidates
        groups = self.group_of[candidates]
        return np.array(list(dict.fromkeys(groups.tolist())), dtype=np.intp)

    @cached_property
    def _are_single(self) -> bool:
        """Whether each candidate is a group of its own."""
        return np.array_equal(self.group_of, np.arange(len(self.group_of)))

    def cost(self, support: Ints) -> float:
        """Return what the groups of some coordinates cost."""
        return float(self.prices[self.used(support)].sum())

    def extra(self, support: Ints, blocks: Blocks) -> Floats:
        """Return what each block would cost on top of a support; its candidates share a group."""
        paid = np.zeros(len(self.prices), dtype=bool)
        paid[self.used(support)] = True
        groups = self.group_of[blocks.firsts]
        return np.where(paid[groups], 0.0, self.prices[groups])

    def name(self, group: int) -> str:
        """Return the name of a group, or its number where there are no names."""
        return str(group) if self.names is None else self.names[group]
