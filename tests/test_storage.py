"""Files are written whole or not at all, and believed only as far as their schema goes."""

import os
import stat
import subprocess
import sys
import threading

import pytest

from forback import storage

POSIX = pytest.mark.skipif(os.name != "posix", reason="modes, links and pipes of POSIX")


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("content", ["für alle\n", b"\x00\xff", ""])
def test_a_file_holds_what_was_written(content, tmp_path):
    file = tmp_path / "file"
    for _ in range(2):
        storage.write(file, content)
        wanted = content.encode("utf-8") if isinstance(content, str) else content
        assert file.read_bytes() == wanted
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_write_that_fails_changes_nothing(failing, tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("before")

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(OSError, match="No space left"):
        storage.write(file, "after")
    assert file.read_text() == "before"
    assert names(tmp_path) == ["file"]


def test_an_interrupt_changes_nothing(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("before")

    def interrupt(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        storage.write(file, "after")
    assert (file.read_text(), names(tmp_path)) == ("before", ["file"])


@POSIX
def test_mode_and_link_stay(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("before")
    file.chmod(0o640)
    link.symlink_to("file")
    storage.write(link, "after")
    assert link.is_symlink()
    assert file.read_text() == "after"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    dangling = tmp_path / "dangling"
    dangling.symlink_to("new")
    storage.write(dangling, "new")
    assert (tmp_path / "new").read_text() == "new"


@POSIX
def test_a_new_file_has_the_mode_of_any_new_file(tmp_path):
    code = (
        "import os, sys; from forback import storage; os.umask(0o027); "
        "storage.write(sys.argv[1], 'text')"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "file")], check=True)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@POSIX
def test_what_is_no_regular_file_is_written_to_as_it_is(tmp_path):
    pipe, heard = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    storage.write(pipe, "through")
    reader.join()
    assert heard == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    if os.path.exists("/dev/full"):
        with pytest.raises(OSError, match="No space"):
            storage.write("/dev/full", "lost")
    with pytest.raises(IsADirectoryError):
        storage.write(tmp_path, "no")


def test_readers_never_see_a_part(tmp_path):
    """Two writers and a reader: every read is one whole file or the other."""
    file, whole = tmp_path / "file", {"a" * 300_000, "b" * 200_000}
    storage.write(file, "a" * 300_000)
    done = threading.Event()

    def write(text):
        while not done.is_set():
            storage.write(file, text)

    writers = [threading.Thread(target=write, args=(text,)) for text in whole]
    for writer in writers:
        writer.start()
    try:
        torn = sum(file.read_text() not in whole for _ in range(300))
    finally:
        done.set()
        for writer in writers:
            writer.join()
    assert torn == 0
    assert names(tmp_path) == ["file"]


# Reading -----------------------------------------------------------------------------------------

BAD = [
    (storage.number(), True, "field must be a finite number, got True"),
    (storage.number(), "1", "got '1'"),
    (storage.number(), 10**400, "got 1000"),
    (storage.number(), float("nan"), "got nan"),
    (storage.number(low=0.0), -1e-300, "of at least 0, got -1e-300"),
    (storage.number(0.0, 1.0), 1.0, "and below 1, got 1.0"),
    (storage.whole(), 1.0, "a whole number from 0 to .*, got 1.0"),
    (storage.whole(), False, "got False"),
    (storage.whole(high=3), 3, "from 0 to 2, got 3"),
    (storage.word(), 3, "field must be text, got 3"),
    (storage.word("a", "b"), "c", "one of a, b, got 'c'"),
    (storage.listing(storage.whole()), {}, "field must be a list"),
    (storage.listing(storage.whole()), [1, "x"], r"field\[1\] must be a whole number"),
    (storage.listing(storage.whole(), 2), [1], "a list of length 2, got 'length 1'"),
    (storage.nullable(storage.word()), 0, "text, got 0"),
    (storage.record({"a": storage.word()}), [], "field must be an object"),
    (storage.record({"a": storage.word()}), {}, "field.a must be present"),
    (storage.record({"a": storage.word()}), {"a": "", "b": 1}, "field.b must be absent"),
    (storage.record({"a": storage.whole()}), {"a": "x" * 99}, r"field.a .*xxx\.\.\.$"),
]


@pytest.mark.parametrize(("check", "value", "message"), BAD)
def test_a_check_names_the_field(check, value, message):
    with pytest.raises(storage.Mismatch, match=message):
        check(value, "field")


def test_checks_give_back_what_they_checked():
    schema = storage.record(
        {"a": storage.number(), "b": storage.nullable(storage.listing(storage.whole()))}
    )
    assert schema({"a": 1, "b": None}, "") == {"a": 1.0, "b": None}
    assert schema({"a": -0.5, "b": [1, 2]}, "") == {"a": -0.5, "b": [1, 2]}
    assert storage.record({"a": storage.word()}, partial=True)({}, "") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "a must be given once"),
        ('{"a": NaN}', "every number must be finite, got 'NaN'"),
        ('{"a": -Infinity}', "every number must be finite"),
        ("[" * 100_000, "nested too deeply"),
        ("no json", "Expecting value"),
    ],
)
def test_text_that_is_not_plain_json_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        storage.parse(text)
