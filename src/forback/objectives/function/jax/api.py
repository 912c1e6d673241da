"""Functions written in jax.numpy as objectives. JAX is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from forback.core.types import Floats
from forback.objectives.function.jax.oracle import TracedFunction
from forback.objectives.function.jax.trace import Trace, import_jax, in_double
from forback.objectives.function.objective import SECOND_ORDER_TOL, Function
from forback.validation.scalars import check_integer

#: Arrays are filled up to a length that is a power of two, and at least this.
MIN_PADDED_LENGTH = 1024


def from_jax(
    fun: Callable[[Any], Any],
    dim: int,
    *,
    curvature: Any = None,
    n_candidates: int | None = None,
    names: Sequence[str] | None = None,
    start: Any = None,
    tol: float = SECOND_ORDER_TOL,
    max_iter: int = 1000,
) -> Function:
    """Make an objective for `select` of a smooth convex function written in jax.numpy.

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
    curvature : pair of numbers or arrays, optional
        A lower and an upper bound on the second derivative along each coordinate, anywhere.
    n_candidates : int, optional
        Coordinates from this one on are always in, never chosen. By default all may be chosen.
    names : sequence of str, optional
        Names of the candidates.
    start : array of length dim, optional
        Where fits of what is always in begin, if Q is not finite at zero.
    tol : float
        A fit ends when no |gradient| exceeds `tol` times the largest at `start` and no gain is in
        sight.
    max_iter : int
        Steps per fit.

    Returns
    -------
    Function
        An objective.

    Notes
    -----
    Most losses look at `beta` through something linear first, such as the predictions ``X @ beta``.
    This is found in the trace of `fun`, and made use of: a fit then works on the columns of the
    support instead of evaluating all of `fun` again and again.

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
    dim = check_integer(dim, "dim", low=1)
    if not callable(fun):
        raise TypeError(f"fun must be callable with a vector of length {dim}, got {fun!r}")
    jax = import_jax()
    with in_double(jax):
        oracle = TracedFunction(jax, Trace(jax, fun, dim))
    return Function(oracle, curvature, n_candidates, names, start, tol, max_iter)


@dataclass(frozen=True)
class Derivative:
    """A function of (eta, y) in jax.numpy, entry by entry, or a derivative of it in eta.

    For NumPy arrays of any shape, compiled for few lengths. It is pickled as the function it is of.
    """

    value: Callable[[Any, Any], Any]
    order: int

    def __post_init__(self) -> None:
        import_jax()  # without it, say at once what to install

    @cached_property
    def _compiled(self) -> Callable[..., Any]:
        jax = import_jax()

        def d1(eta: Any, y: Any) -> Any:
            return jax.grad(lambda e: self.value(e, y).sum())(eta)

        def d2(eta: Any, y: Any) -> Any:
            return jax.jvp(lambda e: d1(e, y), (eta,), (jax.numpy.ones_like(eta),))[1]

        def inside(eta: Any, y: Any) -> Any:
            """NaN where the value is infinite: there JAX finds a slope of zero."""
            derivative = d1 if self.order == 1 else d2
            return jax.numpy.where(self.value(eta, y) < np.inf, derivative(eta, y), np.nan)

        return jax.jit(inside if self.order else self.value)  # type: ignore[no-any-return]

    def __call__(self, eta: Floats, y: Floats) -> Floats:
        """Return the value, or the derivative, at each entry."""
        shape = np.broadcast_shapes(eta.shape, y.shape)
        eta, y = (np.broadcast_to(part, shape).ravel() for part in (eta, y))
        length = max(MIN_PADDED_LENGTH, 1 << (len(eta) - 1).bit_length())
        padded = [np.resize(part, length) if len(part) else np.zeros(length) for part in (eta, y)]
        with in_double(import_jax()):
            found = np.array(self._compiled(*padded))
        if found.shape != (length,):
            return found  # not entry by entry: whoever looks at it says so
        return found[: len(eta)].reshape(shape)

    def __deepcopy__(self, memo: Any) -> Derivative:
        return self  # never changes, and copies would be compiled again

    def __reduce__(self) -> tuple[type[Derivative], tuple[Callable[[Any, Any], Any], int]]:
        return Derivative, (self.value, self.order)
