"""Where refinement starts from: supports of one size, found in different ways."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from forback.core.blocks import Blocks
from forback.core.objective import Objective
from forback.core.point import Move, Point
from forback.core.rule import Rule
from forback.core.status import Ending
from forback.selection.exchange import Exchanges, Found, Start, eliminate
from forback.selection.loop import State, outside
from forback.selection.refinement import Refinement

#: How many times the wanted size each start goes.
WAY, OVERSHOOT, DEEP = 2, 3, 8

#: A deep support has at most one block for so many rows; for more where Q is not quadratic.
ROWS_PER_BLOCK = 2
ROWS_PER_BLOCK_IF_BENT = 6

#: A deep support grows by this share of itself from fit to fit.
GROWTH = 0.25

#: How far other sizes are that are looked at, as shares of the size; the first is the next one.
DISTANCES = (0.0, 0.2, 0.5)


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
    """

    state: State
    onwards: Callable[[State, int], Generator[Move, None, Ending]]
    visits: list[tuple[Point, list[int]]] = field(default_factory=list)
    tops: list[int] = field(default_factory=list)
    ended: bool = False

    def record(self, move: Move) -> None:
        """Remember a move that was made."""
        if move.action == "add":
            self.tops.append(len(self.visits))
        self.visits.append((move.point.without_cache(), list(self.state.chosen)))

    def way_to(self, size: int) -> list[tuple[Point, list[int]]]:
        """What was visited until an iteration began, or could have begun, at a size."""
        end = self._first_top(size)
        if end is None:
            for move in () if self.ended else self.onwards(self.state, size):
                self.record(move)
            self.ended = self.state.point.size < size
            end = len(self.visits)
        return self.visits[:end]

    def _first_top(self, size: int) -> int | None:
        for top in [*self.tops[1:], len(self.visits)]:
            if top and self.visits[top - 1][0].size >= size:
                return top
        return None


