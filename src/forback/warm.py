"""One small problem of every kind, so that all kernels are compiled and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from forback.estimators.linear import FobaClassifier, FobaSelector
from forback.objectives.chain.inference import Weights, forward_backward, viterbi
from forback.objectives.chain.objective import ChainCRF
from forback.objectives.graph.objective import GaussianCovariance
from forback.objectives.linear.losses import LOSSES
from forback.objectives.linear.objective import GLM
from forback.objectives.softmax.objective import Multinomial
from forback.selection.select import select

#: The two rules; without backward steps they use the same kernels.
METHODS = ("foba-gdt", "foba-obj")


def warm_up(say: Callable[[str], None]) -> None:
    """Run both rules on every loss, storage and precision that has kernels of its own."""
    rng = np.random.default_rng(0)
    X = (rng.random((300, 280)) < 0.4) * rng.normal(size=(300, 280))
    y = np.arange(300) % 2 + 0.0
    storages = {
        "dense": X,
        "dense and tall": np.tile(X[:, :8], (100, 1)),
        "dense, by columns": np.asfortranarray(X),
        "dense, single precision": X.astype(np.float32),
        "sparse": sparse.csc_array(X),
        # Small sparse fits are dense: only tall ones use the kernels for sparse rows.
        "sparse and tall": sparse.csc_array(np.tile(X[:, :8], (100, 1))),
    }
    for name, stored in storages.items():
        say(f"{name} ...")
        for loss in LOSSES:
            response = np.tile(y, stored.shape[0] // len(y)) + (1.0 if loss == "gamma" else 0.0)
            for precision in ("double", "mixed"):
                for fit_intercept in (True, False):
                    objective = GLM(
                        loss, stored, response, ridge=0.1, fit_intercept=fit_intercept,
                        precision=precision,
                    )  # fmt: skip
                    for method in METHODS:
                        select(objective, k=4, method=method)
            for method in METHODS:  # estimators centre columns, which kernels do on the way
                FobaSelector(k=4, loss=loss, alpha=0.1, method=method).fit(stored, response)
    say("several classes ...")
    classes = np.arange(300) % 3
    for stored in (X[:, :8], np.asfortranarray(X[:, :8]), sparse.csc_array(X[:, :8])):
        for method in METHODS:
            select(Multinomial(stored, classes, ridge=0.1), k=4, method=method)
            FobaClassifier(k=4, alpha=0.1, method=method).fit(stored, classes)
    say("graphs ...")
    for ridge in (0.0, 0.1):
        select(GaussianCovariance.from_data(X[:, :6], ridge=ridge), k=8)
    for labels in (4, 12):  # kernels are compiled for every eight labels
        say(f"chains of up to {8 * -(-labels // 8)} labels ...")
        _warm_chain(X[:, :3] > 0.5, rng.integers(labels, size=len(X)))


def _warm_chain(X: Any, y: Any) -> None:
    chain = ChainCRF(X, y)
    for method in METHODS:
        weights = chain.weights(select(chain, k=2, by="feature", method=method).end)
    viterbi(chain.sequences, weights)
    far = Weights(
        *(1e3 * part for part in vars(weights).values())
    )  # beyond the range of the quick recursions
    forward_backward(chain.sequences, far).counts()
