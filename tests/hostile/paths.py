"""Whole runs, over every option, step by step against the literal transcription."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from scipy import sparse
from sklearn.base import clone

from forback import FobaSelector, Path, select
from forback.certificates import certificate
from forback.core.status import Status
from forback.objectives import (
    GLM,
    ChainCRF,
    GaussianCovariance,
    LeastSquares,
    Logistic,
    Multinomial,
)
from forback.selection import path_file
from forback.selection.exchange import NONE_HELPS
from forback.selection.rules import METHODS
from hostile.harness import Skip, assert_close, assert_same, attack, moves, pick
from reference.algorithm1 import foba, minimise
from reference.chain import ChainQ, Listing
from reference.functions import SoftmaxQ
from reference.gaussian import CovarianceQ
from support.problems import DESIGNS, LOSSES, make_problem, make_response

METHODS = tuple(METHODS)


def compare(path, Q, blocks, numbers, always, method, *, ratio=0.5, tolerance=1e-8, **options):
    """Every step and value of a path against those of the reference."""
    if any(point.status is Status.NO_MINIMISER for point in path.points):
        raise Skip("there is no minimiser")
    expected = list(
        foba(
            Q, blocks, always, gradient_rule=method.endswith("gdt"),
            backward=method.startswith("foba"), ratio=ratio, **options,
        )
    )  # fmt: skip
    steps, values = [(a, numbers[b]) for a, b, *_ in expected], [Q.value(b) for *_, b in expected]
    befores = [minimise(Q, always, np.zeros(Q.dim)), *(beta for *_, beta in expected)]
    unit = max(Q.unit, 1e-300)
    cases = zip(path.steps, steps, values, befores, strict=False)
    for found, own, value, before in cases:
        if (found.action, found.feature) != own:
            if abs(found.value - value) <= tolerance * max(unit, abs(value)):
                raise Skip("two candidates are worth the same, as far as fits can tell")
            if found.action == own[0] == "add" and method.endswith("gdt"):
                slopes = Q.gradient(before)
                pair = [blocks[list(numbers).index(b)] for b in (found.feature, own[1])]
                norms = [np.linalg.norm(slopes[block]) for block in pair]
                if np.isclose(*norms, rtol=tolerance, atol=0.0):
                    raise Skip("two candidates have the same score, as far as fits can tell")
            break
    assert_same(moves(path), steps, "steps")
    assert_close([s.value for s in path.steps], values, "Q", rtol=tolerance, atol=tolerance * unit)


@attack
def linear_models(rng):
    loss, design, method = pick(rng, LOSSES), pick(rng, DESIGNS), pick(rng, METHODS)
    p = int(rng.integers(2, 9))
    model = {
        "ridge": pick(rng, [0.0, 1e-3, 1e-2, 1.0]), "fit_intercept": bool(rng.integers(2)),
        "weighted": bool(rng.integers(2)),
    }  # fmt: skip
    n, seed = int(rng.integers(15, 60)), int(rng.integers(10**6))
    problem = make_problem(loss, design, seed, n=n, p=p, **model)
    groups = [int(g) for g in rng.integers(0, 4, size=p)] if rng.integers(2) else None
    always = [int(rng.integers(p))] if rng.integers(3) == 0 else []
    labels = list(range(p)) if groups is None else groups
    blocks = [
        [j for j in range(p) if labels[j] == label and j not in always]
        for label in dict.fromkeys(labels)
    ]
    numbers = [b for b, block in enumerate(blocks) if block]
    options = {
        "ratio": pick(rng, [0.0, 0.3, 0.5, 0.9]),
        "k": pick(rng, [None, None, min(2, len(numbers)), len(numbers)]),
    }
    backward = pick(rng, ["coordinate", "refit"])
    threshold = pick(rng, [0.0, 1e-3, 0.05])
    name = "epsilon" if method.endswith("gdt") else "delta"
    storage = pick(rng, ["dense", "csc"])
    if not numbers:
        raise Skip("nothing is left to choose from")
    path = select(
        problem.objective(storage=storage), method=method, groups=groups, always=always,
        backward=backward, **{name: threshold}, **options,
    )  # fmt: skip
    Q = problem.reference()
    held = [*always, *range(p, Q.dim)]
    compare(
        path, Q, [blocks[b] for b in numbers], numbers, held, method,
        refit=backward == "refit", threshold=threshold, **options,
    )  # fmt: skip


@attack
def several_classes(rng):
    n, p, k, method = int(rng.integers(30, 70)), int(rng.integers(2, 6)), 3, pick(rng, METHODS)
    X = rng.normal(size=(n, p))
    y = (X @ rng.normal(size=(p, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)
    y[:3] = 0, 1, 2
    options = {"ridge": pick(rng, [1e-3, 0.1]), "fit_intercept": bool(rng.integers(2))}
    stored = pick(rng, [np.array, sparse.csc_array, np.asfortranarray])
    path = select(Multinomial(stored(X), y, **options), method=method)
    Q = SoftmaxQ(X, y, k, **options)
    blocks = [list(range(j * k, (j + 1) * k)) for j in range(p)]
    compare(path, Q, blocks, range(p), list(range(p * k, Q.dim)), method, tolerance=1e-6)


@attack
def graphs(rng):
    p, method = int(rng.integers(3, 5)), pick(rng, METHODS)
    rows = rng.normal(size=(40, p)) @ (np.eye(p) + 0.4 * rng.normal(size=(p, p)))
    S, ridge = np.cov(rows, rowvar=False, bias=True), pick(rng, [0.0, 0.01, 0.5])
    S = S / np.sqrt(np.outer(S.diagonal(), S.diagonal()))
    if np.linalg.eigvalsh(S)[0] < 1e-3:
        raise Skip("the covariance is nearly singular, and the reference gets lost")
    path, Q = select(GaussianCovariance(S, ridge=ridge), method=method), CovarianceQ(S, ridge)
    edges = p * (p - 1) // 2
    always = list(range(edges, Q.dim))
    compare(path, Q, [[j] for j in range(edges)], range(edges), always, method, tolerance=1e-7)


@attack
def chains(rng):
    k, width, method = int(rng.integers(2, 4)), int(rng.integers(1, 4)), pick(rng, METHODS)
    lengths = [int(rng.integers(2, 6)) for _ in range(int(rng.integers(1, 4)))]
    parts = [pick(rng, [rng.normal(size=(n, width)), rng.integers(0, 2, (n, width)) * 1.0])
             for n in lengths]  # fmt: skip
    labels = [rng.integers(0, k, size=n) for n in lengths]
    if len(np.unique(np.concatenate(labels))) < k:
        raise Skip("a label does not occur")
    start_end = bool(rng.integers(2))
    objective = ChainCRF(parts, [*map(list, labels)], ridge=1e-2, start_end=start_end)
    beta = rng.normal(size=objective.dim) * pick(rng, [0.1, 1.0, 30.0])
    listing = Listing(parts, k, start_end)
    value, _ = objective.value_and_gradient(beta)
    Q = ChainQ(parts, labels, k, ridge=1e-2, start_end=start_end)
    assert_close(value, Q.value(beta), "Q of a chain", rtol=1e-9, atol=1e-12)
    point = objective.minimise(np.arange(objective.dim))
    marginals, best = objective.marginals(point), objective.labels(point)
    assert_close(marginals, listing.marginals(point.coef), "marginals", rtol=1e-8, atol=1e-10)
    scores = [
        sum(counts[every.index(tuple(own))] @ point.coef
            for counts, every, own in zip(listing.counts, listing.all, np.split(
                np.asarray(labelled), np.cumsum(lengths)[:-1]), strict=True))
        for labelled in (best, listing.viterbi(point.coef))
    ]  # fmt: skip
    assert_close(scores[0], scores[1], "the likeliest labels", rtol=1e-9)
    path = select(objective, 2, method)
    singles = [[j] for j in range(objective.n_candidates)]
    always = list(range(objective.n_candidates, objective.dim))
    compare(path, Q, singles, range(len(singles)), always, method, k=2, tolerance=1e-6)


@attack
def permutations(rng):
    """Rows and columns in another order: the same features, under other numbers."""
    n, p, method = 60, 8, pick(rng, METHODS)
    X = rng.normal(size=(n, p)) + pick(rng, [0.0, 2.0]) * rng.normal(size=(n, 1))
    y = X[:, :3] @ [1.0, -1.0, 0.5] + rng.normal(size=n)
    rows, columns = rng.permutation(n), rng.permutation(p)
    maker = pick(rng, [LeastSquares, lambda X, y, **rest: Logistic(X, y > 0, ridge=0.01, **rest)])
    options = {"fit_intercept": bool(rng.integers(2))}
    plain = select(maker(X, y, **options), 5, method)
    moved = select(maker(X[rows][:, columns], y[rows], **options), 5, method)
    assert_same([(a, int(columns[j])) for a, j in moves(moved)], moves(plain), "permuted steps")
    assert_close(moved.end.value, plain.end.value, "permuted Q", rtol=1e-9)


@attack
def the_same_bits(rng):
    """Twice the same, on any storage that holds the same numbers; one objective, two runs."""
    n, p, method = int(rng.integers(20, 200)), int(rng.integers(3, 30)), pick(rng, METHODS)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < pick(rng, [0.2, 1.0]))
    y = X[:, 0] - X[:, 1] + rng.normal(size=n)
    maker = pick(rng, [LeastSquares, lambda X, y: Logistic(X, y > 0, ridge=0.01)])
    k = min(5, p)
    objective = maker(X, y)
    paths = [select(objective, k, method), select(objective, k, method),
             select(maker(X.copy(), y.copy()), k, method)]  # fmt: skip
    for other in paths[1:]:
        for one, two in zip(paths[0].points, other.points, strict=True):
            assert one.value == two.value, "Q differs in its bits"
            assert one.coef.tobytes() == two.coef.tobytes(), "coefficients differ in their bits"
    others = [select(maker(stored(X), y), k, method) for stored in
              (np.asfortranarray, sparse.csc_array, sparse.csr_matrix)]  # fmt: skip
    for other in others:
        assert_same(moves(other), moves(paths[0]), "steps of another storage")
        assert_close(other.end.value, paths[0].end.value, "Q of another storage", rtol=1e-9)


@attack
def two_at_once(rng):
    """Two threads on one objective give the paths that two runs give one after the other."""
    n, p = int(rng.integers(30, 300)), int(rng.integers(4, 20))
    X = rng.normal(size=(n, p))
    y = X[:, 0] - X[:, 1] + rng.normal(size=n)
    objective = pick(rng, [LeastSquares(X, y), Logistic(X, y > 0, ridge=0.01, fit_intercept=True)])
    methods = [pick(rng, METHODS), pick(rng, METHODS)]
    alone = [select(objective, 4, method) for method in methods]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda method: select(objective, 4, method), methods))
    for one, other in zip(alone, together, strict=True):
        assert_same(moves(other), moves(one), "steps of two at once")
        assert one.end.coef.tobytes() == other.end.coef.tobytes(), "bits of two at once"


@attack
def estimators(rng):
    """An estimator does what `select` does on columns that were standardised by hand."""
    n, p, loss = int(rng.integers(30, 90)), int(rng.integers(3, 9)), pick(rng, LOSSES)
    X = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-2, 2, size=p) + rng.normal(size=p)
    eta = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=p)
    y = make_response(loss, 0.5 * eta, rng)
    weights = rng.integers(0, 4, size=n) if rng.integers(2) else np.ones(n, dtype=int)
    rows = np.repeat(np.arange(n), weights)
    if len(rows) < 10 or (loss in ("logistic", "squared_hinge") and len(set(y[rows])) < 2):
        raise Skip("few rows, or a single class")
    fit_intercept, standardize = bool(rng.integers(2)), bool(rng.integers(4))
    options = {
        "method": pick(rng, METHODS), "ratio": pick(rng, [0.3, 0.5, 0.9]),
        "refine": pick(rng, [None, "swap"]),
    }  # fmt: skip
    k, alpha = int(rng.integers(1, p + 1)), pick(rng, [1e-3, 0.1])
    model = FobaSelector(
        k, loss=loss, alpha=alpha, fit_intercept=fit_intercept, standardize=standardize, tol=1e-10,
        **options,
    )  # fmt: skip
    try:
        model.fit(X, y, sample_weight=weights)
    except UserWarning as warning:
        raise Skip("fewer features will do") from warning
    own = X[rows]
    scaled = own / own.std(axis=0) if standardize else own
    if standardize and fit_intercept:
        scaled = scaled - scaled.mean(axis=0)
    objective = GLM(loss, scaled, y[rows], ridge=alpha, fit_intercept=fit_intercept)
    path = select(objective, k, **options)
    assert_same(moves(model.path_), moves(path), "steps of an estimator")
    refined = [point for descent in path.descents for point in descent.points]
    lowest = min(point.value for point in [path.end, *refined] if point.size == path.end.size)
    assert_close(model.objective_value_, lowest, "Q of an estimator", rtol=1e-8)
    again = pickle.loads(pickle.dumps(model))
    assert (again.transform(X) == model.transform(X)).all()
    assert_same(moves(clone(model).fit(X, y, weights).path_), moves(path), "steps of a clone")


def a_refined_run(rng):
    """An objective, a path with descents, and the size that was refined."""
    n, p = int(rng.integers(30, 80)), int(rng.integers(6, 13))
    loss, design = pick(rng, LOSSES), pick(rng, ["correlated", "gaussian"])
    model = {"ridge": pick(rng, [1e-3, 0.1]), "fit_intercept": bool(rng.integers(2))}
    problem = make_problem(loss, design, int(rng.integers(10**6)), n=n, p=p, **model)
    options = {"k": int(rng.integers(2, 5)), "method": pick(rng, METHODS)}
    if rng.integers(3) == 0:
        options["groups"] = [j % 5 for j in rng.permutation(p).tolist()]
    if rng.integers(4) == 0:
        options["always"] = [int(rng.integers(p))]
    if rng.integers(3) == 0:
        whole = {"costs": [1.0 + j % 2 for j in range(p)], "k": pick(rng, [None, 3])}
        options |= {"by": "feature"} if "groups" in options else whole
        options["budget"] = 4.0 if "costs" in options else 2.0
    elif rng.integers(4) == 0 and "groups" not in options:
        options["start"] = rng.choice(p, 2, replace=False).tolist()
    objective = problem.objective()
    path = select(objective, refine="swap", **options)
    if not path.descents:
        raise Skip("nothing was refined")
    return objective, path, path.descents[0].origin.size


@attack
def refined_runs(rng):
    """What refinement gives is confirmed, saved and loaded, and no worse than the literal run."""
    objective, path, size = a_refined_run(rng)
    loaded = Path(**path_file.loads(path_file.dumps(path)))
    assert path_file.dumps(loaded) == path_file.dumps(path)
    for one in (path, loaded):
        result = certificate(objective, one, size)
        assert result.holds, str(result)
        assert result.point.value <= one.answer(one.settings["k"]).value
        for point in [*one.points, *(own for down in one.descents for own in down.points)]:
            assert sorted(one.entry_order(point)) == point.support.tolist()


@attack
def forged_descents(rng):
    """Something in a descent is changed; it must be refused or doubted."""
    objective, path, size = a_refined_run(rng)
    descent = pick(rng, [one for one in path.descents if one.steps] or path.descents)
    kinds = [forge_coef, forge_value, forge_entry]
    if descent.steps:
        kinds += [forge_block, forge_exchange, forge_end]
    forged = pick(rng, kinds)(rng, objective, path, descent)
    try:
        result = certificate(objective, replace(path, descents=[forged]), size)
    except ValueError:
        return
    assert not result.holds, f"a forgery was believed: {result}"


def moved(descent, number, point):
    """The descent with another point, and all numbers that follow from its value."""
    if number == 0:
        descent = replace(descent, origin=point)
    steps = list(descent.steps)
    if number > 0:
        steps[number - 1] = replace(steps[number - 1], point=point, value=point.value)
    befores = [descent.origin, *(step.point for step in steps)]
    for n in {number - 1, number} & set(range(len(steps))):
        steps[n] = replace(steps[n], change=befores[n].value - steps[n].value)
    return replace(descent, steps=steps)


def noise(objective, point):
    return 1e-7 * abs(point.value) + 100.0 * objective.resolution(point)


def forge_coef(rng, objective, path, descent):
    """A coefficient is off, and Q is what it then is."""
    number = int(rng.integers(len(descent.points)))
    point = descent.points[number]
    coef = point.coef.copy()
    free = np.flatnonzero(~np.isin(point.support, path.start.support))
    coef[pick(rng, free.tolist())] *= 1.0 + pick(rng, [0.1, -0.5, 1e-2])
    other = replace(point, coef=coef)
    other = replace(other, value=objective.value_and_gradient(other.dense(objective.dim))[0])
    if other.value - point.value <= noise(objective, point):
        raise Skip("it makes no difference")
    return moved(descent, number, other)


def forge_value(rng, objective, path, descent):
    """A point is said to be lower, or higher, than it is."""
    number = int(rng.integers(len(descent.points)))
    point = descent.points[number]
    by = pick(rng, [1e-5, -1e-5, 0.1]) * abs(point.value)
    if abs(by) <= noise(objective, point):
        raise Skip("it makes no difference")
    return moved(descent, number, replace(point, value=point.value + by))


def forge_block(rng, objective, path, descent):
    """A step names another block."""
    number = int(rng.integers(len(descent.steps)))
    step, steps = descent.steps[number], list(descent.steps)
    name = pick(rng, ["feature", "out"])
    steps[number] = replace(step, **{name: pick(rng, [getattr(step, name) + 1, 0, 4])})
    if getattr(steps[number], name) == getattr(step, name):
        raise Skip("that is its block")
    return replace(descent, steps=steps)


def forge_entry(rng, objective, path, descent):
    """The order of entry is none of the origin."""
    entered = descent.entered.copy()
    entered[int(rng.integers(len(entered)))] += 1
    return replace(descent, entered=pick(rng, [entered, descent.entered[1:]]))


def forge_exchange(rng, objective, path, descent):
    """An exchange that raises Q comes last, every number in it honest."""
    point, last = descent.end, descent.steps[-1]
    kept = np.setdiff1d(point.support, np.setdiff1d(point.support, descent.points[-2].support))
    back = np.union1d(kept, np.setdiff1d(descent.points[-2].support, point.support))
    after = replace(objective.minimise(back).without_cache(), size=point.size)
    costs = path.group_costs
    step = replace(
        last, feature=last.out, out=last.feature, point=after, value=after.value,
        change=point.value - after.value, groups=len(costs.used(back)), cost=costs.cost(back),
    )  # fmt: skip
    if step.change >= 0.0:
        raise Skip("by rounding, it does not raise Q")
    return replace(descent, steps=[*descent.steps, step])


def forge_end(rng, objective, path, descent):
    """The last exchange is missing, and nothing else is said to help."""
    last = descent.steps[-1]
    if not objective.is_quadratic or path.settings["budget"] is not None:
        raise Skip("scores are estimates or prices matter, and nothing is promised")
    literal = [point.value for point in path.points if point.size == last.size]
    if min(literal, default=np.inf) < descent.points[-2].value:
        raise Skip("the literal run is lower, and it is its answer that is certified")
    if last.change <= noise(objective, last.point):
        raise Skip("it hardly lowered Q")
    return replace(descent, steps=descent.steps[:-1], ending=NONE_HELPS)
