"""The vocabulary: Point, Blocks, Step, Objective, Rule.

Everything in the library is a value of one of these nouns. An *objective* Q knows how to
minimise itself on a set of coordinates and how to score candidates; a *rule* says which score
counts as goodness; the loop in `forback.selection.loop` puts the two together and knows neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: A change of Q below this share of it is never progress.
NEGLIGIBLE = 1e-12


class ObjectiveError(ValueError):
    """A function that somebody wrote is not what an objective must be, such as convex.

    Where it came to light during a run, the message says at which step, and `path` is the path so
    far.
    """

    path: Any = None


@dataclass(frozen=True, slots=True)
class Point:
    """The minimiser of Q over the coordinates in `support`, beta-hat(F) in the paper.

    Attributes
    ----------
    support : int array
        Sorted coordinates, the always ones included.
    coef : float array
        Coefficients on `support`.
    value : float
        Q at this point.
    size : int
        Number of chosen blocks; always coordinates never count.
    cache
        Whatever its objective wants to carry along; nobody else reads it.
    note : str
        What a reader of the result should know, for example that there is no minimiser.
    """

    support: Ints
    coef: Floats
    value: float
    size: int = 0
    cache: Any = None
    note: str = ""

    def without_cache(self) -> Point:
        """The same point, light enough to be kept for every step of a path."""
        if self.cache is None:
            return self
        return Point(self.support, self.coef, self.value, self.size, None, self.note)

    @property
    def resolution(self) -> float:
        """The change of Q that may be rounding, where Q has the unit 1 and no more is known."""
        return NEGLIGIBLE * max(1.0, abs(self.value))

    def dense(self, dim: int) -> Floats:
        """The coefficients as a vector of length `dim`, zero off the support."""
        beta = np.zeros(dim)
        beta[self.support] = self.coef
        return beta


@dataclass(frozen=True, slots=True)
class Blocks:
    """The candidates: block b owns `coordinates[pointer[b]:pointer[b + 1]]`.

    A block is what enters and leaves as one: a single coordinate by default, a group of columns,
    an edge of a graph. `always` lists the coordinates that are in from the start and stay in.
    """

    pointer: Ints
    coordinates: Ints
    always: Ints
    numbers: Ints  #: what `Step.feature` reports for each block
    in_order: bool = False  #: whether block b is coordinate b and nothing else

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
    def are_single(self) -> bool:
        """Whether every block is one coordinate, so that scores can be computed in bulk."""
        return len(self.coordinates) == len(self)

    def cover(self, n_candidates: int) -> bool:
        """Whether each of so many candidates is in a block or always in."""
        return len(self.coordinates) + int((self.always < n_candidates).sum()) == n_candidates

    def take(self, blocks: Sequence[int] | Ints) -> Blocks:
        """The same candidates restricted to `blocks`, in that order."""
        if self.are_single:
            picked = self.coordinates[np.asarray(blocks, dtype=np.intp)]
            return Blocks(self.pointer[: len(picked) + 1], picked, self.always, picked)
        return Blocks.of([self[block] for block in blocks], self.always)

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


@dataclass(frozen=True, slots=True)
class Step:
    """One move of the algorithm: a block entered or left, and Q was minimised again.

    Attributes
    ----------
    action : {"add", "remove"}
    feature : int
        The block's number: its coordinate, or its group in order of appearance.
    size : int
        Number of chosen blocks after the step.
    value : float
        Q after the step.
    change : float
        Q before the step minus Q after it: the paper's delta^(k) for an addition.
    score : float
        Goodness of the block added, badness of the block removed.
    point : Point
        The minimiser after the step.
    note : str
        Anything unusual: skipped candidates, no minimiser, no convergence.
    solved : int
        How many blocks were scored exactly; bounds ruled the others out.
    groups : int
        Number of groups (sensors, say) in use after the step.
    cost : float
        What they cost.
    """

    action: str
    feature: int
    size: int
    value: float
    change: float
    score: float
    point: Point
    note: str = ""
    solved: int = 0
    groups: int = 0
    cost: float = 0.0


@runtime_checkable
class Objective(Protocol):
    """A smooth convex Q over `dim` coordinates, as the loop sees it.

    Coordinates `0 .. n_candidates - 1` may be chosen; the rest (an intercept, transitions, a
    diagonal) are always in. Normalisation, everywhere: Q is the weighted mean of the loss plus
    ``1/2 * sum_j ridge_j * beta_j**2``, weights divided by their sum, terms free of the
    coefficients dropped. A `Point` that has lost its cache is still a valid argument.

    An objective may memoise facts about its data, never the state of a run: two interleaved runs
    on one objective give the same paths as two separate ones. Further members are optional.
    ``resolution(point)`` is the change of Q at a point that may be rounding, which nothing is made
    of; 1e-12 max(1, |Q|) if absent. ``infimum`` is a number that Q is nowhere below: a run ends
    where it is reached. ``rescaled()`` is the same objective in other units, with these units,
    where its numbers are too small, or too large, to be squared; else None.
    ``increase_after_refit(point, blocks)`` gives removal costs after refitting in closed form.
    ``information(point)`` returns ``(loglik, n, df)`` for information
    criteria. ``hessian_range()`` returns two matrices between which the Hessian lies everywhere
    (None for no upper one), for certified curvature. ``permuted(order, point)`` is the same
    objective with the rows of its response, and what the point predicts for them, in another
    order, for thresholds from noise, and ``n_rows`` the number of rows. ``feature_names``,
    ``columns`` and ``candidate_names`` tell what the candidates are (see
    `forback.candidates.make_candidates`), and ``default_by = "group"`` that the candidates of a
    column belong together: they are one block unless somebody asks for single ones.
    ``screened_gradient(point)``, ``screened_decrease(point, blocks)`` and
    ``screened_increase(point, blocks, limit)`` are quicker twins for whoever wants the best score
    only: they return the scores, exact wherever they may be the best (and below `limit`) and a
    bound on the safe side elsewhere, and how many are exact.
    """

    @property
    def dim(self) -> int:
        """The number of all coordinates."""

    @property
    def n_candidates(self) -> int:
        """How many coordinates, counted from 0, may be chosen."""

    def minimise(self, support: Ints, start: Point | None = None) -> Point:
        """beta-hat(F): the minimiser of Q over `support` (sorted), warm-started at `start`."""

    def gradient(self, point: Point) -> Floats:
        """The gradient of Q at `point`, over all `dim` coordinates."""

    def decrease_if_added(self, point: Point, blocks: Blocks) -> Floats:
        """For each block, how far Q falls when its coordinates alone are optimised."""

    def increase_if_removed(self, point: Point, blocks: Blocks) -> Floats:
        """For each block, how far Q rises when its coordinates are set to zero, no refit."""

    def value_and_gradient(self, beta: Floats) -> tuple[float, Floats]:
        """Q and its gradient at any dense vector of length `dim`."""


class Rule(Protocol):
    """What makes a candidate good, and from which goodness on it is worth adding."""

    @property
    def threshold(self) -> float:
        """The run stops when the best goodness is strictly below this."""

    def refuses(self, point: Point, blocks: Blocks, block: int, score: float) -> str | None:
        """Why the run ends although `block` is the best candidate; None if it goes on."""

    def goodness(self, objective: Objective, point: Point, blocks: Blocks) -> Floats:
        """A score for every block; the highest is added next."""

    def screened(self, objective: Objective, point: Point, blocks: Blocks) -> tuple[Floats, int]:
        """The same, exact wherever it may be the highest, and how many scores are exact."""
