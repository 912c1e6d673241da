"""A generalised linear model on a few columns: the small problem that Newton's method solves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from forback.core.objective import ObjectiveError
from forback.core.status import Status
from forback.core.tolerances import FAR
from forback.core.types import Floats, Ints
from forback.designs.dense_block import ROWS_AT_ONCE, DenseBlock
from forback.designs.design import Block
from forback.objectives.linear.kernels import rows as kernels
from forback.objectives.linear.kernels.losses import SQUARED, LossCode, evaluate, pointwise
from forback.objectives.linear.kernels.newton import Small, sprint
from forback.objectives.linear.losses import Loss
from forback.solvers import threads
from forback.solvers.kernels.vectors import sum_of_sizes
from forback.solvers.linalg import TINY, factor
from forback.solvers.newton import Minimum, State

#: A fit of n rows and m columns is small if n m^2 is at most this.
SMALL = 1 << 19

#: Where somebody's own loss is as low as this, it has no minimum.
ENDLESS = -1e100

#: From this many rows on, a fit starts on some of them.
TALL = 1 << 17

EPS = 2.0**-52

#: A sum of products is off by at most so many units in the last place of its terms.
ROUNDINGS = 16.0


class Rows(NamedTuple):
    """A linear predictor, and the weighted derivatives of the loss there."""

    eta: Floats
    residual: Floats  #: w * loss'
    bend: Floats  #: w * loss''

    @classmethod
    def beside(cls, eta: Floats) -> Rows:
        """Room for the derivatives at eta."""
        return cls(eta, np.empty_like(eta), np.empty_like(eta))

    def of(self, block: Block) -> Rows:
        """The same for the rows of a block."""
        return self if block.rows is None else Rows(*map(block.take, self))

    def levelled(self) -> Rows:
        """The same where a constant is added to eta such that slopes add up to zero.

        They do at a minimum with an intercept, up to the accuracy of the fit, or of the intercept
        as a number. A column of 1e8 multiplies what is left of their sum by as much.
        """
        bends = self.bend.sum()
        shift = -self.residual.sum() / bends if bends > 0.0 else 0.0
        return Rows(self.eta + shift, self.residual + shift * self.bend, self.bend)

    def rounding(self, size: float) -> float:
        """What rounding can do to the mean loss where each eta adds up terms of some size.

        It moves the loss by its slope there, and by its curvature where slopes vanish.
        """
        off = ROUNDINGS * EPS * size
        return off * sum_of_sizes(self.residual) + 0.5 * off * off * sum_of_sizes(self.bend)


@dataclass(frozen=True, slots=True)
class Response:
    """A loss with its y and weights: all that is known about the rows besides X."""

    loss: Loss
    code: LossCode | None  #: how kernels know the loss, if they do
    y: Floats
    weights: Floats

    def blame(self, rows: Rows) -> ObjectiveError:
        """What is wrong with somebody's own loss where curvature is no number any more."""
        d2 = np.asarray(self.loss.d2(rows.eta, self.y), dtype=np.float64)
        wrong = np.flatnonzero(~(np.isfinite(d2) & (d2 >= 0.0)))
        row = int(wrong[0]) if len(wrong) else int(np.abs(rows.eta).argmax())
        where = f"at eta={rows.eta[row]:.6g}, y={self.y[row]:.6g}"
        if len(wrong):
            return ObjectiveError(
                f"d2 of the {self.loss.name} loss is {d2[row]:.3g} {where}: the loss is not convex "
                "there, or its formula overflows or cancels"
            )
        return ObjectiveError(f"the {self.loss.name} loss falls without end: it was {where}")

    def at(self, eta: Floats) -> tuple[float, Rows]:
        """The mean loss, infinite where it overflows, and its derivatives."""
        code = self.code
        if code is None:
            with np.errstate(over="ignore", invalid="ignore"):
                value = float(self.weights @ self.loss.value(eta, self.y))
                residual = self.weights * self.loss.d1(eta, self.y)
                rows = Rows(eta, residual, self.weights * self.loss.d2(eta, self.y))
            if value < ENDLESS:
                raise self.blame(rows)
        else:
            rows, given = Rows.beside(eta), (eta, self.y, self.weights)

            def some(start: int, stop: int) -> float:
                return evaluate(code, *(part[start:stop] for part in (*given, *rows[1:])))

            value = sum(threads.over_chunks(some, threads.edges(len(eta), ROWS_AT_ONCE)))
        return value if np.isfinite(value) else np.inf, rows

    def moved(self, base: Floats, block: Block, direction: Floats) -> tuple[float, Rows, Floats]:
        """The same where eta is base + B direction, and the gradient along the columns of B."""
        code = self.code
        if code is None:
            with np.errstate(over="ignore", invalid="ignore"):
                value, rows = self.at(base + block.predict(direction))
                return value, rows, block.back_project(rows.residual)
        if block.shift is not None:  # kernels see what is stored only
            base = base - float(block.shift @ direction)
        rows, given = Rows.beside(np.empty_like(base)), (code, self.y, self.weights, base)
        inward = block.inward(direction)
        kernel: Any = kernels.move_dense if isinstance(block, DenseBlock) else kernels.move_sparse

        def some(start: int, stop: int) -> tuple[float, Floats]:
            slopes = np.zeros(len(inward))
            value = kernel(*given, *block.stored, inward, *rows, slopes, start, stop)
            return value, slopes

        parts = threads.over_chunks(some, threads.edges(len(base), ROWS_AT_ONCE))
        value = sum(part for part, _ in parts)
        gradient = sum((slopes for _, slopes in parts[1:]), start=parts[0][1])
        if block.shift is not None:
            gradient = gradient - rows.residual.sum() * block.shift
        return value if np.isfinite(value) else np.inf, rows, block.outward(gradient)

    def values(self, eta: Floats) -> Floats:
        """The loss of every row, not weighted."""
        if self.code is None:
            with np.errstate(over="ignore", invalid="ignore"):
                return self.loss.value(eta, self.y)
        values = np.empty_like(eta)
        pointwise(self.code, eta, self.y, values, np.empty_like(eta), np.empty_like(eta))
        return values

    def of(self, block: Block) -> Response:
        """The same for the rows of a block."""
        if block.rows is None:
            return self
        return Response(self.loss, self.code, block.take(self.y), block.take(self.weights))


