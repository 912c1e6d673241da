"""What people pass: every container, dtype and way to say a thing, and nonsense."""

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse

from forback import FobaClassifier, FobaCRF, FobaRegressor, FobaSelector, select
from forback.objectives import ChainCRF, LeastSquares, Logistic, from_function
from hostile.harness import assert_close, assert_same, attack, moves, pick, refused

GARBAGE = (
    None, True, 3, -1, 2.5, float("nan"), float("inf"), "x", b"x", "", [], {}, (), object(), [None],
    ["a", 1], [[1, 2], [3]], np.zeros((0, 3)), np.zeros((3, 0)), np.zeros((2, 2, 2)), 1j, [1j, 2],
    np.array("2020", "M8[D]"), np.ma.masked, np.ma.masked_array([1.0, 2.0], [True, False]), set(),
    {1, 2}, range(3), iter([1, 2]), lambda: 0, np.float32(1.5), 10**400, -(10**400), float,
    pd.NA, pd.Series([1, None]), sparse.eye(3), np.array([1, "a"], dtype=object), [float("nan")],
)  # fmt: skip


def containers(X):
    """The same numbers in other hands."""
    names = [f"c{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    readonly = X.copy()
    readonly.flags.writeable = False
    wide = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)
    return [
        X.copy(), np.asfortranarray(X), X[::-1][::-1], readonly, wide[::2, ::2], X.tolist(),
        [tuple(row) for row in X], frame, frame.astype(object), pl.DataFrame(dict(frame.items())),
        X.astype(">f8"), X.astype(np.longdouble), np.ma.array(X), frame.convert_dtypes(),
        frame.astype(pd.SparseDtype(float, 0.0)), X.view(np.ndarray),
        *(sparse.coo_array(X).asformat(kind)
          for kind in ("csc", "csr", "coo", "bsr", "lil", "dok", "dia")),
        sparse.csr_matrix(X), sparse.csc_matrix(X),
    ]  # fmt: skip


@attack
def containers_and_dtypes(rng):
    n, p = 40, 4
    X = np.round(rng.normal(size=(n, p)) * 4) / 4 * (rng.random((n, p)) < 0.8)
    y = X[:, 1] - X[:, 2] + 0.1 * rng.normal(size=n)
    given = pick(rng, containers(X))
    target = pick(
        rng, [y, y.tolist(), pd.Series(y, index=rng.permutation(n)), pl.Series(y), y[:, None]]
    )
    before = snapshot(given), snapshot(target)
    plain = select(LeastSquares(X, y), 2)
    path = select(LeastSquares(given, target), 2)
    assert_same(moves(path), moves(plain), f"steps of {type(given).__name__}")
    if np.ndim(target) == 1 and not isinstance(target, pl.Series):
        model, same = FobaRegressor(k=2).fit(given, target), FobaRegressor(k=2).fit(X, y)
        assert_same(model.selected_.tolist(), same.selected_.tolist(), "features of an estimator")
        assert_close(model.predict(given), same.predict(X), "predictions", rtol=1e-7, atol=1e-9)
    assert snapshot(given) == before[0], "X was changed"
    assert snapshot(target) == before[1], "y was changed"


def snapshot(given):
    if sparse.issparse(given):
        return given.format, given.toarray().tobytes()
    if isinstance(given, list):
        return repr(given)
    return np.asarray(given, dtype=float).tobytes()


