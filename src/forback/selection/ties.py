"""The best of many scores: of those that differ by rounding only, or not at all, the first wins."""

from __future__ import annotations

import math

import numpy as np

from forback.core.tolerances import SCORE_TIE_RTOL
from forback.core.types import Floats, Ints


def highest(scores: Floats) -> int:
    """Return the block to add: the first whose score ties with the highest."""
    best = float(scores.max())
    if math.isinf(best):
        return int(scores.argmax())
    return int((scores >= best - SCORE_TIE_RTOL * abs(best)).argmax())


def lowest(scores: Floats) -> int:
    """Return the block to remove: the first whose score ties with the lowest."""
    return highest(-scores)


def leading(scores: Floats, count: int) -> Ints:
    """Return the places of the highest scores, the highest first; of equal ones the first.

    Places in a table count along its rows.
    """
    flat = scores.ravel()
    # As many rows as are wanted have a score that is no lower than this.
    tops = flat if scores.ndim == 1 or len(scores) < count else scores.max(axis=1)
    if len(flat) <= count:
        return np.argsort(-flat, kind="stable")[:count]
    some = np.flatnonzero(flat >= _nth(tops, count))
    some = some[flat[some] >= _nth(flat[some], count)]
    return some[np.argsort(-flat[some], kind="stable")][:count]


def _nth(scores: Floats, number: int) -> float:
    """The score that so many are at least as high as."""
    return float(np.partition(scores, len(scores) - number)[len(scores) - number])
