"""`cd tests && python -m verify [PART ...] [--scale S] [--out FILE]`, or `make verify`.

Exit status 1 if anything is wrong. A part, its number of cases and a seed are all there is to it:
`python -m verify subsets --seed 1234 --cases 1` runs one case again.
"""

import argparse
import platform
import sys
from pathlib import Path

import numpy as np
import scipy

import forback
from forback.report.tables import markdown_table
from verify.attacks import HOSTILE, REFERENCE
from verify.contract import CONTRACT
from verify.lemmas import LEMMAS
from verify.refined import REFINED
from verify.subsets import SUBSETS
from verify.thresholds import THRESHOLDS

PARTS = {
    part.name: part for part in (HOSTILE, REFERENCE, SUBSETS, REFINED, THRESHOLDS, LEMMAS, CONTRACT)
}

#: So many of the cases that are wrong are written out.
MOST_WRONG = 20


def main(arguments=None):
    """Run parts, print their counts, write the results; return the exit status."""
    given = parse(arguments)
    tallies = {}
    for name in given.parts or PARTS:
        part = PARTS[name]
        cases = given.cases or max(part.least, round(part.cases * given.scale))
        tally = tallies[name] = part.run(cases, given.seed, given.jobs)
        print(report(name, tally), flush=True)
        if given.out is not None:  # after every part, since all of them take hours
            given.out.write_text(page(tallies, given), encoding="utf-8")
    return 1 if any(tally.wrong for tally in tallies.values()) else 0


def parse(arguments):
    parser = argparse.ArgumentParser(prog="verify", description="The third tier of tests.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--scale", type=float, default=1.0, help="1 takes hours")
    parser.add_argument("--cases", type=int, help="of every part, whatever the scale")
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, help="where to write the results, in Markdown")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.parts if name not in PARTS]
    if unknown:
        parser.error(f"PART must be of {', '.join(PARTS)}, got {', '.join(unknown)}")
    return given


def report(name, tally):
    """What is printed about a part."""
    skipped = sum(tally.skipped.values())
    counts = f"{tally.tried} tried, {skipped} skipped, {len(tally.wrong)} wrong"
    lines = [f"{name}: {counts}, {tally.seconds:.0f} s"]
    lines += [f"  skipped {times}: {reason}" for reason, times in tally.skipped.most_common()]
    lines += [f"  WRONG, {sentence}" for sentence in wrong_cases(name, tally)]
    return "\n".join([*lines, *([tally.table] if tally.table else [])])


def wrong_cases(name, tally):
    for seed, sentence in tally.wrong[:MOST_WRONG]:
        yield sentence if seed is None else f"seed {seed} of {name}: {sentence}"


def page(tallies, given):
    """The results, in Markdown."""
    versions = (
        f"forback {forback.__version__}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, SciPy {scipy.__version__}"
    )
    header = ["part", "what is checked", "scale", "tried", "skipped", "wrong", "seconds"]
    rows = [
        [
            name,
            PARTS[name].what,
            f"{tally.tried / PARTS[name].cases:.2g}",
            f"{tally.tried:,}",
            f"{sum(tally.skipped.values()):,}",
            f"{len(tally.wrong):,}",
            f"{tally.seconds:.0f}",
        ]
        for name, tally in tallies.items()
    ]
    sections = [
        "# Results of `make verify`",
        f"Written by the command, with seeds from {given.seed} on: {versions}. Seconds are of a "
        "processor; scale 1 takes hours.",
        markdown_table(header, rows),
    ]
    for name, tally in tallies.items():
        sections += section(name, tally)
    return "\n\n".join(sections) + "\n"


def section(name, tally):
    """What there is to say about a part besides its counts."""
    reasons = [
        f"- skipped {times:,}: {reason}." for reason, times in tally.skipped.most_common() if times
    ]
    wrong = [f"- **wrong**: {sentence}" for sentence in wrong_cases(name, tally)]
    found = [*reasons, *wrong]
    if found or tally.table:
        yield f"## {name}"
    if found:
        yield "\n".join(found)
    if tally.table:
        yield tally.table


if __name__ == "__main__":
    sys.exit(main())
