"""Fits of somebody's own function: how it is minimised over some coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from forback.core.objective import ObjectiveError
from forback.core.status import Status
from forback.core.tolerances import NEGLIGIBLE, SMALLEST_DIVISOR, STUCK_GAIN_RATIO
from forback.core.types import Floats, Ints
from forback.objectives.function.curvature import (
    RestrictedHessian,
    curvature_along,
    hessian_column,
    or_typical,
)
from forback.objectives.function.oracles import Oracle, WatchedFunction
from forback.solvers.bfgs import MAX_DENSE_COORDINATES, Descent, descend, inverse_on
from forback.solvers.convexity import NotConvex
from forback.solvers.newton import State, newton

if TYPE_CHECKING:
    from forback.objectives.function.objective import Function

T = TypeVar("T")

#: A gradient may be wrong by this fraction of the largest where fits begin; it takes more to say
#: that a function is not convex.
GRADIENT_NOISE_RTOL = 1e-4

#: A gradient may be wrong by so many times the difference seen between neighbouring places.
GRADIENT_NOISE_FACTOR = 10.0

#: The curvature of up to this many new coordinates is found by differences, one by one.
MAX_DIFFERENCED_COLUMNS = 8

#: A function that falls this many times as far as it promised is unbounded below.
UNBOUNDED_FALL = 1e15

#: At a minimiser, a Newton step is a smaller fraction than this of the coefficients.
MAX_FINAL_STEP = 1e-3

#: Nor does the slope where fits begin promise so many times the gain by one of them.
MAX_PROMISE = 20.0


@dataclass(frozen=True)
class FunctionCache:
    """What a point of a `Function` carries along.

    Attributes
    ----------
    owner : Function
    beta : Floats
    gradient : Floats
        Over all coordinates.
    inverse : Floats
        The inverse Hessian learnt on `support`.
    support : Ints
    """

    owner: Function
    beta: Floats
    gradient: Floats
    inverse: Floats
    support: Ints


@dataclass
class FunctionFit:
    """How a function is minimised: by BFGS, and by Newton's method where that does not end.

    Gradients may be off before a function is called not convex: by `noise`, which is a fraction of
    the steepest where fits begin, or by what they were seen to be off, which is looked at where a
    function seems not to be convex.

    Attributes
    ----------
    oracle : Oracle
    begin : Floats
        Where fits begin.
    first_value : float
        Value and gradient there.
    first_gradient : Floats
    tol : float
    max_iter : int
    seen_noise : float
        What gradients were seen to be off.
    """

    oracle: Oracle
    begin: Floats
    first_value: float
    first_gradient: Floats
    tol: float
    max_iter: int
    seen_noise: float = 0.0

    def minimum(
        self, support: Ints, first: Floats, cache: FunctionCache | None = None
    ) -> tuple[Descent, Floats] | None:
        """Minimise over a support from the coefficients `first`, those of `cache` if it is given.

        Returns where and how it ended, and the gradient there over all coordinates. None: the
        function is infinite where it would begin.
        """
        evaluate = self._watched(support, np.zeros(self.oracle.dim))
        # Where a fit has ended and all coordinates stay the function is known to be finite.
        is_known = cache is not None and np.count_nonzero(first) == np.count_nonzero(first[support])
        if not is_known and not np.isfinite(evaluate(first[support])[0]):
            return None
        found = self._descend(evaluate, first[support], self._inverse(support, first, cache))
        gradient = evaluate.whole_gradient  # if the last evaluation was of all coordinates
        if found.status is Status.CONVERGED and self._has_no_minimiser(found, support):
            found = replace(found, status=Status.NO_MINIMISER)
        elif found.status is not Status.CONVERGED and self.oracle.has_hessian:
            problem = RestrictedHessian(self.oracle, support, evaluate)
            scale = np.ones(len(support))
            place, status, _ = newton(
                problem, found.place, scale, unit=self.unit, tol=self._steep, max_iter=self.max_iter
            )
            found = replace(found, place=place, status=status)
            gradient = None
        if gradient is None:
            gradient = self.oracle.at(found.place.dense(support, self.oracle.dim))[1]
        return found, gradient

    def minimum_beside(self, block: Ints, base: Floats) -> float:
        """Minimise over some coordinates, the others held where `base` has them."""
        evaluate = self._watched(block, base)
        return self._descend(evaluate, base[block], self._inverse(block, base)).place.value

    def _watched(self, support: Ints, base: Floats) -> WatchedFunction:
        return WatchedFunction(self.oracle.on(support, base), self.noise, self.floor)

    def _descend(self, evaluate: WatchedFunction, first: Floats, inverse: Floats) -> Descent:
        settings = (self._steep, self.unit, self.max_iter)
        return descend(evaluate, first, inverse, np.zeros(len(first)), *settings)

    def _has_no_minimiser(self, found: Descent, support: Ints) -> bool:
        """Whether the function only seems to have a minimiser, and falls towards infinity.

        On separable data a logistic loss falls like exp(-t): steps do not shrink, and coefficients
        grow far beyond what the slope where fits begin promised to gain by them. Where it looks
        like that, the function is evaluated as far again as the coefficients are large, and as far
        back: at a minimiser it rises to both sides.
        """
        place = found.place
        sizes = np.abs(place.coef)
        diagonal = found.inverse.ndim == 1
        step = found.inverse * place.gradient if diagonal else found.inverse @ place.gradient
        lengths = np.abs(step)
        running = (lengths > MAX_FINAL_STEP * sizes) & (sizes > 0.0)
        if running.any():
            far = float((sizes[running] / lengths[running]).max())
            if self._falls_on(place, np.where(running, -far * step, 0.0), support):
                return True
        promised = np.abs(self.first_gradient[support]) * sizes
        running = promised > MAX_PROMISE * abs(self.first_value - place.value)
        move = np.where(running, place.coef, 0.0)
        return bool(running.any()) and self._falls_on(place, move, support)

    def _falls_on(self, place: State, move: Floats, support: Ints) -> bool:
        """Whether the function rises a great deal less after a move than after its opposite."""
        ahead = self._value_or_infinity(support, place.coef + move)
        back = self._value_or_infinity(support, place.coef - move)
        negligible = NEGLIGIBLE * max(self.unit, abs(place.value))
        return back - place.value > STUCK_GAIN_RATIO * max(ahead - place.value, negligible)

    def _value_or_infinity(self, support: Ints, coef: Floats) -> float:
        """Q where somebody's own function may not be made to go."""
        beta = np.zeros(self.oracle.dim)
        beta[support] = coef
        try:
            with np.errstate(all="ignore"):
                return self.oracle.at(beta)[0]
        except ObjectiveError:
            return np.inf

    @cached_property
    def _steepest(self) -> float:
        """The largest |gradient| where fits begin."""
        return max(float(np.abs(self.first_gradient).max()), SMALLEST_DIVISOR)

    @property
    def _steep(self) -> float:
        """The largest |gradient| that a fit may end with."""
        return self.tol * self._steepest

    @property
    def noise(self) -> float:
        """What gradients may be wrong by."""
        return max(self._steep, GRADIENT_NOISE_RTOL * self._steepest, self.seen_noise)

    def patiently(self, job: Callable[[], T]) -> T:
        """Do a job, a second time where gradients turn out to be noisier than thought."""
        try:
            return job()
        except NotConvex:
            # Places so close to each other that gradients should agree.
            apart = 4.0 * np.finfo(float).eps * np.maximum(np.abs(self.begin), 1.0)
            places = [self.begin + times * apart for times in (-2.0, -1.0, 0.0, 1.0)]
            gradients = [self.oracle.at(place)[1] for place in places]
            off = GRADIENT_NOISE_FACTOR * float(np.ptp(gradients, axis=0).max())
            if off <= self.noise:
                raise
            self.seen_noise = off
            return job()

    @cached_property
    def typical(self) -> float:
        """A typical curvature: that along the gradient where fits begin."""
        gradient = self.first_gradient
        return curvature_along(self.oracle, self.begin, -gradient, gradient)

    @cached_property
    def _promised(self) -> float:
        """How far Q falls from where fits begin, going by its slope and curvature there."""
        return 0.5 * float(self.first_gradient @ self.first_gradient) / self.typical

    @cached_property
    def unit(self) -> float:
        """A size of Q: at most 1, less where Q is small and the gradient does not promise more."""
        return min(1.0, max(abs(self.first_value), self._promised)) or 1.0

    @cached_property
    def floor(self) -> float:
        """A value so low that Q seems to have no minimum."""
        first = self.first_value
        return first - UNBOUNDED_FALL * max(abs(first), self._promised)

    def _inverse(self, support: Ints, first: Floats, cache: FunctionCache | None = None) -> Floats:
        """The inverse Hessian to begin with, as exact as can be had."""
        typical = np.full(len(support), self.typical)
        if len(support) > MAX_DENSE_COORDINATES:
            return 1.0 / typical
        if cache is None or self.oracle.has_hessian:  # in one piece: nothing need be carried
            inverse, learnt = np.zeros((0, 0)), np.zeros(0, dtype=np.intp)
        else:
            inverse, learnt = cache.inverse, cache.support
        joining = np.setdiff1d(support, learnt)
        columns = self._columns(first, joining, support, cache)
        if columns is not None:
            places = np.searchsorted(support, joining)
            typical[places] = or_typical(columns[places, np.arange(len(joining))], self.typical)
        return inverse_on(inverse, learnt, support, typical, columns)

    def _columns(
        self, beta: Floats, joining: Ints, support: Ints, cache: FunctionCache | None
    ) -> Floats | None:
        """The columns of the Hessian of new coordinates, if any, exact or by differences."""
        if len(joining) == 0:
            return None
        exact = self.oracle.hessian_columns(beta, joining, support)
        if exact is not None or len(joining) > MAX_DIFFERENCED_COLUMNS:
            return exact
        if cache is not None and np.array_equal(cache.beta, beta):
            gradient = cache.gradient
        else:
            gradient = self.oracle.at(beta)[1]
        found = [hessian_column(self.oracle, beta, gradient, int(j))[support] for j in joining]
        return np.stack(found, axis=1)
