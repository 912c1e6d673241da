"""Best-first screening: the most promising candidates first, so that bounds rule out the rest."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from forback.core.objective import Scores
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


def cheapest_first(
    lower: Floats, cost: Callable[[int], float], *, below: float, slack: float = 0.0
) -> Scores:
    """Find out costs in the order of their lower bounds, as long as one may be the smallest.

    Parameters
    ----------
    lower : float array
        Bounds that costs are not below.
    cost : callable
        What the candidate of a number costs.
    below : float
        Costs from here on do not matter.
    slack : float
        What costs may be wrong by, besides `SCREENING_RTOL` of the smallest.

    Returns
    -------
    Scores
        Exact where a cost may be the smallest and below the limit, else lower bounds.
    """
    values = np.array(lower)
    n_exact = 0
    for candidate in np.argsort(lower, kind="stable").tolist():
        if lower[candidate] > below + SCREENING_RTOL * abs(below) + slack:
            break
        values[candidate] = cost(candidate)
        below = min(below, float(values[candidate]))
        n_exact += 1
    return Scores(values, n_exact)
