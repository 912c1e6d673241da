"""A generalised linear model on a few columns: the small problem that Newton's method solves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from forback import threads
from forback.kernels import rows as kernels
from forback.kernels.columns import LossCode
from forback.kernels.losses import SQUARED
from forback.kernels.sprint import sprint
from forback.numerics import FAR, TINY, Line, State
from forback.objectives.blocks import ROWS_AT_ONCE, Block, DenseBlock, SparseBlock
from forback.objectives.losses import Loss
from forback.protocols import Floats, Ints

#: A fit of n rows and m columns is small if n m^2 is at most this.
SMALL = 1 << 19


#: From this many rows on, a fit starts on some of them.
TALL = 1 << 17


NOTHING = np.zeros(0)


class Rows(NamedTuple):
    """A linear predictor, and the weighted derivatives of the loss there."""

    eta: Floats
    residual: Floats  #: w * loss'
    bend: Floats  #: w * loss''

    def of(self, block: Block) -> Rows:
        """The same for the rows of a block."""
        return self if block.rows is None else Rows(*map(block.take, self))


@dataclass(frozen=True, slots=True)
class Response:
    """A loss with its y and weights: all that is known about the rows besides X."""

    loss: Loss
    code: LossCode | None  #: how kernels know the loss, if they do
    y: Floats
    weights: Floats

    def at(self, eta: Floats) -> tuple[float, Rows]:
        """The mean loss, infinite where it overflows, and its derivatives."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.code is None:
                value = float(self.weights @ self.loss.value(eta, self.y))
                residual = self.weights * self.loss.d1(eta, self.y)
                rows = Rows(eta, residual, self.weights * self.loss.d2(eta, self.y))
            else:
                value, rows, _ = self._compiled(self.code, eta, None)
        return value if np.isfinite(value) else np.inf, rows

    def with_gradient(self, eta: Floats, block: Block) -> tuple[float, Rows, Floats]:
        """The same, and the gradient of the mean loss along the columns of a block."""
        if self.code is not None and isinstance(block, SparseBlock):
            value, rows, gradient = self._compiled(self.code, eta, block)
            return value if np.isfinite(value) else np.inf, rows, gradient
        value, rows = self.at(eta)
        with np.errstate(over="ignore", invalid="ignore"):
            return value, rows, block.back_project(rows.residual)

    def _compiled(
        self, code: LossCode, eta: Floats, block: SparseBlock | None
    ) -> tuple[float, Rows, Floats]:
        rows, n = Rows(eta, np.empty_like(eta), np.empty_like(eta)), len(eta)
        here = (code.kind, code.parameter, eta, self.y, self.weights, rows.residual, rows.bend)

        def some_rows(start: int, stop: int) -> tuple[float, Floats]:
            if block is None:
                return kernels.evaluate(*here, start, stop), NOTHING
            slopes = np.zeros(block.shape[1])
            value = kernels.evaluate_with_gradient(*here, *block.by_rows, slopes, start, stop)
            return value, slopes

        if n <= ROWS_AT_ONCE:
            value, gradient = some_rows(0, n)
        else:
            parts = threads.over_chunks(some_rows, threads.edges(n, ROWS_AT_ONCE))
            value = sum(part for part, _ in parts)
            gradient = sum((slopes for _, slopes in parts[1:]), start=parts[0][1])
        return value, rows, gradient

    def of(self, block: Block) -> Response:
        """The same for the rows of a block."""
        if block.rows is None:
            return self
        return Response(self.loss, self.code, block.take(self.y), block.take(self.weights))


