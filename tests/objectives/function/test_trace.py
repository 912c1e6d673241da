"""The linear part of a traced function: what it is, and that nothing else is taken for it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

jax = pytest.importorskip("jax")
jnp = jax.numpy

from jax.experimental import sparse  # noqa: E402

from forback.objectives.function.jax.trace import Trace, in_double  # noqa: E402

rng = np.random.default_rng(0)
DIM = 6
X = rng.normal(size=(9, DIM))
SQUARE = rng.normal(size=(DIM, DIM))
TENSOR = rng.normal(size=(4, DIM, 3))
ROWS = rng.integers(0, DIM, size=7)


SPARSE = sparse.BCOO.fromdense(X * (np.abs(X) > 0.5))


def scanned(b):
    return jax.lax.scan(lambda s, x: (0.5 * s + x @ b, s), 0.0, jnp.asarray(X))[1]


#: Functions linear in beta, as people write them.
LINEAR = {
    "matrix": lambda b: X @ b,
    "matrix on the right": lambda b: b @ X.T,
    "sum of columns": lambda b: (X * b).sum(1),
    "einsum": lambda b: jnp.einsum("ij,j->i", X, b),
    "tensordot": lambda b: jnp.tensordot(b, TENSOR, axes=(0, 1)).ravel(),
    "sliced": lambda b: X[:, :4] @ b[:4],
    "from the middle": lambda b: X[:, 2:5] @ b[2:5],
    "every other": lambda b: X[:, ::2] @ b[::2],
    "reversed": lambda b: X @ b[::-1],
    "intercept": lambda b: X[:, :-1] @ b[:-1] + b[-1],
    "one entry": lambda b: 3.0 * b[2],
    "negative index": lambda b: b[-1] - b[0],
    "taken": lambda b: b[ROWS],
    "differences": lambda b: jnp.diff(b),
    "cumulated": lambda b: jnp.cumsum(b),
    "reshaped": lambda b: (b.reshape(2, 3) @ TENSOR[0, :3]).ravel(),
    "symmetric": lambda b: (jnp.outer(np.ones(DIM), b) + jnp.outer(b, np.ones(DIM))).ravel(),
    "divided": lambda b: (X @ b) / 7.0,
    "jitted": lambda b: jax.jit(lambda c: X @ c)(b),
    "jitted twice": lambda b: TWICE(b) + TWICE(2.0 * b),
    "sparse": lambda b: SPARSE @ b,
    "scan": scanned,
    "stacked": lambda b: jnp.concatenate([X @ b, b[:2], SQUARE @ b]),
    "itself": lambda b: b,
    "single precision": lambda b: jnp.asarray(X, jnp.float32) @ b.astype(jnp.float32),
    "padded": lambda b: jnp.pad(b, (1, 2)),
    "matrix of matrices": lambda b: jnp.einsum("ijk,j->ik", TENSOR, b),
    "triangle": lambda b: jnp.zeros((3, 3)).at[np.triu_indices(3)].set(b),
    "shifted": lambda b: X @ b + 1.5,
}

TWICE = jax.jit(lambda b: X @ b)

#: What is made of it.
BENT = {
    "softplus": lambda eta, b: jnp.logaddexp(0.0, eta).sum(),
    "squares": lambda eta, b: jnp.sum(eta**2),
    "and ridge": lambda eta, b: jnp.sum(jnp.exp(0.1 * eta)) + 0.5 * b @ b,
    "and itself": lambda eta, b: jnp.sum(eta * eta) + jnp.sum(b) ** 4 + b[1],
    "nothing": lambda eta, b: eta.sum(),
    "largest": lambda eta, b: jax.nn.logsumexp(eta),
    "branches": lambda eta, b: jnp.where(eta > 0.3, eta, 0.5 * eta**2).sum(),
    "relu": lambda eta, b: jax.nn.relu(eta).sum() + jax.nn.softplus(eta).sum(),
    "checkpointed": lambda eta, b: jax.checkpoint(lambda e: jnp.cosh(e).sum())(eta),
    "conditional": lambda eta, b: jax.lax.cond(
        eta.sum() > 0, lambda e: jnp.sum(e**2), lambda e: -jnp.sum(e), eta
    ),
    "loop": lambda eta, b: jax.lax.fori_loop(0, 3, lambda i, s: s + jnp.sum(eta**2), 0.0),
    "quadratic form": lambda eta, b: b @ (SQUARE @ b) + eta.sum(),
}


def value_of(trace, data, beta):
    return trace.outer(data, trace.linear(data, beta), beta)


def check_split(fun, place=0.3, tolerance=1e-12):
    """outer(linear(beta), beta) is the function, and column(j) is linear(e_j)."""
    trace = Trace(jax, fun, DIM)
    beta = place + np.linspace(-1.0, 1.0, DIM)

    @jax.jit
    def everything(data, beta):
        whole = fun(beta), value_of(trace, data, beta)
        if trace.width == 0:
            return whole, None
        eta = trace.linear(data, beta)
        columns = jax.vmap(trace.column, in_axes=(None, 0))(data, np.arange(DIM + 1))
        units = jax.vmap(trace.linear, in_axes=(None, 0))(data, np.eye(DIM))
        return whole, (eta, columns, units)

    (expected, found), parts = everything(trace.data, beta)
    allowed = {"rtol": tolerance, "atol": tolerance}
    np.testing.assert_allclose(found, expected, **allowed)
    if parts is not None:
        eta, columns, units = parts
        np.testing.assert_array_equal(columns[DIM], 0.0)  # past the end
        np.testing.assert_allclose(columns[:DIM], units, **allowed)
        np.testing.assert_allclose(beta @ columns[:DIM], eta, **allowed)
    return trace


@pytest.mark.parametrize("linear", [*LINEAR])
def test_every_linear_part(linear):
    with in_double(jax):
        tolerance = 1e-5 if linear == "single precision" else 1e-12
        check_split(lambda b: BENT["and ridge"](LINEAR[linear](b), b), tolerance=tolerance)


@pytest.mark.parametrize("bent", [*BENT])
def test_whatever_is_made_of_it(bent):
    with in_double(jax):
        check_split(lambda b: BENT[bent](LINEAR["intercept"](b), b), place=-0.6)


@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_sums_of_several_parts(data):
    linear = st.sampled_from([*LINEAR])
    parts = data.draw(st.lists(st.tuples(linear, st.sampled_from([*BENT])), min_size=2, max_size=3))
    nested = data.draw(st.booleans())

    def fun(b):
        total = sum(BENT[bent](jnp.atleast_1d(LINEAR[name](b)), b) for name, bent in parts)
        return total + jnp.sum((X @ (SQUARE @ b)) ** 2)

    with in_double(jax):
        check_split(jax.jit(fun) if nested else fun, tolerance=1e-5)


@pytest.mark.parametrize("linear", ["matrix", "sum of columns", "sparse", "intercept", "jitted"])
def test_a_linear_part_is_found(linear):
    with in_double(jax):
        assert Trace(jax, lambda b: jnp.sum(LINEAR[linear](b) ** 2), DIM).width > 0


@pytest.mark.parametrize(
    "fun",
    [
        lambda b: jnp.sum(b**2),
        lambda b: jnp.sum(X @ (b * b)),
        lambda b: jnp.sum(jnp.outer(b, b) @ X.T),
        lambda b: jnp.sum(1.0 / (2.0 + b)),
        lambda b: jnp.sum(jnp.sort(b)),
        lambda b: jnp.sum(jnp.abs(b)),
        lambda b: jnp.sum(b.at[np.array([0, 99])].get(mode="fill", fill_value=3.0) ** 2),
    ],
)
def test_nothing_bent_is_taken_for_linear(fun):
    with in_double(jax):
        trace = check_split(fun)
        if trace.width:  # only what is truly linear at the end or the beginning
            both = [trace.linear(trace.data, np.full(DIM, v)) for v in (1.0, 2.0)]
            np.testing.assert_allclose(both[1], 2 * both[0])


def test_a_print_is_no_obstacle(capfd):
    def chatty(b):
        jax.debug.print("here {}", b[0])
        eta = X @ b
        jax.debug.print("and here {}", eta[0])
        return jnp.sum(eta**2)

    with in_double(jax):
        trace = Trace(jax, chatty, DIM)
        assert trace.width > 0
        beta = np.ones(DIM)
        np.testing.assert_allclose(value_of(trace, trace.data, beta), np.sum((X @ beta) ** 2))


def test_a_constant_function():
    with in_double(jax):
        trace = Trace(jax, lambda b: jnp.asarray(3.0), DIM)
        assert trace.width == 0
        assert float(value_of(trace, trace.data, np.ones(DIM))) == 3.0
