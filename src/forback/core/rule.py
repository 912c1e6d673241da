"""Rule: which score of a candidate counts as goodness."""

from __future__ import annotations

from typing import Protocol

from forback.core.blocks import Blocks
from forback.core.objective import Objective
from forback.core.point import Point
from forback.core.types import Floats


class Rule(Protocol):
    """What makes a candidate good, and from which goodness on it is worth adding."""

    @property
    def threshold(self) -> float:
        """The run stops when the best goodness is strictly below this."""

    def refuses(self, point: Point, blocks: Blocks, block: int, score: float) -> str | None:
        """Why the run ends although `block` is the best candidate; None if it goes on."""

    def goodness(self, objective: Objective, point: Point, blocks: Blocks) -> Floats:
        """A score for every block; the highest is added next."""

    def screened(self, objective: Objective, point: Point, blocks: Blocks) -> tuple[Floats, int]:
        """The same, exact wherever it may be the highest, and how many scores are exact."""
