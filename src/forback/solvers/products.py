"""Products with large arrays, shared out among threads by parts of the array.

BLAS has threads of its own, but these wait for each other by spinning: where other processes keep
the cores busy, or two of them meet on one core, a product takes ten times as long as on one thread.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from forback.solvers import threads

Real = TypeVar("Real", np.float64, np.float32)

#: From this many entries of an array on, BLAS may think of a second thread, and is kept from it.
MIN_ENTRIES_TO_LIMIT = 1 << 17

#: From this many on, an array is read from memory, and a second thread pays.
MIN_ENTRIES_TO_SHARE = 1 << 22

#: How many entries of an array a part has, at least.
ENTRIES_PER_PART = 1 << 19

#: How many neighbours in a row a part has, at least: a narrow strip of an array is read slowly.
STRIP = 2048

#: So many rows times an array take as long as reading it from memory.
ROWS_PER_READING = 8


def product(left: NDArray[Real], array: NDArray[Real]) -> NDArray[Real]:
    """Return a vector, or several in the rows of an array, times an array of any order."""
    n, p = array.shape
    work = n * p if left.ndim == 1 else n * p * -(-len(left) // ROWS_PER_READING)
    if work < MIN_ENTRIES_TO_SHARE:
        with threads.one_blas_thread(when=work >= MIN_ENTRIES_TO_LIMIT):
            return np.asarray(left @ array)
    by_rows = array.flags.c_contiguous
    if by_rows and p < 2 * STRIP:

        def of_rows(start: int, stop: int) -> NDArray[Real]:
            return np.asarray(left[..., start:stop] @ array[start:stop])

        edges = threads.edges(n, max(1, ENTRIES_PER_PART // p))
        return np.asarray(sum(threads.over_chunks(of_rows, edges)))
    out = np.empty((*left.shape[:-1], p), dtype=array.dtype)

    def of_columns(start: int, stop: int) -> None:
        np.matmul(left, array[:, start:stop], out=out[..., start:stop])

    width = max(STRIP if by_rows else 1, ENTRIES_PER_PART // n)
    threads.over_chunks(of_columns, threads.edges(p, width))
    return out
