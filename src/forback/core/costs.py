"""What is bought together, and what it costs: features of one group are paid for once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forback.core.blocks import Blocks
from forback.core.types import Floats, Ints


@dataclass(frozen=True)
class Ledger:
    """Groups of candidates and their prices.

    A group (a sensor, say) is used as soon as one of its candidates is, and paid for once. What is
    in from the start costs nothing.
    """

    owner: Ints  #: the group of each candidate
    prices: Floats  #: of each group
    names: Sequence[str] | None = None  #: of each group

    def used(self, support: Ints) -> Ints:
        """The groups that these coordinates belong to, in the order of their first one."""
        owners = self.owner[support[support < len(self.owner)]]
        return np.array(list(dict.fromkeys(owners.tolist())), dtype=np.intp)

    def cost(self, support: Ints) -> float:
        """What the groups of these coordinates cost."""
        return float(self.prices[self.used(support)].sum())

    def extra(self, support: Ints, blocks: Blocks) -> Floats:
        """What each block would cost on top of these coordinates; its candidates share a group."""
        paid = np.zeros(len(self.prices), dtype=bool)
        paid[self.used(support)] = True
        owners = self.owner[blocks.coordinates[blocks.pointer[:-1]]]
        return np.where(paid[owners], 0.0, self.prices[owners])

    def name(self, group: int) -> str:
        """The name of a group, or its number where there are no names."""
        return str(group) if self.names is None else self.names[group]
