"""Fits of a generalised linear model on a support: the data, where a fit starts, how it ends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from forback.numerics import TINY, Minimum, State, newton, steepness
from forback.objectives.blocks import Block
from forback.objectives.designs import Design
from forback.objectives.losses import Loss, code_of
from forback.objectives.restricted import Response, Restricted, Rows
from forback.protocols import NEGLIGIBLE, Floats, Ints, Point


@dataclass(frozen=True, slots=True)
class Fit:
    """What a point of a generalised linear model carries along."""

    block: Block  #: the columns of its support
    rows: Rows  #: eta and the like, over all rows
    hessian: Floats | None  #: one that was computed on the way, close to the end


class LinearFits:
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
        self.loss = loss
        self.design = design
        self.y = y
        self.offset = offset
        self.n_candidates = design.shape[1]
        self.fit_intercept = fit_intercept
        self.dim = self.n_candidates + fit_intercept
        self.ridge = np.concatenate([ridge, np.zeros(int(fit_intercept))])
        share = weights / weights.max()
        self.weights = share / share.sum()
        # Whole weights count repeated rows; any others say how much a row matters.
        repeats = weights.max() < 2**53 and bool(np.all(weights == np.floor(weights)))
        self.n_samples = float(weights.sum() if repeats else len(weights))
        self.tol = tol
        self.max_iter = max_iter
        self._response = Response(loss, code_of(loss), y, self.weights)

    def minimise(self, support: Ints, start: Point | None = None) -> Point:
        """beta-hat(support) by Newton's method on the n x |support| block."""
        fit = self._fit(start)
        known = None if start is None or fit is None else (start.support, fit.block)
        problem = self._restricted(support, self.offset, known)
        state, guess = self._start(problem, support, start)
        scale, largest = self._extent(support, problem.block)
        problem = replace(problem, largest=largest)
        if problem.is_tall:
            state, guess = self._ahead(problem, state, scale, guess)
        minimum = self._newton(problem, state, scale, guess)
        state = minimum.state
        fit = Fit(problem.block, self._everywhere(problem, state), minimum.hessian)
        return Point(support, state.coef, state.value, cache=fit, note=minimum.note)

    # Facts about the data, computed once ------------------------------------------------------

    @property
    def _unit(self) -> float:
        """A size of Q that is never rounding: 1, but for a real response, which has any scale."""
        return 0.0 if self.loss.domain == "real" else 1.0

    @cached_property
    def _nowhere(self) -> tuple[float, Rows]:
        """Mean loss and derivatives where no column is in, not even the intercept."""
        return self._response.at(self.offset)

    @cached_property
    def _always(self) -> State:
        """The fit before any feature is in: the intercept, or nothing."""
        support = np.arange(self.n_candidates, self.dim)
        problem = self._restricted(support, self.offset)
        # An intercept first of all makes up for the offset.
        starts = [problem.at(np.full(len(support), a)) for a in (0.0, -self.weights @ self.offset)]
        state = min(starts, key=lambda start: start.value)
        for _ in range(2):  # again, because the first fit improves the scale it is judged by
            steepness = self._steepness(self._everywhere(problem, state).eta)
            scale, _ = problem.block.extent(np.arange(len(support)), problem.block.take(steepness))
            state = self._newton(problem, state, scale).state
        if not np.isfinite(state.value):
            raise ValueError(
                f"y or offset is too large: the {self.loss.name} loss overflows before any feature "
                "is in; divide y by a constant or shift the offset"
            )
        return replace(state, cache=self._everywhere(problem, state))

    @cached_property
    def _spread(self) -> float:
        """The mean loss at the mean of y."""
        centre = np.full_like(self.y, self.weights @ self.y)
        with np.errstate(over="ignore"):
            return float(self.weights @ self.loss.value(centre, self.y))

    @cached_property
    def _residual_scale(self) -> Floats:
        return self._steepness(self._always.cache.eta)

    def gradient_scale(self, coordinates: Ints, block: Block | None = None) -> Floats:
        """The weighted mean of |x_ij loss'_i| before any feature is in: what `tol` refers to."""
        return np.asarray(self._extent(coordinates, block)[0])

    def _extent(self, coordinates: Ints, block: Block | None = None) -> Floats:
        """The gradient scale of some coordinates and their largest entry: data, so remembered.

        `block` holds them, if it is at hand.
        """
        unknown = np.flatnonzero(np.isnan(self._extents[0, coordinates]))
        if len(unknown):
            if block is None:
                block = self._block(coordinates)
            extent = block.extent(unknown, block.take(self._residual_scale))
            self._extents[:, coordinates[unknown]] = extent
        return self._extents[:, coordinates]

    @cached_property
    def _extents(self) -> Floats:
        return np.full((2, self.dim), np.nan)

    # Pieces ----------------------------------------------------------------------------------

    def _steepness(self, eta: Floats) -> Floats:
        slopes = np.abs(self.loss.d1(eta, self.y))
        # The second term keeps a column whose rows happen to fit exactly from having scale zero.
        return np.asarray(self.weights * (slopes + 1e-6 * (self.weights @ slopes)))

    def _block(self, support: Ints, known: tuple[Ints, Block] | None = None) -> Block:
        intercept = bool(len(support)) and support[-1] == self.n_candidates
        columns = support[: len(support) - intercept]
        return self.design.block(columns, intercept=intercept, known=known)

    def _restricted(
        self, support: Ints, base: Floats, known: tuple[Ints, Block] | None = None
    ) -> Restricted:
        block = self._block(support, known)
        response, base = self._response.of(block), block.take(base)
        elsewhere = 0.0 if block.rows is None else self._nowhere[0] - response.at(base)[0]
        return Restricted(response, block, base, self.ridge[support], elsewhere)

    def _everywhere(self, problem: Restricted, state: State) -> Rows:
        """Eta and the like of a fit, over all rows."""
        own: Rows = state.cache
        if problem.block.rows is None:
            return own
        full = [whole.copy() for whole in self._nowhere[1]]
        for whole, part in zip(full, own, strict=True):
            whole[problem.block.rows] = part
        return Rows(*full)

    def _start(
        self, problem: Restricted, support: Ints, start: Point | None
    ) -> tuple[State, Floats | None]:
        """A warm start with a Hessian to try, unless starting from the intercept is better.

        It is where one of two nearly equal columns with huge coefficients has just left.
        """
        if start is not None and len(support):
            warm, guess = self._warm(problem, support, start)
            if warm.value <= self._always.value:
                return warm, guess
        cold = np.zeros(len(support))
        cold[np.searchsorted(support, self.n_candidates) :] = self._always.coef
        return problem.at(cold), None

    def _warm(
        self, problem: Restricted, support: Ints, start: Point
    ) -> tuple[State, Floats | None]:
        place, old = overlap(support, start.support)
        coef = np.zeros(len(support))
        coef[place] = start.coef[old]
        fit = self._fit(start)
        if fit is None or not len(old):
            return problem.at(coef), None
        if len(old) < len(start.coef):
            state = problem.at(coef)
        else:  # nothing left, and what came has coefficient zero: eta is what it was
            loss = start.value - 0.5 * float(self.ridge[start.support] @ start.coef**2)
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

    def _newton(
        self, problem: Restricted, state: State, scale: Floats, guess: Floats | None = None
    ) -> Minimum:
        # Where Q has no unit, a perfect fit still needs something that rounding is small against.
        unit, left = self._unit or NEGLIGIBLE * self._spread, self.max_iter
        if problem.is_small:
            state, hessian, steps, done = problem.sprint(
                state, scale, unit=unit, tol=self.tol, max_iter=left, guess=guess
            )
            if done:
                return Minimum(state, "", hessian)
            left, guess = left - steps, None if steps else guess
        return newton(problem, state, scale, unit=unit, tol=self.tol, max_iter=left, guess=guess)

    def _fit(self, point: Point | None) -> Fit | None:
        return point.cache if point is not None and isinstance(point.cache, Fit) else None

    def _rows(self, point: Point) -> Rows:
        fit = self._fit(point)
        return self._response.at(self._eta(point))[1] if fit is None else fit.rows

    def _eta(self, point: Point) -> Floats:
        fit = self._fit(point)
        if fit is not None:
            return fit.rows.eta
        block, eta = self._block(point.support), self.offset.copy()
        eta[slice(None) if block.rows is None else block.rows] += block.predict(point.coef)
        return eta


def overlap(support: Ints, other: Ints) -> tuple[Ints, Ints]:
    """Where the coordinates that two supports share are found in the one and in the other."""
    place = np.searchsorted(support, other)
    shared = np.flatnonzero(support[np.minimum(place, len(support) - 1)] == other)
    return place[shared], shared
