"""Least squares: a GLM whose removal costs after refitting have a closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forback.core.blocks import Blocks
from forback.core.objective import Scores
from forback.core.point import Point
from forback.core.status import Status
from forback.core.tolerances import NEGLIGIBLE
from forback.core.types import Floats, Ints
from forback.designs.dense import Dense
from forback.designs.design import Known
from forback.objectives.linear.fit import Fit
from forback.objectives.linear.objective import GLM
from forback.objectives.linear.problem import EPS, ROUNDINGS, Restricted, Rows, bordered
from forback.objectives.linear.slopes import Grams, suits
from forback.solvers.linalg import factor, projection_costs
from forback.solvers.newton import Minimum, State

#: A column that varies by less than this share of its mean varies by rounding.
CONSTANT = 1e-13

#: Up to this many columns X'X is formed: a product of matrices, so it costs a few passes over X.
WIDEST = 256


class LeastSquares(GLM):
    """Mean of (y - eta)^2 / 2 plus ridge: see `GLM` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from forback import select
    >>> from forback.objectives import LeastSquares
    >>> X = np.eye(4)
    >>> path = select(LeastSquares(X, [3.0, 0.0, 2.0, 0.0]), k=2)
    >>> path.coef(2).tolist()
    [3.0, 0.0, 2.0, 0.0]
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        ridge: Any = 0.0,
        fit_intercept: bool = False,
        offset: Any = None,
        sample_weight: Any = None,
        tol: float = 1e-10,
        max_iter: int = 100,
        precision: str = "double",
    ) -> None:
        super().__init__(
            "squared", X, y, ridge=ridge, fit_intercept=fit_intercept, offset=offset,
            sample_weight=sample_weight, tol=tol, max_iter=max_iter, precision=precision,
        )  # fmt: skip

    def minimise(self, support: Ints, start: Point | None = None) -> Point:
        """beta-hat(support): from the moments where they are at hand and well-conditioned."""
        moments, columns = self._moments, support[: np.searchsorted(support, self.n_candidates)]
        whole = len(support) - len(columns) == self.fit_intercept
        found = moments.solve(columns) if moments is not None and whole else None
        if moments is not None and found is not None:
            coef, value = found
            if self.fit_intercept:
                coef = np.append(coef, moments.shift - moments.mean[columns] @ coef)
            return Point(support, coef, value, cache=moments)
        return super().minimise(support, start)

    def _with_care(
        self,
        problem: Restricted,
        support: Ints,
        start: Point | None,
        known: Known | None,
        scale: Floats,
    ) -> Minimum:
        found = self._by_factor(problem, self._fit(start), known, scale)
        if found is None:
            found = super()._with_care(problem, support, start, known, scale)
            # Eta once more, without what it collected on the way: `grams` knows how it is rounded.
            found = found._replace(state=problem.at(found.state.coef))
        return found

    def _by_factor(
        self, problem: Restricted, fit: Fit | None, known: Known | None, scale: Floats
    ) -> Minimum | None:
        """The fit by Cholesky's method, unless its columns are too collinear for that."""
        block, ridge = problem.block, problem.ridge
        if block.rows is not None or len(ridge) == 0:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            if known is None or fit is None or fit.hessian is None:
                hessian = block.sandwich(self.weights) + np.diag(ridge)
            else:
                kept = fit.hessian[known.old[:, None], known.old]
                hessian = bordered(kept, known.place, block, ridge, self.weights)
        solve = factor(hessian, least_pivot=1e-6)  # beyond that, coefficients would lose digits
        if solve is None:
            return None
        coef = solve(block.back_project(self._target))
        for last in (False, False, True):  # two more for columns that are close to collinear
            eta = block.predict(coef) + self.offset
            misfit = eta - self.y
            rows = Rows(eta, self.weights * misfit, self.weights)
            if self._is_far:
                rows = rows.levelled()
            gradient = block.back_project(rows.residual) + ridge * coef
            value = 0.5 * float(rows.residual @ misfit + (ridge * coef) @ coef)
            step = solve(gradient)
            # The scale is that of y, and where one column explains nearly all of it too coarse.
            close = last or float(gradient @ step) <= NEGLIGIBLE * value
            if close and (np.abs(gradient) <= self.tol * scale).all():
                return Minimum(State(coef, value, gradient, rows), Status.CONVERGED, hessian)
            coef = coef - step
        return None

    def _carried(self, fit: Fit | None) -> Grams | None:
        """Columns of X'WX: those of the run that led here, or of a new one."""
        if fit is not None:
            return fit.carried  # type: ignore[no-any-return]
        if not suits(self.design):
            return None
        return Grams(self.design, self.weights, self.y, self.offset, self.fit_intercept)

    def _leading(self, point: Point, weight: Callable[[], Floats]) -> tuple[Floats, int] | None:
        fit = self._fit(point)
        if fit is not None and fit.carried is not None:
            columns = self._columns_of(point)
            coef, intercept = np.split(point.coef, [len(columns)])
            found = fit.carried.leading(fit.rows.residual, weight(), columns, coef, intercept)
            if found is not None:
                return self._widened(found[0]), found[1]
        return super()._leading(point, weight)

    @cached_property
    def _target(self) -> Floats:
        return np.asarray(self.weights * (self.y - self.offset))

    def gradient(self, point: Point) -> Floats:
        """The gradient at `point`: from the moments it was made of, or by a pass over X."""
        moments = point.cache
        if not isinstance(moments, Moments) or moments is not self._moments:
            return super().gradient(point)
        columns = point.support[: len(point.support) - self.fit_intercept]
        gradient = moments.gradient(columns, point.coef[: len(columns)])
        return np.append(gradient, 0.0) if self.fit_intercept else gradient

    def resolution(self, point: Point) -> float:
        """The change of Q at a point that may be rounding: of moments, a few units of y'y."""
        moments = point.cache
        if not isinstance(moments, Moments) or moments is not self._moments:
            return super().resolution(point)
        return self._negligible(point) + ROUNDINGS * EPS * moments.total

    def _curvatures_inside(self, point: Point) -> Floats:
        moments = point.cache
        if not isinstance(moments, Moments) or moments is not self._moments:
            return super()._curvatures_inside(point)
        return moments.curvatures[point.support]

    def increase_after_refit(self, point: Point, blocks: Blocks) -> Scores:
        """Return removal costs after refitting, in closed form."""
        problem = self._restricted(point.support, self._block(point.support))
        A, _ = problem.square_root(problem.at(point.coef))
        places = [np.searchsorted(point.support, block) for block in blocks]
        return Scores.exact(projection_costs(A, point.coef, places))

    @cached_property
    def _moments(self) -> Moments | None:
        """X'X and X'y, where one such product costs less than the passes it replaces."""
        n, p = self.design.shape
        if p > WIDEST or n <= p or self._coarse is not None:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            response = self.y - self.offset
            raw = self.design.gram(self.weights)
            mean, shift = np.zeros(p), 0.0
            if self.fit_intercept:
                mean = self.design.back_project(self.weights)
                shift = float(self.weights @ response)
            weighted = self.weights * (response - shift)
            second = raw - np.outer(mean, mean)
            first = self.design.back_project(weighted) - mean * weighted.sum()
            # Where the mean exceeds the spread by far, the difference is rounded so much that
            # copies of one column no longer tie.
            sound = np.diag(second) > 0.1 * np.diag(raw)
            if isinstance(self.design, Dense) and not sound.all():
                second = self.design.gram(self.weights, mean)
                first = self.design.back_project(weighted, mean)
                sound = np.diag(second) > (CONSTANT * mean) ** 2
            second[np.diag_indices(p)] += self.ridge[:p]
            total = float(weighted @ (response - shift))
        if not (np.isfinite(second).all() and np.isfinite(first).all() and np.isfinite(total)):
            return None
        curvatures = np.append(np.diag(second) + mean**2, 1.0)
        return Moments(first, second, total, mean, shift, sound, curvatures)


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """All that least squares needs to know about the data, once p x p is small.

    With an intercept they are centred, which takes it out of the problem.
    """

    first: Floats  #: X'y
    second: Floats  #: X'X, with the ridge
    total: float  #: y'y
    mean: Floats
    shift: float  #: the mean of y
    sound: NDArray[np.bool_]  #: the columns of which X'X says enough
    curvatures: Floats  #: along each coefficient while the others, and the intercept, stay

    def solve(self, columns: Ints) -> tuple[Floats, float] | None:
        """The best coefficients of some columns and Q there, unless moments say too little.

        They do where columns are nearly collinear, and where a fit leaves next to nothing of y.
        """
        if not self.sound[columns].all():
            return None
        own = self.second[columns[:, None], columns]
        coef = np.zeros(0)
        if len(columns):
            solve = factor(own, least_pivot=1e-8)
            if solve is None:
                return None
            coef = solve(self.first[columns])
        value = 0.5 * self.total + float(coef @ (0.5 * (own @ coef) - self.first[columns]))
        return (coef, value) if value > 0.5e-6 * self.total else None

    def gradient(self, columns: Ints, coef: Floats) -> Floats:
        """The gradient over all columns there."""
        return np.asarray(coef @ self.second[columns] - self.first)
