"""Fits of a generalised linear model on a support by Newton's method: where one starts and ends."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from forback.core.objective import Objective
from forback.core.point import Point
from forback.core.tolerances import NEGLIGIBLE, SMALLEST_DIVISOR
from forback.core.types import Floats, Ints
from forback.designs.design import Block, PreviousBlock
from forback.objectives.linear.data import LinearData
from forback.objectives.linear.kernels.newton import Ending
from forback.objectives.linear.losses import RESOLVED, Gamma, Huber, Poisson, code_of
from forback.objectives.linear.problem import NO_PLACES, Restricted
from forback.objectives.linear.rows import ETA_RTOL, Rows
from forback.solvers.kernels.vectors import overlap
from forback.solvers.linalg import ridge_penalty
from forback.solvers.newton import Minimum, State, newton, steepness

#: A fit of n rows and m columns is small if n m^2 is at most this: calls would take most of it.
MAX_SMALL_WORK = 1 << 19

#: From this many rows on, a sparse column that joins a fit first gets a step of its own.
MIN_ROWS_TO_STEP_ALONG = 1 << 14

#: Huber's threshold, as a fraction of a typical residual, below which the loss has corners.
STIFF_THRESHOLD = 1e-2


@dataclass(frozen=True, slots=True)
class GlmCache:
    """What a point of a generalised linear model carries along.

    Attributes
    ----------
    owner : Objective
    block : Block
        The columns of its support.
    rows : Rows
        Eta and the like, over all rows.
    hessian : Floats | None
        The last Hessian computed on the way, close to the minimum.
    run : dict[str, Any]
        What slopes and exchanges keep from fit to fit.
    """

    owner: Objective
    block: Block
    rows: Rows
    hessian: Floats | None
    run: dict[str, Any]


class Task(NamedTuple):
    """A fit to be made: the problem, what its gradient is measured by, and what a start tells.

    Attributes
    ----------
    support : Ints
    problem : Restricted
    scale : Floats
    start : Point | None
    cache : GlmCache | None
        The cache of the start.
    coef : Floats
        The coefficients of the start on this support.
    rows : Rows | None
        Eta and the like of the start, if nothing left: what came has coefficient zero.
    hessian : Floats | None
        A part of the start's Hessian, if it has one.
    places : Ints
        Places in the support of the coordinates of the start, and of this part.
    """

    support: Ints
    problem: Restricted
    scale: Floats
    start: Point | None
    cache: GlmCache | None
    coef: Floats
    rows: Rows | None
    hessian: Floats | None
    places: Ints


class NewtonFit:
    """Newton's method on the n x |support| block; small fits in one compiled call.

    It always works, so quicker ways for some losses are built on it.
    """

    def __init__(self, data: LinearData, *, max_small_work: int = MAX_SMALL_WORK) -> None:
        self.data = data
        self._max_small_work = max_small_work
        # The scale of the gradient and the largest entry of each coordinate; NaN: not known yet.
        self._scales = np.full(data.dim, np.nan)
        self._largest = np.empty(data.dim)

    def minimise(self, owner: Objective, support: Ints, start: Point | None) -> Point:
        """Return the minimiser on a support."""
        task = self.task(owner, support, start)
        return self.point(owner, task, self._in_one_call(task) or self.by_steps(task))

    def task(self, owner: Objective, support: Ints, start: Point | None) -> Task:
        """Prepare a fit: its columns, those of the start taken over, and its scale."""
        cache = owner.own_cache(start, GlmCache)
        coef = np.zeros(len(support))
        places = old = NO_PLACES
        if start is not None:
            places, old = overlap(support, start.support)
            coef[places] = start.coef[old]
        previous = rows = hessian = None
        if start is not None and cache is not None and len(old):
            previous = PreviousBlock(cache.block, places, old)
            rows = cache.rows if len(old) == len(start.coef) else None
            hessian = None if cache.hessian is None else cache.hessian[old[:, None], old]
        block = self.data.block(support, previous)
        scale, largest = self.extent(support, block)
        problem = self.data.restricted(support, block, largest)
        return Task(support, problem, scale, start, cache, coef, rows, hessian, places)

    def point(self, owner: Objective, task: Task, minimum: Minimum) -> Point:
        """Return the point where a fit ended, with what later fits may use."""
        state = minimum.state
        rows = self.data.on_all_rows(task.problem, state)
        if self.data.is_far_from_zero and self.data.has_intercept(task.support):
            rows = rows.levelled()
        run = {} if task.cache is None else task.cache.run
        cache = GlmCache(owner, task.problem.block, rows, minimum.hessian, run)
        note = minimum.status.note(max_iter=self.data.max_iter)
        return Point(task.support, state.coef, state.value, 0, cache, note, minimum.status)

    # What Q is measured by ---------------------------------------------------------------------

    @cached_property
    def baseline(self) -> tuple[State, Floats]:
        """The fit before any feature is in, the intercept or nothing, and its steepness by rows."""
        data = self.data
        support = np.arange(data.n_candidates, data.dim)
        problem = data.restricted(support)
        # An intercept first of all makes up for the offset.
        log_link = isinstance(data.loss, Poisson | Gamma) and data.mean_response > 0.0
        level = math.log(data.mean_response) if log_link else 0.0
        guesses = (0.0, level - data.weights @ data.offset)[: 1 + len(support)]
        starts = [problem.at(np.full(len(support), guess)) for guess in guesses]
        state = min(starts, key=lambda start: start.value)
        # Twice, because the first fit improves the scale that the second is judged by.
        for _ in support.repeat(2):
            steep = problem.block.take(self._steepness(problem, state))
            scale, _ = problem.block.extent(np.arange(len(support)), steep)
            state = self.solve(problem, state, scale).state
        if not np.isfinite(state.value):
            raise ValueError(
                f"the {data.loss.name} loss is not finite before any feature is in: y or offset is "
                "too large, or the loss is not defined at eta = 0 (give an offset at which it is)"
            )
        return replace(state, cache=None), self._steepness(problem, state)

    def _steepness(self, problem: Restricted, state: State) -> Floats:
        """How steep each row is."""
        data = self.data
        eta = data.on_all_rows(problem, state).eta
        slopes = np.abs(data.loss.d1(eta, data.y))
        # The second term keeps a column whose rows happen to fit exactly from having scale zero.
        return np.asarray(data.weights * (slopes + 1e-6 * (data.weights @ slopes)))

    def extent(self, coordinates: Ints, block: Block | None = None) -> tuple[Floats, Floats]:
        """Return the gradient scale of some coordinates and their largest entry.

        The scale is the weighted mean of |x_ij loss'_i| before any feature is in. Both are data,
        so they are remembered. `block` holds the coordinates, if it is at hand.
        """
        scales = self._scales[coordinates]
        if math.isnan(scales.sum()):  # then at least one is NaN
            unknown = np.isnan(scales)
            block = self.data.block(coordinates) if block is None else block
            found = block.extent(np.flatnonzero(unknown), block.take(self.baseline[1]))
            scales[unknown], self._largest[coordinates[unknown]] = found
            # Last of all, because another thread may be reading.
            self._scales[coordinates] = scales
        return scales, self._largest[coordinates]

    def rows(self, point: Point) -> Rows:
        """Return eta and the like at a point that has lost them."""
        data = self.data
        rows = data.response.at(self._eta(point))[1]
        if not data.is_far_from_zero or not data.has_intercept(point.support):
            return rows
        # The intercept is rounded by units of what columns and coefficients make together.
        level = rows.levelled()
        largest = self.extent(point.support)[1]
        rounding = 16.0 * ETA_RTOL * float(largest @ np.abs(point.coef))
        return level if abs(level.eta[0] - rows.eta[0]) <= rounding else rows

    def _eta(self, point: Point) -> Floats:
        """Eta, from centred columns where these are far from zero."""
        block = self.data.block(point.support)
        eta = self.data.offset.copy()
        if self.data.is_far_from_zero and block.rows is None:
            mean = block.back_project(self.data.weights)
            return eta + (block.toarray() - mean) @ point.coef + float(mean @ point.coef)
        eta[slice(None) if block.rows is None else block.rows] += block.predict(point.coef)
        return eta

    # How a fit goes ----------------------------------------------------------------------------

    def _in_one_call(self, task: Task) -> Minimum | None:
        """A small fit from a warm start by one compiled call, if all goes well."""
        problem = task.problem
        if task.cache is None or self._is_stiff or not problem.is_small(self._max_small_work):
            return None
        base = problem.base
        direction = task.coef
        if task.rows is not None:
            base = problem.block.take(task.rows.eta)
            direction = np.zeros(len(direction))
        return problem.small_newton(
            task.coef,
            base,
            direction,
            task.scale,
            self.ending,
            guess=task.hessian,
            places=task.places,
            ceiling=self.baseline[0].value,
        )

    def by_steps(self, task: Task) -> Minimum:
        """Fit by Newton's method, whatever the size of the problem and however hard it is."""
        problem = task.problem
        state, guess = self._start(task)
        if self._is_stiff:
            state = self._relaxed(problem, state, task.scale)
            guess = None
        if problem.is_tall:
            state, guess = self._from_subsample(problem, state, task.scale, guess)
        found = self.solve(problem, state, task.scale, guess)
        if task.start is None or not found.status.is_unfinished:
            return found
        # A start may be far away, as it is where a row of 1e7 was fitted at any price.
        again = self.solve(problem, self._cold(task), task.scale)
        return min(found, again, key=lambda minimum: minimum.state.value)

    def _start(self, task: Task) -> tuple[State, Floats | None]:
        """A warm start with a Hessian to try, unless starting from the intercept is better.

        It is where one of two nearly equal columns with huge coefficients has just left.
        """
        problem = task.problem
        start = task.start
        if start is None or not len(task.support):
            return self._cold(task), None
        if task.rows is None:
            state = problem.at(task.coef)
        elif ahead := self._past_newcomer(task):
            return ahead
        else:
            loss = start.value - ridge_penalty(self.data.full_ridge[start.support], start.coef)
            rows = task.rows.of(problem.block)
            slopes = problem.block.back_project(rows.residual)
            state = problem.state(task.coef, loss - problem.elsewhere, rows, slopes)
        if not state.value <= self.baseline[0].value:
            return self._cold(task), None
        if task.hessian is None:
            return state, None
        return state, problem.bordered(task.hessian, task.places, problem.curvature(state))

    def _past_newcomer(self, task: Task) -> tuple[State, Floats] | None:
        """A start at the minimum along the one column that came, with a Hessian to try.

        Where columns are sparse that is cheap, and where rows are many it saves a Hessian or two
        that are not. None elsewhere, and where Q is no lower there.
        """
        problem, start = task.problem, task.start
        one_came = len(task.support) == len(task.places) + 1
        if start is None or task.rows is None or task.hessian is None or not one_came:
            return None
        if problem.block.is_dense or len(problem.base) < MIN_ROWS_TO_STEP_ALONG:
            return None
        rows = task.rows.of(problem.block)
        place = int(np.delete(np.arange(len(task.support)), task.places)[0])
        move = np.zeros(len(task.coef))
        move[place] = problem.step_along(place, rows)
        state = problem.moved(rows.eta, move, task.coef + move)
        if not state.value < start.value:
            return None
        return state, problem.bordered(task.hessian, task.places, problem.curvature(state))

    def _cold(self, task: Task) -> State:
        cold = np.zeros(len(task.support))
        cold[len(self.data.columns_of(task.support)) :] = self.baseline[0].coef
        return task.problem.at(cold)

    def _from_subsample(
        self, problem: Restricted, state: State, scale: Floats, guess: Floats | None
    ) -> tuple[State, Floats | None]:
        """A better start from some of the rows: most of the way for a fraction of the price.

        But not where the way is shorter than what so few rows can tell.
        """
        noise = (8.0 / len(problem.base)) ** 0.5
        if steepness(state, np.maximum(scale, SMALLEST_DIVISOR)) < 5.0 * noise:
            return state, guess
        few = problem.thinned()
        rough = Ending(0.01 * noise**2 / NEGLIGIBLE, 0.1 * noise, 20)
        found = newton(few, few.at(state.coef), scale, guess=guess, **rough._asdict())
        ahead = problem.at(found.state.coef)
        return (ahead, found.hessian) if ahead.value < state.value else (state, guess)

    @cached_property
    def _is_stiff(self) -> bool:
        """Whether the loss has corners, as seen from where nothing is in."""
        loss = self.data.loss
        return isinstance(loss, Huber) and loss.threshold < STIFF_THRESHOLD * loss.typical

    def _relaxed(self, problem: Restricted, state: State, scale: Floats) -> State:
        """A better start for a loss with corners, from fits of the loss with the corners rounded.

        Newton's method wants most residuals on the curved part; so the threshold starts at their
        size and falls tenfold from fit to fit.
        """
        response = problem.response
        loss = response.loss
        assert isinstance(loss, Huber)
        threshold = np.inf
        while True:
            misfit = float(response.weights @ np.abs(state.cache.eta - response.y))
            threshold = 0.1 * min(threshold, misfit)
            if threshold <= max(3.0 * loss.threshold, RESOLVED * loss.typical):
                return problem.at(state.coef)
            rounded = replace(loss, threshold=threshold)
            rounded_response = replace(response, loss=rounded, code=code_of(rounded))
            easier = replace(problem, response=rounded_response, elsewhere=0.0)
            sizes = scale * (threshold / loss.threshold)
            start = easier.at(state.coef)
            state = newton(easier, start, sizes, unit=0.0, tol=1e-3, max_iter=20).state

    def solve(
        self, problem: Restricted, state: State, scale: Floats, guess: Floats | None = None
    ) -> Minimum:
        """Minimise from a state; `guess` is a Hessian to try first."""
        if guess is None and problem.is_small(self._max_small_work):
            still = np.zeros(len(scale))
            minimum = problem.small_newton(state.coef, state.cache.eta, still, scale, self.ending)
            if minimum is not None:
                return minimum
        return newton(problem, state, scale, guess=guess, **self.ending._asdict())

    @cached_property
    def ending(self) -> Ending:
        """When Newton's method ends."""
        return Ending(self.data.newton_unit, self.data.tol, self.data.max_iter)
