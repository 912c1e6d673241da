"""The two goodness measures of the paper, the two badness measures, and how ties are broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from forback.protocols import Blocks, Floats, Objective, Point

#: Scores this close to the best, relatively, are ties: the lowest block wins.
TIE = 1e-9

#: Scores of all blocks, exact wherever they may be the best, and how many of them are exact.
Screened = tuple[Floats, int]

#: Objective, point, blocks, and a limit from which on a block stays anyway.
Badness = Callable[[Objective, Point, Blocks, float], Screened]


@dataclass(frozen=True, slots=True)
class ByDecrease:
    """FoBa-obj: how far Q falls when the candidate alone is optimised (threshold: delta)."""

    threshold: float = 0.0

    def goodness(self, objective: Objective, point: Point, blocks: Blocks) -> Floats:
        """Q(beta) - min over alpha of Q(beta + alpha e_j), for every block."""
        return objective.decrease_if_added(point, blocks)

    def screened(self, objective: Objective, point: Point, blocks: Blocks) -> Screened:
        """The same, exact wherever it may be the largest and an upper bound elsewhere."""
        own = getattr(objective, "screened_decrease", None)
        if own is None:
            return self.goodness(objective, point, blocks), len(blocks)
        return own(point, blocks)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class ByGradient:
    """FoBa-gdt: the norm of the gradient over the candidate (threshold: epsilon)."""

    threshold: float = 0.0

    def goodness(self, objective: Objective, point: Point, blocks: Blocks) -> Floats:
        """The Euclidean norm of the gradient over every block, unscaled."""
        return blocks.norms(objective.gradient(point))

    def screened(self, objective: Objective, point: Point, blocks: Blocks) -> Screened:
        """The same, exact wherever it may be the largest and an upper bound elsewhere."""
        own = getattr(objective, "screened_gradient", None)
        if own is None or not blocks.are_single:
            return self.goodness(objective, point, blocks), len(blocks)
        gradient, exact = own(point)
        return blocks.norms(gradient), exact


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
