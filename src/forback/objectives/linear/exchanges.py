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
from forback.objectives.linear.quadratic_fit import MIN_MOMENT_RESIDUAL, MomentCache, Moments
from forback.objectives.linear.rows import Rows
from forback.objectives.linear.slopes import GramTable
from forback.solvers.products import product
from forback.solvers.quadratic_model import Outside, QuadraticModel

if TYPE_CHECKING:
    from forback.objectives.linear.objective import GLM

#: Beyond so many numbers of X'WX a run of least squares keeps those of the last support only.
MAX_KEPT = 1 << 24

#: A pass over X replaces products of more columns than this, if only slopes are wanted.
MOST_NEW = 2

#: Where Q is not quadratic, at most this share of what is in leaves before the next fit.
SHARE_AT_ONCE = 0.1


class Neighbourhood:
    """A generalised linear model around a point: everything of second order that exchanges need."""

    def __init__(self, model: GLM, point: Point) -> None:
        self.data: LinearData = model.data
        self.point = point
        self._model = model
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
        where = blocks.coordinates
        if self._made:
            second = self._made.moments.second
            own = self._own_of_moments(self._made.moments, blocks)
            return Outside(self._gradient()[where], second[self.support[:, None], where], own)
        cross = self._cross(where)
        if self.data.is_quadratic:
            slopes, bends = self._slopes(where, cross), self.data.curvatures[where]
        else:
            slopes, bends = (part[where] for part in self.along_columns())
        return Outside(slopes, cross, bends if blocks.are_single else self._own(blocks))

    def along_columns(self) -> tuple[Floats, Floats]:
        """The gradient and the second derivative along every column."""
        data = self.data
        if data.is_quadratic:
            return self._slopes(np.arange(data.n_candidates)), data.curvatures
        assert self._rows is not None
        slopes, squares, _ = data.design.three_sums(self._rows.residual, self._rows.curvature)
        return slopes, squares + data.ridge

    def _slopes(self, where: Ints, cross: Floats | None = None) -> Floats:
        """The gradient over some columns, where Q is quadratic.

        Products of these columns with those inside tell without a pass over X, unless next to
        nothing is left of Q, which their rounding would drown.
        """
        sums = self._first_products()
        if sums is None or self._missing() > MOST_NEW:
            return self._gradient()[where]
        first, total = sums
        if self.point.value < MIN_MOMENT_RESIDUAL * total:
            return self._gradient()[where]
        cross = self._cross(where) if cross is None else cross
        return np.asarray(product(self.point.coef, cross) - first[where])

    def _gradient(self) -> Floats:
        everywhere = self._model.gradient(self.point) / self._units
        return np.asarray(everywhere[: self.data.n_candidates])

    def _own_of_moments(self, moments: Moments, blocks: Blocks) -> Any:
        if blocks.are_single:
            return moments.second.diagonal()[blocks.coordinates]
        return [moments.second[block[:, None], block] for block in blocks]

    def _own(self, blocks: Blocks) -> list[Floats]:
        """The Hessian of each block."""
        assert self._rows is not None
        data, bends = self.data, self._rows.curvature
        ridge = [np.diag(data.ridge[block]) for block in blocks]
        own = (data.block(block) for block in blocks)
        return [
            part.sandwich(part.take(bends)) + more for part, more in zip(own, ridge, strict=True)
        ]

    # What a run of least squares finds out about X'WX, and keeps ---------------------------------

    @property
    def _run(self) -> dict[str, Any] | None:
        """Where it is kept; None where there is nothing of the kind."""
        return self._cache.run if self._cache is not None and self.data.is_squared else None

    def _first_products(self) -> tuple[Floats, float] | None:
        """The products of all columns with the response, and half of that with itself."""
        if self._run is None:
            return None
        if "first" not in self._run:
            data = self.data
            response = data.y - data.offset
            weighted = data.weights * response
            sums = data.design.back_project(weighted), 0.5 * float(weighted @ response)
            self._run["first"] = sums
        found: tuple[Floats, float] = self._run["first"]
        return found

    def _missing(self) -> int:
        """How many columns inside have no products with all others yet."""
        kept = {} if self._run is None else self._known()
        return sum(j not in kept for j in self.support.tolist())

    def _known(self) -> dict[int, Floats]:
        """Products of columns with all others, by the first, that the run has by now."""
        assert self._run is not None
        kept: dict[int, Floats] = self._run.get("cross", {})
        table: GramTable | None = self._run.get("gram")
        wanted = [j for j in self.support.tolist() if j not in kept]
        return kept if table is None or not wanted else {**kept, **table.known(wanted)}

    def _cross(self, where: Ints) -> Floats:
        """The Hessian between the support and some columns."""
        if self._run is None:
            return self._products(np.arange(len(self.support))).take(where, axis=1)
        kept = self._known()
        wanted = self.support.tolist()
        missing = [place for place, j in enumerate(wanted) if j not in kept]
        if missing:
            products = self._products(np.array(missing))
            kept = {**kept, **dict(zip(self.support[missing].tolist(), products, strict=True))}
        if len(kept) * self.data.n_candidates > MAX_KEPT:
            kept = {j: kept[j] for j in wanted}
        self._run["cross"] = kept  # never changed, since another thread may be reading
        cross = np.empty((len(wanted), len(where)))
        for row, j in zip(cross, wanted, strict=True):
            kept[j].take(where, out=row, mode="clip")
        return cross

    def _products(self, places: Ints) -> Floats:
        """Some rows of that."""
        assert self._rows is not None
        data = self.data
        block = data.block(self.support) if self._cache is None else self._cache.block
        own = np.array([block.column(int(place)) for place in places])
        own = own.reshape(len(places), block.shape[0])  # also where there are none
        weighted = own * block.take(self._rows.curvature)
        if block.rows is not None:
            weighted = np.zeros((len(places), data.design.shape[0]))
            weighted[:, block.rows] = own * block.take(self._rows.curvature)
        return data.design.back_project_all(weighted.T).T


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
    places = inside.places_in(around.support)
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
    places = blocks.places_in(around.support)
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
    slopes, bends = Neighbourhood(model, point).along_columns()
    falls = np.zeros_like(slopes)
    np.divide(0.5 * slopes * slopes, bends, out=falls, where=bends > 0.0)
    return blocks.sums(falls)
