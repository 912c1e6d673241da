"""The vocabulary, for objectives written elsewhere: see `forback.core`, where each word lives."""

from __future__ import annotations

from forback.core.blocks import Blocks
from forback.core.objective import Objective, ObjectiveError
from forback.core.point import Point, Step
from forback.core.rule import Rule
from forback.core.types import Floats, Ints

__all__ = ["Blocks", "Floats", "Ints", "Objective", "ObjectiveError", "Point", "Rule", "Step"]
