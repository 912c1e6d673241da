"""What may change places in a softmax regression: a quadratic model that K classes share.

Near a point the Hessian is close to the product of two small matrices: second moments of columns,
weighted by how undecided each row is, and the mean curvature of the classes. In coordinates in
which the latter is the identity, that makes K least squares problems with one and the same matrix
of moments. It says where to look, nothing more: what looks best is refitted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forback.core.point import Point
from forback.core.types import Floats, Ints
from forback.objectives.softmax.data import SoftmaxData
from forback.objectives.softmax.problem import Coefficients
from forback.solvers.quadratic_model import Outside, QuadraticModel

#: The share of the columns inside that may leave before the next fit.
SHARE_AT_ONCE = 0.1

#: Directions of the classes with less than this share of the largest curvature are flat.
FLAT_RTOL = 1e-10


@dataclass(frozen=True)
class Shared:
    """The two factors of the Hessian at a point.

    Attributes
    ----------
    data : SoftmaxData
    curvature : float array of length n
        How undecided each row is, times its weight.
    root : float array of shape (K, K)
        The root of the mean curvature of the classes.
    unroot : float array of shape (K, K)
        Its inverse, where there is one.
    ridge : float
        What a penalty of 1 comes to in units of this curvature.
    """

    data: SoftmaxData
    curvature: Floats
    root: Floats
    unroot: Floats
    ridge: float

    @classmethod
    def at(cls, data: SoftmaxData, probabilities: Floats) -> Shared:
        """Work them out where the model predicts some probabilities, n x K."""
        weighted = data.weights[:, None] * probabilities
        mean = np.diag(weighted.sum(axis=0)) - probabilities.T @ weighted
        values, vectors = np.linalg.eigh(mean)
        bent = values > FLAT_RTOL * max(values[-1], np.finfo(float).tiny)
        roots = np.sqrt(np.where(bent, values, 0.0))
        inverse = np.divide(1.0, roots, out=np.zeros_like(roots), where=bent)
        undecided = data.weights * (1.0 - np.square(probabilities).sum(axis=1))
        total = max(float(undecided.sum()), np.finfo(float).tiny)
        return cls(
            data,
            undecided / total,
            (vectors * roots) @ vectors.T,
            (vectors * inverse) @ vectors.T,
            max(1, int(bent.sum())) / total,
        )

    def inside(self, point: Point) -> tuple[Ints, QuadraticModel]:
        """Return the columns of a point, an intercept the last, and the model of them."""
        own = Coefficients.of(point.support, self.data.n_classes)
        block = self.data.restricted(point.support).block
        gram = block.T @ (self.curvature[:, None] * block)
        gram[np.diag_indices_from(gram)] += self.ridge * self._penalty(own.columns)
        return own.columns, QuadraticModel.of(own.table(point.coef) @ self.root, gram)

    def outside(self, point: Point, slopes: Floats, columns: Ints) -> Outside:
        """Return what columns outside look like; slopes are p x K."""
        block = self.data.restricted(point.support).block
        cross = self.data.design.back_project_all(self.curvature[:, None] * block)
        own = self.squares()[columns]
        return Outside(slopes[columns] @ self.unroot, cross[columns].T, own)

    def squares(self) -> Floats:
        """Return the second moment of every column."""
        squares = self.data.design.three_sums(self.curvature, self.curvature)[1]
        return np.asarray(squares + self.ridge * self.data.ridge)

    def promises(self, slopes: Floats) -> Floats:
        """Return half of slope^2 / curvature for every coefficient, p x K."""
        bends = self.squares()[:, None] * np.square(self.root).sum(axis=0)
        falls: Floats = np.zeros_like(slopes)
        np.divide(0.5 * slopes * slopes, bends, out=falls, where=bends > 0.0)
        return falls

    def _penalty(self, columns: Ints) -> Floats:
        return np.append(self.data.ridge, 0.0)[columns]


def exchange_gains(shared: Shared, point: Point, slopes: Floats, pair: tuple[Ints, Ints]) -> Floats:
    """Return how far Q falls, by the model, when one column gives way to another."""
    columns, model = shared.inside(point)
    places = list(np.searchsorted(columns, pair[0])[:, None])
    return model.exchange_gains(places, shared.outside(point, slopes, pair[1]))


def removal_order(shared: Shared, point: Point, leaving: Ints, most: int) -> Ints:
    """Return the places of the columns that leave first, as many as can be told before a fit."""
    columns, model = shared.inside(point)
    most = max(1, min(most, int(SHARE_AT_ONCE * len(leaving))))
    return np.array(model.removal_order(list(np.searchsorted(columns, leaving)[:, None]), most))
