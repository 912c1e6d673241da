"""Tie-breaking: of scores that differ by rounding only, the first wins."""

from __future__ import annotations

import numpy as np

from forback.core.tolerances import SCORE_TIE_RTOL
from forback.core.types import Floats


def highest(scores: Floats) -> int:
    """Return the block to add: the first whose score ties with the highest."""
    best = scores.max()
    return int(np.argmax(scores >= best - SCORE_TIE_RTOL * abs(best)))


def lowest(scores: Floats) -> int:
    """Return the block to remove: the first whose score ties with the lowest."""
    return highest(-scores)
