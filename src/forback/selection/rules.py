"""The two goodness measures of the paper, budgets, the two badness measures, and ties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forback.core.blocks import Blocks
from forback.core.costs import GroupCosts
from forback.core.objective import Objective, Scores
from forback.core.point import Point
from forback.core.rule import Rule
from forback.core.status import Ending, StopReason
from forback.core.tolerances import BUDGET_RTOL, SCORE_TIE_RTOL
from forback.core.types import Floats
from forback.core.units import times_power

#: From an objective, a point, blocks inside and a limit from which on a block stays anyway, what
#: each removal costs.
Badness = Callable[[Objective, Point, Blocks, float], Scores]


@dataclass(frozen=True)
class _Threshold:
    """A rule that ends the run when the best goodness is strictly below a threshold.

    Where an objective is worked on in other units, the goodness is 2^power times as large in the
    user's, in which the threshold is given.
    """

    threshold: float = 0.0
    power: int = 0

    def refuses(self, point: Point, blocks: Blocks, block: int, score: float) -> Ending | None:
        """Return why the run ends although `block` is the best candidate; None if it goes on."""
        if not -np.inf < score < times_power(self.threshold, -self.power):
            return None
        score = times_power(score, self.power)
        return StopReason.THRESHOLD.because(score=score, threshold=self.threshold)


@dataclass(frozen=True)
class ByDecrease(_Threshold):
    """FoBa-obj: how far Q falls when the candidate alone is optimised (threshold: delta)."""

    def goodness(
        self, objective: Objective, point: Point, blocks: Blocks, *, only_best: bool = False
    ) -> Scores:
        """Return Q(beta) - min over alpha of Q(beta + alpha e_j), for every block."""
        return objective.decrease_if_added(point, blocks, only_best=only_best)


@dataclass(frozen=True)
class ByGradient(_Threshold):
    """FoBa-gdt: the norm of the gradient over the candidate (threshold: epsilon).

    Where columns have units of their own, `factors` bring their gradients to one unit.
    """

    factors: Floats | None = None

    def goodness(
        self, objective: Objective, point: Point, blocks: Blocks, *, only_best: bool = False
    ) -> Scores:
        """Return the Euclidean norm of the gradient over every block, unscaled."""
        if self.factors is None:
            return objective.gradient_norms(point, blocks, only_best=only_best)
        return Scores.exact(blocks.norms(objective.gradient(point) * self.factors))


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
        """Return that of the other rule; minus infinity for what is passed over."""
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
    """Return a rule kept to a budget, if there is one; with k, what is too dear is passed over."""
    return rule if budget is None else WithinBudget(rule, costs, budget, k is not None)


def without_refit(objective: Objective, point: Point, blocks: Blocks, limit: float) -> Scores:
    """Badness as in the paper: zero the block, leave the other coefficients alone."""
    return objective.increase_if_removed(point, blocks, below=limit)


def with_refit(objective: Objective, point: Point, blocks: Blocks, limit: float) -> Scores:
    """Badness as in Zhang's R package: zero the block and refit the others."""
    return objective.increase_after_refit(point, blocks)


def highest(scores: Floats) -> int:
    """Return the block to add: the first whose score ties with the highest."""
    best = scores.max()
    return int(np.argmax(scores >= best - SCORE_TIE_RTOL * abs(best)))


def lowest(scores: Floats) -> int:
    """Return the block to remove: the first whose score ties with the lowest."""
    return highest(-scores)


#: method -> (goodness rule, whether features may leave again)
METHODS: dict[str, tuple[type[ByDecrease] | type[ByGradient], bool]] = {
    "foba-gdt": (ByGradient, True),
    "foba-obj": (ByDecrease, True),
    "forward-gdt": (ByGradient, False),
    "forward-obj": (ByDecrease, False),
}
BACKWARD: dict[str, Badness] = {"coordinate": without_refit, "refit": with_refit}
