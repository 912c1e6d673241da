"""Supports made from supports: with more blocks, with fewer, within what an answer may be."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from forback.core.blocks import Blocks
from forback.core.objective import Objective
from forback.core.point import Move, Point
from forback.core.types import Floats, Ints
from forback.selection.budget import Limits
from forback.selection.ties import leading

#: A support grows by this share of itself from fit to fit, where it need not grow one by one.
GROWTH = 0.25


class Start(NamedTuple):
    """A support, as exchanges start from it and lead to it.

    Attributes
    ----------
    name : str
        Where it comes from, as a path tells it.
    point : Point
    entered : list of int
        Its blocks in the order in which they came in.
    """

    name: str
    point: Point
    entered: list[int]

    def after(self, move: Move) -> Start:
        """Return the support after an exchange."""
        stayed = [block for block in self.entered if block not in move.left]
        return Start(self.name, move.point, [*stayed, *move.came])


@dataclass
class Supports:
    """How supports are made from one another.

    Attributes
    ----------
    objective : Objective
    blocks : Blocks
    limits : Limits
        What an answer may be.
    fits : int
        How many fits were made.
    max_fits : int, optional
        How many may be made before refinement ends.
    """

    objective: Objective
    blocks: Blocks
    limits: Limits
    fits: int = 0
    max_fits: int | None = None

    @property
    def are_spent(self) -> bool:
        """Whether as many fits were made as may be."""
        return self.max_fits is not None and self.fits >= self.max_fits

    def fit(self, near: Point, size: int, *, out: Iterable[int], into: Iterable[int]) -> Point:
        """Return the minimiser once some blocks have left, and others have come."""
        self.fits += 1
        support = near.support
        if gone := [self.blocks[block] for block in out]:
            stays = np.ones(len(support), dtype=bool)
            stays[np.searchsorted(support, np.concatenate(gone))] = False
            support = support[stays]
        if fresh := [self.blocks[block] for block in into]:
            support = np.sort(np.concatenate([support, *fresh]))
        return self.objective.minimise(support, near).of_size(size)

    def exchanged(
        self, here: Start, left: list[int], came: list[int], promise: float, n_exact: int = 0
    ) -> Move:
        """Return the move that lets blocks leave for others."""
        size = len(here.entered) + len(came) - len(left)
        point = self.fit(here.point, size, out=left, into=came)
        change = here.point.value - point.value
        return Move(
            "exchange", came[0], promise, point, change, n_exact, left=tuple(left), came=tuple(came)
        )

    def without(self, here: Start, out: Collection[int]) -> Start:
        """Let blocks leave."""
        stayed = [block for block in here.entered if block not in out]
        return here._replace(
            point=self.fit(here.point, len(stayed), out=out, into=()), entered=stayed
        )

    def with_more(self, here: Start, new: list[int]) -> Start:
        """Let blocks come in."""
        entered = [*here.entered, *new]
        return here._replace(
            point=self.fit(here.point, len(entered), out=(), into=new), entered=entered
        )

    def promises(
        self, here: Start, banned: Collection[int] = (), *, affordable: bool = True
    ) -> Floats:
        """Return what each block promises that may come; minus infinity for the others."""
        gains = np.array(self.objective.promise(here.point, self.blocks), dtype=np.float64)
        gains[here.entered] = gains[[*banned]] = -np.inf
        if self.limits.cost is not None:
            gains[gains <= self.objective.resolution(here.point)] = -np.inf
        if affordable:
            gains[~self.limits.affordable(here.point)] = -np.inf
        return np.nan_to_num(gains, nan=-np.inf, neginf=-np.inf)

    def grown(
        self,
        here: Start,
        size: int,
        *,
        growth: float = GROWTH,
        banned: Collection[int] = (),
        per_price: bool = False,
    ) -> Start:
        """Let the most promising blocks in that can be afforded, several at a time."""
        while len(here.entered) < size:
            gains = self.promises(here, banned)
            if per_price:
                gains = self.limits.per_price(gains)
            count = min(size - len(here.entered), max(1, int(growth * max(1, len(here.entered)))))
            new = [block for block in leading(gains, count).tolist() if gains[block] > -np.inf]
            new = self.limits.affordable_together(here.point, new)
            if not new:
                break
            here = self.with_more(here, new)
        return here

    def reduced(self, here: Start, size: int) -> Start:
        """Let blocks leave, each time the one that costs least after a refit, down to a size."""
        while len(here.entered) > size:
            order = sorted(here.entered)
            some = self.blocks.take(order)
            places = self.objective.cheapest_removals(here.point, some, len(order) - size)
            here = self.without(here, {order[int(place)] for place in places})
        return here

    def within_limits(self, here: Start, keep: Collection[int] = ()) -> Start:
        """Let what costs most for what it does leave, and then what can be afforded come in.

        The groups of some blocks are kept.
        """
        while not self.limits.can_afford(here.point):
            out = self._dearest(here, keep)
            if not out:
                break
            here = self.without(here, out)
        here = self.reduced(here, self.limits.size)
        if self.limits.cost is None:
            return here
        return self.grown(here, self.limits.size, growth=0.0)

    def _dearest(self, here: Start, keep: Collection[int]) -> list[int]:
        """The blocks of the group whose price is highest for what its removal costs."""
        kept = self.limits.groups_of(keep)
        groups = self.limits.groups_of(here.entered)
        groups = {group: of for group, of in groups.items() if group not in kept}
        if not groups:
            return []
        prices = self.limits.prices(list(groups))
        together = [np.concatenate([self.blocks[block] for block in of]) for of in groups.values()]
        own = Blocks.of(together, self.blocks.always)
        costs = np.maximum(self.objective.increase_if_removed(here.point, own).values, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            worth = np.where(prices > 0.0, costs / prices, np.inf)
        return list(groups.values())[int(np.argmin(worth))]

    def refilled(self, here: Start, out: list[int], banned: Collection[int]) -> Start:
        """Let blocks leave, and others in one at a time, but not those banned."""
        left = self.without(here, out)
        return self.grown(left, self.limits.size, growth=0.0, banned=banned)

    def is_lower(self, here: Start, there: Start) -> bool:
        """Whether Q is lower here by more than rounding."""
        return here.point.value < there.point.value - self.objective.resolution(there.point)

    def coordinates(self, entered: Iterable[int]) -> Ints:
        """Return the coordinates of blocks, those that are always in before them."""
        parts = (self.blocks[block] for block in entered)
        return np.concatenate([self.blocks.always, *parts])
