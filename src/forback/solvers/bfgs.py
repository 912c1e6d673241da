"""Newton's method without second derivatives, for functions that are expensive to evaluate.

The inverse Hessian is learnt from differences of gradients (BFGS) and handed on from fit to fit:
when one variable joins or leaves, what was learnt about the others still holds.
"""

# SciPy's BFGS, which takes `hess_inv0`, was tried in place of `descend`. It cannot bound a step,
# ends by the gradient alone or with "precision loss", begins with a line search of its own and so
# needs more evaluations from an inverse Hessian that is nearly right, and gives up on values that
# are not finite.

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forback.core.status import Status
from forback.core.tolerances import (
    NEGLIGIBLE,
    SMALLEST_DIVISOR,
    STUCK_GAIN_RATIO,
    SUFFICIENT_DECREASE,
)
from forback.core.types import Floats, Ints
from forback.solvers.lbfgs import Evaluate, lbfgs
from forback.solvers.newton import State

#: A step is accepted when the slope is less than this fraction of what it was at the start.
WOLFE_CURVATURE = 0.9

#: A least curvature from here on bounds what is left to gain; below, the learnt inverse Hessian
#: tells more, although it may understate the gain by the factor that follows.
MIN_BOUNDING_CURVATURE = 1e-6
LEARNT_GAIN_FACTOR = 100.0

#: Beyond this many coordinates a dense inverse Hessian is too large to carry around.
MAX_DENSE_COORDINATES = 2500

#: Coordinates whose curvature others explain but for this fraction are as good as dependent.
DEPENDENT_RTOL = 1e-8

#: This fraction of Q is lost in the rounding of its sums; gradients are still accurate.
VALUE_ROUNDING = 1e-13

#: A step teaches nothing if the cosine of its angle with the change of the gradient is smaller.
MIN_CURVATURE_COSINE = 1e-14

#: Places that a line search looks at, at most, and the relative width of a bracket that ends it.
MAX_TRIALS = 59
BRACKET_RTOL = 1e-12

#: Pairs of steps and gradient differences that L-BFGS remembers.
LBFGS_MEMORY = 20


@dataclass(frozen=True, slots=True)
class Descent:
    """Where a descent ended, the inverse Hessian it learnt, and how it ended."""

    place: State
    inverse: Floats
    status: Status


def descend(
    evaluate: Evaluate,
    start: Floats,
    inverse: Floats,
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
        return _descend_with_diagonal(evaluate, start, inverse, steep, max_iter)
    here = State(start, *evaluate(start))
    inverse = inverse.copy()
    diagonal = np.diag(inverse)
    restart: Floats | None = np.diag(np.where(diagonal > 0.0, diagonal, 1.0))  # to be used once
    for _ in range(max_iter):
        direction = -(inverse @ here.gradient)
        slope = float(here.gradient @ direction)
        negligible = NEGLIGIBLE * max(unit, abs(here.value))
        is_steep = bool(np.abs(here.gradient).max(initial=0.0) > steep)
        if not is_steep and _gain_in_sight(here.gradient, least, slope) <= negligible:
            return Descent(here, inverse, Status.CONVERGED)
        longest = np.inf if reach is None else _longest(direction, reach)
        there = _search(evaluate, here, direction, slope, unit, longest)
        if there is not None:
            _learn(inverse, there.coef - here.coef, there.gradient - here.gradient)
            here = there
            continue
        here = State(here.coef, *evaluate(here.coef))
        is_stuck = not abs(slope) <= STUCK_GAIN_RATIO * negligible
        if restart is None or not (is_stuck or is_steep):
            status = Status.STUCK if is_stuck else Status.CONVERGED
            return Descent(here, inverse, status)
        inverse = restart  # noise may have bent what was learnt uphill
        restart = None
    return Descent(here, inverse, Status.MAX_ITER)


def _descend_with_diagonal(
    evaluate: Evaluate, start: Floats, inverse: Floats, steep: float, max_iter: int
) -> Descent:
    """Minimise by L-BFGS in coordinates that the diagonal inverse Hessian brings to one scale."""
    sizes = np.sqrt(inverse)
    gtol = steep * float(sizes.min())
    options = {"maxfun": 10 * max_iter, "maxcor": LBFGS_MEMORY}
    found = lbfgs(evaluate, start, sizes, gtol=gtol, max_iter=max_iter, **options)
    here = State(found.x, *evaluate(found.x))
    status = Status.CONVERGED
    if np.abs(here.gradient).max(initial=0.0) > steep:
        status = Status.MAX_ITER if found.nit >= max_iter else Status.STUCK
    return Descent(here, inverse, status)


@np.errstate(over="ignore")
def _gain_in_sight(gradient: Floats, least: Floats, slope: float) -> float:
    """What is left to gain: at most what the least curvature says, roughly what was learnt."""
    learnt = -0.5 * LEARNT_GAIN_FACTOR * slope if slope <= 0.0 else np.inf
    if not least.all():
        return learnt
    bound = 0.5 * float(gradient @ (gradient / least))
    return bound if least.min(initial=np.inf) >= MIN_BOUNDING_CURVATURE else min(bound, learnt)


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
    longest: float,
) -> State | None:
    """A place along `direction` that is lower and, short of `longest`, less steep."""
    if not slope < 0.0:  # uphill
        return None
    size = max(unit, abs(here.value))
    # Where so little is to be gained values are noise. Slopes are still accurate, and since the
    # function is convex a place that is less steep cannot lie higher by more than that little.
    rounding = VALUE_ROUNDING * size if -slope > NEGLIGIBLE * size else np.inf
    low = 0.0
    high = np.inf
    t = min(1.0, longest)
    for _ in range(MAX_TRIALS):
        coef = here.coef + t * direction
        if np.array_equal(coef, here.coef):
            return None
        there = State(coef, *evaluate(coef))
        ahead = float(there.gradient @ direction)
        is_lower = there.value <= here.value + SUFFICIENT_DECREASE * t * slope + rounding
        if not is_lower or not ahead <= -WOLFE_CURVATURE * slope:
            high = t  # too far; NaN counts as that
            guess = t * slope / (slope - ahead) if np.isfinite(ahead) and ahead > slope else 0.0
            t = min(max(guess, low + 0.1 * (high - low)), low + 0.7 * (high - low))
        elif ahead < WOLFE_CURVATURE * slope and (high < np.inf or t < longest):
            low = t
            t = 0.5 * (t + high) if high < np.inf else min(4.0 * t, longest)
        else:
            return there
        if high < np.inf and high - low <= BRACKET_RTOL * high:
            break
    return None


