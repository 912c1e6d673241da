"""How far -log det Theta + tr(S Theta) + ridge falls or rises along single entries, all at once.

When theta_ij and theta_ji change by t, det Theta is multiplied by

    (1 + t (w + c)) (1 + t (w - c)),    w = W_ij,  c = sqrt(W_ii W_jj),

W being the inverse of Theta. Here everything is in units of c: w becomes a correlation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forback.core.types import Floats

#: Newton steps along a line. They converge quadratically; a few dozen are more than enough.
STEPS = 200


class Lines(NamedTuple):
    """One problem per entry, each in its own unit."""

    w: Floats  #: the correlation in W
    s: Floats  #: the same entry of S
    theta: Floats  #: what the entry is
    ridge: Floats

    def rise(self, t: Floats) -> Floats:
        """Q after a change of t minus Q before; infinite where Theta is not positive definite."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log1p(t * (self.w + 1.0)) + np.log1p(t * (self.w - 1.0))
            rise = 2.0 * t * self.s - logs + self.ridge * t * (self.theta + 0.5 * t)
        return np.where(np.isfinite(rise), rise, np.inf)

    def lowest(self) -> Floats:
        """Where Q is least along each line."""
        return self._ridged() if self.ridge.any() else self._plain()

    def _plain(self) -> Floats:
        """Without ridge: the smaller root of s d t^2 - (d + 2 s w) t + (w - s), d = 1 - w^2.

        Written so that nothing cancels: the denominator is positive.
        """
        w, s = self.w, self.s
        d = np.maximum((1.0 - w) * (1.0 + w), 0.0)
        below = d + 2.0 * s * w + np.sqrt(d * d + 4.0 * s * s)
        return np.divide(2.0 * (w - s), below, out=np.zeros_like(w), where=below > 0.0)

    def _ridged(self) -> Floats:
        """With ridge: Newton's method, its steps cut as befits a self-concordant function."""
        t = np.zeros_like(self.w)
        for _ in range(STEPS):
            left, right = (self.w + 1.0), (self.w - 1.0)
            left, right = left / (1.0 + t * left), right / (1.0 + t * right)
            slope = 2.0 * self.s - left - right + self.ridge * (self.theta + t)
            curvature = left * left + right * right + self.ridge
            decrement = np.abs(slope) / np.sqrt(curvature)
            # Below a quarter full steps converge; above, a cut one never leaves the domain.
            cut = np.where(decrement < 0.25, 1.0, 1.0 + decrement)
            t = t - slope / curvature / cut
            if decrement.max(initial=0.0) < 1e-12:
                break
        return t


def make_lines(w: Floats, a: Floats, b: Floats, s: Floats, theta: Floats, ridge: Floats) -> Lines:
    """The lines through entries w of W between diagonal entries a and b."""
    unit = np.sqrt(a) * np.sqrt(b)
    return Lines(w / unit, s / unit, theta * unit, ridge / unit / unit)
