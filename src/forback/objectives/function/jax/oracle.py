"""Oracles of functions that JAX has traced: derivatives, and many values at once.

JAX works in double precision here whatever its settings are elsewhere. Every function is compiled
once: what varies in number is padded to whole batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from forback.core.objective import ObjectiveError
from forback.core.types import Floats, Ints
from forback.objectives.function.jax.trace import Trace, in_double
from forback.objectives.function.oracles import (
    MAX_NUMBERS_AT_ONCE,
    CoordinateSearch,
    Evaluate,
    Oracle,
    check_pair,
)
from forback.solvers.convexity import check_rising
from forback.solvers.one_variable import minimisers

#: How many lines are worked out at once, memory permitting; how many vectors, and columns of A.
LINES_AT_ONCE = 64
VECTORS_AT_ONCE = 16

#: Up to this fraction of the coordinates, columns of A are quicker than a whole product.
MAX_FRACTION_FOR_COLUMNS = 0.1

#: Columns of the Hessian are asked for if there are no more of them than this.
MAX_HESSIAN_COLUMNS = 32


class TracedFunction(Oracle):
    """The oracle of g(A beta, beta), where A may have no rows.

    Fits and lines work on columns of A, not on all of beta.
    """

    has_hessian = False  #: all columns together cost more than they are worth

    def __init__(self, jax: Any, trace: Trace) -> None:
        self.factor = 1.0
        self.dim = trace.dim
        self.width = trace.width
        self._jax = jax
        self._trace = trace
        affordable = max(1, MAX_NUMBERS_AT_ONCE // (trace.dim + trace.width))
        self._n_lines = min(LINES_AT_ONCE, affordable)
        self._n_vectors = min(VECTORS_AT_ONCE, affordable)
        self._linear = jax.jit(trace.linear)
        self._transposed = jax.jit(self._transpose)
        self._column = jax.jit(jax.vmap(trace.column, in_axes=(None, 0)))
        self._outer = jax.jit(jax.value_and_grad(trace.outer, argnums=(1, 2)))
        self._outer_values = jax.jit(jax.vmap(trace.outer, in_axes=(None, 0, 0)))
        self._outer_product = jax.jit(self._product)
        self._lines = jax.jit(jax.vmap(self._line, in_axes=(None, None, None, 0, 0, 0)))

    def at(self, beta: Floats) -> tuple[float, Floats]:
        """Return value and gradient, of g and then through A.

        Compiling all in one takes twice as long.
        """
        value, by_eta, by_beta = self.outer(self.linear(beta), beta)
        if self.width:
            by_beta = by_beta + self._call(self._transposed, by_eta)
        return value, by_beta

    def outer(self, eta: Floats, beta: Floats) -> tuple[float, Floats, Floats]:
        """Return the value where A beta is `eta`, and its derivatives by both."""
        value, slopes = self._call(self._outer, eta, beta)
        value, whole = check_pair(value, np.concatenate(slopes), len(eta) + len(beta))
        whole *= self.factor
        return self.factor * value, whole[: len(eta)], whole[len(eta) :]

    def linear(self, beta: Floats) -> Floats:
        """Return A beta, by columns if these are few."""
        chosen = np.flatnonzero(beta)
        if self.width == 0 or 0 < len(chosen) <= MAX_FRACTION_FOR_COLUMNS * self.dim:
            return np.asarray(beta[chosen] @ self.columns(chosen))
        return np.array(self._call(self._linear, beta))

    def columns(self, coordinates: Ints) -> Floats:
        """Return columns of A, as rows."""
        found = np.empty((len(coordinates), self.width))
        for begin in range(0, len(coordinates) if self.width else 0, VECTORS_AT_ONCE):
            some = coordinates[begin : begin + VECTORS_AT_ONCE]
            padded = _padded(some, VECTORS_AT_ONCE, self.dim)
            found[begin : begin + len(some)] = self._call(self._column, padded)[: len(some)]
        return found

    def on(self, support: Ints, base: Floats) -> Evaluate:
        """Return the function of some coordinates, by their columns of A."""
        fixed = base.copy()
        fixed[support] = 0.0
        columns = self.columns(support)
        offset = self.linear(fixed) if fixed.any() else np.zeros(self.width)

        def evaluate(coef: Floats) -> tuple[float, Floats, Floats | None]:
            beta = fixed.copy()
            beta[support] = coef
            value, by_eta, by_beta = self.outer(offset + coef @ columns, beta)
            gradient = columns @ by_eta + by_beta[support]
            return value, gradient, None if self.width else by_beta

        return evaluate

    def without(self, beta: Floats, blocks: Sequence[Ints]) -> Floats:
        """Return the value with each block of coordinates set to zero."""
        values = np.empty(len(blocks))
        eta = self.linear(beta)
        for begin in range(0, len(blocks), self._n_vectors):
            some = blocks[begin : begin + self._n_vectors]
            betas = np.tile(beta, (self._n_vectors, 1))
            etas = np.tile(eta, (self._n_vectors, 1))
            members = np.concatenate(some)
            rows = np.repeat(np.arange(len(some)), [len(block) for block in some])
            betas[rows, members] = 0.0
            np.subtract.at(etas, rows, beta[members, None] * self.columns(members))
            found = self._call(self._outer_values, etas, betas)
            values[begin : begin + len(some)] = found[: len(some)]
        if np.isnan(values).any():
            raise ObjectiveError("the function returned NaN; outside its domain it may return inf")
        return self.factor * values

    def hessian_columns(self, beta: Floats, coordinates: Ints, support: Ints) -> Floats | None:
        """Return columns of the second derivative, unless a few evaluations cost less."""
        if len(coordinates) > MAX_HESSIAN_COLUMNS:
            return None
        eta = self.linear(beta)
        across = self.columns(support)
        columns = np.empty((len(support), len(coordinates)))
        for place, j in enumerate(coordinates):
            direction = self.columns(np.array([j]))[0]
            by_eta, by_beta = self._call(self._outer_product, eta, beta, direction, int(j))
            columns[:, place] = across @ by_eta + by_beta[support]
        return self.factor * columns

    def decreases(self, search: CoordinateSearch) -> Floats | None:
        """Return how far the function falls along each coordinate."""
        decreases = np.zeros(len(search.coordinates))
        eta = self.linear(search.beta)
        for begin in range(0, len(decreases), self._n_lines):
            part = np.arange(begin, min(begin + self._n_lines, len(decreases)))
            lines = TracedLines(self, eta, search, part, self.columns(search.coordinates[part]))
            found = minimisers(lines, np.full(len(part), np.inf), search.negligible)
            decreases[part] = np.maximum(-lines.at(found)[0], 0.0)
        return decreases

    def along(
        self, eta: Floats, beta: Floats, coordinates: Ints, directions: Floats, steps: Floats
    ) -> tuple[Floats, ...]:
        """Return value, slope and curvature at a step along each of some coordinates."""
        given = ((coordinates, self.dim), (directions, 0.0), (steps, 0.0))
        padded = [_padded(part, self._n_lines, fill) for part, fill in given]
        found = self._call(self._lines, eta, beta, *padded)
        return tuple(self.factor * part[: len(steps)] for part in found)

    def _call(self, function: Callable[..., Any], *given: Any) -> Any:
        try:
            with in_double(self._jax):
                return self._jax.tree.map(np.asarray, function(self._trace.data, *given))
        except TypeError as error:
            if "custom_vjp" not in str(error):
                raise
            raise ObjectiveError(
                "fun has a derivative by jax.custom_vjp, which knows no second one; write it with "
                "jax.custom_jvp, or give value and gradient to from_function"
            ) from error

    def _transpose(self, data: Any, vector: Any) -> Any:
        """A' times a vector, for JAX to compile."""
        zero = self._jax.numpy.zeros(self.dim)
        return self._jax.vjp(lambda beta: self._trace.linear(data, beta), zero)[1](vector)[0]

    def _product(self, data: Any, eta: Any, beta: Any, direction: Any, j: Any) -> Any:
        """How both derivatives change along a coordinate and its column of A."""
        slopes = self._jax.grad(self._trace.outer, argnums=(1, 2))
        unit = self._jax.numpy.zeros_like(beta).at[j].set(1.0)
        return self._jax.jvp(lambda e, b: slopes(data, e, b), (eta, beta), (direction, unit))[1]

    def _line(self, data: Any, eta: Any, beta: Any, j: Any, direction: Any, step: Any) -> Any:
        """Value, slope and curvature along a coordinate and its column of A."""
        beta = self._jax.numpy.asarray(beta)  # it is NumPy's where nothing is compiled

        def along(t: Any) -> Any:
            return self._trace.outer(data, eta + t * direction, beta.at[j].add(t, mode="drop"))

        def with_slope(t: Any) -> Any:
            return self._jax.jvp(along, (t,), (1.0,))

        (value, slope), (_, curvature) = self._jax.jvp(with_slope, (step,), (1.0,))
        return value, slope, curvature


