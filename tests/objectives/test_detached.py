"""Functions get views in place of their arrays, wherever they are kept; nothing else changes."""

from collections import namedtuple
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from forback import select
from forback.objectives import LeastSquares, from_function, from_jax
from forback.objectives.detached import detached
from forback.protocols import ObjectiveError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 5))
Y = X[:, 1] - X[:, 3] + RNG.normal(size=50)
Pair = namedtuple("Pair", "X y")
PAIR = Pair(X, Y)


@dataclass
class Data:
    X: np.ndarray
    y: np.ndarray

    def loss(self, beta):
        return jnp.mean((self.y - self.X @ beta) ** 2) / 2


DATA = Data(X, Y)


def predicted(beta):
    return PAIR.X @ beta


def by_dictionary(beta, data):
    return jnp.mean((data["y"] - data["X"][0] @ beta) ** 2) / 2


WAYS = {
    "global": lambda beta: jnp.mean((Y - X @ beta) ** 2) / 2,
    "default": lambda beta, A=X, y=Y: jnp.mean((y - A @ beta) ** 2) / 2,
    "namedtuple": lambda beta: jnp.mean((PAIR.y - PAIR.X @ beta) ** 2) / 2,
    "object": lambda beta: jnp.mean((DATA.y - DATA.X @ beta) ** 2) / 2,
    "method": DATA.loss,
    "partial": partial(by_dictionary, data={"X": [X], "y": Y}),
    "helper": lambda beta: jnp.mean((Y - predicted(beta)) ** 2) / 2,
    "compiled": jax.jit(lambda beta: jnp.mean((Y - predicted(beta)) ** 2) / 2),
}


@pytest.mark.parametrize("way", WAYS)
def test_single_precision_before_and_after_does_no_harm(way):
    function = WAYS[way]
    assert jax.jit(function)(jnp.ones(5)).dtype == jnp.float32
    path = select(from_jax(function, 5), k=2)
    native = select(LeastSquares(X, Y), k=2)
    assert path.end.support.tolist() == native.end.support.tolist()
    assert path.end.value == pytest.approx(native.end.value, rel=1e-13)  # no data was rounded
    gradient = X.T @ (X @ path.coef(2) - Y) / 50
    assert np.abs(gradient[path.end.support]).max() < 1e-10
    assert function(jnp.ones(5)).dtype == jax.jit(function)(jnp.ones(5)).dtype == jnp.float32


def test_what_holds_no_array_is_left_alone():
    calls = []

    def function(beta):
        calls.append(1)
        return jnp.sum(beta**2)

    assert detached(function) is function
    from_jax(function, 3)
    assert calls
    assert detached([1, (2, {"a": 3})]) == [1, (2, {"a": 3})]


def test_views_share_memory_and_things_that_refer_to_themselves_end():
    ring = [X]
    ring.append(ring)
    twin = detached(ring)
    assert twin[0] is not X
    assert np.shares_memory(twin[0], X)


@pytest.mark.parametrize(
    "make", [lambda: from_jax(WAYS["global"], 7), lambda: from_function(lambda b: (1.0, X @ b), 7)]
)
def test_a_wrong_dimension_is_named(make):
    with pytest.raises(ObjectiveError, match="fails for a vector of length dim=7"):
        make()
