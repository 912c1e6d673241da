"""The dense columns of a support."""

from __future__ import annotations

from functools import cached_property, reduce
from threading import Lock
from typing import final

import numpy as np

from forback.core.types import Floats, Ints
from forback.designs.design import Block, DenseColumns, Design, PreviousBlock, ThreeSums
from forback.designs.stored import StoredColumns
from forback.solvers import threads
from forback.solvers.products import product

#: How many entries of a block are weighted at a time on the way to B' diag(w) B.
SANDWICH_ENTRIES = 1 << 18

#: From this many rows on, sums over rows are worth a second thread.
ROWS_AT_ONCE = 1 << 12

#: A dense block of more entries than this is not copied in order to grow.
MAX_COPIED_ENTRIES = 1 << 13


@final
class DenseBlock(Block):
    """Columns as the rows of a contiguous array, in any order."""

    is_dense = True

    def __init__(
        self,
        columns: Floats,
        rows: Ints | None = None,
        *,
        order: Ints | None = None,
        buffer: ColumnBuffer | None = None,
    ) -> None:
        self.columns = columns
        self.shape = (columns.shape[1], columns.shape[0])
        self.rows = rows
        self.order = order  #: the place in B of each column stored; None: one after the other
        self._buffer = buffer

    @classmethod
    def of(
        cls,
        design: Design,
        columns: Ints,
        intercept: bool,
        previous: PreviousBlock | None,
        max_copied: int,
    ) -> DenseBlock:
        """Some columns of a design, and one of ones if asked for.

        A block of more than `max_copied` entries shares those of a previous block.
        """
        n = design.shape[0]
        width = len(columns) + intercept
        old = None if previous is None else previous.block
        if previous is not None and isinstance(old, DenseBlock) and width * n > max_copied:
            return old._grown(previous, design, columns, width)
        block = np.ones((width, n))
        own = block[: len(columns)]
        for place, chunk in design.chunks(columns):
            own[place] = chunk.values
        return cls(block)

    def _grown(
        self, previous: PreviousBlock, design: Design, columns: Ints, width: int
    ) -> DenseBlock:
        """A block that shares the columns of this one, if it wants all of them."""
        m = len(self.columns)
        missing = np.delete(np.arange(width), previous.places)
        stay = previous.old
        order = previous.places
        buffer = self._buffer
        everything = len(stay) == m
        if everything:
            stay = np.arange(m) if self.order is None else self.order
            order = previous.places[stay]
        if buffer is None or not everything or not buffer.take(m, len(missing)):
            # Where some leave, an exchange is tried as a rule, which leads nowhere as a rule.
            room = roomy(width, self.columns.shape[1]) if everything else width
            buffer = ColumnBuffer(self.columns, self.places_in_storage(stay), room)
            buffer.take(len(stay), len(missing))
        for row, j in enumerate(missing, start=len(stay)):
            is_intercept = j == len(columns)
            buffer.array[row] = 1.0 if is_intercept else design.toarray(columns[j : j + 1])[:, 0]
        return DenseBlock(buffer.array[:width], order=np.append(order, missing), buffer=buffer)

    @property
    def stored(self) -> DenseColumns:
        """What kernels need to know about it."""
        return DenseColumns(self.columns)

    def to_storage(self, vector: Floats) -> Floats:
        """A number per column of B, in the order in which columns are stored."""
        return vector if self.order is None else vector[self.order]

    def from_storage(self, array: Floats) -> Floats:
        """An array that has one entry along each axis per column stored, in the order of B."""
        if self.order is None:
            return array
        inverse = self._inverse
        return np.asarray(array[inverse] if array.ndim == 1 else array[inverse[:, None], inverse])

    def places_in_storage(self, places: Ints) -> Ints:
        """Where some columns of B are stored."""
        return places if self.order is None else self._inverse[places]

    def at_rows(self, rows: Ints) -> DenseBlock:
        """Some of its rows."""
        return DenseBlock(np.ascontiguousarray(self.columns[:, rows]), order=self.order)

    @cached_property
    def _inverse(self) -> Ints:
        return np.arange(len(self.columns)) if self.order is None else np.argsort(self.order)

    def column(self, place: int) -> Floats:
        """One column of B as an array."""
        return np.asarray(self.columns[self._inverse[place]])

    def predict(self, coef: Floats) -> Floats:
        """B coef."""
        return product(self.to_storage(coef), self.columns)

    def back_project(self, residual: Floats) -> Floats:
        """B' residual."""
        return self.from_storage(product(residual, self.columns.T))

    def sandwich(self, weights: Floats) -> Floats:
        """B' diag(weights) B, a few rows at a time: no second block is held."""
        m, n = self.columns.shape
        root = np.sqrt(weights)

        def of_rows(start: int, stop: int) -> Floats:
            part = self.columns[:, start:stop] * root[start:stop]
            return np.asarray(part @ part.T)

        edges = threads.edges(n, max(1024, SANDWICH_ENTRIES // max(m, 1)))
        return self.from_storage(reduce(np.add, threads.over_chunks(of_rows, edges)))

    def three_sums(self, residual: Floats, curvature: Floats) -> ThreeSums:
        """B' residual, (B^2)' curvature and (|B|^3)' curvature."""
        n, m = self.shape
        stored = StoredColumns(self.columns.ravel(), None, np.arange(m + 1) * n)
        one, two, three = stored.sums(residual, curvature)
        return self.from_storage(one), self.from_storage(two), self.from_storage(three)

    def toarray(self) -> Floats:
        """As an array of one row per row."""
        return self.columns.T if self.order is None else self.columns[self._inverse].T


@final
class ColumnBuffer:
    """Dense columns with room for more, so that a block can grow without being copied.

    It begins with some rows of an array of columns and has room for so many. Room costs nothing
    before it is written to.
    """

    def __init__(self, columns: Floats, rows: Ints, room: int) -> None:
        self.array = np.empty((room, columns.shape[1]))
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
