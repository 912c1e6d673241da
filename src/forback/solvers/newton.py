"""Newton's method for a smooth convex function of a few coordinates, whatever the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from forback.core.status import Status
from forback.core.tolerances import (
    FAR,
    MAX_ETA_STEP,
    NEGLIGIBLE,
    ROUNDING,
    SHRINKS,
    SMALLEST_DIVISOR,
    STUCK_GAIN_RATIO,
    SUFFICIENT_DECREASE,
)
from forback.core.types import Floats, Ints
from forback.solvers.lbfgs import lbfgs
from forback.solvers.linalg import COLLINEAR_RTOL, Solve, factor, scaled_svd

#: After a step that is certain, the next one promises less than this fraction of its gain.
CERTAIN_STEP_SHRINKAGE = 0.25

#: A gain of more than this fraction of Q is no matter of rounding.
MAX_ROUNDING_GAIN = 1e-3

#: How often, in one fit, L-BFGS takes over where Newton's method is blind, and for how many steps.
MAX_LBFGS_RUNS = 10
LBFGS_MAX_ITER = 500

#: A run of L-BFGS ends when the largest entry of the gradient has shrunk to this fraction.
LBFGS_GRADIENT_SHRINKAGE = 1e-6

#: A step is halved so often, at most.
MAX_HALVINGS = 200


@dataclass(frozen=True, slots=True)
class State:
    """A place on the way to a minimum."""

    coef: Floats
    value: float
    gradient: Floats
    cache: Any = None

    def dense(self, support: Ints, dim: int) -> Floats:
        """Return the coefficients, which belong to `support`, among zeros."""
        beta = np.zeros(dim)
        beta[support] = self.coef
        return beta


class Problem(Protocol):
    """A smooth convex function of a few coordinates, as Newton's method sees it.

    A class that names this one as its base takes over what is said here about a function that
    neither saturates nor has corners, and whose rounding errors are below every tolerance.
    """

    @property
    def saturates(self) -> bool:
        """Whether the infimum may lie infinitely far away."""
        return False

    @property
    def has_corners(self) -> bool:
        """Whether the function is straight in parts: curvature is made up there."""
        return False

    def bends_alike(self, state: State, other: State) -> bool:
        """Whether the Hessian is the same at two places, where there are corners between."""
        return False

    @property
    def certain(self) -> float:
        """A Newton step that promises no more gain than this is right, whatever values say."""
        return 0.0

    def at(self, coef: Floats) -> State:
        """Evaluate at `coef`."""

    def hessian(self, state: State) -> Floats:
        """Return the second derivative, or an upper estimate of it."""

    def square_root(self, state: State) -> tuple[Floats, Floats]:
        """Return A and z with ``A'A`` the Hessian and ``A'z`` the gradient.

        Squaring A loses half the digits, which matters where columns are nearly collinear.
        """

    def along(self, state: State, direction: Floats) -> State:
        """Evaluate one step from `state`."""
        return self.at(state.coef + direction)

    def noise(self, state: State) -> tuple[float, Floats | float]:
        """Return what rounding can do to the value, and to each entry of the gradient."""
        return 0.0, 0.0

    def reach(self, direction: Floats) -> float:
        """Return how far a step moves any eta; a larger number will do if it is at most `FAR`."""
        return 0.0


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
    many as halvings and doublings of a number allow, and `MAX_LBFGS_RUNS` runs of L-BFGS.
    """
    if len(state.coef) == 0:
        return Minimum(state, Status.CONVERGED, None)
    method = _Newton(problem, np.where(scale > 0, scale, SMALLEST_DIVISOR), unit, tol, guess)
    for _ in range(max_iter):
        following = method.step(state)
        if isinstance(following, Status):
            return Minimum(state, following, method.hessian)
        state = following
    outlook = method.outlook(state)
    ending = outlook if isinstance(outlook, Status) else Status.MAX_ITER
    return Minimum(state, ending, method.hessian)


class _Outlook(NamedTuple):
    """What a Newton step from some place promises."""

    direction: Floats
    gain: float
    steepness: float
    negligible: float  #: a gain that does not count here
    is_small: bool  #: whether the gradient is within its tolerance, or within rounding
    is_seen: bool  #: whether curvature accounts for the whole gradient


