"""Products that threads share: those of NumPy, whatever is stored how."""

import warnings

import numpy as np
import pytest

from forback.solvers import products, threads


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("shape", [(7, 5000), (3000, 9), (60, 60), (0, 5), (5, 0), (1, 1)])
@pytest.mark.parametrize("order", ["C", "F", "strided"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_parts_make_up_the_product(width, shape, order, dtype, monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: width)
    monkeypatch.setattr(products, "MIN_ENTRIES_TO_SHARE", 1)
    monkeypatch.setattr(products, "ENTRIES_PER_PART", 100)
    monkeypatch.setattr(products, "STRIP", 16)
    rng = np.random.default_rng(0)
    array = rng.normal(size=shape).astype(dtype)
    array = np.repeat(array, 2, axis=1)[:, ::2] if order == "strided" else array.copy(order)
    for left in (rng.normal(size=shape[0]), rng.normal(size=(3, shape[0]))):
        left = left.astype(dtype)
        found = products.product(left, array)
        assert found.dtype == dtype
        assert found.shape == (left @ array).shape
        np.testing.assert_allclose(found, left @ array, atol=1e-3 if dtype == np.float32 else 1e-10)


def test_threads_warn_as_their_caller_does(monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: 2)
    huge = np.full((1 << 11, 1 << 12), 1e300)
    with warnings.catch_warnings(), np.errstate(over="ignore"):
        warnings.simplefilter("error")
        assert np.isinf(products.product(np.full(len(huge), 1e300), huge)).all()