@attack
def small_types(rng):
    """Integers and booleans of any width mean the numbers they show."""
    kind = pick(rng, [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, bool, np.float16])
    high = 2 if kind is bool else 100
    X = rng.integers(0, high, size=(60, 4)).astype(kind)
    wide = X.astype(float)
    y = wide[:, 1] + rng.normal(size=60)
    paths = [select(LeastSquares(each, y, fit_intercept=True), 3) for each in (X, wide)]
    assert_same(moves(paths[0]), moves(paths[1]), f"steps of {kind.__name__}")
    weights = rng.integers(1, 5, size=60)
    whole = np.int64 if kind in (bool, np.float16) else kind
    kinds = (weights.astype(whole), weights.astype(float))
    counts = {LeastSquares(wide, y, sample_weight=each).n_samples for each in kinds}
    assert_same(counts, {float(weights.sum())}, "the number of rows")
    lengths = np.array([20, 20, 20], whole)
    labels = (wide[:, 0] > wide[:, 0].mean()).astype(int)
    crf, same = (FobaCRF(k=1).fit(wide, labels, each) for each in (lengths, [20, 20, 20]))
    assert (crf.predict(wide, lengths) == same.predict(wide, [20, 20, 20])).all()
    with refused(ValueError):
        crf.predict(wide[: int(rng.integers(1, 60))], lengths)
        raise AssertionError("lengths that do not add up were taken")


@attack
def broken_sparse(rng):
    """Indices that lead outside are refused, whichever they are; the process lives on."""
    X = sparse.coo_array(rng.normal(size=(30, 6)) * (rng.random((30, 6)) < 0.5))
    X = X.asformat(pick(rng, ["csc", "csr", "bsr", "coo"]))
    y = np.arange(30) % 2
    arrays = [X.row, X.col] if X.format == "coo" else [X.indices, X.indptr]
    array = pick(rng, arrays)
    place = int(rng.integers(len(array)))
    array[place] = pick(rng, [-1, -(10**6), 31, 10**6, 2**31 - 1, int(array[place])])
    sound = is_sound(X)
    for call in (
        lambda: select(Logistic(X, y, ridge=0.1), 2, "foba-obj"),
        lambda: FobaClassifier(k=1).fit(X, y),
        lambda: ChainCRF(X, y),
    ):
        with refused(ValueError):
            call()
            assert sound, "a broken matrix was taken"
    if sound:
        select(Logistic(X, y, ridge=0.1), 2, "foba-obj")


def is_sound(X):
    """Whether all indices stay inside: SciPy's own check would convert, and crash."""
    if X.format == "coo":
        return all(
            (one >= 0).all() and (one < most).all() for one, most in ((X.row, 30), (X.col, 6))
        )
    across = 30 if X.format == "csc" else 6
    stored = X.indices[: max(int(X.indptr[-1]), 0)]
    return bool(
        X.indptr[0] == 0 and (np.diff(X.indptr) >= 0).all() and X.indptr[-1] <= len(X.indices)
        and (stored >= 0).all() and (stored < across).all()
    )  # fmt: skip


@attack
def ways_to_say_it(rng):
    """Groups, prices and what is always in, said in many ways, mean the same."""
    n, p = 40, 6
    labels = pick(rng, [[f"c{j}" for j in range(p)], [10 * j for j in range(p, 0, -1)], None])
    X = rng.normal(size=(n, p))
    frame = X if labels is None else pd.DataFrame(X, columns=labels)
    names = list(range(p)) if labels is None else labels
    y = X[:, 0] - X[:, 3] + 0.3 * rng.normal(size=n)
    group = [int(g) for g in rng.integers(0, 3, size=p)]
    price = {g: float(rng.integers(1, 4)) for g in set(group)}
    order = rng.permutation(p)
    groups = pick(rng, [
        group, tuple(group), np.array(group), {names[j]: group[j] for j in order},
        {g: [names[j] for j in range(p) if group[j] == g] for g in price},
        {g: tuple(names[j] for j in range(p) if group[j] == g) for g in price},
        {g: {names[j] for j in range(p) if group[j] == g} for g in price},
        pd.Series([group[j] for j in order], index=[names[j] for j in order]),
    ])  # fmt: skip
    costs = pick(rng, [
        price, pd.Series(price), [price[g] for g in group],
        {names[j]: price[group[j]] for j in order},
    ])  # fmt: skip
    if not isinstance(names[0], str) and isinstance(costs, dict):
        costs = price  # a column's number must not look like that of a group
    held = int(rng.integers(p))
    always = pick(rng, [
        [names[held]], np.arange(p) == held, {names[held]: True},
        pd.Series(np.arange(p) == held, index=names), pd.Series([names[held]]),
    ])  # fmt: skip
    by = pick(rng, ["group", "feature"])
    numbered = {label: number for number, label in enumerate(dict.fromkeys(group))}
    plain = select(
        LeastSquares(X, y), by=by, groups=[numbered[g] for g in group], always=[held],
        costs=[price[g] for g in group],
    )  # fmt: skip
    path = select(LeastSquares(frame, y), by=by, groups=groups, always=always, costs=costs)
    assert_same(moves(path), moves(plain), "steps")
    assert_close([s.value for s in path.steps], [s.value for s in plain.steps], "values", rtol=1e-9)
    assert_same([s.cost for s in path.steps], [s.cost for s in plain.steps], "costs")


