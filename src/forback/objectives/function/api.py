"""`from_function`: callables as an objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from forback.core.types import Floats
from forback.objectives.function.objective import (
    FIRST_ORDER_TOL,
    SECOND_ORDER_TOL,
    Function,
)
from forback.objectives.function.oracles import Callables
from forback.validation.scalars import check_integer


def from_function(
    value_and_gradient: Callable[[Floats], tuple[float, Floats]],
    dim: int,
    *,
    hessian: Callable[[Floats], Any] | None = None,
    hessian_vector: Callable[[Floats, Floats], Any] | None = None,
    value_many: Callable[[Floats], Any] | None = None,
    curvature: Any = None,
    n_candidates: int | None = None,
    names: Sequence[str] | None = None,
    start: Any = None,
    tol: float | None = None,
    max_iter: int = 1000,
) -> Function:
    """Make an objective for `select` of any smooth convex function of `dim` coordinates.

    Parameters
    ----------
    value_and_gradient : callable
        ``value_and_gradient(beta)`` returns Q and its gradient at a vector of length `dim`. Outside
        its domain Q may be ``inf``; NaN is an error.
    dim : int
        The number of coordinates.
    hessian : callable, optional
        ``hessian(beta)``: the second derivative, dim x dim. Each fit starts with Newton's step.
    hessian_vector : callable, optional
        ``hessian_vector(beta, v)``: the second derivative times a vector. A fit asks for one
        product per new coordinate. Without either, differences of gradients have to do.
    value_many : callable, optional
        ``value_many(betas)``: Q at each row of a matrix. Removals and the one-dimensional problems
        of the obj methods are then solved many at once, by bracketing; otherwise one by one, by
        secants.
    curvature : pair of numbers or arrays, optional
        A lower and an upper bound on the second derivative along each coordinate, anywhere. The obj
        methods leave out the candidates that these rule out.
    n_candidates : int, optional
        Coordinates from this one on are always in, never chosen. By default all may be chosen;
        ``select(..., always=[...])`` lets others in for one run.
    names : sequence of str, optional
        Names of the candidates.
    start : array of length dim, optional
        Where fits of what is always in begin, if Q is not finite at zero.
    tol : float, optional
        A fit ends when no |gradient| exceeds `tol` times the largest at `start` and no gain is in
        sight: 1e-10 with second derivatives, 1e-6 without.
    max_iter : int
        Steps per fit.

    Returns
    -------
    Function
        An objective.

    Notes
    -----
    A function that returns NaN, has the wrong shape or turns out not to be convex raises
    `forback.protocols.ObjectiveError`, which names the step. Where the function approaches its
    infimum far away, as a logistic loss of separable data does without ridge, the note and the
    status of the step say that there is no minimiser. `forback.testing.check_objective`
    compares the gradient with differences of values.

    Examples
    --------
    >>> import numpy as np
    >>> from forback import select
    >>> from forback.objectives import from_function
    >>> X = np.random.default_rng(0).normal(size=(200, 10))
    >>> y = X[:, 4] + np.random.default_rng(1).standard_cauchy(200)
    >>> def huber(beta):  # residuals beyond 1 count as outliers
    ...     r = X @ beta - y
    ...     inside = np.minimum(np.abs(r), 1.0)
    ...     return np.mean(inside * (np.abs(r) - inside / 2)), X.T @ np.clip(r, -1.0, 1.0) / 200
    >>> select(from_function(huber, 10), k=1)[1].support.tolist()
    [4]
    """
    dim = check_integer(dim, "dim", low=1)
    optional = {"hessian": hessian, "hessian_vector": hessian_vector, "value_many": value_many}
    for name, given in {"value_and_gradient": value_and_gradient, **optional}.items():
        if not callable(given) and (given is not None or name not in optional):
            raise TypeError(f"{name} must be callable, got {given!r}")
    if tol is None:
        is_first_order = hessian is None and hessian_vector is None
        tol = FIRST_ORDER_TOL if is_first_order else SECOND_ORDER_TOL
    oracle = Callables(dim, value_and_gradient, hessian, hessian_vector, value_many)
    return Function(oracle, curvature, n_candidates, names, start, tol, max_iter)
