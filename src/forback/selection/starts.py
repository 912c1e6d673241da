"""Where refinement starts from: supports of one size, found in different ways."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle

import numpy as np

from forback.core.point import Move, Point
from forback.core.status import Ending
from forback.selection.exchange import Exchanges, Found
from forback.selection.loop import State
from forback.selection.refinement import Refinement
from forback.selection.supports import Start, Supports

#: How many times the wanted size each start goes.
WAY, OVERSHOOT, DEEP = 2, 3, 8

#: A deep support has at most one block for so many rows; for more where Q is not quadratic.
ROWS_PER_BLOCK = 2
ROWS_PER_BLOCK_IF_NOT_QUADRATIC = 6

#: How far other sizes are that are looked at, as shares of the size; at least the next one.
DISTANCES = (0.2, 0.5)


@dataclass
class Walk:
    """A literal run that goes on after its end, as far as starts need it.

    Attributes
    ----------
    state : State
        Where it is.
    onwards : callable
        The moves of Algorithm 1 from a state to a size.
    visits : list
        Every point so far without its cache, and its blocks in order of entry.
    tops : list of int
        How many visits there were whenever an iteration began.
    ended : bool
        Whether it can go no further.
    """

    state: State
    onwards: Callable[[State, int], Generator[Move, None, Ending]]
    visits: list[tuple[Point, list[int]]] = field(default_factory=list)
    tops: list[int] = field(default_factory=list)
    ended: bool = False

    def record(self, move: Move) -> None:
        """Remember a move that was made."""
        self.visit(move.action, move.point, list(self.state.chosen))

    def visit(self, action: str, point: Point, entered: list[int]) -> None:
        """Remember a point that a move led to, with its blocks."""
        if action != "remove":
            self.tops.append(len(self.visits))
        self.visits.append((point.without_cache(), entered))

    def way_to(self, size: int) -> list[tuple[Point, list[int]]]:
        """What was visited until an iteration began, or could have begun, at a size."""
        for top in [*self.tops, len(self.visits)]:
            if top and self.visits[top - 1][0].size >= size:
                return self.visits[:top]
        for move in () if self.ended else self.onwards(self.state, size):
            self.record(move)
        self.ended = self.state.point.size < size
        return self.visits


@dataclass
class Starts:
    """The supports that exchanges start from, made one after the other.

    Attributes
    ----------
    supports : Supports
    walk : Walk
    answer : Point
        What is to be improved.
    nothing : Point
        Where nothing is in yet.
    """

    supports: Supports
    walk: Walk
    answer: Point
    nothing: Point

    @property
    def size(self) -> int:
        """How many blocks are wanted."""
        return self.answer.size

    @property
    def are_quick(self) -> bool:
        """Whether the objective estimates exchanges in no time, so that many starts will do."""
        return self.supports.objective.has_quick_exchanges(self.supports.blocks)

    def named(self, refinement: Refinement) -> Iterator[Start]:
        """Yield those that are asked for; where exchanges are slow, only that of the run."""
        if not self.are_quick:
            yield from self._way(self.size)
            return
        found = 0
        for start in self._asked_for(refinement.starts, refinement.searches):
            found += 1
            yield start
        if not found:  # none is larger than what is wanted
            yield from self._way(WAY * self.size)

    def _asked_for(self, wanted: Sequence[str], searches: bool) -> Iterator[Start]:
        """Make the starts of these names that there are."""
        if "path" in wanted:
            yield from self._way(WAY * self.size)
        over = self._overshoot(OVERSHOOT * self.size if "overshoot" in wanted else self.size)
        if "overshoot" in wanted and len(over.entered) > self.size:
            yield self.supports.within_limits(over)._replace(name="overshoot")
        deepest = self._deepest(searches)
        if "deep" in wanted and deepest > max(len(over.entered), self.size):
            deep = self._free.grown(over, deepest)
            yield self.supports.within_limits(deep)._replace(name="deep")
        if "marginal" in wanted:
            nothing = Start("marginal", self._nothing, [])
            yield self.supports.grown(nothing, self.size, growth=float(self.size))
        if self.supports.limits.cost is not None:
            nothing = Start("per price", self._nothing, [])
            size = self.supports.limits.size
            yield self.supports.grown(nothing, size, growth=0.0, per_price=True)

    @property
    def _free(self) -> Supports:
        """The same, whatever blocks cost."""
        return replace(self.supports, limits=replace(self.supports.limits, cost=None))

    @property
    def _nothing(self) -> Point:
        return self._live(self.nothing)

    def _way(self, reach: int) -> Iterator[Start]:
        """The best support on the way."""
        limits = self.supports.limits
        way = self.walk.way_to(reach)
        literal = [visit for visit in self.walk.visits if self._is_answer(visit[0])]
        own = [visit for visit in [*way, *literal] if limits.are_kept_by(visit[0])]
        if limits.cost is None:
            own = [visit for visit in own if visit[0].size == self.size]
        if own:
            point, entered = min(own, key=lambda visit: visit[0].value)
            yield Start("path", self._live(point), entered)

    def _is_answer(self, point: Point) -> bool:
        return np.array_equal(point.support, self.answer.support)

    def _overshoot(self, size: int) -> Start:
        """What the run has at that size; from twice the wanted size on, several come at a time."""
        literal = min(size, WAY * self.size)
        way = self.walk.way_to(literal)
        point, entered = way[-1] if way else (self.walk.state.point, [])
        over = Start("", self._live(point), entered)
        return self._free.grown(over, size) if len(entered) == literal < size else over

    def _live(self, point: Point) -> Point:
        """The point with what later fits may use."""
        state = self.walk.state.point
        if np.array_equal(point.support, state.support):
            return state
        return self.supports.objective.minimise(point.support, state).of_size(point.size)

    def _deepest(self, searches: bool) -> int:
        """The size of the deep support."""
        blocks = self.supports.blocks
        most = min(DEEP * self.size, len(blocks))
        response = self.supports.objective.response()
        if response is None:
            return most
        bent = not (self.supports.objective.is_quadratic or searches)
        rows = ROWS_PER_BLOCK_IF_NOT_QUADRATIC if bent else ROWS_PER_BLOCK
        width = len(blocks.coordinates) / max(1, len(blocks))
        return min(most, int(response.n_rows / (rows * width)))

    def neighbours(self, best: Start, exchanges: Exchanges) -> Iterator[Found]:
        """Yield what lowers Q by way of other sizes: there, exchange blocks, and back again."""
        sizes, stale = self._other_sizes(len(best.entered)), 0
        for size in cycle(sizes):
            found = exchanges.descent(self._by_way_of(size, best, exchanges))
            stale += 1
            if self.supports.is_lower(found.end, best):
                yield found
                best, stale = found.end, 0
            if stale == len(sizes):
                return

    def _other_sizes(self, size: int) -> list[int]:
        """Sizes on both sides, near ones first."""
        distances = dict.fromkeys(int(max(1, share * size)) for share in DISTANCES)
        sizes = [size + sign * distance for distance in distances for sign in (1, -1)]
        return [other for other in sizes if 0 < other <= len(self.supports.blocks)]

    def _by_way_of(self, size: int, best: Start, exchanges: Exchanges) -> Start:
        """The best of a size that is to be found from the best of the size wanted, and back."""
        there = self._free.reduced(self._free.grown(best, size, growth=0.0), size)
        if self.supports.limits.cost is None:
            there = exchanges.descent(there).end
            there = self.supports.grown(there, self.size, growth=0.0)
        name = f"by way of size {size}"
        return self.supports.within_limits(there)._replace(name=name)
