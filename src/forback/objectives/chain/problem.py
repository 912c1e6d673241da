"""Q of a chain on some of its coordinates: the problem that a fit solves."""

from __future__ import annotations

import numpy as np

from forback.core.types import Floats
from forback.objectives.chain.data import ChainData
from forback.objectives.chain.inference import Inference
from forback.objectives.chain.kernels.forward_backward import Counts
from forback.objectives.chain.layout import Coordinates, unpack
from forback.solvers.linalg import ridge_penalty

#: The least curvature that a fit starts from where there is no ridge.
MIN_START_CURVATURE = 1e-6

#: Of a feature that is never observed, a first step assumes that it is, at this share less than
#: expected: its weight would be infinite.
MAX_SLOPE_SHARE = 0.999


class RestrictedChain:
    """Q as a function of some coordinates; the others stay where `base` has them."""

    def __init__(self, data: ChainData, own: Coordinates, base: Floats | None = None) -> None:
        self.data = data
        self.own = own
        self.support = own.support
        self._base = np.zeros(data.dim) if base is None else base
        self.last: tuple[Inference, Counts] | None = None

    def at(self, coef: Floats) -> tuple[float, Floats]:
        """Return Q and its gradient over the coordinates."""
        data, support = self.data, self.support
        beta = self._base.copy()
        beta[support] = coef
        self.last = None  # its arrays serve again
        inference = Inference(data.sequences, unpack(beta, data.n_candidates, data.n_labels))
        counts = inference.counts()
        self.last = inference, counts
        value = inference.log_z / data.sequences.n_steps - float(data.observed @ beta)
        slopes = self.own.means(counts) - data.observed[support] + data.ridge[support] * coef
        return value + ridge_penalty(data.ridge, beta), slopes

    def curvature(self, counts: Counts) -> Floats:
        """Return a rough diagonal of the Hessian, as expected counts tell it."""
        ridge = np.maximum(self.data.ridge[self.support], MIN_START_CURVATURE)
        return self.own.variances(counts) + ridge


def first_steps(slope: Floats, expected: Floats, curvature: Floats) -> Floats:
    """Return where the minimum along a coordinate may lie: Newton's step, in logarithms if long.

    A feature that is expected E and observed O times wants a weight near log(O / E).
    """
    curvature = np.maximum(curvature, MIN_START_CURVATURE)
    share = np.divide(slope, expected, out=np.zeros_like(slope), where=expected > 0.0)
    share = np.minimum(share, MAX_SLOPE_SHARE)
    return np.where(share != 0.0, np.log1p(-share) * expected, -slope) / curvature
