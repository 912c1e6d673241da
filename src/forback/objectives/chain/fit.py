"""Fits of a chain on a support, by a quasi-Newton method: where they start, how they end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forback.core.objective import Objective
from forback.core.point import Point
from forback.core.status import Status
from forback.core.tolerances import MAX_ETA_STEP, SMALLEST_DIVISOR
from forback.core.types import Floats, Ints
from forback.objectives.chain.data import ChainData
from forback.objectives.chain.inference import Inference
from forback.objectives.chain.kernels.forward_backward import Counts
from forback.objectives.chain.layout import Coordinates
from forback.objectives.chain.problem import RestrictedChain
from forback.solvers.bfgs import descend, inverse_on
from forback.solvers.linalg import ridge_penalty

#: The ridge, for a feature of size 1, that holds back a weight without one.
RUNAWAY_RIDGE = 1e-12

#: The inverse Hessian on no support.
NOTHING_LEARNT = (np.zeros((0, 0)), np.zeros(0, dtype=np.intp))


@dataclass(frozen=True)
class ChainCache:
    """What a point of a chain carries along.

    Attributes
    ----------
    owner : Objective
    inference : Inference
    counts : Counts
        Expected.
    inverse : Floats
        The inverse Hessian learnt on the support.
    """

    owner: Objective
    inference: Inference
    counts: Counts
    inverse: Floats


def minimise(data: ChainData, owner: Objective, support: Ints, start: Point | None) -> Point:
    """Return the minimiser of Q over a support; its cache is that of the owner.

    The inverse Hessian that the start has learnt serves again.
    """
    counts = data.at_zero
    learnt = NOTHING_LEARNT
    cache = owner.own_cache(start, ChainCache)
    if start is not None and cache is not None:
        counts = cache.counts
        learnt = (cache.inverse, start.support)
    beta = data.cold_start if start is None else start.dense(data.dim)
    problem = RestrictedChain(data, Coordinates(data, support))
    inverse = inverse_on(*learnt, support, problem.curvature(counts))
    return solve(problem, owner, beta[support], inverse)


def solve(problem: RestrictedChain, owner: Objective, start: Floats, inverse: Floats) -> Point:
    """Return the point where Q is least.

    A weight without ridge that only gains by running away is held back by a tiny one.
    """
    data = problem.data
    sizes = np.maximum(data.sizes[problem.support], SMALLEST_DIVISOR)
    ridge = data.ridge[problem.support]
    extra = np.where(ridge == 0.0, RUNAWAY_RIDGE * sizes**2, 0.0)

    def held_back(coef: Floats) -> tuple[float, Floats]:
        value, slopes = problem.at(coef)
        return value + ridge_penalty(extra, coef), slopes + extra * coef

    found = descend(
        held_back,
        start,
        inverse,
        least=ridge + extra,
        steep=data.tol * data.steepest,
        unit=1.0,
        max_iter=data.max_iter,
        reach=MAX_ETA_STEP / sizes,
    )
    assert problem.last is not None  # the last evaluation was made where the descent ended
    coef, status = found.place.coef, found.status
    runs_away = ((extra > 0.0) & (np.abs(coef) * sizes > MAX_ETA_STEP)).any()
    if status is Status.CONVERGED and runs_away:
        status = Status.NO_MINIMISER
    value = found.place.value - ridge_penalty(extra, coef)
    cache = ChainCache(owner, *problem.last, found.inverse)
    note = status.note(max_iter=data.max_iter)
    return Point(problem.support, coef, value, 0, cache, note, status)
