"""Fits of a generalised linear model on a support: the data, where a fit starts, how it ends."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from forback.core.objective import Objective
from forback.core.point import Point
from forback.core.tolerances import NEGLIGIBLE
from forback.core.types import Floats, Ints
from forback.designs.design import Block, Design, Known
from forback.objectives.linear.losses import (
    NEVER_NEGATIVE,
    RESOLVED,
    Gamma,
    Huber,
    Loss,
    Poisson,
    Squared,
    code_of,
)
from forback.objectives.linear.problem import EPS, ROUNDINGS, Response, Restricted, Rows, Sprint
from forback.solvers.kernels.vectors import overlap
from forback.solvers.linalg import TINY, ridge_penalty
from forback.solvers.newton import Minimum, State, newton, steepness
from forback.validation.arrays import share_out

#: A threshold below this share of a typical residual makes a corner of the loss.
STIFF = 1e-2

#: A larger y has squares that overflow.
LARGEST = 2.0**500

#: No part of a Hessian, at no places.
NOTHING = np.empty((0, 0)), np.zeros(0, np.intp)


@dataclass(frozen=True, slots=True)
class Fit:
    """What a point of a generalised linear model carries along."""

    owner: Objective  #: whose point it is: nobody else can use it
    block: Block  #: the columns of its support
    rows: Rows  #: eta and the like, over all rows
    hessian: Floats | None  #: one that was computed on the way, close to the end
    carried: Any = None  #: what an objective wants to carry from fit to fit


class LinearFits(Objective):
    """Loss, design, ridge, intercept, offset and weights, and how Q is minimised on a support."""

    def _assemble(
        self,
        loss: Loss,
        design: Design,
        y: Floats,
        *,
        ridge: Floats,
        fit_intercept: bool,
        offset: Floats,
        weights: Floats,
        tol: float,
        max_iter: int,
    ) -> None:
        self.weights, self.n_samples = share_out(weights)
        if isinstance(loss, Huber):
            size = float(self.weights @ np.abs(y - offset))
            loss = replace(loss, typical=size if 0.0 < size < np.inf else 1.0)
        if isinstance(loss, Squared) and max(np.abs(y).max(), np.abs(offset).max()) > LARGEST:
            raise ValueError(
                f"y and offset must be below {LARGEST:.0e} for the squared loss, whose value would "
                "overflow; divide them by a constant"
            )
        self.loss = loss
        self.infimum = 0.0 if isinstance(loss, NEVER_NEGATIVE) else -np.inf
        self.design = design
        self.y = y
        self.offset = offset
        self.n_candidates = design.shape[1]
        self.fit_intercept = fit_intercept
        self.dim = self.n_candidates + fit_intercept
        self.ridge = np.concatenate([ridge, np.zeros(int(fit_intercept))])
        self.tol = tol
        self.max_iter = max_iter
        self._response = Response(loss, code_of(loss), y, self.weights)

    def minimise(self, support: Ints, start: Point | None = None) -> Point:
        """beta-hat(support) by Newton's method on the n x |support| block."""
        known = self._known(support, start)
        block = self._block(support, known)
        scale, largest = self._extent(support, block)
        problem = self._restricted(support, block, largest)
        minimum = self._warm_sprint(problem, start, known, scale)
        if minimum is None:
            minimum = self._with_care(problem, support, start, known, scale)
        state = minimum.state
        rows, carried = self._everywhere(problem, state), self._carried(self._fit(start))
        if self._is_far and len(support) and support[-1] == self.n_candidates:
            rows = rows.levelled()
        fit = Fit(self, block, rows, minimum.hessian, carried)
        note = minimum.status.note(max_iter=self.max_iter)
        return Point(support, state.coef, state.value, 0, fit, note, minimum.status)

    # Facts about the data, computed once ------------------------------------------------------

    @cached_property
    def _is_far(self) -> bool:
        """Whether there is an intercept, and columns are so far from zero that it hides them."""
        return self.fit_intercept and self.design.is_far_from_zero

    @cached_property
    def _unit(self) -> float:
        """A size of Q that is never rounding: 1, but for responses that have a scale of their own.

        A real one has any, counts the mean: with an intercept, Q goes with it.
        """
        if self.loss.domain == "real":
            return 0.0
        return min(1.0, self._mean or 1.0) if isinstance(self.loss, Poisson) else 1.0

    @property
    def _mean(self) -> float:
        return float(self.weights @ self.y)

    @cached_property
    def _nowhere(self) -> tuple[float, Rows]:
        """Mean loss and derivatives where no column is in, not even the intercept."""
        return self._response.at(self.offset)

    @cached_property
    def _always(self) -> tuple[State, Floats]:
        """The fit before any feature is in, the intercept or nothing, and its steepness by rows."""
        support = np.arange(self.n_candidates, self.dim)
        problem = self._restricted(support, self._block(support))
        # An intercept first of all makes up for the offset.
        log_link = isinstance(self.loss, Poisson | Gamma) and self._mean > 0.0
        level = math.log(self._mean) if log_link else 0.0
        guesses = (0.0, level - self.weights @ self.offset)[: 1 + len(support)]
        starts = [problem.at(np.full(len(support), guess)) for guess in guesses]
        state = min(starts, key=lambda start: start.value)
        # Twice, because the first fit improves the scale that the second is judged by.
        for _ in support.repeat(2):
            steep = self._steepness(self._everywhere(problem, state).eta)
            scale, _ = problem.block.extent(np.arange(len(support)), problem.block.take(steep))
            state = self._newton(problem, state, scale).state
        if not np.isfinite(state.value):
            raise ValueError(
                f"the {self.loss.name} loss is not finite before any feature is in: y or offset is "
                "too large, or the loss is not defined at eta = 0 (give an offset at which it is)"
            )
        steep = self._steepness(self._everywhere(problem, state).eta)
        return replace(state, cache=None), steep

    @cached_property
    def _spread(self) -> float:
        """The mean loss at the mean of y."""
        centre = np.full_like(self.y, self.weights @ self.y)
        with np.errstate(over="ignore"):
            return float(self.weights @ self.loss.value(centre, self.y))

    def gradient_scale(self, coordinates: Ints, block: Block | None = None) -> Floats:
        """The weighted mean of |x_ij loss'_i| before any feature is in: what `tol` refers to."""
        return self._extent(coordinates, block)[0]

    def _extent(self, coordinates: Ints, block: Block | None = None) -> tuple[Floats, Floats]:
        """The gradient scale of some coordinates and their largest entry: data, so remembered.

        `block` holds them, if it is at hand.
        """
        scales, largest = self._extents
        found = scales[coordinates]
        unknown = np.flatnonzero(np.isnan(found))
        if len(unknown):
            if block is None:
                block = self._block(coordinates)
            new, fresh = coordinates[unknown], block.take(self._always[1])
            largest[new], scales[new] = block.extent(unknown, fresh)[::-1]  # scales tell
            found = scales[coordinates]
        return found, largest[coordinates]

    @cached_property
    def _extents(self) -> tuple[Floats, Floats]:
        return np.full(self.dim, np.nan), np.full(self.dim, np.nan)

    # Pieces ----------------------------------------------------------------------------------

    def _steepness(self, eta: Floats) -> Floats:
        slopes = np.abs(self.loss.d1(eta, self.y))
        # The second term keeps a column whose rows happen to fit exactly from having scale zero.
        return np.asarray(self.weights * (slopes + 1e-6 * (self.weights @ slopes)))

    def _known(self, support: Ints, start: Point | None) -> Known | None:
        fit = self._fit(start)
        if start is None or fit is None or not len(support):
            return None
        return Known(fit.block, *overlap(support, start.support))

    def _block(self, support: Ints, known: Known | None = None) -> Block:
        intercept = bool(len(support)) and support[-1] == self.n_candidates
        columns = support[: len(support) - intercept]
        return self.design.block(columns, intercept=intercept, known=known)

    def _restricted(self, support: Ints, block: Block, largest: Floats | None = None) -> Restricted:
        response, base = self._response.of(block), block.take(self.offset)
        elsewhere = 0.0 if block.rows is None else self._nowhere[0] - response.at(base)[0]
        return Restricted(response, block, base, self.ridge[support], elsewhere, largest)

    def _everywhere(self, problem: Restricted, state: State) -> Rows:
        """Eta and the like of a fit, over all rows."""
        own: Rows = state.cache
        if problem.block.rows is None:
            return own
        full = [whole.copy() for whole in self._nowhere[1]]
        for whole, part in zip(full, own, strict=True):
            whole[problem.block.rows] = part
        return Rows(*full)

    def _with_care(
        self,
        problem: Restricted,
        support: Ints,
        start: Point | None,
        known: Known | None,
        scale: Floats,
    ) -> Minimum:
        """The fit by Newton's method, whatever its size and however hard it is."""
        state, guess = self._start(problem, support, start, known)
        if self._is_stiff:
            state, guess = self._relaxed(problem, state, scale), None
        if problem.is_tall:
            state, guess = self._ahead(problem, state, scale, guess)
        found = self._newton(problem, state, scale, guess)
        if start is None or not found.status.is_unfinished:
            return found
        # A start may be far away, as it is where a row of 1e7 was fitted at any price.
        again = self._newton(problem, self._start(problem, support, None, None)[0], scale)
        return min(found, again, key=lambda minimum: minimum.state.value)

    def _start(
        self, problem: Restricted, support: Ints, start: Point | None, known: Known | None
    ) -> tuple[State, Floats | None]:
        """A warm start with a Hessian to try, unless starting from the intercept is better.

        It is where one of two nearly equal columns with huge coefficients has just left.
        """
        if start is not None and len(support):
            warm, guess = self._warm(problem, support, start, known)
            if warm.value <= self._always[0].value:
                return warm, guess
        cold = np.zeros(len(support))
        cold[np.searchsorted(support, self.n_candidates) :] = self._always[0].coef
        return problem.at(cold), None

    def _warm(
        self, problem: Restricted, support: Ints, start: Point, known: Known | None
    ) -> tuple[State, Floats | None]:
        place, old = overlap(support, start.support) if known is None else known[1:]
        coef = np.zeros(len(support))
        coef[place] = start.coef[old]
        fit = self._fit(start)
        if fit is None or not len(old):
            return problem.at(coef), None
        if len(old) < len(start.coef):
            state = problem.at(coef)
        else:  # nothing left, and what came has coefficient zero: eta is what it was
            loss = start.value - ridge_penalty(self.ridge[start.support], start.coef)
            rows = fit.rows.of(problem.block)
            state = problem.state(coef, loss - problem.elsewhere, rows)
        if fit.hessian is None:
            return state, None
        return state, problem.bordered(fit.hessian[old[:, None], old], place, state)

    def _ahead(
        self, problem: Restricted, state: State, scale: Floats, guess: Floats | None
    ) -> tuple[State, Floats | None]:
        """A better start from some of the rows: most of the way for a fraction of the price.

        But not where the way is shorter than what so few rows can tell.
        """
        noise = (8.0 / len(problem.base)) ** 0.5
        if steepness(state, np.maximum(scale, TINY)) < 5.0 * noise:
            return state, guess
        few = problem.thinned()
        enough = {"unit": 0.01 * noise**2 / NEGLIGIBLE, "tol": 0.1 * noise, "max_iter": 20}
        found = newton(few, few.at(state.coef), scale, guess=guess, **enough)
        ahead = problem.at(found.state.coef)
        return (ahead, found.hessian) if ahead.value < state.value else (state, guess)

    @cached_property
    def _is_stiff(self) -> bool:
        """Whether the loss has corners, as seen from where nothing is in."""
        return isinstance(self.loss, Huber) and self.loss.threshold < STIFF * self.loss.typical

    def _relaxed(self, problem: Restricted, state: State, scale: Floats) -> State:
        """A better start for a loss with corners, from fits of the loss with the corners rounded.

        Newton's method wants most residuals on the curved part; so the threshold starts at their
        size and falls tenfold from fit to fit.
        """
        loss, weights = problem.response.loss, problem.response.weights
        assert isinstance(loss, Huber)
        threshold = np.inf
        while True:
            misfit = float(weights @ np.abs(state.cache.eta - problem.response.y))
            threshold = 0.1 * min(threshold, misfit)
            if threshold <= max(3.0 * loss.threshold, RESOLVED * loss.typical):
                return problem.at(state.coef)
            rounded = replace(loss, threshold=threshold)
            response = replace(problem.response, loss=rounded, code=code_of(rounded))
            easier = replace(problem, response=response, elsewhere=0.0)
            sizes = scale * (threshold / loss.threshold)
            state = newton(
                easier, easier.at(state.coef), sizes, unit=0.0, tol=1e-3, max_iter=20
            ).state

    def _newton(
        self, problem: Restricted, state: State, scale: Floats, guess: Floats | None = None
    ) -> Minimum:
        if problem.is_small and guess is None:
            start = Sprint(state.coef, state.cache.eta, np.zeros(len(scale)), *NOTHING)
            if minimum := self._sprint(problem, start, scale):
                return minimum
        return newton(
            problem, state, scale,
            unit=self._least, tol=self.tol, max_iter=self.max_iter, guess=guess,
        )  # fmt: skip

    def _sprint(
        self, problem: Restricted, start: Sprint, scale: Floats, ceiling: float = np.inf
    ) -> Minimum | None:
        return problem.sprint(
            start, scale,
            ceiling=ceiling, unit=self._least, tol=self.tol, max_iter=self.max_iter,
        )  # fmt: skip

    def _warm_sprint(
        self, problem: Restricted, start: Point | None, known: Known | None, scale: Floats
    ) -> Minimum | None:
        """A small fit from a warm start by one call, if all goes well."""
        fit = self._fit(start)
        if start is None or fit is None or known is None or not problem.is_small:
            return None
        if self._is_stiff:
            return None
        place, old, m = known.place, known.old, len(problem.ridge)
        coef, hessian = np.zeros(m), fit.hessian
        coef[place] = start.coef[old]
        if len(old) < len(start.coef):
            base, direction = problem.base, coef
        else:  # nothing left, and what came has coefficient zero: eta is what it was
            base, direction = problem.block.take(fit.rows.eta), np.zeros(m)
        known_part = NOTHING if hessian is None else (hessian[old[:, None], old], place)
        start_here = Sprint(coef, base, direction, *known_part)
        return self._sprint(problem, start_here, scale, ceiling=self._always[0].value)

    @property
    def _least(self) -> float:
        # Where Q has no unit, a perfect fit still needs something that rounding is small against.
        return self._unit or NEGLIGIBLE * self._spread

    def _carried(self, fit: Fit | None) -> Any:
        """What a fit that started from this one carries."""
        return None if fit is None else fit.carried

    def _fit(self, point: Point | None) -> Fit | None:
        return self.own_cache(point, Fit)

    def _rows(self, point: Point) -> Rows:
        fit = self._fit(point)
        if fit is not None:
            return fit.rows
        rows = self._response.at(self._eta_again(point))[1]
        if not self._is_far or not len(point.support) or point.support[-1] < self.n_candidates:
            return rows
        # The intercept is rounded by units of what columns and coefficients make together.
        level, largest = rows.levelled(), self._extent(point.support)[1]
        rounding = 16.0 * ROUNDINGS * EPS * float(largest @ np.abs(point.coef))
        return level if abs(level.eta[0] - rows.eta[0]) <= rounding else rows

    def _eta(self, point: Point) -> Floats:
        return self._rows(point).eta

    def _eta_again(self, point: Point) -> Floats:
        """Eta of a point that has lost it, from centred columns where these are far from zero."""
        block, eta = self._block(point.support), self.offset.copy()
        if self._is_far and block.rows is None:
            mean = block.back_project(self.weights)
            return eta + (block.toarray() - mean) @ point.coef + float(mean @ point.coef)
        eta[slice(None) if block.rows is None else block.rows] += block.predict(point.coef)
        return eta
