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
from collections.abc import Callable
from typing import Any

import numpy as np

from forback.core.blocks import Blocks
from forback.core.point import Point
from forback.core.rule import Rule
from forback.selection.rules import ByGradient
from forback.validation.scalars import check_generator

AUTO = "auto"

#: Orders of the rows, and which of the goodnesses that they lead to is the threshold.
ORDERS, RANK = 39, 2

#: How often the threshold is looked at again, and by how much it must have fallen for that.
ROUNDS, LESS = 10, 0.999

#: From the threshold, where a run ends that uses it.
Pilot = Callable[[float], Point]


def noise_threshold(
    objective: Any, rule: Rule, blocks: Blocks, start: Point, pilot: Pilot, random_state: Any
) -> float:
    """The goodness that noise alone exceeds in one case of twenty."""
    if not hasattr(objective, "permuted"):
        raise ValueError(
            f"{type(objective).__name__} has no response whose rows could change places, so "
            'there is no "auto": give epsilon or delta as a number, or k'
        )
    rng = check_generator(random_state)
    n = objective.n_rows
    orders = [rng.permutation(n) for _ in range(ORDERS)]
    threshold, point, known = math.inf, start, {start.support.tobytes()}
    for _ in range(ROUNDS):
        found = _exceeded(objective, rule, blocks, point, orders)
        # A fit takes up a share of the noise: what is left looks smaller than it is.
        left = max(n - len(point.support), 1) / n
        found /= math.sqrt(left) if isinstance(rule, ByGradient) else left
        if found >= LESS * threshold:
            break
        threshold = found
        point = pilot(threshold)
        if point.support.tobytes() in known or 2 * len(point.support) > n:
            break
        known.add(point.support.tobytes())
    return threshold


def _exceeded(objective: Any, rule: Rule, blocks: Blocks, point: Point, orders: Any) -> float:
    """The goodness that few of the orders lead to."""
    best = []
    for order in orders:
        null = objective.permuted(order, point)
        nothing = null.minimise(blocks.always, None)
        best.append(float(np.max(rule.screened(null, nothing, blocks)[0], initial=0.0)))
    return sorted(best)[-RANK]
