"""Settings and functions at their extremes: an answer that can be saved, or a plain error."""

import os

import numpy as np

from forback import Path, select
from forback.objectives import (
    GLM,
    ChainCRF,
    GaussianCovariance,
    LeastSquares,
    Multinomial,
    from_function,
)
from forback.selection.rules import METHODS
from hostile.harness import assert_close, assert_same, attack, moves, pick, refused
from support.problems import LOSSES, make_response

METHODS = tuple(METHODS)


def anywhere(rng, size=None):
    """Positive numbers of any size that numbers have."""
    return 10.0 ** rng.uniform(-300, 300, size=size)


@attack
def extreme_settings(rng):
    """Whatever ridge, weights, offset, prices and thresholds are: a path of numbers, or words."""
    n, p, loss = int(rng.integers(8, 60)), 4, pick(rng, [*LOSSES, "classes", "chain", "graph"])
    X = rng.normal(size=(n, p))
    eta = X[:, 0] - X[:, 1]
    X = X * pick(rng, [1.0, anywhere(rng), anywhere(rng, p)])
    ridge = pick(rng, [0.0, anywhere(rng), 1e-4])
    weights = pick(rng, [None, anywhere(rng, n), rng.random(n) * anywhere(rng)])
    options = {"ridge": ridge, "sample_weight": weights, "fit_intercept": bool(rng.integers(2))}
    method = pick(rng, METHODS)
    limits = {"delta" if method.endswith("obj") else "epsilon": pick(rng, [None, anywhere(rng)])}
    if rng.integers(4) == 0:
        limits["costs"] = anywhere(rng, p)
    with refused(ValueError):
        if loss == "classes":
            objective = Multinomial(X, np.digitize(eta, [-0.5, 0.5]), **options)
        elif loss == "chain":
            objective = ChainCRF(X, np.digitize(eta, [-0.5, 0.5]), ridge=ridge, max_iter=50)
        elif loss == "graph":
            objective = GaussianCovariance(np.cov(rng.normal(size=(n, p)).T) * anywhere(rng), n)
            limits.pop("costs", None)
        else:
            y, offset = make_response(loss, eta, rng), pick(rng, [None, rng.normal(size=n)])
            scale = anywhere(rng) ** (0.5 if loss == "squared" else 0.25)
            y = y * scale if loss in ("squared", "huber", "poisson", "gamma") else y
            objective = GLM(loss, X, y, offset=offset, **options)
        path = select(objective, 3, method, **limits)
        numbers = [(step.value, step.score, step.change, step.cost) for step in path.steps]
        assert np.isfinite(numbers).all(), f"steps that are no numbers: {path.steps}"
        path.save("path.json")
        assert_same(moves(Path.load("path.json")), moves(path), "steps of a saved path")
        os.unlink("path.json")


@attack
def small_counts(rng):
    """Counts times a constant move the intercept, and nothing else."""
    X = rng.normal(size=(int(rng.integers(40, 90)), 5))
    counts = rng.poisson(np.exp(1.0 + 0.6 * X[:, 1] - 0.4 * X[:, 3])).astype(float)
    scale, method = 10.0 ** rng.uniform(-70, 70), pick(rng, METHODS)
    plain = select(GLM("poisson", X, counts, fit_intercept=True), 3, method)
    path = select(GLM("poisson", X, counts * scale, fit_intercept=True), 3, method)
    assert_same(moves(path), moves(plain), f"steps with counts of {scale:.0e}")
    shift = np.append(np.zeros(len(path.end.coef) - 1), np.log(scale))
    assert_close(path.end.coef, plain.end.coef + shift, "coefficients", rtol=1e-6, atol=1e-8)


@attack
def noisy_functions(rng):
    """A gradient that is off at random by 1e-6 is not called wrong, however small slopes are."""
    X = rng.normal(size=(60, 4))
    y = (X[:, 1] - X[:, 2]) * 10.0 ** rng.uniform(-8, 2) + 0.1 * rng.normal(size=60)

    def function(beta):
        r = X @ beta - y
        return 0.5 * float(np.mean(r**2)), X.T @ r / 60 + 1e-6 * rng.normal(size=4)

    path = select(from_function(function, 4), method=pick(rng, METHODS))
    exact = select(LeastSquares(X, y))
    assert path.end.value <= exact.end.value * (1.0 + 1e-6) + 1e-10, "a noisy run ended early"