@dataclass(frozen=True)
class TracedLines:
    """A traced function along some coordinates: what `minimisers` asks for.

    Attributes
    ----------
    traced : TracedFunction
    eta : Floats
        A times the place that the lines go through.
    search : CoordinateSearch
    which : Ints
        Places of the coordinates in the search.
    directions : Floats
        The columns of the linear part that belong to them.
    """

    traced: TracedFunction
    eta: Floats
    search: CoordinateSearch
    which: Ints
    directions: Floats

    def at(self, step: Floats) -> tuple[Floats, Floats, Floats]:
        """Return change, slope and curvature at `step`, one per line."""
        coordinates = self.search.coordinates[self.which]
        found = self.traced.along(self.eta, self.search.beta, coordinates, self.directions, step)
        value, slope, curvature = found
        outside = ~np.isfinite(value)
        slope = np.where(outside, np.copysign(np.inf, step), slope)
        before = self.search.slopes[self.which]
        check_rising(coordinates, step, before, slope, self.search.noise)
        return value - self.search.value, slope, np.where(outside, np.inf, curvature)

    def slope_and_curvature(self, step: Floats) -> tuple[Floats, Floats]:
        """Return slope and curvature at `step`, one per line."""
        return self.at(step)[1:]

    def only(self, kept: Ints) -> TracedLines:
        """Return some of the lines."""
        return replace(self, which=self.which[kept], directions=self.directions[kept])


def _padded(rows: Any, length: int, fill: Any) -> Any:
    """Rows filled up so that their number never varies; a coordinate past the end is ignored."""
    padded = np.full((length, *rows.shape[1:]), fill)
    padded[: len(rows)] = rows
    return padded
