"""Slopes where they may be the largest: by a full pass over X, in single precision, or from X'WX.

A product of X with one vector waits for memory; with eight it takes far less than eightfold.
So whenever a column of X'WX is needed, those of the features most likely to be next come with it,
and most steps of least squares need no pass at all. What such a slope may be wrong by is bounded,
and the few that may be the largest are computed once more from the residual.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import final

import numpy as np

from forback.core.point import Point
from forback.core.types import Floats, Ints
from forback.designs.dense_block import roomy
from forback.designs.single_precision import settled
from forback.objectives.linear.data import LinearData
from forback.objectives.linear.fit import GlmCache
from forback.solvers.products import product

#: From this many entries of X on, a pass is bound by memory, and several products at once pay.
MIN_ENTRIES_FOR_PRODUCTS = 1 << 21

#: How many columns of X'WX a pass gives.
COLUMNS_PER_PASS = 8

#: How many passes' worth of columns that were not asked for are kept.
PASSES_KEPT = 2

#: A pass for several columns must replace at least this many for a single vector, on average.
MIN_COLUMNS_USED_PER_PASS = 3

#: Column norms within these bounds neither overflow nor vanish when squared.
SMALLEST_NORM = 1e-100
LARGEST_NORM = 1e100

#: A gradient over all columns, exact where it may be the largest, and how many entries are exact.
Leading = tuple[Floats, int]

#: A way to the largest entries of the gradient at a fitted point. It gives the gradient over all
#: columns, exact where its absolute value times a weight may be the largest among columns outside;
#: elsewhere it is a bound away from zero. None: a full pass over X does no worse.
FindLeading = Callable[[LinearData, Point, GlmCache, Floats], Leading | None]


def by_passes(data: LinearData, point: Point, cache: GlmCache, weight: Floats) -> None:
    """Leave it to a full pass over X for every gradient."""


def by_single_precision(
    data: LinearData, point: Point, cache: GlmCache, weight: Floats
) -> Leading | None:
    """Pass over a copy of X in single precision, and compute the few best once more in double."""
    assert data.single_precision is not None
    columns = data.columns_of(point.support)
    return data.single_precision.leading(cache.rows.residual, weight, columns)


def by_products(
    data: LinearData,
    point: Point,
    cache: GlmCache,
    weight: Floats,
    *,
    columns_per_pass: int = COLUMNS_PER_PASS,
    min_used: int = MIN_COLUMNS_USED_PER_PASS,
) -> Leading | None:
    """Find slopes of least squares from columns of X'WX, which a run collects as it goes."""
    table: GramTable | None = cache.run.get("gram")
    if table is None:  # another thread may have gone on from this point meanwhile
        table = cache.run.setdefault("gram", GramTable(data, columns_per_pass, min_used))
    columns = data.columns_of(point.support)
    coef, intercept = np.split(point.coef, [len(columns)])
    return table.leading(cache.rows.residual, weight, columns, coef, intercept)


def choose_slopes(data: LinearData) -> FindLeading:
    """Return the quickest way to the largest slopes."""
    if data.precision == "mixed":
        return by_single_precision
    n, p = data.design.shape
    large = n * p >= MIN_ENTRIES_FOR_PRODUCTS and data.design.has_quick_products
    return by_products if data.is_squared and large else by_passes


