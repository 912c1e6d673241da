"""Against exhaustive search: never better than the best subset, and often equal to it."""

from itertools import combinations

import numpy as np
import pytest

from forback import select
from support.problems import LOSSES, make_problem

METHODS = ("foba-gdt", "foba-obj", "forward-gdt", "forward-obj")


@pytest.mark.parametrize("loss", LOSSES)
def test_no_run_beats_exhaustive_search_and_easy_problems_are_solved(loss):
    found = 0
    for seed in range(4):
        objective = make_problem(loss, "gaussian", seed, n=80, p=7).objective()
        best = min(
            objective.minimise(np.array(subset)).value for subset in combinations(range(7), 3)
        )
        for method in METHODS:
            value = select(objective, k=3, method=method)[3].value
            assert value >= best - 1e-9 * max(1.0, abs(best))
            found += value <= best + 1e-9 * max(1.0, abs(best))
    assert found >= 12
