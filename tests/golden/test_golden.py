"""The steps of some forty runs as they were when `paths.json` was written."""

import json
from pathlib import Path

import pytest

from golden.runs import logistic_sparse, runs, steps_of

GOLDEN = json.loads(Path(__file__).with_name("paths.json").read_text(encoding="utf-8"))
#: The sum of the row numbers of the sparse matrix that `paths.json` was written with.
KEPT_PLACES = 118566

RUNS = {name: (make, asked) for name, make, asked in runs()}


def test_every_run_is_kept_and_removals_are_among_the_steps():
    assert set(GOLDEN) == set(RUNS)
    assert sum(step[0] == "remove" for steps in GOLDEN.values() for step in steps) >= 10


@pytest.mark.parametrize("name", RUNS)
def test_the_steps_are_those_that_were_kept(name):
    make, asked = RUNS[name]
    if make is logistic_sparse and make().design.X.indices.sum() != KEPT_PLACES:
        pytest.skip("this SciPy draws another sparse matrix")
    found = steps_of(make, asked)
    assert [step[:2] for step in found] == [step[:2] for step in GOLDEN[name]]
    for (*_, value), (*_, expected) in zip(found, GOLDEN[name], strict=True):
        assert value == pytest.approx(expected, rel=1e-9)
