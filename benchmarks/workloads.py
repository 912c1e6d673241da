"""The named problems that contestants are timed on: how they are made, and their sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.contract import Aim, Contestant, Problem, Unavailable
from forback.core.types import Floats
from forback.datasets import load_libsvm, make_correlated, make_graph, make_home, make_logistic

Rng = np.random.Generator


@dataclass(frozen=True)
class Size:
    """Rows, columns, and how many columns are asked for."""

    n: int
    p: int
    k: int

    def __str__(self) -> str:
        return f"n={self.n}, p={self.p}, k={self.k}"


@dataclass(frozen=True)
class Workload:
    """A named problem.

    Attributes
    ----------
    loss : str
        That of a `Problem`.
    make : callable
        ``(rng, size, loss) -> X, y``.
    size, small : Size
        At full size, and for a quick look.
    ridge : float
        That of a `Problem`.
    floor_limit : float, optional
        The time of forback aimed at, as a multiple of the floor.
    floor_per_addition : bool
        The floor is a product X'r for every addition that forback makes, not for k of them: where
        columns are correlated, features leave again and there are more.
    subject : str
        The contestant whose time the aims are about.
    """

    name: str
    loss: str
    make: Callable[[Rng, Size, str], tuple[Any, Floats]]
    size: Size
    small: Size
    ridge: float = 0.0
    floor_limit: float | None = None
    floor_per_addition: bool = False
    subject: str = "forback"

    def problem(self, seed: int = 0) -> Problem:
        """Make the data; the same seed gives the same numbers."""
        X, y = self.make(np.random.default_rng(seed), self.size, self.loss)
        return Problem(X, y, self.loss, self.size.k, self.ridge)

    def quick(self) -> Workload:
        """Return the small variant."""
        return replace(self, size=self.small)

    def aims(self, contestants: list[Contestant]) -> list[Aim]:
        """List what is aimed at with these contestants, at full size."""
        aims = [contestant.aim(self.name, self.subject) for contestant in contestants]
        if self.floor_limit is not None:
            aims.append(Aim("forback", "floor", self.floor_limit))
        return [aim for aim in aims if aim is not None]


# Data ------------------------------------------------------------------------------------------


def correlated(
    rng: Rng, size: Size, loss: str, structure: str = "ar", rho: float = 0.0
) -> tuple[Any, Floats]:
    """Draw a table; k columns make the response, and `rho` says how correlated columns are."""
    data = make_correlated(
        size.n, size.p, size.k, rho=rho, structure=structure, snr=float(size.k), random_state=rng
    )
    if loss == "squared":
        return data.X, data.y
    eta = data.X @ data.coef
    return data.X, _draw(rng, np.sqrt(size.k) * eta / eta.std(), loss)


def scattered(rng: Rng, size: Size, loss: str, density: float = 1e-3) -> tuple[Any, Floats]:
    """Draw a sparse matrix with normal entries in random places; its first k columns count."""
    entries = int(density * size.n * size.p)
    rows = rng.integers(size.n, size=entries, dtype=np.int32)
    columns = rng.integers(size.p, size=entries, dtype=np.int32)
    X = sparse.csc_array((rng.normal(size=entries), (rows, columns)), shape=(size.n, size.p))
    return X, _draw(rng, X[:, : size.k] @ rng.normal(size=size.k), loss)


def _draw(rng: Rng, eta: Floats, loss: str) -> Floats:
    """Draw classes with these log-odds; or counts of a few, since larger ones are outliers."""
    if loss == "logistic":
        return np.where(rng.random(len(eta)) < 1 / (1 + np.exp(-eta)), 1.0, 0.0)
    return np.asarray(rng.poisson(np.exp(0.5 * eta / eta.std())), dtype=float)


def two_classes(rng: Rng, size: Size, loss: str) -> tuple[Any, Floats]:
    """Draw the paper's logistic simulation."""
    data = make_logistic(size.n, size.p, size.k, random_state=rng)
    return data.X, data.y.astype(float)


def libsvm(rng: Rng, size: Size, loss: str, name: str) -> tuple[Any, Floats]:
    """Load the first n rows of a problem of LIBSVM's collection."""
    try:
        data = load_libsvm(name)
    except FileNotFoundError as error:
        message = f"{name} is absent: set FORBACK_DATA to a folder that holds it"
        raise Unavailable(message) from error
    return data.X[: size.n].tocsc(), data.y[: size.n]


