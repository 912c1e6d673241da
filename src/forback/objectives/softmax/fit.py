"""Fits of a softmax regression on a support, by Newton's method: where they start, how they end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forback.core.objective import Objective
from forback.core.point import Point
from forback.core.types import Floats, Ints
from forback.objectives.softmax.data import SoftmaxData
from forback.objectives.softmax.problem import Coefficients, Predictions, RestrictedSoftmax
from forback.solvers import threads
from forback.solvers.kernels.vectors import overlap
from forback.solvers.newton import Minimum, State, newton

#: From so many entries of the columns, times classes, on a second thread helps.
MIN_ENTRIES_FOR_TWO_THREADS = 1 << 22


@dataclass(frozen=True, slots=True)
class SoftmaxCache:
    """What a point of a softmax regression carries along.

    Attributes
    ----------
    owner : Objective
    predictions : Predictions
    hessian : Floats | None
        The last Hessian computed on the way, close to the minimum.
    """

    owner: Objective
    predictions: Predictions
    hessian: Floats | None


def minimise(data: SoftmaxData, owner: Objective, support: Ints, start: Point | None) -> Point:
    """Return the minimiser of Q over a support; its cache is that of the owner."""
    problem = data.restricted(support)
    minimum = solve(data, problem, *_start(data, problem, owner, start))
    state, status = minimum.state, minimum.status
    predictions = state.cache
    if data.is_far:
        predictions = data.labels.levelled(predictions, np.inf)
    cache = SoftmaxCache(owner, predictions, minimum.hessian)
    note = status.note(max_iter=data.max_iter)
    return Point(support, problem.own.centred(state.coef), state.value, 0, cache, note, status)


def solve(
    data: SoftmaxData, problem: RestrictedSoftmax, state: State, guess: Floats | None = None
) -> Minimum:
    """Minimise Q on some coefficients by Newton's method; the guess is a Hessian from nearby."""
    scale = (np.abs(problem.block).T @ data.steepness)[problem.own.place, problem.own.label]
    is_small = problem.block.size * data.n_classes < MIN_ENTRIES_FOR_TWO_THREADS
    with threads.one_blas_thread(when=is_small):
        return newton(
            problem, state, scale, unit=1.0, tol=data.tol, max_iter=data.max_iter, guess=guess
        )


def _start(
    data: SoftmaxData, problem: RestrictedSoftmax, owner: Objective, start: Point | None
) -> tuple[State, Floats | None]:
    """Return a warm start with a Hessian to try, unless starting from the intercepts is better."""
    support = problem.own.coordinates
    if start is not None and len(support):
        place, old = overlap(support, start.support)
        coef = np.zeros(len(support))
        coef[place] = start.coef[old]
        cache = owner.own_cache(start, SoftmaxCache)
        if cache is not None and len(old) == len(start.coef):
            # Nothing left, and what came has coefficient zero: predictions are what they were.
            warm = problem.state(coef, cache.predictions)
        else:
            warm = problem.at(coef)
        if warm.value <= data.always.value:
            if cache is None or cache.hessian is None or len(old) == 0:
                return warm, None
            # What is known of a column serves where all of it was in and still is.
            before = Coefficients.of(start.support, data.n_classes).whole
            kept = np.isin(place, problem.own.whole) & np.isin(old, before)
            previous = cache.hessian[old[kept][:, None], old[kept]]
            return warm, problem.bordered(previous, place[kept], warm)
    cold = np.zeros(len(support))
    cold[np.searchsorted(support, data.n_candidates) :] = data.always.coef
    return problem.at(cold), None
