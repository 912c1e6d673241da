"""Algorithm 1 of the paper, once, as a generator of steps."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace

import numpy as np

from forback.core.blocks import Blocks
from forback.core.objective import Objective
from forback.core.point import Point, Step
from forback.core.rule import Rule
from forback.core.types import Ints
from forback.selection.rules import Badness, highest, lowest

#: Once so many candidates were refitted in vain, those whose own decrease is below this share of Q
#: are not refitted any more.
PATIENCE, HOPELESS = 20, 1e-15

#: How the reason of a run that reached the end of the road begins.
EXHAUSTED = "no candidate left lowers the objective"

Stop = Callable[[Point], str | None]


def forward_backward(
    objective: Objective,
    blocks: Blocks,
    rule: Rule,
    start: Point,
    *,
    stop: Stop,
    badness: Badness | None,
    ratio: float,
) -> Generator[Step, None, str]:
    """Yield every step of Algorithm 1 from `start` and return why it ended.

    FoBa-obj and FoBa-gdt differ in `rule`; their forward-only twins have `badness=None`.
    Where the paper's print slips it is read as `docs/design.md` says.
    """
    point = start  # 1: F = always, beta = beta-hat(F), k = 0
    chosen: list[int] = []
    gains: dict[int, float] = {}  # delta^(k), by the size k it was recorded at
    origins: dict[int, Ints] = {}  # the support it was recorded from
    rounding = resolution_of(objective, point)
    while True:  # 2
        if reason := stop(point):
            return reason
        # 3-8: stopping determination and the best candidate, then beta-hat(F + {i})
        pick = _best_candidate(objective, blocks, rule, point, chosen, rounding)
        if isinstance(pick, str):
            return pick
        block, score, added, solved, note = pick
        chosen.append(block)  # 9
        gains[len(chosen)] = point.value - added.value  # 11: delta^(k+1)
        origins[len(chosen)] = point.support
        point = replace(added, size=len(chosen))  # 10, 12
        rounding = resolution_of(objective, point)
        yield _step("add", blocks, block, point, gains[len(chosen)], score, solved, note)
        # 13-21: backward step
        while badness and chosen and gains[len(chosen)] > rounding:
            inside = sorted(chosen)
            limit = ratio * gains[len(chosen)]
            increase, solved = badness(objective, point, blocks.take(inside), limit)
            worst = lowest(increase)
            if max(increase[worst], 0.0) >= limit:  # 15
                break
            block = inside[worst]  # 18
            kept = np.setdiff1d(point.support, blocks[block], assume_unique=True)
            # Back to where it was: only unfinished fits make that look cheap, and for ever.
            if np.array_equal(kept, origins[len(chosen)]):
                break
            left = replace(objective.minimise(kept, point), size=len(chosen) - 1)  # 21
            change = point.value - left.value
            if -change >= gains[len(chosen)]:  # only by rounding
                break
            chosen.remove(block)  # 19, 20
            point, rounding = left, resolution_of(objective, left)
            score = float(increase[worst])
            yield _step("remove", blocks, block, point, change, score, solved, "")


def resolution_of(objective: Objective, point: Point) -> float:
    """The change of Q at a point that may be rounding, as far as the objective knows."""
    own = getattr(objective, "resolution", None)
    return point.resolution if own is None else float(own(point))


def _best_candidate(
    objective: Objective,
    blocks: Blocks,
    rule: Rule,
    point: Point,
    chosen: list[int],
    negligible: float,
) -> tuple[int, float, Point, int, str] | str:
    """The best block outside F that lowers Q when refitted, or the reason to stop.

    With its goodness, the refitted point, how many scores were worked out exactly, and a note.

    A candidate may score well and still gain nothing: a copy of a chosen column carries a
    gradient of pure rounding, and a large one if it is large itself. Such candidates are passed
    over. Once some were, only those that lower Q on their own by a little are refitted, which
    keeps the end of a run from refitting every column.
    """
    if len(chosen) == len(blocks):
        return "every candidate is in"
    scores, solved = rule.screened(objective, point, blocks)
    goodness = np.array(scores, dtype=np.float64)
    goodness[chosen] = -np.inf
    skipped: list[int] = []
    why = ""
    if point.value - getattr(objective, "infimum", -np.inf) <= negligible:
        goodness[:], why = -np.inf, f" ({point.note})" if point.note else ""
    while True:
        block = highest(goodness)
        score = float(goodness[block])
        if reason := rule.refuses(point, blocks, block, score):
            return reason
        if score == -np.inf:
            return f"{EXHAUSTED} by more than rounding{why}"
        wider = np.sort(np.concatenate([point.support, blocks[block]]))
        added = objective.minimise(wider, point)
        if point.value - added.value > negligible:
            return block, score, added, solved, _skip_note(blocks.numbers[skipped], why)
        why = why or (f" ({added.note})" if added.note else "")
        if not skipped:  # what was only bounded may be next
            goodness, solved = rule.goodness(objective, point, blocks).copy(), len(blocks)
            goodness[chosen] = -np.inf
        skipped.append(block)
        if len(skipped) == PATIENCE:
            hopeless = objective.decrease_if_added(point, blocks) < HOPELESS * abs(point.value)
            goodness[hopeless] = -np.inf
        goodness[block] = -np.inf


def _skip_note(features: Ints, why: str) -> str:
    if len(features) == 0:
        return ""
    shown = ", ".join(str(feature) for feature in features[:5])
    more = f" and {len(features) - 5} more" if len(features) > 5 else ""
    return f"passed over {shown}{more}: refitted with it, the objective does not fall{why}"


def _step(
    action: str,
    blocks: Blocks,
    block: int,
    point: Point,
    change: float,
    score: float,
    solved: int,
    note: str,
) -> Step:
    note = "; ".join(part for part in (note, point.note) if part)
    number = int(blocks.numbers[block])
    return Step(action, number, point.size, point.value, change, score, point, note, solved)
