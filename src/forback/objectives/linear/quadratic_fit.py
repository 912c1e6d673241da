"""Fits of least squares: by Cholesky's method, and from moments where p is small against n."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from forback.core.objective import Objective
from forback.core.point import Point
from forback.core.status import Status
from forback.core.tolerances import NEGLIGIBLE
from forback.core.types import Floats, Ints
from forback.objectives.linear.data import LinearData
from forback.objectives.linear.fit import NewtonFit, Task
from forback.objectives.linear.rows import Rows
from forback.solvers.linalg import factor
from forback.solvers.newton import Minimum, State

#: Up to this many columns X'X is formed: a product of matrices, so it costs a few passes over X.
MAX_MOMENT_COLUMNS = 256

#: For fewer rows than columns too, up to so many products of two numbers: the time of a few fits.
MAX_MOMENT_PRODUCTS = 1 << 22

#: A column that varies by less than this fraction of its mean varies by rounding.
CONSTANT_RTOL = 1e-13

#: Squared pivots below which coefficients by Cholesky's method lose digits that matter: of a fit
#: that a gradient checks, and of one from moments.
MIN_PIVOT = 1e-6
MIN_PIVOT_OF_MOMENTS = 1e-8

#: Moments do not resolve a fit that leaves less than this fraction of y'y.
MIN_MOMENT_RESIDUAL = 1e-6


class CholeskyFit(NewtonFit):
    """Least squares by Cholesky's method; by Newton's where columns are too collinear for that."""

    def minimise(self, owner: Objective, support: Ints, start: Point | None) -> Point:
        """Return the minimiser on a support."""
        task = self.task(owner, support, start)
        minimum = self._by_factor(task)
        if minimum is None:
            found = self.by_steps(task)
            # Eta once more, without what it collected on the way: `by_products` relies on how it is
            # rounded.
            minimum = found._replace(state=task.problem.at(found.state.coef))
        return self.point(owner, task, minimum)

    def _by_factor(self, task: Task) -> Minimum | None:
        data = self.data
        block = task.problem.block
        ridge = task.problem.ridge
        if block.rows is not None or len(ridge) == 0:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            if task.hessian is None:
                hessian = block.sandwich(data.weights) + np.diag(ridge)
            else:
                hessian = task.problem.bordered(task.hessian, task.places, data.weights)
        solve = factor(hessian, least_pivot=MIN_PIVOT)
        if solve is None:
            return None
        coef = solve(block.back_project(self._target))
        for last in (False, False, True):  # two more for columns that are close to collinear
            eta = block.predict(coef) + data.offset
            misfit = eta - data.y
            rows = Rows(eta, data.weights * misfit, data.weights)
            if data.is_far_from_zero:
                rows = rows.levelled()
            gradient = block.back_project(rows.residual) + ridge * coef
            value = 0.5 * float(rows.residual @ misfit + (ridge * coef) @ coef)
            step = solve(gradient)
            # The scale is that of y, and where one column explains nearly all of it too coarse.
            close = last or float(gradient @ step) <= NEGLIGIBLE * value
            if close and (np.abs(gradient) <= data.tol * task.scale).all():
                return Minimum(State(coef, value, gradient, rows), Status.CONVERGED, hessian)
            coef = coef - step
        return None

    @cached_property
    def _target(self) -> Floats:
        return np.asarray(self.data.weights * (self.data.y - self.data.offset))


@final
class MomentFit(CholeskyFit):
    """Least squares from X'X and X'y; by Cholesky's method where these say too little."""

    def minimise(self, owner: Objective, support: Ints, start: Point | None) -> Point:
        """Return the minimiser on a support."""
        columns = self.data.columns_of(support)
        moments = self._moments
        whole = len(support) - len(columns) == self.data.fit_intercept
        found = moments.solve(columns) if moments is not None and whole else None
        if moments is None or found is None:
            return super().minimise(owner, support, start)
        coef, value = found
        if self.data.fit_intercept:
            coef = np.append(coef, moments.shift - moments.mean[columns] @ coef)
        return Point(support, coef, value, cache=MomentCache(owner, moments))

    @cached_property
    def _moments(self) -> Moments | None:
        """X'X and X'y; None where they overflow."""
        data = self.data
        design = data.design
        mean = np.zeros(data.n_candidates)
        shift = 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            response = data.y - data.offset
            raw = design.gram(data.weights)
            if data.fit_intercept:
                mean = design.back_project(data.weights)
                shift = float(data.weights @ response)
            weighted = data.weights * (response - shift)
            second = raw - np.outer(mean, mean)
            first = design.back_project(weighted) - mean * weighted.sum()
            # Where the mean exceeds the spread by far, the difference is rounded so much that
            # copies of one column no longer tie.
            sound = np.diag(second) > 0.1 * np.diag(raw)
            if not sound.all():
                centred = design.centred_moments(data.weights, weighted, mean)
                if centred is not None:
                    second, first = centred
                    sound = np.diag(second) > (CONSTANT_RTOL * mean) ** 2
            second.flat[:: len(second) + 1] += data.ridge  # the diagonal
            total = float(weighted @ (response - shift))
        if not (np.isfinite(second).all() and np.isfinite(first).all() and np.isfinite(total)):
            return None
        curvatures = np.append(np.diag(second) + mean**2, 1.0)
        return Moments(first, second, total, mean, shift, sound, curvatures)


def choose_fits(data: LinearData) -> type[NewtonFit]:
    """Return the quickest way to fit: moments and Cholesky's method are for the squared loss."""
    n, p = data.design.shape
    if not data.is_squared:
        return NewtonFit
    pays = p <= MAX_MOMENT_COLUMNS and (n > p or n * p * p <= MAX_MOMENT_PRODUCTS)
    return MomentFit if pays and data.precision == "double" else CholeskyFit


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """All that least squares needs to know about the data, once p x p is small.

    With an intercept they are centred, which takes it out of the problem.

    Attributes
    ----------
    first : Floats
        X'y.
    second : Floats
        X'X, with the ridge.
    total : float
        Y'y.
    mean : Floats
    shift : float
        The mean of y.
    sound : NDArray[np.bool_]
        The columns of which X'X says enough.
    curvatures : Floats
        Along each coefficient while the others, and the intercept, stay.
    """

    first: Floats
    second: Floats
    total: float
    mean: Floats
    shift: float
    sound: NDArray[np.bool_]
    curvatures: Floats

    def solve(self, columns: Ints) -> tuple[Floats, float] | None:
        """Return the best coefficients of some columns and Q there, unless moments say too little.

        They do where columns are nearly collinear, and where a fit leaves next to nothing of y.
        """
        if not self.sound[columns].all():
            return None
        own = self.second[columns[:, None], columns]
        coef = np.zeros(0)
        if len(columns):
            solve = factor(own, least_pivot=MIN_PIVOT_OF_MOMENTS)
            if solve is None:
                return None
            coef = solve(self.first[columns])
        value = 0.5 * self.total + float(coef @ (0.5 * (own @ coef) - self.first[columns]))
        return (coef, value) if value > 0.5 * MIN_MOMENT_RESIDUAL * self.total else None

    def gradient(self, columns: Ints, coef: Floats) -> Floats:
        """Return the gradient over all columns."""
        return np.asarray(coef @ self.second[columns] - self.first)


@dataclass(frozen=True, slots=True)
class MomentCache:
    """What a point made of moments carries along."""

    owner: Objective
    moments: Moments
