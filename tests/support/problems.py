"""Small random problems, one list for every test that needs them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from forback.objectives import GLM, LeastSquares, Logistic
from forback.selection.criteria import likelihood_of
from reference.functions import FORMULAS, DenseQ

LOSSES = tuple(FORMULAS)
DESIGNS = ("gaussian", "correlated", "binary", "duplicated")
NATIVE = {"squared": LeastSquares, "logistic": Logistic}


@dataclass
class Problem:
    loss: str
    X: Any
    y: Any
    options: dict = field(default_factory=dict)

    def objective(self, *, storage="dense"):
        X = sparse.csc_array(self.X) if storage == "csc" else self.X
        if self.loss in NATIVE:
            return NATIVE[self.loss](X, self.y, **self.options)
        return GLM(self.loss, X, self.y, **self.options)

    def reference(self):
        options = dict(self.options)
        weights = options.pop("sample_weight", None)
        return DenseQ(self.loss, self.X, self.y, weights=weights, **options)


def make_problem(loss, design, seed, *, n=40, p=8, ridge=1e-2, weighted=False, **options):
    rng = np.random.default_rng(seed)
    X = make_design(design, n, p, rng)
    truth = np.zeros(p)
    truth[rng.choice(p, min(3, p), replace=False)] = rng.normal(size=min(3, p))
    y = make_response(loss, X @ truth, rng)
    if weighted:
        options["sample_weight"] = rng.integers(1, 4, size=n).astype(float)
    return Problem(loss, X, y, {"ridge": ridge, **options})


def make_design(design, n, p, rng):
    X = rng.normal(size=(n, p))
    if design == "correlated":
        X = X + 2.0 * rng.normal(size=(n, 1))
    elif design == "binary":
        X = (X > 0.6).astype(float)
    elif design == "duplicated":
        X[:, p // 2] = X[:, 0]
        X[:, -1] = 0.0
    return X


def make_response(loss, eta, rng):
    n = len(eta)
    if loss in ("logistic", "squared_hinge"):
        y = (rng.random(n) < 1 / (1 + np.exp(-2 * eta))).astype(float)
        y[:2] = 0.0, 1.0
        return y
    if loss == "poisson":
        return rng.poisson(np.exp(0.5 * eta)).astype(float)
    if loss == "gamma":
        return rng.gamma(2.0, np.exp(0.5 * eta)) + 1e-3
    noise = rng.standard_t(3, size=n) if loss == "huber" else rng.normal(size=n)
    return eta + noise


def information(objective, point):
    """The log-likelihood of a point, the number of observations and its degrees of freedom."""
    likelihood = likelihood_of(objective)
    loglik, df = likelihood.evaluate(point)
    return loglik, likelihood.n, df
