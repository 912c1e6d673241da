"""Exchanges: one block for another, as long as that lowers Q."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from forback.core.brute_force import MOST_REMOVALS_TRIED
from forback.core.point import Move
from forback.selection.supports import Start, Supports
from forback.selection.ties import leading

#: How many exchanges are refitted whose estimate says that Q rises: hardly any of them lowers it.
DOUBTFUL_REFITS = 1

#: Why exchanges end.
NONE_HELPS = "no exchange lowers the objective"
MET = "met a support that was refined before"
SPENT = "about as many fits as the run had steps"


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
    supports : Supports
    shortlist : int
        How many exchanges are refitted, at most, where their scores are estimates.
    seen : set of bytes
        The supports from which the best exchange was looked for.
    sweeps : int
        How many supports had all their exchanges scored.
    """

    supports: Supports
    shortlist: int
    seen: set[bytes] = field(default_factory=set)
    sweeps: int = 0

    def is_known(self, here: Start) -> bool:
        """Whether the best exchange was looked for here."""
        return here.point.support.tobytes() in self.seen

    def descent(self, start: Start) -> Found:
        """Make exchanges from a start until none helps, and return all of it at once."""
        moves, steps = list[Move](), self.descend(start)
        while True:
            try:
                moves.append(next(steps))
            except StopIteration as stop:
                end, ending = stop.value
                return Found(start, moves, end, ending)

    def descend(self, here: Start) -> Generator[Move, None, tuple[Start, str]]:
        """Yield the best exchange, and the next, until none helps; return where that led, and why.

        Where money is left, the best that it buys comes in.
        """
        while not self.is_known(here):
            self.seen.add(here.point.support.tobytes())
            if self.supports.are_spent:
                return here, SPENT
            move = self.best(here) or self._addition(here)
            if move is None:
                return here, NONE_HELPS
            here = here.after(move)
            yield move
        return here, MET

    def best(self, here: Start) -> Move | None:
        """Return the exchange that lowers Q most, if any does.

        Where scores are estimates, the most promising are refitted, until one does better than the
        next promises.
        """
        supports = self.supports
        count = self.shortlist
        doubtful = DOUBTFUL_REFITS
        if supports.max_fits is not None:  # then estimates are rough
            supports.fits += MOST_REMOVALS_TRIED
            count = doubtful = max(1, min(count, supports.max_fits - supports.fits))
        best: Move | None = None
        trials, n_exact = self.trials(here, count)
        least = supports.objective.resolution(here.point)
        for number, trial in enumerate(trials):
            hope = least if n_exact or number >= doubtful else -np.inf
            if trial.estimate <= (best.change if best else hope):
                break
            move = supports.exchanged(here, [trial.out], [trial.into], trial.estimate, n_exact)
            if move.change > (best.change if best else least):
                best = move
        return best

    def _addition(self, here: Start) -> Move | None:
        """The best block that money is left for, if it helps."""
        limits = self.supports.limits
        if limits.cost is None or len(here.entered) >= limits.size:
            return None
        gains = self.supports.promises(here)
        block = int(gains.argmax())
        if gains[block] == -np.inf:
            return None
        more = self.supports.with_more(here, [block])
        if not self.supports.is_lower(more, here):
            return None
        change = here.point.value - more.point.value
        return Move("add", block, float(gains[block]), more.point, change, 0, came=(block,))

    def trials(self, here: Start, count: int) -> tuple[list[Trial], int]:
        """Return the exchanges that promise most, and how many scores were exact."""
        blocks, limits = self.supports.blocks, self.supports.limits
        inside = np.array(sorted(here.entered), dtype=np.intp)
        is_outside = np.ones(len(blocks), dtype=bool)
        is_outside[inside] = False
        outside = np.flatnonzero(is_outside)
        if len(inside) == 0 or len(outside) == 0:
            return [], 0
        self.sweeps += 1
        scores = self.supports.objective.decrease_if_exchanged(
            here.point, blocks.take(inside), blocks.take(outside), estimate=True
        )
        falls = scores.values
        if np.isnan(falls.max(axis=1)).any():
            falls = np.where(np.isnan(falls), -np.inf, falls)
        allowed = limits.exchangeable(here.point, inside, outside)
        if allowed is not None:
            falls = np.where(allowed, falls, -np.inf)
        rows, columns = np.divmod(leading(falls, count), falls.shape[1])
        found = inside[rows].tolist(), outside[columns].tolist(), falls[rows, columns].tolist()
        trials = map(Trial, *found)
        return [trial for trial in trials if trial.estimate > -np.inf], scores.n_exact
