"""Descent: a start of refinement, and the way down from it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from forback.core.point import Point, Step
from forback.core.types import Ints


@dataclass
class Descent:
    """A start of refinement, and the exchanges that were made from it.

    Attributes
    ----------
    start : str
        Where it comes from: "path", "overshoot", "deep", or what it was made of.
    origin : Point
    entered : int array
        The coordinates of the origin in the order in which they entered, those that are always in
        first.
    steps : list of Step
        Exchanges: `out` gave way to `feature`, and `others` left or came with them. Under a budget
        also additions, where money was left.
    ending : str
        Why there was no other exchange.
    """

    start: str
    origin: Point
    entered: Ints
    steps: list[Step] = field(default_factory=list)
    ending: str = ""

    def __post_init__(self) -> None:
        self.origin = kept(self.origin)
        self.steps = [replace(step, point=kept(step.point)) for step in self.steps]

    @property
    def points(self) -> list[Point]:
        """The origin and the point after every exchange, in order."""
        return [self.origin, *(step.point for step in self.steps)]

    @property
    def end(self) -> Point:
        """Where it led."""
        return self.points[-1]


def kept(point: Point) -> Point:
    """Return the point without its cache, with read-only arrays that nobody else holds."""
    support = np.array(point.support, dtype=np.intp)
    coef = np.array(point.coef, dtype=np.float64)
    support.flags.writeable = False
    coef.flags.writeable = False
    return Point(support, coef, point.value, point.size, None, point.note, point.status)
