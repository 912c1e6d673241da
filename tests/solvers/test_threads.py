"""The pool of threads: any width, forked, shared, after an error; and compiling without a cache."""

import json
import multiprocessing
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from forback import select
from forback.designs.dense import Dense
from forback.objectives import LeastSquares, Logistic
from forback.solvers import threads
from support.processes import in_another_process

FITS = """
import json
import numpy as np
from scipy import sparse
from forback import select
from forback.objectives import GLM, LeastSquares, Logistic

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 700)) + rng.normal(size=(400, 1))
y = X[:, :4] @ [2.0, -1.0, 1.0, 0.5] + rng.normal(size=400)
tall = sparse.csc_array((rng.random((40000, 30)) < 0.2) * rng.random((40000, 30)))
labels = tall @ rng.normal(size=30) + rng.normal(size=40000) > 0
found = []
for method in ("foba-gdt", "foba-obj"):
    for objective in (
        LeastSquares(X, y),
        Logistic(X, y > 0, ridge=1e-2, precision="mixed"),
        Logistic(np.asfortranarray(X), y > 0, ridge=1e-2),
        Logistic(X.astype(np.float32), y > 0, ridge=1e-2),
        GLM("huber", sparse.csc_array(np.where(X > 1, X, 0)), y),
        Logistic(tall, labels, fit_intercept=True),
    ):
        path = select(objective, k=4, method=method)
        found.append([(s.action, s.feature, s.value.hex()) for s in path.steps])
print(json.dumps(found))
"""

NO_CACHE = """
import numba.core.caching as caching
caching.CacheImpl._locator_classes = []
caching.CodeLibraryCacheImpl._locator_classes = []
caching.CompileResultCacheImpl._locator_classes = []
import numpy as np
from forback import select
from forback.objectives.linear.kernels import losses
from forback.objectives import Logistic
assert type(losses.all_three._cache).__name__ == "NullCache"
X = np.random.default_rng(0).normal(size=(50, 6))
path = select(Logistic(X, X[:, 3] + 0.1 * X[:, 1] > 0, ridge=1e-2), k=2, method="foba-obj")
assert path.steps[0].feature == 3
"""


def test_any_number_of_threads_gives_the_same_steps_and_the_same_number_the_same_bits():
    runs = {}
    for count, times in (("1", 1), ("2", 2)):
        printed = {in_another_process(FITS, OMP_NUM_THREADS=count) for _ in range(times)}
        assert len(printed) == 1
        runs[count] = json.loads(printed.pop())
    for one, two in zip(runs["1"], runs["2"], strict=True):
        assert [step[:2] for step in one] == [step[:2] for step in two]
        values = [[float.fromhex(step[2]) for step in path] for path in (one, two)]
        np.testing.assert_allclose(*values, rtol=1e-12)


def test_without_a_folder_for_machine_code():
    in_another_process(NO_CACHE)


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")


