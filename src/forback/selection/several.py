"""Exchanges of several blocks, where groups or prices make one of them less than it could be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from forback.core.blocks import Blocks
from forback.core.point import Move
from forback.selection.supports import Start, Supports

#: How many of the groups outside, the most promising, are let in before others leave for them.
MOST_FORCED_IN = 4


def exchanges_of_several(here: Start, supports: Supports) -> Iterator[Move]:
    """Yield exchanges of whole groups, and of one block for several, that may lower Q.

    First each group inside leaves, that which costs least before the others, and the most promising
    group outside comes in its place; then the most promising groups come in, and what is worth
    least for its price leaves. What money is left for comes in after that.
    """
    if supports.limits.cost is None or not here.entered:
        return
    groups = list(supports.limits.groups_of(here.entered).values())
    own = [np.concatenate([supports.blocks[block] for block in of]) for of in groups]
    together = Blocks.of(own, supports.blocks.always)
    costs = supports.objective.increase_if_removed(here.point, together).values
    for place in np.argsort(costs, kind="stable").tolist():
        if supports.are_spent:
            return
        yield from _as_move(here, _without_group(here, supports, groups[place]), supports)
    width = max(1, len(here.entered) // len(groups))
    for new in _promising_groups(here, supports, width)[:MOST_FORCED_IN]:
        if supports.are_spent:
            return
        forced = supports.with_more(here, new)
        yield from _as_move(here, supports.within_limits(forced, keep=new), supports)


def _without_group(here: Start, supports: Supports, out: list[int]) -> Start:
    """Let another group take the place of one.

    Half of its blocks come at once, so that it gets a chance; the rest are the best of any group.
    """
    limits = supports.limits
    banned = limits.group_of(out[0])
    left = supports.without(here, out)
    found = _promising_groups(left, supports, len(out), banned)
    if found:
        some = limits.affordable_together(left.point, found[0])[: (len(out) + 1) // 2]
        left = supports.with_more(left, some) if some else left
    return supports.grown(left, limits.size, banned=banned)


def _promising_groups(
    here: Start, supports: Supports, width: int, banned: Sequence[int] | None = None
) -> list[list[int]]:
    """The best blocks of every group that is not in use, the most promising group first.

    With `banned`, only groups that can be afforded, and not these blocks.
    """
    limits = supports.limits
    gains = supports.promises(here, banned or (), affordable=banned is not None)
    in_use = limits.groups_of(here.entered)
    order = np.argsort(-gains, kind="stable")
    groups = limits.groups_of(order[gains[order] > -np.inf].tolist())
    best = [of[:width] for group, of in groups.items() if group not in in_use]
    return sorted(best, key=lambda of: -float(gains[of].sum()))


def _as_move(here: Start, there: Start, supports: Supports) -> Iterator[Move]:
    """The exchange that leads from one support to another, if it is one and lowers Q."""
    left = [block for block in here.entered if block not in there.entered]
    came = [block for block in there.entered if block not in here.entered]
    kept = supports.limits.are_kept_by(there.point)
    if left and came and kept and supports.is_lower(there, here):
        change = here.point.value - there.point.value
        several = Move("exchange", came[0], change, there.point, change, 0)
        yield several._replace(left=tuple(left), came=tuple(came))
