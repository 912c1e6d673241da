"""Hard data for the fast paths, one list for every test that compares two ways to an answer."""

from dataclasses import replace

import numpy as np
from scipy import sparse

from forback import select
from forback.core.blocks import Blocks
from forback.objectives import GLM
from support.problems import NATIVE, make_response

METHODS = ("foba-gdt", "foba-obj", "forward-gdt", "forward-obj")
KINDS = ("gaussian", "correlated", "binary", "heavy", "constant", "sparse", "duplicated", "copies")


def hard_design(kind, n, p, rng):
    X = rng.normal(size=(n, p))
    if kind == "correlated":
        X += 2.0 * rng.normal(size=(n, 1))
    elif kind == "binary":
        X = (X > 0.6).astype(float)
    elif kind == "heavy":
        X = np.clip(rng.standard_t(1.0, size=(n, p)), -30.0, 30.0)
    elif kind == "constant":
        X[:, ::3] = rng.integers(0, 3, size=len(X[0, ::3]))
    elif kind == "sparse":
        X *= rng.random(size=(n, p)) < 0.1
    elif kind == "duplicated":
        X[:, p // 2 :] = X[:, : p - p // 2]
    elif kind == "copies":  # nearly tied, far closer than the tie rule can tell or not quite
        X[:, p // 2 :] = X[:, : p - p // 2] * (1.0 + 1e-9 * rng.normal(size=p - p // 2))
    return X


def hard_data(loss, kind, seed, *, n=40, p=12):
    """X and y, with three columns that matter."""
    rng = np.random.default_rng(seed)
    X = hard_design(kind, n, p, rng)
    size = np.maximum(np.abs(X).max(axis=0), 1e-300)
    truth = np.zeros(p)
    truth[rng.choice(p, min(3, p), replace=False)] = 2.0 * rng.normal(size=min(3, p))
    return X, make_response(loss, (X / size) @ truth, rng)


def build(loss, X, y, *, hidden=False, **options):
    """The objective of a loss; `hidden`: the same without its quick twins."""
    name, base = (loss, GLM) if loss not in NATIVE else (None, NATIVE[loss])
    made = HIDDEN[base] if hidden else base
    return made(X, y, **options) if name is None else made(name, X, y, **options)


def by_strategy(loss, X, y, *, fits=None, slopes=None, design=None, **options):
    """The objective of a loss with strategies, and a design made of X, that a test wants."""
    data = GLM(loss, X, y, **options).data
    if design is not None:
        data = replace(data, design=design(data.design.X))
    return GLM.from_data(replace(data, fits=fits, slopes=slopes))


def _hidden(base):
    class Hidden(base):
        def gradient_norms(self, point, blocks, *, only_best=False):
            return super().gradient_norms(point, blocks)

        def decrease_if_added(self, point, blocks, *, only_best=False):
            return super().decrease_if_added(point, blocks)

        def increase_if_removed(self, point, blocks, *, below=None):
            return super().increase_if_removed(point, blocks)

        def increase_after_refit(self, point, blocks, *, below=None):
            return super().increase_after_refit(point, blocks)

    return Hidden


HIDDEN = {base: _hidden(base) for base in (GLM, *NATIVE.values())}


def stored(X, storage):
    if storage == "csc":
        return sparse.csc_array(X)
    return np.asarray(X, order=storage)


def singles(objective):
    p = objective.n_candidates
    return Blocks.singles(np.arange(p), np.arange(p, objective.dim))


def run(objective, method="foba-gdt", **options):
    return select(objective, method=method, **options)


def steps(path):
    return [(step.action, step.feature, step.size) for step in path.steps]


def assert_same_path(found, expected, tolerance, unit=None):
    """The same steps, and values within a share of Q at the start (or of `unit`)."""
    assert steps(found) == steps(expected)
    values = [[step.value for step in path.steps] for path in (found, expected)]
    unit = max(1e-300, abs(expected.points[0].value) if unit is None else unit)
    np.testing.assert_allclose(*values, rtol=0.0, atol=tolerance * unit)
