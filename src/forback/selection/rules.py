"""The two goodness measures of the paper, and the two badness measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from forback.core.blocks import Blocks
from forback.core.objective import Objective, Scores
from forback.core.point import Point
from forback.core.status import Ending, StopReason
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


def without_refit(objective: Objective, point: Point, blocks: Blocks, limit: float) -> Scores:
    """Badness as in the paper: zero the block, leave the other coefficients alone."""
    return objective.increase_if_removed(point, blocks, below=limit)


def with_refit(objective: Objective, point: Point, blocks: Blocks, limit: float) -> Scores:
    """Badness as in Zhang's R package: zero the block and refit the others."""
    return objective.increase_after_refit(point, blocks, below=limit)


#: method -> (goodness rule, whether features may leave again)
METHODS: dict[str, tuple[type[ByDecrease] | type[ByGradient], bool]] = {
    "foba-gdt": (ByGradient, True),
    "foba-obj": (ByDecrease, True),
    "forward-gdt": (ByGradient, False),
    "forward-obj": (ByDecrease, False),
}
BACKWARD: dict[str, Badness] = {"coordinate": without_refit, "refit": with_refit}
