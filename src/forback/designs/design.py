"""What a design matrix and the columns of a support can be asked, however they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from forback.core.types import Floats, Ints
from forback.designs.chunks import CHUNK_ENTRIES, Chunk, DenseChunk
from forback.designs.kernels.entries import Entries, Rest


class Design(Protocol):
    """A matrix X of n rows and p columns, whatever its storage.

    A storage names this class as its base, and takes over what is said here.
    """

    shape: tuple[int, int]
    columns_at_once: int  #: how many columns `entries` is best asked for at a time

    #: Whether `back_project_all` takes far less than one pass over X for each residual.
    has_quick_products: bool = False

    def back_project(self, residual: Floats) -> Floats:
        """X' residual: one pass over X."""

    def back_project_all(self, residuals: Floats) -> Floats:
        """X' residuals for several of them, n x K: a row of K numbers per column of X."""

    def three_sums(self, residual: Floats, curvature: Floats) -> ThreeSums:
        """X' residual, (X^2)' curvature and (|X|^3)' curvature: one pass over X."""

    def stored_squares(self, weights: Floats) -> Floats:
        """The weighted mean squares of columns as they are stored, which rounding goes by."""
        return self.three_sums(weights, weights)[1]

    @property
    def ranges(self) -> tuple[Floats, Floats]:
        """The least and the largest entry of each column, zeros that are not stored included."""

    @cached_property
    def largest(self) -> Floats:
        """The largest absolute entry of each column."""
        low, high = self.ranges
        return np.maximum(high, -low)

    @property
    def is_far_from_zero(self) -> bool:
        """Whether the mean of some column may be many times its spread."""

    @property
    def is_out_of_range(self) -> bool:
        """Whether the entries of some column are too small, or too large, to be squared."""

    def times(self, powers: Ints) -> Design:
        """A copy with each column times that power of two."""

    def gram(self, weights: Floats) -> Floats:
        """X' diag(weights) X as an array."""

    def centred_moments(
        self, weights: Floats, residual: Floats, center: Floats
    ) -> tuple[Floats, Floats] | None:
        """The Gram matrix of X - center, and (X - center)' residual, to the last digit.

        None where the center cannot, or need not, be taken off entry by entry.
        """
        return None

    def block(
        self, columns: Ints, *, intercept: bool, previous: PreviousBlock | None = None
    ) -> Block:
        """The given columns, followed by a column of ones if asked for.

        What they share with a previous block, the intercept included, may be taken from it.
        """

    def toarray(self, columns: Ints) -> Floats:
        """The given columns as an array of one row per row."""

    def entries(self, columns: Ints) -> Entries:
        """The given columns as kernels see them."""

    def stored_entries(
        self, columns: Ints, residual: Floats, curvature: Floats
    ) -> tuple[Entries, Rest] | None:
        """The columns where most rows of them are alike: the others, and what the alike sum up to.

        None where `entries` are not any longer than that.
        """
        return None

    def chunks(self, columns: Ints) -> Iterator[tuple[slice, Chunk]]:
        """Cover `columns` by chunks, each with its place in `columns`."""
        width = max(1, CHUNK_ENTRIES // max(1, self.shape[0]))
        for start in range(0, len(columns), width):
            place = slice(start, start + width)
            yield place, DenseChunk(np.ascontiguousarray(self.toarray(columns[place]).T))


def one_by_one(design: Design, residuals: Floats) -> Floats:
    """X' residuals, each by a pass that adds up single precision in double."""
    parts = [design.back_project(np.ascontiguousarray(column)) for column in residuals.T]
    return np.column_stack(parts)


#: Slopes, curvatures, and what bounds how fast the latter change, of every column.
ThreeSums = tuple[Floats, Floats, Floats]


class PreviousBlock(NamedTuple):
    """A block of which some columns are wanted again: number `old[i]`, now at `places[i]`."""

    block: Block
    places: Ints
    old: Ints


class DenseColumns(NamedTuple):
    """A block as kernels see it: its columns are the rows of an array."""

    columns: Floats


class SparseRows(NamedTuple):
    """A block as kernels see it, by rows: row i is ``data[pointer[i]:pointer[i + 1]]``."""

    data: Floats
    columns: Ints
    pointer: Ints


class Block(Protocol):
    """Columns B of X, perhaps followed by a column of ones."""

    shape: tuple[int, int]
    is_dense: bool  #: whether every entry is stored
    rows: Ints | None  #: the rows of X it consists of, all others being zero; None: all rows
    shift: Floats | None = None  #: what is taken off each column besides what is stored

    @property
    def stored(self) -> DenseColumns | SparseRows:
        """What kernels need to know about it."""

    def to_storage(self, vector: Floats) -> Floats:
        """A number per column of B, in the order in which columns are stored."""
        return vector

    def from_storage(self, array: Floats) -> Floats:
        """An array that has one entry along each axis per column stored, in the order of B."""
        return array

    def places_in_storage(self, places: Ints) -> Ints:
        """Where some columns of B are stored."""
        return places

    def at_rows(self, rows: Ints) -> Block:
        """Some of its rows."""

    def take(self, vector: Floats) -> Floats:
        """The entries of a vector, one per row of X, that belong to the rows of B."""
        return vector if self.rows is None else vector[self.rows]

    def predict(self, coef: Floats) -> Floats:
        """B coef."""

    def back_project(self, residual: Floats) -> Floats:
        """B' residual."""

    def column(self, place: int) -> Floats:
        """One column of B as an array; not to be written to."""

    def extent(self, places: Ints, weights: Floats) -> tuple[Floats, Floats]:
        """|B|' weights and the largest absolute entry, for some of the columns."""
        sums = np.empty(len(places))
        largest = np.empty(len(places))
        for which, place in enumerate(places):
            size = np.abs(self.column(place))
            sums[which] = size @ weights
            largest[which] = size.max(initial=0.0)
        return sums, largest

    def sandwich(self, weights: Floats) -> Floats:
        """B' diag(weights) B as an array; weights must not be negative."""

    def cross(self, place: int, weights: Floats) -> Floats:
        """One row of the sandwich."""
        return self.back_project(weights * self.column(place))

    def three_sums(self, residual: Floats, curvature: Floats) -> ThreeSums:
        """B' residual, (B^2)' curvature and (|B|^3)' curvature."""

    def toarray(self) -> Floats:
        """As an array of one row per row: only where columns are too collinear to stay sparse."""


def second_moments(design: Design, weights: Floats, intercept: bool) -> Floats:
    """The weighted mean of the products of all pairs of columns, an intercept's ones the last."""
    gram = design.gram(weights)
    if not intercept:
        return gram
    mean = design.back_project(weights)[:, None]
    return np.block([[gram, mean], [mean.T, weights.sum()]])
