"""The paper's lemmas and theorems on random problems, with constants that are certified.

Each law takes a problem and raises where it does not hold. It returns how tight it was, for those
who want to know that it could have failed: 1 is equality, 0 says nothing.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from forback import select
from forback.certificates import (
    restricted_curvature,
    sufficient_s,
    theory_bounds,
    theory_thresholds,
)
from forback.certificates.replay import Run
from forback.core.blocks import Blocks
from forback.objectives import LeastSquares, Logistic
from forback.report.tables import markdown_table
from hostile.harness import pick
from verify.part import Part

N, P = 60, 6

#: What rounding may do to an inequality.
NEARLY = 1.0 - 1e-6
TINY = 1e-10

METHODS = {"foba-gdt": "epsilon", "foba-obj": "delta"}


@dataclass
class Problem:
    """An objective, how its curvature is found, its columns, and what chance is left."""

    objective: object
    method: str
    X: np.ndarray
    ridge: float
    rng: np.random.Generator

    def curvature(self, s):
        return restricted_curvature(self.objective, s, self.method)

    def choose(self, size):
        return np.sort(self.rng.choice(P, size, replace=False))


def make_problem(kind, rng, mixing):
    """Least squares, whose curvature is enumerated; or logistic, where bounds are certified."""
    X = rng.normal(size=(N, P)) @ (np.eye(P) + 0.2 * mixing * rng.normal(size=(P, P)))
    eta = X @ (rng.normal(size=P) * (rng.random(P) < 0.6)) + 0.5 * rng.normal(size=N)
    if kind == "squares":
        return Problem(LeastSquares(X, eta), "exact", X, 0.0, rng)
    return Problem(Logistic(X, eta > np.median(eta), ridge=0.05), "bound", X, 0.05, rng)


def singles():
    return Blocks.singles(np.arange(P), np.zeros(0, np.intp))


def ratio(small, large):
    return small / large if large > TINY else 0.0


def goodness_and_gradient(problem):
    """Lemmas 1 and 2, and the first of FoBa-gdt: they bound each other."""
    objective, rho = problem.objective, problem.curvature(1)
    point = objective.minimise(problem.choose(2))
    fall = objective.decrease_if_added(point, singles()).values
    slope = np.abs(objective.gradient(point))
    assert np.all(slope >= np.sqrt(2 * rho.lower * fall) * NEARLY - 1e-9)
    assert np.all(fall >= slope**2 / (2 * rho.single) * NEARLY - 1e-12)
    return ratio(slope.max() ** 2 / (2 * rho.single), fall.max())


def forward_step(problem):
    """|F' - F| (Q - min Q along the pick) >= rho_-(s) / rho_+(1) (Q - Q(beta'))."""
    objective = problem.objective
    own = problem.choose(problem.rng.integers(0, 3))
    other = problem.choose(problem.rng.integers(1, 4))
    rho = problem.curvature(len(np.union1d(own, other)))
    point, better = objective.minimise(own), objective.minimise(other)
    fall = objective.decrease_if_added(point, singles()).values
    slope = np.abs(objective.gradient(point))
    slope[own] = 0.0
    right = rho.lower / rho.single * (point.value - better.value)
    tight = 0.0
    for picked in (fall.argmax(), slope.argmax()):  # FoBa-obj and FoBa-gdt
        left = len(np.setdiff1d(other, own)) * fall[picked]
        assert left >= right - TINY
        tight = max(tight, ratio(right, left))
    return tight


def backward_criterion(problem, method="foba-obj"):
    """|beta_(F - F')|^2 >= delta^(k) / rho_+(1) |F - F'| at the beginning of every iteration."""
    rho, tight = problem.curvature(1).single, 0.0
    run = Run.of(problem.objective, select(problem.objective, method=method))
    for top in run.iterations():
        other = np.flatnonzero(problem.rng.random(P) < 0.3)
        apart = np.setdiff1d(top.point.support, other)
        if top.gain is None or len(apart) == 0 or top.gain < TINY:
            continue
        left = float((top.point.dense(P)[apart] ** 2).sum())
        right = top.gain / rho * len(apart)
        assert left >= right * NEARLY
        tight = max(tight, ratio(right, left))
    return tight


def recorded_gains(problem, method="foba-obj"):
    """delta^(k) >= delta, and >= epsilon^2 / (2 rho_+(1)) for FoBa-gdt."""
    rho, tight = problem.curvature(1).single, 0.0
    threshold = 0.01 if method == "foba-obj" else 0.1
    path = select(problem.objective, method=method, **{METHODS[method]: threshold})
    least = threshold if method == "foba-obj" else threshold**2 / (2 * rho)
    for step in path.steps:
        if step.action == "add":
            assert step.change >= least * (1 - 1e-9)
            tight = max(tight, ratio(least, step.change))
    return tight


def never_below_the_truth(problem, method="foba-obj"):
    """Q(beta^(k)) >= Q(bar beta) with the theorem's threshold, whatever support is called true."""
    objective, rho = problem.objective, problem.curvature(P)
    everything = objective.minimise(np.arange(P))
    size = problem.rng.integers(2, 5)
    true = np.argsort(-np.abs(everything.coef))[:size]  # so that noise is low
    found = theory_thresholds(objective, true, curvature=rho)
    limit = {METHODS[method]: getattr(found, METHODS[method])}
    run = Run.of(objective, select(objective, method=method, **limit))
    tight = 0.0
    for top in run.iterations():
        assert top.point.value >= found.point.value - TINY
        if top.point.size:
            tight = max(tight, ratio(found.point.value, top.point.value))
    return tight


def enumerated_curvature(problem):
    """rho_-(s) <= the curvature along any s candidates, at any point, <= rho_+(s)."""
    beta = problem.rng.normal(size=P) * pick(problem.rng, [0.0, 0.3, 3.0])
    if problem.method == "exact":
        weights = np.ones(N)
    else:
        p = 1.0 / (1.0 + np.exp(-problem.X @ beta))
        weights = p * (1 - p)
    hessian = problem.X.T @ (weights[:, None] * problem.X) / N + problem.ridge * np.eye(P)
    s = int(problem.rng.integers(1, P + 1))
    parts = [np.linalg.eigvalsh(hessian[np.ix_(c, c)]) for c in combinations(range(P), s)]
    lower, upper = min(v[0] for v in parts), max(v[-1] for v in parts)
    bound = restricted_curvature(problem.objective, s, "bound")
    assert bound.lower <= lower * (1 + 1e-12) + 1e-14
    assert upper <= bound.upper * (1 + 1e-12)
    assert hessian.diagonal().max() <= bound.single * (1 + 1e-12)
    if problem.method == "exact":
        exact = problem.curvature(s)
        assert abs(exact.lower - lower) <= 1e-9 * upper
        assert abs(exact.upper - upper) <= 1e-9 * upper
    return ratio(upper, bound.upper)


LAWS = {
    "goodness and gradient bound each other": goodness_and_gradient,
    "the general forward step": forward_step,
    "the general backward criterion": backward_criterion,
    "recorded gains": recorded_gains,
    "never below the true point": never_below_the_truth,
    "restricted curvature, enumerated": enumerated_curvature,
}

#: Laws about either method.
OF_METHODS = (backward_criterion, recorded_gains, never_below_the_truth)


def theorems(rng):
    """Theorems 1 to 5 and the corollary, where their conditions hold: columns nearly orthogonal."""
    n, d, k = 200, 60, int(rng.integers(1, 3))
    X = np.linalg.qr(rng.normal(size=(n, d)))[0] + 0.002 * rng.normal(size=(n, d)) / np.sqrt(n)
    X *= np.sqrt(n) / np.linalg.norm(X, axis=0)
    true = np.sort(rng.choice(d, k, replace=False))
    signal = rng.choice([-1, 1], k) * rng.uniform(0.02, 4.0, k)
    objective = LeastSquares(X, X[:, true] @ signal + rng.normal(size=n))
    method = pick(rng, list(METHODS))
    rho = sufficient_s(objective, k)
    assert rho is not None, "no s satisfies the condition"
    limit = getattr(theory_thresholds(objective, true, curvature=rho), METHODS[method])
    path = select(objective, method=method, **{METHODS[method]: limit})
    bounds = theory_bounds(objective, path, true)
    assert not bounds.vacuous, bounds.obstacles
    assert bounds.holds, str(bounds)
    assert path.end.size <= bounds.curvature.s - k
    assert not bounds.strong or bounds.recovered
    return max(ratio(one.left, one.right) for one in bounds.inequalities)


def check(rng):
    rows = []
    for kind in ("squares", "logistic"):
        problem = make_problem(kind, rng, int(rng.integers(3)))
        for name, law in LAWS.items():
            options = {"method": pick(rng, list(METHODS))} if law in OF_METHODS else {}
            rows.append({"law": name, "tight": float(law(problem, **options))})
    return [*rows, {"law": "Theorems 1 to 5 and the corollary", "tight": theorems(rng)}]


def summarise(rows):
    lines = []
    for law in dict.fromkeys(row["law"] for row in rows):
        tight = [row["tight"] for row in rows if row["law"] == law]
        lines.append([law, str(len(tight)), f"{np.median(tight):.2f}", f"{max(tight):.3f}"])
    note = "Tightness is the smaller side over the larger: 1 is equality, at which a law is sharp."
    header = ["law", "checked", "median tightness", "largest"]
    return f"{note}\n\n{markdown_table(header, lines)}", []


LEMMAS = Part(
    "lemmas",
    "The paper's lemmas, its theorems and the bounds of restricted curvature, with constants that "
    "are enumerated or certified.",
    20_000,
    check,
    summarise,
)
