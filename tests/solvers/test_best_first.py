"""Screening finds the best candidate and its score, whatever it leaves out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forback.solvers.best_first import best_first, to_match


def solver(true, bounds, calls):
    """Exact where the bound reaches the best so far, else the bound."""

    def solve(some, best_so_far):
        calls.append((some.tolist(), best_so_far))
        hopeful = bounds[some] >= best_so_far
        return np.where(hopeful, true[some], bounds[some]), int(hopeful.sum())

    return solve


@given(
    seed=st.integers(0, 10**6),
    count=st.integers(0, 12),
    first=st.integers(1, 4),
    batch=st.none() | st.integers(1, 5),
)
def test_the_best_is_exact_and_the_others_are_bounds(seed, count, first, batch):
    rng = np.random.default_rng(seed)
    true = rng.random(count)
    bounds = true + rng.random(count)
    calls = []
    promise = rng.random(count)
    values, n_exact = best_first(promise, solver(true, bounds, calls), first=first, batch=batch)
    assert [number for some, _ in calls for number in some] == np.argsort(-promise).tolist()
    assert (values >= true).all()
    assert 0 <= n_exact <= count
    if count:
        assert values.argmax() == true.argmax()
        assert values.max() == true.max()
        limits = [limit for _, limit in calls]
        assert limits == sorted(limits)
        assert len(calls[0][0]) == min(first, count)


def test_ties_survive_within_the_slack():
    true = np.array([1.0, 1.0 - 5e-9, 0.5])
    values, n_exact = best_first(true, solver(true, true, []))
    assert n_exact == 2
    assert values.tolist() == true.tolist()
    assert to_match(true, 0.25) == pytest.approx(0.75)
