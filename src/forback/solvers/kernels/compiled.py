"""How kernels are compiled: serial, without the GIL, kept on disk where a folder allows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile on first use, and keep the machine code in numba's cache folder for the next run.

    Threads are not numba's business: `parallel=True` dies in a forked child or aborts when two
    threads fit at once. `forback.solvers.threads` runs kernels on chunks instead. Nor is
    `fastmath`: it changes results.
    """
    # error_model: division by zero gives infinity, as in NumPy.
    compiled: Any
    try:
        compiled = numba.njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written to
        compiled = numba.njit(nogil=True, error_model="numpy")(function)
    return cast("Callable[P, R]", compiled)
