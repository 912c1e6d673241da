"""Functions written in jax.numpy: their derivatives, and many of their values at once.

JAX is imported when it is asked for, and works in double precision here whatever its settings
are elsewhere. Every function is compiled once: what varies in number is padded to whole batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from forback import validation
from forback.objectives.function import Function
from forback.objectives.oracles import Evaluate, Restricted, check_pair
from forback.one_dimensional import check_rising, minimisers
from forback.protocols import Floats, Ints, ObjectiveError

#: How many vectors, lines and columns of the Hessian are worked out at once.
VECTORS, LINES, COLUMNS = 32, 64, 8


def from_jax(
    fun: Callable[[Any], Any],
    dim: int,
    *,
    curvature: Any = None,
    n_candidates: int | None = None,
    names: Sequence[str] | None = None,
    start: Any = None,
    tol: float = 1e-10,
    max_iter: int = 1000,
) -> Function:
    """A smooth convex function written in jax.numpy as an objective for `select`.

    Gradients, second derivatives and the one-dimensional problems of the obj methods come by
    automatic differentiation, in double precision, compiled once. Needs
    ``pip install "forback[jax]"``.

    Parameters
    ----------
    fun : callable
        ``fun(beta)`` returns Q, one number, at a vector of length `dim`. Data that it closes over
        may be NumPy or JAX arrays, or trees of them.
    dim : int
        The number of coordinates.
    curvature, n_candidates, names, start, tol, max_iter
        As in `from_function`.

    Returns
    -------
    Function
        An objective.

    Examples
    --------
    >>> import numpy as np
    >>> import jax.numpy as jnp
    >>> from forback import select
    >>> from forback.objectives import from_jax
    >>> X = np.random.default_rng(0).normal(size=(200, 10))
    >>> y = np.random.default_rng(1).poisson(np.exp(X[:, 4] - X[:, 7]))
    >>> def poisson(beta):
    ...     eta = X @ beta
    ...     return jnp.mean(jnp.exp(eta) - y * eta)
    >>> select(from_jax(poisson, 10), k=2)[2].support.tolist()
    [4, 7]
    """
    dim = validation.check_integer(dim, "dim", low=1)
    if not callable(fun):
        raise TypeError(f"fun must be callable with a vector of length {dim}; met {fun!r}")
    return Function(
        Traced(fun, dim), curvature=curvature, n_candidates=n_candidates, names=names,
        start=start, tol=tol, max_iter=max_iter,
    )  # fmt: skip


def import_jax() -> Any:
    """JAX, or an error that says what to install."""
    try:
        import jax
    except ImportError as error:
        raise ImportError('this needs JAX: pip install "forback[jax]"') from error
    return jax


def in_double(jax: Any) -> AbstractContextManager[Any]:
    """A context in which JAX works in double precision; nothing changes outside."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)  # type: ignore[no-any-return]
    from jax.experimental import enable_x64  # up to JAX 0.7

    return enable_x64()  # type: ignore[no-any-return]


class Traced:
    """The `Oracle` of a function that JAX has traced."""

    def __init__(self, fun: Callable[[Any], Any], dim: int) -> None:
        self.dim = dim
        self._jax = jax = import_jax()
        with in_double(jax):
            value, self._data = _without_data(jax, fun, dim)
            self._value_and_gradient = jax.jit(jax.value_and_grad(value, argnums=1))
            self._values = jax.jit(jax.vmap(value, in_axes=(None, 0)))
            self._products = jax.jit(jax.vmap(_product(jax, value), in_axes=(None, None, 0)))
            self._lines = jax.jit(jax.vmap(_line(jax, value), in_axes=(None, None, 0, 0)))

    def at(self, beta: Floats) -> tuple[float, Floats]:
        """Value and gradient."""
        with in_double(self._jax):
            value, gradient = self._value_and_gradient(self._data, beta)
            return check_pair(np.asarray(value), np.asarray(gradient), self.dim)

    def on(self, support: Ints, base: Floats) -> Evaluate:
        """The same as a function of some coordinates."""
        return Restricted(self, support, base)

    def without(self, beta: Floats, blocks: Sequence[Ints]) -> Floats:
        """The value with each block of coordinates set to zero."""
        values = np.empty(len(blocks))
        for begin in range(0, len(blocks), VECTORS):
            some = blocks[begin : begin + VECTORS]
            betas = np.tile(beta, (VECTORS, 1))
            for row, block in zip(betas, some, strict=False):
                row[block] = 0.0
            with in_double(self._jax):
                found = np.asarray(self._values(self._data, betas))
            values[begin : begin + len(some)] = found[: len(some)]
        if np.isnan(values).any():
            raise ObjectiveError("the function returned NaN; outside its domain it may return inf")
        return values

    def hessian(self, beta: Floats, support: Ints) -> Floats | None:
        """None: all columns together cost more than they are worth."""
        return None

    def products(self, beta: Floats, coordinates: Ints) -> Floats | None:
        """Columns of the second derivative; None for so many that a few evaluations cost less."""
        if len(coordinates) > 4 * COLUMNS:
            return None
        columns = np.empty((self.dim, len(coordinates)))
        for begin in range(0, len(coordinates), COLUMNS):
            some = coordinates[begin : begin + COLUMNS]
            with in_double(self._jax):
                found = self._products(self._data, beta, _padded(some, COLUMNS, self.dim))
            columns[:, begin : begin + len(some)] = np.asarray(found)[: len(some)].T
        return columns

    def falls(
        self, beta: Floats, value: float, coordinates: Ints, slopes: Floats, negligible: float
    ) -> Floats | None:
        """How far the function falls along each coordinate."""
        decreases = np.zeros(len(coordinates))
        for begin in range(0, len(coordinates), LINES):
            part = slice(begin, begin + LINES)
            lines = _Lines(self, beta, value, coordinates[part], slopes[part])
            steps = minimisers(lines, np.full(len(lines.coordinates), np.inf), negligible)
            decreases[part] = np.maximum(-lines.at(steps)[0], 0.0)
        return decreases

    def lines(self, beta: Floats, coordinates: Ints, steps: Floats) -> tuple[Floats, ...]:
        """Value, slope and curvature at a step along each of up to `LINES` coordinates."""
        count = len(coordinates)
        padded = np.zeros(LINES)
        padded[:count] = steps
        with in_double(self._jax):
            found = self._lines(self._data, beta, _padded(coordinates, LINES, self.dim), padded)
        return tuple(np.array(part)[:count] for part in found)


