"""Functions in jax.numpy as objectives: the contract, the same paths, and nothing left behind."""

import inspect

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy

from jax.experimental import sparse as jax_sparse  # noqa: E402

from forback import select  # noqa: E402
from forback.core.objective import ObjectiveError  # noqa: E402
from forback.core.status import Status  # noqa: E402
from forback.objectives import GLM, Logistic, PointwiseLoss, from_jax  # noqa: E402
from forback.testing import check_objective  # noqa: E402
from reference.algorithm1 import foba  # noqa: E402
from support.problems import make_problem  # noqa: E402
from support.written import assert_optimal, every_logistic, steps  # noqa: E402

METHODS = ("foba-gdt", "foba-obj", "forward-gdt", "forward-obj")
P = 6
PROBLEM = make_problem("logistic", "correlated", 0, n=40, p=P)
X, y = PROBLEM.X, PROBLEM.y
TREE = {"rows": [X[:20], X[20:]], "response": (y[:20], y[20:])}
THIN = jax_sparse.BCOO.fromdense(X * (np.abs(X) > 1.0))
FORMS = np.stack([np.diag(np.roll(np.arange(1.0, P + 1), shift)) for shift in range(3)])
EYE = np.eye(P)
PART = jax.jit(lambda b, rows: rows @ b)


def loss(eta, y):
    return jnp.mean(jnp.logaddexp(0.0, eta) - y * eta)


def over_tree(b):
    parts = zip(TREE["rows"], TREE["response"], strict=True)
    return sum(loss(rows @ b, y) for rows, y in parts) / 2 + 0.005 * b @ b


def scanned(b):
    def one(total, row):
        return total + jnp.logaddexp(0.0, row[:-1] @ b) - row[-1] * (row[:-1] @ b), None

    return jax.lax.scan(one, 0.0, jnp.asarray(np.c_[X, y]))[0] / 40 + 0.005 * b @ b


def in_pieces(b):
    thin = THIN @ b[:P] + (X * b).sum(1)
    single = jnp.asarray(X, jnp.float32) @ b
    twice = PART(b, X) - PART(b, X**2)
    return loss(thin, y) + loss(single, y) + loss(twice, y) + 0.005 * jnp.sum(PART(b, EYE) ** 2)


FUNCTIONS = {
    "ridge": lambda b: loss(X @ b, y) + 0.005 * b @ b,
    "poisson": lambda b: jnp.mean(jnp.exp(0.3 * (X @ b)) - y * 0.3 * (X @ b)) + 0.005 * b @ b,
    "no linear part": lambda b: jax.nn.logsumexp(
        0.5 * jnp.einsum("kij,i,j->k", FORMS, b, b) - b[:3]
    ),
    "scan": scanned,
    "tree": over_tree,
    "pieces": in_pieces,
    "straight": lambda b: jnp.mean(robust(X @ b - 9.0)),
    "flat": lambda b: jnp.sum(b**4) - b @ np.arange(1.0, P + 1),
}


def robust(r):
    return jnp.where(jnp.abs(r) < 1.0, r**2 / 2, jnp.abs(r) - 0.5)


@pytest.mark.parametrize("name", [*FUNCTIONS][1:])
def test_contract(name):
    objective = from_jax(FUNCTIONS[name], P)
    check_objective(objective, supports=2, optimality=1e-7)
    assert_optimal(objective, select(objective, method="foba-obj", k=4), 1e-8)


def test_what_is_always_in_comes_last():
    def with_intercept(b):
        return loss(X @ b[:P] + b[P], y) + 0.005 * b[:P] @ b[:P]

    objective = from_jax(with_intercept, P + 1, n_candidates=P)
    check_objective(objective, supports=2, optimality=1e-8)
    native = Logistic(X, y, ridge=1e-2, fit_intercept=True)
    own, theirs = select(objective), select(native)
    assert steps(own) == steps(theirs)
    np.testing.assert_allclose(own.coef(P), theirs.coef(P), rtol=1e-6, atol=1e-8)


@pytest.fixture(scope="module")
def logistics():
    """The same two problems in every way there is."""
    made = {}
    for fit_intercept in (False, True):
        problem = make_problem("logistic", "correlated", 17, n=60, p=10)
        made[fit_intercept] = every_logistic(problem.X, problem.y, 1e-2, fit_intercept), problem
    return made


