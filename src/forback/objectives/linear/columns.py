"""One-dimensional problems, many columns at once.

With the fit at eta and a column x, phi(a) is the change of Q when a * x is added to eta:

    phi(a) = sum_i w_i [loss(eta_i + a x_i, y_i) - loss(eta_i, y_i)] + ridge (c a + a^2 / 2)

where c is the column's present coefficient. FoBa-obj asks for -min phi, removal for phi(-c).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forback.core.types import Floats
from forback.designs.entries import Chunk
from forback.objectives.linear.losses import Loss
from forback.solvers.linalg import TINY
from forback.solvers.line_search import minimisers
from forback.solvers.newton import TRUST


@dataclass(frozen=True, slots=True)
class Columns:
    """Some columns of a design together with what phi needs to know about each row."""

    loss: Loss
    chunk: Chunk
    y: Floats
    weights: Floats
    eta: Floats
    ridge: Floats  #: per column
    coef: Floats  #: per column

    def change(self, step: Floats) -> Floats:
        """Phi at `step`, one per column."""
        chunk, eta, y = self.chunk, self.chunk.per_row(self.eta), self.chunk.per_row(self.y)
        moved = eta + chunk.per_column(step) * chunk.values
        difference = self.loss.value(moved, y) - self.loss.value(eta, y)
        total = chunk.sum(chunk.per_row(self.weights) * difference)
        return total + self.ridge * step * (self.coef + 0.5 * step)

    def slope_and_curvature(self, step: Floats) -> tuple[Floats, Floats]:
        """Phi' and phi'' at `step`; overflow reads as a slope that points back towards zero."""
        chunk, y = self.chunk, self.chunk.per_row(self.y)
        moved = chunk.per_row(self.eta) + chunk.per_column(step) * chunk.values
        weighted = chunk.per_row(self.weights) * chunk.values
        with np.errstate(over="ignore", invalid="ignore"):
            slope = chunk.sum(weighted * self.loss.d1(moved, y))
            squares = weighted * chunk.values
            curvature = chunk.sum(squares * self.loss.d2(moved, y))
            # Where all is straight, as if it were bent by a hair.
            lifted = self.loss.newton_floor * chunk.sum(squares)
            curvature = np.where(curvature == 0.0, lifted, curvature)
        broken = ~(np.isfinite(slope) & np.isfinite(curvature))
        slope = np.where(broken, np.copysign(np.inf, step), slope + self.ridge * (self.coef + step))
        return slope, np.where(broken, np.inf, curvature + self.ridge)

    def only(self, columns: np.ndarray) -> Columns:
        """The same for some of the columns."""
        return Columns(
            self.loss,
            self.chunk.only(columns),
            self.y,
            self.weights,
            self.eta,
            self.ridge[columns],
            self.coef[columns],
        )

    def largest_decrease(self, negligible: float) -> Floats:
        """-min phi for each column, by Newton's method kept inside a bracket of the minimum."""
        longest = np.full(len(self.ridge), np.inf)
        if self.loss.saturates:  # exponentials are not trusted far from here
            longest = TRUST / np.maximum(self.chunk.largest(), TINY)
        step = minimisers(self, longest, negligible)
        return np.maximum(-self.change(step), 0.0)