@final
class GramTable:
    """What one run of least squares has found out about X'WX: k columns and two batches of it."""

    def __init__(self, data: LinearData, columns_per_pass: int, min_used: int) -> None:
        design = data.design
        self._design = design
        self._weights = data.weights
        self._columns_per_pass = columns_per_pass
        self._min_used = min_used
        self._norms = np.sqrt(design.stored_squares(data.weights)) * (1.0 + 1e-6)
        self._table = np.empty((0, data.n_candidates))  # products of X with the fixed and chosen
        self._lengths = np.empty(0)  # the norms of those
        self._place: dict[int, int] = {}
        self._batches: deque[dict[int, Floats]] = deque(maxlen=PASSES_KEPT)
        self._passes = 0
        self._promise = np.zeros(data.n_candidates)
        self._lock = Lock()  # two threads may go on from one point
        ones = np.ones((int(data.fit_intercept), len(data.y)))
        # What is rounded on the way.
        sizes = np.vstack([np.abs(data.y) + np.abs(data.offset), ones])
        lengths = np.sqrt((sizes**2) @ data.weights) * (1.0 + 1e-6)
        tiny = self._norms < SMALLEST_NORM
        vanishing = tiny.any() and design.largest[tiny].any()  # beyond columns of zeros
        self._pays = not (vanishing or max(self._norms.max(), lengths.max()) >= LARGEST_NORM)
        if self._pays:
            fixed = np.vstack([data.y - data.offset, ones]) * data.weights
            self._append(design.back_project_all(fixed.T).T, lengths)

    def leading(
        self, residual: Floats, weight: Floats, columns: Ints, coef: Floats, intercept: Floats
    ) -> Leading | None:
        """Return X' residual, exact wherever its size times `weight` may be the largest.

        Elsewhere it is a bound away from zero; columns inside, with their coefficients, do not
        count. Also returns how many are exact. None where a pass for the residual is better.
        """
        with self._lock:
            found = None
            if self._pays and self._learn(columns):
                found = self._from_table(residual, weight, columns, coef, intercept)
            if found is None:
                self._pays = False
                self._table = np.empty((0, 0))
                self._batches.clear()
            return found

    def known(self, wanted: list[int]) -> dict[int, Floats]:
        """Return what is known by now of X'WX for some columns."""
        with self._lock:
            if not self._pays:
                return {}
            found = {j: rows[j] for rows in self._batches for j in wanted if j in rows}
            return found | {j: self._table[self._place[j]] for j in wanted if j in self._place}

    def _from_table(
        self, residual: Floats, weight: Floats, columns: Ints, coef: Floats, intercept: Floats
    ) -> Leading | None:
        factors = np.zeros(len(self._lengths))
        factors[0] = -1.0
        factors[1 : 1 + len(intercept)] = intercept
        factors[[self._place[j] for j in columns.tolist()]] = coef
        slopes = product(factors, self._table[: len(factors)])
        slopes[columns] = 0.0
        self._promise = np.abs(slopes) * weight
        # As many roundings in each sum; twice, because the residual is rounded as well.
        count = 2 * (len(residual) + len(factors) + 4)
        share = count * 2.0**-53 * float(np.abs(factors) @ self._lengths)
        return settled(self._design, residual, slopes, self._norms, share, 0.0, weight)

    def _learn(self, columns: Ints) -> bool:
        """See to it that the table has these columns of X'WX, if that still pays."""
        wanted = columns.tolist()
        for batch in self._batches:
            self._keep(wanted, batch)
        missing = [j for j in wanted if j not in self._place]
        if not missing:
            return True
        paid = len(self._place) >= self._min_used * self._passes
        if len(missing) > self._columns_per_pass or not paid:
            return False
        chosen = missing + self._likely(self._columns_per_pass - len(missing), missing)
        weighted = self._design.toarray(np.array(chosen)) * self._weights[:, None]
        products = self._design.back_project_all(weighted).T
        self._batches.append(dict(zip(chosen, products, strict=True)))
        self._keep(missing, self._batches[-1])
        self._passes += 1
        return True

    def _likely(self, count: int, missing: list[int]) -> list[int]:
        """The most promising columns of which nothing is known yet."""
        for held in (missing, self._place, *self._batches):
            self._promise[list(held)] = 0.0
        if not 0 < count < len(self._promise):
            return []
        likely = np.argpartition(-self._promise, count)[:count]
        return [j for j in likely.tolist() if self._promise[j] > 0.0]

    def _keep(self, wanted: list[int], batch: dict[int, Floats]) -> None:
        for j in wanted:
            if j in batch and j not in self._place:
                self._place[j] = len(self._lengths)
                self._append(batch[j], self._norms[j])

    def _append(self, products: Floats, lengths: Floats | float) -> None:
        used = len(self._lengths)
        p = self._design.shape[1]
        self._lengths = np.append(self._lengths, lengths)
        if len(self._lengths) > len(self._table):  # room costs nothing before it is written to
            wider = np.empty((roomy(len(self._lengths), p), p))
            wider[:used] = self._table[:used]
            self._table = wider
        self._table[used : len(self._lengths)] = products
