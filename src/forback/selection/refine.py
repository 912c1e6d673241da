"""The second loop, beside Algorithm 1: from several starts, exchange blocks while that helps."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from forback.core.point import Move
from forback.selection.exchange import Exchanges, Found, Start
from forback.selection.kicks import search
from forback.selection.refinement import Refinement
from forback.selection.starts import Starts

#: A start, an exchange after it, or why there was no other.
Event = Start | Move | str


def refine(
    starts: Starts, exchanges: Exchanges, refinement: Refinement, rng: np.random.Generator
) -> Iterator[Event]:
    """Yield starts, the exchanges made from each, and why they ended.

    From each start the best exchange of one block is made until none lowers Q; at a support that
    another start led to nothing is done again. What goes on from the best of all is told only
    where it led lower.
    """
    best: Start | None = None
    for start in starts.named(refinement):
        here = yield from _followed(start, exchanges)
        if best is None or exchanges.is_lower(here, best):
            best = here
    if best is None:
        return
    if "neighbours" in refinement.starts:
        for found in starts.neighbours(best, exchanges):
            yield from _told(found)
            best = found.end
    if refinement.effort > 0.0:
        for found in search(best, starts, exchanges, refinement, rng):
            yield from _told(found)


def _followed(start: Start, exchanges: Exchanges) -> Generator[Event, None, Start]:
    yield start
    for event in exchanges.descend(start):
        if isinstance(event, Move):
            start = start.after(event)
        yield event
    return start


def _told(found: Found) -> Iterator[Event]:
    yield found.start
    yield from found.moves
    yield found.ending
