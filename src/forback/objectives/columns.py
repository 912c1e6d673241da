"""One-dimensional problems, many columns at once.

With the fit at eta and a column x, phi(a) is the change of Q when a * x is added to eta:

    phi(a) = sum_i w_i [loss(eta_i + a x_i, y_i) - loss(eta_i, y_i)] + ridge (c a + a^2 / 2)

where c is the column's present coefficient. FoBa-obj asks for -min phi, removal for phi(-c).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forback.numerics import TRUST
from forback.objectives.chunks import Chunk
from forback.objectives.losses import Loss
from forback.protocols import Floats

#: Newton's method ends when its step is this small against the way it came: the decrease is then
#: exact to about the square of it.
PRECISION = 1e-7
MAX_ITER = 200


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
            bend = np.maximum(self.loss.d2(moved, y), self.loss.newton_floor)
            curvature = chunk.sum(weighted * chunk.values * bend)
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
        step = self._minimisers(negligible)
        return np.maximum(-self.change(step), 0.0)

    def _minimisers(self, negligible: float) -> Floats:
        count = len(self.ridge)
        columns, active = self, np.arange(count)
        answer, step = np.zeros(count), np.zeros(count)
        low, high = np.full(count, -np.inf), np.full(count, np.inf)
        # Exponentials are not trusted far from here, and straight stretches say nothing about how
        # far it is: a step cut short, or one that hardly changed the slope, is followed by a
        # longer one.
        longest = np.full(count, np.inf)
        if self.loss.saturates:
            longest = TRUST / np.maximum(self.chunk.largest(), 1e-300)
        stretch, before = np.ones(count), np.zeros(count)
        for _ in range(MAX_ITER):
            slope, curvature = columns.slope_and_curvature(step)
            low, high = np.where(slope < 0, step, low), np.where(slope > 0, step, high)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                newton = np.where(slope == 0, 0.0, -slope / curvature)
                expected = np.where(slope == 0, 0.0, np.abs(0.5 * slope * newton))
            straight = (slope != 0) & (np.sign(slope) == np.sign(before))
            straight &= np.abs(slope) > 0.5 * np.abs(before)
            stretch, before = np.where(straight, 4.0 * stretch, 1.0), slope
            with np.errstate(over="ignore"):
                following = step + np.clip(stretch * newton, -longest, longest)
                longest = np.where(np.abs(newton) > longest, 4.0 * longest, longest)
            # Outside the bracket, or overflown: the middle of the bracket, which is then finite.
            outside = ~((low < following) & (following < high))
            with np.errstate(invalid="ignore"):
                following = np.where(outside, 0.5 * (low + high), following)
            done = (np.abs(newton) <= PRECISION * np.abs(step)) | (expected <= 1e-4 * negligible)
            done |= ~np.isfinite(following) | (following == step)
            answer[active] = step
            if done.all():
                break
            keep = np.flatnonzero(~done)
            if len(keep) < len(active):
                columns, active = columns.only(keep), active[keep]
                low, high, longest = low[keep], high[keep], longest[keep]
                stretch, before = stretch[keep], before[keep]
            step = following[keep]
        return answer