def _learn(inverse: Floats, step: Floats, gradient_change: Floats) -> None:
    """The BFGS update of the inverse Hessian, in place, where the step has found curvature."""
    curvature = float(step @ gradient_change)
    lengths = float(np.linalg.norm(step) * np.linalg.norm(gradient_change))
    if curvature <= MIN_CURVATURE_COSINE * lengths:
        return
    predicted = inverse @ gradient_change
    factor = 0.5 * (1.0 + float(gradient_change @ predicted) / curvature)
    both = np.column_stack([step, (factor * step - predicted) / curvature])
    inverse += both @ both[:, ::-1].T


def inverse_on(
    inverse: Floats, support: Ints, wanted: Ints, curvature: Floats, columns: Floats | None = None
) -> Floats:
    """Return the inverse Hessian on other coordinates than it was learnt on.

    Those that leave are held fixed, those that join are independent, of the given `curvature`,
    unless their `columns` of the Hessian are known. With more than `MAX_DENSE_COORDINATES` it is a
    diagonal, and nothing is learnt.
    """
    if len(wanted) > MAX_DENSE_COORDINATES:
        return 1.0 / curvature
    if inverse.ndim == 1:
        return np.diag(1.0 / curvature)
    kept = np.isin(support, wanted, assume_unique=True)
    learnt = inverse[np.ix_(kept, kept)]
    if not kept.all():
        across = inverse[np.ix_(kept, ~kept)]
        learnt = learnt - across @ np.linalg.solve(inverse[np.ix_(~kept, ~kept)], across.T)
    found = np.diag(1.0 / curvature)
    places = np.searchsorted(wanted, support[kept])
    found[np.ix_(places, places)] = learnt
    if columns is not None:
        _border(found, places, np.setdiff1d(np.arange(len(wanted)), places), columns)
    return found


def _border(inverse: Floats, old: Ints, new: Ints, columns: Floats) -> None:
    """Let in, in place, the columns of the Hessian that belong to `new`, if they are sound.

    With the old part of the Hessian in place, this is the inverse of a bordered matrix by the
    Schur complement of the new part.
    """
    own = columns[new]
    if not (np.diag(own) > SMALLEST_DIVISOR).all():
        return
    learnt = inverse[np.ix_(old, old)]
    explained = learnt @ columns[old]
    complement = own - columns[old].T @ explained
    root = np.sqrt(np.diag(own))
    scaled = 0.5 * (complement + complement.T) / root / root[:, None]
    if not np.isfinite(scaled).all() or np.linalg.eigvalsh(scaled)[0] <= DEPENDENT_RTOL:
        return
    corner = np.linalg.inv(scaled) / root / root[:, None]
    inverse[np.ix_(new, new)] = corner
    inverse[np.ix_(old, new)] = -explained @ corner
    inverse[np.ix_(new, old)] = inverse[np.ix_(old, new)].T
    inverse[np.ix_(old, old)] = learnt + explained @ corner @ explained.T
