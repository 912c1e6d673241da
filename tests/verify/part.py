"""What a part is, and how its cases are run and counted.

A case is a function of a random generator. It raises AssertionError where something is wrong and
`Skip` where there is nothing to compare with, and may return observations, a row (a dict) each. It
runs under the guard of the hostile tests: warnings are errors, time is limited, nothing global may
have changed. Part and seed say all about it, so that whatever is found can be had again.
"""

import multiprocessing
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hostile.harness import Skip, guarded

#: Cases that a process takes at once.
CHUNK = 16


@dataclass
class Tally:
    """What came out of a part.

    Attributes
    ----------
    tried : int
    skipped : Counter
        Reason -> how often.
    wrong : list of (seed, str)
        What went wrong, and with which seed; no seed where it takes all cases to see it.
    seconds : float
        Processor time.
    rows : list of dict
        Observations.
    table : str
        What they come to, in Markdown.
    """

    tried: int = 0
    skipped: Counter = field(default_factory=Counter)
    wrong: list = field(default_factory=list)
    seconds: float = 0.0
    rows: list = field(default_factory=list)
    table: str = ""


@dataclass(frozen=True)
class Part:
    """Cases of one kind.

    Attributes
    ----------
    name : str
    what : str
        A sentence for the table of results.
    cases : int
        How many there are at scale 1.
    least : int
        How many there are at any scale: rates want a few hundred.
    check : callable
        A case: of a random generator.
    summarise : callable
        From all observations to a table and a list of what is wrong with them as a whole.
    """

    name: str
    what: str
    cases: int
    check: Callable[[np.random.Generator], Sequence[dict] | None]
    summarise: Callable[[list[dict]], tuple[str, list[str]]] | None = None
    least: int = 1

    def run(self, cases: int, seed: int = 0, jobs: int = 1) -> Tally:
        """Run so many cases, with seeds from `seed` on."""
        tally = Tally()
        seeds = range(seed, seed + cases)
        outcomes = self._outcomes(seeds, jobs)
        for number, (outcome, detail, seconds) in zip(seeds, outcomes, strict=True):
            tally.tried += 1
            tally.seconds += seconds
            if outcome == "skipped":
                tally.skipped[detail] += 1
            elif outcome == "wrong":
                tally.wrong.append((number, detail))
            else:
                tally.rows += detail
        if self.summarise is not None:
            tally.table, wrong = self.summarise(tally.rows)
            tally.wrong += [(None, sentence) for sentence in wrong]
        return tally

    def _outcomes(self, seeds: Sequence[int], jobs: int):
        case = partial(run_case, self.name, self.check)
        if jobs == 1:
            yield from map(case, seeds)
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, mp_context=context) as pool:
            yield from pool.map(case, seeds, chunksize=CHUNK)


def run_case(name: str, check: Callable, seed: int) -> tuple[str, Any, float]:
    """Run one case: what became of it, observations or words about it, and processor time."""
    rng = np.random.default_rng([seed, *name.encode()])
    start = time.process_time()
    try:
        with guarded():
            outcome, detail = "right", list(check(rng) or [])
    except Skip as reason:
        outcome, detail = "skipped", str(reason)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        outcome, detail = "wrong", f"{type(error).__name__}: {error} ({place})"
    return outcome, detail, time.process_time() - start
