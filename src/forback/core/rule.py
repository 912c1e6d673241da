"""Rule: which score of a candidate counts as goodness."""

from __future__ import annotations

from typing import Protocol

from forback.core.blocks import Blocks
from forback.core.objective import Objective, Scores
from forback.core.point import Point
from forback.core.status import Ending


class Rule(Protocol):
    """What makes a candidate good, and from which goodness on it is worth adding."""

    @property
    def threshold(self) -> float:
        """The run stops when the best goodness is strictly below this."""

    def goodness(
        self, objective: Objective, point: Point, blocks: Blocks, *, only_best: bool = False
    ) -> Scores:
        """Return a score for every block; the highest is added next.

        With `only_best`, scores need be exact only where they may be the highest.
        """

    def refuses(self, point: Point, blocks: Blocks, block: int, score: float) -> Ending | None:
        """Return why the run ends although `block` is the best candidate; None if it goes on."""