@attack
def nonsense(rng):
    """Any argument replaced by anything: a plain error that names it, or an answer."""
    X = rng.normal(size=(20, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=20)
    bad = pick(rng, GARBAGE)
    data, run = (X, y), LeastSquares(X, y)
    calls = (
        lambda: LeastSquares(bad, y), lambda: LeastSquares(X, bad),
        lambda: LeastSquares(*data, ridge=bad), lambda: LeastSquares(*data, offset=bad),
        lambda: LeastSquares(*data, sample_weight=bad), lambda: LeastSquares(*data, tol=bad),
        lambda: LeastSquares(*data, max_iter=bad), lambda: LeastSquares(*data, fit_intercept=bad),
        lambda: select(run, bad), lambda: select(run, method=bad), lambda: select(run, by=bad),
        lambda: select(run, groups=bad), lambda: select(run, always=bad),
        lambda: select(run, costs=bad), lambda: select(run, budget=bad),
        lambda: select(run, ratio=bad), lambda: select(run, epsilon=bad), lambda: select(bad),
        lambda: select(run, max_steps=bad), lambda: FobaRegressor(k=1).fit(bad, y),
        lambda: FobaRegressor(k=1).fit(X, bad), lambda: FobaRegressor(k=1).fit(*data, bad),
        lambda: FobaRegressor(k=1).fit(*data).predict(bad), lambda: FobaRegressor(k=bad).fit(*data),
        lambda: FobaRegressor(alpha=bad).fit(*data), lambda: FobaRegressor(loss=bad).fit(*data),
        lambda: FobaSelector(criterion=bad).fit(*data), lambda: FobaClassifier(k=1).fit(X, bad),
        lambda: FobaCRF(k=1).fit(bad, y > 0), lambda: FobaCRF(k=1).fit(X, bad),
        lambda: FobaCRF(k=1).fit(X, y > 0, bad), lambda: from_function(bad, 3),
        lambda: from_function(lambda b: (b @ b, b), bad), lambda: from_function(lambda b: bad, 3),
        lambda: from_function(lambda b: (b @ b, bad), 3),
    )  # fmt: skip
    with refused(ValueError, TypeError):
        pick(rng, calls)()


class Broken(Exception):
    """Somebody's own."""


@attack
def functions_that_fail(rng):
    """An exception or an interrupt at a random moment leaves the path up to there."""
    X = rng.normal(size=(40, 5))
    y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=40)
    left = [int(rng.integers(2, 60))]
    error = pick(rng, [Broken("broken"), KeyboardInterrupt()])

    def at(beta):
        left[0] -= 1
        if left[0] == 0:
            raise error
        r = X @ beta - y
        return 0.5 * np.mean(r**2), X.T @ r / 40

    whole = select(LeastSquares(X, y))
    objective = from_function(at, 5)
    try:
        path = select(objective)
    except (Broken, KeyboardInterrupt) as raised:
        path = getattr(raised, "path", None)
        if raised is not error or path is None:  # or it was raised before the first step
            return
    assert_same(moves(path), moves(whole)[: len(path.steps)], "steps up to an exception")
