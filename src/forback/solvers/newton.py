"""Newton's method for a smooth convex function of a few coordinates, whatever the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import optimize

from forback.core.status import Status
from forback.core.tolerances import FAR, NEGLIGIBLE, ROUNDING, SHRINKS
from forback.core.types import Floats, Ints
from forback.solvers.linalg import COLLINEAR, TINY, Solve, factor, scaled_svd

#: Where a loss saturates, a step that was too long is cut to one that moves no eta further.
TRUST = 20.0

#: After a step that is certain, the next one promises less than this share of its gain.
SETTLES = 0.25

#: A gain of more than this share of Q is no matter of rounding.
BLURRED = 1e-3


#: So often, in one fit, L-BFGS takes over where Newton's method is blind, for so many steps.
DESCENTS, DESCENT = 10, 500


@dataclass(frozen=True, slots=True)
class State:
    """A place on the way to a minimum."""

    coef: Floats
    value: float
    gradient: Floats
    cache: Any = None

    def dense(self, support: Ints, dim: int) -> Floats:
        """The coefficients, which belong to `support`, among zeros."""
        beta = np.zeros(dim)
        beta[support] = self.coef
        return beta


class Problem(Protocol):
    """A smooth convex function of a few variables, as Newton's method sees it."""

    @property
    def saturates(self) -> bool:
        """Whether the infimum may lie infinitely far away."""

    @property
    def has_corners(self) -> bool:
        """Whether the function is straight in parts: curvature is made up there."""

    def bends_alike(self, state: State, other: State) -> bool:
        """Whether the Hessian is the same at two places, where there are corners between."""

    @property
    def certain(self) -> float:
        """A Newton step that promises no more gain than this is right, whatever values say."""

    def at(self, coef: Floats) -> State:
        """Evaluate at `coef`."""

    def hessian(self, state: State) -> Floats:
        """The second derivative, or an upper estimate of it."""

    def square_root(self, state: State) -> tuple[Floats, Floats]:
        """A and z with ``A'A`` the Hessian and ``A'z`` the gradient.

        Squaring A loses half the digits, which matters where columns are nearly collinear.
        """

    def along(self, state: State, direction: Floats) -> State:
        """Evaluate one step from `state`."""

    def noise(self, state: State) -> tuple[float, Floats | float]:
        """What rounding can do to the value, and to each entry of the gradient."""

    def reach(self, direction: Floats) -> float:
        """How far a step along `direction` moves any eta; more will do if it is at most `FAR`."""


class Minimum(NamedTuple):
    """Where Newton's method ended, how, and its last Hessian."""

    state: State
    status: Status
    hessian: Floats | None


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # a step that overflows is too long
def newton(
    problem: Problem,
    state: State,
    scale: Floats,
    *,
    unit: float,
    tol: float,
    max_iter: int,
    guess: Floats | None = None,
) -> Minimum:
    """Minimise from `state` until every |gradient| is at most `tol` times its `scale`.

    Where no minimiser exists the gradient fades but the steps do not; then the method goes on
    until the gain it predicts is negligible against `unit` or Q, and says so by its status.

    `guess` is a Hessian from nearby, good enough for a first step. A factor serves again as long
    as each step with it shrinks the gradient a great deal.

    The work is bounded: at most `max_iter` steps, each with at most two thousand evaluations, as
    many as halvings and doublings of a number allow, and `DESCENTS` runs of L-BFGS.
    """
    if len(state.coef) == 0:
        return Minimum(state, Status.CONVERGED, None)
    scale = np.where(scale > 0, scale, TINY)
    solve, hessian = factor(guess), guess
    again, iteration, promised, descents = solve is not None, 0, np.inf, 0
    bent: State | None = None  # where the Hessian belongs
    while True:
        negligible = NEGLIGIBLE * max(unit, abs(state.value))
        steep = steepness(state, scale)
        small = steep <= tol
        if problem.has_corners and (bent is None or not problem.bends_alike(bent, state)):
            solve = None  # curvature may have changed beyond recognition
        if small and solve is not None and _settled(problem, state, solve, negligible):
            return Minimum(state, Status.CONVERGED, hessian)
        if again and solve is not None:
            direction, seen = -solve(state.gradient), True
        else:
            hessian, bent = problem.hessian(state), state
            direction, solve, seen = newton_direction(problem, state, hessian)
            # Only where a loss saturates may a small gradient hide a long way.
            seen = seen or (small and not problem.saturates)
        gain = _gain(state, direction)
        if not small and seen and gain <= BLURRED * max(unit, abs(state.value)):
            small, negligible = _blurred(problem, state, gain, tol * scale, negligible)
        if seen and gain <= (negligible if small else ROUNDING * max(unit, abs(state.value))):
            if not small or not _far(problem, direction):
                return Minimum(state, Status.CONVERGED, hessian)
            if gain <= 0.1 * negligible:  # so little that no later fit will count it as a gain
                return Minimum(state, Status.NO_MINIMISER, hessian)
        if iteration == max_iter:
            return Minimum(state, Status.MAX_ITER, hessian)
        following = None
        if promised < np.inf and not again and not (seen and 0.0 < gain <= SETTLES * promised):
            return Minimum(
                state, Status.CONVERGED, hessian
            )  # theory says otherwise, so this is rounding
        if seen and not again and 0.0 < gain <= problem.certain:
            following, promised = problem.along(state, direction), gain
        elif gain > 0.0:
            following = _step(problem, state, direction, scale, negligible)
        if following is None and again:
            again = False  # perhaps a Hessian of this very place does better
            continue
        stuck = gain > 1e6 * negligible
        if following is None and (stuck or not small or not seen) and descents < DESCENTS:
            following, descents = _descend(problem, state, scale), descents + 1
        if following is None:  # rounding leaves nothing to improve, as a rule
            # Where a loss has corners, what a step promises means little.
            blocked = stuck and not problem.has_corners
            return Minimum(state, Status.STUCK if blocked else Status.CONVERGED, hessian)
        again = solve is not None and steepness(following, scale) < SHRINKS * steep
        state, iteration = following, iteration + 1


