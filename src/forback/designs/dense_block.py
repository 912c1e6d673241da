"""The dense columns of a support."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from threading import Lock
from typing import final

import numpy as np

from forback.core.types import Floats, Ints
from forback.designs.design import NO_ROWS, NO_TOTALS, Known, ThreeSums
from forback.designs.kernels import passes

#: How many entries of a block are weighted at a time on the way to B' diag(w) B.
SANDWICH_ENTRIES = 1 << 18

#: From this many rows on, sums over rows are worth a second thread.
ROWS_AT_ONCE = 1 << 12

#: A dense block of more entries than this is not copied in order to grow.
LARGE = 1 << 13

#: A pass over fewer entries than this is not worth a second thread.
ENTRIES_PER_THREAD = 1 << 16


@final
class DenseBlock:
    """Columns as the rows of a contiguous array, in any order."""

    def __init__(
        self,
        columns: Floats,
        rows: Ints | None = None,
        *,
        order: Ints | None = None,
        shelf: Shelf | None = None,
    ) -> None:
        self.columns = columns
        self.rows = rows
        self.shift: Floats | None = None
        self.order = order  #: the place in B of each column stored; None: one after the other
        self._shelf = shelf

    @classmethod
    def of(
        cls,
        column: Callable[[int], Floats],
        n: int,
        columns: Ints,
        intercept: bool,
        known: Known | None,
    ) -> DenseBlock:
        """Some columns of n rows, one by one from `column`, and one of ones if asked for.

        Those of a block that is `known` are taken from there.
        """
        width = len(columns) + intercept
        if known is not None and isinstance(known.block, DenseBlock):
            fresh = np.ones(width, dtype=bool)
            fresh[known.place] = False
            missing = np.flatnonzero(fresh)
            added = [column(columns[j]) if j < len(columns) else np.ones(n) for j in missing]
            return cls.grown(known, width, missing, added)
        block = np.empty((width, n))
        for row, number in enumerate(columns):
            block[row] = column(number)
        block[len(columns) :] = 1.0
        return cls(block)

    @classmethod
    def grown(cls, known: Known, width: int, missing: Ints, columns: list[Floats]) -> DenseBlock:
        """A block of `width` columns: those that are known, and others at places `missing`.

        A small one is copied. A large one shares the known one's columns, if it has them all.
        """
        block = known.block
        assert isinstance(block, DenseBlock)
        (m, n), everything = block.columns.shape, len(known.old) == block.columns.shape[0]
        if width * n <= LARGE:
            copy, source = np.empty((width, n)), np.zeros(width, np.intp)
            source[known.place] = block._inverse[known.old]
            if m:
                block.columns.take(source, axis=0, out=copy, mode="clip")
            for place, column in zip(missing, columns, strict=True):
                copy[place] = column
            return cls(copy)
        stored = np.arange(m) if block.order is None else block.order
        stay = stored if everything else known.old
        order, shelf = known.place[stay] if everything else known.place, block._shelf
        if shelf is None or not everything or not shelf.take(m, len(columns)):
            shelf = Shelf(block.columns, block.rows_of(stay), width)
            shelf.take(len(stay), len(columns))
        for row, column in enumerate(columns, start=len(stay)):
            shelf.array[row] = column
        return cls(shelf.array[:width], order=np.append(order, missing), shelf=shelf)

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are."""
        m, n = self.columns.shape
        return n, m

    @property
    def stored(self) -> tuple[Floats]:
        """What kernels need to know about it."""
        return (self.columns,)

    def inward(self, vector: Floats) -> Floats:
        """A number per column of B, in the order in which they are stored."""
        return vector if self.order is None else vector[self.order]

    def outward(self, vector: Floats) -> Floats:
        """The other way round."""
        return vector if self.order is None else vector[self._inverse]

    def outward_both(self, matrix: Floats) -> Floats:
        """The same for the rows and the columns of a matrix."""
        if self.order is None:
            return matrix
        inverse = self._inverse
        return np.asarray(matrix[inverse[:, None], inverse])

    def rows_of(self, places: Ints) -> Ints:
        """Where some columns of B are stored."""
        return places if self.order is None else self._inverse[places]

    @cached_property
    def _inverse(self) -> Ints:
        return np.arange(len(self.columns)) if self.order is None else np.argsort(self.order)

    def _column(self, place: int) -> Floats:
        column: Floats = self.columns[self._inverse[place]]
        return column

    def take(self, vector: Floats) -> Floats:
        """The entries of a vector, one per row of X, that belong to the rows of B."""
        return vector if self.rows is None else vector[self.rows]

    def predict(self, coef: Floats) -> Floats:
        """B coef."""
        return np.asarray(self.inward(coef) @ self.columns)

    def back_project(self, residual: Floats) -> Floats:
        """B' residual."""
        return self.outward(np.asarray(self.columns @ residual))

    def extent(self, places: Ints, weights: Floats) -> tuple[Floats, Floats]:
        """|B|' weights and the largest absolute entry, for some of the columns."""
        sums, largest = np.empty(len(places)), np.empty(len(places))
        for which, place in enumerate(places):
            size = np.abs(self._column(place))
            sums[which], largest[which] = size @ weights, size.max(initial=0.0)
        return sums, largest

    def sandwich(self, weights: Floats) -> Floats:
        """B' diag(weights) B, a few rows at a time: no second block is held."""
        m, n = self.columns.shape
        root = np.sqrt(weights)
        if m * n <= SANDWICH_ENTRIES:
            part = self.columns * root
            total = np.asarray(part @ part.T)
        else:
            total = np.zeros((m, m))
            step = max(1024, SANDWICH_ENTRIES // max(m, 1))
            for start in range(0, n, step):
                part = self.columns[:, start : start + step] * root[start : start + step]
                total += part @ part.T
        return self.outward_both(total)

    def cross(self, place: int, weights: Floats) -> Floats:
        """One row of the sandwich."""
        return self.back_project(weights * self._column(place))

    def three_sums(self, residual: Floats, bend: Floats) -> ThreeSums:
        """B' residual, (B^2)' bend and (|B|^3)' bend."""
        m, n = self.columns.shape
        one, two, three = np.empty(m), np.empty(m), np.empty(m)
        flat, pointer = self.columns.ravel(), np.arange(m + 1) * n
        passes.three_sums_columns(
            flat, NO_ROWS, pointer, True, residual, bend, None, NO_TOTALS, one, two, three, 0, m
        )
        return self.outward(one), self.outward(two), self.outward(three)

    def toarray(self) -> Floats:
        """As an array of one row per row."""
        return self.columns.T if self.order is None else self.columns[self._inverse].T


@final
class Shelf:
    """Dense columns with room for more, so that a block can grow without being copied.

    It begins with some rows of an array of columns and has room for `width`, and more. Room costs
    nothing before it is written to.
    """

    def __init__(self, columns: Floats, rows: Ints, width: int) -> None:
        n = columns.shape[1]
        self.array = np.empty((roomy(width, n), n))
        columns.take(rows, axis=0, out=self.array[: len(rows)], mode="clip")
        self._used = len(rows)
        self._lock = Lock()

    def take(self, used: int, more: int) -> bool:
        """Reserve room behind the first `used` columns, unless somebody else has, or it is full."""
        with self._lock:
            free = self._used == used and used + more <= len(self.array)
            self._used += more * free
            return free


def roomy(width: int, length: int) -> int:
    """Room for how many vectors to make where `width` are needed: 64 unless they are long."""
    return max(2 * width, min(64, (1 << 25) // max(length, 1)))
