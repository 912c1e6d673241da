"""Products with sparse matrices, stored by rows."""

from __future__ import annotations

import numpy as np

from forback.core.types import Floats, Ints
from forback.solvers.kernels.compiled import kernel


@kernel
def sandwich(
    data: Floats, columns: Ints, pointer: Ints, m: int, weights: Floats, start: int, stop: int
) -> Floats:
    """B' diag(weights) B over some rows of a matrix B stored by rows, columns ascending."""
    total = np.zeros((m, m))
    for i in range(start, stop):
        for a in range(pointer[i], pointer[i + 1]):
            scaled = weights[i] * data[a]
            row = total[columns[a]]
            for b in range(pointer[i], a + 1):
                row[columns[b]] += scaled * data[b]
    for a in range(m):
        for b in range(a):
            total[b, a] = total[a, b]
    return total


@kernel
def predict(
    data: Floats, columns: Ints, pointer: Ints, coef: Floats, out: Floats, start: int, stop: int
) -> None:
    """B coef for some rows of a matrix B stored by rows."""
    for i in range(start, stop):
        total = 0.0
        for entry in range(pointer[i], pointer[i + 1]):
            total += data[entry] * coef[columns[entry]]
        out[i] = total
