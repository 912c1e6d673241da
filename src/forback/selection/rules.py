"""The two goodness measures of the paper, budgets, the two badness measures, and ties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forback.core.blocks import Blocks
from forback.core.costs import Ledger
from forback.core.objective import Objective
from forback.core.point import Point
from forback.core.rule import Rule
from forback.core.types import Floats
from forback.core.units import times_power

#: Scores this close to the best, relatively, are ties: the lowest block wins.
TIE = 1e-9

#: Scores of all blocks, exact wherever they may be the best, and how many of them are exact.
Screened = tuple[Floats, int]

#: Objective, point, blocks, and a limit from which on a block stays anyway.
Badness = Callable[[Objective, Point, Blocks, float], Screened]


@dataclass(frozen=True)
class _Threshold:
    """A rule that ends the run when the best goodness is strictly below a threshold.

    Where an objective is worked on in other units, the goodness is 2^power times as large in the
    user's, in which the threshold is given.
    """

    threshold: float = 0.0
    power: int = 0

    def refuses(self, point: Point, blocks: Blocks, block: int, score: float) -> str | None:
        """Why the run ends although `block` is the best candidate; None if it goes on."""
        if not -np.inf < score < times_power(self.threshold, -self.power):
            return None
        score = times_power(score, self.power)
        return f"the best goodness, {score:.6g}, is below the threshold {self.threshold:.6g}"


@dataclass(frozen=True)
class ByDecrease(_Threshold):
    """FoBa-obj: how far Q falls when the candidate alone is optimised (threshold: delta)."""

    def goodness(self, objective: Objective, point: Point, blocks: Blocks) -> Floats:
        """Q(beta) - min over alpha of Q(beta + alpha e_j), for every block."""
        return objective.decrease_if_added(point, blocks)

    def screened(self, objective: Objective, point: Point, blocks: Blocks) -> Screened:
        """The same, exact wherever it may be the largest and an upper bound elsewhere."""
        own = getattr(objective, "screened_decrease", None)
        if own is None:
            return self.goodness(objective, point, blocks), len(blocks)
        return own(point, blocks)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class ByGradient(_Threshold):
    """FoBa-gdt: the norm of the gradient over the candidate (threshold: epsilon)."""

    factors: Floats | None = None  #: that bring gradients to one unit

    def goodness(self, objective: Objective, point: Point, blocks: Blocks) -> Floats:
        """The Euclidean norm of the gradient over every block, unscaled."""
        gradient = objective.gradient(point)
        return blocks.norms(gradient if self.factors is None else gradient * self.factors)

    def screened(self, objective: Objective, point: Point, blocks: Blocks) -> Screened:
        """The same, exact wherever it may be the largest and an upper bound elsewhere."""
        own = getattr(objective, "screened_gradient", None)
        # It is exact where the best of all candidates may be, which may not be among the blocks.
        whole = blocks.are_single and blocks.cover(objective.n_candidates)
        if own is None or not whole or self.factors is not None:
            return self.goodness(objective, point, blocks), len(blocks)
        gradient, exact = own(point)
        return blocks.norms(gradient), exact


@dataclass(frozen=True)
class WithinBudget:
    """Another rule, kept to what its picks may cost.

    The run ends when the best candidate is unaffordable or, with `passing_over`, when all are.
    """

    rule: Rule
    ledger: Ledger
    budget: float
    passing_over: bool

    @property
    def threshold(self) -> float:
        """That of the other rule."""
        return self.rule.threshold

    def refuses(self, point: Point, blocks: Blocks, block: int, score: float) -> str | None:
        """Why the run ends although `block` is the best candidate; None if it goes on."""
        left = max(self.budget - self.ledger.cost(point.support), 0.0)
        affordable = self._affordable(point, blocks)
        outside, purse = affordable[~_inside(point, blocks)], f"the {left:g} left of the budget"
        if self.passing_over and not outside.any():
            return f"nothing left can be had for {purse} {self.budget:g}"
        if self.passing_over and score == -np.inf and not outside.all():
            return f"nothing that {purse} {self.budget:g} can buy lowers the objective"
        if self.passing_over or affordable[block] or score == -np.inf:
            return self.rule.refuses(point, blocks, block, score)
        price = self.ledger.extra(point.support, blocks)[block]
        name = self.ledger.name(int(self.ledger.owner[blocks[block][0]]))
        return f"the best candidate, of {name}, costs {price:g}: more than {purse} {self.budget:g}"

    def goodness(self, objective: Objective, point: Point, blocks: Blocks) -> Floats:
        """That of the other rule; minus infinity for what is passed over."""
        scores = self.rule.goodness(objective, point, blocks)
        if not self.passing_over:
            return scores
        return np.where(self._affordable(point, blocks), scores, -np.inf)

    def screened(self, objective: Objective, point: Point, blocks: Blocks) -> Screened:
        """The same, exact wherever it may be the highest, and how many scores are exact."""
        affordable = np.flatnonzero(self._affordable(point, blocks))
        if not self.passing_over or len(affordable) == len(blocks):
            return self.rule.screened(objective, point, blocks)
        scores = np.full(len(blocks), -np.inf)
        if len(affordable) == 0:
            return scores, 0
        scores[affordable], exact = self.rule.screened(objective, point, blocks.take(affordable))
        return scores, exact

    def _affordable(self, point: Point, blocks: Blocks) -> NDArray[np.bool_]:
        # A sum of prices may exceed its budget by rounding.
        left = self.budget * (1.0 + 1e-12) - self.ledger.cost(point.support)
        return np.asarray(self.ledger.extra(point.support, blocks) <= left)


def _inside(point: Point, blocks: Blocks) -> NDArray[np.bool_]:
    """Which blocks are in the support."""
    return np.isin(blocks.coordinates[blocks.pointer[:-1]], point.support)


def without_refit(objective: Objective, point: Point, blocks: Blocks, limit: float) -> Screened:
    """Badness as in the paper: zero the block, leave the other coefficients alone."""
    own = getattr(objective, "screened_increase", None)
    if own is None:
        return objective.increase_if_removed(point, blocks), len(blocks)
    return own(point, blocks, limit)  # type: ignore[no-any-return]


def with_refit(objective: Objective, point: Point, blocks: Blocks, limit: float) -> Screened:
    """Badness as in Zhang's R package: zero the block and refit the others."""
    closed_form = getattr(objective, "increase_after_refit", None)
    if closed_form is not None:
        return np.asarray(closed_form(point, blocks)), len(blocks)
    refits = (
        objective.minimise(np.setdiff1d(point.support, block, assume_unique=True), point)
        for block in blocks
    )
    return np.array([refit.value - point.value for refit in refits]), len(blocks)


def highest(scores: Floats) -> int:
    """The block to add: the first whose score ties with the highest."""
    best = scores.max()
    return int(np.argmax(scores >= best - TIE * abs(best)))


def lowest(scores: Floats) -> int:
    """The block to remove: the first whose score ties with the lowest."""
    best = scores.min()
    return int(np.argmax(scores <= best + TIE * abs(best)))
