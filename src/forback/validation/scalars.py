"""Checks of numbers, flags, choices and names."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from forback.validation.containers import as_list

T = TypeVar("T")


def check_flag(value: Any, name: str) -> bool:
    """Return a flag as a bool; only True and False, of Python or NumPy, are accepted."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_integer(value: Any, name: str, *, low: int) -> int:
    """Return an integer of at least `low`; a bool or a float is refused, not rounded.

    Examples
    --------
    >>> check_integer(2.5, "k", low=0)
    Traceback (most recent call last):
    TypeError: k must be an integer, got 2.5 (float)
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {_with_type(value)}")
    if value < low:
        raise ValueError(f"{name} must be at least {low}, got {value}")
    return int(value)


def check_number(
    value: Any, name: str, *, low: float, high: float = math.inf, open_low: bool = False
) -> float:
    """Return a finite real number in [low, high), or in (low, high) with `open_low`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {_with_type(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be a number below 1e308, got one far beyond") from None
    inside = (low < number if open_low else low <= number) and number < high
    if not inside:  # NaN is inside nothing
        bracket = "(" if open_low else "["
        raise ValueError(f"{name} must lie in {bracket}{low:g}, {high:g}), got {value!r}")
    return number


def _with_type(value: Any) -> str:
    return f"{value!r} ({type(value).__name__})"


def check_generator(random_state: Any) -> np.random.Generator:
    """Return a new generator for a seed or None, or the generator that was given.

    Examples
    --------
    >>> check_generator(3).random() == check_generator(3).random()
    True
    """
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    if isinstance(random_state, np.random.RandomState):
        raise TypeError(
            "random_state must be a seed, None or a numpy.random.Generator, got a RandomState; "
            "give numpy.random.default_rng(seed)"
        )
    return np.random.default_rng(check_integer(random_state, "random_state", low=0))


def check_choice(value: Any, name: str, options: Iterable[T]) -> T:
    """Return the option, a word, that equals the value."""
    for option in options:
        if isinstance(value, str) and value == option:
            return option
    raise ValueError(f"{name} must be one of {sorted(map(str, options))}, got {value!r}")


def check_k(k: Any, n_candidates: int, name: str = "k") -> int:
    """Return the number of candidates to choose, at most as many as there are."""
    size = check_integer(k, name, low=0)
    if size > n_candidates:
        raise ValueError(
            f"{name}={size} is more than the {n_candidates} candidates (features or groups, "
            f"without those in always); give {name} of at most {n_candidates}"
        )
    return size


def can_be_hashed(label: Any) -> bool:
    """Return whether a label is hashable; a tuple that holds a list only looks so by its type."""
    try:
        hash(label)
    except TypeError:
        return False
    return True


def is_missing(label: Any) -> bool:
    """Return whether a label is None, NaN, NaT or pandas.NA."""
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA cannot even be compared
        return True


def check_names(names: Any, count: int, per: str = "candidate") -> tuple[str, ...] | None:
    """Return `count` different names, one per candidate or per whatever `per` says."""
    if names is None:
        return None
    given = as_list(names, "names", "a sequence of strings")
    if any(map(is_missing, given)):
        raise ValueError(f"names must name every {per}, got {given!r}")
    listed = tuple(map(str, given))
    if len(listed) != count:
        raise ValueError(f"names must have one name per {per}: {count}, got {len(listed)}")
    if len(set(listed)) < count:
        twice = Counter(listed).most_common(1)[0][0]
        raise ValueError(f"names must differ, got {twice!r} twice")
    return listed
