"""A schema for untrusted JSON files, composed of checks.

A check takes a JSON value and the name of its field, and returns the converted value or raises
`Mismatch`, which names the field.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np

from forback.core.types import Floats, Ints

T = TypeVar("T")

#: From a JSON value and the name of its field to the converted value.
Check = Callable[[Any, str], T]


class Mismatch(ValueError):
    """A value that does not match the schema; the message names its field."""

    def __init__(self, field: str, wanted: str, got: Any = None) -> None:
        super().__init__(f"{field or 'the file'} must be {wanted}, got {_shown(got)}")


def _shown(got: Any) -> str:
    try:
        text = repr(got)
    except Exception:  # nested too deeply, a number too long, somebody's own class
        return f"something of type {type(got).__name__} that cannot be shown"
    return text if len(text) <= 60 else f"{text[:50]}..."


def parse(text: str) -> Any:
    """Parse strict JSON: no NaN or infinity, no repeated keys.

    Parameters
    ----------
    text : str
        The content of a file.

    Returns
    -------
    object
        The content. An integer of more digits than Python parses becomes an object that no check
        accepts.

    Raises
    ------
    ValueError
        If the text is no such JSON.
    """
    load = partial(
        json.loads, text, object_pairs_hook=_check_unique, parse_constant=_refuse_constant
    )
    try:
        try:
            return load()
        except (Mismatch, json.JSONDecodeError):
            raise
        except ValueError:  # an integer is too long
            return load(parse_int=_parse_integer)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _check_unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, times = Counter(key for key, _ in pairs).most_common(1)[0]
        raise Mismatch(twice, "given once", f"{times} times")
    return found


def _refuse_constant(constant: str) -> Any:
    raise Mismatch("every number", "finite", constant)


class _LongInteger:
    """An integer that Python does not parse, because that would take too long."""

    def __init__(self, text: str) -> None:
        self.digits = len(text.lstrip("-"))

    def __repr__(self) -> str:
        return f"a number of {self.digits} digits"


def _parse_integer(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return _LongInteger(text)


def number(low: float = -math.inf, high: float = math.inf) -> Check[float]:
    """Return a check for a finite number in [low, high)."""
    wanted = "a finite number" + (f" of at least {low:g}" if low > -math.inf else "")
    wanted += f" and below {high:g}" if high < math.inf else ""

    def check(value: Any, field: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Mismatch(field, wanted, value)
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if not (math.isfinite(found) and low <= found < high):
            raise Mismatch(field, wanted, value)
        return found

    return check


def whole(low: int = 0, high: int = 2**53) -> Check[int]:
    """Return a check for an integer in [low, high)."""

    def check(value: Any, field: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value < high:
            raise Mismatch(field, f"a whole number from {low} to {high - 1}", value)
        return value

    return check


def word(*options: str) -> Check[str]:
    """Return a check for a string, one of the options if there are any."""

    def check(value: Any, field: str) -> str:
        if not isinstance(value, str) or (options and value not in options):
            raise Mismatch(field, f"one of {', '.join(options)}" if options else "text", value)
        return value

    return check


def nullable(check: Check[T]) -> Check[T | None]:
    """Return a check for null or what passes the given one."""

    def check_or_null(value: Any, field: str) -> T | None:
        return None if value is None else check(value, field)

    return check_or_null


def listing(check: Check[T], length: int | None = None) -> Check[list[T]]:
    """Return a check for a list whose items pass the given one, of the given length if any."""

    def check_each(value: Any, field: str) -> list[T]:
        if not isinstance(value, list):
            raise Mismatch(field, "a list", value)
        if length is not None and len(value) != length:
            raise Mismatch(field, f"a list of length {length}", f"length {len(value)}")
        return [check(item, f"{field}[{place}]") for place, item in enumerate(value)]

    return check_each


def numbers(low: float = -math.inf) -> Check[Floats]:
    """Return a check for a list of finite numbers >= low, as an array; fast on long ones."""
    each = listing(number(low))

    def check(value: Any, field: str) -> Floats:
        all_floats = isinstance(value, list) and set(map(type, value)) <= {float}
        found = np.array(value if all_floats else each(value, field), dtype=np.float64)
        if not (np.isfinite(found).all() and (found >= low).all()):
            each(value, field)  # raises, and names the item
        return found

    return check


def wholes(high: int = 2**53) -> Check[Ints]:
    """Return a check for a list of integers in [0, high), as an array; fast on long ones."""
    each = listing(whole(high=high))

    def check(value: Any, field: str) -> Ints:
        all_integers = isinstance(value, list) and set(map(type, value)) <= {int}
        if not (all_integers and value and min(value) >= 0 and max(value) < high):
            value = each(value, field)
        return np.array(value, dtype=np.intp)

    return check


def record(fields: Mapping[str, Check[Any]], *, partial: bool = False) -> Check[dict[str, Any]]:
    """Return a check for an object with these fields only; with `partial`, some may be missing."""

    def check(value: Any, field: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Mismatch(field, "an object", value)
        inside = f"{field}." if field else ""
        for name in value:
            if name not in fields:
                raise Mismatch(f"{inside}{name}", "absent: there is no such field", value[name])
        for name in fields:
            if name not in value and not partial:
                raise Mismatch(f"{inside}{name}", "present", "nothing")
        return {name: fields[name](value[name], f"{inside}{name}") for name in value}

    return check
