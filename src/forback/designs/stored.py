"""What designs that hold a matrix have in common, dense or sparse."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, final

import numpy as np

from forback.core.types import Floats, Ints
from forback.designs.design import Design, ThreeSums, one_by_one
from forback.designs.kernels import column_sums
from forback.solvers import threads

#: A column is far from zero if it is this many times farther away than it is wide.
FAR_FROM_ZERO = 30.0

#: A pass over fewer entries than this is not worth a second thread.
ENTRIES_PER_THREAD = 1 << 16


class Stored(Design):
    """A design that holds a matrix X, which is never written to."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.shape: tuple[int, int] = X.shape

    @abstractmethod
    def sums(self, residual: Floats, curvature: Floats | None, center: Floats | None) -> Floats:
        """The three sums of X - center as an array; without a curvature only the first."""

    def back_project(self, residual: Floats, center: Floats | None = None) -> Floats:
        """(X - center)' residual: one pass over X; single precision is added up in double."""
        return np.asarray(self.sums(residual, None, center)[0])

    def back_project_all(self, residuals: Floats) -> Floats:
        """X' residuals for several of them: one pass over X."""
        if self.X.dtype == np.float64:
            # Transposed, so that each column of the answer lies in one piece.
            return np.asarray((residuals.T @ self.X).T)
        return one_by_one(self, residuals)

    def three_sums(
        self, residual: Floats, curvature: Floats, center: Floats | None = None
    ) -> ThreeSums:
        """X' residual, (X^2)' curvature and (|X|^3)' curvature, or of X - center: one pass."""
        one, two, three = self.sums(residual, curvature, center)
        return one, two, three


def is_any_far_from_zero(low: Floats, high: Floats) -> bool:
    """Whether some column, with entries from low to high, has a mean many times its spread."""
    return bool((np.minimum(np.abs(low), np.abs(high)) > FAR_FROM_ZERO * (high - low)).any())


@final
class StoredColumns:
    """Columns one after the other, and how they are split between threads."""

    def __init__(self, data: Floats, rows: Ints | None, pointer: Ints) -> None:
        self._stored = (data, rows, pointer)  # the row of each entry (None: all), where each begins
        self._edges = even_edges(pointer)

    def sums(
        self, residual: Floats, curvature: Floats | None = None, center: Floats | None = None
    ) -> Floats:
        """The three sums of columns less their center; without a curvature only the first.

        One pass over their entries.
        """
        sums = np.empty((3, self._edges[-1]))
        totals = (0.0, 0.0)
        if center is not None:
            totals = (float(residual.sum()), 0.0 if curvature is None else float(curvature.sum()))
        given = (*self._stored, residual, curvature, center, totals, sums)
        threads.over_chunks(partial(column_sums.sums_by_columns, *given), self._edges)
        return sums


def even_edges(pointer: Ints) -> list[int]:
    """Columns of a CSC matrix split so that each part has much the same number of entries."""
    p = len(pointer) - 1
    stored = pointer[-1]
    if stored < 2 * ENTRIES_PER_THREAD:
        return [0, p]
    parts = min(64, int(stored) // ENTRIES_PER_THREAD)
    shares = np.arange(1, parts) * int(stored) // parts
    inner = set(np.searchsorted(pointer, shares).tolist()) - {0, p}
    return [0, *sorted(inner), p]
