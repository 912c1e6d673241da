"""A generalised linear model on a few columns: the small problem that Newton's method solves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from forback.core.objective import ObjectiveError
from forback.core.status import Status
from forback.core.tolerances import FAR, MAX_ETA_STEP, SMALLEST_DIVISOR
from forback.core.types import Floats, Ints
from forback.designs.dense_block import ROWS_AT_ONCE
from forback.designs.design import Block
from forback.objectives.linear.kernels.losses import SQUARED, LossCode, Target, evaluate, pointwise
from forback.objectives.linear.kernels.newton import Ending, SmallProblem, small_newton
from forback.objectives.linear.kernels.rows import MOVES
from forback.objectives.linear.losses import Loss
from forback.objectives.linear.rows import ETA_RTOL, Rows
from forback.solvers import threads
from forback.solvers.linalg import factor
from forback.solvers.newton import Minimum, Problem, State

#: A mean loss below this is unbounded; only a loss of the user's own gets there.
UNBOUNDED_LOSS = -1e100

#: From this many rows on, a fit starts on some of them: every eighth run of so many rows.
MIN_ROWS_TO_SUBSAMPLE = 1 << 17
ROWS_PER_RUN = MIN_ROWS_TO_SUBSAMPLE // 64


#: A column that joins a fit gets so many steps of its own, at most, until one is that small: they
#: make a start, not a minimum.
STEPS_ALONG = 3
STEP_ALONG_RTOL = 1e-2

#: None of the columns.
NO_PLACES: Ints = np.zeros(0, np.intp)


@dataclass(frozen=True, slots=True)
class Response:
    """A loss with its y and weights: all that is known about the rows besides X.

    Attributes
    ----------
    loss : Loss
    code : LossCode | None
        The loss as kernels know it, if they do.
    y : Floats
    weights : Floats
    """

    loss: Loss
    code: LossCode | None
    y: Floats
    weights: Floats

    def blame(self, rows: Rows) -> ObjectiveError:
        """Say what is wrong with a loss of the user's own whose curvature is no number any more."""
        d2 = np.asarray(self.loss.d2(rows.eta, self.y), dtype=np.float64)
        wrong = np.flatnonzero(~(np.isfinite(d2) & (d2 >= 0.0)))
        row = int(wrong[0]) if len(wrong) else int(np.abs(rows.eta).argmax())
        where = f"at eta={rows.eta[row]:.6g}, y={self.y[row]:.6g}"
        if len(wrong):
            return ObjectiveError(
                f"d2 of the {self.loss.name} loss is {d2[row]:.3g} {where}: the loss is not convex "
                "there, or its formula overflows or cancels"
            )
        return ObjectiveError(f"the {self.loss.name} loss is unbounded below: it was {where}")

    @property
    def target(self) -> Target:
        """What kernels need to know, of a loss that they know."""
        assert self.code is not None
        return Target(self.code, self.y, self.weights)

    def at(self, eta: Floats) -> tuple[float, Rows]:
        """Return the mean loss, infinite where it overflows, and its derivatives."""
        if self.code is None:
            with np.errstate(over="ignore", invalid="ignore"):
                value = float(self.weights @ self.loss.value(eta, self.y))
                residual = self.weights * self.loss.d1(eta, self.y)
                rows = Rows(eta, residual, self.weights * self.loss.d2(eta, self.y))
            if value < UNBOUNDED_LOSS:
                raise self.blame(rows)
        else:
            rows = Rows.beside(eta)
            edges = threads.edges(len(eta), ROWS_AT_ONCE)
            value = sum(threads.over_chunks(partial(evaluate, self.target, rows), edges))
        return value if np.isfinite(value) else np.inf, rows

    def moved(self, base: Floats, block: Block, direction: Floats) -> tuple[float, Rows, Floats]:
        """Return the mean loss and its derivatives at base + B direction, and B' residual."""
        if self.code is None:
            with np.errstate(over="ignore", invalid="ignore"):
                value, rows = self.at(base + block.predict(direction))
                return value, rows, block.back_project(rows.residual)
        if block.shift is not None:  # kernels see what is stored only
            base = base - float(block.shift @ direction)
        rows = Rows.beside(np.empty_like(base))
        stored = block.stored
        sweep = partial(
            MOVES[type(stored)], self.target, base, *stored, block.to_storage(direction), rows
        )

        def some(start: int, stop: int) -> tuple[float, Floats]:
            slopes = np.zeros(len(direction))
            return sweep(slopes, start, stop), slopes

        parts = threads.over_chunks(some, threads.edges(len(base), ROWS_AT_ONCE))
        value = sum(part for part, _ in parts)
        gradient = sum((slopes for _, slopes in parts[1:]), start=parts[0][1])
        if block.shift is not None:
            gradient = gradient - rows.residual.sum() * block.shift
        return value if np.isfinite(value) else np.inf, rows, block.from_storage(gradient)

    def values(self, eta: Floats) -> Floats:
        """Return the loss of every row, not weighted, of a loss that kernels know."""
        values = np.empty_like(eta)
        pointwise(self.target.code, eta, self.y, values, np.empty_like(eta), np.empty_like(eta))
        return values

    def of(self, block: Block) -> Response:
        """Keep the rows of a block."""
        if block.rows is None:
            return self
        return Response(self.loss, self.code, block.take(self.y), block.take(self.weights))


