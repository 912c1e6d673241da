"""Budgets: a rule that is kept to what its picks may cost."""

from __future__ import annotations

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


@dataclass(frozen=True)
class WithinBudget:
    """Another rule, kept to what its picks may cost.

    The run ends when the best candidate is unaffordable or, with `passing_over`, when all are.
    """

    rule: Rule
    group_costs: GroupCosts
    budget: float
    passing_over: bool

    @property
    def threshold(self) -> float:
        """The threshold of the other rule."""
        return self.rule.threshold

    def refuses(self, point: Point, blocks: Blocks, block: int, score: float) -> Ending | None:
        """Return why the run ends although `block` is the best candidate; None if it goes on."""
        spent = self.group_costs.cost(point.support)
        money = {"remaining": max(self.budget - spent, 0.0), "budget": self.budget}
        affordable = self._affordable(point, blocks)
        outside = affordable[~np.isin(blocks.firsts, point.support)]
        if self.passing_over and not outside.any():
            return StopReason.NOTHING_AFFORDABLE.because(**money)
        if self.passing_over and score == -np.inf and not outside.all():
            return StopReason.NOTHING_AFFORDABLE_HELPS.because(**money)
        if self.passing_over or affordable[block] or score == -np.inf:
            return self.rule.refuses(point, blocks, block, score)
        price = self.group_costs.extra(point.support, blocks)[block]
        name = self.group_costs.name(int(self.group_costs.group_of[blocks.firsts[block]]))
        return StopReason.UNAFFORDABLE.because(name=name, price=price, **money)

    def goodness(
        self, objective: Objective, point: Point, blocks: Blocks, *, only_best: bool = False
    ) -> Scores:
        """Return the goodness by the other rule; minus infinity for what is passed over."""
        affordable = np.flatnonzero(self._affordable(point, blocks))
        if not self.passing_over or len(affordable) == len(blocks):
            return self.rule.goodness(objective, point, blocks, only_best=only_best)
        scores = np.full(len(blocks), -np.inf)
        if len(affordable) == 0:
            return Scores(scores, 0)
        some = blocks.take(affordable)
        scores[affordable], n_exact = self.rule.goodness(
            objective, point, some, only_best=only_best
        )
        return Scores(scores, n_exact)

    def _affordable(self, point: Point, blocks: Blocks) -> NDArray[np.bool_]:
        # A sum of prices may exceed its budget by rounding.
        remaining = self.budget * (1.0 + BUDGET_RTOL) - self.group_costs.cost(point.support)
        return np.asarray(self.group_costs.extra(point.support, blocks) <= remaining)


def within_budget(rule: Rule, costs: GroupCosts, budget: float | None, k: int | None) -> Rule:
    """Return a rule kept to a budget, if any; with k, it passes over what is unaffordable."""
    return rule if budget is None else WithinBudget(rule, costs, budget, k is not None)
