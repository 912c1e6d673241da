"""Numerical workhorses that know no model: Newton's method, and solves for collinear columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import linalg, optimize

from forback.kernels.sprint import (
    FAR,
    ILL_CONDITIONED,
    ROUNDING,
    SHRINKS,
    fill_factor,
    solve_factored,
)
from forback.protocols import NEGLIGIBLE, Floats, Ints

NO_MINIMISER = "no minimiser within reach (separable data, little or no ridge): Q falls no more"
UNBOUNDED = "no minimiser: S is singular on variables joined by these edges; Q falls without end"

#: Up to this many columns a compiled loop factors a Hessian in less time than a call of LAPACK.
FEW = 64

#: Singular values below this share of the largest are exact collinearity: nothing moves there.
COLLINEAR = 1e-13

#: Where a loss saturates, a step that was too long is cut to one that moves no eta further.
TRUST = 20.0

#: After a step that is certain, the next one promises less than this share of its gain.
SETTLES = 0.25

#: A gain of more than this share of Q is no matter of rounding.
BLURRED = 1e-3

#: So often, in one fit, L-BFGS takes over where Newton's method is blind, for so many steps.
DESCENTS, DESCENT = 10, 500

TINY = 1e-300


def ridge_penalty(ridge: Floats, coef: Floats) -> float:
    """Half the sum of ridge * coef^2, in an order in which no ridge makes it 0 whatever coef is."""
    return 0.5 * float((ridge * coef) @ coef)


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


Solve = Callable[[Floats], Floats]


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
    """Where Newton's method ended, what to know about it, and its last Hessian."""

    state: State
    note: str
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
    until the gain it predicts is negligible against `unit` or Q, and says so in its note.

    `guess` is a Hessian from nearby, good enough for a first step. A factor serves again as long
    as each step with it shrinks the gradient a great deal.

    The work is bounded: at most `max_iter` steps, each with at most two thousand evaluations, as
    many as halvings and doublings of a number allow, and `DESCENTS` runs of L-BFGS.
    """
    if len(state.coef) == 0:
        return Minimum(state, "", None)
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
            return Minimum(state, "", hessian)
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
                return Minimum(state, "", hessian)
            if gain <= 0.1 * negligible:  # so little that no later fit will count it as a gain
                return Minimum(state, NO_MINIMISER, hessian)
        if iteration == max_iter:
            note = f"not converged after max_iter={max_iter} Newton steps"
            return Minimum(state, note, hessian)
        following = None
        if promised < np.inf and not again and not (seen and 0.0 < gain <= SETTLES * promised):
            return Minimum(state, "", hessian)  # theory says otherwise, so this is rounding
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
            told = stuck and not problem.has_corners  # where what a step promises means little
            return Minimum(state, "not converged: no step lowers Q" if told else "", hessian)
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
    left, singular, right, norms = _scaled_svd(A)
    kept = singular > COLLINEAR * singular[0]
    component = left.T @ z
    kept_component = np.where(kept, component, 0.0) / np.where(kept, singular, 1.0)
    direction = -(right.T @ kept_component) / norms
    unseen = np.linalg.norm((singular * component)[~kept])
    unseen += np.linalg.norm((state.gradient - A.T @ z) / norms)
    seen = unseen <= 0.1 * np.linalg.norm(state.gradient / norms)
    return direction, None, bool(seen and state.gradient @ direction <= 0.0)


def factor(hessian: Floats | None, least_pivot: float = ILL_CONDITIONED) -> Solve | None:
    """A solver by Cholesky's method, or None where the Hessian is ill-conditioned.

    It is scaled to unit diagonal first, so that columns of size 1e-150 and 1e150 may meet.
    """
    if hessian is None:
        return None
    m = len(hessian)
    if m <= FEW:  # one small kernel is quicker than waking up LAPACK
        root, triangle = np.empty(m), np.zeros((m, m))
        if not fill_factor(hessian, root, triangle, least_pivot):
            return None

        def solve_few(g: Floats) -> Floats:
            found = np.empty(m)
            solve_factored(triangle, root, g, found)
            return found

        return solve_few
    root = np.sqrt(np.diag(hessian))
    root[root == 0.0] = 1.0
    scaled = hessian / root[:, None]
    scaled /= root
    # A transpose is in LAPACK's own order and need not be copied.
    triangle, info = linalg.lapack.dpotrf(scaled.T, lower=True, overwrite_a=True, clean=False)
    if info != 0 or triangle.diagonal().min() ** 2 <= least_pivot:
        return None

    def solve(g: Floats) -> Floats:
        return np.asarray(linalg.lapack.dpotrs(triangle, g / root, lower=True)[0] / root)

    return solve


def _scaled_svd(A: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """The SVD of A with columns of unit norm, and those norms."""
    largest = np.max(np.abs(A), axis=0)
    largest = np.where(largest > 0, largest, 1.0)
    norms = largest * np.linalg.norm(A / largest, axis=0)
    norms = np.where(norms > 0, norms, 1.0)
    return *linalg.svd(A / norms, full_matrices=False), norms


def projection_costs(A: Floats, coef: Floats, blocks: list[Ints]) -> Floats:
    """For each block of columns: 1/2 the squared distance of A_B coef_B from the other columns.

    This is how far ``|A b - z|^2 / 2``, at its minimum, rises when the block leaves.
    """
    if all(len(block) == 1 for block in blocks):
        # 1/2 b^2 / [(A'A)^-1]_jj, all at once; the inverse is huge where columns are collinear.
        _, singular, right, norms = _scaled_svd(A)
        half = right.T / np.maximum(singular, COLLINEAR * singular[0]) / norms[:, None]
        index = np.concatenate(blocks)
        return np.asarray(0.5 * coef[index] ** 2 / np.sum(half[index] ** 2, axis=1))
    triangle = np.asarray(np.linalg.qr(A, mode="r"))
    norms = np.linalg.norm(triangle, axis=0)
    unit = triangle / np.where(norms > 0, norms, 1.0)
    costs = []
    for block in blocks:
        rest = np.setdiff1d(np.arange(len(coef)), block)
        target = triangle[:, block] @ coef[block]
        nearest = np.linalg.lstsq(unit[:, rest], target, rcond=COLLINEAR)[0]
        costs.append(0.5 * np.sum((target - unit[:, rest] @ nearest) ** 2))
    return np.array(costs)
