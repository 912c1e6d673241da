"""The search once no exchange of one block helps: exchanges of two, and seeded kicks."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

import numpy as np

from forback.selection.exchange import Exchanges, Found
from forback.selection.refinement import Refinement
from forback.selection.supports import Start, Supports

#: How many first exchanges are tried for an exchange of two blocks.
FIRST_EXCHANGES = 40

#: The largest share of its blocks that a kick takes out; it takes at least two.
LARGEST_KICK = 1 / 3

#: How likely a block that a kick took out may not come back at once.
SHARE_BANNED = 0.5


@dataclass
class Effort:
    """How much of a search is done.

    Attributes
    ----------
    exchanges : Exchanges
    refinement : Refinement
    begun : float
        When it began.
    kicks : int
        How many kicks there were.
    """

    exchanges: Exchanges
    refinement: Refinement
    begun: float = field(default_factory=time.perf_counter)
    kicks: int = 0

    def __post_init__(self) -> None:
        self._before = self.exchanges.sweeps

    @property
    def share(self) -> float:
        """The share of it that is done. A kick counts as a sweep even if nothing is new there."""
        effort, seconds = self.refinement.effort, self.refinement.seconds
        done = self.exchanges.sweeps - self._before + self.kicks
        shares = [done / effort] if effort > 0.0 else []
        if seconds is not None:
            elapsed = time.perf_counter() - self.begun
            shares.append(elapsed / seconds if seconds > 0.0 else 1.0)
        return max(shares)

    def show(self, best: Start, end: str = "") -> None:
        """Tell how far the search is, where that is wanted."""
        if self.refinement.progress:
            share, value = min(self.share, 1.0), best.point.value
            line = f"\rsearch {share:4.0%}, {self.kicks} kicks, objective {value:.6g}"
            print(line, end=end, file=sys.stderr, flush=True)


def search(
    best: Start,
    exchanges: Exchanges,
    refinement: Refinement,
    rng: np.random.Generator,
) -> Generator[Found, None, None]:
    """Yield every descent that led lower than all before.

    First come exchanges of two blocks, then kicks, each from the best support so far.
    """
    effort = Effort(exchanges, refinement)
    pairs = _pairs(best, exchanges)
    try:
        while effort.share < 1.0:
            start = next(pairs, None)
            if start is None:
                effort.kicks += 1
                start = _kicked(best, exchanges.supports, rng, effort.kicks)
            found = exchanges.descent(start)
            if exchanges.supports.is_lower(found.end, best):
                yield found
                best = found.end
                pairs = _pairs(best, exchanges)
            effort.show(best)
    finally:
        effort.show(best, end="\n")


def _pairs(best: Start, exchanges: Exchanges) -> Iterator[Start]:
    """The starts that are one exchange away, those first that cost least.

    One more exchange from there makes it one of two blocks for two.
    """
    trials, _ = exchanges.trials(best, FIRST_EXCHANGES)
    for out, into, promise in trials:
        move = exchanges.supports.exchanged(best, [out], [into], promise)
        yield best.after(move)._replace(name="two for two")


def _kicked(best: Start, supports: Supports, rng: np.random.Generator, number: int) -> Start:
    """The best support, with some random blocks out and others, the best of them, in.

    Of what left, about half may not come back at once.
    """
    most = max(2, int(LARGEST_KICK * len(best.entered)))
    count = min(len(best.entered), int(rng.integers(2, most + 1)))
    out = rng.choice(best.entered, count, replace=False).tolist()
    banned = [block for block in out if rng.random() < SHARE_BANNED]
    banned = banned[: len(supports.blocks) - len(best.entered)]  # enough must be left
    return supports.refilled(best, out, banned)._replace(name=f"kick {number}")