RUNS = [
    {},
    {"groups": [*"abacbcdeed"]},
    {"always": [3], "ratio": 0.9},
    {"backward": "refit"},
    {"groups": [*"abacbcdeed"], "always": [0, 2], "backward": "refit"},
    {"costs": [1, 2, 3, 1, 2, 3, 1, 2, 3, 1], "budget": 6},
]


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("run", RUNS, ids=lambda run: "-".join(run) or "plain")
@pytest.mark.parametrize("method", METHODS)
def test_every_way_to_write_it_takes_the_same_path(logistics, method, run, fit_intercept):
    objectives, _ = logistics[fit_intercept]
    expected = select(objectives["native"], method=method, **run)
    for name, objective in objectives.items():
        path = select(objective, method=method, **run)
        assert steps(path) == steps(expected), name
        values = [[step.value for step in one.steps] for one in (path, expected)]
        np.testing.assert_allclose(*values, rtol=0.0, atol=1e-9, err_msg=name)
        assert_optimal(objective, path, 1e-6)


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_every_step_is_the_references(logistics, method, refit):
    objectives, problem = logistics[False]
    expected = [
        (action, block, len(chosen))
        for action, block, chosen, _ in foba(
            problem.reference(), [[j] for j in range(10)], [], refit=refit,
            gradient_rule=method.endswith("gdt"), backward=method.startswith("foba"),
        )
    ]  # fmt: skip
    for name in ("gradient", "values", "jax", "pointwise in jax"):
        path = select(objectives[name], method=method, backward="refit" if refit else "coordinate")
        assert steps(path) == expected, name


def test_compiled_once_however_large_the_support():
    objective = from_jax(FUNCTIONS["ridge"], P)
    for method in METHODS:
        select(objective, k=1, method=method)
    compiled = {
        name: part for name, part in vars(objective.oracle).items() if hasattr(part, "_cache_size")
    }
    before = {name: part._cache_size() for name, part in compiled.items()}
    for method in METHODS:
        select(objective, method=method)
        select(objective, method=method, groups=[*"aabbcc"])
    assert len(compiled) >= 5
    for name, part in compiled.items():
        assert part._cache_size() <= max(before[name], 1), name


def test_settings_of_jax_stay_as_they_are():
    def state():
        return jax.config.jax_enable_x64, jax.config.jax_numpy_dtype_promotion, jnp.ones(1).dtype

    before = state()
    path = select(from_jax(FUNCTIONS["ridge"], P), method="foba-obj")
    assert state() == before
    assert path.end.coef.dtype == np.float64
    assert path.end.value == pytest.approx(select(Logistic(X, y, ridge=1e-2)).end.value, abs=1e-12)
    with pytest.raises(ObjectiveError):
        from_jax(lambda b: jnp.log(b[0]) * jnp.nan, 2)
    assert state() == before


@pytest.mark.parametrize("used_before", [False, True])
def test_a_function_may_be_used_elsewhere_in_single_precision(used_before):
    design, response = X.copy(), y.copy()

    def function(b):
        return loss(design @ b, response) + 0.005 * b @ b

    def elsewhere():
        compiled = jax.jit(function)
        answers = compiled(jnp.ones(P)), function(jnp.ones(P)), jax.grad(compiled)(jnp.ones(P))
        assert {str(part.dtype) for part in answers} == {"float32"}
        return compiled

    kept = elsewhere() if used_before else None
    path = select(from_jax(function, P), k=3, method="foba-obj")
    native = select(Logistic(X, y, ridge=1e-2), k=3, method="foba-obj")
    assert path.end.value == pytest.approx(native.end.value, abs=1e-13)  # no rounded data
    elsewhere()
    assert used_before == (kept is not None)


def test_same_bits_again_and_in_between():
    objective = from_jax(FUNCTIONS["ridge"], P)
    first = select(objective, method="foba-obj")
    inner = []
    again = select(
        objective, method="foba-obj", callback=lambda s: inner.append(select(objective)) and False
    )
    fresh = select(from_jax(FUNCTIONS["ridge"], P), method="foba-obj")
    for path in (again, fresh):
        for ours, theirs in zip(path.points, first.points, strict=True):
            np.testing.assert_array_equal(ours.coef, theirs.coef)


