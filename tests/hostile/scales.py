"""Extremes: columns and responses of any size, far from zero, nearly alike, constant, repeated."""

from itertools import pairwise

import numpy as np
from scipy import sparse

from forback import FobaClassifier, FobaRegressor, FobaSelector, select
from forback.core.status import StopReason
from forback.objectives import GLM, Huber, LeastSquares, Multinomial, from_function
from forback.selection.rules import METHODS
from hostile.harness import Skip, assert_close, assert_same, attack, moves, pick
from support.problems import LOSSES, make_response

METHODS = tuple(METHODS)


def table(rng, n=None, p=None):
    n, p = n or int(rng.integers(25, 80)), p or int(rng.integers(3, 9))
    X = rng.normal(size=(n, p))
    return X, X[:, 0] - 0.8 * X[:, 1] + 0.5 * X[:, 2]


def fit(model, X, y):
    """A fitted model; where it says that fewer features will do, there is nothing to compare."""
    try:
        return model.fit(X, y)
    except UserWarning as warning:
        raise Skip("fewer features will do") from warning


def clear(path):
    """Skip runs in which some choice hung by a hair: units then may tip it."""
    if any("not converged" in step.note or "no minimiser" in step.note for step in path.steps):
        raise Skip("a fit of the run did not end")
    return path


@attack
def columns_of_any_size(rng):
    """Decreases have no units: whatever those of columns are, the same features come."""
    X, eta = table(rng)
    loss = pick(rng, LOSSES)
    y = make_response(loss, eta, rng)
    powers = rng.integers(-980, 980, size=X.shape[1])
    options = {"fit_intercept": bool(rng.integers(2))}
    method, k = pick(rng, ["foba-obj", "forward-obj"]), min(3, X.shape[1])
    plain = clear(select(GLM(loss, X, y, **options), k, method))
    stored = pick(rng, [np.array, sparse.csc_array, np.asfortranarray])
    path = select(GLM(loss, stored(np.ldexp(X, powers)), y, **options), k, method)
    assert_same(moves(path), moves(plain), "steps in other units")
    inside = path.end.support[path.end.support < X.shape[1]]
    coef = np.ldexp(path.coef(path.end.size)[inside], powers[inside])
    assert_close(coef, plain.coef(plain.end.size)[inside], "coefficients", rtol=1e-5, atol=1e-7)


@attack
def everything_of_any_size(rng):
    """X as a whole and y in other units: any method takes the same features."""
    X, eta = table(rng)
    y = eta + pick(rng, [0.1, 1.0]) * rng.normal(size=len(eta))
    size, scale = 2.0 ** int(rng.integers(-480, 480)), 2.0 ** int(rng.integers(-490, 490))
    method, k = pick(rng, METHODS), min(3, X.shape[1])
    options = {"fit_intercept": bool(rng.integers(2))}
    threshold = 2.0 ** int(rng.integers(-3, 3))
    for build in (
        lambda X, y, unit: LeastSquares(X, y, **options),
        lambda X, y, unit: GLM(Huber(threshold * unit), X, y, **options),
    ):
        plain = clear(select(build(X, y, 1.0), k, method))
        path = select(build(X * size, y * scale, scale), k, method)
        assert_same(moves(path), moves(plain), "steps in other units")
        # The ratio may be no number although both are.
        own = np.ldexp(path.end.coef, -int(np.log2(scale)))
        factor = np.append(np.full(X.shape[1], int(np.log2(size))), 0)[path.end.support]
        assert_close(np.ldexp(own, factor), plain.end.coef, "coefficients", rtol=1e-5, atol=1e-8)


@attack
def functions_of_any_size(rng):
    X, eta = table(rng)
    y, power = eta + 0.3 * rng.normal(size=len(eta)), int(rng.integers(-900, 900))

    def at(beta, power=0):
        r = X @ beta - y
        return np.ldexp(0.5 * np.mean(r**2), power), np.ldexp(X.T @ r / len(y), power)

    extras = pick(rng, [{}, {"value_many": lambda B: [at(b, power)[0] for b in B]},
                        {"hessian": lambda b: np.ldexp(X.T @ X / len(y), power)}])  # fmt: skip
    method, k = pick(rng, METHODS), min(3, X.shape[1])
    plain = select(from_function(at, X.shape[1]), k, method)
    path = select(from_function(lambda b: at(b, power), X.shape[1], **extras), k, method)
    assert_same(moves(path), moves(plain), "steps of a function in other units")


@attack
def far_from_zero(rng):
    """Shifts cost nothing where there is an intercept."""
    X, eta = table(rng)
    ratio = 10.0 ** rng.uniform(0, 9)
    shift = ratio * rng.normal(size=X.shape[1])
    far = X + shift
    near = far - shift
    near -= near.mean(axis=0)
    loss = pick(rng, LOSSES)
    y = make_response(loss, eta, rng)
    k = min(3, X.shape[1])
    if rng.integers(2):
        options = {"fit_intercept": True, "ridge": 1e-2}
        plain = clear(select(GLM(loss, near, y, **options), k, "forward-gdt"))
        path = select(GLM(loss, far, y, **options), k, "forward-gdt")
    else:
        options = {"k": k, "loss": loss, "alpha": 1e-2, "method": pick(rng, METHODS)}
        plain = clear(fit(FobaSelector(**options), near, y).path_)
        stored = pick(rng, [np.array, sparse.csr_array, np.asfortranarray])
        path = fit(FobaSelector(**options), stored(far), y).path_
    assert_same(moves(path), moves(plain), f"steps {ratio:.0e} spreads from zero")


