"""Files are written whole or not at all, and believed only as far as their schema goes."""

import errno
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from forback.files import atomic
from forback.files.atomic import write
from forback.files.schema import (
    Mismatch,
    listing,
    nullable,
    number,
    parse,
    record,
    whole,
    word,
)

POSIX = pytest.mark.skipif(os.name != "posix", reason="modes, links and pipes of POSIX")
DESCRIPTORS = pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="there is no /dev/fd")


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("content", ["für alle\n", b"\x00\xff", ""])
def test_a_file_holds_what_was_written(content, tmp_path, monkeypatch):
    file = tmp_path / "file"
    monkeypatch.chdir(tmp_path)
    for name in (file, str(file), "file"):
        write(name, content)
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
        write(file, "after")
    assert file.read_text() == "before"
    assert names(tmp_path) == ["file"]


def test_an_interrupt_changes_nothing(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("before")

    def interrupt(handle):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(file, "after")
    assert (file.read_text(), names(tmp_path)) == ("before", ["file"])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # closed late
def test_an_interrupt_at_any_line_leaves_no_draft(tmp_path):
    file, before, count = tmp_path / "file", sys.gettrace(), 0

    def trace(frame, event, argument):
        nonlocal left
        if frame.f_code.co_filename == atomic.__file__ and event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    while True:
        file.write_text("before")
        count += 1
        left = count
        sys.settrace(trace)
        try:
            write(file, "after")
        except KeyboardInterrupt:
            continue
        finally:
            sys.settrace(before)
            assert names(tmp_path) == ["file"], f"at line {count} of those executed"
            assert file.read_text() in ("before", "after")
        break
    assert count > 20


@POSIX
def test_mode_and_link_stay(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("before")
    file.chmod(0o640)
    link.symlink_to("file")
    write(link, "after")
    assert link.is_symlink()
    assert file.read_text() == "after"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    dangling = tmp_path / "dangling"
    dangling.symlink_to("new")
    write(dangling, "new")
    assert (tmp_path / "new").read_text() == "new"


@POSIX
def test_a_new_file_has_the_mode_of_any_new_file(tmp_path):
    code = (
        "import os, sys; from forback.files.atomic import write; os.umask(0o027)\n"
        "write(sys.argv[1], 'text')"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "file")], check=True)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@POSIX
def test_what_is_no_regular_file_is_written_to_as_it_is(tmp_path):
    pipe, heard = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    write(pipe, "through")
    reader.join()
    assert heard == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    if os.path.exists("/dev/full"):
        with pytest.raises(OSError, match="No space"):
            write("/dev/full", "lost")
    with pytest.raises(IsADirectoryError):
        write(tmp_path, "no")


@DESCRIPTORS
@pytest.mark.parametrize(
    "form", ["/dev/fd/{}", "/proc/self/fd/{}", "/proc/thread-self/fd/{}", "link"]
)
def test_what_is_open_already_is_written_to_where_it_is(form, tmp_path):
    if form.startswith("/proc") and not os.path.exists(os.path.dirname(form)):
        pytest.skip("there is no such folder")
    ends = socket.socketpair()
    with open(tmp_path / "file", "w+b", buffering=0) as file, ends[0], ends[1]:
        for handle in (file.fileno(), ends[1].fileno()):
            name = form.format(handle)
            if form == "link":
                name = tmp_path / f"link{handle}"
                name.symlink_to(f"/dev/fd/{handle}")
            os.write(handle, b"one ")
            write(name, "two ")
            os.write(handle, b"three")
        assert (tmp_path / "file").read_bytes() == ends[0].recv(99) == b"one two three"
    assert not [name for name in names(tmp_path) if name.startswith(".")]


@DESCRIPTORS
def test_standard_output_keeps_what_is_there(tmp_path):
    code = (
        "import os; from forback.files.atomic import write; os.write(1, b'one '); "
        "write('/dev/stdout', 'two '); os.write(1, b'three')"
    )
    with open(tmp_path / "out", "wb") as out:
        subprocess.run([sys.executable, "-c", code], check=True, stdout=out)
    piped = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE)
    assert (tmp_path / "out").read_bytes() == piped.stdout == b"one two three"


@DESCRIPTORS
def test_what_is_not_open_is_not_made(tmp_path):
    handle = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(IsADirectoryError):
        write(f"/dev/fd/{handle}", "text")
    os.close(handle)
    with pytest.raises(FileNotFoundError):
        write(f"/dev/fd/{handle}", "text")


# Where not everything is allowed ------------------------------------------------------------------


@contextmanager
def as_somebody():
    """Without the rights of root, if we have them."""
    root = os.geteuid() == 0
    if root:
        os.setegid(65534)
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
            os.setegid(0)


