"""Any smooth convex function as an objective: what it does not say is worked out.

Fits are quasi-Newton on the coordinates of the support. The inverse Hessian starts from second
derivatives where they are given, from differences of gradients where not, and is handed on from fit
to fit. Nothing is known about what is inside, so a fit costs whole evaluations.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from forback.core.blocks import Blocks
from forback.core.features import Features
from forback.core.objective import Objective, ObjectiveError, Scores
from forback.core.point import Point
from forback.core.status import Status
from forback.core.tolerances import NEGLIGIBLE, RULED_OUT_RTOL
from forback.core.types import Floats, Ints
from forback.core.units import Units, exponent
from forback.objectives.function.curvature import or_typical
from forback.objectives.function.fit import FunctionCache, FunctionFit
from forback.objectives.function.lines import coordinate_decreases, curvatures
from forback.objectives.function.oracles import (
    CoordinateSearch,
    Oracle,
    first_evaluation,
)
from forback.solvers.convexity import SLOPE_FALL_RTOL, NotConvex
from forback.validation.arrays import check_curvature, check_vector
from forback.validation.scalars import check_integer, check_names, check_number

#: The accuracy of fits with second derivatives, and of those without.
SECOND_ORDER_TOL = 1e-10
FIRST_ORDER_TOL = 1e-6


class Function(Objective):
    """A function that an oracle answers for; `from_function` and `from_jax` make them.

    Parameters
    ----------
    oracle : Oracle
        What can be asked about the function.
    curvature : pair of numbers or arrays, optional
        A lower and an upper bound on the second derivative along each coordinate, anywhere.
    n_candidates : int, optional
        Coordinates from this one on are always in; by default all may be chosen.
    names : sequence of str, optional
        Names of the candidates.
    start : array of length dim, optional
        Where fits of what is always in begin; by default at zero.
    tol : float
        A fit ends when no |gradient| exceeds `tol` times the largest at `start` and no gain is in
        sight.
    max_iter : int
        Steps per fit.
    """

    def __init__(
        self,
        oracle: Oracle,
        curvature: Any = None,
        n_candidates: int | None = None,
        names: Sequence[str] | None = None,
        start: Any = None,
        tol: float = SECOND_ORDER_TOL,
        max_iter: int = 1000,
    ) -> None:
        self.oracle = oracle
        self.dim = dim = oracle.dim
        count = dim if n_candidates is None else n_candidates
        self.n_candidates = check_integer(count, "n_candidates", low=0)
        if self.n_candidates > dim:
            raise ValueError(f"n_candidates={count} is more than there are coordinates, dim={dim}")
        self.feature_names = check_names(names, self.n_candidates)
        self.tol = check_number(tol, "tol", low=0.0, open_low=True)
        self.max_iter = check_integer(max_iter, "max_iter", low=1)
        self._curvature = check_curvature(curvature, dim)
        begin = np.zeros(dim) if start is None else check_vector(start, dim, "start")
        first = first_evaluation(oracle, begin)
        self._fit = FunctionFit(oracle, begin, *first, self.tol, self.max_iter)

    @property
    def features(self) -> Features:
        """What the coordinates are called."""
        return Features(self.n_candidates, self.feature_names)

    # What the loop calls -----------------------------------------------------------------------

    def minimise(self, support: Ints, start: Point | None = None) -> Point:
        """Return beta-hat(F), the minimiser of Q over a support, warm-started at `start`.

        Parameters
        ----------
        support : int array
            Sorted coordinates.
        start : Point, optional
            Where to begin; of any support.

        Returns
        -------
        Point
            Its status is ``NO_MINIMISER`` where Q approaches its infimum far away, as a logistic
            loss of separable data does.
        """
        support = np.asarray(support, dtype=np.intp)
        if len(support) == 0:
            return self._at_zero
        return self._fit.patiently(lambda: self._minimised(support, start))

    def _minimised(self, support: Ints, start: Point | None) -> Point:
        found = None
        if start is not None:
            cache = self.own_cache(start, FunctionCache)
            found = self._fit.minimum(support, start.dense(self.dim), cache)
        if found is None:
            found = self._fit.minimum(support, self._fit.begin)
        if found is None:
            status = Status.INFINITE
            begin = self._fit.begin[support]
            return Point(support, begin, np.inf, note=status.note(), status=status)
        descent, gradient = found
        note = descent.status.note(max_iter=self.max_iter)
        if descent.status is Status.STUCK:
            note = f"{note} (is the gradient right? forback.testing.check_objective tells)"
        place = descent.place
        beta = place.dense(support, self.dim)
        cache = FunctionCache(self, beta, gradient, descent.inverse, support)
        return Point(support, place.coef, place.value, 0, cache, note, descent.status)

    def gradient(self, point: Point) -> Floats:
        """Return the gradient of Q at a point, over all coordinates.

        Parameters
        ----------
        point : Point

        Returns
        -------
        float array of length dim
        """
        return self._cache(point).gradient.copy()

    def decrease_if_added(self, point: Point, blocks: Blocks, *, only_best: bool = False) -> Scores:
        """Return how far Q falls when each block alone is optimised: the goodness of FoBa-obj.

        Parameters
        ----------
        point : Point
        blocks : Blocks
        only_best : bool
            Whether only scores that may be the largest of the blocks outside need be exact; the
            others may be upper bounds that miss the largest.

        Returns
        -------
        Scores
        """
        patiently = self._fit.patiently
        if not blocks.are_single:
            return patiently(lambda: self._block_decreases(point, blocks))
        scores = self._best_decreases if only_best else self._line_decreases
        return patiently(lambda: scores(point, blocks.coordinates))

    def _block_decreases(self, point: Point, blocks: Blocks) -> Scores:
        """Decreases when the coordinates of each block are optimised, the others held."""
        base = self._cache(point).beta
        values = [self._fit.minimum_beside(np.sort(block), base) for block in blocks]
        return Scores.exact(np.maximum(point.value - np.array(values), 0.0))

    def _best_decreases(self, point: Point, coordinates: Ints) -> Scores:
        """Decreases, exact wherever they may be the largest outside the support."""
        slopes = self._cache(point).gradient[coordinates]
        slopes[np.isin(coordinates, point.support)] = 0.0
        upper = np.full(len(coordinates), np.inf)
        best_so_far = 0.0
        if self._curvature is not None:
            low, high = (bound[coordinates] for bound in self._curvature)
            with np.errstate(divide="ignore", invalid="ignore"):
                upper = 0.5 * slopes**2 / low
                best_so_far = float(np.max(0.5 * slopes**2 / high, initial=0.0))
        upper[slopes == 0.0] = 0.0
        left = np.flatnonzero((upper >= (1.0 - RULED_OUT_RTOL) * best_so_far) & (slopes != 0.0))
        # The steepest first: what they reach rules others out sooner.
        left = left[np.argsort(-np.abs(slopes[left]), kind="stable")]
        upper[left], n_exact = self._line_decreases(point, coordinates[left], best_so_far)
        return Scores(upper, n_exact)

    def promise(self, point: Point, blocks: Blocks) -> Floats:
        """Return half of slope^2 / curvature, summed over the coordinates of each block.

        Parameters
        ----------
        point : Point
        blocks : Blocks

        Returns
        -------
        float array
            By upper bounds of the curvature where they were given; else it is taken to be the same
            everywhere.
        """
        slopes = self._cache(point).gradient
        high = self._curvature[1] if self._curvature else np.zeros(self.dim)
        bends = or_typical(np.where(np.isfinite(high), high, 0.0), self._fit.typical)
        return blocks.sums(0.5 * slopes * slopes / bends)

    def increase_if_removed(
        self, point: Point, blocks: Blocks, *, below: float | None = None
    ) -> Scores:
        """Return how far Q rises when each block is set to zero without a refit: the badness.

        Parameters
        ----------
        point : Point
        blocks : Blocks
            Blocks inside the support.
        below : float, optional
            Makes no difference: all scores are exact.

        Returns
        -------
        Scores
        """
        increase = self.oracle.without(point.dense(self.dim), [*blocks]) - point.value
        if point.status is Status.CONVERGED:
            worst = float(increase.min(initial=0.0))
            self._fit.patiently(lambda: self._check_increase(point, worst))
        return Scores.exact(increase)

    def _check_increase(self, point: Point, worst: float) -> None:
        """Raise if setting a coordinate to zero lowers Q at a minimiser by more than noise can."""
        noise = len(point.support) * self._fit.seen_noise**2 / self._fit.typical
        if worst < -SLOPE_FALL_RTOL * max(self._fit.unit, abs(point.value)) - noise:
            raise NotConvex(
                f"the function is not convex: at its minimum over {len(point.support)} "
                f"coordinates, setting one to zero lowers it by {-worst:.3g}"
            )

    def value_and_gradient(self, beta: Floats) -> tuple[float, Floats]:
        """Return Q and its gradient at any dense vector.

        Parameters
        ----------
        beta : float array of length dim

        Returns
        -------
        value : float
        gradient : float array of length dim
        """
        return self.oracle.at(np.asarray(beta, dtype=np.float64))

    def resolution(self, point: Point) -> float:
        """Return the change of Q at a point that may be rounding.

        Parameters
        ----------
        point : Point

        Returns
        -------
        float
        """
        return NEGLIGIBLE * max(self._fit.unit, abs(point.value))

    def rescaled(self) -> tuple[Function, Units] | None:
        """Return Q times a power of two, if it is too small, or too large, to be squared.

        Returns
        -------
        tuple of Function and Units, or None
        """
        power = exponent(float(np.abs(self._fit.first_gradient).max()))
        power = min(power, sys.float_info.max_exp - 1)  # beyond, the factor is infinite
        if power == 0:
            return None
        oracle = copy(self.oracle)
        oracle.factor = 2.0**power
        bounds = self._curvature and tuple(oracle.factor * part for part in self._curvature)
        settings = (self.feature_names, self._fit.begin, self.tol, self.max_iter)
        other = Function(oracle, bounds, self.n_candidates, *settings)
        return other, Units(-power, np.zeros(self.dim, dtype=np.intp))

    @cached_property
    def _at_zero(self) -> Point:
        """Where nothing is in."""
        support = np.zeros(0, dtype=np.intp)
        beta = np.zeros(self.dim)
        value, gradient = self.oracle.at(beta)
        cache = FunctionCache(self, beta, gradient, np.zeros((0, 0)), support)
        return Point(support, beta[support], value, 0, cache)

    # Pieces ------------------------------------------------------------------------------------

    def _cache(self, point: Point) -> FunctionCache:
        """What the point carries along, worked out again if it has lost that."""
        if not np.isfinite(point.value):
            raise ObjectiveError(
                "the function is infinite where only coordinates "
                f"{point.support.tolist()} are in: what it is infinite without must be always in"
            )
        if (cache := self.own_cache(point, FunctionCache)) is not None:
            return cache
        beta = point.dense(self.dim)
        gradient = self.oracle.at(beta)[1]
        return FunctionCache(self, beta, gradient, np.zeros((0, 0)), point.support[:0])

    def _line_decreases(
        self, point: Point, coordinates: Ints, best_so_far: float | None = None
    ) -> Scores:
        """How far Q falls along single coordinates."""
        cache = self._cache(point)
        slopes = cache.gradient[coordinates]
        steps = -slopes / curvatures(self._fit, cache.beta, coordinates)
        least = self._curvature[0][coordinates] if self._curvature else np.zeros(len(coordinates))
        limits = (least, self.resolution(point), self._fit.noise)
        search = CoordinateSearch(cache.beta, point.value, coordinates, slopes, steps, *limits)
        return coordinate_decreases(self._fit, search, best_so_far)
