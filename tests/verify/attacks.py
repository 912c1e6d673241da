"""The attacks of `hostile`: all of them, and those that compare with the reference."""

import resource
from collections import Counter

from hostile import fuzz
from hostile.harness import ATTACKS, SKIPPED, pick
from verify.part import Part, Tally

#: What `reference` is made of, and how often; each compares every step of a run with Algorithm 1.
AGAINST_REFERENCE = {"linear_models": 7, "several_classes": 1, "graphs": 1, "chains": 1}


class Attacks(Part):
    """All attacks in turn, in processes that may die: the cases of `make fuzz`."""

    def run(self, cases, seed=0, jobs=1):
        before = _seconds_of_children()
        tried, skipped, found = fuzz.fuzz(sorted(ATTACKS), cases, seed, jobs)
        return Tally(
            sum(tried.values()),
            Counter(reason.removeprefix(SKIPPED) for _, reason in skipped),
            [(case.seed, f"{case.attack}: {error}") for case, error in found],
            _seconds_of_children() - before,
        )


def _seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def against_reference(rng):
    name = pick(rng, [name for name, times in AGAINST_REFERENCE.items() for _ in range(times)])
    ATTACKS[name](rng)


HOSTILE = Attacks(
    "hostile",
    "Every attack of `tests/hostile`, in processes of their own.",
    200_000,
    check=against_reference,
)
REFERENCE = Part(
    "reference",
    "Every step and value of a run is that of the slow transcription of Algorithm 1: all losses, "
    "several classes, graphs and chains; dense and sparse, weights, ridge, groups, all methods, "
    "both backward rules.",
    60_000,
    against_reference,
)
