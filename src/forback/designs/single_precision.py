"""Passes over X in single precision, with a bound on what that may be wrong by.

A slope X'r is off by no more than a small share of |x| |r|, known in advance, which leaves a few
columns to look at twice.
"""

from __future__ import annotations

import numpy as np

from forback.core.tolerances import SCREENING_RTOL
from forback.core.types import Floats, Ints
from forback.designs.dense import Dense
from forback.designs.design import Design, ThreeSums
from forback.designs.sparse import Sparse

#: What may vanish altogether, because it is too small for single precision.
VANISHING = 2.0**-147


class SinglePrecision:
    """A design next to its copy in single precision."""

    def __init__(self, design: Design) -> None:
        assert isinstance(design, Dense | Sparse)  # no estimator asks for it
        self._design = design
        self._single: Dense | Sparse
        self._single, squares = design.in_single()
        self._norms = np.sqrt(squares) * (1.0 + 1e-6)

    def three_sums(self, residual: Floats, curvature: Floats) -> tuple[ThreeSums, Floats]:
        """X' residual, (X^2)' curvature and (|X|^3)' curvature; by how much the first may be off.

        The others are within a millionth of the truth. Sums are kept in double here.
        """
        sums = self._single.three_sums(residual, curvature)
        n, length = len(residual), float(np.linalg.norm(residual))
        share = 2.0**-24 * 1.001 + n * 2.0**-51
        return sums, share * length * self._norms + VANISHING * n * length

    def leading(self, residual: Floats, weight: Floats, inside: Ints) -> tuple[Floats, int]:
        """X' residual, exact wherever its absolute value times `weight` may be the largest.

        Elsewhere it is a bound away from zero. Columns `inside` do not count. Also returns how
        many are exact.
        """
        unit = float(np.max(np.abs(residual), initial=0.0)) or 1.0
        scaled = residual / unit  # so that it neither overflows nor vanishes in single precision
        slopes, share = self._single.single_precision_product(scaled)
        slopes[inside] = 0.0
        n, length = len(residual), float(np.linalg.norm(scaled))
        share = (share + n * 2.0**-51) * length
        found = settled(self._design, scaled, slopes, self._norms, share, VANISHING * n, weight)
        if found is None:
            return self._design.back_project(residual), len(slopes)
        return unit * found[0], found[1]


def settled(
    design: Design,
    residual: Floats,
    slopes: Floats,
    norms: Floats,
    share: float,
    lost: float,
    weight: Floats,
) -> tuple[Floats, int] | None:
    """Slopes X' residual, made exact wherever |slope| times `weight` may be the largest.

    Each is off by at most share * norm + lost; where that leaves many, the answer is None.
    Elsewhere they become bounds away from zero. Also returns how many are exact.
    """
    left = ruled_in(slopes, share * norms + lost, weight)
    if 8 * len(left) > len(slopes):
        return None
    block = design.block(left, intercept=False)
    slopes[left] = block.back_project(block.take(residual))
    return slopes, len(left)


def ruled_in(slopes: Floats, errors: Floats, weight: Floats) -> Ints:
    """The columns whose |slope| times weight may be the largest.

    Each slope may be off by its error; it is moved that much away from zero.
    """
    size = np.abs(slopes)
    with np.errstate(over="ignore", invalid="ignore"):
        certain = (size - errors) * weight
        # Overflow says nothing, here and below.
        most = np.max(certain, initial=0.0, where=certain < np.inf)
        size += errors
        left = np.flatnonzero(~(size * weight < most * (1.0 - SCREENING_RTOL)))
    slopes[:] = np.copysign(size, slopes)
    return left
