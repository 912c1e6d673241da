"""What may change places in a generalised linear model, seen from a fit up to second order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from forback.core.blocks import Blocks
from forback.core.objective import Scores
from forback.core.point import Point
from forback.core.types import Floats, Ints
from forback.objectives.linear.data import LinearData
from forback.objectives.linear.fit import GlmCache
from forback.objectives.linear.quadratic_fit import MomentCache, Moments
from forback.objectives.linear.rows import Rows
from forback.solvers.quadratic_model import Outside, QuadraticModel

if TYPE_CHECKING:
    from forback.objectives.linear.objective import GLM

#: Up to so many numbers a run of least squares keeps of X'WX.
MAX_KEPT = 1 << 24

#: Where Q is not quadratic, at most this share of what is in leaves before the next fit.
SHARE_AT_ONCE = 0.1


class Neighbourhood:
    """A generalised linear model around a point: everything of second order that exchanges need."""

    def __init__(self, model: GLM, point: Point) -> None:
        self.data: LinearData = model.data
        self.point = point
        self._slopes = model.gradient
        self._made = model.own_cache(point, MomentCache)
        self._cache = model.own_cache(point, GlmCache)
        self._rows = None if self._made else self._bent(model._rows(point))
        self._units = np.ones(model.dim)
        if not self._made and self.data.is_far_from_zero and self.data.has_intercept(point.support):
            self.data, self._units = self.data.standardized
            self._cache = None  # which is of columns as they are

    def _bent(self, rows: Rows) -> Rows:
        """The rows with their curvature lifted to where Newton's method has it."""
        floor = self.data.loss.newton_floor * self.data.weights
        return rows._replace(curvature=np.maximum(rows.curvature, floor))

    @property
    def support(self) -> Ints:
        """The coordinates that the model is about: moments have the intercept taken out."""
        return self.data.columns_of(self.point.support) if self._made else self.point.support

    def model(self, *, rough: bool = False) -> QuadraticModel:
        """Return the model of what is inside; where rough will do, from the last Newton step."""
        support = self.support
        coef = self.point.coef[: len(support)] * self._units[support]
        if self._made:
            return QuadraticModel.of(coef, self._made.moments.second[support[:, None], support])
        hessian = None
        if self._cache is not None and (rough or self.data.is_quadratic):
            hessian = self._cache.hessian
        if hessian is None:
            block = self.data.block(support) if self._cache is None else self._cache.block
            assert self._rows is not None
            hessian = block.sandwich(block.take(self._rows.curvature))
            hessian = hessian + np.diag(self.data.full_ridge[support])
        return QuadraticModel.of(coef, hessian)

    def outside(self, blocks: Blocks) -> Outside:
        """Return what blocks outside look like from here."""
        slopes = (self._slopes(self.point) / self._units)[blocks.coordinates]
        if self._made:
            second = self._made.moments.second
            cross = second[self.support[:, None], blocks.coordinates]
            return Outside(slopes, cross, self._own_of_moments(self._made.moments, blocks))
        everything = self._cross()
        return Outside(slopes, everything[:, blocks.coordinates], self._own(blocks))

    def _own_of_moments(self, moments: Moments, blocks: Blocks) -> Any:
        if blocks.are_single:
            return moments.second.diagonal()[blocks.coordinates]
        return [moments.second[block[:, None], block] for block in blocks]

    def _own(self, blocks: Blocks) -> Any:
        """The Hessian along each block."""
        assert self._rows is not None
        data, bends = self.data, self._rows.curvature
        if not blocks.are_single:
            ridge = [np.diag(data.ridge[block]) for block in blocks]
            own = (data.block(block) for block in blocks)
            return [
                part.sandwich(part.take(bends)) + more
                for part, more in zip(own, ridge, strict=True)
            ]
        if data.is_quadratic:
            return data.curvatures[blocks.coordinates]
        squares = data.design.three_sums(bends, bends)[1]
        return (squares + data.ridge)[blocks.coordinates]

    def _cross(self) -> Floats:
        """The Hessian between the support and all columns."""
        run = {} if self._cache is None or not self.data.is_quadratic else self._cache.run
        kept: dict[int, Floats] = run.get("cross", {})
        missing = [place for place, j in enumerate(self.support.tolist()) if j not in kept]
        if missing:
            products = self._products(np.array(missing))
            own = dict(zip(self.support[missing].tolist(), products, strict=True))
            now = {j: kept[j] for j in self.support.tolist() if j in kept} | own
            if (len(kept) + len(own)) * self.data.n_candidates <= MAX_KEPT:
                now = kept | own
            kept = run["cross"] = now  # never changed, since another thread may be reading
        return np.stack([kept[j] for j in self.support.tolist()] or [np.zeros(0)])

    def _products(self, places: Ints) -> Floats:
        """Some rows of that."""
        assert self._rows is not None
        data = self.data
        block = data.block(self.support) if self._cache is None else self._cache.block
        weighted = np.zeros((data.design.shape[0], len(places)))
        rows = slice(None) if block.rows is None else block.rows
        own = np.column_stack([block.column(int(place)) for place in places])
        weighted[rows] = own * block.take(self._rows.curvature)[:, None]
        return data.design.back_project_all(weighted).T


def exchange_scores(model: GLM, point: Point, inside: Blocks, outside: Blocks) -> Scores:
    """Return how far Q falls by each exchange: exact for a quadratic Q, an estimate for any other.

    Parameters
    ----------
    model : GLM
    point : Point
    inside, outside : Blocks

    Returns
    -------
    Scores
    """
    around = Neighbourhood(model, point)
    places = [np.searchsorted(around.support, block) for block in inside]
    falls = around.model().exchange_gains(places, around.outside(outside))
    return Scores(falls, falls.size if model.data.is_quadratic else 0)


def removal_order(model: GLM, point: Point, blocks: Blocks, most: int) -> Ints:
    """Return the places of the blocks that leave first, as many as can be told before a fit.

    Parameters
    ----------
    model : GLM
    point : Point
    blocks : Blocks
    most : int

    Returns
    -------
    int array
    """
    around = Neighbourhood(model, point)
    places = [np.searchsorted(around.support, block) for block in blocks]
    if not model.data.is_quadratic:
        most = max(1, min(most, int(SHARE_AT_ONCE * len(places))))
    return np.array(around.model(rough=True).removal_order(places, most))


def promises(model: GLM, point: Point, blocks: Blocks) -> Floats:
    """Return half of slope^2 / curvature of blocks outside, summed over the columns of each.

    Parameters
    ----------
    model : GLM
    point : Point
    blocks : Blocks

    Returns
    -------
    float array
    """
    data = model.data
    if data.is_quadratic:
        slopes, bends = model.gradient(point)[: data.n_candidates], data.curvatures
    else:
        rows = model._rows(point)
        slopes, squares, _ = data.design.three_sums(rows.residual, rows.curvature)
        bends = squares + data.ridge
    falls = np.zeros_like(slopes)
    np.divide(0.5 * slopes * slopes, bends, out=falls, where=bends > 0.0)
    return blocks.sums(falls)