@dataclass(frozen=True, slots=True)
class Restricted:
    """Q as a function of the coefficients of a few columns, the rest of eta held fixed.

    Rows in which the block has no entry are left out; what they add to Q is `elsewhere`.
    """

    response: Response
    block: Block
    base: Floats  #: what the columns add to
    ridge: Floats
    elsewhere: float = 0.0
    largest: Floats | None = None  #: the largest absolute entry of each column, if it is known

    def at(self, coef: Floats) -> State:
        """Value and gradient at `coef`; eta and the like are kept in the state."""
        return self._state(coef, self.base + self.block.predict(coef))

    def _state(self, coef: Floats, eta: Floats) -> State:
        return self._penalised(coef, *self.response.with_gradient(eta, self.block))

    def state(self, coef: Floats, mean_loss: float, rows: Rows) -> State:
        """Value and gradient where the mean loss of these rows is known already."""
        return self._penalised(coef, mean_loss, rows, self.block.back_project(rows.residual))

    def _penalised(self, coef: Floats, mean_loss: float, rows: Rows, slopes: Floats) -> State:
        penalised = self.ridge * coef
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = slopes + penalised
            value = mean_loss + self.elsewhere + 0.5 * float(penalised @ coef)
        return State(coef, value, gradient, rows)

    @property
    def saturates(self) -> bool:
        """Whether the loss can approach its infimum for ever."""
        return self.response.loss.saturates

    @property
    def is_small(self) -> bool:
        """Whether a fit takes less time than calling NumPy for its parts."""
        size = len(self.base) * len(self.ridge) ** 2
        code, dense = self.response.code, isinstance(self.block, DenseBlock)
        return dense and code is not None and code.kind != SQUARED and 0 < size <= SMALL

    @property
    def is_tall(self) -> bool:
        """Whether an eighth of the rows says nearly as much as all."""
        return isinstance(self.block, DenseBlock) and len(self.base) >= TALL

    def thinned(self) -> Restricted:
        """The same on an eighth of the rows, in runs so that the others are not even touched."""
        run = TALL // 64
        keep = np.arange(len(self.base) // (8 * run)) * 8 * run
        rows = (keep[:, None] + np.arange(run)).ravel()
        assert isinstance(self.block, DenseBlock)
        weights = self.response.weights[rows]
        response = replace(self.response, y=self.response.y[rows], weights=weights / weights.sum())
        block = DenseBlock(np.ascontiguousarray(self.block.columns[:, rows]))
        return Restricted(response, block, self.base[rows], self.ridge)

    def sprint(
        self,
        state: State,
        scale: Floats,
        *,
        unit: float,
        tol: float,
        max_iter: int,
        guess: Floats | None,
    ) -> tuple[State, Floats, int, bool]:
        """Newton's method by one call, as far as all goes well.

        Returns where it got, its last Hessian, how many steps it made, and whether it arrived.
        """
        m, response, code = len(scale), self.response, self.response.code
        assert isinstance(self.block, DenseBlock)
        assert code is not None
        eta, residual, bend = (vector.copy() for vector in state.cache)
        coef, gradient = state.coef.copy(), state.gradient.copy()
        hessian = np.empty((m, m)) if guess is None else guess.copy()
        value, steps, done = sprint(
            code, response.y, response.weights, self.block.columns, self.ridge,
            np.where(scale > 0, scale, TINY), unit, tol, max_iter,
            state.value - self.elsewhere,
            coef, eta, residual, bend, gradient, hessian, guess is not None,
        )  # fmt: skip
        there = State(coef, value + self.elsewhere, gradient, Rows(eta, residual, bend))
        return there, hessian, steps, done

    def hessian(self, state: State) -> Floats:
        """Second derivative, with the loss's curvature lifted to its floor."""
        with np.errstate(over="ignore", invalid="ignore"):
            hessian = self.block.sandwich(self._bend(state))
        hessian[np.diag_indices_from(hessian)] += self.ridge
        if not np.isfinite(hessian).all():
            raise ValueError(
                "X, with y and offset, holds values too large to square (beyond about 1e150); "
                "divide its columns by a constant"
            )
        return hessian

    def bordered(self, hessian: Floats, places: Ints, state: State) -> Floats:
        """The Hessian of some of the columns, at `places`, completed for the others."""
        return bordered(hessian, places, self.block, self.ridge, self._bend(state))

    def square_root(self, state: State) -> tuple[Floats, Floats]:
        """The block with rows weighted by the root of their curvature, ridge rows below."""
        root = np.sqrt(self._bend(state))
        residual = state.cache.residual
        z = np.divide(residual, root, out=np.zeros_like(residual), where=root > 0)
        penalty = np.sqrt(self.ridge)
        A = np.vstack([root[:, None] * self.block.toarray(), np.diag(penalty)])
        return A, np.concatenate([z, penalty * state.coef])

    def _bend(self, state: State) -> Floats:
        floor = self.response.loss.newton_floor
        bend: Floats = state.cache.bend
        return np.maximum(bend, floor * self.response.weights) if floor else bend

    def line(self, state: State, direction: Floats) -> tuple[Line, float]:
        """Along `direction`, with one product for the whole line search."""
        move = self.block.predict(direction)

        def at(t: float) -> State:
            return self._state(state.coef + t * direction, state.cache.eta + t * move)

        return at, float(np.max(np.abs(move), initial=0.0))

    def reach(self, direction: Floats) -> float:
        """How far a step along `direction` moves any eta, or more if that is next to nothing."""
        if self.largest is not None:
            most = float(self.largest @ np.abs(direction))
            if most <= FAR:
                return most
        return float(np.max(np.abs(self.block.predict(direction)), initial=0.0))


def bordered(hessian: Floats, places: Ints, block: Block, ridge: Floats, bend: Floats) -> Floats:
    """The Hessian of some columns of a block, at `places`, completed for the others."""
    missing = np.ones(len(ridge), dtype=bool)
    missing[places] = False
    full = np.empty((len(ridge), len(ridge)))
    full[places[:, None], places] = hessian
    for place in np.flatnonzero(missing):
        row = block.cross(int(place), bend)
        row[place] += ridge[place]
        full[place], full[:, place] = row, row
    return full
