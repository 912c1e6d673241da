"""Exchanges: one block for another, as long as that lowers Q."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forback.core.blocks import Blocks
from forback.core.objective import MOST_REMOVALS_TRIED, Objective
from forback.core.point import Move, Point
from forback.core.types import Floats, Ints

#: Which blocks outside may take the place of which inside: a row for each of the latter.
Allowed = Callable[[Point, Ints, Ints], NDArray[np.bool_]]

#: Why exchanges end.
NONE_HELPS = "no exchange lowers the objective"
MET = "met a support that was refined before"
SPENT = "as many fits as the run itself took"


class Start(NamedTuple):
    """A support of the wanted size to exchange blocks of.

    Attributes
    ----------
    name : str
        Where it comes from, as a path tells it.
    point : Point
    entered : list of int
        Its blocks in the order in which they came in.
    """

    name: str
    point: Point
    entered: list[int]

    def after(self, move: Move) -> Start:
        """Return the support after an exchange."""
        stayed = [block for block in self.entered if block != move.out]
        return Start(self.name, move.point, [*stayed, move.block])


class Found(NamedTuple):
    """A start, the exchanges made from it, where they led, and why they ended."""

    start: Start
    moves: list[Move]
    end: Start
    ending: str


class Trial(NamedTuple):
    """An exchange that may be made, and by how much Q would fall by an estimate."""

    out: int
    into: int
    estimate: float


@dataclass
class Exchanges:
    """What exchanges go by, and what was tried.

    Attributes
    ----------
    objective : Objective
    blocks : Blocks
    shortlist : int
        How many exchanges are refitted, at most, where their scores are estimates.
    allowed : callable, optional
        Which exchanges may be made.
    max_fits : int, optional
        How many fits may be made.
    seen : set of bytes
        The supports from which the best exchange was looked for.
    sweeps : int
        How many supports had all their exchanges scored.
    fits : int
    """

    objective: Objective
    blocks: Blocks
    shortlist: int
    allowed: Allowed | None = None
    max_fits: int | None = None
    seen: set[bytes] = field(default_factory=set)
    sweeps: int = 0
    fits: int = 0

    def is_lower(self, here: Start, there: Start) -> bool:
        """Whether Q is lower here by more than rounding."""
        return here.point.value < there.point.value - self.objective.resolution(there.point)

    def descent(self, start: Start) -> Found:
        """Return all of it at once."""
        *moves, ending = self.descend(start)
        end = start
        for move in moves:
            end = end.after(move)
        return Found(start, moves, end, ending)

    def descend(self, here: Start) -> Iterator[Any]:
        """Yield the best exchange, and the next, until none helps; last of all why."""
        while here.point.support.tobytes() not in self.seen:
            self.seen.add(here.point.support.tobytes())
            if self.max_fits is not None and self.fits >= self.max_fits:
                yield SPENT
                return
            move = self.best(here)
            if move is None:
                yield NONE_HELPS
                return
            here = here.after(move)
            yield move
        yield MET

    def best(self, here: Start) -> Move | None:
        """Return the exchange that lowers Q most, if any does.

        Where scores are estimates, the most promising are refitted, until one does better than the
        next promises.
        """
        best: Move | None = None
        count = self.shortlist
        if self.max_fits is not None:
            self.fits += MOST_REMOVALS_TRIED
            count = max(1, min(count, self.max_fits - self.fits))
        trials, n_exact = self.trials(here.point, here.entered, count)
        least = self.objective.resolution(here.point)
        for trial in trials:
            if trial.estimate <= (best.change if best else least if n_exact else -np.inf):
                break
            move = self.make(here.point, trial, n_exact)
            if move.change > (best.change if best else least):
                best = move
        return best

    def trials(self, point: Point, chosen: Sequence[int], count: int) -> tuple[list[Trial], int]:
        """Return the exchanges that promise most, and how many scores were exact."""
        inside = np.array(sorted(chosen), dtype=np.intp)
        outside = np.setdiff1d(np.arange(len(self.blocks)), inside, assume_unique=True)
        if len(inside) == 0 or len(outside) == 0:
            return [], 0
        self.sweeps += 1
        scores = self.objective.decrease_if_exchanged(
            point, self.blocks.take(inside), self.blocks.take(outside), estimate=True
        )
        falls = np.nan_to_num(scores.values, nan=-np.inf, neginf=-np.inf)
        if self.allowed is not None:
            falls = np.where(self.allowed(point, inside, outside), falls, -np.inf)
        return [
            Trial(int(inside[row]), int(outside[column]), float(falls[row, column]))
            for row, column in _highest(falls, count)
            if falls[row, column] > -np.inf
        ], scores.n_exact

    def make(self, point: Point, trial: Trial, n_exact: int = 0) -> Move:
        """Return an exchange, refitted."""
        self.fits += 1
        kept = np.setdiff1d(point.support, self.blocks[trial.out], assume_unique=True)
        wider = np.sort(np.concatenate([kept, self.blocks[trial.into]]))
        found = self.objective.minimise(wider, point).of_size(point.size)
        change = point.value - found.value
        return Move("exchange", trial.into, trial.estimate, found, change, n_exact, out=trial.out)


def _highest(scores: Floats, count: int) -> Iterator[tuple[int, int]]:
    """The places of the highest scores of a table, the highest first; of equals, the first."""
    flat = scores.ravel()
    some = np.arange(len(flat))
    if len(flat) > count:
        some = np.flatnonzero(flat >= np.partition(flat, len(flat) - count)[len(flat) - count])
    for place in some[np.argsort(-flat[some], kind="stable")][:count]:
        yield divmod(int(place), scores.shape[1])


def eliminate(
    objective: Objective, blocks: Blocks, point: Point, chosen: Iterable[int], size: int
) -> tuple[Point, list[int]]:
    """Let blocks leave, each time the one that costs least after a refit, down to a size."""
    left = list(chosen)
    while len(left) > size:
        order = sorted(left)
        places = objective.cheapest_removals(point, blocks.take(order), len(left) - size)
        leaving = {order[int(place)] for place in places}
        left = [block for block in left if block not in leaving]
        gone = np.concatenate([blocks[block] for block in leaving])
        kept = np.setdiff1d(point.support, gone, assume_unique=True)
        point = objective.minimise(kept, point).of_size(len(left))
    return point, left
