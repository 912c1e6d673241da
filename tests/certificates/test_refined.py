"""Certificates of refined answers: what is confirmed, what is refused, what raises doubts."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from forback import Path, Refinement, select
from forback.certificates import best_swap, certificate, theory_bounds
from forback.core.blocks import Blocks
from forback.core.point import Step
from forback.objectives import (
    GLM,
    GaussianCovariance,
    LeastSquares,
    Logistic,
    Multinomial,
    from_function,
)
from forback.selection.descent import Descent
from forback.selection.path_file import SETTINGS


@cache
def objectives():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(70, 10)) @ (np.eye(10) + 0.6 * rng.normal(size=(10, 10)))
    y = X[:, :5] @ rng.normal(size=5) + rng.normal(size=70)
    return {
        "squares": LeastSquares(X, y),
        "squares-intercept": LeastSquares(X + 3.0, y, fit_intercept=True),
        "logistic": Logistic(X, y > 0, ridge=0.01, fit_intercept=True),
        "huber": GLM("huber", X, y, ridge=0.01),
        "softmax": Multinomial(X, np.digitize(y, [-1, 1]), ridge=0.01),
        "graph": GaussianCovariance(np.cov(X[:, :5].T), ridge=0.01),
        "function": from_function(
            lambda b: (float(0.5 * np.mean((X @ b - y) ** 2)), X.T @ (X @ b - y) / 70), 10
        ),
    }


@cache
def refined(name="squares", k=3, **options):
    return select(objectives()[name], k, refine="swap", **options)


@pytest.mark.parametrize("method", ["foba-gdt", "forward-obj"])
@pytest.mark.parametrize("name", list(objectives()))
def test_what_refinement_gives_is_confirmed(name, method, tmp_path):
    refined(name, method=method).save(tmp_path / "path.json")
    for path in (refined(name, method=method), Path.load(tmp_path / "path.json")):
        result = certificate(objectives()[name], path, 3)
        assert result.holds, str(result)
        assert result["refinement"].passed
        assert result.point is path[3]
        same = np.array_equal(path.refined(3).support, path.best(3).support)
        assert result.refined == (not same and path.refined(3).value < path.best(3).value)
        kind = "refined" if result.refined else "literal"
        assert f"chosen, {kind}, objective" in str(result) or f"), {kind}, objective" in str(result)
        assert json.loads(json.dumps(result.to_dict()))["refined"] is result.refined


def test_a_refined_answer_says_where_it_is_from_and_a_literal_one_too():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 100))
    objective = LeastSquares(
        np.column_stack([a + b + 0.3 * rng.normal(size=100), a, b, rng.normal(size=100)]), a + b
    )
    path = select(objective, 2, refine=Refinement(starts=["path"]), method="forward-gdt")
    result = certificate(objective, path, 2)
    assert result.refined
    assert result["refinement"].detail.startswith("the answer is from 'path'; 1 starts and 1 steps")
    assert result["no better swap"].passed
    assert result.holds
    literal = certificate(objective, path, 1)
    assert not literal.refined
    assert literal["refinement"].passed
    alone = certificate(objective, replace(path, descents=[]), 2)
    assert (alone["refinement"].passed, alone["refinement"].detail) == (None, "there was none")
    assert not alone.refined
    assert alone["no better swap"].passed is False


# Forgeries ---------------------------------------------------------------------------------------


def with_exchange():
    """An objective, a path, and the place of a descent that begins with an exchange."""
    path = refined("squares-intercept", 3, method="forward-gdt")
    place = next(n for n, descent in enumerate(path.descents) if descent.steps)
    return objectives()["squares-intercept"], path, place


def forged(path, place, **changes):
    descents = list(path.descents)
    descents[place] = replace(descents[place], **changes)
    return replace(path, descents=descents)


def forged_step(path, place, number, **changes):
    steps = list(path.descents[place].steps)
    steps[number] = replace(steps[number], **changes)
    return forged(path, place, steps=steps)


def honest(objective, point, **changes):
    """The point with other coefficients or another support, and the value that it really has."""
    point = replace(point, **changes)
    return replace(point, value=objective.value_and_gradient(point.dense(objective.dim))[0])


def test_a_forged_descent_is_rejected():
    objective, path, place = with_exchange()
    assert certificate(objective, path, 3).holds
    descent = path.descents[place]
    origin, step = descent.origin, descent.steps[0]
    other = next(j for j in range(10) if j not in {*origin.support, *step.point.support})
    stays = next(j for j in origin.support.tolist() if j in step.point.support and j < 10)
    support = np.array(sorted({*step.point.support.tolist()} - {step.feature} | {other}))
    worse = honest(objective, step.point, coef=step.point.coef * 1.01)
    off = honest(objective, origin, coef=origin.coef * [1.01, 1.0, 1.0, 1.0])
    lower = replace(origin, value=origin.value - 1e-3)
    last = descent.steps[-1]
    best = replace(last.point, value=last.value - 1e-3)
    cases = {
        "a coefficient": forged_step(path, place, 0, point=replace(step.point, coef=worse.coef)),
        "a coefficient and its value": forged_step(
            path, place, 0, point=worse, value=worse.value, change=origin.value - worse.value
        ),
        "a value at the end": forged_step(
            path, place, -1, point=best, value=best.value, change=last.change + 1e-3
        ),
        "a value at the origin": forged(path, place, origin=lower),
        "a coefficient at the origin": forged(path, place, origin=off),
        "a change": forged_step(path, place, 0, change=step.change + 1e-3),
        "what left": forged_step(path, place, 0, out=stays),
        "what came": forged_step(path, place, 0, feature=other),
        "others": forged_step(path, place, 0, others=(other,)),
        "no exchange": forged_step(path, place, 0, action="add"),
        "a size": forged_step(path, place, 0, size=4),
        "a support": forged_step(path, place, 0, point=replace(step.point, support=support)),
        "the size of the origin": forged(path, place, origin=replace(origin, size=2)),
        "an order of entry": forged(path, place, entered=descent.entered[:-1]),
    }
    for what, changed in cases.items():
        with pytest.raises(ValueError, match="not what this objective gives, or was changed"):
            print(what, certificate(objective, changed, 3))


def an_exchange(objective, point, out, into):
    """A step that takes blocks out and others in, every number honest."""
    support = np.array(sorted({*point.support.tolist()} - {*out} | {*into}))
    size = point.size + len(into) - len(out)
    after = replace(objective.minimise(support).without_cache(), size=size)
    action = "exchange" if out and into else "add" if into else "remove"
    return Step(
        action, (into or out)[0], size, after.value, point.value - after.value, 0.0, after,
        groups=size, cost=float(size), out=out[0] if action == "exchange" else None,
        start="by hand", others=(*into[1:], *out[1:]) if action == "exchange" else (),
    )  # fmt: skip


def a_descent(objective, origin, moves, ending="for a test"):
    steps, before = [], origin
    for out, into in moves:
        steps.append(an_exchange(objective, before, out, into))
        before = steps[-1].point
    return Descent("by hand", origin, origin.support, steps, ending)


def test_an_exchange_that_lowers_nothing_is_rejected():
    objective, path = objectives()["squares"], refined()
    best = path[3]
    inside = best.support.tolist()
    out, into = inside[0], next(j for j in range(10) if j not in inside)
    up = a_descent(objective, best, [([out], [into])])
    with pytest.raises(ValueError, match=r"step 1 of descent \d+ \(by hand\) does not lower Q"):
        certificate(objective, replace(path, descents=[*path.descents, up]), 3)
    down = a_descent(objective, up.end, [([into], [out])])
    assert certificate(objective, replace(path, descents=[*path.descents, down]), 3).holds


def test_what_leaves_and_enters_by_steps_of_its_own_is_one_exchange():
    objective, path = objectives()["squares"], refined()
    best = path[3]
    inside = best.support.tolist()
    worst = [j for j in range(10) if j not in inside]
    start = replace(objective.minimise(np.array(worst[:2])).without_cache(), size=2)
    moves = [([worst[0]], []), ([], [inside[0]]), ([], [inside[1]])]
    for ways in (moves, [([worst[0]], inside[:2])]):
        down = a_descent(objective, start, ways)
        assert down.end.value < start.value
        assert certificate(objective, replace(path, descents=[*path.descents, down]), 3).holds
    for ending, fine in (("for a test", False), ("", True), ("stopped by the callback", True)):
        short = a_descent(objective, best, [([inside[0]], [])], ending)
        other = replace(path, descents=[*path.descents, short])
        if fine:
            assert certificate(objective, other, 3).holds
        else:
            with pytest.raises(ValueError, match=r"\(by hand\) does not lower Q, but raises it"):
                certificate(objective, other, 3)


def test_a_descent_from_which_the_last_exchange_was_dropped_raises_doubts():
    objective, path, place = with_exchange()
    descent = path.descents[place]
    short = replace(descent, steps=descent.steps[:-1])
    result = certificate(objective, replace(path, descents=[short]), 3)
    assert result["refinement"].passed is False
    assert "where another exchange lowers Q by" in result["refinement"].detail
    assert not result.holds
    told = replace(short, ending="stopped by the callback")
    assert certificate(objective, replace(path, descents=[told]), 3).holds


def test_refined_points_keep_to_the_budget():
    objective = objectives()["squares"]
    path = select(objective, budget=3, refine="swap")
    assert certificate(objective, path, 3).holds
    more = replace(objective.minimise(np.arange(4)).without_cache(), size=4)
    rich = Descent("by hand", more, more.support, [], "for a test")
    with pytest.raises(
        ValueError, match=r"origin of descent .* groups cost 4, more than the budget"
    ):
        certificate(objective, replace(path, descents=[*path.descents, rich]), 3)


@pytest.mark.parametrize("method", ["foba-gdt", "foba-obj", "forward-gdt"])
@pytest.mark.parametrize("name", ["squares-intercept", "logistic", "graph", "function"])
def test_what_a_run_was_given_to_begin_with_need_not_be_the_best(name, method):
    objective = objectives()[name]
    for refine in (None, "swap"):
        path = select(objective, 4, method, start=[7, 8], refine=refine)
        result = certificate(objective, path, 4)
        assert result.holds, str(result)
        assert result["forward"].detail.endswith("what was given to begin with was not compared")


def test_what_a_run_was_given_is_fitted_again_and_no_smaller_size_follows():
    objective = objectives()["squares"]
    path = select(objective, 3, start=[8, 9])
    first = path.steps[0]
    other = replace(path.steps[0], point=replace(first.point, coef=2 * first.point.coef))
    with pytest.raises(ValueError, match="at step 1 the objective is"):
        certificate(objective, replace(path, steps=[other, *path.steps[1:]]), 3)
    with pytest.raises(ValueError, match="although size 1 was reached"):
        certificate(objective, replace(path, settings={**path.settings, "k": 1}), 3)
    left = replace(an_exchange(objective, first.point, [8], []), start="")
    short = replace(path, steps=[first, left], settings={**path.settings, "k": 2})
    assert certificate(objective, short, 1)["backward"].passed is False
    bounds = theory_bounds(objective, path, [0])
    assert "the theorems are about runs that begin with nothing" in str(bounds)
    at_once = select(objective, start=[8, 9], max_steps=0)
    assert certificate(objective, at_once, 2).holds


def test_a_path_that_was_continued_is_confirmed():
    objective = objectives()["squares"]
    path = select(objective, 5, start=select(objective, 3, refine="swap"))
    for k in (3, 5):
        assert certificate(objective, path, k).holds


def test_paths_of_before_there_was_refinement_are_confirmed():
    objective = objectives()["squares"]
    for path in (select(objective, 3), select(objective, 3, budget=2), select(objective, budget=2)):
        old = {name: path.settings[name] for name in SETTINGS}
        assert certificate(objective, replace(path, settings=old), 2).holds


# Swaps -------------------------------------------------------------------------------------------


def hard(kind, rng):
    n, p = int(rng.integers(12, 60)), 7
    X, tiny = rng.normal(size=(n, p)), 10.0 ** rng.uniform(-9, -2)
    if kind == "copies":
        X[:, 1] = X[:, 0]
    elif kind == "near copies":
        X[:, 1] = X[:, 0] + tiny * rng.normal(size=n)
    elif kind == "collinear":
        X[:, 2] = X[:, 0] + X[:, 1] + tiny * rng.normal(size=n)
    elif kind == "large means":
        X += 1e3 / tiny**0.25
    elif kind == "units":
        X *= 10.0 ** rng.uniform(-4, 4, size=p)
    sizes = rng.normal(size=p) * 10.0 ** rng.uniform(-3, 3, size=p)
    return X, X @ sizes + rng.normal(size=n) * 10.0 ** rng.uniform(-2, 1)


@pytest.mark.parametrize("kind", ["copies", "near copies", "collinear", "large means", "units"])
def test_no_score_in_closed_form_hides_a_better_swap(kind):
    for seed in range(25):
        rng = np.random.default_rng(seed)
        objective = LeastSquares(*hard(kind, rng), fit_intercept=bool(seed % 2))
        chosen = np.sort(rng.choice(7, 3, replace=False))
        always = np.arange(7, objective.dim)
        point = objective.minimise(np.append(chosen, always))
        values = [
            objective.minimise(np.sort([*np.setdiff1d(point.support, out), into])).value
            for out in chosen
            for into in np.setdiff1d(np.arange(7), chosen)
        ]
        found = best_swap(objective, point, Blocks.singles(np.arange(7), always))
        best, slack = point.value - min(values), 4.0 * objective.resolution(point)
        assert found.gain == pytest.approx(best, rel=1e-6, abs=slack), seed
        assert found.complete
