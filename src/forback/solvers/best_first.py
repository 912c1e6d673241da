"""Screening: the most promising first, so that bounds rule out the rest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np

from forback.core.blocks import Blocks
from forback.core.objective import Objective, Scores
from forback.core.point import Point
from forback.core.tolerances import SCREENING_RTOL
from forback.core.types import Floats, Ints

#: From some candidates and the best score so far: their scores, exact wherever they may exceed it
#: and upper bounds below it elsewhere, and how many are exact.
Solve = Callable[[Ints, float], tuple[Floats, int]]


def best_first(
    promise: Floats,
    solve: Solve,
    *,
    best_so_far: float = 0.0,
    slack: float = 0.0,
    first: int = 1,
    batch: int | None = None,
) -> Scores:
    """Score candidates in the order of their promise; the better the best, the less is left to do.

    Parameters
    ----------
    promise : float array
        Roughly how good each candidate is; it only decides the order.
    solve : callable
        ``solve(candidates, best_so_far)`` returns the scores of some candidates and how many of
        them are exact. A score that cannot reach `best_so_far` may be an upper bound below it.
    best_so_far : float
        What a score must reach to matter, before any is known.
    slack : float
        What scores may be wrong by, besides `SCREENING_RTOL` of the best.
    first, batch : int
        How many candidates the first call of `solve` gets, and each call after it; None: all.

    Returns
    -------
    Scores
    """
    order = np.argsort(-promise, kind="stable")
    values = np.zeros(len(order))
    n_exact = 0
    starts = range(first, len(order), batch or max(1, len(order)))
    for start, stop in pairwise([0, *starts, len(order)] if len(order) else []):
        some = order[start:stop]
        values[some], exact = solve(some, best_so_far)
        n_exact += exact
        best_so_far = max(best_so_far, to_match(values[some], slack))
    return Scores(values, n_exact)


def to_match(scores: Floats, slack: float = 0.0) -> float:
    """Return what a score must reach to be as good as the best of these, but for rounding."""
    return float(scores.max() * (1.0 - SCREENING_RTOL) - slack)


def cheapest_refits(
    objective: Objective, point: Point, blocks: Blocks, lower: Floats | None, below: float | None
) -> Scores:
    """Return what removals cost after a refit, by refits in the order of lower bounds.

    Parameters
    ----------
    objective : Objective
    point : Point
    blocks : Blocks
        Blocks inside the support.
    lower : float array or None
        Numbers that the costs are not below, if there are any.
    below : float or None
        Costs from here on do not matter, if given.

    Returns
    -------
    Scores
        Exact where a cost may be the smallest and below the limit, else lower bounds.
    """
    refit = partial(Objective.increase_after_refit, objective, point)
    if lower is None or below is None:
        return refit(blocks)
    values = lower.copy()
    slack = objective.resolution(point)
    n_exact = 0
    for block in np.argsort(lower, kind="stable").tolist():
        if lower[block] > below + SCREENING_RTOL * abs(below) + slack:
            break
        values[block] = refit(blocks.take([block])).values[0]
        below = min(below, float(values[block]))
        n_exact += 1
    return Scores(values, n_exact)
