"""A tiny workload, contestants that misbehave where new processes can import them, and results."""

import os
import time
from types import SimpleNamespace

from benchmarks.contract import Aim, Contestant, Unavailable
from benchmarks.runner.race import summarise
from benchmarks.runner.worker import Judgement, Reading
from benchmarks.workloads import Size, Workload, correlated

TINY = Workload("tiny", "squared", correlated, Size(40, 12, 3), Size(40, 12, 3))


def _sleeper(problem):
    return lambda: time.sleep(60)


def _raiser(problem):
    def run():
        raise RuntimeError("no luck today\nand more lines")

    return run


def _quitter(problem):
    return lambda: os._exit(3)


def _stranger(problem):
    raise Unavailable("not from here")


SLEEPER = Contestant("sleeper", _sleeper)
RAISER = Contestant("raiser", _raiser)
QUITTER = Contestant("quitter", _quitter)
STRANGER = Contestant("stranger", _stranger)


def finished(name, seconds=(), floors=(), status="", is_late=False):
    """The outcome of a runner, made up."""
    return SimpleNamespace(
        name=name,
        timed=[Reading(*pair) for pair in zip(seconds, floors, strict=True)],
        judgement=Judgement(features=3, value=1.0, X_bytes=1600),
        extra=800,
        status=status,
        is_late=is_late,
        limit=120.0,
    )


def made_up_rows():
    """A workload in which aims were met and missed, and two contestants have no figures."""
    limits = {"floor": 2.5, "peer": 0.5, "late": 0.1}
    aims = [Aim("forback", name, limit) for name, limit in limits.items()]
    return summarise(
        "tiny",
        [*aims, Aim("forback-obj", "forback", 2.5)],
        [
            finished("forback", (1.0, 4.0, 2.0), (1.0, 1.0, 1.0)),
            finished("forback-obj", (3.0, 4.0, 6.0), (1.0, 1.0, 1.0)),
            finished("peer", (4.0, 8.0, 6.0), (2.0, 2.0, 2.0)),
            finished("late", status="stopped after 120 s", is_late=True),
            finished("absent", status="not installed"),
        ],
    )
