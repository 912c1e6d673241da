"""The vocabulary, for objectives written elsewhere: see `forback.core`, where each word lives."""

from __future__ import annotations

from forback.core.blocks import Blocks
from forback.core.features import Features
from forback.core.objective import (
    HessianBounds,
    Likelihood,
    Objective,
    ObjectiveError,
    PermutableResponse,
    Scores,
)
from forback.core.point import Point, Step
from forback.core.rule import Rule
from forback.core.status import Status, StopReason
from forback.core.types import Floats, Ints

__all__ = [
    "Blocks",
    "Features",
    "Floats",
    "HessianBounds",
    "Ints",
    "Likelihood",
    "Objective",
    "ObjectiveError",
    "PermutableResponse",
    "Point",
    "Rule",
    "Scores",
    "Status",
    "Step",
    "StopReason",
]
