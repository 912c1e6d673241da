"""One small problem of every kind, so that all kernels are compiled and kept on disk."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from forback.objectives.linear import GLM
from forback.objectives.losses import LOSSES
from forback.selection.select import select


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
                    for method in ("foba-gdt", "foba-obj"):
                        select(objective, k=4, method=method)
