"""A small pool of threads for kernels that release the GIL, over chunks fixed in advance.

Chunks do not depend on the number of threads, so sums over them, added in order, do not either.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
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

    warnings = np.geterr()  # of this thread only

    def share() -> None:
        _here.at_work = True
        try:
            with np.errstate(**warnings):
                for number in left:
                    results[number] = work(*chunks[number])
        finally:
            _here.at_work = False

    with one_blas_thread():
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


class _Limit:
    """BLAS and LAPACK on one thread for as long as anybody wants that.

    The limit is that of the process: whoever comes first sets it, and who leaves last lifts it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._holders == 0:
                self._before = []
                for library in _blas():
                    most = library.num_threads
                    if most > 1:
                        library.set_num_threads(1)
                        # It is left alone where another thread of the user's holds a limit.
                        self._before += [(library, most)] * (library.num_threads == 1)
            self._holders += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self.lift()
            for library, _ in self._before:
                # Some versions let only the thread that set a limit change it, until it says this.
                if give_way := getattr(library, "clear_controlling_thread", None):
                    give_way()

    def lift(self) -> None:
        """Give BLAS its threads back."""
        for library, most in self._before:
            library.set_num_threads(most)


_limit = _Limit()


def one_blas_thread(when: bool = True) -> AbstractContextManager[None]:
    """Limit BLAS and LAPACK to one thread, for work that is small or that is shared out here.

    A second one saves little on a few hundred columns. Where other processes keep the cores busy,
    or it is on the same core as the first, which waits for it by spinning, a product takes many
    times as long.
    """
    return _limit if when else nullcontext()


@contextmanager
def users_blas_threads(when: bool = True) -> Iterator[None]:
    """Give BLAS the threads back that it had before `one_blas_thread`, for what a user does."""
    limit = _limit
    if when:
        limit.__exit__()
    try:
        yield
    finally:
        if when:
            limit.__enter__()


@lru_cache(maxsize=1)
def _blas() -> list[Any]:
    """The BLAS libraries of NumPy and SciPy."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@lru_cache(maxsize=1)
def _pool(width: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(width, thread_name_prefix="forback")


def _forget() -> None:
    """Start afresh in a forked child, where the threads of the parent do not exist."""
    global _limit
    _pool.cache_clear()
    _limit.lift()
    _limit = _Limit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
