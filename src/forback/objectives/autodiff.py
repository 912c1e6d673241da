"""Functions written in jax.numpy as objectives. JAX is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from forback import validation
from forback.objectives.function import SECOND_ORDER, Function
from forback.objectives.traced import make_oracle


def from_jax(
    fun: Callable[[Any], Any],
    dim: int,
    *,
    curvature: Any = None,
    n_candidates: int | None = None,
    names: Sequence[str] | None = None,
    start: Any = None,
    tol: float = SECOND_ORDER,
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
    dim = validation.check_integer(dim, "dim", low=1)
    if not callable(fun):
        raise TypeError(f"fun must be callable with a vector of length {dim}; met {fun!r}")
    return Function(
        make_oracle(fun, dim), curvature=curvature, n_candidates=n_candidates, names=names,
        start=start, tol=tol, max_iter=max_iter,
    )  # fmt: skip
