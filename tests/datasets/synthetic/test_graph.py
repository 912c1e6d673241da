"""`make_graph` draws from the precision matrix it returns."""

import numpy as np
import pytest

from forback.datasets import make_graph
from forback.datasets.synthetic.graph import GRAPH_KINDS


@pytest.mark.parametrize("kind", GRAPH_KINDS)
@pytest.mark.parametrize("p", [2, 3, 12])
def test_edges_are_those_of_the_precision_matrix(kind, p):
    graph = make_graph(kind, n=5, p=p)
    assert graph.X.shape == (5, p)
    assert np.linalg.eigvalsh(graph.precision)[0] > 0.05
    np.testing.assert_array_equal(graph.precision, graph.precision.T)
    i, j = np.nonzero(np.triu(graph.precision, 1))
    np.testing.assert_array_equal(graph.edges, np.column_stack([i, j]))
    assert len(graph.edges) >= 1


@pytest.mark.parametrize("kind", GRAPH_KINDS)
def test_rows_have_the_covariance_they_claim(kind):
    graph = make_graph(kind, n=40_000, p=8, random_state=1)
    W = np.linalg.inv(graph.precision)
    unit = np.sqrt(np.outer(np.diag(W), np.diag(W)))
    assert np.abs((np.cov(graph.X, rowvar=False) - W) / unit).max() < 0.03
    assert np.abs(graph.X.mean(axis=0) / np.sqrt(np.diag(W))).max() < 0.03


def test_shapes_of_graphs():
    assert make_graph("chain", p=5).edges.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert make_graph("star", p=11).edges.tolist() == [[0, 1], [0, 2]]
    assert len(make_graph("random", p=30).edges) == 60
    assert len(make_graph("random", p=3).edges) == 3


def test_seeds():
    one, same = make_graph("random", random_state=3), make_graph("random", random_state=3)
    np.testing.assert_array_equal(one.X, same.X)
    other = make_graph("random", random_state=np.random.default_rng(3))
    np.testing.assert_array_equal(one.X, other.X)
    assert not np.array_equal(one.X, make_graph("random", random_state=4).X)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kind": "grid"}, ValueError, "kind must be one of"),
        ({"n": 0}, ValueError, "n must be at least 1"),
        ({"p": 1}, ValueError, "p must be at least 2"),
        ({"random_state": "x"}, TypeError, "random_state must be an integer"),
    ],
)
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        make_graph(**options)