@pytest.mark.parametrize(
    ("fun", "message"),
    [
        (lambda b: np.sum(np.exp(X @ np.asarray(b))), "jax.numpy instead of numpy"),
        (lambda b: b[0] if b[0] > 0 else -b[0], "without branching on values"),
        (lambda b: X @ b, r"one number, got an array of shape \(40,\)"),
        (lambda b: (b[0], b[1]), "one number, got 2 arrays"),
        (lambda b: jnp.sum(b > 0), "a real number, got int"),
        (lambda b: jnp.sum(b * 1j), "a real number, got complex"),
        (lambda b: jnp.log(b[0]), "-inf"),
        (lambda b: jnp.sqrt(b[0] - 1.0), "NaN"),
        (lambda b: 1.0 / b[0] ** 2, "give start="),
    ],
)
def test_functions_that_are_none(fun, message):
    with pytest.raises(ObjectiveError, match=message):
        from_jax(fun, P)


@pytest.mark.parametrize("method", METHODS)
def test_a_function_that_is_not_convex_on_the_way(method):
    def bumpy(b):
        return (b[0] - 9) ** 2 + (b[1] - 4) ** 2 + jnp.log1p((b[2] - 5) ** 2)

    with pytest.raises(ObjectiveError, match=r"^at step \d .*not convex") as caught:
        select(from_jax(bumpy, 3), method=method)
    assert {step.feature for step in caught.value.path.steps} <= {0, 1}


@pytest.mark.parametrize("method", METHODS)
def test_classes_that_are_separated_have_no_minimiser(method):
    own = np.random.default_rng(0).normal(size=(200, 8))
    classes = (own[:, 2] > 0.7 * own[:, 5]).astype(float)
    path = select(from_jax(lambda b: loss(own @ b, classes), 8), k=4, method=method)
    assert [step.feature for step in path.steps] == [2, 5]
    assert path.steps[0].point.status is Status.CONVERGED
    assert path.end.status is Status.NO_MINIMISER
    assert "separable data" in path.steps[1].note


@pytest.mark.parametrize("method", METHODS)
def test_an_error_in_a_callback_names_the_step_and_keeps_the_path(method):
    if "vmap_method" not in inspect.signature(jax.pure_callback).parameters:
        pytest.skip("callbacks of this JAX answer in single precision")

    def check(b):
        if np.count_nonzero(b) == 3:
            raise RuntimeError("three are too many")
        return np.zeros((), b.dtype)

    @jax.custom_jvp
    def checked(b):
        zero = jax.ShapeDtypeStruct((), b.dtype)
        return jax.pure_callback(check, zero, b, vmap_method="sequential")

    @checked.defjvp
    def _(place, direction):
        return checked(*place), 0.0 * jnp.sum(direction[0])

    coef = np.array([3.0, 2.0, 1.0, 0.5, 0.2, 0.0])
    objective = from_jax(lambda b: jnp.sum((b - coef) ** 2) + checked(b), P)
    with pytest.raises(Exception, match="three are too many") as caught:  # JAX has its own
        select(objective, k=4, method=method)
    assert any("`select` at step 3 (size 2 so far)" in note for note in caught.value.__notes__)
    assert [step.feature for step in caught.value.path.steps] == [0, 1]
    assert "three are too many" in caught.value.path.stop_reason


def test_a_log_determinant_that_starts_at_its_diagonal():
    size = 4
    S = np.cov(
        np.random.default_rng(0).normal(size=(60, size)) @ np.triu(np.ones((4, 4))), rowvar=False
    )
    rows, columns = np.triu_indices(size, 1)

    def likelihood(b):
        K = jnp.zeros((size, size)).at[rows, columns].set(b[:6])
        K = K + K.T + jnp.diag(b[6:])
        value = jnp.linalg.slogdet(K)[1]
        inside = jnp.all(jnp.linalg.eigvalsh(K) > 0)
        return jnp.where(inside, jnp.sum(K * S) - value, jnp.inf)

    start = np.r_[np.zeros(6), np.ones(4)]
    objective = from_jax(likelihood, 10, n_candidates=6, start=start)
    for method in METHODS:
        path = select(objective, method=method)
        assert_optimal(objective, path, 1e-8)
        assert path.end.value == pytest.approx(size + np.linalg.slogdet(S)[1], rel=1e-9)


def test_a_loss_of_ones_own_is_a_glm():
    huber = PointwiseLoss(lambda eta, y: jnp.sqrt(1.0 + (eta - y) ** 2))
    objective = GLM(huber, X, 2.0 * X[:, 1], ridge=1e-3, sample_weight=np.arange(1.0, 41.0))
    check_objective(objective, optimality=1e-8)
