"""scikit-learn's graphical lasso: one fit with as many edges as forback's path ends with."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.covariance import (
    GraphicalLasso,
    GraphicalLassoCV,
    empirical_covariance,
    graphical_lasso,
)
from sklearn.exceptions import ConvergenceWarning

from benchmarks.contract import Choice, Contestant, Problem, Run, require, standardised
from forback.core.types import Floats

#: So often the penalty is tried before the nearest number of edges will do.
MAX_TRIES = 30

#: The accuracy of scikit-learn's inner lasso. At its default of 1e-4 the outer loop often runs into
#: its limit of 100 rounds; with this a few will do, and a fit takes far less time.
INNER_TOL = 1e-8


def lasso(problem: Problem, **options: Any) -> Run:
    """Prepare one fit, with the penalty that leaves k edges."""
    require(problem, ("graph",), dense=True)
    penalty = tuned_lasso(problem.X, problem.k)[0]
    return _fitting(GraphicalLasso(penalty, **options), problem.X)


def lasso_tuned(problem: Problem) -> Run:
    """Prepare one fit at an inner accuracy with which it converges; at its default it may not."""
    return lasso(problem, enet_tol=INNER_TOL)


def lasso_cv(problem: Problem) -> Run:
    """Prepare the choice of the penalty by cross-validation, as it comes."""
    require(problem, ("graph",), dense=True)
    return _fitting(GraphicalLassoCV(), problem.X)


def _fitting(model: Any, X: Floats) -> Run:
    scaled = standardised(X)

    def run() -> Choice:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it is timed all the same
            precision = model.fit(scaled).precision_
        return Choice(np.flatnonzero(precision[np.triu_indices(len(precision), 1)]))

    return run


def tuned_lasso(X: Floats, k: int) -> tuple[float, Floats]:
    """Find the penalty for which a graphical lasso on correlations has k edges, by bisection.

    Returns
    -------
    penalty : float
        Where no penalty gives exactly k edges, the one that came nearest.
    precision : ndarray
        The precision matrix of that fit.
    """
    S = empirical_covariance(standardised(X))
    low = 0.0
    high = float(np.abs(np.triu(S, 1)).max())  # from here on there are no edges
    best: tuple[float, float, Floats] | None = None
    for _ in range(MAX_TRIES):
        penalty = 0.5 * (low + high)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                precision = graphical_lasso(S, penalty, enet_tol=INNER_TOL)[1]
            except FloatingPointError:  # too small a penalty for so few rows
                low = penalty
                continue
        count = int(np.count_nonzero(np.triu(precision, 1)))
        if best is None or abs(count - k) < best[0]:
            best = abs(count - k), penalty, precision
        if count == k:
            break
        low, high = (penalty, high) if count > k else (low, penalty)
    assert best is not None  # the first penalties are large enough for any data
    return best[1:]


CONTESTANTS = [
    Contestant("glasso", lasso, {"graph-edges": 10.0}),
    Contestant("glasso-tuned", lasso_tuned, {"graph-edges": 10.0}),
    Contestant("glasso-cv", lasso_cv, {"graph-edges": 1.0}),
]
