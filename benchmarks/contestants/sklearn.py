"""scikit-learn: orthogonal matching pursuit, and an L1 path that stops when k columns are in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, OrthogonalMatchingPursuit, lasso_path

from benchmarks.contract import Choice, Contestant, Problem, Run, require
from forback.core.types import Floats

#: Each penalty of an L1 path over the one before.
GRID_STEP = 0.8


def l1_option() -> dict[str, Any]:
    """Ask scikit-learn for an L1 penalty by the name its version wants: 1.8 changed it."""
    return {"penalty": "l1"} if LogisticRegression().l1_ratio is None else {"l1_ratio": 1.0}


def omp(problem: Problem) -> Run:
    """Prepare greedy least squares without removals."""
    require(problem, ("squared",), dense=True)

    def run() -> Choice:
        model = OrthogonalMatchingPursuit(n_nonzero_coefs=problem.k, fit_intercept=False)
        return Choice(np.flatnonzero(model.fit(problem.X, problem.y).coef_))

    return run


def l1_path(problem: Problem) -> Run:
    """Prepare an L1 path until k columns are in; of more than k, the largest coefficients count."""
    require(problem, ("squared", "logistic"), dense=True)
    fit = _lasso if problem.loss == "squared" else _l1_logistic

    def run() -> Choice:
        coef = np.zeros(problem.X.shape[1])
        fits = fit(problem)
        while np.count_nonzero(coef) < problem.k:
            coef = next(fits)
        return Choice(np.sort(np.argsort(-np.abs(coef), kind="stable")[: problem.k]))

    return run


def _penalties(problem: Problem, residual: Floats) -> Iterator[float]:
    """Yield penalties on the scale of a mean loss, down from the largest that admits anything."""
    penalty = float(np.abs(problem.X.T @ residual).max()) / len(problem.y)
    while True:
        penalty *= GRID_STEP
        yield penalty


def _lasso(problem: Problem) -> Iterator[Floats]:
    X = np.asfortranarray(problem.X)  # once, instead of at every penalty
    coef = None
    for penalty in _penalties(problem, problem.y):
        _, coefs, _ = lasso_path(X, problem.y, alphas=[penalty], coef_init=coef)
        coef = coefs[:, 0]
        yield coef


def _l1_logistic(problem: Problem) -> Iterator[Floats]:
    model = LogisticRegression(solver="liblinear", fit_intercept=False, **l1_option())
    positive = problem.y > 0
    for penalty in _penalties(problem, np.where(positive, 0.5, -0.5)):
        model.set_params(C=1 / (penalty * len(positive)))
        yield model.fit(problem.X, positive).coef_[0]


CONTESTANTS = [
    Contestant(
        "sklearn-omp",
        omp,
        {
            "ls-gaussian": 3 / 4,
            "ls-ar": None,
            "ls-factor": None,
            "tall-ls": 1.1,
            "wide-ls": 1.0,
        },
    ),
    Contestant("l1-path", l1_path, {"ls-gaussian": None, "logistic-gaussian": None}),
]
