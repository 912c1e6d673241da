"""A small pool of threads for kernels that release the GIL, over chunks fixed in advance.

Chunks do not depend on the number of threads, so sums over them, added in order, do not either.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")

_here = threading.local()


def count() -> int:
    """Return how many threads to use: OMP_NUM_THREADS if it is set, else the cores at hand."""
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every system can say
        return os.cpu_count() or 1


def over_chunks(work: Callable[[int, int], T], edges: Sequence[int]) -> list[T]:
    """Call ``work(start, stop)`` for each pair of neighbours in `edges`; results in their order.

    What `work` itself splits up stays on its thread: the others are busy already, and two that
    wait for each other would wait forever.
    """
    if len(edges) == 2:  # the quickest way, which small problems take all the time
        return [work(edges[0], edges[1])]
    chunks = list(pairwise(edges))
    width = 1 if getattr(_here, "at_work", False) else min(count(), len(chunks))
    if width < 2:
        return [work(*chunk) for chunk in chunks]
    results: list[Any] = [None] * len(chunks)
    left = iter(range(len(chunks)))  # each takes the next one, so that nobody waits for long

    def share() -> None:
        _here.at_work = True
        try:
            for number in left:
                results[number] = work(*chunks[number])
        finally:
            _here.at_work = False

    others = [_pool(count()).submit(share) for _ in range(1, width)]
    try:
        share()
    finally:
        # A thread that has not begun by now is not needed.
        begun = [other for other in others if not other.cancel()]
        wait(begun)
    for other in begun:
        other.result()
    return results


def each(work: Callable[[Any], T], arguments: Iterable[Any]) -> list[T]:
    """Call ``work(argument)`` for each of the arguments; results in their order."""
    listed = list(arguments)
    return over_chunks(lambda number, _: work(listed[number]), range(len(listed) + 1))


def edges(size: int, most: int) -> list[int]:
    """Return where parts of much the same length, none longer than `most`, begin and end.

    An even number of them, unless one will do: two threads finish together.
    """
    if size <= most:
        return [0, size]
    parts = 2 * -(-size // (2 * most))
    return [size * part // parts for part in range(parts + 1)]


_limiting = threading.Lock()


@contextmanager
def one_blas_thread(when: bool = True) -> Iterator[None]:
    """Limit BLAS and LAPACK to one thread, for work that is small.

    A second one saves little on a few hundred columns. Where other processes keep the cores busy,
    waiting for it takes many times as long as the work itself.
    """
    # The limit is that of the process: the first thread sets it and lifts it, others do neither.
    if not when or count() == 1 or not _limiting.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _limiting.release()


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@lru_cache(maxsize=1)
def _pool(width: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(width, thread_name_prefix="forback")


def _forget() -> None:
    """Start afresh in a forked child, where the threads of the parent do not exist."""
    global _limiting
    _pool.cache_clear()
    _limiting = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
