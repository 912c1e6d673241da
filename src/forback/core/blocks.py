"""Blocks: the candidates as coordinates that enter and leave together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from forback.core.types import Floats, Ints


@dataclass(frozen=True, slots=True)
class Blocks:
    """The candidates: block b owns `coordinates[pointer[b]:pointer[b + 1]]`.

    A block is what enters and leaves as one: a single coordinate by default, a group of columns,
    an edge of a graph. `always` lists the coordinates that are in from the start and stay in.

    Attributes
    ----------
    pointer : Ints
    coordinates : Ints
    always : Ints
    numbers : Ints
        What `Step.feature` reports for each block.
    in_order : bool
        Whether block b is coordinate b and nothing else.
    """

    pointer: Ints
    coordinates: Ints
    always: Ints
    numbers: Ints
    in_order: bool = False

    @classmethod
    def of(cls, members: Sequence[Ints], always: Ints, numbers: Ints | None = None) -> Self:
        """Build blocks from one array of coordinates per block."""
        lengths = [len(block) for block in members]
        pointer = np.concatenate(([0], np.cumsum(lengths, dtype=np.intp))).astype(np.intp)
        coordinates = np.concatenate([np.zeros(0, np.intp), *members]).astype(np.intp)
        if numbers is None:
            numbers = np.arange(len(members))
        return cls(pointer, coordinates, np.sort(always), numbers)

    @classmethod
    def singles(cls, coordinates: Ints, always: Ints) -> Self:
        """One block per coordinate, reported under the coordinate's own number."""
        order = np.arange(len(coordinates) + 1)
        in_order = np.array_equal(coordinates, order[:-1])
        return cls(order, coordinates, np.sort(always), coordinates, in_order)

    def __len__(self) -> int:
        return len(self.pointer) - 1

    def __getitem__(self, block: int) -> Ints:
        return self.coordinates[self.pointer[block] : self.pointer[block + 1]]

    def __iter__(self) -> Iterator[Ints]:
        return (self[block] for block in range(len(self)))

    @property
    def firsts(self) -> Ints:
        """The first coordinate of each block."""
        return self.coordinates[self.pointer[:-1]]

    @property
    def are_single(self) -> bool:
        """Whether every block is one coordinate, so that scores can be computed in bulk."""
        return len(self.coordinates) == len(self)

    def cover(self, n_candidates: int) -> bool:
        """Whether each of so many candidates is in a block or always in."""
        return len(self.coordinates) + int((self.always < n_candidates).sum()) == n_candidates

    def places_in(self, support: Ints) -> list[Ints]:
        """Return where the coordinates of each block are in a sorted support that has them all."""
        places = np.searchsorted(support, self.coordinates)
        if self.are_single:
            return list(places[:, None])
        return np.split(places, self.pointer[1:-1])

    def take(self, blocks: Sequence[int] | Ints) -> Blocks:
        """Return some of the blocks, in the order given."""
        which = np.asarray(blocks, dtype=np.intp)
        if self.are_single:
            picked = self.coordinates[which]
            return Blocks(self.pointer[: len(picked) + 1], picked, self.always, picked)
        lengths = np.diff(self.pointer)[which]
        pointer = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(self.pointer[which] - pointer[:-1], lengths) + np.arange(pointer[-1])
        return Blocks(pointer, self.coordinates[places], self.always, np.arange(len(which)))

    def sums(self, vector: Floats) -> Floats:
        """The sum of `vector` over each block."""
        picked = vector[self.coordinates]
        return picked if self.are_single else np.add.reduceat(picked, self.pointer[:-1])

    def norms(self, vector: Floats) -> Floats:
        """The Euclidean norm of `vector` over each block."""
        if self.in_order:
            return np.abs(vector[: len(self)])
        picked = vector[self.coordinates]
        if self.are_single:
            return np.abs(picked)
        # Divide by the largest entry first, so that squares of 1e200 do not overflow.
        largest = np.maximum.reduceat(np.abs(picked), self.pointer[:-1])
        unit = np.where(largest > 0, largest, 1.0)
        scaled = picked / np.repeat(unit, np.diff(self.pointer))
        return np.asarray(unit * np.sqrt(np.add.reduceat(scaled**2, self.pointer[:-1])))
