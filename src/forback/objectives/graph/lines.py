"""How far -log det Theta + tr(S Theta) + ridge falls or rises along single entries, all at once.

When theta_ij and theta_ji change by t, det Theta is multiplied by

    (1 + t (w + c)) (1 + t (w - c)),    w = W_ij,  c = sqrt(W_ii W_jj),

W being the inverse of Theta. Here everything is in units of c: w becomes a correlation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forback.core.types import Floats

#: Newton steps along a line, at most. They converge quadratically; a few dozen are enough.
MAX_LINE_STEPS = 200

#: Newton's method along a line ends at this decrement.
LINE_DECREMENT = 1e-12


class EdgeLines(NamedTuple):
    """One problem of one variable per entry, each in its own unit.

    Attributes
    ----------
    w : Floats
        The correlation in W.
    s : Floats
        The entry of S.
    theta : Floats
        The entry of Theta.
    ridge : Floats
    """

    w: Floats
    s: Floats
    theta: Floats
    ridge: Floats

    def rise(self, t: Floats) -> Floats:
        """Q after a change of t minus Q before; infinite where Theta is not positive definite."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log1p(t * (self.w + 1.0)) + np.log1p(t * (self.w - 1.0))
            rise = 2.0 * t * self.s - logs + self.ridge * t * (self.theta + 0.5 * t)
        return np.where(np.isfinite(rise), rise, np.inf)

    def lowest(self) -> Floats:
        """Where Q is least along each line."""
        return self._lowest_with_ridge() if self.ridge.any() else self._lowest_without_ridge()

    def _lowest_without_ridge(self) -> Floats:
        """The smaller root of s d t^2 - (d + 2 s w) t + (w - s), where d = 1 - w^2.

        Written so that nothing cancels: the denominator is positive.
        """
        w, s, _, _ = self
        d = np.maximum((1.0 - w) * (1.0 + w), 0.0)
        below = d + 2.0 * s * w + np.sqrt(d * d + 4.0 * s * s)
        return np.divide(2.0 * (w - s), below, out=np.zeros_like(w), where=below > 0.0)

    def _lowest_with_ridge(self) -> Floats:
        """By Newton's method, its steps cut as is right for a self-concordant function."""
        t = np.zeros_like(self.w)
        for _ in range(MAX_LINE_STEPS):
            left = (self.w + 1.0) / (1.0 + t * (self.w + 1.0))
            right = (self.w - 1.0) / (1.0 + t * (self.w - 1.0))
            slope = 2.0 * self.s - left - right + self.ridge * (self.theta + t)
            curvature = left * left + right * right + self.ridge
            decrement = np.abs(slope) / np.sqrt(curvature)
            # Below a quarter full steps converge; above, a cut one never leaves the domain.
            cut = np.where(decrement < 0.25, 1.0, 1.0 + decrement)
            t = t - slope / curvature / cut
            if decrement.max(initial=0.0) < LINE_DECREMENT:
                break
        return t
