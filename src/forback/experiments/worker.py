"""The child process of a contestant: it holds the data and times one run at a time, on request."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from forback.experiments.contestants import Choice, Contestant, Run, make_objective
from forback.experiments.workloads import Problem, Unavailable, Workload
from forback.protocols import Floats

PROC = Path("/proc/self")


@dataclass(frozen=True)
class Reading:
    """What one run gave.

    Attributes
    ----------
    seconds, floor : float
        Of the contestant, and of the floor in the same process right before.
    features : int
        How many columns were chosen.
    value : float
        forback's objective, refitted on the columns chosen.
    extra : int or None
        Peak memory of the run beyond what the process held before it, in bytes.
    X_bytes : int
        The size of X.
    """

    seconds: float
    floor: float
    features: int
    value: float
    extra: int | None
    X_bytes: int


def serve(connection: Connection, workload: Workload, contestant: Contestant) -> None:
    """Prepare, say so by an empty string, then answer every request by a `Reading`.

    Where that is impossible the answer is a sentence, and it is the last one.
    """
    warnings.simplefilter("ignore")  # a peer's complaints are not the reader's
    try:
        stable = Stable(workload, contestant)
        connection.send("")
        while connection.recv():
            connection.send(stable.run())
    except Unavailable as reason:
        connection.send(str(reason))
    except EOFError:
        pass  # the parent is gone
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}".splitlines()[0])


class Stable:
    """A contestant with its problem, ready to run again and again."""

    def __init__(self, workload: Workload, contestant: Contestant) -> None:
        self.problem = workload.problem()
        self.contestant: Run = contestant.prepare(self.problem)
        self.floor_per_addition = workload.floor_per_addition
        self.passes = self.problem.k
        self.value: float | None = None

    def run(self) -> Reading:
        """Time the floor, then the contestant; judge what it chose, the first time."""
        floor, _ = timed(lambda: products(self.problem.X, self.problem.y, self.passes))
        memory = Memory()
        seconds, choice = timed(self.contestant)
        extra = memory.extra()
        if self.value is None:
            self.value = self._judge(choice)
        size = X_bytes(self.problem)
        return Reading(seconds, floor, len(choice.support), self.value, extra, size)

    def _judge(self, choice: Choice) -> float:
        """The objective on this support. It is the same at every run, so once is enough."""
        if self.floor_per_addition and choice.additions is not None:
            self.passes = choice.additions
        return make_objective(self.problem).minimise(np.sort(choice.support)).value


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds that some work takes, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def products(X: Any, r: Floats, passes: int) -> None:
    """The floor: what no greedy path can do without, one product X'r for each addition."""
    for _ in range(passes):
        X.T @ r


def X_bytes(problem: Problem) -> int:
    """The memory that holds X."""
    X = problem.X
    parts = (X,) if isinstance(X, np.ndarray) else (X.data, X.indices, X.indptr)
    return sum(part.nbytes for part in parts)


class Memory:
    """Peak memory from now on, beyond what is held now; unknown where the kernel does not tell."""

    def __init__(self) -> None:
        try:
            (PROC / "clear_refs").write_text("5")  # resets the peak
            self.before: int | None = _status("VmRSS")
        except OSError:
            self.before = None

    def extra(self) -> int | None:
        """Bytes beyond those at the start, at the peak."""
        return None if self.before is None else max(_status("VmHWM") - self.before, 0)


def _status(field: str) -> int:
    for line in (PROC / "status").read_text().splitlines():
        name, _, amount = line.partition(":")
        if name == field:
            return 1024 * int(amount.split()[0])
    raise OSError(f"{field} is not in {PROC / 'status'}")
