"""A small pool of threads for kernels that release the GIL, over chunks fixed in advance.

Chunks do not depend on the number of threads, so sums over them, added in order, do not either.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")

_pool: ThreadPoolExecutor | None = None
_width = 0


def count() -> int:
    """How many threads to use: OMP_NUM_THREADS if it is set, else the cores at hand."""
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every system can say
        return os.cpu_count() or 1


def over_chunks(work: Callable[[int, int], T], edges: Sequence[int]) -> list[T]:
    """``work(start, stop)`` for each pair of neighbours in `edges`; results in their order."""
    chunks = list(pairwise(edges))
    width = min(count(), len(chunks))
    if width < 2:
        return [work(*chunk) for chunk in chunks]

    def share(number: int) -> list[T]:
        return [work(*chunk) for chunk in chunks[number::width]]

    others = [_threads(width - 1).submit(share, number) for number in range(1, width)]
    shares = [share(0), *(other.result() for other in others)]
    return [shares[place % width][place // width] for place in range(len(chunks))]


def edges(size: int, step: int) -> list[int]:
    """0, step, 2 step, ... and `size` itself."""
    return [*range(0, size, step), size]


def _threads(width: int) -> ThreadPoolExecutor:
    global _pool, _width
    if _pool is None or _width < width:
        _pool, _width = ThreadPoolExecutor(width, thread_name_prefix="forback"), width
    return _pool


def _forget() -> None:
    """In a forked child the threads of the parent do not exist."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
