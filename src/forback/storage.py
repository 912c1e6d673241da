"""Files: written whole or not at all, and read without believing them.

A reader describes what a file may hold by checks. A check turns a JSON value into what it stands
for, or raises `Mismatch`, which names the field.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import secrets
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from forback.protocols import Floats, Ints

T = TypeVar("T")

#: From a JSON value and the name of its field to what it stands for.
Check = Callable[[Any, str], T]


#: What a folder answers that takes no new file, or does not let go of the one it has.
_REFUSALS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY})

#: Folders of what processes have open; their entries look like links and are none.
_DESCRIPTORS = re.compile(r"/proc/[^/]+/(task/[^/]+/)?fd|/dev/fd")


def write(file: str | os.PathLike[str], content: str | bytes) -> None:
    """Replace a file at once: whoever reads it sees what was there before or all of `content`.

    The content goes to a new file beside it, is synced to disk and takes the old one's place, its
    mode and, where allowed, its owner and group; a link stays and what it points to is replaced.
    If anything fails, nothing changes, and the error names the file as it was given. Two kinds are
    written to as they are: what is no regular file (a pipe, a device, what this process has open as
    /dev/stdout or /dev/fd/3), and a file in a folder that refuses a new one or the exchange.
    """
    data, name = content.encode("utf-8") if isinstance(content, str) else content, _name(file)
    with _blaming(name):
        old, target = _status(name), _follow(name)
        if old is not None and _is_own(target):
            _write_to(os.dup(int(os.path.basename(target))), data)
        elif _is_descriptor(target) or not _may_be_regular(target, old):
            _write_to(name, data)
        else:
            _write_regular(target, data, old)


def _name(file: Any) -> str:
    name = os.fspath(file) if isinstance(file, os.PathLike) else file
    if not isinstance(name, str):
        raise TypeError(
            f"file must be a name as text or a path, got {name!r}; os.fsdecode makes text of bytes"
        )
    return name


@contextlib.contextmanager
def _blaming(name: str) -> Iterator[None]:
    """Let errors of the system name the user's file, whichever one they met."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, name) from None


def _status(name: str) -> os.stat_result | None:
    """What a name leads to, if anything: the system knows better than what links say."""
    try:
        return os.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _may_be_regular(target: str, old: os.stat_result | None) -> bool:
    """Whether there is a regular file, or may be: names with a slash at the end are of folders."""
    return bool(os.path.basename(target)) if old is None else stat.S_ISREG(old.st_mode)


def _follow(name: str) -> str:
    """Where links lead, one by one, up to a file, a name that is free or an open descriptor."""
    for _ in range(40):
        if _is_descriptor(name) or not os.path.islink(name):
            return name
        name = os.path.join(os.path.dirname(name), os.readlink(name))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _is_descriptor(name: str) -> bool:
    return _DESCRIPTORS.fullmatch(os.path.realpath(os.path.dirname(name))) is not None


def _is_own(name: str) -> bool:
    """Whether this process has it open: to open it anew would cut what others wrote there."""
    folder, number = os.path.split(name)
    processes = f"{os.path.realpath('/proc/self')}/", "/dev/fd"
    own = os.path.realpath(folder).startswith(processes)
    return own and _is_descriptor(name) and number.isdecimal()


def _write_to(file: str | int, data: bytes) -> None:
    with open(file, "wb") as stream:
        stream.write(data)


def _write_regular(target: str, data: bytes, old: os.stat_result | None) -> None:
    """Replace a file; where its folder does not let us, write into it, which is not at once."""
    if old is not None:
        _check_writable(target)
    try:
        _replace(target, data, old)
    except OSError as error:
        if old is None or error.errno not in _REFUSALS:
            raise
        with open(target, "wb", opener=_open_existing) as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())


def _check_writable(target: str) -> None:
    """Fail as opening it for writing would: a file may be read-only where its folder is not."""
    with contextlib.suppress(FileNotFoundError):  # somebody took it away meanwhile
        os.close(os.open(target, os.O_WRONLY))


def _open_existing(target: str, flags: int) -> int:
    """Open without O_CREAT, which sticky folders refuse for files of others."""
    return os.open(target, flags & ~os.O_CREAT)


def _replace(target: str, data: bytes, old: os.stat_result | None) -> None:
    folder = os.path.dirname(target) or os.curdir
    draft = os.path.join(folder, f".forback-{secrets.token_hex(8)}")
    try:
        with open(draft, "xb") as stream:
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
    """Give a new file the owner, the group and the mode of an old one, as far as we may."""
    if hasattr(os, "fchown"):
        for user in (old.st_uid, -1):  # who may not give files away may still choose their group
            with contextlib.suppress(PermissionError):
                os.fchown(handle, user, old.st_gid)
                break
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
        super().__init__(f"{field or 'the file'} must be {wanted}, got {_shown(got)}")


def _shown(got: Any) -> str:
    try:
        text = repr(got)
    except Exception:  # nested too deeply, a number too long, somebody's own class
        return f"something of type {type(got).__name__} that cannot be shown"
    return text if len(text) <= 60 else f"{text[:50]}..."


def parse(text: str, *, finite: bool = True) -> Any:
    """JSON without what JSON does not have (NaN, infinity) or leaves open (repeated keys).

    Unless `finite`, NaN and infinity are numbers. A whole number of more digits than Python reads
    becomes something that no check takes.
    """
    hooks: dict[str, Any] = {
        "object_pairs_hook": _unique,
        "parse_constant": _refuse if finite else float,
    }
    try:
        try:
            return json.loads(text, **hooks)
        except (Mismatch, json.JSONDecodeError):
            raise
        except ValueError:
            return json.loads(text, **hooks, parse_int=_integer)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, times = Counter(key for key, _ in pairs).most_common(1)[0]
        raise Mismatch(twice, "given once", f"{times} times")
    return found


def _refuse(constant: str) -> Any:
    raise Mismatch("every number", "finite", constant)


class _Long:
    """A whole number that Python does not read, because that would take too long."""

    def __init__(self, text: str) -> None:
        self.digits = len(text.lstrip("-"))

    def __repr__(self) -> str:
        return f"a number of {self.digits} digits"


def _integer(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return _Long(text)


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


def mapping(check: Check[T]) -> Check[dict[str, T]]:
    """An object with any fields, each of which passes the check."""

    def check_all(value: Any, field: str) -> dict[str, T]:
        if not isinstance(value, dict):
            raise Mismatch(field, "an object", value)
        inside = f"{field}." if field else ""
        return {name: check(item, f"{inside}{name}") for name, item in value.items()}

    return check_all


def scalar(value: Any, field: str) -> str | float | bool | None:
    """Text, a number, true, false or null: what a cell of a table may be."""
    if value is not None and not isinstance(value, str | bool | int | float):
        raise Mismatch(field, "text, a number, true, false or null", value)
    return value
