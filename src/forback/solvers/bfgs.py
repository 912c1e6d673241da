"""Newton's method without second derivatives, for functions that are dear to evaluate.

The inverse Hessian is learnt from the gradients met on the way (BFGS) and handed on from fit to
fit: when one variable joins or leaves, what was learnt about the others still holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from forback.core.status import Status
from forback.core.tolerances import NEGLIGIBLE
from forback.core.types import Floats, Ints
from forback.solvers.linalg import TINY
from forback.solvers.newton import State

Evaluate = Callable[[Floats], tuple[float, Floats]]

#: A step must gain this share of what its slope promises, and flatten the slope by some.
ENOUGH = 1e-4
FLATTER = 0.9

#: A least curvature from here on bounds what is left to gain; below, the learnt inverse Hessian
#: tells more, although it may understate it by so much.
TELLING = 1e-6
CAUTION = 100.0

#: From so many coordinates on a dense inverse Hessian is too large to carry around.
MANY = 2500

#: Coordinates that explain so little of their own curvature are as good as dependent on others.
DEPENDENT = 1e-8

#: So small a share of Q is lost in the rounding of its sums; gradients still tell.
UNSEEN = 1e-13


@dataclass(frozen=True, slots=True)
class Descent:
    """Where a descent ended, the inverse Hessian it learnt, and how."""

    place: State
    inverse: Floats
    status: Status
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
    reach: Floats | None = None,
) -> Descent:
    """Minimise from `start` until no |gradient| exceeds `steep` and no gain is in sight.

    `least` is a curvature that no coordinate falls below; where it is large enough it bounds what
    is left to gain, elsewhere the learnt inverse Hessian estimates it. The gain in sight is
    compared with `unit` and Q. The last evaluation made is at the place returned. Where `inverse`
    is only a diagonal, SciPy's L-BFGS does the work, and only the gradient counts.

    `reach` is how far each coordinate may move in a step. Where no minimiser exists a step may
    otherwise run so far that the function has corners there and nothing can be learnt any more.
    """
    if inverse.ndim == 1:
        return _limited(evaluate, start, inverse, steep, max_iter)
    here = State(start, *evaluate(start))
    inverse, evaluations = inverse.copy(), 1
    rough: Floats | None = np.diag(inverse).copy()  # to begin again with, once
    for _ in range(max_iter):
        direction = -(inverse @ here.gradient)
        slope = float(here.gradient @ direction)
        negligible = NEGLIGIBLE * max(unit, abs(here.value))
        if np.abs(here.gradient).max(initial=0.0) <= steep and (
            _in_sight(here.gradient, least, slope) <= negligible
        ):
            return Descent(here, inverse, Status.CONVERGED, evaluations)
        longest = np.inf if reach is None else _longest(direction, reach)
        there, tried = _search(evaluate, here, direction, slope, unit, longest)
        evaluations += tried
        if there is None:
            stuck = not abs(slope) <= 1e6 * negligible
            steeper = bool(np.abs(here.gradient).max(initial=0.0) > steep)
            if (stuck or steeper) and rough is not None:  # noise may have bent the inverse uphill
                inverse, rough = np.diag(np.where(rough > 0.0, rough, 1.0)), None
                here, evaluations = State(here.coef, *evaluate(here.coef)), evaluations + 1
                continue
            here = State(here.coef, *evaluate(here.coef))
            status = Status.STUCK if stuck else Status.CONVERGED
            return Descent(here, inverse, status, evaluations + 1)
        _learn(inverse, there.coef - here.coef, there.gradient - here.gradient)
        here = there
    return Descent(here, inverse, Status.MAX_ITER, evaluations)


def _limited(
    evaluate: Evaluate, start: Floats, diagonal: Floats, steep: float, max_iter: int
) -> Descent:
    """L-BFGS in coordinates that the diagonal brings to one scale."""
    root = np.sqrt(diagonal)

    def scaled(coef: Floats) -> tuple[float, Floats]:
        value, gradient = evaluate(coef * root)
        return value, gradient * root

    options = {
        "maxiter": max_iter, "maxfun": 10 * max_iter, "maxcor": 20, "ftol": 1e-15,
        "gtol": steep * float(root.min()),
    }  # fmt: skip
    found = optimize.minimize(scaled, start / root, jac=True, method="L-BFGS-B", options=options)
    here = State(found.x * root, *evaluate(found.x * root))
    status = Status.CONVERGED
    if np.abs(here.gradient).max(initial=0.0) > steep:
        status = Status.MAX_ITER if found.nit >= max_iter else Status.STUCK
    return Descent(here, diagonal, status, found.nfev + 1)


@np.errstate(over="ignore")
def _in_sight(gradient: Floats, least: Floats, slope: float) -> float:
    """What is left to gain: at most what the least curvature says, roughly what was learnt."""
    learnt = -0.5 * CAUTION * slope if slope <= 0.0 else np.inf
    if not least.all():
        return learnt
    bound = 0.5 * float(gradient @ (gradient / least))
    return bound if least.min(initial=np.inf) >= TELLING else min(bound, learnt)


@np.errstate(over="ignore")
def _longest(direction: Floats, reach: Floats) -> float:
    """By how much a direction may be stretched until some coordinate is out of reach."""
    moving = direction != 0.0
    return float((reach[moving] / np.abs(direction[moving])).min(initial=np.inf))


def _search(
    evaluate: Evaluate,
    here: State,
    direction: Floats,
    slope: float,
    unit: float,
    longest: float = np.inf,
) -> tuple[State | None, int]:
    """A place along `direction` that is lower and less steep, and how many were looked at.

    At `longest` it need not be less steep.
    """
    size = max(unit, abs(here.value))
    # Where so little is to be gained values are noise. Slopes tell on, and since the function is
    # convex a place that is less steep cannot lie higher by more than that little.
    rounding = UNSEEN * size if -slope > NEGLIGIBLE * size else np.inf
    low, high, t = 0.0, np.inf, min(1.0, longest)
    if not slope < 0.0:  # uphill
        return None, 0
    for tried in range(1, 60):
        coef = here.coef + t * direction
        if np.array_equal(coef, here.coef):
            return None, tried - 1
        there = State(coef, *evaluate(coef))
        ahead = float(there.gradient @ direction)
        if (
            not there.value <= here.value + ENOUGH * t * slope + rounding
            or not ahead <= -FLATTER * slope
        ):
            high = t  # too far; NaN counts as that
            guess = t * slope / (slope - ahead) if np.isfinite(ahead) and ahead > slope else 0.0
            t = min(max(guess, low + 0.1 * (high - low)), low + 0.7 * (high - low))
        elif ahead < FLATTER * slope and high == np.inf and t < longest:
            low, t = t, min(4.0 * t, longest)
        elif ahead < FLATTER * slope and high < np.inf:
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
    other = (0.5 * (1.0 + float(turn @ bent) / met) * step - bent) / met
    both = np.column_stack([step, other])
    inverse += both @ both[:, ::-1].T


def inverse_on(
    inverse: Floats,
    support: Ints,
    wanted: Ints,
    curvature: Floats,
    columns: Floats | None = None,
) -> Floats:
    """The inverse Hessian on other coordinates than it was learnt on.

    Those that leave are held fixed, those that join are independent, of the given `curvature`,
    unless their `columns` of the Hessian are known. Where there are many coordinates it is a
    diagonal, and nothing is learnt.
    """
    if len(wanted) > MANY:
        return 1.0 / curvature
    if inverse.ndim == 1:
        return np.diag(1.0 / curvature)
    kept = np.isin(support, wanted, assume_unique=True)
    learnt = inverse[np.ix_(kept, kept)]
    if not kept.all():
        across, left = inverse[np.ix_(kept, ~kept)], inverse[np.ix_(~kept, ~kept)]
        learnt = learnt - across @ np.linalg.solve(left, across.T)
    found = np.diag(1.0 / curvature)
    places = np.searchsorted(wanted, support[kept])
    found[np.ix_(places, places)] = learnt
    if columns is not None:
        _border(found, places, np.setdiff1d(np.arange(len(wanted)), places), columns)
    return found


def _border(inverse: Floats, old: Ints, new: Ints, columns: Floats) -> None:
    """Let in, in place, the columns of the Hessian that belong to `new`, if they are sound."""
    known, across = inverse[np.ix_(old, old)], columns[old]
    bent = known @ across
    complement = columns[new] - across.T @ bent
    if not (np.diag(columns[new]) > TINY).all():
        return
    root = np.sqrt(np.diag(columns[new]))
    scaled = 0.5 * (complement + complement.T) / root / root[:, None]
    if not np.isfinite(scaled).all() or np.linalg.eigvalsh(scaled)[0] <= DEPENDENT:
        return
    own = np.linalg.inv(scaled) / root / root[:, None]
    inverse[np.ix_(new, new)] = own
    inverse[np.ix_(old, new)] = -bent @ own
    inverse[np.ix_(new, old)] = inverse[np.ix_(old, new)].T
    inverse[np.ix_(old, old)] = known + bent @ own @ bent.T