@dataclass(frozen=True)
class _Lines:
    """A traced function along some coordinates: what `minimisers` asks for."""

    traced: Traced
    beta: Floats
    value: float
    coordinates: Ints
    slopes: Floats  #: at step 0

    def at(self, step: Floats) -> tuple[Floats, Floats, Floats]:
        """Change, slope and curvature at `step`, one per line."""
        value, slope, curvature = self.traced.lines(self.beta, self.coordinates, step)
        broken = ~np.isfinite(value)
        slope = np.where(broken, np.copysign(np.inf, step), slope)
        check_rising(self.coordinates, step, self.slopes, slope)
        return value - self.value, slope, np.where(broken, np.inf, curvature)

    def slope_and_curvature(self, step: Floats) -> tuple[Floats, Floats]:
        """Slope and curvature at `step`, one per line."""
        _, slope, curvature = self.at(step)
        return slope, curvature

    def only(self, kept: Ints) -> _Lines:
        """The same for some of the lines."""
        coordinates, slopes = self.coordinates[kept], self.slopes[kept]
        return _Lines(self.traced, self.beta, self.value, coordinates, slopes)


def _without_data(
    jax: Any, fun: Callable[[Any], Any], dim: int
) -> tuple[Callable[[Any, Any], Any], Any]:
    """The function with the arrays it closes over as its first argument.

    Compiled as constants they would be copied, and looked at in vain for something to simplify.
    """
    try:
        traced = jax.make_jaxpr(fun)(np.zeros(dim))
    except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as error:
        raise ObjectiveError(
            "fun cannot be traced by JAX: write it with jax.numpy instead of numpy, without "
            f"branching on values ({str(error).splitlines()[0]})"
        ) from error
    shapes = [out.shape for out in traced.out_avals]
    if shapes != [()]:
        met = f"an array of shape {shapes[0]}" if len(shapes) == 1 else f"{len(shapes)} arrays"
        raise ObjectiveError(f"fun must return one number; met {met}")
    if traced.out_avals[0].dtype.kind != "f":
        raise ObjectiveError(f"fun must return a real number; met {traced.out_avals[0].dtype}")

    def value(data: Any, beta: Any) -> Any:
        return jax.core.eval_jaxpr(traced.jaxpr, data, beta)[0]

    return value, jax.device_put(traced.consts)


def _product(jax: Any, value: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    def product(data: Any, beta: Any, j: Any) -> Any:
        """A column of the Hessian; a place past the end gives zeros."""
        unit = jax.numpy.zeros_like(beta).at[j].set(1.0, mode="drop")
        return jax.jvp(lambda b: jax.grad(value, argnums=1)(data, b), (beta,), (unit,))[1]

    return product


def _line(jax: Any, value: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any, Any], Any]:
    def line(data: Any, beta: Any, j: Any, step: Any) -> Any:
        """Value, slope and curvature along a coordinate."""

        def along(t: Any) -> Any:
            return value(data, beta.at[j].add(t, mode="drop"))

        def with_slope(t: Any) -> Any:
            return jax.jvp(along, (t,), (1.0,))

        (here, slope), (_, curvature) = jax.jvp(with_slope, (step,), (1.0,))
        return here, slope, curvature

    return line


def _padded(coordinates: Ints, length: int, beyond: int) -> Ints:
    """Coordinates filled up with one past the end, so that their number never varies."""
    padded = np.full(length, beyond)
    padded[: len(coordinates)] = coordinates
    return padded
