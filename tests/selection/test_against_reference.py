"""Step by step equality with the literal transcription of Algorithm 1."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from forback import select
from forback.core.status import Status
from reference.algorithm1 import foba
from support.problems import DESIGNS, LOSSES, make_problem

METHODS = ("foba-gdt", "foba-obj", "forward-gdt", "forward-obj")


def assert_same_steps(problem, method, *, storage="dense", groups=None, always=(), **options):
    objective = problem.objective(storage=storage)
    path = select(objective, method=method, groups=groups, always=list(always), **options)
    p = objective.n_candidates
    labels = list(range(p)) if groups is None else list(groups)
    blocks = [
        [j for j in range(p) if labels[j] == label and j not in always]
        for label in dict.fromkeys(labels)
    ]
    numbers = [b for b, block in enumerate(blocks) if block]
    reference = foba(
        problem.reference(),
        [blocks[b] for b in numbers],
        [*always, *range(p, objective.dim)],
        gradient_rule=method.endswith("gdt"),
        backward=method.startswith("foba"),
        ratio=options.get("ratio", 0.5),
        refit=options.get("backward") == "refit",
        k=options.get("k"),
        threshold=options.get("epsilon") or options.get("delta") or 0.0,
    )
    expected = list(reference)
    Q = problem.reference()
    assert [(s.action, s.feature) for s in path.steps] == [
        (a, numbers[b]) for a, b, _, _ in expected
    ]
    for step, (_, _, chosen, beta) in zip(path.steps, expected, strict=True):
        assert step.size == len(chosen)
        own = sorted(j for b in chosen for j in blocks[numbers[b]])
        assert [j for j in step.point.support if j < p and j not in always] == own
        assert step.value == pytest.approx(Q.value(beta), rel=1e-9, abs=1e-9 * Q.unit)
    return path


@settings(max_examples=200, deadline=None)
@given(
    loss=st.sampled_from(LOSSES),
    design=st.sampled_from(DESIGNS),
    seed=st.integers(0, 10**6),
    storage=st.sampled_from(["dense", "csc"]),
    method=st.sampled_from(METHODS),
    ridge=st.sampled_from([0.0, 1e-2]),
    fit_intercept=st.booleans(),
    weighted=st.booleans(),
    grouped=st.booleans(),
    insist=st.booleans(),
    backward=st.sampled_from(["coordinate", "refit"]),
    ratio=st.sampled_from([0.0, 0.5, 0.9]),
    k=st.sampled_from([None, 0, 3]),
)
def test_every_step_is_the_references(loss, design, seed, storage, method, grouped, insist, **rest):
    model = {name: rest.pop(name) for name in ("ridge", "fit_intercept", "weighted")}
    problem = make_problem(loss, design, seed, n=30, p=6, **model)
    groups = ["b", "a", "b", "c", "d", "a"] if grouped else None
    always = [1] if insist else []
    path = select(problem.objective(), method=method, groups=groups, always=always, **rest)
    # Where there is no minimiser the reference has nothing to say.
    assume(not any(point.status is Status.NO_MINIMISER for point in path.points))
    assert_same_steps(problem, method, storage=storage, groups=groups, always=always, **rest)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("storage", ["dense", "csc"])
def test_long_runs_on_correlated_columns_where_features_do_leave(loss, method, storage):
    removed = 0
    for seed in range(11, 71):
        problem = make_problem(loss, "correlated", seed, n=60, p=12, fit_intercept=True)
        groups = [*"aabbc", *range(7)] if seed % 2 else None
        path = assert_same_steps(problem, method, storage=storage, groups=groups, always=[7])
        removed += sum(step.action == "remove" for step in path.steps)
        if removed or method.startswith("forward"):
            return
    pytest.fail("nothing ever left")


@pytest.mark.parametrize("method", METHODS)
def test_thresholds_stop_where_the_reference_stops(method):
    name = "epsilon" if method.endswith("gdt") else "delta"
    for loss in LOSSES:
        for threshold in (1e-3, 1e-2, 0.1):
            problem = make_problem(loss, "correlated", 5, n=50, p=10)
            assert_same_steps(problem, method, **{name: threshold})


@pytest.mark.parametrize("method", METHODS)
def test_without_a_minimiser_the_first_steps_are_the_same(method):
    problem = make_problem("logistic", "gaussian", 3, n=30, p=5, ridge=0.0)
    problem.y = (problem.X[:, 2] + 0.5 * problem.X[:, 0] > 0).astype(float)
    path = select(problem.objective(), method=method)
    assert path.end.value < 1e-11
    steps = foba(
        problem.reference(), [[j] for j in range(5)], [],
        gradient_rule=method.endswith("gdt"), backward=False,
    )  # fmt: skip
    first = next(steps)
    assert (path.steps[0].action, path.steps[0].feature) == first[:2]
    assert path.steps[0].value == pytest.approx(problem.reference().value(first[3]), rel=1e-9)
