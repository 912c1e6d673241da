"""One workload: its contestants in processes of their own, taking turns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from statistics import median
from typing import Any

from benchmarks.contract import Aim, Contestant
from benchmarks.runner.worker import Judgement, Reading, serve
from benchmarks.workloads import Workload

Say = Callable[[str], None]

#: What the thread pools of NumPy, SciPy, numba, OpenMP and XLA read at start-up.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NPROC",
)


@dataclass(frozen=True)
class Rules:
    """How a workload is run."""

    rounds: int = 5
    threads: int = 2
    limit: float = 120.0


@dataclass(frozen=True)
class Verdict:
    """An aim, and what came of it.

    `is_met` is None where the other side ran out of time before the ratio, which is then only an
    upper bound, was small enough.
    """

    aim: Aim
    ratio: float
    is_bound: bool
    is_met: bool | None


@dataclass(frozen=True)
class Row:
    """A contestant's figures on a workload.

    Where there are none, `status` says why, and `stopped_at` is the time limit if that is why.
    """

    workload: str
    contestant: str
    status: str = ""
    stopped_at: float | None = None
    seconds: float | None = None
    over_forback: float | None = None
    over_floor: float | None = None
    objective: float | None = None
    features: int | None = None
    extra_bytes: int | None = None
    extra_over_X: float | None = None
    verdict: Verdict | None = None


def race(
    workload: Workload,
    contestants: Sequence[Contestant],
    aims: Sequence[Aim],
    rules: Rules,
    say: Say,
) -> list[Row]:
    """Judge and weigh everybody, then let them take turns; the first is the one to beat."""
    with ExitStack() as stack:
        runners = []
        for contestant in contestants:
            runner = Runner(workload, contestant, rules)
            stack.callback(runner.stop)
            runner.prepare()
            say(f"  {contestant.name}: {runner.status or 'warm'}")
            runners.append(runner)
        warm = [runner for runner in runners if not runner.status]
        for number in range(rules.rounds):
            for runner in _turns(warm, number):
                runner.run()
            say(f"  round {number + 1} of {rules.rounds}")
    return summarise(workload.name, aims, runners)


def _turns(runners: list[Runner], number: int) -> list[Runner]:
    """Put the first always first, and rotate the order of the others from round to round."""
    others = runners[1:]
    shift = number % len(others) if others else 0
    return [*runners[:1], *others[shift:], *others[:shift]]


@contextmanager
def pinned(threads: int) -> Iterator[None]:
    """Give processes started in here pools of so many threads, whatever library they use."""
    before = dict(os.environ)
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={str(threads > 1).lower()}"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class Runner:
    """The parent's end of a worker: asks for runs, keeps the readings, ends it when it is late."""

    def __init__(self, workload: Workload, contestant: Contestant, rules: Rules) -> None:
        context = get_context("spawn")  # a fresh interpreter, so that the pins hold
        self.connection, other = context.Pipe()
        self.process = context.Process(
            target=serve, args=(other, workload, contestant), daemon=True
        )
        with pinned(rules.threads):
            self.process.start()
        other.close()  # the worker has its own copy; with this one open its death would go unseen
        self.name = contestant.name
        self.limit = rules.limit
        self.is_late = False
        self.judgement: Judgement | None = None
        self.extra: int | None = None
        self.readings: list[Reading] = []
        self.status = str(self._answer(limit=None))

    def prepare(self) -> None:
        """Run twice without a clock: to warm up, and for the memory."""
        self.judgement = self._ask("judge")
        self.extra = self._ask("weigh")

    def run(self) -> None:
        """Take one more reading, unless there can be none."""
        reading = self._ask("time")
        if reading is not None:
            self.readings.append(reading)

    def _ask(self, request: str) -> Any:
        """Ask the worker; an answer that is a sentence, or too late, becomes the status."""
        if self.status:
            return None
        answer = self._answer(self.limit, request)
        if not isinstance(answer, str):
            return answer
        self.status = answer
        self.stop()
        return None

    def _answer(self, limit: float | None, request: str = "") -> object:
        try:
            if request:
                self.connection.send(request)
            if self.connection.poll(limit):
                return self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            return f"its process died (exit code {self.process.exitcode})"
        self.is_late = True
        return f"stopped after {self.limit:g} s"

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self.process.kill()
        self.process.join()
        self.connection.close()

    @property
    def timed(self) -> list[Reading]:
        """The readings that count: none of a runner that failed on the way."""
        return [] if self.status else self.readings


# Figures -----------------------------------------------------------------------------------------


def summarise(workload: str, aims: Sequence[Aim], runners: Sequence[Runner]) -> list[Row]:
    """Make a row for each contestant, and one for the floor as it was beside the first."""
    verdicts = _verdicts(aims, {runner.name: runner for runner in runners})
    base = runners[0]
    rows = [_row(workload, runner, base, verdicts.get(runner.name)) for runner in runners]
    if base.timed:
        floor = Row(
            workload,
            "floor",
            seconds=median(reading.floor for reading in base.timed),
            over_forback=median(reading.floor / reading.seconds for reading in base.timed),
            over_floor=1.0,
            verdict=verdicts.get("floor"),
        )
        rows.append(floor)
    return rows


def _row(workload: str, runner: Runner, base: Runner, verdict: Verdict | None) -> Row:
    readings = runner.timed
    judgement = runner.judgement
    if not readings or judgement is None:
        stopped_at = runner.limit if runner.is_late else None
        return Row(workload, runner.name, runner.status, stopped_at, verdict=verdict)
    return Row(
        workload,
        runner.name,
        seconds=median(reading.seconds for reading in readings),
        over_forback=_ratio(runner, base) if base.timed else None,
        over_floor=median(reading.seconds / reading.floor for reading in readings),
        objective=judgement.value,
        features=judgement.features,
        extra_bytes=runner.extra,
        extra_over_X=None if runner.extra is None else runner.extra / judgement.X_bytes,
        verdict=verdict,
    )


def _ratio(subject: Runner, against: Runner) -> float:
    """Return the median over the rounds of one time over the other."""
    pairs = zip(subject.timed, against.timed, strict=True)
    return median(one.seconds / other.seconds for one, other in pairs)


def _verdicts(aims: Sequence[Aim], runners: Mapping[str, Runner]) -> dict[str, Verdict]:
    """Judge each aim of which both sides took part, by the row where it is shown."""
    verdicts = {}
    for aim in aims:
        subject = runners.get(aim.subject)
        against = runners.get(aim.against)
        if subject is None or not subject.timed:
            continue
        if aim.against == "floor":
            ratio = median(reading.seconds / reading.floor for reading in subject.timed)
        elif against is not None and against.timed:
            ratio = _ratio(subject, against)
        elif against is not None and against.is_late:
            bound = median(reading.seconds for reading in subject.timed) / against.limit
            verdicts[aim.row] = Verdict(aim, bound, True, bound <= aim.limit or None)
            continue
        else:
            continue
        verdicts[aim.row] = Verdict(aim, ratio, False, ratio <= aim.limit)
    return verdicts
