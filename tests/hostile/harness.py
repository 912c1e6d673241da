"""Attacks: functions of a random generator that raise where something is wrong.

An attack makes a random case, lets forback at it and compares with a reference, or with what an
error may be. `run_case` runs one under guard: warnings are errors, time is limited, and nothing
global may have changed. A case is an attack and a seed, so that whatever is found can be had again.
"""

import contextlib
import json
import os
import signal
import tempfile
import traceback
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

#: Seconds for one case.
LIMIT = 60

#: Where cases are kept that went wrong once.
FOUND = Path(__file__).parent / "found"

ATTACKS = {}


#: How the answer begins where there is nothing to say; the reason follows.
SKIPPED = "skipped: "


class Skip(Exception):
    """A case about which the reference has nothing to say, and why."""


def attack(function):
    """Let a function take part, under its own name."""
    ATTACKS[function.__name__] = function
    return function


@dataclass(frozen=True)
class Case:
    attack: str
    seed: int

    @property
    def file(self):
        return FOUND / f"{self.attack}-{self.seed}.json"

    def keep(self, error):
        FOUND.mkdir(exist_ok=True)
        self.file.write_text(json.dumps({**asdict(self), "error": error}, indent=1) + "\n")


def kept_cases():
    """What was found earlier, to be tried for ever."""
    files = sorted(FOUND.glob("*.json"))
    return [Case(row["attack"], row["seed"]) for row in (json.loads(f.read_text()) for f in files)]


def is_fine(answer):
    """Whether an answer of `run_case` is none of something that went wrong."""
    return answer is None or answer.startswith(SKIPPED)


def run_case(case):
    """None if all is well, why the case was skipped, or what went wrong."""
    rng = np.random.default_rng([case.seed, *case.attack.encode()])
    try:
        with guarded():
            ATTACKS[case.attack](rng)
    except Skip as reason:
        return f"{SKIPPED}{reason}"
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
    return None


@contextlib.contextmanager
def guarded():
    """Warnings are errors, time is limited, nothing global changes, no file is left behind."""
    before = _globals()
    here = os.getcwd()
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
        _time_limit(LIMIT),
    ):
        warnings.simplefilter("error")
        filters = list(warnings.filters)
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)
        assert list(warnings.filters) == filters, "warning filters were changed"
        assert os.listdir(folder) == [], "a file was left behind"
    assert _globals() == before, "something global was changed"


def _globals():
    state = np.random.get_state()  # noqa: NPY002  the one that must not be touched
    return state[1].tobytes(), state[2], np.geterr(), np.get_printoptions()["precision"]


@contextlib.contextmanager
def _time_limit(seconds):
    def late(*_):
        raise TimeoutError(f"more than {seconds} s")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    old = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


@contextlib.contextmanager
def refused(*kinds):
    """A plain error, with something to read, is a fine answer; anything else is not."""
    try:
        yield
    except kinds as error:
        if len(str(error)) < 15:
            raise AssertionError(f"an error that says too little: {error!r}") from error


def pick(rng, options):
    return options[int(rng.integers(len(options)))]


def moves(path):
    return [(step.action, step.feature) for step in path.steps]


def assert_same(found, expected, what):
    assert found == expected, f"{what}: {found} instead of {expected}"


def assert_close(found, expected, what, rtol=1e-7, atol=0.0):
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    close = np.allclose(found, expected, rtol=rtol, atol=atol)
    assert close, f"{what}: {found} instead of {expected}"
