"""Oracles of functions that JAX has traced: derivatives, and many values at once.

JAX works in double precision here whatever its settings are elsewhere. Every function is compiled
once: what varies in number is padded to whole batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forback.core.objective import ObjectiveError
from forback.core.types import Floats, Ints
from forback.objectives.function.jax.trace import Trace, import_jax, in_double
from forback.objectives.function.oracles import AT_ONCE, Evaluate, Restricted, check_pair
from forback.solvers.convexity import check_rising
from forback.solvers.line_search import minimisers

#: How many lines, vectors and columns are worked out at once, memory permitting.
LINES, VECTORS, COLUMNS = 64, 16, 16

#: Up to this share of the coordinates, columns are quicker than a whole product.
SPARSE = 0.1

#: Columns of the Hessian are asked for if there are no more of them than this.
WORTHWHILE = 32


def make_oracle(fun: Callable[[Any], Any], dim: int) -> Traced:
    """The oracle of a function written in jax.numpy."""
    jax = import_jax()
    with in_double(jax):
        trace = Trace(jax, fun, dim)
        return (Split if trace.is_split else Traced)(jax, trace)


class Traced:
    """The oracle of a function about which nothing is known."""

    def __init__(self, jax: Any, trace: Trace) -> None:
        self.dim, self._jax, self._data = trace.dim, jax, trace.data
        affordable = max(1, AT_ONCE // (trace.dim + trace.width))
        self._n_lines, self._n_vectors = min(LINES, affordable), min(VECTORS, affordable)
        value = trace.value
        self._value_and_gradient = jax.jit(jax.value_and_grad(value, argnums=1))
        self._values = jax.jit(jax.vmap(value, in_axes=(None, 0)))
        self._product = jax.jit(_product(jax, value))
        self._lines = jax.jit(jax.vmap(self._line(jax, trace), in_axes=(None, None, 0, 0, 0)))

    def at(self, beta: Floats) -> tuple[float, Floats]:
        """Value and gradient."""
        value, gradient = self._call(self._value_and_gradient, beta)
        return check_pair(value, gradient, self.dim)

    def on(self, support: Ints, base: Floats) -> Evaluate:
        """The same as a function of some coordinates."""
        return Restricted(self, support, base)

    def without(self, beta: Floats, blocks: Sequence[Ints]) -> Floats:
        """The value with each block of coordinates set to zero."""
        values = np.empty(len(blocks))
        for begin in range(0, len(blocks), self._n_vectors):
            some = blocks[begin : begin + self._n_vectors]
            betas = np.tile(beta, (self._n_vectors, 1))
            for row, block in zip(betas, some, strict=False):
                row[block] = 0.0
            values[begin : begin + len(some)] = self._many(betas, beta, some)[: len(some)]
        if np.isnan(values).any():
            raise ObjectiveError("the function returned NaN; outside its domain it may return inf")
        return values

    def _many(self, betas: Floats, beta: Floats, blocks: Sequence[Ints]) -> Floats:
        return np.asarray(self._call(self._values, betas))

    def hessian(self, beta: Floats, support: Ints) -> Floats | None:
        """None: all columns together cost more than they are worth."""
        return None

    def products(self, beta: Floats, coordinates: Ints, support: Ints) -> Floats | None:
        """Columns of the second derivative, unless a few evaluations cost less."""
        if len(coordinates) > WORTHWHILE:
            return None
        columns = np.empty((len(support), len(coordinates)))
        for place, j in enumerate(coordinates):
            columns[:, place] = self._call(self._product, beta, int(j))[support]
        return columns

    def falls(
        self,
        beta: Floats,
        value: float,
        coordinates: Ints,
        slopes: Floats,
        steps: Floats,
        negligible: float,
        noise: float,
    ) -> Floats | None:
        """How far the function falls along each coordinate."""
        decreases, place = np.zeros(len(coordinates)), self._place(beta)
        for begin in range(0, len(coordinates), self._n_lines):
            part = slice(begin, begin + self._n_lines)
            ways = self.columns(coordinates[part])
            lines = _Lines(self, place, value, coordinates[part], ways, slopes[part], noise)
            found = minimisers(lines, np.full(len(lines.coordinates), np.inf), negligible)
            decreases[part] = np.maximum(-lines.at(found)[0], 0.0)
        return decreases

    def along(
        self, place: Any, coordinates: Ints, ways: Floats, steps: Floats
    ) -> tuple[Floats, ...]:
        """Value, slope and curvature at a step along each of some coordinates."""
        given = [_padded(part, self._n_lines, fill) for part, fill in ((ways, 0.0), (steps, 0.0))]
        found = self._call(
            self._lines, place, _padded(coordinates, self._n_lines, self.dim), *given
        )
        return tuple(np.array(part)[: len(steps)] for part in found)

    def columns(self, coordinates: Ints) -> Floats:
        """Of the linear part, as rows; here there is none."""
        return np.zeros((len(coordinates), 0))

    def _place(self, beta: Floats) -> Any:
        """What `along` wants to know about the place that lines go through."""
        return beta

    def _line(self, jax: Any, trace: Trace) -> Callable[..., Any]:
        def line(data: Any, beta: Any, j: Any, way: Any, step: Any) -> Any:
            """Value, slope and curvature along a coordinate."""
            place = jax.numpy.asarray(beta).at[j]  # beta is NumPy's where nothing is compiled
            return _bent(jax, lambda t: trace.value(data, place.add(t, mode="drop")), step)

        return line

    def _call(self, function: Callable[..., Any], *given: Any) -> Any:
        try:
            with in_double(self._jax):
                return self._jax.tree.map(np.asarray, function(self._data, *given))
        except TypeError as error:
            if "custom_vjp" not in str(error):
                raise
            raise ObjectiveError(
                "fun has a derivative by jax.custom_vjp, which knows no second one; write it with "
                "jax.custom_jvp, or give value and gradient to from_function"
            ) from error


class Split(Traced):
    """The oracle of g(A beta, beta): fits and lines work on columns of A, not on all of beta."""

    def __init__(self, jax: Any, trace: Trace) -> None:
        super().__init__(jax, trace)
        outer = trace.outer
        self._linear = jax.jit(trace.linear)
        self._transposed = jax.jit(_transposed(jax, trace))
        self._column = jax.jit(jax.vmap(trace.column, in_axes=(None, 0)))
        self._outer = jax.jit(jax.value_and_grad(outer, argnums=(1, 2)))
        self._outer_values = jax.jit(jax.vmap(outer, in_axes=(None, 0, 0)))
        self._outer_product = jax.jit(_outer_product(jax, outer))

    def at(self, beta: Floats) -> tuple[float, Floats]:
        """Value and gradient, of g and then through A: compiling all in one takes twice as long."""
        value, turn, own = self.outer(self.linear(beta), beta)
        return value, self._call(self._transposed, turn) + own

    def columns(self, coordinates: Ints) -> Floats:
        """Columns of A, as rows."""
        found = []
        for begin in range(0, len(coordinates), COLUMNS):
            some = coordinates[begin : begin + COLUMNS]
            padded = _padded(some, COLUMNS, self.dim)
            found.append(self._call(self._column, padded)[: len(some)])
        return np.concatenate(found)

    def outer(self, eta: Floats, beta: Floats) -> tuple[float, Floats, Floats]:
        """The value where A beta is `eta`, and its derivatives by both."""
        value, slopes = self._call(self._outer, eta, beta)
        value, whole = check_pair(value, np.concatenate(slopes), len(eta) + len(beta))
        return value, whole[: len(eta)], whole[len(eta) :]

    def linear(self, beta: Floats) -> Floats:
        """A beta, by columns if these are few."""
        chosen = np.flatnonzero(beta)
        if 0 < len(chosen) <= SPARSE * self.dim:
            return np.asarray(beta[chosen] @ self.columns(chosen))
        return np.array(self._call(self._linear, beta))

    def on(self, support: Ints, base: Floats) -> Evaluate:
        """The function of some coordinates, by columns of A."""
        return _OnColumns(self, support, base)

    def _many(self, betas: Floats, beta: Floats, blocks: Sequence[Ints]) -> Floats:
        etas = np.tile(self.linear(beta), (len(betas), 1))
        members = np.concatenate(blocks)
        moves = beta[members, None] * self.columns(members)
        edges = np.cumsum([len(block) for block in blocks])[:-1]
        for eta, move in zip(etas, np.split(moves, edges), strict=False):
            eta -= move.sum(axis=0)
        return np.asarray(self._call(self._outer_values, etas, betas))

    def products(self, beta: Floats, coordinates: Ints, support: Ints) -> Floats | None:
        """Columns of the second derivative, unless a few evaluations cost less."""
        if len(coordinates) > WORTHWHILE:
            return None
        eta, across = self.linear(beta), self.columns(support)
        columns = np.empty((len(support), len(coordinates)))
        for place, j in enumerate(coordinates):
            way = self.columns(np.array([j]))[0]
            turn, own = self._call(self._outer_product, eta, beta, way, int(j))
            columns[:, place] = across @ turn + own[support]
        return columns

    def _place(self, beta: Floats) -> Any:
        return self.linear(beta), beta

    def _line(self, jax: Any, trace: Trace) -> Callable[..., Any]:
        def line(data: Any, place: Any, j: Any, way: Any, step: Any) -> Any:
            """Value, slope and curvature along a coordinate and its column of A."""
            eta, beta = map(jax.numpy.asarray, place)

            def along(t: Any) -> Any:
                return trace.outer(data, eta + t * way, beta.at[j].add(t, mode="drop"))

            return _bent(jax, along, step)

        return line


class _OnColumns:
    """g(A beta, beta) as a function of some coordinates, by their columns of A."""

    def __init__(self, oracle: Split, support: Ints, base: Floats) -> None:
        self._oracle, self._support = oracle, support
        self._base = base.copy()
        self._base[support] = 0.0
        self._columns = oracle.columns(support)
        zero = np.zeros(self._columns.shape[1])
        self._eta = oracle.linear(self._base) if self._base.any() else zero

    def __call__(self, coef: Floats) -> tuple[float, Floats]:
        """Value and gradient over the coordinates."""
        beta = self._base.copy()
        beta[self._support] = coef
        value, turn, own = self._oracle.outer(self._eta + coef @ self._columns, beta)
        return value, self._columns @ turn + own[self._support]

    def whole_gradient(self) -> Floats | None:
        """None: only some coordinates were looked at."""
        return None


@dataclass(frozen=True)
class _Lines:
    """A traced function along some coordinates: what `minimisers` asks for."""

    traced: Traced
    place: Any
    value: float
    coordinates: Ints
    ways: Floats  #: their columns of the linear part
    slopes: Floats  #: at step 0
    noise: float  #: what is no slope

    def at(self, step: Floats) -> tuple[Floats, Floats, Floats]:
        """Change, slope and curvature at `step`, one per line."""
        value, slope, curvature = self.traced.along(self.place, self.coordinates, self.ways, step)
        broken = ~np.isfinite(value)
        slope = np.where(broken, np.copysign(np.inf, step), slope)
        check_rising(self.coordinates, step, self.slopes, slope, self.noise)
        return value - self.value, slope, np.where(broken, np.inf, curvature)

    def slope_and_curvature(self, step: Floats) -> tuple[Floats, Floats]:
        """Slope and curvature at `step`, one per line."""
        _, slope, curvature = self.at(step)
        return slope, curvature

    def only(self, kept: Ints) -> _Lines:
        """The same for some of the lines."""
        own = self.coordinates[kept], self.ways[kept], self.slopes[kept]
        return _Lines(self.traced, self.place, self.value, *own, self.noise)


def _product(jax: Any, value: Callable[..., Any]) -> Callable[..., Any]:
    def product(data: Any, beta: Any, j: Any) -> Any:
        """A column of the Hessian."""
        unit = jax.numpy.zeros_like(beta).at[j].set(1.0)
        return jax.jvp(lambda b: jax.grad(value, argnums=1)(data, b), (beta,), (unit,))[1]

    return product


def _transposed(jax: Any, trace: Trace) -> Callable[..., Any]:
    def transposed(data: Any, turn: Any) -> Any:
        """A' times a vector."""
        zero = jax.numpy.zeros(trace.dim)
        return jax.vjp(lambda beta: trace.linear(data, beta), zero)[1](turn)[0]

    return transposed


def _outer_product(jax: Any, outer: Callable[..., Any]) -> Callable[..., Any]:
    def product(data: Any, eta: Any, beta: Any, way: Any, j: Any) -> Any:
        """How both derivatives turn along a coordinate and its column of A."""
        slopes = jax.grad(outer, argnums=(1, 2))
        unit = jax.numpy.zeros_like(beta).at[j].set(1.0)
        return jax.jvp(lambda e, b: slopes(data, e, b), (eta, beta), (way, unit))[1]

    return product


def _bent(jax: Any, along: Callable[[Any], Any], step: Any) -> Any:
    """Value, slope and curvature of a function of one variable."""

    def with_slope(t: Any) -> Any:
        return jax.jvp(along, (t,), (1.0,))

    (value, slope), (_, curvature) = jax.jvp(with_slope, (step,), (1.0,))
    return value, slope, curvature


def _padded(rows: Any, length: int, fill: Any) -> Any:
    """Rows filled up so that their number never varies; a coordinate past the end is ignored."""
    padded = np.full((length, *rows.shape[1:]), fill)
    padded[: len(rows)] = rows
    return padded
