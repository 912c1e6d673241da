"""What the guard times: small jobs over everything that should stay fast, by public names only.

Each makes its data from a seed and returns what is to be timed; it runs under an older forback too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

import forback
from forback import FobaClassifier, FobaCRF, FobaRegressor, select
from forback.objectives import (
    GLM,
    GaussianCovariance,
    LeastSquares,
    Logistic,
    Multinomial,
    from_function,
)

Job = Callable[[], object]

WORKLOADS: dict[str, Callable[[], Job]] = {}


def workload(make: Callable[[], Job]) -> Callable[[], Job]:
    WORKLOADS[make.__name__.replace("_", "-")] = make
    return make


def table(n: int, p: int, density: float | None = None, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    if density is not None:
        X *= rng.random((n, p)) < density
    weights = rng.normal(size=10)
    y = X[:, :10] @ weights + rng.normal(size=n)
    return (X if density is None else sparse.csc_array(X)), y


@workload
def least_squares_wide() -> Job:
    X, y = table(1000, 3000)
    return lambda: select(LeastSquares(X, y), 20)


@workload
def least_squares_narrow() -> Job:
    X, y = table(20_000, 100)
    return lambda: select(LeastSquares(X, y, fit_intercept=True), 20)


@workload
def least_squares_obj() -> Job:
    X, y = table(1000, 1500)
    return lambda: select(LeastSquares(X, y), 15, "foba-obj")


@workload
def least_squares_small() -> Job:
    X, y = table(100, 50)
    return lambda: select(LeastSquares(X, y), 5)


@workload
def logistic() -> Job:
    X, y = table(1500, 800)
    return lambda: select(Logistic(X, y > 0, fit_intercept=True), 10)


@workload
def logistic_obj() -> Job:
    X, y = table(1500, 800)
    return lambda: select(Logistic(X, y > 0, ridge=1e-3), 10, "foba-obj")


@workload
def logistic_small() -> Job:
    X, y = table(100, 50)
    return lambda: select(Logistic(X, y > 0, ridge=1e-2), 5)


@workload
def logistic_tall() -> Job:
    X, y = table(200_000, 20)
    return lambda: select(Logistic(X, y > 0), 6)


@workload
def logistic_sparse() -> Job:
    X, y = table(10_000, 500, density=0.02)
    return lambda: select(Logistic(X, y > 0, fit_intercept=True, ridge=1e-3), 10)


@workload
def logistic_sparse_obj() -> Job:
    X, y = table(10_000, 500, density=0.02)
    return lambda: select(Logistic(X, y > 0, ridge=1e-3), 10, "foba-obj")


@workload
def poisson() -> Job:
    X, y = table(2000, 300)
    counts = np.random.default_rng(1).poisson(np.exp(np.clip(0.3 * y, -3, 3)))
    return lambda: select(GLM("poisson", X, counts, fit_intercept=True), 10)


@workload
def huber() -> Job:
    X, y = table(2000, 300)
    return lambda: select(GLM("huber", X, y, fit_intercept=True), 10)


@workload
def squared_hinge() -> Job:
    X, y = table(2000, 300)
    return lambda: select(GLM("squared_hinge", X, y > 0, ridge=1e-3), 10)


@workload
def classes() -> Job:
    X, y = table(1500, 150)
    labels = np.digitize(y, [-2.0, 2.0])
    return lambda: select(Multinomial(X, labels, fit_intercept=True, ridge=1e-3), 6)


@workload
def chain() -> Job:
    X, y = table(6000, 12)
    labels = np.digitize(np.convolve(y, np.ones(20) / 20, "same"), [-0.3, 0.3])
    seen = (X > 0.5).astype(float)
    return lambda: FobaCRF(k=4).fit(seen, labels)


@workload
def graph() -> Job:
    X, _ = table(400, 40)
    X[:, 1:] += 0.5 * X[:, :-1]
    S = np.cov(X.T)
    return lambda: select(GaussianCovariance(S), 60)


@workload
def function() -> Job:
    X, y = table(500, 30)

    def at(beta: Any) -> Any:
        r = X @ beta - y
        return 0.5 * np.mean(r**2), X.T @ r / 500

    return lambda: select(from_function(at, 30), 8)


@workload
def regressor() -> Job:
    X, y = table(3000, 600)
    return lambda: FobaRegressor(k=15).fit(X, y)


@workload
def classifier() -> Job:
    X, y = table(3000, 300)
    return lambda: FobaClassifier(k=10).fit(X, y > 0)


@workload
def classifier_obj() -> Job:
    X, y = table(3000, 300)
    return lambda: FobaClassifier(k=10, method="foba-obj").fit(X, y > 0)


@workload
def classifier_small() -> Job:
    X, y = table(100, 50)
    return lambda: FobaClassifier(k=5).fit(X, y > 0)


@workload
def classifier_sparse() -> Job:
    X, y = table(10_000, 500, density=0.02)
    return lambda: FobaClassifier(k=10).fit(X, y > 0)


@workload
def path_file() -> Job:
    X, y = table(200, 60)
    path = select(LeastSquares(X, y))

    def run() -> forback.Path:
        path.save("path.json")
        return forback.Path.load("path.json")

    return run