@dataclass
class _Newton:
    """Newton's method under way: the last Hessian, and what it may still serve for."""

    problem: Problem
    scale: Floats
    unit: float
    tol: float
    hessian: Floats | None
    _hessian_at: State | None = None
    _certain_gain: float = np.inf  #: what the last step that was certain promised
    _lbfgs_runs: int = 0

    def __post_init__(self) -> None:
        self._solve = factor(self.hessian)
        self._reuse = self._solve is not None  # whether the next step is made with the last factor

    def step(self, state: State) -> State | Status:
        """Return the next place, or how the method ends at this one."""
        outlook = self.outlook(state)
        if isinstance(outlook, Status):
            return outlook
        shrinks = outlook.is_seen and (
            0.0 < outlook.gain <= CERTAIN_STEP_SHRINKAGE * self._certain_gain
        )
        if self._certain_gain < np.inf and not self._reuse and not shrinks:
            return Status.CONVERGED  # theory promises less, so this is rounding
        following = self._move(state, outlook)
        if following is None and self._reuse:
            self._reuse = False  # perhaps the Hessian of this very place does better
            return self.step(state)
        is_stuck = outlook.gain > STUCK_GAIN_RATIO * outlook.negligible
        is_blind = is_stuck or not outlook.is_small or not outlook.is_seen
        if following is None and is_blind and self._lbfgs_runs < MAX_LBFGS_RUNS:
            self._lbfgs_runs += 1
            following = _descend(self.problem, state, self.scale)
        if following is None:  # rounding leaves nothing to improve, as a rule
            # Where a loss has corners, what a step promises means little.
            is_stuck = is_stuck and not self.problem.has_corners
            return Status.STUCK if is_stuck else Status.CONVERGED
        shrunk = steepness(following, self.scale) < SHRINKS * outlook.steepness
        self._reuse = self._solve is not None and shrunk
        return following

    def outlook(self, state: State) -> _Outlook | Status:
        """Return what the next step promises, or how the method ends where that is too little."""
        problem = self.problem
        size = max(self.unit, abs(state.value))
        negligible = NEGLIGIBLE * size
        steep = steepness(state, self.scale)
        small = steep <= self.tol
        last = self._hessian_at
        if problem.has_corners and (last is None or not problem.bends_alike(last, state)):
            self._solve = None  # curvature may have changed beyond recognition
            self._reuse = False
        seen = True
        if self._solve is not None and (small or self._reuse):  # a Hessian from nearby will do
            direction = -self._solve(state.gradient)
            no_gain = _gain(state, direction) <= negligible
            if small and no_gain and not _is_far(problem, direction):
                return Status.CONVERGED
        if not self._reuse:
            self.hessian = problem.hessian(state)
            self._hessian_at = state
            direction, self._solve, seen = newton_direction(problem, state, self.hessian)
        # Only where a loss saturates may a small gradient hide a long way.
        seen = seen or (small and not problem.saturates)
        gain = _gain(state, direction)
        if not small and seen and gain <= MAX_ROUNDING_GAIN * size:
            value_noise, gradient_noise = problem.noise(state)
            within = np.abs(state.gradient) <= self.tol * self.scale + gradient_noise
            small = gain <= value_noise and bool(within.all())
            negligible = max(negligible, value_noise) if small else negligible
        if seen and gain <= (negligible if small else ROUNDING * size):
            if not small or not _is_far(problem, direction):
                return Status.CONVERGED
            if gain <= 0.1 * negligible:  # so little that no later fit will count it as a gain
                return Status.NO_MINIMISER
        return _Outlook(direction, gain, steep, negligible, small, seen)

    def _move(self, state: State, outlook: _Outlook) -> State | None:
        """The next place along the direction, or None where nothing improves."""
        if not outlook.gain > 0.0:
            return None
        if outlook.is_seen and not self._reuse and outlook.gain <= self.problem.certain:
            self._certain_gain = outlook.gain
            return self.problem.along(state, outlook.direction)
        return _step(self.problem, state, outlook.direction, self.scale, outlook.negligible)


def _descend(problem: Problem, state: State, scale: Floats) -> State | None:
    """A run of L-BFGS, for places where Newton's method is blind: too far out, or on an edge."""
    sizes = max(scale.max(), SMALLEST_DIVISOR) / scale

    def evaluate(coef: Floats) -> tuple[float, Floats]:
        here = problem.at(coef)
        return here.value, here.gradient

    found = lbfgs(
        evaluate,
        state.coef,
        sizes,
        gtol=LBFGS_GRADIENT_SHRINKAGE * float(np.max(np.abs(state.gradient * sizes))),
        max_iter=LBFGS_MAX_ITER,
        maxfun=2 * LBFGS_MAX_ITER,
    )
    following = problem.at(found.x)
    worthwhile = state.value - following.value > 1e-15 * abs(state.value)
    return following if worthwhile else None


def _gain(state: State, direction: Floats) -> float:
    return float(-0.5 * (state.gradient @ direction))


def _is_far(problem: Problem, direction: Floats) -> bool:
    return problem.saturates and problem.reach(direction) > FAR


def _step(
    problem: Problem, state: State, direction: Floats, scale: Floats, negligible: float
) -> State | None:
    """The next state along `direction`, or None where nothing improves."""
    slope = float(state.gradient @ direction)
    trial = problem.along(state, direction)
    if -slope <= negligible:  # values cannot resolve so little; the gradient can
        return trial if steepness(trial, scale) < 0.5 * steepness(state, scale) else None
    if trial.value <= state.value + SUFFICIENT_DECREASE * slope:
        return _stretch(problem, state, direction, trial, slope)
    t = 1.0
    for _ in range(MAX_HALVINGS):
        t *= 0.5
        if not np.isfinite(trial.value):  # overflown, so much too far
            t = min(t, MAX_ETA_STEP / max(problem.reach(direction), SMALLEST_DIVISOR))
        trial = problem.along(state, t * direction)
        if trial.value < state.value + SUFFICIENT_DECREASE * t * slope:
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
    """Return the largest |gradient| relative to its scale, which must be positive."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float((np.abs(state.gradient) / scale).max(initial=0.0))


def newton_direction(
    problem: Problem, state: State, hessian: Floats
) -> tuple[Floats, Solve | None, bool]:
    """Return minus the inverse Hessian times the gradient.

    Then the solver, if it may be used again, and whether curvature accounts for the whole
    gradient, which it does not where it underflows, far out.

    Where the Hessian is ill-conditioned, the step solves a least squares problem in its square
    root, and collinear directions are left alone.
    """
    solve = factor(hessian)
    if solve is not None:
        return -solve(state.gradient), solve, True
    A, z = problem.square_root(state)
    left, singular, right, norms = scaled_svd(A)
    kept = singular > COLLINEAR_RTOL * singular[0]
    component = left.T @ z
    kept_component = np.where(kept, component, 0.0) / np.where(kept, singular, 1.0)
    direction = -(right.T @ kept_component) / norms
    unseen = np.linalg.norm((singular * component)[~kept])
    unseen += np.linalg.norm((state.gradient - A.T @ z) / norms)
    seen = unseen <= 0.1 * np.linalg.norm(state.gradient / norms)
    return direction, None, bool(seen and state.gradient @ direction <= 0.0)
