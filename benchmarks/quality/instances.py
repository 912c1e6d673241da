"""The problems that answers are compared on: correlated families by seed, and real tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.contract import Problem, Unavailable, standardised
from benchmarks.quality.tables import TABLES
from forback.core.types import Floats, Ints
from forback.datasets import make_correlated

Rng = np.random.Generator

#: Rows, columns and true features of every family.
N_ROWS, N_COLUMNS, SIZE = 150, 150, 10

#: The ridge of logistic problems, which separable classes need.
LOGISTIC_RIDGE = 1e-3

#: How many columns of a block are alike, and how much.
BLOCK, WITHIN_BLOCK = 10, 0.95

#: How many true features a decoy is close to the sum of, and its own noise.
PARTS_OF_DECOY, DECOY_NOISE = 3, 0.3


@dataclass(frozen=True)
class Instance:
    """A problem, and what it is called.

    Attributes
    ----------
    group : str
        The family and the loss, or the table.
    seed : int
        Of a family; of a table, the number of features.
    problem : Problem
    """

    group: str
    seed: int
    problem: Problem


def correlated(rng: Rng, structure: str, rho: float) -> tuple[Floats, Floats]:
    """Draw one of the structures of `make_correlated`."""
    data = make_correlated(N_ROWS, N_COLUMNS, SIZE, rho=rho, structure=structure, random_state=rng)
    return data.X, data.coef


def blocks(rng: Rng) -> tuple[Floats, Floats]:
    """Draw blocks of columns that are nearly alike; true features are anywhere."""
    common = np.repeat(rng.normal(size=(N_ROWS, N_COLUMNS // BLOCK)), BLOCK, axis=1)
    own = rng.normal(size=(N_ROWS, N_COLUMNS))
    X = np.sqrt(WITHIN_BLOCK) * common + np.sqrt(1.0 - WITHIN_BLOCK) * own
    return X, _signs(rng, rng.choice(N_COLUMNS, SIZE, replace=False))


def decoys(rng: Rng) -> tuple[Floats, Floats]:
    """Draw independent columns, some of them close to the sum of three true features."""
    X = rng.normal(size=(N_ROWS, N_COLUMNS))
    true = rng.choice(N_COLUMNS, SIZE, replace=False)
    coef = np.zeros(N_COLUMNS)
    coef[true] = rng.uniform(1.0, 2.0, SIZE)
    others = rng.permutation(np.setdiff1d(np.arange(N_COLUMNS), true))
    for place in range(SIZE // PARTS_OF_DECOY):
        parts = true[PARTS_OF_DECOY * place :][:PARTS_OF_DECOY]
        noise = DECOY_NOISE * rng.normal(size=N_ROWS)
        X[:, others[place]] = (X[:, parts].sum(axis=1) + noise) / np.sqrt(PARTS_OF_DECOY)
    return X, coef


def _signs(rng: Rng, true: Ints) -> Floats:
    coef = np.zeros(N_COLUMNS)
    coef[true] = rng.uniform(1.0, 2.0, SIZE) * rng.choice([-1.0, 1.0], SIZE)
    return coef


FAMILIES: dict[str, Callable[[Rng], tuple[Floats, Floats]]] = {
    "ar-0.9": partial(correlated, structure="ar", rho=0.9),
    "factors": partial(correlated, structure="factors", rho=0.8),
    "equal-0.7": partial(correlated, structure="equal", rho=0.7),
    "blocks-0.95": blocks,
    "decoys": decoys,
}


def respond(rng: Rng, eta: Floats, loss: str) -> Floats:
    """Draw a response: with a signal of ten times the noise, or classes by log-odds of spread 3."""
    if loss == "squared":
        noise = rng.normal(size=len(eta))
        return np.asarray(eta + eta.std() / np.sqrt(10.0) * noise)
    odds = 3.0 * eta / eta.std()
    return np.where(rng.random(len(eta)) < 1.0 / (1.0 + np.exp(-odds)), 1.0, 0.0)


def drawn(family: str, loss: str, seed: int) -> Instance:
    """Draw a member of a family; the same seed gives the same numbers."""
    rng = np.random.default_rng(seed)
    X, coef = FAMILIES[family](rng)
    X = standardised(X)
    y = respond(rng, X @ coef, loss)
    if loss == "squared":
        return Instance(f"{family} {loss}", seed, Problem(X, y - y.mean(), loss, SIZE, 0.0))
    return Instance(f"{family} {loss}", seed, Problem(X, y, loss, SIZE, LOGISTIC_RIDGE))


def instances(
    seeds: range, only: Sequence[str] = (), say: Callable[[str], None] = print
) -> Iterator[Instance]:
    """Make every problem whose group begins with one of some words, or all.

    A table whose file is absent is left out, and `say` is told.
    """

    def wanted(group: str) -> bool:
        return not only or any(group.startswith(word) for word in only)

    for family in FAMILIES:
        for loss in ("squared", "logistic"):
            if wanted(f"{family} {loss}"):
                yield from (drawn(family, loss, seed) for seed in seeds)
    for name, table in TABLES.items():
        if wanted(name):
            try:
                X, y = table.load()
            except Unavailable as reason:
                say(f"{name} is left out: {reason}")
                continue
            for k in table.sizes:
                yield Instance(name, k, Problem(X, y, table.loss, k, table.ridge))
