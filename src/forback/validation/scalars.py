"""Numbers, flags, choices and names that a user passes."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from forback.validation.containers import (
    refuse_mask,
    refuse_unordered,
)

T = TypeVar("T")


def check_flag(value: Any, name: str) -> bool:
    """True or False, nothing that merely looks like it."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; met {value!r}")
    return bool(value)


def check_integer(value: Any, name: str, *, low: int) -> int:
    """A whole number of at least `low`; a bool or a float is refused, not rounded."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer; met {value!r} of type {type(value).__name__}")
    if value < low:
        raise ValueError(f"{name} must be at least {low}; met {value}")
    return int(value)


def check_number(
    value: Any, name: str, *, low: float, high: float = math.inf, open_low: bool = False
) -> float:
    """A finite real number in [low, high), or (low, high) with `open_low`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number; met {value!r} of type {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be a number below 1e308; got one far beyond") from None
    inside = (low < number if open_low else low <= number) and number < high
    if not inside:  # NaN is inside nothing
        bracket = "(" if open_low else "["
        raise ValueError(f"{name} must lie in {bracket}{low:g}, {high:g}); met {value!r}")
    return number


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


def check_choice(value: Any, name: str, options: Iterable[T]) -> T:
    """One of a few words."""
    for option in options:
        if isinstance(value, str) and value == option:
            return option
    raise ValueError(f"{name} must be one of {sorted(map(str, options))}; met {value!r}")


def check_k(k: Any, n_candidates: int, name: str = "k") -> int:
    """A number of blocks that can be chosen."""
    size = check_integer(k, name, low=0)
    if size > n_candidates:
        raise ValueError(
            f"{name}={size} is more than the {n_candidates} candidates there are (features or "
            f"groups, those always in not counted); give {name} of at most {n_candidates}"
        )
    return size


def can_be_hashed(label: Any) -> bool:
    """Whether something can be a label; a tuple with a list in it only looks like it."""
    try:
        hash(label)
    except TypeError:
        return False
    return True


def is_missing(label: Any) -> bool:
    """None, NaN and their like."""
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA cannot even be compared
        return True


def check_names(names: Any, count: int, per: str = "candidate") -> tuple[str, ...] | None:
    """Names of candidates, or of anything else, one each and no two alike."""
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"names must be a sequence of strings; met {names!r}")
    refuse_mask(names, "names")
    refuse_unordered(names, "names")
    given = list(names)
    if any(map(is_missing, given)):
        raise ValueError(f"names must name every {per}; got {given!r}")
    listed = tuple(map(str, given))
    if len(listed) != count:
        raise ValueError(f"names must have one name per {per}: {count}; met {len(listed)}")
    if len(set(listed)) < count:
        twice = next(name for name in listed if listed.count(name) > 1)
        raise ValueError(f"names must differ; met {twice!r} twice")
    return listed
