"""The child process of a contestant: it holds the data and times one run at a time, on request."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from timeit import Timer
from typing import Any

import numpy as np

from benchmarks.contract import Contestant, Problem, Run, Unavailable, refit
from benchmarks.workloads import Workload
from forback.core.types import Floats

PROC = Path("/proc/self")


@dataclass(frozen=True)
class Judgement:
    """What the first run chose.

    Attributes
    ----------
    features : int or None
        How many coordinates; None where choosing was not the task.
    value : float or None
        The objective of forback, refitted on them.
    X_bytes : int
        The size of X, beside which memory is shown.
    """

    features: int | None
    value: float | None
    X_bytes: int


@dataclass(frozen=True)
class Reading:
    """Seconds of one run, and of the floor in the same process right before."""

    seconds: float
    floor: float


def serve(connection: Connection, workload: Workload, contestant: Contestant) -> None:
    """Prepare, say so by an empty string, then answer the requests "judge", "weigh" and "time".

    Where that is impossible the answer is a sentence, and it is the last one.
    """
    warnings.simplefilter("ignore")  # a peer's complaints are not the reader's
    try:
        entry = Entry(workload, contestant)
        answers = {"judge": entry.judge, "weigh": entry.weigh, "time": entry.time}
        connection.send("")
        while request := connection.recv():
            connection.send(answers[request]())
    except Unavailable as reason:
        connection.send(str(reason))
    except EOFError:
        pass  # the parent is gone
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}".splitlines()[0])


class Entry:
    """A contestant with its problem, ready to run again and again."""

    def __init__(self, workload: Workload, contestant: Contestant) -> None:
        self.problem = workload.problem()
        self.contestant: Run = contestant.prepare(self.problem)
        self.floor_per_addition = workload.floor_per_addition
        self.passes = self.problem.k

    def judge(self) -> Judgement:
        """Run once, as a warm-up, and refit on what was chosen; every run chooses the same."""
        choice = self.contestant()
        if self.floor_per_addition and choice.additions is not None:
            self.passes = choice.additions
        if choice.support is None:
            return Judgement(None, None, X_bytes(self.problem))
        point = refit(self.problem, choice.support)
        return Judgement(point.size, point.value, X_bytes(self.problem))

    def weigh(self) -> int | None:
        """Measure what a run holds at its peak beyond what was held before it."""
        return peak_memory(self.contestant)

    def time(self) -> Reading:
        """Time the floor, then the contestant."""
        floor = timed(lambda: products(self.problem.X, self.problem.y, self.passes))
        return Reading(timed(self.contestant), floor)


def timed(work: Callable[[], Any]) -> float:
    """Time some work in seconds: the mean over as many runs as take 0.2 s together."""
    runs, seconds = Timer(work).autorange()
    return seconds / runs


def products(X: Any, r: Floats, passes: int) -> None:
    """Do what no greedy path can do without: one product X'r for each addition."""
    for _ in range(passes):
        X.T @ r


def X_bytes(problem: Problem) -> int:
    """Return the size of X in memory."""
    X = problem.X
    parts = (X,) if isinstance(X, np.ndarray) else (X.data, X.indices, X.indptr)
    return sum(part.nbytes for part in parts)


def peak_memory(work: Callable[[], Any]) -> int | None:
    """Measure the peak memory of some work in bytes; None where the system does not tell.

    Memory that earlier work freed is first given back, or it would be used again unseen.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    try:
        (PROC / "clear_refs").write_text("5")  # resets the peak
        before = _status("VmRSS")
    except OSError:
        return None
    work()
    return max(_status("VmHWM") - before, 0)


def _status(field: str) -> int:
    for line in (PROC / "status").read_text().splitlines():
        name, _, amount = line.partition(":")
        if name == field:
            return 1024 * int(amount.split()[0])
    raise OSError(f"{field} is not in {PROC / 'status'}")
