"""Algorithm 1 of the paper, once, as a generator of moves."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import numpy as np

from forback.core.blocks import Blocks
from forback.core.objective import Objective, Scores
from forback.core.point import Move, Point
from forback.core.rule import Rule
from forback.core.status import Ending, StopReason
from forback.core.types import Floats, Ints
from forback.selection.rules import Badness
from forback.selection.ties import highest, lowest

#: Once so many candidates were refitted in vain, those whose own decrease is below this fraction of
#: Q are not refitted any more.
MAX_FUTILE_REFITS = 20
HOPELESS_DECREASE_RTOL = 1e-15

#: How many features a note lists by number.
MAX_FEATURES_IN_NOTE = 5


@dataclass
class State:
    """Where a run of Algorithm 1 is: line 1 of it, and what every step changes.

    Attributes
    ----------
    point : Point
        Beta-hat(F).
    chosen : list of int
        The blocks in F besides those always in, in order of entry.
    gains : dict
        Delta^(k), by the size k it was recorded at. Where none was, nothing leaves.
    origins : dict
        The support it was recorded from.
    """

    point: Point
    chosen: list[int] = field(default_factory=list)
    gains: dict[int, float] = field(default_factory=dict)
    origins: dict[int, Ints] = field(default_factory=dict)


def forward_backward(
    objective: Objective,
    blocks: Blocks,
    rule: Rule,
    state: State,
    *,
    k: int | None,
    badness: Badness | None,
    ratio: float,
) -> Generator[Move, None, Ending]:
    """Yield every move of Algorithm 1 from a state on, to `k` blocks; return why it ended.

    FoBa-obj and FoBa-gdt differ in `rule`; their forward-only twins have `badness=None`.
    Where the paper's print slips it is read as `docs/design.md` says.
    """
    point = state.point  # 1: F = always, beta = beta-hat(F), k = 0
    chosen, gains, origins = state.chosen, state.gains, state.origins
    resolution = objective.resolution(point)
    while True:  # 2
        if k is not None and point.size >= k:
            return StopReason.SIZE.because(k=k)
        # 3-8: stopping determination and the best candidate, then beta-hat(F + {i})
        move = _best_addition(objective, blocks, rule, point, chosen, resolution)
        if isinstance(move, Ending):
            return move
        chosen.append(move.block)  # 9
        gains[len(chosen)] = move.change  # 11: delta^(k+1)
        origins[len(chosen)] = point.support
        state.point = point = move.point  # 10, 12
        resolution = objective.resolution(point)
        yield move
        # 13-21: backward step
        while badness and chosen and gains.get(len(chosen), 0.0) > resolution:
            inside = sorted(chosen)
            limit = ratio * gains[len(chosen)]
            increase, n_exact = badness(objective, point, blocks.take(inside), limit)
            worst = lowest(increase)
            if max(increase[worst], 0.0) >= limit:  # 15
                break
            block = inside[worst]  # 18
            kept = np.setdiff1d(point.support, blocks[block], assume_unique=True)
            # Back to where it was: only unfinished fits make that look cheap, and for ever.
            if np.array_equal(kept, origins[len(chosen)]):
                break
            left = objective.minimise(kept, point).of_size(len(chosen) - 1)  # 21
            change = point.value - left.value
            if -change >= gains[len(chosen)]:  # only by rounding
                break
            chosen.remove(block)  # 19, 20
            state.point = point = left
            resolution = objective.resolution(point)
            yield Move("remove", block, float(increase[worst]), point, change, n_exact)


def _best_addition(
    objective: Objective,
    blocks: Blocks,
    rule: Rule,
    point: Point,
    chosen: list[int],
    resolution: float,
) -> Move | Ending:
    """Add the best block outside F that lowers Q when refitted, or return the reason to stop.

    A candidate may score well and still gain nothing: a copy of a chosen column carries a
    gradient of pure rounding, and a large one if it is large itself. Such candidates are passed
    over. Once some were, only those that lower Q on their own by a little are refitted, which
    keeps the end of a run from refitting every column.
    """
    if len(chosen) == len(blocks):
        return StopReason.ALL_IN.because()
    goodness, n_exact = outside(rule.goodness(objective, point, blocks, only_best=True), chosen)
    futile: list[int] = []
    why = ""
    if point.value - objective.infimum <= resolution:
        goodness[:] = -np.inf
        why = _in_brackets(point.note)
    while True:
        block = highest(goodness)
        score = float(goodness[block])
        if ending := rule.refuses(point, blocks, block, score):
            return ending
        if score == -np.inf:
            return StopReason.EXHAUSTED.because(why=why)
        wider = np.concatenate([point.support, blocks[block]])
        wider.sort()
        added = objective.minimise(wider, point)
        if point.value - added.value > resolution:
            note = _note_of_futile(blocks.numbers[futile], why)
            after = added.of_size(len(chosen) + 1)
            return Move("add", block, score, after, point.value - added.value, n_exact, note)
        why = why or _in_brackets(added.note)
        if not futile:  # what was only bounded may be next
            goodness, n_exact = outside(rule.goodness(objective, point, blocks), chosen)
        futile.append(block)
        if len(futile) == MAX_FUTILE_REFITS:
            least = HOPELESS_DECREASE_RTOL * abs(point.value)
            goodness[objective.decrease_if_added(point, blocks).values < least] = -np.inf
        goodness[block] = -np.inf


def outside(scores: Scores, chosen: Sequence[int] | Ints) -> tuple[Floats, int]:
    """Return a copy of the scores in which what is chosen already cannot win."""
    values = np.array(scores.values, dtype=np.float64)
    values[chosen] = -np.inf
    return values, scores.n_exact


def _in_brackets(note: str) -> str:
    return f" ({note})" if note else ""


def _note_of_futile(features: Ints, why: str) -> str:
    """Say which candidates were refitted in vain before the one that was added."""
    if len(features) == 0:
        return ""
    shown = ", ".join(str(feature) for feature in features[:MAX_FEATURES_IN_NOTE])
    others = len(features) - MAX_FEATURES_IN_NOTE
    more = f" and {others} more" if others > 0 else ""
    return f"passed over {shown}{more}: refitted with it, the objective does not fall{why}"
