"""The same fit in threads, in a forked child and under any number of BLAS threads."""

import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from forback import select
from forback.objectives import LeastSquares, Logistic

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 400)) + 2 * RNG.normal(size=(300, 1))
ETA = X[:, :5] @ RNG.normal(size=5)
Y = ETA + RNG.normal(size=300)
LABELS = Y > 0


def run(method="foba-gdt"):
    logistic = select(Logistic(X, LABELS, ridge=1e-3), k=8, method=method)
    squares = select(LeastSquares(X, Y), k=8, method=method)
    return [[(s.action, s.feature, s.value) for s in path.steps] for path in (logistic, squares)]


def steps_of(result):
    return [[(action, feature) for action, feature, _ in path] for path in result]


def values_of(result):
    return np.concatenate([[value for _, _, value in path] for path in result])


def assert_same(found, expected):
    assert steps_of(found) == steps_of(expected)
    np.testing.assert_allclose(values_of(found), values_of(expected), rtol=1e-12)


def test_repeating_a_fit_gives_the_same_bits():
    assert run() == run()


def test_two_threads_at_once():
    expected = run()
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda _: run(), range(4)):
            assert_same(found, expected)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("method", ["foba-gdt", "foba-obj"])
def test_any_number_of_blas_threads(threads, method):
    expected = run(method)
    with threadpool_limits(threads):
        assert_same(run(method), expected)


def _child(queue):
    queue.put(run())


# Python 3.12 and JAX warn when a process with threads forks; that is the situation under test.
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_in_a_forked_child_after_a_fit_in_the_parent():
    expected = run()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue,))
    child.start()
    found = queue.get(timeout=120)
    child.join()
    assert_same(found, expected)
