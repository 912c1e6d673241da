"""Where a file is looked for, and what happens when it has to be downloaded."""

import hashlib
import io
import lzma
from http.client import IncompleteRead
from urllib.error import URLError

import pytest

from forback.datasets import download, load_sensor_log
from forback.datasets.download import LIBSVM, SOURCES, Source, cache_folder, read
from forback.files import atomic

CONTENT = b"a log\n"
SOURCE = Source("home", "log.txt", "owner/name/commit", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """No data folder, an empty cache, no network."""
    monkeypatch.delenv("FORBACK_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(download, "urlopen", answer(URLError("no network")))
    return tmp_path / "cache" / "forback"


class Opener:
    def __init__(self, content):
        self.content = content
        self.asked = []

    def __call__(self, address, timeout):
        self.asked.append(address)
        if isinstance(self.content, URLError):
            raise self.content
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def read(self):
        if isinstance(self.content, Exception):
            raise self.content
        return io.BytesIO(self.content).read()


def answer(content):
    return Opener(content)


def put(root, text=CONTENT, packed=False):
    place = root / "home" / ("log.txt.xz" if packed else "log.txt")
    place.parent.mkdir(parents=True)
    place.write_bytes(lzma.compress(text) if packed else text)


@pytest.mark.parametrize("packed", [False, True])
def test_a_folder_comes_first(tmp_path, monkeypatch, nowhere, packed):
    put(tmp_path / "mine", b"mine", packed)
    put(tmp_path / "shared", b"shared")
    put(nowhere, b"cached")
    monkeypatch.setenv("FORBACK_DATA", str(tmp_path / "shared"))
    assert read(SOURCE, tmp_path / "mine") == "mine"
    assert read(SOURCE, str(tmp_path / "mine")) == "mine"
    assert read(SOURCE) == "shared"
    monkeypatch.setenv("FORBACK_DATA", str(tmp_path / "elsewhere"))
    assert read(SOURCE) == "cached"


def test_a_folder_without_the_file_is_an_error(tmp_path, nowhere):
    put(nowhere)
    with pytest.raises(FileNotFoundError, match=r"folder must hold home/log.txt .* https://raw"):
        read(SOURCE, tmp_path)


def test_a_download_is_kept(monkeypatch, nowhere):
    opener = answer(CONTENT)
    monkeypatch.setattr(download, "urlopen", opener)
    assert read(SOURCE) == read(SOURCE) == "a log\n"
    assert opener.asked == ["https://raw.githubusercontent.com/owner/name/commit/log.txt"]
    assert [place.name for place in (nowhere / "home").iterdir()] == ["log.txt"]


def test_a_download_from_anywhere_else(monkeypatch, nowhere):
    opener = answer(CONTENT)
    monkeypatch.setattr(download, "urlopen", opener)
    source = Source("home", "log.txt", "https://example.org/~me", SOURCE.sha256)
    assert read(source) == "a log\n"
    assert opener.asked == ["https://example.org/~me/log.txt"]


def test_without_network_the_error_says_what_to_do():
    with pytest.raises(FileNotFoundError, match="no network") as caught:
        read(SOURCE)
    for hint in (SOURCE.address, "FORBACK_DATA", "home/log.txt"):
        assert hint in str(caught.value)


@pytest.mark.parametrize("error", [IncompleteRead(b"a l"), TimeoutError("slow")])
def test_half_a_download_leaves_nothing(monkeypatch, nowhere, error):
    monkeypatch.setattr(download, "urlopen", answer(error))
    with pytest.raises(FileNotFoundError, match="could not be downloaded"):
        read(SOURCE)
    assert not nowhere.exists()


def test_other_content_is_refused_and_not_kept(monkeypatch, nowhere):
    monkeypatch.setattr(download, "urlopen", answer(b"something else"))
    with pytest.raises(ValueError, match="has changed: its sha256 must be"):
        read(SOURCE)
    assert not nowhere.exists()


def test_a_failed_write_leaves_nothing(monkeypatch, nowhere):
    def broken(*_):
        raise OSError("disk full")

    monkeypatch.setattr(download, "urlopen", answer(CONTENT))
    monkeypatch.setattr(atomic.os, "replace", broken)
    assert read(SOURCE) == "a log\n"  # it is there, only not kept
    assert list((nowhere / "home").iterdir()) == []


def test_the_cache_is_where_the_desktop_says(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for named in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", named)
        assert cache_folder() == tmp_path / ".cache" / "forback"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / ".cache" / "forback"


def test_the_public_function_tells_of_a_missing_network():
    with pytest.raises(FileNotFoundError, match="FORBACK_DATA"):
        load_sensor_log("ordonez-a")


def test_checksums_are_those_of_the_files(data_folder):
    for sources in [*SOURCES.values(), *LIBSVM.values()]:
        for source in sources:
            place = data_folder / source.folder / source.file
            packed = place.with_name(f"{place.name}.xz")
            content = place.read_bytes() if place.exists() else lzma.decompress(packed.read_bytes())
            assert hashlib.sha256(content).hexdigest() == source.sha256
            assert " " not in source.address
