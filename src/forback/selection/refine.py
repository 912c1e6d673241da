"""The second loop, beside Algorithm 1: from several starts, exchange blocks while that helps."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from forback.core.point import Move
from forback.selection.exchange import Exchanges, Found
from forback.selection.kicks import search
from forback.selection.refinement import Refinement
from forback.selection.several import exchanges_of_several
from forback.selection.starts import Starts
from forback.selection.supports import Start

#: A start, an exchange after it, or why there was no other.
Event = Start | Move | str


def refine(
    starts: Starts, exchanges: Exchanges, refinement: Refinement, rng: np.random.Generator
) -> Iterator[Event]:
    """Yield starts, the exchanges made from each, and why they ended.

    From each start the best exchange of one block is made until none lowers Q, or until it meets a
    support that was examined before. What follows (other sizes, the search) is yielded only where
    it reached a lower Q. Where fits are few, exchanges of whole groups come first.
    """
    best: Start | None = None
    for start in starts.named(refinement):
        here = start
        if starts.are_quick or exchanges.supports.limits.cost is None:
            here = yield from _followed(start, exchanges)
        else:
            here = yield from _regrouped(start, exchanges)
        if best is None or exchanges.supports.is_lower(here, best):
            best = here
    if best is None:
        return
    if starts.are_quick:
        best = yield from _regrouped(best, exchanges)
    if "neighbours" in refinement.starts and starts.are_quick:
        for found in starts.neighbours(best, exchanges):
            yield from _told(found)
            best = found.end
    if refinement.searches:
        for found in search(best, exchanges, refinement, rng):
            yield from _told(found)


def _followed(start: Start, exchanges: Exchanges) -> Generator[Event, None, Start]:
    """Tell a start, and the exchanges of one block made from it."""
    yield start
    end, ending = yield from exchanges.descend(start)
    yield ending
    return end


def _regrouped(start: Start, exchanges: Exchanges) -> Generator[Event, None, Start]:
    """Tell exchanges of several blocks, each followed by those of one, until none helps."""
    here = start
    while True:
        move = next(exchanges_of_several(here, exchanges.supports), None)
        if move is None:
            break
        yield here._replace(name="one for several")
        yield move
        end, ending = yield from exchanges.descend(here.after(move))
        yield ending
        here = end
    if not exchanges.is_known(here):
        here = yield from _followed(here, exchanges)
    return here


def _told(found: Found) -> Iterator[Event]:
    yield found.start
    yield from found.moves
    yield found.ending
