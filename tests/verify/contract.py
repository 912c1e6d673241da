"""`check_objective` on random instances of every family."""

from collections import Counter

import numpy as np
from scipy import sparse

from forback.core.status import Status
from forback.objectives import ChainCRF, GaussianCovariance, Multinomial
from forback.report.tables import markdown_table
from forback.testing import check_objective
from hostile.harness import Skip, pick
from support.problems import LOSSES, make_design, make_problem
from support.written import EXTRAS, Ridged
from verify.part import Part

#: What is left of a gradient, relatively: families with second derivatives, and without.
EXACT = 1e-8
ROUGH = 1e-6


def linear(rng):
    loss = pick(rng, LOSSES)
    problem = make_problem(
        loss,
        pick(rng, ["gaussian", "correlated", "binary", "duplicated"]),
        int(rng.integers(2**31)),
        n=int(rng.integers(20, 60)),
        p=int(rng.integers(3, 8)),
        ridge=pick(rng, [1e-3, 1e-2, 1.0]),
        fit_intercept=bool(rng.integers(2)),
        weighted=bool(rng.integers(2)),
    )
    return problem.objective(storage=pick(rng, ["dense", "csc"])), EXACT


def softmax(rng):
    n, p, k = int(rng.integers(30, 60)), int(rng.integers(2, 5)), int(rng.integers(2, 5))
    X = make_design(pick(rng, ["gaussian", "correlated", "binary"]), n, p, rng)
    y = (0.5 * X @ rng.normal(size=(p, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)
    y[:k] = np.arange(k)
    options = {"ridge": pick(rng, [1e-3, 1e-1]), "fit_intercept": bool(rng.integers(2))}
    stored = pick(rng, [np.array, sparse.csc_array])
    return Multinomial(stored(X), y, **options), EXACT


def chain(rng):
    k, width = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    lengths = [int(rng.integers(1, 12)) for _ in range(int(rng.integers(1, 4)))]
    n = sum(lengths)
    if n < k:
        raise Skip("fewer rows than labels")
    y = rng.integers(0, k, n)
    y[:k] = np.arange(k)
    X = (rng.random((n, width)) < np.where(y[:, None] == np.arange(width) % k, 0.7, 0.3)) * 1.0
    X = pick(rng, [X, X + 0.5 * rng.normal(size=X.shape)])
    options = {"ridge": pick(rng, [1e-2, 1e-1]), "start_end": bool(rng.integers(2))}
    return ChainCRF(pick(rng, [np.array, sparse.csr_array])(X), y, lengths, **options), ROUGH


def graph(rng):
    p, n = int(rng.integers(2, 7)), int(rng.integers(20, 80))
    X = rng.normal(size=(n, p)) @ (np.eye(p) + 0.5 * rng.normal(size=(p, p)))
    return GaussianCovariance.from_data(X, ridge=pick(rng, [0.0, 1e-2, 0.5])), ROUGH


def function(rng):
    n, p = int(rng.integers(25, 60)), int(rng.integers(2, 6))
    X = rng.normal(size=(n, p))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(float)
    written = Ridged(X, y, ridge=pick(rng, [1e-2, 0.1]), fit_intercept=bool(rng.integers(2)))
    extras = [extra for extra in EXTRAS if rng.integers(2)]
    exact = "hessian" in extras or "hessian_vector" in extras
    return written.objective(*extras), EXACT if exact else ROUGH


FAMILIES = {f.__name__: f for f in (linear, softmax, chain, graph, function)}


def check(rng):
    family = pick(rng, list(FAMILIES))
    objective, optimality = FAMILIES[family](rng)
    everything = objective.minimise(np.arange(objective.dim))
    if everything.status is Status.NO_MINIMISER:
        raise Skip("there is no minimiser")
    check_objective(objective, seed=int(rng.integers(2**31)), supports=2, optimality=optimality)
    return [{"family": family}]


def summarise(rows):
    counts = Counter(row["family"] for row in rows)
    lines = [[family, str(counts[family])] for family in FAMILIES if counts[family]]
    return markdown_table(["family", "instances"], lines), []


CONTRACT = Part(
    "contract",
    "`check_objective` on random instances of every family: gradients against differences, fits, "
    "scores against brute force.",
    5_000,
    check,
    summarise,
)
