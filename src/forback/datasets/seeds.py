"""Where random numbers come from: a seed or a generator, never NumPy's global state."""

from __future__ import annotations

from typing import Any

import numpy as np

from forback.validation import check_integer


def check_generator(random_state: Any) -> np.random.Generator:
    """A generator of its own for a seed, the given one for a generator, a fresh one for None.

    Examples
    --------
    >>> check_generator(3).random() == check_generator(3).random()
    True
    """
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    if isinstance(random_state, np.random.RandomState):
        raise TypeError(
            "random_state must be a seed, None or a numpy.random.Generator; met a RandomState. "
            "Give numpy.random.default_rng(seed)"
        )
    return np.random.default_rng(check_integer(random_state, "random_state", low=0))
