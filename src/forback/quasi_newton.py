"""Newton's method without second derivatives, for functions that are dear to evaluate.

The inverse Hessian is learnt from the gradients met on the way (BFGS) and handed on from fit to
fit: when one variable joins or leaves, what was learnt about the others still holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from forback.protocols import NEGLIGIBLE, Floats, Ints

Evaluate = Callable[[Floats], tuple[float, Floats]]

#: A step must gain this share of what its slope promises, and flatten the slope by some.
ENOUGH = 1e-4
FLATTER = 0.9

#: So small a share of Q is lost in the rounding of its sums; gradients still tell.
UNSEEN = 1e-13


@dataclass(frozen=True, slots=True)
class Place:
    """Where a descent stands."""

    coef: Floats
    value: float
    gradient: Floats


@dataclass(frozen=True, slots=True)
class Descent:
    """Where a descent ended, the inverse Hessian it learnt, and what to know about it."""

    place: Place
    inverse: Floats
    note: str
    evaluations: int


def descend(
    evaluate: Evaluate,
    start: Floats,
    inverse: Floats,
    *,
    least: Floats,
    steep: float,
    unit: float,
    max_iter: int,
) -> Descent:
    """Minimise from `start` until no |gradient| exceeds `steep` and no gain is in sight.

    `least` is a curvature that no coordinate falls below; where it is positive it bounds what is
    left to gain, elsewhere the learnt inverse Hessian has to do. The gain in sight is compared
    with `unit` and Q. The last evaluation made is at the place returned.
    """
    here = Place(start, *evaluate(start))
    inverse, evaluations = inverse.copy(), 1
    rough: Floats | None = np.diag(inverse).copy()  # to begin again with, once
    for _ in range(max_iter):
        direction = -(inverse @ here.gradient)
        slope = float(here.gradient @ direction)
        negligible = NEGLIGIBLE * max(unit, abs(here.value))
        if np.abs(here.gradient).max(initial=0.0) <= steep and (
            _in_sight(here.gradient, least, slope) <= negligible
        ):
            return Descent(here, inverse, "", evaluations)
        there, tried = _search(evaluate, here, direction, slope, unit)
        evaluations += tried
        if there is None:
            stuck = not abs(slope) <= 1e6 * negligible
            if stuck and rough is not None:  # rounding may have bent the inverse uphill
                inverse, rough = np.diag(np.where(rough > 0.0, rough, 1.0)), None
                continue
            here = Place(here.coef, *evaluate(here.coef))
            note = "not converged: no step lowers Q" if stuck else ""
            return Descent(here, inverse, note, evaluations + 1)
        _learn(inverse, there.coef - here.coef, there.gradient - here.gradient)
        here = there
    return Descent(here, inverse, f"not converged after max_iter={max_iter} steps", evaluations)


def _in_sight(gradient: Floats, least: Floats, slope: float) -> float:
    if not least.all():
        return -0.5 * slope
    return 0.5 * float(gradient @ (gradient / least))


def _search(
    evaluate: Evaluate, here: Place, direction: Floats, slope: float, unit: float
) -> tuple[Place | None, int]:
    """A place along `direction` that is lower and less steep, and how many were looked at."""
    size = max(unit, abs(here.value))
    # Where so little is to be gained values are noise. Slopes tell on, and since the function is
    # convex a place that is less steep cannot lie higher by more than that little.
    rounding = UNSEEN * size if -slope > NEGLIGIBLE * size else np.inf
    low, high, t = 0.0, np.inf, 1.0
    if not slope < 0.0:  # uphill
        return None, 0
    for tried in range(1, 60):
        coef = here.coef + t * direction
        if np.array_equal(coef, here.coef):
            return None, tried - 1
        there = Place(coef, *evaluate(coef))
        ahead = float(there.gradient @ direction)
        if (
            not there.value <= here.value + ENOUGH * t * slope + rounding
            or not ahead <= -FLATTER * slope
        ):
            high = t  # too far; NaN counts as that
            guess = t * slope / (slope - ahead) if np.isfinite(ahead) and ahead > slope else 0.0
            t = min(max(guess, low + 0.1 * (high - low)), low + 0.7 * (high - low))
        elif ahead < FLATTER * slope and high == np.inf:
            low, t = t, 4.0 * t
        elif ahead < FLATTER * slope:
            low, t = t, 0.5 * (t + high)
        else:
            return there, tried
        if high < np.inf and high - low <= 1e-12 * high:
            break
    return None, tried


def _learn(inverse: Floats, step: Floats, turn: Floats) -> None:
    """The BFGS update, in place, where the step has met curvature."""
    met = float(step @ turn)
    if met <= 1e-14 * float(np.linalg.norm(step) * np.linalg.norm(turn)):
        return
    bent = inverse @ turn
    outer = np.outer(bent, step)
    inverse -= (outer + outer.T) / met
    inverse += np.outer(step, step) * ((1.0 + float(turn @ bent) / met) / met)


def inverse_on(inverse: Floats, support: Ints, wanted: Ints, curvature: Floats) -> Floats:
    """The inverse Hessian on other coordinates than it was learnt on.

    Those that leave are held fixed, those that join are independent, of the given `curvature`.
    """
    kept = np.isin(support, wanted, assume_unique=True)
    learnt = inverse[np.ix_(kept, kept)]
    if not kept.all():
        across, left = inverse[np.ix_(kept, ~kept)], inverse[np.ix_(~kept, ~kept)]
        learnt = learnt - across @ np.linalg.solve(left, across.T)
    found = np.diag(1.0 / curvature)
    places = np.searchsorted(wanted, support[kept])
    found[np.ix_(places, places)] = learnt
    return found