@dataclass(frozen=True, slots=True)
class Restricted(Problem):
    """Q as a function of the coefficients of a few columns, the rest of eta held fixed.

    Rows in which the block has no entry are left out; what they add to Q is `elsewhere`.

    Attributes
    ----------
    response : Response
    block : Block
    base : Floats
        Eta without the columns.
    ridge : Floats
    elsewhere : float
    largest : Floats | None
        The largest absolute entry of each column, if it is known.
    """

    response: Response
    block: Block
    base: Floats
    ridge: Floats
    elsewhere: float = 0.0
    largest: Floats | None = None

    def at(self, coef: Floats) -> State:
        """Return value and gradient at `coef`; eta and the like are kept in the state."""
        return self.moved(self.base, coef, coef)

    def moved(self, base: Floats, direction: Floats, coef: Floats) -> State:
        """Return value and gradient at `coef`, where eta is base + B direction."""
        return self.state(coef, *self.response.moved(base, self.block, direction))

    def state(self, coef: Floats, mean_loss: float, rows: Rows, slopes: Floats) -> State:
        """Return value and gradient where the mean loss of these rows is known already."""
        penalised = self.ridge * coef
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = slopes + penalised
            value = mean_loss + self.elsewhere + 0.5 * float(penalised @ coef)
        return State(coef, value, gradient, rows)

    @property
    def has_corners(self) -> bool:
        """Whether the loss is straight or flat in parts."""
        return self.response.loss.newton_floor > 0.0

    def bends_alike(self, state: State, other: State) -> bool:
        """Whether the same rows are on the curved part of the loss."""
        return np.array_equal(state.cache.curvature, other.cache.curvature)

    @property
    def saturates(self) -> bool:
        """Whether the loss can approach its infimum for ever."""
        return self.response.loss.saturates

    def is_small(self, most: int) -> bool:
        """Return whether kernels can do the fit in one call: n m^2 is at most that."""
        n, m = self.block.shape
        code = self.response.code
        known = code is not None and code.kind != SQUARED and self.block.is_dense
        return known and 0 < n * m * m <= most

    @property
    def is_tall(self) -> bool:
        """Whether an eighth of the rows says nearly as much as all."""
        return self.block.is_dense and len(self.base) >= MIN_ROWS_TO_SUBSAMPLE

    def thinned(self) -> Restricted:
        """Return Q on an eighth of the rows, in runs so that the others are not even touched."""
        begins = np.arange(len(self.base) // (8 * ROWS_PER_RUN)) * 8 * ROWS_PER_RUN
        rows = (begins[:, None] + np.arange(ROWS_PER_RUN)).ravel()
        weights = self.response.weights[rows]
        response = replace(self.response, y=self.response.y[rows], weights=weights / weights.sum())
        return Restricted(response, self.block.at_rows(rows), self.base[rows], self.ridge)

    def small_newton(
        self,
        coef: Floats,
        base: Floats,
        direction: Floats,
        scale: Floats,
        ending: Ending,
        *,
        guess: Floats | None = None,
        places: Ints = NO_PLACES,
        ceiling: float = np.inf,
    ) -> Minimum | None:
        """Newton's method by one call, from `coef`, where eta is base + B direction.

        None where not all goes well, or from above `ceiling`. `guess` is a part of the Hessian, at
        `places`, good enough for the first step.
        """
        block = self.block
        ridge = block.to_storage(self.ridge)
        scale = block.to_storage(np.where(scale > 0, scale, SMALLEST_DIVISOR))
        small = SmallProblem(self.response.target, block.stored[0], ridge, scale)
        hessian = np.empty((len(coef), len(coef)))
        hessian.fill(np.nan)
        if guess is not None and not self.has_corners:
            own = block.places_in_storage(places)
            hessian[own[:, None], own] = guess
        start = (block.to_storage(coef), base, block.to_storage(direction), hessian)
        done, value, place = small_newton(small, *start, ending, ceiling - self.elsewhere)
        if not done:
            return None
        found = block.from_storage(place.coef)
        gradient = block.from_storage(place.gradient)
        state = State(found, value + self.elsewhere, gradient, place.rows)
        return Minimum(state, Status.CONVERGED, block.from_storage(hessian))

    def step_along(self, place: int, rows: Rows) -> float:
        """Return roughly where along a column, whose coefficient is 0, Q is least; 0 if unclear."""
        column = self.block.column(place)
        own = np.flatnonzero(column)
        x, ridge = column[own], self.ridge[place]
        here = Rows(*(part[own] for part in rows))
        eta = here.eta
        loss = replace(self.response, y=self.response.y[own], weights=self.response.weights[own])
        move = 0.0
        for _ in range(STEPS_ALONG):
            bend = float((x * x) @ here.curvature) + ridge
            step = -(float(x @ here.residual) + ridge * move) / max(bend, SMALLEST_DIVISOR)
            move += step
            if not abs(move) * np.abs(x).max(initial=0.0) <= MAX_ETA_STEP:
                return 0.0
            if abs(step) <= STEP_ALONG_RTOL * abs(move):
                break
            here = loss.at(eta + move * x)[1]
        return move

    def hessian(self, state: State) -> Floats:
        """Second derivative, with the loss's curvature lifted to its floor where that is needed."""
        if self.has_corners:
            own = self._sandwich(state, state.cache.curvature)
            if factor(own) is not None:
                return own
        return self._sandwich(state, self.curvature(state))

    def _sandwich(self, state: State, curvature: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            hessian = self.block.sandwich(curvature)
        hessian[np.diag_indices_from(hessian)] += self.ridge
        if not np.isfinite(hessian).all():
            if self.response.code is None:
                raise self.response.blame(state.cache)
            raise ValueError(
                "X, with y and offset, holds values too large to square (beyond about 1e150); "
                "divide its columns by a constant"
            )
        return hessian

    def bordered(self, hessian: Floats, places: Ints, curvature: Floats) -> Floats:
        """Complete the Hessian of some of the columns, at `places`, for the others."""
        missing = np.ones(len(self.ridge), dtype=bool)
        missing[places] = False
        full = np.empty((len(self.ridge), len(self.ridge)))
        full[places[:, None], places] = hessian
        for place in np.flatnonzero(missing):
            row = self.block.cross(int(place), curvature)
            row[place] += self.ridge[place]
            full[place] = row
            full[:, place] = row
        return full

    def square_root(self, state: State) -> tuple[Floats, Floats]:
        """The block with rows weighted by the root of their curvature, ridge rows below."""
        root = np.sqrt(self.curvature(state))
        residual = state.cache.residual
        z = np.divide(residual, root, out=np.zeros_like(residual), where=root > 0)
        penalty = np.sqrt(self.ridge)
        A = np.vstack([root[:, None] * self.block.toarray(), np.diag(penalty)])
        return A, np.concatenate([z, penalty * state.coef])

    def curvature(self, state: State) -> Floats:
        """Return the curvature of each row, lifted to the loss's floor."""
        floor = self.response.loss.newton_floor
        own: Floats = state.cache.curvature
        return np.maximum(own, floor * self.response.weights) if floor else own

    def along(self, state: State, direction: Floats) -> State:
        """Value and gradient one step from `state`."""
        return self.moved(state.cache.eta, direction, state.coef + direction)

    def noise(self, state: State) -> tuple[float, Floats | float]:
        """What rounding can do to the value, and to each entry of the gradient."""
        if self.largest is None:
            return 0.0, 0.0
        rows: Rows = state.cache
        size = float(self.largest @ np.abs(state.coef))
        off = ETA_RTOL * size * float(rows.curvature.sum())
        return rows.rounding(size), np.asarray(off * self.largest)

    def reach(self, direction: Floats) -> float:
        """How far a step along `direction` moves any eta, or more if that is next to nothing."""
        if self.largest is not None:
            most = float(self.largest @ np.abs(direction))
            if most <= FAR:
                return most
        return float(np.max(np.abs(self.block.predict(direction)), initial=0.0))