@dataclass
class Starts:
    """The supports of one size that exchanges start from, made one after the other.

    Attributes
    ----------
    objective : Objective
    blocks : Blocks
    rule : Rule
        What the run went by, without a threshold and whatever blocks cost.
    walk : Walk
    size : int
    first : Point
        Where nothing is in yet.
    fits : callable
        Whether a support may be an answer: it is not too expensive.
    """

    objective: Objective
    blocks: Blocks
    rule: Rule
    walk: Walk
    size: int
    first: Point
    fits: Callable[[Point], bool]

    def named(self, refinement: Refinement) -> Iterator[Start]:
        """Make those that a refinement asks for; others only where exchanges are quick."""
        quick = self.objective.has_quick_exchanges
        if "path" in refinement.starts or not quick:
            yield from self._path(WAY * self.size if quick else self.size)
        if not quick:
            return
        wanted = OVERSHOOT * self.size
        deepest = self._deepest(refinement.effort > 0.0)
        point, chosen = self._overshoot(wanted if "overshoot" in refinement.starts else self.size)
        if "overshoot" in refinement.starts and len(chosen) > self.size:
            yield from self._eliminated("overshoot", point, chosen)
        if "deep" in refinement.starts and deepest > max(len(chosen), self.size):
            yield from self._eliminated("deep", *self._grown(point, chosen, deepest))
        if "marginal" in refinement.starts:
            yield from self._marginal()

    def _path(self, reach: int) -> Iterator[Start]:
        """The best support of the size on the way."""
        way = [visit for visit in self.walk.way_to(reach) if visit[0].size == self.size]
        own = [visit for visit in way if self.fits(visit[0])]
        if own:
            point, entered = min(own, key=lambda visit: visit[0].value)
            yield Start("path", self._live(point), entered)

    def _marginal(self) -> Iterator[Start]:
        """The blocks that are best before any is in, all at once."""
        first = self._live(self.first)
        start = Start("marginal", *self._grown(first, [], self.size, float(self.size)))
        if self.fits(start.point):
            yield start

    def _overshoot(self, size: int) -> tuple[Point, list[int]]:
        """Where the run is once it has that size."""
        way = self.walk.way_to(size)
        point, chosen = way[-1] if way else (self.walk.state.point, [])
        return self._live(point), chosen

    def _live(self, point: Point) -> Point:
        """The point with what later fits may use."""
        state = self.walk.state.point
        if np.array_equal(point.support, state.support):
            return state
        return self.objective.minimise(point.support, state).of_size(point.size)

    def _eliminated(self, name: str, point: Point, chosen: list[int]) -> Iterator[Start]:
        point, left = eliminate(self.objective, self.blocks, point, chosen, self.size)
        if self.fits(point):
            yield Start(name, point, left)

    def _deepest(self, searches: bool) -> int:
        """The size of the deep support."""
        most = min(DEEP * self.size, len(self.blocks))
        response = self.objective.response()
        if response is None:
            return most
        bent = not (self.objective.is_quadratic or searches)
        rows = ROWS_PER_BLOCK_IF_BENT if bent else ROWS_PER_BLOCK
        width = len(self.blocks.coordinates) / max(1, len(self.blocks))
        return min(most, int(response.n_rows / (rows * width)))

    def neighbours(self, best: Start, exchanges: Exchanges) -> Iterator[Found]:
        """Yield what lowers Q by way of other sizes: there, exchange blocks, and back again."""
        stale = False
        while not stale:
            stale = True
            for size in self._other_sizes():
                found = exchanges.descent(self._by_way_of(size, best, exchanges))
                if exchanges.is_lower(found.end, best):
                    yield found
                    best, stale = found.end, False

    def _other_sizes(self) -> list[int]:
        """Sizes on both sides, near ones first."""
        distances = dict.fromkeys(int(max(1, share * self.size)) for share in DISTANCES)
        sizes = [self.size + sign * distance for distance in distances for sign in (1, -1)]
        return [size for size in sizes if 0 < size <= len(self.blocks)]

    def _by_way_of(self, size: int, best: Start, exchanges: Exchanges) -> Start:
        """The best of a size that is to be found from the best of the size wanted, and back."""
        there = exchanges.descent(self._resized(best, size)).end
        return self._resized(there, self.size)._replace(name=f"by way of size {size}")

    def _resized(self, here: Start, size: int) -> Start:
        """With more blocks, the best ones, or without those that cost least."""
        if size > len(here.entered):
            return Start(here.name, *self._grown(here.point, here.entered, size, 0.0))
        return Start(
            here.name, *eliminate(self.objective, self.blocks, here.point, here.entered, size)
        )

    def refilled(self, best: Start, out: list[int], banned: list[int]) -> Start:
        """Take some blocks out, and let others in, one at a time, but not those banned."""
        kept = [block for block in best.entered if block not in out]
        gone = np.concatenate([self.blocks[block] for block in out])
        support = np.setdiff1d(best.point.support, gone, assume_unique=True)
        point = self.objective.minimise(support, best.point).of_size(len(kept))
        return Start(best.name, *self._grown(point, kept, len(best.entered), 0.0, banned))

    def _grown(
        self,
        point: Point,
        chosen: list[int],
        size: int,
        growth: float = GROWTH,
        banned: Sequence[int] = (),
    ) -> tuple[Point, list[int]]:
        """Add the best candidates, several at a time."""
        chosen = list(chosen)
        while len(chosen) < size:
            not_these = [*chosen, *banned]
            goodness, _ = outside(self.rule.goodness(self.objective, point, self.blocks), not_these)
            count = min(size - len(chosen), max(1, int(growth * max(1, len(chosen)))))
            new = np.argsort(-goodness, kind="stable")[:count].tolist()
            joined = np.concatenate([point.support, *(self.blocks[block] for block in new)])
            chosen += new
            point = self.objective.minimise(np.sort(joined), point).of_size(len(chosen))
        return point, chosen