@attack
def dominant_features(rng):
    X, _ = table(rng, n=100)
    size = 10.0 ** rng.uniform(2, 10)
    y = size * X[:, 0] + 2.0 * X[:, 1] - X[:, 2] + 0.1 * rng.normal(size=100)
    loss = pick(rng, ["least squares", "squared", "huber"])
    options = {"fit_intercept": bool(rng.integers(2))}
    objective = (
        LeastSquares(X, y, **options) if loss == "least squares" else GLM(loss, X, y, **options)
    )
    path = select(objective, 3, pick(rng, METHODS))
    assert_same(path.steps[0].feature, 0, "the feature that dominates")
    assert_same(set(path.end.support[:3]), {0, 1, 2}, f"features behind one of {size:.0e}")


@attack
def exact_fits(rng):
    X, eta = table(rng)
    X = np.column_stack([X, X[:, :2]]) if rng.integers(2) else X  # with copies
    y = eta * 10.0 ** rng.uniform(-20, 20)
    path = select(
        LeastSquares(X, y, fit_intercept=bool(rng.integers(2))), method=pick(rng, METHODS)
    )
    chosen = {int(j) for j in path.end.support}
    assert chosen >= {0, 1, 2}, f"an exact fit took {chosen}"
    for before, step in pairwise([path.start, *path.steps]):
        exact = before.value <= 1e-20 * path.start.value
        assert not exact or step.action == "remove", f"an exact fit was added to: {path.steps}"
    assert path.end.value <= 1e-20 * path.start.value, f"the run ended early: {path.steps}"
    assert path.stop in (StopReason.EXHAUSTED, StopReason.ALL_IN), path


@attack
def huber_on_any_y(rng):
    X, eta = table(rng, n=60)
    y = (eta + 0.1 * rng.standard_t(3, size=60)) * 10.0 ** rng.uniform(0, 250)
    model = FobaRegressor(k=3, loss="huber", method=pick(rng, METHODS)).fit(X, y)
    assert set(model.selected_) == {0, 1, 2}, f"took {model.selected_}"


@attack
def awkward_tables(rng):
    """Constants, copies, near copies, huge outliers: no crash, no warning, an optimal fit."""
    X, eta = table(rng)
    for _ in range(int(rng.integers(1, 4))):
        j, kind = int(rng.integers(X.shape[1])), int(rng.integers(6))
        if kind == 0:
            X[:, j] = rng.normal()
        elif kind == 1:
            X[:, j] = X[:, (j + 1) % X.shape[1]]
        elif kind == 2:
            X[:, j] = X[:, (j + 1) % X.shape[1]] * (1.0 + 1e-9 * rng.normal(size=len(X)))
        elif kind == 3:
            X[int(rng.integers(len(X))), j] = 10.0 ** rng.uniform(2, 12)
        elif kind == 4:
            X[:, j] = 0.0
        else:
            X[:, j] = X[:, j] > 1.5
    loss = pick(rng, LOSSES)
    y = make_response(loss, eta, rng)
    ridge = pick(rng, [1e-3, 1e-2, 1.0])
    objective = GLM(loss, pick(rng, [np.array, sparse.csc_array])(X), y, ridge=ridge)
    path = select(objective, method=pick(rng, METHODS))
    for point in path.points:
        value = objective.value_and_gradient(point.dense(objective.dim))[0]
        slack = 20.0 * objective.resolution(point) + 1e-9 * abs(value)
        assert abs(value - point.value) <= slack, f"Q is {value}, not {point.value}"
        again = objective.minimise(point.support).value
        assert point.value <= again + slack + 1e-7 * abs(value), f"{again} < {point.value}"


@attack
def sparse_twins(rng):
    n, p = int(rng.integers(30, 400)), int(rng.integers(4, 15))
    X = rng.normal(1.0, 1.0, size=(n, p)) * (rng.random((n, p)) < pick(rng, [0.05, 0.3, 0.9]))
    eta = (X - X.mean(axis=0)) @ rng.normal(size=p)
    options = {"k": 3, "method": pick(rng, METHODS), "alpha": 1e-2,
               "fit_intercept": bool(rng.integers(2))}  # fmt: skip
    if rng.integers(3) == 0:
        y = np.digitize(eta, np.quantile(eta, [0.3, 0.7]))
        if len(np.unique(y)) < 3:
            raise Skip("a class does not occur")
        models = [fit(FobaClassifier(**options), s(X), y) for s in (np.array, sparse.csr_array)]
    else:
        loss = pick(rng, LOSSES)
        y = make_response(loss, eta, rng)
        models = [fit(FobaSelector(loss=loss, **options), s(X), y)
                  for s in (np.array, sparse.csr_array)]  # fmt: skip
    clear(models[0].path_)
    assert_same(moves(models[1].path_), moves(models[0].path_), "steps of a sparse twin")
    assert_close(models[1].path_.end.value, models[0].path_.end.value, "Q", rtol=1e-7, atol=1e-10)


@attack
def classes_of_any_size(rng):
    X, eta = table(rng, n=80)
    y = np.digitize(eta + 0.5 * rng.normal(size=80), [-0.7, 0.7])
    if len(np.unique(y)) < 3:
        raise Skip("a class does not occur")
    power, method = int(rng.integers(-980, 980)), pick(rng, METHODS)
    plain = clear(select(Multinomial(X, y, fit_intercept=True), 2, method))
    path = select(Multinomial(np.ldexp(X, power), y, fit_intercept=True), 2, method)
    assert_same(moves(path), moves(plain), "steps of classes in other units")
