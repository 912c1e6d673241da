"""Somebody's own function along single coordinates: how far it falls there."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from forback.core.objective import Scores
from forback.core.tolerances import RULED_OUT_RTOL
from forback.core.types import Floats, Ints
from forback.objectives.function.curvature import or_typical
from forback.objectives.function.fit import FunctionFit
from forback.objectives.function.oracles import CoordinateSearch, check_floor
from forback.solvers.convexity import SLOPE_FALL_RTOL, not_convex
from forback.solvers.one_variable import largest_decrease


def coordinate_decreases(
    fit: FunctionFit, search: CoordinateSearch, best_so_far: float | None = None
) -> Scores:
    """Return how far the function falls along some coordinates.

    If `best_so_far` is given, what falls short of that, or of the best of the coordinates before,
    may be a bound instead.
    """
    at_once = fit.oracle.decreases(search)
    if at_once is not None:
        check_floor(search.value - float(at_once.max(initial=0.0)), fit.floor)
        return Scores.exact(at_once)
    scores = np.zeros(len(search.coordinates))
    n_exact = 0
    best = best_so_far or 0.0
    for number, guess in enumerate(zip(search.slopes, search.steps, search.least, strict=True)):
        wanted = 0.0 if best_so_far is None else (1.0 - RULED_OUT_RTOL) * best
        line = partial(_at, fit, search, number)
        score, exact = largest_decrease(line, *guess, search.negligible, wanted, search.noise)
        scores[number] = score
        n_exact += exact
        best = max(best, score if exact else 0.0)
    return Scores(scores, n_exact)


def curvatures(fit: FunctionFit, beta: Floats, coordinates: Ints) -> Floats:
    """Return a guess at the curvature along each coordinate."""
    whole = None
    if fit.oracle.has_hessian:
        whole = fit.oracle.hessian_columns(beta, coordinates, coordinates)
    own = np.zeros(len(coordinates)) if whole is None else np.diag(whole)
    return or_typical(own, fit.typical)


def _at(
    fit: FunctionFit, search: CoordinateSearch, number: int, step: float
) -> tuple[float, float]:
    """The change and the slope after a step along one of the coordinates."""
    j = search.coordinates[number]
    moved = search.beta.copy()
    moved[j] += step
    there, gradient = fit.oracle.at(moved)
    check_floor(there, fit.floor)
    slope = float(gradient[j]) if np.isfinite(there) else math.copysign(math.inf, step)
    before = float(search.slopes[number])
    allowed = SLOPE_FALL_RTOL * (abs(before) + abs(slope)) + search.noise
    if (slope - before) * math.copysign(1.0, step) < -allowed:
        raise not_convex(f"along coordinate {j}", before, slope)
    return there - search.value, slope
