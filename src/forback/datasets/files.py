"""Finding a public file: in a folder, in the user's cache, or at its public address."""

from __future__ import annotations

import contextlib
import hashlib
import lzma
import os
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from forback import storage
from forback.datasets.sources import Source

TIMEOUT = 30.0  #: seconds


def read(source: Source, folder: str | os.PathLike[str] | None = None) -> str:
    """The text of a file.

    It is looked for below `folder`; without one below the folder that the environment variable
    FORBACK_DATA names, then in the user's cache; at last it is downloaded into the cache. It may be
    packed by xz, with `.xz` added to its name.
    """
    if folder is not None:
        place = _find(Path(folder), source)
        if place is None:
            raise FileNotFoundError(
                f"folder must hold {source.folder}/{source.file} (or that with .xz); met "
                f"{os.fspath(folder)!r}, which does not. The file is public: {source.address}"
            )
        return _text(place.read_bytes(), place.suffix == ".xz")
    shared = os.environ.get("FORBACK_DATA")
    for root in [*([Path(shared)] if shared else []), cache_folder()]:
        place = _find(root, source)
        if place is not None:
            return _text(place.read_bytes(), place.suffix == ".xz")
    return _text(_download(source), packed=False)


def cache_folder() -> Path:
    """Where downloads are kept: `forback` in XDG_CACHE_HOME, by default in ~/.cache."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    # The specification says to ignore a relative one.
    root = Path(named) if os.path.isabs(named) else Path.home() / ".cache"
    return root / "forback"


def _find(root: Path, source: Source) -> Path | None:
    plain = root / source.folder / source.file
    packed = plain.with_name(f"{source.file}.xz")
    return next((place for place in (plain, packed) if place.is_file()), None)


def _text(content: bytes, packed: bool) -> str:
    return (lzma.decompress(content) if packed else content).decode("utf-8", errors="replace")


def _download(source: Source) -> bytes:
    """The content from the public address, kept in the cache if its checksum is right."""
    wanted = f"{source.folder}/{source.file}"
    advice = (
        f"Download it elsewhere, put it at {wanted} below a folder of your choice, and set the "
        "environment variable FORBACK_DATA to that folder (or pass it as folder)"
    )
    try:
        with urlopen(source.address, timeout=TIMEOUT) as answer:
            content: bytes = answer.read()
    except (OSError, HTTPException) as error:
        raise FileNotFoundError(
            f"{wanted} is neither below FORBACK_DATA nor in {cache_folder()}, and could not be "
            f"downloaded from {source.address}: {error}. {advice}"
        ) from error
    met = hashlib.sha256(content).hexdigest()
    if met != source.sha256:
        raise ValueError(
            f"{source.address} has changed: its sha256 is {met}, not {source.sha256}; it was not "
            f"kept. {advice}"
        )
    # A cache that cannot be written to costs the next call a download, nothing more.
    with contextlib.suppress(OSError):
        place = cache_folder() / source.folder / source.file
        place.parent.mkdir(parents=True, exist_ok=True)
        storage.write(place, content)
    return content
