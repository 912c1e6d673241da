"""Files: written whole or not at all, and read without believing them.

A reader describes what a file may hold by checks. A check turns a JSON value into what it stands
for, or raises `Mismatch`, which names the field.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import stat
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from forback.protocols import Floats, Ints

T = TypeVar("T")

#: From a JSON value and the name of its field to what it stands for.
Check = Callable[[Any, str], T]


def write(file: str | os.PathLike[str], content: str | bytes) -> None:
    """Replace a file at once: whoever reads it sees what was there before or all of `content`.

    The content goes to a new file beside it, is synced to disk and takes the old one's place, its
    mode and, where allowed, its owner; a link stays and what it points to is replaced. What is no
    regular file (a pipe, a device) is written to as it is. If anything fails, nothing changes.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    target = os.path.realpath(file)
    old = os.stat(target) if os.path.exists(target) else None
    if old is not None and not stat.S_ISREG(old.st_mode):
        with open(target, "wb") as stream:
            stream.write(data)
        return
    folder = os.path.dirname(target)
    draft = os.path.join(folder, f".forback-{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(handle, "wb") as stream:
            if old is not None:
                _take_over(stream.fileno(), old)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
    _sync_folder(folder)


def _take_over(handle: int, old: os.stat_result) -> None:
    """Give a new file the owner and the mode of an old one, as far as the system has them."""
    if hasattr(os, "fchown"):
        with contextlib.suppress(PermissionError):
            os.fchown(handle, old.st_uid, old.st_gid)
    if hasattr(os, "fchmod"):
        os.fchmod(handle, stat.S_IMODE(old.st_mode))


def _sync_folder(folder: str) -> None:
    """Make sure that the new name is on disk, where folders can be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# Reading -----------------------------------------------------------------------------------------


class Mismatch(ValueError):
    """A value that is not what the schema asks for; the message names its field."""

    def __init__(self, field: str, wanted: str, got: Any = None) -> None:
        text = repr(got)
        shown = text if len(text) <= 60 else f"{text[:50]}..."
        super().__init__(f"{field or 'the file'} must be {wanted}, got {shown}")


def parse(text: str) -> Any:
    """JSON without what JSON does not have (NaN, infinity) or leaves open (repeated keys)."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise Mismatch(twice, "given once", f"{keys.count(twice)} times")
        return found

    def refuse(constant: str) -> Any:
        raise Mismatch("every number", "finite", constant)

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def number(low: float = -math.inf, high: float = math.inf) -> Check[float]:
    """A finite number in [low, high)."""
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
    """A whole number in [low, high)."""

    def check(value: Any, field: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value < high:
            raise Mismatch(field, f"a whole number from {low} to {high - 1}", value)
        return value

    return check


def word(*options: str) -> Check[str]:
    """A string; one of the options, if there are any."""

    def check(value: Any, field: str) -> str:
        if not isinstance(value, str) or (options and value not in options):
            raise Mismatch(field, f"one of {', '.join(options)}" if options else "text", value)
        return value

    return check


def nullable(check: Check[T]) -> Check[T | None]:
    """Nothing, or what passes the check."""

    def check_or_null(value: Any, field: str) -> T | None:
        return None if value is None else check(value, field)

    return check_or_null


def listing(check: Check[T], length: int | None = None) -> Check[list[T]]:
    """A list of what passes the check, of some length if that is given."""

    def check_each(value: Any, field: str) -> list[T]:
        if not isinstance(value, list):
            raise Mismatch(field, "a list", value)
        if length is not None and len(value) != length:
            raise Mismatch(field, f"a list of length {length}", f"length {len(value)}")
        return [check(item, f"{field}[{place}]") for place, item in enumerate(value)]

    return check_each


def numbers(low: float = -math.inf) -> Check[Floats]:
    """A list of finite numbers, at least `low`, as an array: the long lists of a file."""
    each = listing(number(low))

    def check(value: Any, field: str) -> Floats:
        if isinstance(value, list) and set(map(type, value)) <= {float}:
            found = np.array(value, dtype=np.float64)
            if np.isfinite(found).all() and (found >= low).all():
                return found
        return np.array(each(value, field), dtype=np.float64)

    return check


def wholes(high: int = 2**53) -> Check[Ints]:
    """A list of whole numbers from 0, below `high`, as an array."""
    each = listing(whole(high=high))

    def check(value: Any, field: str) -> Ints:
        ordinary = isinstance(value, list) and set(map(type, value)) <= {int}
        if ordinary and (not value or (min(value) >= 0 and max(value) < high)):
            return np.array(value, dtype=np.intp)
        return np.array(each(value, field), dtype=np.intp)

    return check


def record(fields: Mapping[str, Check[Any]], *, partial: bool = False) -> Check[dict[str, Any]]:
    """An object with these fields and no others; with `partial`, some may be missing."""

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