@pytest.fixture
def shared():
    """A folder that everybody may enter."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)
        os.chmod(folder, 0o777)


@POSIX
def test_a_colleague_keeps_the_group(tmp_path, monkeypatch):
    file, asked = tmp_path / "file", []
    file.write_text("before")

    def fchown(handle, user, group):
        asked.append((user, group))
        if user != -1:
            raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", fchown)
    write(file, "after")
    old = file.stat()
    assert asked == [(old.st_uid, old.st_gid), (-1, old.st_gid)]
    assert file.read_text() == "after"


@POSIX
def test_a_file_that_may_not_be_written_is_not_replaced(shared):
    file = shared / "file"
    file.write_text("before")
    file.chmod(0o444)
    with as_somebody(), pytest.raises(PermissionError) as caught:
        write(file, "after")
    assert caught.value.filename == str(file)
    assert (file.read_text(), names(shared)) == ("before", ["file"])


@POSIX
def test_a_folder_that_may_not_be_changed_holds_files_that_may(shared):
    file = shared / "file"
    file.write_text("a longer text before")
    file.chmod(0o666)
    shared.chmod(0o555)
    with as_somebody():
        write(file, "after")
        with pytest.raises(PermissionError) as caught:
            write(shared / "new", "text")
    assert caught.value.filename == str(shared / "new")
    assert (file.read_text(), names(shared)) == ("after", ["file"])


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EPERM])
def test_a_file_that_cannot_be_replaced_is_written_to(number, tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("a longer text before")

    def refuse(draft, target):
        raise OSError(number, os.strerror(number), draft, None, target)

    monkeypatch.setattr(os, "replace", refuse)
    write(file, "after")
    assert (file.read_text(), names(tmp_path)) == ("after", ["file"])
    with pytest.raises(OSError, match=r"new'$") as caught:
        write(tmp_path / "new", "text")
    assert caught.value.filename == str(tmp_path / "new")


@POSIX
def test_names_are_refused_as_open_refuses_them(tmp_path):
    (tmp_path / "file").write_text("before")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "far").symlink_to("absent/new")
    for name in ("a", "file/", "new/", "new/.", "absent/new", "file/new", "far", "."):
        place = f"{tmp_path}/{name}"
        with pytest.raises(OSError, match=r"Errno") as expected, open(place, "w"):
            pass
        with pytest.raises(type(expected.value)) as caught:
            write(place, "text")
        assert caught.value.errno == expected.value.errno, name
        assert caught.value.filename == place
    assert (tmp_path / "file").read_text() == "before"
    assert names(tmp_path) == ["a", "b", "far", "file"]
    with pytest.raises(FileNotFoundError):
        write("", "text")


@pytest.mark.parametrize("name", [b"file", 3, None])
def test_a_name_is_text(name):
    with pytest.raises(TypeError, match="file must be a name as text or a path, got"):
        write(name, "text")


def test_readers_never_see_a_part(tmp_path):
    """Two writers and a reader: every read is one whole file or the other."""
    file, whole = tmp_path / "file", {"a" * 300_000, "b" * 200_000}
    write(file, "a" * 300_000)
    done = threading.Event()

    def keep_writing(text):
        while not done.is_set():
            write(file, text)

    writers = [threading.Thread(target=keep_writing, args=(text,)) for text in whole]
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
    (number(), True, "field must be a finite number, got True"),
    (number(), "1", "got '1'"),
    (number(), 10**400, "got 1000"),
    (number(), float("nan"), "got nan"),
    (number(low=0.0), -1e-300, "of at least 0, got -1e-300"),
    (number(0.0, 1.0), 1.0, "and below 1, got 1.0"),
    (whole(), 1.0, "a whole number from 0 to .*, got 1.0"),
    (whole(), False, "got False"),
    (whole(high=3), 3, "from 0 to 2, got 3"),
    (word(), 3, "field must be text, got 3"),
    (word("a", "b"), "c", "one of a, b, got 'c'"),
    (listing(whole()), {}, "field must be a list"),
    (listing(whole()), [1, "x"], r"field\[1\] must be a whole number"),
    (listing(whole(), 2), [1], "a list of length 2, got 'length 1'"),
    (nullable(word()), 0, "text, got 0"),
    (record({"a": word()}), [], "field must be an object"),
    (record({"a": word()}), {}, "field.a must be present"),
    (record({"a": word()}), {"a": "", "b": 1}, "field.b must be absent"),
    (record({"a": whole()}), {"a": "x" * 99}, r"field.a .*xxx\.\.\.$"),
]


@pytest.mark.parametrize(("check", "value", "message"), BAD)
def test_a_check_names_the_field(check, value, message):
    with pytest.raises(Mismatch, match=message):
        check(value, "field")


def test_checks_give_back_what_they_checked():
    schema = record({"a": number(), "b": nullable(listing(whole()))})
    assert schema({"a": 1, "b": None}, "") == {"a": 1.0, "b": None}
    assert schema({"a": -0.5, "b": [1, 2]}, "") == {"a": -0.5, "b": [1, 2]}
    assert record({"a": word()}, partial=True)({}, "") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "a must be given once"),
        ('{"a": NaN}', "every number must be finite, got 'NaN'"),
        ('{"a": -Infinity}', "every number must be finite"),
        ("[" * 100_000, "nested too deeply"),
        ("no json", "Expecting value"),
        ('{"a": {"b": 1, "c": 2, "c": 3}}', "c must be given once, got '2 times'"),
    ],
)
def test_text_that_is_not_plain_json_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_what_cannot_be_shown_is_refused_all_the_same():
    class Broken:
        def __repr__(self):
            raise RuntimeError

    deep = []
    for _ in range(10**5):
        deep = [deep]
    for value in (deep, Broken()):
        with pytest.raises(Mismatch, match="field must be text, got something of type"):
            word()(value, "field")


@pytest.mark.parametrize("check", [number(), whole(), word()])
def test_a_number_of_too_many_digits_is_refused_by_its_field(check):
    value = parse(f'{{"a": [-{"9" * 5000}]}}')["a"]
    with pytest.raises(Mismatch, match=r"a\[0\] must be .*, got a number of 5000 digits"):
        listing(check)(value, "a")


def test_repeated_keys_are_found_in_linear_time():
    keys = ",".join(f'"{number}": 0' for number in range(100_000))
    start = time.perf_counter()
    with pytest.raises(Mismatch, match="99999 must be given once"):
        parse(f'{{{keys}, "99999": 1}}')
    assert time.perf_counter() - start < 5.0  # counting each would take minutes
