"""The paper's lemmas on hundreds of random problems, with constants that are certified.

Least squares: enumerated exactly. Ridge-logistic: a valid lower rho_- and upper rho_+. The same
laws are checked by the thousand in `make verify`.
"""

import numpy as np
import pytest

from verify import lemmas

PROBLEMS = [(kind, seed) for kind in ("squares", "logistic") for seed in range(150)]
METHODS = ("foba-obj", "foba-gdt")


def problems(start=0, step=1):
    for kind, seed in PROBLEMS[start::step]:
        yield lemmas.make_problem(kind, np.random.default_rng(seed), seed % 3)


@pytest.mark.parametrize("part", range(5))
def test_goodness_and_gradient_bound_each_other(part):
    assert max(map(lemmas.goodness_and_gradient, problems(part, 5))) > 0.9


@pytest.mark.parametrize("part", range(5))
def test_the_general_forward_step(part):
    assert max(map(lemmas.forward_step, problems(part, 5))) > 0.2  # not trivially true


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("part", range(4))
def test_the_general_backward_criterion(part, method):
    tight = [lemmas.backward_criterion(problem, method) for problem in problems(part, 4)]
    assert sum(one > 0 for one in tight) > 60
    assert max(tight) > 0.3


@pytest.mark.parametrize("method", METHODS)
def test_recorded_gains_are_no_less_than_the_threshold(method):
    assert max(lemmas.recorded_gains(problem, method) for problem in problems(step=3)) > 0.5


@pytest.mark.parametrize("method", METHODS)
def test_with_the_theorems_threshold_no_point_is_below_the_true_one(method):
    tight = [lemmas.never_below_the_truth(problem, method) for problem in problems()]
    assert sum(one > 0 for one in tight) > 20


def test_restricted_curvature_is_that_of_all_supports():
    assert max(map(lemmas.enumerated_curvature, problems(step=5))) > 0.9


@pytest.mark.parametrize("seed", range(5))
def test_the_theorems_hold_where_their_conditions_do(seed):
    lemmas.theorems(np.random.default_rng(seed))
