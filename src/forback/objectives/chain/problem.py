"""Q of a chain on some of its coordinates: the problem that a fit solves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forback.core.objective import Objective
from forback.core.point import Point
from forback.core.status import Status
from forback.core.tolerances import MAX_ETA_STEP, SMALLEST_DIVISOR
from forback.core.types import Floats, Ints
from forback.objectives.chain.data import ChainData
from forback.objectives.chain.inference import Inference, forward_backward
from forback.objectives.chain.kernels.scaled import Counts
from forback.objectives.chain.layout import Coordinates
from forback.solvers.bfgs import descend, inverse_on
from forback.solvers.linalg import ridge_penalty

#: The least curvature that a fit starts from where there is no ridge.
MIN_START_CURVATURE = 1e-6

#: Of a feature that is never observed, a first step assumes that it is, at this share less than
#: expected: its weight would be infinite.
MAX_SLOPE_SHARE = 0.999

#: The inverse Hessian on no support.
NOTHING_LEARNT = (np.zeros((0, 0)), np.zeros(0, dtype=np.intp))

#: The ridge, for a feature of size 1, that holds back a weight without one.
RUNAWAY_RIDGE = 1e-12


@dataclass(frozen=True)
class ChainCache:
    """What a point of a chain carries along.

    Attributes
    ----------
    owner : Objective
    inference : Inference
    counts : Counts
        Expected.
    inverse : Floats
        The inverse Hessian learnt on the support.
    """

    owner: Objective
    inference: Inference
    counts: Counts
    inverse: Floats


class RestrictedChain:
    """Q as a function of some coordinates; the others stay where `base` has them."""

    def __init__(self, data: ChainData, own: Coordinates, base: Floats | None = None) -> None:
        self.data = data
        self.own = own
        self.support = own.support
        self._base = np.zeros(data.layout.dim) if base is None else base
        self._last: tuple[Inference, Counts] | None = None

    def at(self, coef: Floats) -> tuple[float, Floats]:
        """Return Q and its gradient over the coordinates."""
        data, support = self.data, self.support
        beta = self._base.copy()
        beta[support] = coef
        self._last = None  # its arrays serve again
        inference = forward_backward(data.sequences, data.layout.weights(beta))
        counts = inference.counts()
        self._last = inference, counts
        value = inference.log_z / data.sequences.n_steps - float(data.observed @ beta)
        slopes = self.own.means(counts) - data.observed[support] + data.ridge[support] * coef
        return value + ridge_penalty(data.ridge, beta), slopes

    def start_inverse(self, counts: Counts, learnt: tuple[Floats, Ints] = NOTHING_LEARNT) -> Floats:
        """Return an inverse Hessian to begin with, from what was learnt on another support.

        Of coordinates that are not in that, expected counts tell a rough diagonal.
        """
        ridge = np.maximum(self.data.ridge[self.support], MIN_START_CURVATURE)
        curvature = self.own.variances(counts) + ridge
        return inverse_on(*learnt, self.support, curvature)

    def minimise(self, start: Floats, inverse: Floats, owner: Objective) -> Point:
        """Return the point where Q is least.

        A weight without ridge that only gains by running away is held back by a tiny one.
        """
        data = self.data
        sizes = np.maximum(self.own.sizes, SMALLEST_DIVISOR)
        ridge = data.ridge[self.support]
        extra = np.where(ridge == 0.0, RUNAWAY_RIDGE * sizes**2, 0.0)

        def held_back(coef: Floats) -> tuple[float, Floats]:
            value, slopes = self.at(coef)
            return value + ridge_penalty(extra, coef), slopes + extra * coef

        found = descend(
            held_back,
            start,
            inverse,
            least=ridge + extra,
            steep=data.tol * data.steepest,
            unit=1.0,
            max_iter=data.max_iter,
            reach=MAX_ETA_STEP / sizes,
        )
        assert self._last is not None  # the last evaluation was made where the descent ended
        coef, status = found.place.coef, found.status
        runs_away = ((extra > 0.0) & (np.abs(coef) * sizes > MAX_ETA_STEP)).any()
        if status is Status.CONVERGED and runs_away:
            status = Status.NO_MINIMISER
        value = found.place.value - ridge_penalty(extra, coef)
        cache = ChainCache(owner, *self._last, found.inverse)
        note = status.note(max_iter=data.max_iter)
        return Point(self.support, coef, value, 0, cache, note, status)


def first_steps(slope: Floats, expected: Floats, curvature: Floats) -> Floats:
    """Return where the minimum along a coordinate may lie: Newton's step, in logarithms if long.

    A feature that is expected E and observed O times wants a weight near log(O / E).
    """
    curvature = np.maximum(curvature, MIN_START_CURVATURE)
    share = np.divide(slope, expected, out=np.zeros_like(slope), where=expected > 0.0)
    share = np.minimum(share, MAX_SLOPE_SHARE)
    return np.where(share != 0.0, np.log1p(-share) * expected, -slope) / curvature