def home(rng: Rng, size: Size, loss: str) -> tuple[Any, Floats]:
    """Simulate three days in a home, whatever the number of steps; activities are numbered."""
    home = make_home(size.n, interval=270_000 / size.n, random_state=rng)
    return home.X.astype(np.float64), np.unique(home.y, return_inverse=True)[1].astype(float)


def network(rng: Rng, size: Size, loss: str) -> tuple[Any, Floats]:
    """Draw rows of a Gaussian with a random graph of two edges per variable; y means nothing."""
    return make_graph("random", n=size.n, p=size.p, random_state=rng).X, np.zeros(size.n)


# The registry ----------------------------------------------------------------------------------

STANDARD = Size(1000, 10_000, 50)
SMALL = Size(200, 1000, 10)
HOME = Size(270_000, 40, 15)
TEXT = Size(20_000, 50_000, 50)
REFINED, REFINED_SMALL = Size(1000, 5000, 20), Size(150, 150, 10)

ar = partial(correlated, rho=0.9)
factors = partial(correlated, structure="factors", rho=5 / 6)


def _correlated(name: str, loss: str, make: Callable[..., tuple[Any, Floats]]) -> Workload:
    ridge, limit = (0.0, 2.0) if loss == "squared" else (1e-3, 4.0)
    return Workload(name, loss, make, STANDARD, SMALL, ridge, limit, floor_per_addition=True)


def _real(name: str, size: Size) -> Workload:
    make = partial(libsvm, name=name)
    return Workload(name, "logistic", make, size, Size(2000, size.p, 20), ridge=1e-4 / size.n)


def _refined(name: str, loss: str, size: Size, rho: float) -> Workload:
    """A problem whose answer is refined: one that abess, which exchanges features too, meets."""
    make, ridge = partial(correlated, rho=rho), 0.0 if loss == "squared" else 1e-3
    return Workload(name, loss, make, size, SMALL, ridge, subject="forback-swap")


WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload("ls-gaussian", "squared", correlated, STANDARD, SMALL, floor_limit=1.3),
        Workload("logistic-gaussian", "logistic", correlated, STANDARD, SMALL, 1e-3, 2.5),
        _correlated("ls-ar", "squared", ar),
        _correlated("logistic-ar", "logistic", ar),
        _correlated("ls-factor", "squared", factors),
        _correlated("logistic-factor", "logistic", factors),
        Workload("obj-logistic", "logistic", correlated, Size(1000, 5000, 30), SMALL, 1e-3),
        Workload("jax-logistic", "logistic", correlated, Size(1000, 5000, 30), SMALL, 0.01),
        Workload(
            "paper-logistic", "logistic", two_classes, Size(100, 500, 8), Size(100, 500, 8), 0.01
        ),
        Workload(
            "sparse-logistic",
            "logistic",
            scattered,
            TEXT,
            Size(1000, 2000, 10),
            ridge=1e-4,
            floor_limit=4.0,
        ),
        _real("a9a", Size(32_561, 123, 70)),
        _real("w8a", Size(49_749, 300, 70)),
        Workload(
            "tall-logistic",
            "logistic",
            correlated,
            Size(1_000_000, 50, 15),
            Size(20_000, 50, 5),
            ridge=1e-3,
        ),
        Workload("tall-ls", "squared", correlated, Size(1_000_000, 50, 15), Size(20_000, 50, 5)),
        Workload("wide-ls", "squared", correlated, Size(200, 200_000, 30), Size(100, 5000, 10)),
        Workload("poisson", "poisson", correlated, Size(2000, 5000, 20), SMALL, 1e-3),
        Workload(
            "crf-gradient", "chain-gradient", home, replace(HOME, k=1), Size(9000, 40, 1), 1e-4
        ),
        Workload("crf-sensors", "chain", home, HOME, Size(9000, 40, 5), 1e-4),
        Workload("graph-edges", "graph", network, Size(500, 120, 240), Size(100, 20, 30)),
        _refined("refined-ls", "squared", REFINED, 0.0),
        _refined("refined-ls-ar", "squared", REFINED, 0.9),
        _refined("refined-logistic", "logistic", REFINED, 0.0),
        _refined("refined-logistic-ar", "logistic", REFINED, 0.9),
        _refined("refined-small-ls", "squared", REFINED_SMALL, 0.9),
        _refined("refined-small-logistic", "logistic", REFINED_SMALL, 0.9),
        Workload(
            "refined-sparse",
            "logistic",
            scattered,
            TEXT,
            Size(1000, 2000, 10),
            ridge=1e-4,
            subject="forback-swap",
        ),
    )
}
