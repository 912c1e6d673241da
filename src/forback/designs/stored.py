"""What designs that hold a matrix have in common, dense or sparse."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from forback.core.types import Floats, Ints
from forback.designs.design import Design, ThreeSums, one_by_one
from forback.designs.kernels import passes
from forback.solvers import threads

#: A column is far from zero if it is this many times farther away than it is wide.
FAR_FROM_ZERO = 30.0

#: Columns one after the other: their entries, the row of each (None: all rows), where each begins.
StoredColumns = tuple[Floats, Ints | None, Ints]


class Stored(Design):
    """A design that holds a matrix X, which is never written to."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.shape: tuple[int, int] = X.shape
        self._transposed = X.T  # a view: no conversion per product

    def sums(self, residual: Floats, curvature: Floats | None, center: Floats | None) -> Floats:
        """The three sums of X - center as an array; without a curvature only the first."""
        raise NotImplementedError

    def back_project(self, residual: Floats, center: Floats | None = None) -> Floats:
        """(X - center)' residual: one pass over X; single precision is added up in double."""
        return np.asarray(self.sums(residual, None, center)[0])

    def back_project_all(self, residuals: Floats) -> Floats:
        """X' residuals for several of them: one pass over X."""
        if self.X.dtype == np.float64:
            # Told by residuals, so that each column of the answer lies in one piece.
            return np.asarray((residuals.T @ self.X).T)
        return one_by_one(self, residuals)

    def three_sums(
        self, residual: Floats, curvature: Floats, center: Floats | None = None
    ) -> ThreeSums:
        """X' residual, (X^2)' curvature and (|X|^3)' curvature, or of X - center: one pass."""
        one, two, three = self.sums(residual, curvature, center)
        return one, two, three

    def in_single(self) -> tuple[Stored, Floats]:
        """The matrix in single precision, and the sum of squares of each column."""
        raise NotImplementedError

    def single_precision_product(self, residual: Floats) -> tuple[Floats, float]:
        """X' residual for X in single precision.

        Also returns by what share of |x| |residual| it may be off, the rounding of X included.
        """
        raise NotImplementedError


def is_any_far_from_zero(low: Floats, high: Floats) -> bool:
    """Whether some column, with entries from low to high, has a mean many times its spread."""
    return bool((np.minimum(np.abs(low), np.abs(high)) > FAR_FROM_ZERO * (high - low)).any())


def column_sums(
    stored: StoredColumns,
    edges: Sequence[int],
    residual: Floats,
    curvature: Floats | None,
    center: Floats | None = None,
) -> Floats:
    """The three sums of columns less their center; without a curvature only the first.

    One pass over their entries, split at `edges`.
    """
    sums = np.empty((3, len(stored[2]) - 1))
    totals = (0.0, 0.0)
    if center is not None:
        totals = (float(residual.sum()), 0.0 if curvature is None else float(curvature.sum()))
    given = (*stored, residual, curvature, center, totals, sums)
    threads.over_chunks(partial(passes.sums_by_columns, *given), edges)
    return sums
