"""Files written whole or not at all: a reader sees the old content or the new, never a part."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from typing import Any

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