def _settled(problem: Problem, state: State, solve: Solve, negligible: float) -> bool:
    """Whether a step, with a Hessian from nearby, would neither gain nor go far."""
    direction = -solve(state.gradient)
    return _gain(state, direction) <= negligible and not _far(problem, direction)


def _blurred(
    problem: Problem, state: State, gain: float, steep: Floats, negligible: float
) -> tuple[bool, float]:
    """Whether rounding hides what is left of value and gradient; what is negligible then."""
    blur, blurs = problem.noise(state)
    hidden = gain <= blur and bool((np.abs(state.gradient) <= steep + blurs).all())
    return hidden, max(negligible, blur) if hidden else negligible


def _descend(problem: Problem, state: State, scale: Floats) -> State | None:
    """A run of L-BFGS, for places where Newton's method is blind: too far out, or on an edge."""
    unit = np.where(scale > 0, scale / max(scale.max(), TINY), 1.0)

    def scaled(point: Floats) -> tuple[float, Floats]:
        here = problem.at(point / unit)
        return here.value, here.gradient / unit

    options = {
        "gtol": 1e-6 * float(np.max(np.abs(state.gradient / unit))), "ftol": 1e-15,
        "maxiter": DESCENT, "maxfun": 2 * DESCENT,
    }  # fmt: skip
    found = optimize.minimize(
        scaled, state.coef * unit, jac=True, method="L-BFGS-B", options=options
    )
    following = problem.at(found.x / unit)
    worthwhile = state.value - following.value > 1e-15 * abs(state.value)
    return following if worthwhile else None


def _gain(state: State, direction: Floats) -> float:
    return float(-0.5 * (state.gradient @ direction))


def _far(problem: Problem, direction: Floats) -> bool:
    return problem.saturates and problem.reach(direction) > FAR


def _step(
    problem: Problem, state: State, direction: Floats, scale: Floats, negligible: float
) -> State | None:
    """The next state along `direction`, or None where nothing improves."""
    slope = float(state.gradient @ direction)
    t, trial = 1.0, problem.along(state, direction)
    if -slope <= negligible:  # values cannot resolve so little; the gradient can
        return trial if steepness(trial, scale) < 0.5 * steepness(state, scale) else None
    if trial.value <= state.value + 1e-4 * slope:
        return _stretch(problem, state, direction, trial, slope)
    for _ in range(200):
        t *= 0.5
        if not np.isfinite(trial.value):  # overflown, so much too far
            t = min(t, TRUST / max(problem.reach(direction), TINY))
        trial = problem.along(state, t * direction)
        if trial.value < state.value + 1e-4 * t * slope:
            return trial
    return None


def _stretch(
    problem: Problem, state: State, direction: Floats, trial: State, slope: float
) -> State:
    """Go further while the slope holds: on a straight stretch curvature says little."""
    t = 1.0
    while float(trial.gradient @ direction) < 0.5 * slope:
        t *= 2.0
        further = problem.along(state, t * direction)
        if not further.value < trial.value:
            break
        trial = further
    return trial


def steepness(state: State, scale: Floats) -> float:
    """The largest |gradient| relative to its scale, which must be positive."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float((np.abs(state.gradient) / scale).max(initial=0.0))


def newton_direction(
    problem: Problem, state: State, hessian: Floats
) -> tuple[Floats, Solve | None, bool]:
    """Minus the inverse Hessian times the gradient.

    With the solve, if it may be used again, and whether curvature has seen the whole gradient: so
    far out that it underflows, it does not.

    Where the Hessian is ill-conditioned, the step solves a least squares problem in its square
    root, and collinear directions are left alone.
    """
    solve = factor(hessian)
    if solve is not None:
        return -solve(state.gradient), solve, True
    A, z = problem.square_root(state)
    left, singular, right, norms = scaled_svd(A)
    kept = singular > COLLINEAR * singular[0]
    component = left.T @ z
    kept_component = np.where(kept, component, 0.0) / np.where(kept, singular, 1.0)
    direction = -(right.T @ kept_component) / norms
    unseen = np.linalg.norm((singular * component)[~kept])
    unseen += np.linalg.norm((state.gradient - A.T @ z) / norms)
    seen = unseen <= 0.1 * np.linalg.norm(state.gradient / norms)
    return direction, None, bool(seen and state.gradient @ direction <= 0.0)
