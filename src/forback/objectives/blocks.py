"""A few columns of a design, held ready for the many products of a fit. No losses here."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol, final

import numpy as np
from scipy import sparse

from forback import threads
from forback.kernels import passes
from forback.kernels import rows as kernels
from forback.protocols import Floats, Ints

#: How many entries of a block are weighted at a time on the way to B' diag(w) B.
SANDWICH_ENTRIES = 1 << 18

#: From this many rows on, sums over rows are worth a second thread.
ROWS_AT_ONCE = 1 << 14


#: Full columns need no list of rows.
NO_ROWS: Ints = np.zeros(1, np.intp)


class Block(Protocol):
    """Columns B of X, perhaps followed by a column of ones."""

    rows: Ints | None  #: the rows of X it consists of, all others being zero; None: all rows

    def take(self, vector: Floats) -> Floats:
        """The entries of a vector, one per row of X, that belong to the rows of B."""

    def predict(self, coef: Floats) -> Floats:
        """B coef."""

    def back_project(self, residual: Floats) -> Floats:
        """B' residual."""

    def absolute_product(self, weights: Floats) -> Floats:
        """|B|' weights."""

    def sandwich(self, weights: Floats) -> Floats:
        """B' diag(weights) B as an array; weights must not be negative."""

    def cross(self, place: int, weights: Floats) -> Floats:
        """One row of the sandwich."""

    def both_sums(self, residual: Floats, bend: Floats) -> tuple[Floats, Floats]:
        """B' residual, and the diagonal of the sandwich with `bend`."""

    def largest(self) -> Floats:
        """The largest absolute entry of each column."""

    def toarray(self) -> Floats:
        """As an array of one row per row: only where columns are too collinear to stay sparse."""


@final
class DenseBlock:
    """Columns as the rows of a contiguous array."""

    rows: Ints | None = None

    def __init__(self, columns: Floats) -> None:
        self.columns = columns

    def take(self, vector: Floats) -> Floats:
        """All entries: no row is left out."""
        return vector

    def predict(self, coef: Floats) -> Floats:
        """B coef."""
        return np.asarray(coef @ self.columns)

    def back_project(self, residual: Floats) -> Floats:
        """B' residual."""
        return np.asarray(self.columns @ residual)

    def absolute_product(self, weights: Floats) -> Floats:
        """|B|' weights."""
        return np.array([np.abs(column) @ weights for column in self.columns])

    def sandwich(self, weights: Floats) -> Floats:
        """B' diag(weights) B, a few rows at a time: no second block is held."""
        m, n = self.columns.shape
        root = np.sqrt(weights)
        if m * n <= SANDWICH_ENTRIES:
            part = self.columns * root
            return np.asarray(part @ part.T)
        total = np.zeros((m, m))
        step = max(1024, SANDWICH_ENTRIES // max(m, 1))
        for start in range(0, n, step):
            part = self.columns[:, start : start + step] * root[start : start + step]
            total += part @ part.T
        return total

    def cross(self, place: int, weights: Floats) -> Floats:
        """One row of the sandwich."""
        return self.back_project(weights * self.columns[place])

    def both_sums(self, residual: Floats, bend: Floats) -> tuple[Floats, Floats]:
        """B' residual, and the diagonal of the sandwich with `bend`."""
        m, n = self.columns.shape
        slopes, bends = np.empty(m), np.empty(m)
        passes.both_sums_columns(
            self.columns.ravel(), NO_ROWS, np.arange(m + 1) * n, True, residual, bend,
            slopes, bends, 0, m,
        )  # fmt: skip
        return slopes, bends

    def largest(self) -> Floats:
        """The largest absolute entry of each column."""
        return np.asarray(np.maximum(self.columns.max(axis=1), -self.columns.min(axis=1)))

    def toarray(self) -> Floats:
        """As an array of one row per row."""
        return self.columns.T


@final
class SparseBlock:
    """Sparse columns, cut down to the rows in which they have entries."""

    def __init__(self, columns: Any) -> None:
        touched = np.zeros(columns.shape[0], dtype=bool)
        touched[columns.indices] = True
        self.rows: Ints | None = None
        if 2 * np.count_nonzero(touched) < len(touched):
            self.rows = np.flatnonzero(touched)
            renumbered = (np.cumsum(touched) - 1).astype(columns.indices.dtype)
            columns = sparse.csc_array(
                (columns.data, renumbered[columns.indices], columns.indptr),
                shape=(len(self.rows), columns.shape[1]),
            )
        self._columns = columns

    def take(self, vector: Floats) -> Floats:
        """The entries of a vector, one per row of X, that belong to the rows of B."""
        return vector if self.rows is None else vector[self.rows]

    @cached_property
    def _by_rows(self) -> Any:
        return self._columns.tocsr()

    def predict(self, coef: Floats) -> Floats:
        """B coef."""
        B = self._columns
        out = np.zeros(B.shape[0])
        kernels.predict(B.data, B.indices, B.indptr, coef, out)
        return out

    def back_project(self, residual: Floats) -> Floats:
        """B' residual."""
        return self._times(self._columns.data, residual)

    def absolute_product(self, weights: Floats) -> Floats:
        """|B|' weights."""
        return self._times(np.abs(self._columns.data), weights)

    def _times(self, data: Floats, vector: Floats) -> Floats:
        B = self._columns
        out = np.empty(B.shape[1])
        kernels.back_project(data, B.indices, B.indptr, vector, out, 0, len(out))
        return out

    def sandwich(self, weights: Floats) -> Floats:
        """B' diag(weights) B as an array."""
        B = self._by_rows
        n, m = B.shape

        def some_rows(start: int, stop: int) -> Floats:
            return kernels.sandwich(B.data, B.indices, B.indptr, weights, start, stop, m)

        parts = threads.over_chunks(some_rows, threads.edges(n, ROWS_AT_ONCE))
        return sum(parts, start=np.zeros((m, m)))

    def cross(self, place: int, weights: Floats) -> Floats:
        """One row of the sandwich."""
        B = self._columns
        own = slice(B.indptr[place], B.indptr[place + 1])
        column = np.zeros(B.shape[0])
        column[B.indices[own]] = weights[B.indices[own]] * B.data[own]
        return self.back_project(column)

    def both_sums(self, residual: Floats, bend: Floats) -> tuple[Floats, Floats]:
        """B' residual, and the diagonal of the sandwich with `bend`."""
        return self.back_project(residual), self._times(self._columns.data**2, bend)

    def largest(self) -> Floats:
        """The largest absolute entry of each column."""
        return np.asarray(abs(self._columns).max(axis=0).toarray()).ravel()

    def toarray(self) -> Floats:
        """As an array of one row per row."""
        return np.asarray(self._columns.toarray())
