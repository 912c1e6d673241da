"""Compiling all kernels, by one small problem of every kind, so that they are cached on disk."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from forback.estimators.linear import FobaClassifier
from forback.estimators.selector import FobaSelector
from forback.objectives.chain.inference import Inference, Weights, viterbi
from forback.objectives.chain.objective import ChainCRF
from forback.objectives.graph.objective import GaussianCovariance
from forback.objectives.linear.losses import LOSSES
from forback.objectives.linear.objective import GLM
from forback.objectives.softmax.objective import Multinomial
from forback.selection.select import select

#: One method per goodness rule; without backward steps they use the same kernels.
WARMED_METHODS = ("foba-gdt", "foba-obj")


def warm_up(say: Callable[[str], None]) -> None:
    """Run both goodness rules on every loss, storage and precision that has its own kernels.

    Parameters
    ----------
    say : callable
        Called with a line of text before each part.
    """
    rng = np.random.default_rng(0)
    X = (rng.random((300, 280)) < 0.4) * rng.normal(size=(300, 280))
    y = np.arange(300) % 2 + 0.0
    storages = {
        "dense": X,
        "dense and tall": np.tile(X[:, :8], (100, 1)),
        "dense, by columns": np.asfortranarray(X),
        "dense, single precision": X.astype(np.float32),
        "sparse": sparse.csc_array(X),
        # Small sparse problems are fitted as dense ones: only tall ones use the sparse kernels.
        "sparse and tall": sparse.csc_array(np.tile(X[:, :8], (100, 1))),
    }
    for name, stored in storages.items():
        say(f"{name} ...")
        for loss in LOSSES:
            response = np.tile(y, stored.shape[0] // len(y)) + (1.0 if loss == "gamma" else 0.0)
            for precision, intercept in product(("double", "mixed"), (True, False)):
                options: dict[str, Any] = {"fit_intercept": intercept, "precision": precision}
                objective = GLM(loss, stored, response, ridge=0.1, **options)
                for method in WARMED_METHODS:
                    select(objective, k=4, method=method)
            for method in WARMED_METHODS:  # estimators standardise columns inside the kernels
                FobaSelector(k=4, loss=loss, alpha=0.1, method=method).fit(stored, response)
    say("several classes ...")
    classes = np.arange(300) % 3
    for stored in (X[:, :8], np.asfortranarray(X[:, :8]), sparse.csc_array(X[:, :8])):
        for method in WARMED_METHODS:
            select(Multinomial(stored, classes, ridge=0.1), k=4, method=method)
            FobaClassifier(k=4, alpha=0.1, method=method).fit(stored, classes)
    say("graphs ...")
    for ridge in (0.0, 0.1):
        select(GaussianCovariance.from_data(X[:, :6], ridge=ridge), k=8)
    for labels in (4, 12):  # kernels are compiled for each multiple of eight labels
        say(f"chains of up to {8 * -(-labels // 8)} labels ...")
        _warm_chain(X[:, :3] > 0.5, rng.integers(labels, size=len(X)))


def _warm_chain(X: Any, y: Any) -> None:
    """Fit a chain CRF, decode, and run the recursions in logarithms."""
    chain = ChainCRF(X, y)
    for method in WARMED_METHODS:
        weights = chain.weights(select(chain, k=2, by="feature", method=method).end)
    viterbi(chain.sequences, weights)
    # Weights beyond the range of the scaled recursions, which are then done in logarithms.
    large = Weights(*(1e3 * part for part in vars(weights).values()))
    Inference(chain.sequences, large).counts()
