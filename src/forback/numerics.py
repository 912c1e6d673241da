"""Numerical workhorses that know no model: restricted Newton and robust symmetric solves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import linalg

from forback.protocols import NEGLIGIBLE, Floats, Ints

NO_MINIMISER = "no minimiser exists (separable data and no ridge): stopped where Q no longer falls"

#: Below this eigenvalue, or squared pivot, of a matrix with unit diagonal columns are collinear.
COLLINEAR = 1e-12

#: Components of a gradient below this share of its scale are rounding.
ROUNDING = 1e-14


@dataclass(frozen=True, slots=True)
class State:
    """A place on the way to a minimum."""

    coef: Floats
    value: float
    gradient: Floats
    cache: Any = None


Line = Callable[[float], State]


class Problem(Protocol):
    """A smooth convex function of a few variables, as Newton's method sees it."""

    def at(self, coef: Floats) -> State:
        """Evaluate at `coef`."""

    def hessian(self, state: State) -> Floats:
        """The second derivative, or an upper estimate of it."""

    def line(self, state: State, direction: Floats) -> Line:
        """Evaluate along a direction: ``t -> state``."""

    def runs_away(self, direction: Floats) -> bool:
        """Whether a step that gains nothing any more still goes far: there is no minimiser."""


def newton(
    problem: Problem, coef: Floats, scale: Floats, *, unit: float, tol: float, max_iter: int
) -> tuple[State, str]:
    """Minimise from `coef` until every |gradient| is at most `tol` times its `scale`.

    Where no minimiser exists the gradient fades but the steps do not; then the method goes on
    until its predicted gain is negligible and says so in the note it returns.
    """
    state = problem.at(coef)
    if len(coef) == 0:
        return state, ""
    solve: Callable[[Floats], Floats] | None = None
    for iteration in range(max_iter + 1):
        negligible = NEGLIGIBLE * max(unit, abs(state.value))
        small = np.all(np.abs(state.gradient) <= tol * scale)
        if small and solve is not None:
            # The previous Hessian is good enough to see that a step would neither gain nor go far.
            direction = -solve(state.gradient)
            gain = -0.5 * (state.gradient @ direction)
            if gain <= negligible and not problem.runs_away(direction):
                return state, ""
        solve = solver(problem.hessian(state), scale)
        direction = -solve(state.gradient)
        gain = -0.5 * (state.gradient @ direction)
        if small and gain <= negligible:
            if not problem.runs_away(direction):
                return state, ""
            if gain <= 0.1 * negligible:  # so little that no later fit will count it as a gain
                return state, NO_MINIMISER
        if iteration == max_iter:
            break
        following = _step(problem, state, direction, scale, negligible)
        if following is None:
            return state, ""
        state = following
    return state, f"not converged after max_iter={max_iter} Newton steps"


def _step(
    problem: Problem, state: State, direction: Floats, scale: Floats, negligible: float
) -> State | None:
    """The next state by backtracking, or None where rounding leaves nothing to improve."""
    slope = state.gradient @ direction
    line, t = problem.line(state, direction), 1.0
    for _ in range(60):
        trial = line(t)
        if trial.value <= state.value + 1e-4 * t * slope:
            return trial
        # Values cannot resolve gains this small; the gradient can.
        if -slope <= negligible and _steepness(trial, scale) < _steepness(state, scale):
            return trial
        t *= 0.5
    return None


def _steepness(state: State, scale: Floats) -> float:
    return float(np.max(np.abs(state.gradient) / np.where(scale > 0, scale, 1.0), initial=0.0))


def solver(hessian: Floats, scale: Floats) -> Callable[[Floats], Floats]:
    """A function g -> H^-1 g for a positive semidefinite H of any scaling and rank.

    H is scaled to unit diagonal first, so columns of size 1e-150 and 1e150 may meet. Where it is
    singular, directions without curvature are left alone unless the gradient has a component
    there beyond rounding (judged by `scale`, the size its entries would have at a poor fit).
    """
    unit, root = _unit_diagonal(hessian)
    factor, info = linalg.lapack.dpotrf(unit, lower=True)
    if info == 0 and np.min(np.diag(factor)) ** 2 > COLLINEAR:
        return lambda g: linalg.lapack.dpotrs(factor, g / root, lower=True)[0] / root
    eigenvalues, vectors = linalg.eigh(unit)
    noise = ROUNDING * np.max(scale / root, initial=0.0) * len(unit)

    def solve(g: Floats) -> Floats:
        component = vectors.T @ (g / root)
        flat = eigenvalues <= COLLINEAR
        component[flat & (np.abs(component) <= noise)] = 0.0
        return np.asarray(vectors @ (component / np.maximum(eigenvalues, COLLINEAR)) / root)

    return solve


def inverse_diagonal_blocks(hessian: Floats, blocks: list[Ints]) -> list[Floats]:
    """The diagonal blocks of H^-1, for H of any scaling; huge where columns are collinear."""
    unit, root = _unit_diagonal(hessian)
    eigenvalues, vectors = linalg.eigh(unit)
    half = vectors / np.sqrt(np.maximum(eigenvalues, 1e-3 * COLLINEAR)) / root[:, None]
    return [half[block] @ half[block].T for block in blocks]


def _unit_diagonal(hessian: Floats) -> tuple[Floats, Floats]:
    """H scaled to unit diagonal, and the roots of its diagonal that it was divided by."""
    root = np.sqrt(np.diag(hessian))
    root = np.where(root > 0, root, 1.0)
    return hessian / root[:, None] / root, root
