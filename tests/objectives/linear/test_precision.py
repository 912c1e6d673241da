"""Functions of JAX may be used in single precision before and after, wherever their arrays are."""

from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from forback import select
from forback.core.objective import ObjectiveError
from forback.objectives import LeastSquares, from_function, from_jax

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


class Slots:
    __slots__ = ("X", "y")

    def __init__(self):
        self.X, self.y = X, Y

    def loss(self, beta):
        return jnp.mean((self.y - self.X @ beta) ** 2) / 2


class Shared:
    X, y = X, Y

    def __call__(self, beta):
        return jnp.mean((self.y - self.X @ beta) ** 2) / 2

    @classmethod
    def loss(cls, beta):
        return jnp.mean((Y - predicted(beta)) ** 2) / 2


ORDERED = OrderedDict(X=X, y=Y)


@lru_cache
def get_X():
    return X


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
    "slots": Slots().loss,
    "callable": Shared(),
    "classmethod": Shared.loss,
    "ordered": lambda beta: jnp.mean((ORDERED["y"] - ORDERED["X"] @ beta) ** 2) / 2,
    "remembered": lambda beta: jnp.mean((Y - get_X() @ beta) ** 2) / 2,
    "rows": lambda beta: jnp.mean(jax.vmap(lambda x, y: (y - x @ beta) ** 2)(X, Y)) / 2,
    "checkpoint": jax.checkpoint(lambda beta: jnp.mean((Y - X @ beta) ** 2) / 2),
    "compiled method": jax.jit(DATA.loss),
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


def test_nothing_else_is_compiled_again_without_need(monkeypatch):
    data = Data(X.copy(), Y.copy())  # which nobody has met
    monkeypatch.setattr(jax, "clear_caches", None)
    some = data.y > 0
    for function in (data.loss, lambda beta: jnp.mean(some * (data.y - data.X @ beta) ** 2)):
        from_jax(function, 5).value_and_gradient(np.ones(5))


@pytest.mark.parametrize(
    "make", [lambda: from_jax(WAYS["global"], 7), lambda: from_function(lambda b: (1.0, X @ b), 7)]
)
def test_a_wrong_dimension_is_named(make):
    with pytest.raises(ObjectiveError, match="fails for a vector of length dim=7"):
        make()
