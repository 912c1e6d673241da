"""The attacks of `hostile`: all of them, and those that compare with the reference."""

import os
from collections import Counter
from dataclasses import dataclass

from hostile import fuzz
from hostile.harness import ATTACKS, SKIPPED, pick
from verify.part import Part, Tally

#: What `reference` is made of, and how often; each compares every step of a run with Algorithm 1.
AGAINST_REFERENCE = {"linear_models": 7, "several_classes": 1, "graphs": 1, "chains": 1}


@dataclass(frozen=True)
class Attacks:
    """All attacks in turn, in processes that may die: a part whose cases are those of `make fuzz`.

    Attributes
    ----------
    name : str
    what : str
    cases, least : int
        As in `Part`.
    """

    name: str
    what: str
    cases: int
    least: int = 1

    def run(self, cases, seed=0, jobs=1):
        """Run so many cases, with seeds from `seed` on."""
        before = _seconds_of_children()
        tried, skipped, found = fuzz.fuzz(sorted(ATTACKS), cases, seed, jobs)
        return Tally(
            tried=sum(tried.values()),
            skipped=Counter(reason.removeprefix(SKIPPED) for _, reason in skipped),
            wrong=[(case.seed, f"{case.attack}: {error}") for case, error in found],
            seconds=_seconds_of_children() - before,
        )


def _seconds_of_children():
    used = os.times()
    return used.children_user + used.children_system


def against_reference(rng):
    name = pick(rng, [name for name, times in AGAINST_REFERENCE.items() for _ in range(times)])
    ATTACKS[name](rng)


HOSTILE = Attacks(
    "hostile",
    "Every attack of `tests/hostile`, in processes of their own.",
    200_000,
)
REFERENCE = Part(
    "reference",
    "Every step and value of a run is that of the slow transcription of Algorithm 1: all losses, "
    "several classes, graphs and chains; dense and sparse, weights, ridge, groups, all methods, "
    "both backward rules.",
    60_000,
    against_reference,
)
