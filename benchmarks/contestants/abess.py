"""abess: exchanges features by splicing, at every size up to k or at k alone."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.contract import Choice, Contestant, Problem, Run, importing, require


def abess(problem: Problem, whole_path: bool) -> Run:
    """Splice at the sizes 1 .. k, each from the one before, or at k alone."""
    with importing("abess"):
        from abess.linear import LinearRegression, LogisticRegression, PoissonRegression
    estimators = {
        "squared": LinearRegression,
        "logistic": LogisticRegression,
        "poisson": PoissonRegression,
    }
    require(problem, list(estimators))
    estimator = estimators[problem.loss]
    # abess penalises by alpha |b|^2 the sum of the losses, where a squared loss counts twice.
    alpha = problem.ridge * len(problem.y) / (1 if problem.loss == "squared" else 2)
    sizes = range(1, problem.k + 1) if whole_path else [problem.k]

    def run() -> Choice:
        # ic_type="loss" keeps the largest size of a path; thread=0 is as many as OpenMP may use.
        model = estimator(
            support_size=sizes, alpha=alpha, fit_intercept=False, ic_type="loss", thread=0
        )
        model.fit(problem.X, problem.y, is_normal=False)
        return Choice(np.flatnonzero(model.coef_))

    return run


CONTESTANTS = [
    Contestant(
        "abess-path",
        partial(abess, whole_path=True),
        {
            "ls-gaussian": 2 / 5,
            "logistic-gaussian": 1 / 5,
            "ls-ar": None,
            "logistic-ar": None,
            "ls-factor": None,
            "logistic-factor": None,
            "sparse-logistic": None,
            "a9a": 1 / 15,
            "w8a": 1 / 15,
            "wide-ls": None,
            "poisson": 1 / 3,
            "refined-ls": 2.0,
            "refined-ls-ar": 2.0,
            "refined-logistic": 2.0,
            "refined-logistic-ar": 2.0,
            "refined-small-ls": 10.0,
            "refined-small-logistic": 3.0,
        },
    ),
    Contestant(
        "abess-k",
        partial(abess, whole_path=False),
        {
            "ls-gaussian": None,
            "logistic-gaussian": None,
            "paper-logistic": 1.0,
            "a9a": 1.0,
            "w8a": 1.0,
            "tall-logistic": 1 / 4,
            "tall-ls": None,
            "poisson": None,
            "refined-sparse": 1 / 10,
        },
    ),
]
