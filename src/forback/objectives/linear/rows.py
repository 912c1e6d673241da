"""Rows: a linear predictor with the derivatives of the loss, one entry per row of X."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forback.core.tolerances import EPS
from forback.core.types import Floats
from forback.designs.design import Block
from forback.solvers.kernels.vectors import sum_of_sizes

#: What eta may be off by, relative to the sum of its terms: 16 units in the last place.
ETA_RTOL = 16.0 * EPS


class Rows(NamedTuple):
    """A linear predictor, and the weighted derivatives of the loss there.

    Attributes
    ----------
    eta : Floats
    residual : Floats
        W * loss'.
    curvature : Floats
        W * loss''.
    """

    eta: Floats
    residual: Floats
    curvature: Floats

    @classmethod
    def beside(cls, eta: Floats) -> Rows:
        """Make room for the derivatives at eta."""
        return cls(eta, np.empty_like(eta), np.empty_like(eta))

    def of(self, block: Block) -> Rows:
        """Keep the rows of a block."""
        return self if block.rows is None else Rows(*map(block.take, self))

    def levelled(self) -> Rows:
        """Add a constant to eta such that residuals add up to zero.

        They do at a minimum with an intercept, up to the accuracy of the fit, or of the intercept
        as a number. A column of 1e8 multiplies what is left of their sum by as much.
        """
        total = self.curvature.sum()
        shift = -self.residual.sum() / total if total > 0.0 else 0.0
        return Rows(self.eta + shift, self.residual + shift * self.curvature, self.curvature)

    def rounding(self, size: float) -> float:
        """Return what rounding can do to the mean loss where each eta adds up terms of some size.

        It moves the loss by its slope there, and by its curvature where slopes vanish.
        """
        off = ETA_RTOL * size
        return off * sum_of_sizes(self.residual) + 0.5 * off * off * sum_of_sizes(self.curvature)
