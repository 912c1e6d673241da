"""ChainData: the checked parts of a linear-chain CRF, and facts that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from forback.core.types import ColumnLabels, Floats
from forback.objectives.chain.layout import Layout

#: Each transition counts as seen so often before any was, so that its logarithm is finite.
PRIOR_COUNT = 0.1


@dataclass(frozen=True, eq=False)
class ChainData(Layout):
    """The checked parts of a `ChainCRF`, and facts about them that are computed once.

    What it has besides its layout:

    Attributes
    ----------
    classes : Any
        The K labels.
    observed : Floats
        The mean of each coordinate's feature at the labels given.
    ridge : Floats
        The penalty of each coordinate.
    tol : float
    max_iter : int
    names : sequence, optional
        What the columns are called.
    """

    classes: Any
    observed: Floats
    ridge: Floats
    tol: float
    max_iter: int
    names: ColumnLabels | None

    @cached_property
    def steepest(self) -> float:
        """The largest absolute gradient at zero weights."""
        return float(np.abs(self.all.means(self.at_zero) - self.observed).max())

    @cached_property
    def cold_start(self) -> Floats:
        """Where to begin without a start: transitions as in a Markov chain, the rest at zero."""
        k = self.n_labels
        n = self.sequences.n_steps
        places = self.n_candidates + np.arange(k * k)
        prior = n * self.ridge[places].mean() / k + PRIOR_COUNT
        seen = n * self.observed[places].reshape(k, k) + prior
        logs = np.log(seen / seen.sum(axis=1, keepdims=True))
        start = np.zeros(self.dim)
        start[places] = (logs - logs.mean()).ravel()
        return start
