"""Q of a chain on some of its coordinates: the problem that a fit solves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forback.core.objective import Objective
from forback.core.point import Point
from forback.core.status import Status
from forback.core.types import Floats, Ints
from forback.objectives.chain.data import ChainData
from forback.objectives.chain.inference import Inference, forward_backward
from forback.objectives.chain.kernels.scaled import Counts
from forback.objectives.chain.layout import Coordinates
from forback.solvers.bfgs import descend, inverse_on
from forback.solvers.linalg import TINY, ridge_penalty
from forback.solvers.newton import TRUST

#: The least curvature that a fit starts from where there is no ridge.
MIN_START_CURVATURE = 1e-6

#: The ridge, for a feature of size 1, that holds back a weight without one.
RUNAWAY_RIDGE = 1e-12


@dataclass(frozen=True)
class ChainCache:
    """What a point of a chain carries along."""

    owner: Objective
    inference: Inference
    counts: Counts  #: expected
    inverse: Floats  #: the inverse Hessian learnt on the support


class RestrictedChain:
    """Q as a function of the coordinates in `support`; the others stay where `base` has them."""

    def __init__(self, data: ChainData, support: Ints, base: Floats | None = None) -> None:
        self.data = data
        self.support = support
        self._coordinates = Coordinates(data.layout, support)
        self._base = np.zeros(data.layout.dim) if base is None else base
        self._last: tuple[Inference, Counts] | None = None

    def at(self, coef: Floats) -> tuple[float, Floats]:
        """Return Q and its gradient over the coordinates."""
        data, own = self.data, self.support
        beta = self._base.copy()
        beta[own] = coef
        self._last = None  # its arrays serve again
        inference = forward_backward(data.sequences, data.layout.weights(beta))
        counts = inference.counts()
        self._last = inference, counts
        value = inference.log_z / data.sequences.n_steps - float(data.observed @ beta)
        slopes = self._coordinates.means(counts) - data.observed[own] + data.ridge[own] * coef
        return value + ridge_penalty(data.ridge, beta), slopes

    def start_inverse(
        self, counts: Counts, learnt: Floats | None = None, learnt_on: Ints | None = None
    ) -> Floats:
        """Return an inverse Hessian to begin with: what another fit learnt, or a rough diagonal."""
        ridge = np.maximum(self.data.ridge[self.support], MIN_START_CURVATURE)
        curvature = self._coordinates.variances(counts) + ridge
        inverse = np.zeros((0, 0)) if learnt is None else learnt
        support = np.zeros(0, dtype=np.intp) if learnt_on is None else learnt_on
        return inverse_on(inverse, support, self.support, curvature)

    def minimise(self, start: Floats, inverse: Floats, owner: Objective) -> Point:
        """Return the point where Q is least.

        A weight without ridge that only gains by running away is held back by a tiny one.
        """
        data = self.data
        sizes = np.maximum(self._coordinates.sizes, TINY)
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
            reach=TRUST / sizes,
        )
        assert self._last is not None  # the last evaluation was made where the descent ended
        coef, status = found.place.coef, found.status
        runs_away = ((extra > 0.0) & (np.abs(coef) * sizes > TRUST)).any()
        if status is Status.CONVERGED and runs_away:
            status = Status.NO_MINIMISER
        value = found.place.value - ridge_penalty(extra, coef)
        cache = ChainCache(owner, *self._last, found.inverse)
        note = status.note(max_iter=data.max_iter)
        return Point(self.support, coef, value, 0, cache, note, status)
