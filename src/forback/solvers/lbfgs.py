"""SciPy's L-BFGS in coordinates that are brought to one scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scipy import optimize

from forback.core.types import Floats

#: A function of some coordinates: its value and its gradient.
Evaluate = Callable[[Floats], tuple[float, Floats]]

#: The descent ends where a step gains less than this, relative to the value.
GAIN_RTOL = 1e-15


def lbfgs(
    evaluate: Evaluate, start: Floats, sizes: Floats, *, gtol: float, max_iter: int, **options: int
) -> Any:
    """Minimise a function whose coordinates vary by about `sizes`.

    The gradient in coordinates divided by their sizes is compared with `gtol`. `options` are
    further ones of SciPy's L-BFGS-B. Returns SciPy's result, with `x` in the given coordinates.
    """

    def scaled(coef: Floats) -> tuple[float, Floats]:
        value, gradient = evaluate(coef * sizes)
        return value, gradient * sizes

    found = optimize.minimize(
        scaled,
        start / sizes,
        jac=True,
        method="L-BFGS-B",
        options={"gtol": gtol, "ftol": GAIN_RTOL, "maxiter": max_iter, **options},
    )
    found.x = found.x * sizes
    return found
