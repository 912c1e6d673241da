"""The loops over pairs of entries, against NumPy and SciPy."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from forback.objectives.graph.kernels.curvature import components, fill_curvature, mirror


def test_curvature_is_the_trace_formula():
    rng = np.random.default_rng(0)
    p = 5
    W = rng.normal(size=(p, p))
    W = W @ W.T
    i, j = np.triu_indices(p)
    ridge = rng.random(len(i))
    out = np.empty((len(i), len(i)))
    fill_curvature(i, j, W, ridge, out)
    E = np.zeros((len(i), p, p))
    for a in range(len(i)):
        E[a, i[a], j[a]] = E[a, j[a], i[a]] = 1.0
    expected = np.array([[np.trace(a @ W @ b @ W) for b in E] for a in E]) + np.diag(ridge)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("count", [0, 1, 10, 30, 60])
def test_components_are_those_of_scipy(count):
    rng = np.random.default_rng(count)
    p = 40
    i, j = rng.integers(p, size=(2, count))
    found = components(i, j, p)
    graph = sparse.coo_array((np.ones(count), (i, j)), shape=(p, p))
    _, labels = connected_components(graph, directed=False)
    lowest = np.array([np.flatnonzero(labels == label)[0] for label in labels])
    np.testing.assert_array_equal(found, lowest)


@pytest.mark.parametrize("p", [1, 2, 31, 32, 33, 100])
def test_mirror(p):
    W = np.random.default_rng(0).normal(size=(p, p))
    expected = np.triu(W) + np.triu(W, 1).T
    mirror(W)
    np.testing.assert_array_equal(W, expected)
