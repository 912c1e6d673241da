"""Scores of groups of columns and of refits: by bounds, all at once, as one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from forback import select
from forback.core.blocks import Blocks
from forback.core.objective import Objective
from forback.objectives import GLM
from forback.objectives.linear import blocks as linear_blocks
from forback.selection.ties import highest, lowest
from support.hard_problems import KINDS, METHODS, assert_same_path, build, hard_data, run, stored
from support.problems import LOSSES

situations = {
    "loss": st.sampled_from(LOSSES),
    "kind": st.sampled_from(KINDS),
    "seed": st.integers(0, 10**6),
    "storage": st.sampled_from(["C", "F", "csc"]),
    "ridge": st.sampled_from([0.0, 1e-3, 0.3]),
    "fit_intercept": st.booleans(),
    "weighted": st.booleans(),
    "offset": st.booleans(),
}


def make(loss, kind, seed, storage, weighted, offset, *, n=60, p=18, **options):
    X, y = hard_data(loss, kind, seed, n=n, p=p)
    rng = np.random.default_rng(seed)
    if weighted:
        options["sample_weight"] = 10.0 ** rng.uniform(-3, 3, size=n)
    if offset:
        options["offset"] = 0.3 * rng.normal(size=n)
    return build(loss, stored(X, storage), y, **options)


def groups_of(p, seed):
    """Groups of one to five columns, not in order."""
    rng = np.random.default_rng(seed)
    return np.sort(rng.integers(0, p // 3, size=p))[rng.permutation(p)]


def blocks_of(objective, seed):
    p = objective.n_candidates
    group = groups_of(p, seed)
    members = [np.flatnonzero(group == label) for label in np.unique(group)]
    return Blocks.of(members, np.arange(p, objective.dim))


def fitted(objective, blocks, size):
    own = [blocks[block] for block in range(min(size, len(blocks) - 1))]
    return objective.minimise(np.sort(np.concatenate([*own, blocks.always]).astype(int)))


def one_by_one(objective, point, blocks):
    """Decreases by the method that always works."""
    falls = np.full(len(blocks), np.nan)
    return objective._blocks._completed(falls, point, blocks, objective._rows(point))


def rounding(point):
    return 1e-11 * max(1.0, abs(point.value))


@settings(max_examples=150, deadline=None)
@given(size=st.integers(0, 3), **situations)
def test_decreases(size, seed, **rest):
    objective = make(seed=seed, **rest)
    blocks = blocks_of(objective, seed)
    point = fitted(objective, blocks, size)
    off = rounding(point)
    exact = objective.decrease_if_added(point, blocks).values
    np.testing.assert_allclose(exact, one_by_one(objective, point, blocks), rtol=1e-6, atol=off)
    screened, solved = objective.decrease_if_added(point, blocks, only_best=True)
    assert 0 <= solved <= len(blocks)
    outside = np.arange(min(size, len(blocks) - 1), len(blocks))
    true, bound = exact[outside], screened[outside]
    best = highest(true)
    if true[best] > 1e-7 * max(1.0, abs(point.value)):  # below, scores are rounding
        assert highest(bound) == best
        assert bound[best] == pytest.approx(true[best], rel=1e-9)
    assert (bound >= true * (1.0 - 1e-9) - off).all()
    other = np.abs(bound - true) > 1e-9 * true + off
    assert (bound[other] < true[best] * (1.0 - 1e-9) + off).all()


@settings(max_examples=50, deadline=None)
@given(size=st.integers(1, 4), **situations)
def test_increases(size, seed, **rest):
    objective = make(seed=seed, **rest)
    blocks = blocks_of(objective, seed)
    point = fitted(objective, blocks, size)
    inside = blocks.take(np.arange(min(size, len(blocks) - 1)))
    slow = Objective.increase_if_removed(objective, point, inside).values
    found = objective.increase_if_removed(point, inside).values
    np.testing.assert_allclose(found, slow, rtol=1e-7, atol=rounding(point))


@settings(max_examples=40, deadline=None)
@given(method=st.sampled_from(METHODS), **situations)
def test_whole_paths(method, seed, **rest):
    options = {"method": method, "k": 4, "groups": groups_of(18, seed)}
    path = run(make(seed=seed, **rest), **options)
    plain = run(make(seed=seed, hidden=True, **rest), **options)
    if all(point.status.name == "CONVERGED" for point in plain.points):
        assert_same_path(path, plain, 1e-9)


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
@pytest.mark.parametrize("storage", ["C", "csc"])
def test_columns_that_others_of_a_group_make_up_change_nothing(loss, storage, monkeypatch):
    X, y = hard_data(loss, "gaussian", 3, n=80, p=8)
    wider = np.c_[X, X[:, 0] - X[:, 1], X[:, 4], np.zeros(80)]
    group = np.array([0, 0, 1, 1, 2, 2, 3, 3, 0, 2, 3])
    plain = select(build(loss, stored(X, storage), y), method="foba-obj", k=3, groups=group[:8])
    objective = build(loss, stored(wider, storage), y)
    monkeypatch.setattr(linear_blocks.BlockScores, "_alone", lambda *given: pytest.fail("alone"))
    members = [np.flatnonzero(group == label) for label in range(4)]
    blocks = Blocks.of(members, np.zeros(0, int))
    start = build(loss, stored(X, storage), y).minimise(np.zeros(0, int))
    falls = objective.decrease_if_added(start, blocks).values
    assert highest(falls) == plain.steps[0].feature
    assert falls.max() == pytest.approx(plain.steps[0].score, rel=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "poisson", "gamma"])
def test_few_of_many_groups_are_solved(loss):
    X, y = hard_data(loss, "gaussian", 1, n=300, p=600)
    path = select(build(loss, X, y, ridge=1e-2), k=4, method="foba-obj", groups=np.arange(600) // 4)
    assert all(step.solved < 50 for step in path.steps if step.action == "add")


def test_wide_groups_and_small_parts_do_not_matter(monkeypatch):
    X, y = hard_data("logistic", "correlated", 5, n=200, p=60)
    group = np.repeat(np.arange(6), [1, 4, 5, 10, 20, 20])
    for make_X in (np.asarray, sparse.csc_array):

        def path(make_X=make_X):
            objective = GLM("logistic", make_X(X), y, ridge=1e-2)
            return select(objective, k=4, method="foba-obj", groups=group)

        plain = path()
        monkeypatch.setattr(linear_blocks, "MAX_WIDTH", 5)
        assert_same_path(path(), plain, 1e-9)
        monkeypatch.setattr("forback.designs.dense.COPIED_ENTRIES", 2000)
        assert_same_path(path(), plain, 1e-9)
        monkeypatch.undo()


@settings(max_examples=100, deadline=None)
@given(
    size=st.integers(1, 4),
    share=st.sampled_from([0.0, 0.5, 1.0, 2.0, np.inf]),
    grouped=st.booleans(),
    **situations,
)
def test_increases_after_refits(size, share, grouped, seed, **rest):
    """The least cost is exact, and the others are bounds below what refits say."""
    objective = make(seed=seed, **rest)
    blocks = blocks_of(objective, seed)
    point = fitted(objective, blocks, size)
    inside = blocks.take(np.arange(min(size, len(blocks) - 1)))
    if not grouped:
        inside = Blocks.singles(np.sort(inside.coordinates), blocks.always)
    refits = objective.increase_after_refit(point, inside).values
    limit = share * max(float(refits.min()), 0.0) if share < np.inf else np.inf
    screened, n_exact = objective.increase_after_refit(point, inside, below=limit)
    assert 0 <= n_exact <= len(inside)
    off = objective.resolution(point)
    assert (screened <= refits + 1e-9 * np.abs(refits) + off).all()
    worst = lowest(refits)
    if refits[worst] < limit:
        assert lowest(screened) == worst
        assert screened[worst] == pytest.approx(refits[worst], rel=1e-9, abs=off)
    else:
        assert lowest(screened) == worst or screened.min() >= limit - off


@pytest.mark.parametrize("loss", ["logistic", "poisson", "gamma"])
def test_few_refits_are_made(loss):
    X, y = hard_data(loss, "gaussian", 2, n=400, p=30)
    fits = []

    class Counted(GLM):
        def minimise(self, support, start=None):
            fits.append(len(support))
            return super().minimise(support, start)

    literal = select(build(loss, X, y, ridge=1e-3, hidden=True), k=12, backward="refit")
    path = select(Counted(loss, X, y, ridge=1e-3), k=12, backward="refit")
    assert_same_path(path, literal, 1e-12)
    assert len(fits) < 3 * 12