@pytest.mark.parametrize(
    ("asked", "expected"), [("3", 3), ("4,2", 4), ("", None), ("none", None), ("0", None)]
)
def test_the_number_of_threads(asked, expected, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    if expected is None:
        assert threads.count() >= 1
    else:
        assert threads.count() == expected


@pytest.mark.parametrize("width", ["1", "2", "3", "7"])
@pytest.mark.parametrize("size", [0, 1, 5, 64])
def test_results_come_in_the_order_of_their_chunks(size, width, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", width)
    edges = threads.edges(size, 3)
    found = threads.over_chunks(lambda start, stop: list(range(start, stop)), edges)
    assert [number for chunk in found for number in chunk] == list(range(size))


@pytest.mark.parametrize("width", ["2", "3", "5"])
def test_the_first_error_is_raised_when_nobody_works_any_more(width, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", width)
    active = []

    def work(start, stop):
        active.append(start)
        time.sleep(0.02)
        active.remove(start)
        raise ZeroDivisionError(f"chunk {start}")

    with pytest.raises(ZeroDivisionError):
        threads.over_chunks(work, threads.edges(40, 4))
    assert active == []


@pytest.mark.parametrize("width", ["1", "2", "3", "7"])
def test_what_splits_up_again_finishes_in_order_on_its_own_thread(width, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", width)

    def outer(start, stop):
        def inner(first, last):
            time.sleep(1e-4)
            return threading.get_ident(), list(threads.over_chunks(lambda a, b: a, [0, 1, 2, 3]))

        found = threads.over_chunks(inner, list(range(5)))
        return start, {ident for ident, _ in found}, threading.get_ident(), found

    for _ in range(3):
        results = threads.over_chunks(outer, list(range(13)))
        assert [start for start, *_ in results] == list(range(12))
        for _, idents, own, found in results:
            assert idents == {own}
            assert [inner for _, inner in found] == [[0, 1, 2]] * 4


def test_an_error_two_levels_down_leaves_the_pool_as_it_was(two_threads):
    def fail(start, stop):
        raise ZeroDivisionError(f"chunk {start}")

    with pytest.raises(ZeroDivisionError):
        threads.over_chunks(lambda a, b: threads.over_chunks(fail, [0, 1, 2]), [0, 1, 2, 3])
    seen = set()

    def work(start, stop):
        time.sleep(0.02)
        seen.add(threading.get_ident())

    threads.over_chunks(work, list(range(7)))
    assert len(seen) == 2  # nobody thinks that it is still at work


@pytest.mark.parametrize("bad", [0, 1, 3])
def test_an_error_in_a_chunk_is_raised_and_the_pool_goes_on(bad, two_threads):
    def work(start, stop):
        if start == bad:
            raise ZeroDivisionError(f"chunk {start}")
        return start

    for _ in range(3):
        with pytest.raises(ZeroDivisionError, match=f"chunk {bad}"):
            threads.over_chunks(work, [0, 1, 2, 3, 4])
        assert threads.over_chunks(lambda start, stop: start, [0, 1, 2, 3, 4]) == [0, 1, 2, 3]


WIDE = np.random.default_rng(1).normal(size=(100, 5000))
LEFT = np.random.default_rng(2).normal(size=100)


def sums():
    return Dense(WIDE).three_sums(LEFT, LEFT**2)


# Python 3.12 and JAX warn when a process with threads forks; that is the situation under test.
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_in_a_forked_child_after_the_parent_used_the_pool(two_threads):
    expected = sums()
    assert threads._pool.cache_info().currsize == 1
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(
        target=lambda: queue.put((threads._pool.cache_info().currsize == 0, sums()))
    )
    child.start()
    forgotten, found = queue.get(timeout=60)
    child.join()
    assert forgotten
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(sums(), expected)


def test_two_python_threads_at_once(two_threads):
    expected, y = sums(), LEFT > 0

    def fit(number):
        path = select(Logistic(WIDE, y, ridge=1e-2), k=3, method="foba-obj")
        return sums(), [(step.feature, step.value) for step in path.steps]

    alone = fit(0)[1]
    with ThreadPoolExecutor(4) as pool:
        for found, path in pool.map(fit, range(8)):
            np.testing.assert_array_equal(found, expected)
            assert path == alone


@pytest.fixture(scope="module")
def million():
    """A sparse matrix of a million columns with three entries each, and a response."""
    rng = np.random.default_rng(3)
    p = 1_000_000
    rows = (rng.integers(0, 666, size=(p, 3)) + np.array([0, 666, 1332])).astype(np.int32)
    data = rng.normal(size=3 * p)
    X = sparse.csc_array((data, rows.ravel(), np.arange(0, 3 * p + 1, 3)), shape=(2000, p))
    y = rng.normal(size=2000)
    y += 8.0 * X[:, [123_456]].toarray().ravel() + 8.0 * X[:, [7]].toarray().ravel()
    return X, y


@pytest.mark.parametrize("method", ["foba-gdt", "foba-obj"])
@pytest.mark.parametrize("make", [LeastSquares, Logistic])
def test_a_million_sparse_columns(make, method, million):
    X, y = million
    response = y if make is LeastSquares else y > 0
    tracemalloc.start()
    try:
        path = select(make(X, response, ridge=1e-4), k=3, method=method)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert path.end.size == 3
    assert peak < 300e6  # as an array the matrix would take 16 GB


def blas_threads():
    return {library.num_threads for library in threads._blas()}


def test_blas_gets_its_threads_back():
    before = blas_threads()
    with threads.one_blas_thread():
        assert blas_threads() == {1}
        with threads.one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before
    with pytest.raises(KeyError), threads.one_blas_thread():
        raise KeyError
    assert blas_threads() == before


HELD = """
import contextlib
import threading
import numpy, scipy.linalg
from threadpoolctl import threadpool_limits
from forback.solvers import threads

def blas_threads():
    return {library.num_threads for library in threads._blas()}

before, entered, leave = blas_threads(), threading.Event(), threading.Event()

def hold():
    with threads.one_blas_thread():
        entered.set()
        leave.wait(10)

def hand_over(comes_first, leaves_first):
    entered.clear()
    leave.clear()
    other = threading.Thread(target=hold)
    with contextlib.ExitStack() as here:
        if comes_first:
            here.enter_context(threads.one_blas_thread())
        other.start()
        assert entered.wait(10)
        if not comes_first:
            here.enter_context(threads.one_blas_thread())
        if not leaves_first:
            leave.set()
            other.join()
        assert blas_threads() == {1}, blas_threads()
    if leaves_first:
        assert blas_threads() == {1}, blas_threads()
        leave.set()
        other.join()
    assert blas_threads() == before, blas_threads()

for case in ((False, True), (False, False), (True, True), (True, False)):
    hand_over(*case)

# A limit of the user's stays what it is.
with threadpool_limits(2, user_api="blas"), threads.one_blas_thread():
    assert blas_threads() == {1}
with threadpool_limits(1, user_api="blas"):
    with threads.one_blas_thread():
        pass
    assert blas_threads() == {1}
assert blas_threads() == before
"""


def test_blas_gets_its_threads_back_from_whoever_leaves_last():
    in_another_process(HELD, OPENBLAS_NUM_THREADS="2", OMP_NUM_THREADS="2")


RUNS = """
import numpy as np
from threadpoolctl import threadpool_limits
from forback import select
from forback.objectives import LeastSquares, Logistic
from forback.solvers import threads

def blas_threads():
    return {library.num_threads for library in threads._blas()}

rng = np.random.default_rng(0)
X = rng.normal(size=(900, 1500)) + rng.normal(size=(900, 1))
wide = rng.normal(size=(150, 30000))  # products are shared out
tall = rng.normal(size=(60000, 80))
before = blas_threads()
assert before == {2}
for design in (X, np.asfortranarray(X), X.astype(np.float32), wide, np.asfortranarray(tall)):
    eta = design[:, :6] @ [2.0, -1.0, 1.0, 0.5, 0.4, 0.3]
    y = eta + rng.normal(size=len(eta))
    for make in (
        lambda: LeastSquares(design, y),
        lambda: Logistic(design, y > 0, ridge=1e-2),
        lambda: Logistic(design, y > 0, ridge=1e-2, precision="mixed"),
    ):
        for method in ("foba-gdt", "foba-obj"):
            found, seen = [], []
            for most in (1, 2):
                with threadpool_limits(most, user_api="blas"):
                    look = lambda step: seen.append(blas_threads())
                    path = select(make(), k=6, method=method, callback=look)
                    assert blas_threads() == {most}
                found.append([(s.action, s.feature, s.value.hex()) for s in path.steps])
            assert found[0] == found[1]
            half = len(seen) // 2
            assert seen == [{1}] * half + [{2}] * half  # a callback has what the user has
            assert blas_threads() == before

def fail(step):
    raise KeyError

try:
    select(LeastSquares(X, X[:, 0]), k=2, callback=fail)
except KeyError:
    pass
assert blas_threads() == before
"""


@pytest.mark.slow
def test_a_run_neither_depends_on_the_threads_of_blas_nor_keeps_them():
    in_another_process(RUNS, OPENBLAS_NUM_THREADS="2", OMP_NUM_THREADS="2")
