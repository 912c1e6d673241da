"""A tiny workload and contestants that misbehave, where new processes can import them."""

import os
import time

from experiments.contestants import Contestant
from experiments.workloads import Size, Unavailable, Workload, faster_than, synthetic

TINY = Workload(
    "tiny", "squared", synthetic, Size(40, 12, 3), Size(40, 12, 3),
    contestants=("sklearn-omp",), aims=faster_than(floor=1e9, sklearn_omp=1e-9),
)  # fmt: skip


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
