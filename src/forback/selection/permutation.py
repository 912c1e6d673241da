"""Thresholds from the data: the goodness that noise alone would reach.

The rows of the response are put into another order, which leaves nothing for any candidate to
explain, and the best goodness is looked at; forty times, with the truth as one of them. A run that
stops at the second largest of the 39 takes a feature that has nothing to do with the response in
two cases of forty.

What features explain is no noise, though, and makes the first answer too careful. A run with that
threshold therefore says what can be explained; then only the rest changes places, and so on until
the threshold falls no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from forback.core.blocks import Blocks
from forback.core.objective import Objective, PermutableResponse
from forback.core.point import Move, Point
from forback.core.rule import Rule
from forback.core.types import Ints
from forback.core.units import times_power
from forback.selection.rules import ByDecrease, ByGradient
from forback.validation.scalars import check_generator

AUTO = "auto"

#: How many orders of the rows are tried; the threshold is the goodness of this rank among them.
N_PERMUTATIONS = 39
RANK = 2

#: The threshold is updated at most so often, while an update lowers it to less than this fraction.
MAX_ROUNDS = 10
MIN_FALL = 0.999

#: The moves of a run by a rule, from the start on.
Run = Callable[[ByDecrease | ByGradient], Iterable[Move]]


def above_noise(
    rule: ByDecrease | ByGradient,
    objective: Objective,
    blocks: Blocks,
    start: Point,
    run: Run,
    random_state: Any,
) -> ByDecrease | ByGradient:
    """Return the rule with the permutation threshold at family-wise level 5 %."""
    response = objective.response()
    if response is None:
        raise ValueError(
            f"{objective.name} has no response whose rows could be permuted, so there is no "
            '"auto": give epsilon or delta as a number, or k'
        )
    rng = check_generator(random_state)
    n = response.n_rows
    orders = [rng.permutation(n) for _ in range(N_PERMUTATIONS)]
    threshold = math.inf
    raised = replace(rule, threshold=threshold)
    point = start
    visited = {start.support.tobytes()}
    for _ in range(MAX_ROUNDS):
        found = _exceeded(response, rule, blocks, point, orders)
        # A fit takes up a part of the noise: what is left looks smaller than it is.
        left = max(n - len(point.support), 1) / n
        found /= math.sqrt(left) if isinstance(rule, ByGradient) else left
        if found >= MIN_FALL * threshold:
            break
        threshold = found
        raised = replace(rule, threshold=times_power(threshold, rule.power))
        point = start
        for move in run(raised):
            point = move.point
        if point.support.tobytes() in visited or 2 * len(point.support) > n:
            break
        visited.add(point.support.tobytes())
    return raised


def _exceeded(
    response: PermutableResponse, rule: Rule, blocks: Blocks, point: Point, orders: Sequence[Ints]
) -> float:
    """Return the goodness that few of the orders lead to."""
    best = []
    for order in orders:
        null = response.permuted(order, point)
        nothing = null.minimise(blocks.always, None)
        goodness = rule.goodness(null, nothing, blocks, only_best=True).values
        best.append(float(np.max(goodness, initial=0.0)))
    return sorted(best)[-RANK]
