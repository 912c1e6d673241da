"""Any smooth convex function as an objective: what it does not say is worked out.

Fits are quasi-Newton on the coordinates of the support. The inverse Hessian starts from second
derivatives where they are given, from differences of gradients where not, and is handed on from fit
to fit. Nothing is known about what is inside, so a fit costs whole evaluations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from forback.core.blocks import Blocks
from forback.core.features import Features
from forback.core.objective import Objective, ObjectiveError, Scores
from forback.core.point import Point
from forback.core.status import Status
from forback.core.tolerances import NEGLIGIBLE
from forback.core.types import Floats, Ints
from forback.core.units import Units, exponent
from forback.objectives.function.differences import curvature_along, hessian_column
from forback.objectives.function.fit import Curved
from forback.objectives.function.lines import LEVEL, NEARLY, Lines
from forback.objectives.function.oracles import (
    Doubt,
    Multiplied,
    Oracle,
    Watched,
    first_look,
)
from forback.solvers.bfgs import MAX_DENSE_COORDINATES as MANY, Descent, descend, inverse_on
from forback.solvers.convexity import SLOPE_FALL_RTOL as BENT, NotConvex
from forback.solvers.linalg import TINY
from forback.solvers.newton import State, newton
from forback.validation.arrays import check_curvature, check_vector
from forback.validation.scalars import check_integer, check_names, check_number

#: The curvature of so many new coordinates is looked at one by one.
FEW = 8

#: A function that falls so many times as far as it promised does not end.
ENDLESS = 1e15

#: The accuracy of fits with second derivatives.
SECOND_ORDER = 1e-10


@dataclass(frozen=True)
class Fit:
    """What a point of a `Function` carries along."""

    owner: Function  #: whose point it is: nobody else can use it
    beta: Floats
    gradient: Floats  #: over all coordinates
    inverse: Floats  #: the inverse Hessian learnt on the support


class Function(Objective):
    """A function that an `Oracle` answers for; `from_function` and `from_jax` make them."""

    def __init__(
        self,
        oracle: Oracle,
        *,
        curvature: Any = None,
        n_candidates: int | None = None,
        names: Sequence[str] | None = None,
        start: Any = None,
        tol: float = SECOND_ORDER,
        max_iter: int = 1000,
    ) -> None:
        self.oracle = oracle
        self.dim = dim = oracle.dim
        self.n_candidates = dim if n_candidates is None else _check_count(n_candidates, dim)
        self.feature_names = check_names(names, self.n_candidates)
        self.tol = check_number(tol, "tol", low=0.0, open_low=True)
        self.max_iter = check_integer(max_iter, "max_iter", low=1)
        self._curvature = check_curvature(curvature, dim)
        self._begin = np.zeros(dim) if start is None else check_vector(start, dim, "start")
        self._first = first_look(oracle, self._begin)
        if not np.isfinite(self._first[0]):
            raise ObjectiveError(
                "the function is infinite where fits begin; give start= a vector of length "
                f"{dim} where it is finite"
            )

    @property
    def features(self) -> Features:
        """What the coordinates are called."""
        return Features(self.n_candidates, self.feature_names)

    # What the loop calls -----------------------------------------------------------------------

    def minimise(self, support: Ints, start: Point | None = None) -> Point:
        """beta-hat(F): the minimiser of Q over `support`, warm-started at `start`."""
        support = np.asarray(support, dtype=np.intp)
        if len(support) == 0:
            return self._at_zero
        return self._doubt.patiently(lambda: self._minimised(support, start))

    def _minimised(self, support: Ints, start: Point | None) -> Point:
        evaluate = Watched(
            self.oracle.on(support, np.zeros(self.dim)), self._doubt.noise, self._floor
        )
        first = self._begin if start is None else start.dense(self.dim)
        known = start is not None and self._kept(start) is not None
        if start is None or not known or not np.isin(start.support, support).all():
            if start is not None and not np.isfinite(evaluate(first[support])[0]):
                start, first = None, self._begin
            if start is None and not np.isfinite(evaluate(first[support])[0]):
                status = Status.INFINITE
                return Point(support, first[support], np.inf, note=status.note(), status=status)
        found = self._descend(evaluate, first[support], self._inverse(support, start, first))
        place, status = found.place, found.status
        if status is not Status.CONVERGED and self._has_hessian(place, support):
            problem, scale = Curved(self.oracle, support, evaluate), np.ones(len(support))
            place, status, _ = newton(
                problem, place, scale, unit=self._unit, tol=self._noise, max_iter=self.max_iter
            )
        beta = place.dense(support, self.dim)
        gradient = evaluate.whole_gradient()  # if the last evaluation was made at this place
        if gradient is None or place is not found.place:
            gradient = self.oracle.at(beta)[1]
        note = status.note(max_iter=self.max_iter)
        if status is Status.STUCK:
            note = f"{note} (is the gradient right? forback.testing.check_objective tells)"
        fit = Fit(self, beta, gradient, found.inverse)
        return Point(support, place.coef, place.value, 0, fit, note, status)

    def _has_hessian(self, place: State, support: Ints) -> bool:
        return self.oracle.hessian(place.dense(support, self.dim), support) is not None

    def _descend(self, evaluate: Watched, first: Floats, inverse: Floats) -> Descent:
        return descend(
            evaluate, first, inverse, least=np.zeros(len(first)),
            steep=self._noise, unit=self._unit, max_iter=self.max_iter,
        )  # fmt: skip

    def gradient(self, point: Point) -> Floats:
        """The gradient of Q at `point`, over all coordinates."""
        return self._fit(point).gradient.copy()

    def decrease_if_added(self, point: Point, blocks: Blocks, *, only_best: bool = False) -> Scores:
        """Return how far Q falls when each block alone is optimised: the goodness of FoBa-obj."""
        if only_best and blocks.are_single and len(blocks):
            return self._best_decreases(point, blocks)
        return Scores.exact(self._doubt.patiently(lambda: self._decreases(point, blocks)))

    def _decreases(self, point: Point, blocks: Blocks) -> Floats:
        if not blocks.are_single:
            return np.array([self._fall(point, block) for block in blocks])
        return self._falls(point, blocks.coordinates)[0]

    def _best_decreases(self, point: Point, blocks: Blocks) -> Scores:
        """Decreases, exact wherever they may be the largest outside the support."""
        slopes = self._fit(point).gradient[blocks.coordinates]
        slopes[np.isin(blocks.coordinates, point.support)] = 0.0
        upper, best_so_far = np.full(len(blocks), np.inf), 0.0
        if self._curvature is not None:
            low, high = (bound[blocks.coordinates] for bound in self._curvature)
            with np.errstate(divide="ignore", invalid="ignore"):
                upper = 0.5 * slopes**2 / low
                best_so_far = float(np.max(0.5 * slopes**2 / high, initial=0.0))
        upper[slopes == 0.0] = 0.0
        left = np.flatnonzero((upper >= (1.0 - NEARLY) * best_so_far) & (slopes != 0.0))
        # The steepest first: what they reach rules others out sooner.
        left = left[np.argsort(-np.abs(slopes[left]), kind="stable")]
        upper[left], n_exact = self._doubt.patiently(
            lambda: self._falls(point, blocks.coordinates[left], best_so_far)
        )
        return Scores(upper, n_exact)

    def increase_if_removed(
        self, point: Point, blocks: Blocks, *, below: float | None = None
    ) -> Scores:
        """Return how far Q rises when each block is set to zero without a refit: the badness."""
        beta = point.dense(self.dim)
        increase = self.oracle.without(beta, [*blocks]) - point.value
        if point.status is Status.CONVERGED:
            self._doubt.patiently(lambda: self._check_rise(point, float(increase.min(initial=0.0))))
        return Scores.exact(increase)

    def _check_rise(self, point: Point, worst: float) -> None:
        unseen = len(point.support) * self._doubt.measured**2 / self._typical
        if worst < -BENT * max(self._unit, abs(point.value)) - unseen:
            raise NotConvex(
                f"the function is not convex: at its minimum over {len(point.support)} "
                f"coordinates, setting one to zero lowers it by {-worst:.3g}"
            )

    def value_and_gradient(self, beta: Floats) -> tuple[float, Floats]:
        """Q and its gradient at any dense vector of length `dim`."""
        return self.oracle.at(np.asarray(beta, dtype=np.float64))

    def resolution(self, point: Point) -> float:
        """The change of Q at a point that may be rounding; nothing is known of what is inside."""
        return NEGLIGIBLE * max(self._unit, abs(point.value))

    def rescaled(self) -> tuple[Function, Units] | None:
        """The same times a power of two, if it is too small, or too large, to be squared."""
        power = exponent(float(np.abs(self._first[1]).max()))
        if power == 0:
            return None
        curvature = self._curvature and tuple(np.ldexp(part, power) for part in self._curvature)
        other = Function(
            Multiplied(self.oracle, power), curvature=curvature, n_candidates=self.n_candidates,
            names=self.feature_names, start=self._begin, tol=self.tol, max_iter=self.max_iter,
        )  # fmt: skip
        return other, Units(-power, np.zeros(self.dim, dtype=np.intp))

    @cached_property
    def _at_zero(self) -> Point:
        """Where nothing is in."""
        nothing, beta = np.zeros(0), np.zeros(self.dim)
        value, gradient = self.oracle.at(beta)
        fit = Fit(self, beta, gradient, np.zeros((0, 0)))
        return Point(nothing.astype(np.intp), nothing, value, 0, fit)

    # Pieces ------------------------------------------------------------------------------------

    @cached_property
    def _steepest(self) -> float:
        """The largest |gradient| where fits begin."""
        return max(float(np.abs(self._first[1]).max()), TINY)

    @property
    def _noise(self) -> float:
        """What is no slope at all: a fit ends there."""
        return self.tol * self._steepest

    @cached_property
    def _doubt(self) -> Doubt:
        return Doubt(self.oracle, self._begin, self.tol * self._steepest, self._steepest)

    @cached_property
    def _unit(self) -> float:
        """A size of Q: at most 1, less where Q is small and the gradient does not promise more."""
        return min(1.0, max(abs(self._first[0]), self._promised)) or 1.0

    @cached_property
    def _promised(self) -> float:
        """How far Q falls from where fits begin, going by its slope and bend there."""
        return 0.5 * float(self._first[1] @ self._first[1]) / self._typical

    @cached_property
    def _floor(self) -> float:
        """A value so low that Q seems to have no minimum."""
        return self._first[0] - ENDLESS * max(abs(self._first[0]), self._promised)

    def _fit(self, point: Point) -> Fit:
        """What the point carries along, worked out again if it has lost that."""
        if not np.isfinite(point.value):
            raise ObjectiveError(
                "the function is infinite where only coordinates "
                f"{point.support.tolist()} are in: what it is infinite without must be always in"
            )
        if (kept := self._kept(point)) is not None:
            return kept
        beta = point.dense(self.dim)
        return Fit(self, beta, self.oracle.at(beta)[1], np.zeros((0, 0)))

    def _kept(self, point: Point) -> Fit | None:
        """What the point carries along, if it is one of this objective's."""
        return self.own_cache(point, Fit)

    def _inverse(self, support: Ints, start: Point | None, first: Floats) -> Floats:
        """The inverse Hessian to begin with, as exact as can be had."""
        fit = None if start is None else self._kept(start)
        inverse, learnt = np.zeros((0, 0)), np.zeros(0, dtype=np.intp)
        if start is not None and fit is not None:
            inverse, learnt = fit.inverse, start.support
        joining = np.setdiff1d(support, learnt)
        columns = self.oracle.hessian(first, support) if len(support) <= MANY else None
        if columns is not None:  # at hand in one piece, so nothing need be carried
            inverse, learnt, joining = np.zeros((0, 0)), learnt[:0], support
        else:
            columns = self._columns(first, joining, support, fit)
        if columns is None:
            return inverse_on(inverse, learnt, support, np.full(len(support), self._typical))
        places = np.searchsorted(support, joining)
        own = columns[places, np.arange(len(joining))]
        diagonal = np.ones(len(support))
        diagonal[places] = np.where(own > LEVEL * self._typical, own, self._typical)
        return inverse_on(inverse, learnt, support, diagonal, columns if len(joining) else None)

    def _columns(
        self, beta: Floats, joining: Ints, support: Ints, fit: Fit | None
    ) -> Floats | None:
        """The columns of the Hessian of new coordinates, exact or by differences."""
        if len(support) > MANY:
            return None
        if len(joining) == 0:
            return np.zeros((len(support), 0))
        exact = self.oracle.products(beta, joining, support)
        if exact is not None:
            return exact
        if len(joining) > FEW:
            return None
        gradient = self.oracle.at(beta)[1] if fit is None else self._gradient_at(beta, fit)
        found = [hessian_column(self.oracle, beta, gradient, int(j))[support] for j in joining]
        return np.stack(found, axis=1)

    def _gradient_at(self, beta: Floats, fit: Fit) -> Floats:
        return fit.gradient if np.array_equal(fit.beta, beta) else self.oracle.at(beta)[1]

    @cached_property
    def _typical(self) -> float:
        """A typical curvature: that along the gradient where fits begin."""
        return curvature_along(self.oracle, self._begin, -self._first[1], self._first[1])

    def _falls(
        self, point: Point, coordinates: Ints, enough: float | None = None
    ) -> tuple[Floats, int]:
        """How far Q falls along single coordinates, and how many of the scores are exact."""
        fit = self._fit(point)
        lines = Lines(
            self.oracle, fit.beta, point.value, fit.gradient, self._typical, self._doubt.noise,
            self._floor, self.resolution(point),
        )  # fmt: skip
        least = 0.0 if self._curvature is None else self._curvature[0][coordinates]
        return lines.falls(coordinates, np.broadcast_to(least, len(coordinates)), enough)

    def _fall(self, point: Point, block: Ints) -> float:
        """How far Q falls when the coordinates of a block are optimised, the others held."""
        base, order = self._fit(point).beta, np.sort(block)
        evaluate = Watched(self.oracle.on(order, base), self._doubt.noise, self._floor)
        found = self._descend(evaluate, base[order], self._inverse(order, None, base))
        return max(point.value - found.place.value, 0.0)


def _check_count(n_candidates: int, dim: int) -> int:
    count = check_integer(n_candidates, "n_candidates", low=0)
    if count > dim:
        raise ValueError(f"n_candidates={count} is more than there are coordinates, dim={dim}")
    return count
