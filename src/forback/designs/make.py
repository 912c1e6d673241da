"""Which kind of design a matrix makes."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from forback.designs.dense import Dense
from forback.designs.sparse import Sparse


def make_design(X: Any) -> Dense | Sparse:
    """Wrap a checked matrix."""
    return Sparse(X) if sparse.issparse(X) else Dense(X)
