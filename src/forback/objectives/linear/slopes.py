"""Slopes of least squares from columns of X'WX, several of which come with each pass over X.

A product of X with one vector waits for memory; with eight it takes far less than eightfold.
So whenever a column of X'WX is needed, those of the features most likely to be next come with it,
and most steps need no pass at all. What such a slope may be wrong by is bounded, and the few that
may be the largest are computed once more from the residual.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import TypeGuard

import numpy as np

from forback.core.types import Floats, Ints
from forback.designs.dense import Dense
from forback.designs.dense_block import roomy
from forback.designs.design import Design
from forback.designs.single_precision import settled
from forback.designs.standardized import Standardized

#: From this many entries of X on, a pass is bound by memory.
LARGE = 1 << 21

#: How many columns of X'WX a pass gives, and how many passes' worth are kept for later.
BATCH, KEPT = 8, 2

#: A pass for a whole batch must replace at least this many for a single vector, on average.
PAYS = 3

#: Column norms within these bounds neither overflow nor vanish when squared.
TINY, HUGE = 1e-100, 1e100


def suits(design: Design) -> TypeGuard[Dense | Standardized]:
    """Whether there may be something to gain: a large dense table, no column far from zero."""
    base = design.base if isinstance(design, Standardized) else design
    if not isinstance(base, Dense) or base.X.dtype != np.float64 or base.X.size < LARGE:
        return False
    return not (isinstance(design, Standardized) and design.is_far)


class Grams:
    """What one run of least squares has found out about X'WX: k columns and two batches of it."""

    def __init__(
        self,
        design: Dense | Standardized,
        weights: Floats,
        y: Floats,
        offset: Floats,
        intercept: bool,
    ) -> None:
        self._design = design
        self._weights = weights
        ones = np.ones((int(intercept), len(y)))
        self._fixed = np.vstack([y - offset, ones])
        self._sizes = np.vstack([np.abs(y) + np.abs(offset), ones])  # what is rounded on the way
        self._table = np.empty((0, design.shape[1]))  # products of X with what is fixed and chosen
        self._lengths = np.empty(0)  # the norms of those
        self._place: dict[int, int] = {}
        self._batches: deque[tuple[list[int], Floats]] = deque(maxlen=KEPT)
        self._passes = 0
        self._promise = np.zeros(design.shape[1])
        self._norms = np.empty(0)
        self._lock = Lock()  # two threads may go on from one point
        self._pays = True

    def leading(
        self, residual: Floats, weight: Floats, columns: Ints, coef: Floats, intercept: Floats
    ) -> tuple[Floats, int] | None:
        """X' residual, exact wherever its absolute value times `weight` may be the largest.

        Elsewhere it is a bound away from zero; columns inside, with their coefficients, do not
        count. Also returns how many are exact. None where a pass for the residual is better.
        """
        with self._lock:
            found = None
            if self._pays and self._begin() and self._learn(columns):
                found = self._from_table(residual, weight, columns, coef, intercept)
            if found is None:
                self._give_up()
            return found

    def _from_table(
        self, residual: Floats, weight: Floats, columns: Ints, coef: Floats, intercept: Floats
    ) -> tuple[Floats, int] | None:
        factors = np.zeros(len(self._lengths))
        factors[0], factors[1 : 1 + len(intercept)] = -1.0, intercept
        factors[[self._place[j] for j in columns.tolist()]] = coef
        slopes = factors @ self._table[: len(factors)]
        slopes[columns] = 0.0
        self._promise = np.abs(slopes) * weight
        # As many roundings in each sum; twice, because the residual is rounded as well.
        count = 2 * (len(residual) + len(factors) + 4)
        share = count * 2.0**-53 * float(np.abs(factors) @ self._lengths)
        return settled(self._design, residual, slopes, self._norms, share, 0.0, weight)

    def _give_up(self) -> None:
        self._pays = False
        self._table = np.empty((0, 0))
        self._batches.clear()

    def _begin(self) -> bool:
        """Before the first use: norms, and products with what is fixed; False if numbers forbid."""
        if len(self._norms):
            return True
        self._norms = np.sqrt(self._design.stored_squares(self._weights)) * (1.0 + 1e-6)
        lengths = np.sqrt((self._sizes**2) @ self._weights) * (1.0 + 1e-6)
        tiny = self._norms < TINY
        vanishing = tiny.any() and self._design.largest[tiny].any()  # beyond columns of zeros
        if vanishing or max(self._norms.max(), lengths.max()) >= HUGE:
            return False
        self._append(self._design.products(self._fixed * self._weights), lengths)
        return True

    def _learn(self, columns: Ints) -> bool:
        """See to it that the table has these columns of X'WX, if that still pays."""
        missing = [j for j in columns.tolist() if j not in self._place]
        for batch, products in self._batches:
            self._keep(missing, batch, products)
        missing = [j for j in missing if j not in self._place]
        if not missing:
            return True
        if len(missing) > BATCH or len(self._place) < PAYS * self._passes:
            return False
        batch = missing + self._likely(BATCH - len(missing), missing)
        weighted = self._design.toarray(np.array(batch)).T * self._weights
        products = self._design.products(weighted)
        self._batches.append((batch, products))
        self._keep(missing, batch, products)
        self._passes += 1
        return True

    def _likely(self, count: int, missing: list[int]) -> list[int]:
        """The most promising columns of which nothing is known yet."""
        for known in (missing, self._place, *(batch for batch, _ in self._batches)):
            self._promise[list(known)] = 0.0
        if not 0 < count < len(self._promise):
            return []
        likely = np.argpartition(-self._promise, count)[:count]
        return [j for j in likely.tolist() if self._promise[j] > 0.0]

    def _keep(self, wanted: list[int], batch: list[int], products: Floats) -> None:
        for j in set(wanted).intersection(batch):
            self._place[j] = len(self._lengths)
            self._append(products[batch.index(j)], self._norms[j])

    def _append(self, products: Floats, lengths: Floats | float) -> None:
        used, p = len(self._lengths), self._design.shape[1]
        self._lengths = np.append(self._lengths, lengths)
        if len(self._lengths) > len(self._table):  # room costs nothing before it is written to
            wider = np.empty((roomy(len(self._lengths), p), p))
            wider[:used] = self._table[:used]
            self._table = wider
        self._table[used : len(self._lengths)] = products
