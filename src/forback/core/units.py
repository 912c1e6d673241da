"""Units: an objective in which nothing is too small, or too large, to be squared.

Units differ by powers of two, so that nothing is rounded on the way there and back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from forback.core.point import Move, Point
from forback.core.types import Floats, Ints

#: Numbers of a size between 2^-RANGE and 2^RANGE can be squared and cubed, and summed up after it.
RANGE = 256

#: What a point says whose Q is too small to be a number in the user's units.
TOO_SMALL = "Q is too small to be represented in these units: it is given as 0"

#: What a step says whose score is too large to be one.
TOO_LARGE = "the score is too large to be represented in these units: it is given as 1.8e308"


@dataclass(frozen=True)
class Units:
    """How the user's numbers follow from those of the objective that is worked on.

    Attributes
    ----------
    value : int
        Q is 2^value times as large.
    coef : Ints
        Coefficient j is 2^coef[j] times as large.
    """

    value: int
    coef: Ints

    def point(self, point: Point) -> Point:
        """A point in the user's units."""
        value = times_power(point.value, self.value)
        lost = point.value != 0.0 and abs(value) < np.finfo(float).tiny
        note = "; ".join(part for part in (point.note, TOO_SMALL if lost else "") if part)
        with np.errstate(over="ignore", under="ignore"):
            coef = np.ldexp(point.coef, self.coef[point.support])
        if not np.isfinite(coef).all():
            raise ValueError(
                "X is so small, and y so large, that coefficients are no numbers in these units; "
                "divide y, or multiply X, by a constant"
            )
        return replace(point, coef=coef, value=0.0 if lost else value, cache=None, note=note)

    def move(self, move: Move, before: Point, score: int) -> Move:
        """A move from `before` in the user's units; its score is 2^score times as large."""
        after = self.point(move.point)
        goodness, most = times_power(move.score, score), float(np.finfo(float).max)
        return move._replace(
            point=after,
            change=before.value - after.value,
            note="; ".join(filter(None, (move.note, TOO_LARGE if goodness > most else ""))),
            score=min(goodness, most),
        )

    @property
    def slopes(self) -> tuple[Floats, int]:
        """Factors that bring gradients to one unit, and by which power of two the user's differs.

        The unit is in the middle, so that columns may differ by as much as numbers do.
        """
        powers = self.value - self.coef
        middle = (int(powers.max()) + int(powers.min())) // 2
        return np.ldexp(1.0, powers - middle), middle


def times_power(number: float, power: int) -> float:
    """A number times a power of two; infinity where that is too large."""
    if power == 0:
        return float(number)
    with np.errstate(over="ignore", under="ignore"):
        return float(np.ldexp(number, power))


def exponent(size: float) -> int:
    """The power of two that brings a size to about 1; 0 if it is within range already."""
    power = -math.frexp(size)[1]
    return power if abs(power) > RANGE else 0


def exponents(sizes: Floats, ridge: Floats | float = 0.0, range: int = RANGE) -> Ints:
    """Return the power of two that brings each size to about 1; 0 for those within range.

    Where there is a ridge, which goes with the square of it, less: beyond, it is all that counts.
    """
    power = np.where(sizes > 0.0, -np.frexp(sizes)[1], 0)
    power = np.where(np.abs(power) > range, power, 0)
    most = np.where(np.asarray(ridge) > 0.0, (RANGE - np.frexp(ridge)[1]) // 2, power)
    return np.minimum(power, np.maximum(most, 0)).astype(np.intp)


def out_of_range(sizes: Floats) -> bool:
    """Whether some size that is not zero is too small, or too large, to be squared."""
    seen = sizes[sizes > 0.0]
    return bool(((seen < 2.0**-RANGE) | (seen > 2.0**RANGE)).any())
