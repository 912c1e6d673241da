"""Atomic writes: a reader sees the old content of a file or the new one, never a part."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from typing import Any, BinaryIO

#: Errors of a folder that refuses a new file or the replacement of an old one.
_REFUSALS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY})

#: Folders of open file descriptors, whose entries look like links and are none.
_DESCRIPTORS = re.compile(r"/proc/[^/]+/(task/[^/]+/)?fd|/dev/fd")


def write(file: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file atomically: a reader sees the old content or all of the new one.

    The content goes to a new file beside the old one, is synced to disk and replaces it, keeping
    its mode and, where allowed, its owner and group; a link stays and its target is replaced. If
    anything fails, the old file stays. Two kinds of files are written in place: what is no regular
    file (a pipe, a device, what this process has open as /dev/stdout or /dev/fd/3), and a file in a
    folder that refuses a new file or the replacement.

    Parameters
    ----------
    file : str or path
        Where to write.
    content : str or bytes
        Text is encoded as UTF-8.

    Raises
    ------
    OSError
        If the file cannot be written; the error names the file as it was given.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    name: Any = os.fspath(file) if isinstance(file, os.PathLike) else file
    if not isinstance(name, str):
        raise TypeError(
            f"file must be a name as text or a path, got {name!r}; os.fsdecode makes text of bytes"
        )
    try:
        _write(name, data)
    except OSError as error:
        if error.errno is None:
            raise
        # The user's file instead of a temporary one.
        raise OSError(error.errno, error.strerror, name) from None


def _write(name: str, data: bytes) -> None:
    """Write to a file, to what this process has open, or to what is neither, such as a pipe."""
    old = _status(name)
    target = _follow_links(name)
    # Where there is nothing yet a name is that of a regular file, but for a trailing slash.
    is_regular = stat.S_ISREG(old.st_mode) if old else bool(os.path.basename(target))
    if old is not None and _is_own_descriptor(target):
        _write_in_place(os.dup(int(os.path.basename(target))), data)
    elif _is_descriptor(target) or not is_regular:
        _write_in_place(name, data)
    else:
        _write_regular(target, data, old)


def _status(name: str) -> os.stat_result | None:
    """Return the status of the file that a name leads to; None if there is none."""
    try:
        return os.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _follow_links(name: str) -> str:
    """Return the target of links: a file, a name that is free or an open descriptor.

    The links end somewhere: the system, asked for the status before, refuses those that do not.
    """
    while os.path.islink(name) and not _is_descriptor(name):
        name = os.path.join(os.path.dirname(name), os.readlink(name))
    return name


def _is_descriptor(name: str) -> bool:
    return _DESCRIPTORS.fullmatch(os.path.realpath(os.path.dirname(name))) is not None


def _is_own_descriptor(name: str) -> bool:
    """Return whether this process has the file open; opening it again would truncate it."""
    folder, number = os.path.split(name)
    processes = f"{os.path.realpath('/proc/self')}/", "/dev/fd"
    own = os.path.realpath(folder).startswith(processes)
    return own and _is_descriptor(name) and number.isdecimal()


def _write_in_place(file: str | int, data: bytes) -> None:
    with open(file, "wb") as stream:
        stream.write(data)


def _write_regular(target: str, data: bytes, old: os.stat_result | None) -> None:
    """Replace a file; where its folder refuses, overwrite it in place, which is not atomic."""
    if old is not None:
        # The file may be read-only where its folder is not, or have been removed meanwhile.
        with contextlib.suppress(FileNotFoundError):
            os.close(os.open(target, os.O_WRONLY))
    try:
        _replace(target, data, old)
    except OSError as error:
        if old is None or error.errno not in _REFUSALS:
            raise
        with open(target, "wb", opener=_open_existing) as stream:
            _write_and_sync(stream, data)


def _write_and_sync(stream: BinaryIO, data: bytes) -> None:
    stream.write(data)
    stream.flush()
    os.fsync(stream.fileno())


def _open_existing(target: str, flags: int) -> int:
    """Open without O_CREAT, which sticky folders refuse for other users' files."""
    return os.open(target, flags & ~os.O_CREAT)


def _replace(target: str, data: bytes, old: os.stat_result | None) -> None:
    """Write a draft beside the target and rename it."""
    folder = os.path.dirname(target) or os.curdir
    draft = os.path.join(folder, f".forback-{secrets.token_hex(8)}")
    try:
        with open(draft, "xb") as stream:
            if old is not None:
                _copy_ownership(stream.fileno(), old)
            _write_and_sync(stream, data)
        os.replace(draft, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
    _sync_folder(folder)


def _copy_ownership(handle: int, old: os.stat_result) -> None:
    """Give a new file the owner, the group and the mode of an old one, as far as allowed."""
    if hasattr(os, "fchown"):
        for user in (old.st_uid, -1):  # -1 keeps the owner, which only root may change
            with contextlib.suppress(PermissionError):
                os.fchown(handle, user, old.st_gid)
                break
    if hasattr(os, "fchmod"):
        os.fchmod(handle, stat.S_IMODE(old.st_mode))


def _sync_folder(folder: str) -> None:
    """Sync a folder, so that the new name is on disk, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
