"""A generalised linear model on a few columns: the small problem that Newton's method solves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forback.numerics import Line, State
from forback.objectives.designs import Block, as_array, sandwich
from forback.objectives.losses import Loss
from forback.protocols import Floats


@dataclass(frozen=True, slots=True)
class Restricted:
    """Q as a function of the coefficients of a few columns, the rest of eta held fixed."""

    loss: Loss
    block: Block
    base: Floats  #: what the columns add to
    y: Floats
    weights: Floats
    ridge: Floats

    def at(self, coef: Floats) -> State:
        """Value and gradient at `coef`; eta is kept in the state."""
        return self._state(coef, self.base + self.block @ coef)

    def _state(self, coef: Floats, eta: Floats) -> State:
        penalised = self.ridge * coef
        with np.errstate(over="ignore", invalid="ignore"):
            value = float(self.weights @ self.loss.value(eta, self.y) + 0.5 * penalised @ coef)
            residual = self.weights * self.loss.d1(eta, self.y)
            gradient = self.block.T @ residual + penalised
        return State(coef, value if np.isfinite(value) else np.inf, gradient, eta)

    @property
    def saturates(self) -> bool:
        """Whether the loss can approach its infimum for ever."""
        return self.loss.saturates

    def hessian(self, state: State) -> Floats:
        """Second derivative, with the loss's curvature lifted to its floor."""
        with np.errstate(over="ignore", invalid="ignore"):
            hessian = sandwich(self.block, self._bend(state))
        hessian[np.diag_indices_from(hessian)] += self.ridge
        if not np.isfinite(hessian).all():
            raise ValueError(
                "X, with y and offset, holds values too large to square (beyond about 1e150); "
                "divide its columns by a constant"
            )
        return hessian

    def square_root(self, state: State) -> tuple[Floats, Floats]:
        """The block with rows weighted by the root of their curvature, ridge rows below."""
        root = np.sqrt(self._bend(state))
        residual = self.weights * self.loss.d1(state.cache, self.y)
        z = np.divide(residual, root, out=np.zeros_like(residual), where=root > 0)
        penalty = np.sqrt(self.ridge)
        A = np.vstack([root[:, None] * as_array(self.block), np.diag(penalty)])
        return A, np.concatenate([z, penalty * state.coef])

    def _bend(self, state: State) -> Floats:
        curvature = np.maximum(self.loss.d2(state.cache, self.y), self.loss.newton_floor)
        return np.asarray(self.weights * curvature)

    def line(self, state: State, direction: Floats) -> tuple[Line, float]:
        """Along `direction`, with one product for the whole line search."""
        move = self.block @ direction

        def at(t: float) -> State:
            return self._state(state.coef + t * direction, state.cache + t * move)

        return at, float(np.max(np.abs(move)))
