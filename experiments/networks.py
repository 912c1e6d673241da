"""Covariance selection in `forback bench`: a whole path beside one fit of the graphical lasso."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from experiments.choices import Choice, Run, require
from experiments.graphs import INNER, tuned_lasso
from experiments.workloads import Problem
from forback.core.types import Floats, Ints


def edges(problem: Problem, method: str) -> Run:
    """FobaCovariance to k edges."""
    from forback.estimators.covariance import FobaCovariance

    def run() -> Choice:
        path = FobaCovariance(problem.k, method=method).fit(problem.X).path_
        additions = sum(step.action == "add" for step in path.steps)
        return Choice(path.end.support, additions)

    return run


def lasso(problem: Problem, **options: Any) -> Run:
    """One fit of scikit-learn's graphical lasso, with the penalty that leaves k edges."""
    from sklearn.covariance import GraphicalLasso

    require(problem, ("graph",), dense=True)
    penalty = tuned_lasso(problem.X, problem.k)[0]
    return _fitting(GraphicalLasso(penalty, **options), problem.X)


def lasso_tuned(problem: Problem) -> Run:
    """The same at an inner accuracy with which it converges; at its default it may not."""
    return lasso(problem, enet_tol=INNER)


def lasso_cv(problem: Problem) -> Run:
    """scikit-learn's choice of the penalty by cross-validation, as it comes."""
    from sklearn.covariance import GraphicalLassoCV

    require(problem, ("graph",), dense=True)
    return _fitting(GraphicalLassoCV(), problem.X)


def _fitting(model: Any, X: Floats) -> Run:
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)

    def run() -> Choice:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it is timed all the same
            return Choice(_support(model.fit(scaled).precision_))

    return run


def _support(precision: Floats) -> Ints:
    """The candidates that a precision matrix uses."""
    i, j = np.triu_indices(len(precision), 1)
    return np.flatnonzero(precision[i, j])