class Sprint(NamedTuple):
    """Where a small fit starts: at `coef`, where eta is base + B direction."""

    coef: Floats
    base: Floats
    direction: Floats
    known: Floats  #: what is known about the Hessian
    places: Ints  #: of which rows and columns


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
        return self._moved(self.base, coef, coef)

    def _moved(self, base: Floats, direction: Floats, coef: Floats) -> State:
        return self._penalised(coef, *self.response.moved(base, self.block, direction))

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
    def has_corners(self) -> bool:
        """Whether the loss is straight or flat in parts."""
        return self.response.loss.newton_floor > 0.0

    def bends_alike(self, state: State, other: State) -> bool:
        """Whether the same rows are on the curved part of the loss."""
        return np.array_equal(state.cache.bend, other.cache.bend)

    @property
    def certain(self) -> float:
        """Values decide."""
        return 0.0

    @property
    def saturates(self) -> bool:
        """Whether the loss can approach its infimum for ever."""
        return self.response.loss.saturates

    @property
    def is_small(self) -> bool:
        """Whether a fit takes less time than calling NumPy for its parts."""
        (n, m), code = self.block.shape, self.response.code
        if code is None or not isinstance(self.block, DenseBlock):
            return False
        return code.kind != SQUARED and 0 < n * m * m <= SMALL

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
        columns = np.ascontiguousarray(self.block.columns[:, rows])
        block = DenseBlock(columns, order=self.block.order)
        return Restricted(response, block, self.base[rows], self.ridge)

    def sprint(
        self,
        start: Sprint,
        scale: Floats,
        *,
        ceiling: float,
        unit: float,
        tol: float,
        max_iter: int,
    ) -> Minimum | None:
        """Newton's method by one call; None where not all goes well, or from above `ceiling`."""
        response, block, code = self.response, self.block, self.response.code
        assert isinstance(block, DenseBlock)
        assert code is not None
        divisor = block.inward(np.where(scale > 0, scale, TINY))
        small = Small(
            code, response.y, response.weights, block.columns, block.inward(self.ridge), divisor
        )
        done, value, spot, hessian = sprint(
            small, unit, tol, max_iter, ceiling - self.elsewhere,
            block.inward(start.coef), start.base, block.inward(start.direction),
            start.known, block.rows_of(start.places),
        )  # fmt: skip
        if not done:
            return None
        rows, hessian = Rows(spot.eta, spot.residual, spot.bend), block.outward_both(hessian)
        coef, gradient = block.outward(spot.coef), block.outward(spot.gradient)
        return Minimum(
            State(coef, value + self.elsewhere, gradient, rows), Status.CONVERGED, hessian
        )

    def hessian(self, state: State) -> Floats:
        """Second derivative, with the loss's curvature lifted to its floor where that is needed."""
        if self.has_corners:
            own = self._sandwich(state, state.cache.bend)
            if factor(own) is not None:
                return own
        return self._sandwich(state, self._bend(state))

    def _sandwich(self, state: State, bend: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            hessian = self.block.sandwich(bend)
        hessian[np.diag_indices_from(hessian)] += self.ridge
        if not np.isfinite(hessian).all():
            if self.response.code is None:
                raise self.response.blame(state.cache)
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

    def along(self, state: State, direction: Floats) -> State:
        """Value and gradient one step from `state`."""
        return self._moved(state.cache.eta, direction, state.coef + direction)

    def noise(self, state: State) -> tuple[float, Floats | float]:
        """What rounding can do to the value, and to each entry of the gradient."""
        if self.largest is None:
            return 0.0, 0.0
        rows: Rows = state.cache
        size = float(self.largest @ np.abs(state.coef))
        bends = ROUNDINGS * EPS * size * float(rows.bend.sum())
        return rows.rounding(size), np.asarray(bends * self.largest)

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
