"""Budgets: a rule that is kept to what its picks may cost, and what an answer may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forback.core.blocks import Blocks
from forback.core.costs import GroupCosts
from forback.core.objective import Objective, Scores
from forback.core.point import Point
from forback.core.rule import Rule
from forback.core.status import Ending, StopReason
from forback.core.tolerances import BUDGET_RTOL
from forback.core.types import Floats, Ints

#: What becomes of candidates that cannot be afforded: the run ends at the first of them that is the
#: best; they are passed over; or the latter as long as a group not yet in use can be afforded, and
#: then the former.
STOP, PASS, PASS_UNTIL_SPENT = UNAFFORDABLE = ("stop", "pass", "pass-until-spent")


@dataclass(frozen=True)
class WithinBudget:
    """Another rule, kept to what its picks may cost.

    Attributes
    ----------
    rule : Rule
    group_costs : GroupCosts
    budget : float
    unaffordable : {"stop", "pass", "pass-until-spent"}
    """

    rule: Rule
    group_costs: GroupCosts
    budget: float
    unaffordable: str

    @property
    def threshold(self) -> float:
        """The threshold of the other rule."""
        return self.rule.threshold

    def refuses(self, point: Point, blocks: Blocks, block: int, score: float) -> Ending | None:
        """Return why the run ends although `block` is the best candidate; None if it goes on."""
        spent = self.group_costs.cost(point.support)
        money = {"remaining": max(self.budget - spent, 0.0), "budget": self.budget}
        affordable, passes = self._affordable(point, blocks)
        outside = affordable[~np.isin(blocks.firsts, point.support)]
        if passes and not outside.any():
            return StopReason.NOTHING_AFFORDABLE.because(**money)
        if passes and score == -np.inf and not outside.all():
            return StopReason.NOTHING_AFFORDABLE_HELPS.because(**money)
        if passes or affordable[block] or score == -np.inf:
            return self.rule.refuses(point, blocks, block, score)
        price = self.group_costs.extra(point.support, blocks)[block]
        name = self.group_costs.name(int(self.group_costs.group_of[blocks.firsts[block]]))
        return StopReason.UNAFFORDABLE.because(name=name, price=price, **money)

    def goodness(
        self, objective: Objective, point: Point, blocks: Blocks, *, only_best: bool = False
    ) -> Scores:
        """Return the goodness by the other rule; minus infinity for what is passed over."""
        mask, passes = self._affordable(point, blocks)
        affordable = np.flatnonzero(mask)
        if not passes or len(affordable) == len(blocks):
            return self.rule.goodness(objective, point, blocks, only_best=only_best)
        scores = np.full(len(blocks), -np.inf)
        if len(affordable) == 0:
            return Scores(scores, 0)
        some = blocks.take(affordable)
        scores[affordable], n_exact = self.rule.goodness(
            objective, point, some, only_best=only_best
        )
        return Scores(scores, n_exact)

    def _affordable(self, point: Point, blocks: Blocks) -> tuple[NDArray[np.bool_], bool]:
        """Which blocks can be afforded, and whether the others are passed over."""
        # A sum of prices may exceed its budget by rounding.
        remaining = self.budget * (1.0 + BUDGET_RTOL) - self.group_costs.cost(point.support)
        affordable = self.group_costs.extra(point.support, blocks) <= remaining
        if self.unaffordable != PASS_UNTIL_SPENT:
            return affordable, self.unaffordable == PASS
        group = self.group_costs.group_of[blocks.firsts]
        is_new = ~np.isin(group, self.group_costs.used(point.support))
        return affordable, bool((affordable & is_new).any())


def unaffordable_by_default(k: int | None) -> str:
    """Return what becomes of candidates that cannot be afforded, in a run to a size or to none."""
    return STOP if k is None else PASS


def within_budget(rule: Rule, costs: GroupCosts, budget: float | None, unaffordable: str) -> Rule:
    """Return a rule kept to a budget, if there is one."""
    return rule if budget is None else WithinBudget(rule, costs, budget, unaffordable)


@dataclass(frozen=True)
class Limits:
    """What a refined answer may be.

    Attributes
    ----------
    blocks : Blocks
    group_costs : GroupCosts
    size : int
        The most blocks.
    cost : float or None
        What its groups may cost together; None: the size says it all.
    """

    blocks: Blocks
    group_costs: GroupCosts
    size: int
    cost: float | None = None

    def are_kept_by(self, point: Point) -> bool:
        """Return whether a point is within the limits."""
        return point.size <= self.size and self.can_afford(point)

    def can_afford(self, point: Point) -> bool:
        """Return whether a point does not cost too much."""
        return self.cost is None or self._left(point.support) >= 0.0

    def affordable(self, point: Point) -> NDArray[np.bool_]:
        """Return which of all blocks may be added at this price."""
        if self.cost is None:
            return np.ones(len(self.blocks), dtype=bool)
        extra = self.group_costs.extra(point.support, self.blocks)
        return np.asarray(extra <= self._left(point.support))

    def affordable_together(self, point: Point, new: list[int]) -> list[int]:
        """Return those of some blocks that may be added one after the other."""
        if self.cost is None:
            return new
        support, kept = point.support, list[int]()
        for block in new:
            price = self.group_costs.extra(support, self.blocks.take([block]))[0]
            if price <= self._left(support):
                kept.append(block)
                support = np.append(support, self.blocks[block])
        return kept

    def exchangeable(self, point: Point, inside: Ints, outside: Ints) -> NDArray[np.bool_] | None:
        """Return which blocks may give way to which, a row for each inside; None: all."""
        if self.cost is None:
            return None
        some = self.blocks.take(outside)
        kept = [np.setdiff1d(point.support, self.blocks[b], assume_unique=True) for b in inside]
        return np.array([self.group_costs.extra(one, some) <= self._left(one) for one in kept])

    def groups_of(self, blocks: Iterable[int]) -> dict[int, list[int]]:
        """Return the blocks of each group that some of these belong to."""
        groups: dict[int, list[int]] = {}
        for block in blocks:
            groups.setdefault(self._group(block), []).append(block)
        return groups

    def group_of(self, block: int) -> list[int]:
        """Return all blocks of the group that a block belongs to."""
        groups = self.group_costs.group_of[self.blocks.firsts]
        return np.flatnonzero(groups == groups[block]).tolist()

    def prices(self, groups: Sequence[int]) -> Floats:
        """Return what groups cost."""
        return np.asarray(self.group_costs.prices[list(groups)])

    def per_price(self, gains: Floats) -> Floats:
        """Return what blocks promise for the price of their group."""
        prices = self.group_costs.prices[self.group_costs.group_of[self.blocks.firsts]]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(prices > 0.0, gains / prices, np.inf * gains)

    def _group(self, block: int) -> int:
        return int(self.group_costs.group_of[self.blocks[block][0]])

    def _left(self, support: Ints) -> float:
        """The money left, or what is missing; a sum of prices may exceed its limit by rounding."""
        assert self.cost is not None
        return self.cost * (1.0 + BUDGET_RTOL) - self.group_costs.cost(support)


def limits_of(
    blocks: Blocks, group_costs: GroupCosts, answer: Point, k: int | None, budget: float | None
) -> Limits:
    """Return the limits of what takes the place of an answer.

    With a budget alone that is what the answer costs. Where every block has the same price, its
    size says that. Single candidates of groups are as many as they were, unless `k` says more.
    """
    groups = group_costs.group_of[blocks.firsts]
    prices = group_costs.prices[groups]
    are_whole = len(np.unique(groups)) == len(groups)
    if budget is None or (are_whole and (prices == prices[:1]).all()):
        return Limits(blocks, group_costs, answer.size)
    if k is not None:
        return Limits(blocks, group_costs, k, budget)
    size = len(blocks) if are_whole else answer.size
    return Limits(blocks, group_costs, size, group_costs.cost(answer.support))
