"""The paper's lemmas on hundreds of random problems, with constants that are certified.

Least squares: enumerated exactly. Ridge-logistic: a valid lower rho_- and upper rho_+.
"""

import numpy as np
import pytest

from forback import select
from forback.certificates import restricted_curvature, theory_thresholds
from forback.certificates.replay import Run
from forback.core.blocks import Blocks
from forback.objectives import LeastSquares, Logistic

N, P = 60, 6


def make(kind, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, P)) @ (np.eye(P) + 0.2 * (seed % 3) * rng.normal(size=(P, P)))
    eta = X @ (rng.normal(size=P) * (rng.random(P) < 0.6)) + 0.5 * rng.normal(size=N)
    if kind == "squares":
        return LeastSquares(X, eta), "exact", rng
    return Logistic(X, eta > np.median(eta), ridge=0.05), "bound", rng


def singles(objective):
    return Blocks.singles(np.arange(objective.n_candidates), np.zeros(0, np.intp))


PROBLEMS = [(kind, seed) for kind in ("squares", "logistic") for seed in range(150)]


@pytest.mark.parametrize("part", range(5))
def test_goodness_and_gradient_bound_each_other(part):
    """Lemmas 1 and 2, and the first of FoBa-gdt."""
    for kind, seed in PROBLEMS[part::5]:
        objective, method, rng = make(kind, seed)
        rho = restricted_curvature(objective, 1, method)
        point = objective.minimise(np.sort(rng.choice(P, 2, replace=False)))
        fall = objective.decrease_if_added(point, singles(objective)).values
        slope = np.abs(objective.gradient(point))
        assert np.all(slope >= np.sqrt(2 * rho.lower * fall) * (1 - 1e-6) - 1e-9)
        assert np.all(fall >= slope**2 / (2 * rho.single) * (1 - 1e-6) - 1e-12)


@pytest.mark.parametrize("part", range(5))
def test_the_general_forward_step(part):
    """|F' - F| (Q - min Q along the pick) >= rho_-(s) / rho_+(1) (Q - Q(beta'))."""
    tight = 0.0
    for kind, seed in PROBLEMS[part::5]:
        objective, method, rng = make(kind, seed)
        own = np.sort(rng.choice(P, rng.integers(0, 3), replace=False))
        other = np.sort(rng.choice(P, rng.integers(1, 4), replace=False))
        s = len(np.union1d(own, other))
        rho = restricted_curvature(objective, s, method)
        point, better = objective.minimise(own), objective.minimise(other)
        fall = objective.decrease_if_added(point, singles(objective)).values
        slope = np.abs(objective.gradient(point))
        slope[own] = 0.0
        right = rho.lower / rho.single * (point.value - better.value)
        for pick in (fall.argmax(), slope.argmax()):  # FoBa-obj and FoBa-gdt
            left = len(np.setdiff1d(other, own)) * fall[pick]
            assert left >= right - 1e-10
            tight = max(tight, right / left if left > 1e-9 else 0.0)
    assert tight > 0.2  # the inequality is not trivially true


@pytest.mark.parametrize("method", ["foba-obj", "foba-gdt"])
@pytest.mark.parametrize("part", range(4))
def test_the_general_backward_criterion(part, method):
    """|beta_(F - F')|^2 >= delta^(k) / rho_+(1) |F - F'| at the beginning of every iteration."""
    seen, tight = 0, 0.0
    for kind, seed in PROBLEMS[part::4]:
        objective, known, rng = make(kind, seed)
        rho = restricted_curvature(objective, 1, known).single
        run = Run.of(objective, select(objective, method=method))
        for top in run.iterations():
            other = np.flatnonzero(rng.random(P) < 0.3)
            apart = np.setdiff1d(top.point.support, other)
            if top.gain is None or len(apart) == 0 or top.gain < 1e-10:
                continue
            left = float((top.point.dense(P)[apart] ** 2).sum())
            assert left >= top.gain / rho * len(apart) * (1 - 1e-6)
            seen, tight = seen + 1, max(tight, top.gain / rho * len(apart) / left)
    assert seen > 100
    assert tight > 0.3


@pytest.mark.parametrize("method", ["foba-obj", "foba-gdt"])
def test_recorded_gains_are_no_less_than_the_threshold(method):
    """delta^(k) >= delta, and >= epsilon^2 / (2 rho_+(1)) for FoBa-gdt."""
    for kind, seed in PROBLEMS[::3]:
        objective, known, _ = make(kind, seed)
        rho = restricted_curvature(objective, 1, known).single
        name, threshold = ("delta", 0.01) if method == "foba-obj" else ("epsilon", 0.1)
        path = select(objective, method=method, **{name: threshold})
        least = threshold if method == "foba-obj" else threshold**2 / (2 * rho)
        for step in path.steps:
            if step.action == "add":
                assert step.change >= least * (1 - 1e-9)


@pytest.mark.parametrize("method", ["foba-obj", "foba-gdt"])
def test_with_the_theorems_threshold_no_point_is_below_the_true_one(method):
    """Q(beta^(k)) >= Q(bar beta), whatever support is called true."""
    checked = 0
    for kind, seed in PROBLEMS:
        objective, known, rng = make(kind, seed)
        rho = restricted_curvature(objective, P, known)
        everything = objective.minimise(np.arange(P))
        true = np.argsort(-np.abs(everything.coef))[: rng.integers(2, 5)]  # so that noise is low
        found = theory_thresholds(objective, true, curvature=rho)
        limit = {"delta": found.delta} if method == "foba-obj" else {"epsilon": found.epsilon}
        run = Run.of(objective, select(objective, method=method, **limit))
        for top in run.iterations():
            assert top.point.value >= found.point.value - 1e-10
            checked += top.point.size > 0
    assert checked > 20
