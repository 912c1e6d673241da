"""What `forback bench` runs on: named problems, how they are made, and what is aimed at."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import forback
from forback.core.types import Floats

Rng = np.random.Generator


class Unavailable(Exception):
    """Why a workload or a contestant cannot take part; a sentence for the reader."""


@dataclass(frozen=True)
class Size:
    """Rows, columns, and how many columns are asked for."""

    n: int
    p: int
    k: int

    def __str__(self) -> str:
        return f"n={self.n}, p={self.p}, k={self.k}"


@dataclass(frozen=True)
class Problem:
    """Data, and what a contestant is asked: at most k columns for this loss and ridge."""

    X: Any
    y: Floats
    loss: str
    k: int
    ridge: float


@dataclass(frozen=True)
class Aim:
    """The time of `subject` is to be at most `limit` times that of `against`."""

    subject: str
    against: str
    limit: float

    @property
    def row(self) -> str:
        """The contestant beside whose figures the aim is shown: the one that is not forback."""
        return self.against if self.subject == "forback" else self.subject


def faster_than(**limits: float) -> tuple[Aim, ...]:
    """What forback aims at against some contestants; an underscore stands for a hyphen."""
    return tuple(Aim("forback", name.replace("_", "-"), limit) for name, limit in limits.items())


@dataclass(frozen=True)
class Workload:
    """A named problem with its contestants and aims.

    Attributes
    ----------
    loss : {"squared", "logistic", "poisson", "chain", "chain-gradient", "graph"}
        The loss of the problem; "chain" asks for k sensors, "chain-gradient" for the gradient of
        all weights, "graph" for k edges between columns.
    make : callable
        ``(rng, size, loss) -> X, y``.
    size, small : Size
        At full size, and for a quick look.
    contestants : tuple of str
        Besides forback, which is always in, and the floor, which every worker times.
    floor_per_addition : bool
        The floor is a product X'r for every addition that forback makes, not for k of them: where
        columns are correlated, features leave again and there are more.
    """

    name: str
    loss: str
    make: Callable[[Rng, Size, str], tuple[Any, Floats]]
    size: Size
    small: Size
    contestants: tuple[str, ...]
    aims: tuple[Aim, ...]
    ridge: float = 0.0
    floor_per_addition: bool = False

    def problem(self, seed: int = 0) -> Problem:
        """The data of this workload; the same seed gives the same numbers."""
        X, y = self.make(np.random.default_rng(seed), self.size, self.loss)
        return Problem(X, y, self.loss, self.size.k, self.ridge)

    def quick(self) -> Workload:
        """The small variant. It has no aims: those are about full sizes."""
        return replace(self, size=self.small, aims=())


# Designs -------------------------------------------------------------------------------------


def gaussian(rng: Rng, n: int, p: int) -> Any:
    """Independent standard normal columns."""
    return rng.normal(size=(n, p))


def autoregressive(rng: Rng, n: int, p: int, rho: float = 0.9) -> Any:
    """Standard normal columns, neighbours correlated by `rho`."""
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    return X


def factors(rng: Rng, n: int, p: int, count: int = 5) -> Any:
    """A few common factors plus noise: every column correlated with every other."""
    common, loadings = rng.normal(size=(n, count)), rng.normal(size=(count, p))
    return common @ loadings + rng.normal(size=(n, p))


def scattered(rng: Rng, n: int, p: int, density: float = 1e-3) -> Any:
    """A sparse matrix with normal entries in random places."""
    entries = int(density * n * p)
    rows, columns = (rng.integers(end, size=entries, dtype=np.int32) for end in (n, p))
    return sparse.csc_array((rng.normal(size=entries), (rows, columns)), shape=(n, p))


# Data ----------------------------------------------------------------------------------------


def synthetic(
    rng: Rng, size: Size, loss: str, design: Callable[[Rng, int, int], Any] = gaussian
) -> tuple[Any, Floats]:
    """A design whose first k columns make the response, with normal coefficients."""
    X = design(rng, size.n, size.p)
    eta = X[:, : size.k] @ rng.normal(size=size.k)
    return X, _response(rng, eta, loss)


def _response(rng: Rng, eta: Floats, loss: str) -> Floats:
    if loss == "squared":
        return eta + rng.normal(size=len(eta))
    if loss == "logistic":
        return np.where(rng.random(len(eta)) < 1 / (1 + np.exp(-eta)), 1.0, 0.0)
    # Counts of a few: exp of an eta of unit size and more would be all outliers.
    return np.asarray(rng.poisson(np.exp(0.5 * eta / eta.std())), dtype=float)


def two_classes(rng: Rng, size: Size, loss: str) -> tuple[Any, Floats]:
    """The paper's logistic simulation: N(b, I) and N(-b, I), equally many rows of each.

    The k nonzero entries of b are uniform on [0, 1], then b is scaled to norm 5.
    """
    b = np.zeros(size.p)
    b[rng.choice(size.p, size.k, replace=False)] = rng.random(size.k)
    y = np.repeat([1.0, -1.0], [size.n // 2, size.n - size.n // 2])
    return np.outer(y, 5 * b / np.linalg.norm(b)) + rng.normal(size=(size.n, size.p)), y


def libsvm(rng: Rng, size: Size, loss: str, name: str) -> tuple[Any, Floats]:
    """The first n rows of a problem of LIBSVM's collection, from the data folder."""
    from forback.datasets import load_libsvm

    try:
        data = load_libsvm(name, folder=data_folder())
    except FileNotFoundError as error:
        message = f"{name} is absent: set FORBACK_DATA to a folder that holds it"
        raise Unavailable(message) from error
    return data.X[: size.n].tocsc(), data.y[: size.n]


def data_folder() -> Path:
    """The folder of public data files: FORBACK_DATA, or `shared/data` beside a checkout."""
    checkout = Path(forback.__file__).resolve().parents[2]
    return Path(os.environ.get("FORBACK_DATA", checkout.parent / "shared" / "data"))


def home(rng: Rng, size: Size, loss: str) -> tuple[Any, Floats]:
    """Three days in a simulated home, whatever the number of steps; activities are numbered."""
    from forback.datasets import make_home

    home = make_home(size.n, interval=270_000 / size.n, random_state=rng)
    return home.X.astype(np.float64), np.unique(home.y, return_inverse=True)[1].astype(float)


def network(rng: Rng, size: Size, loss: str) -> tuple[Any, Floats]:
    """Rows of a Gaussian with a random graph of two edges per variable; there is no response."""
    from forback.datasets import make_graph

    return make_graph("random", n=size.n, p=size.p, random_state=rng).X, np.zeros(size.n)


# The registry --------------------------------------------------------------------------------

STANDARD = Size(1000, 10_000, 50)
SMALL = Size(200, 1000, 10)


def _correlated(name: str, loss: str, design: Callable[[Rng, int, int], Any]) -> Workload:
    squared = loss == "squared"
    return Workload(
        name, loss, partial(synthetic, design=design), STANDARD, SMALL,
        contestants=("abess-path", "sklearn-omp") if squared else ("abess-path",),
        aims=faster_than(floor=2.0 if squared else 4.0),
        ridge=0.0 if squared else 1e-3,
        floor_per_addition=True,
    )  # fmt: skip


def _real(name: str, size: Size) -> Workload:
    return Workload(
        name, "logistic", partial(libsvm, name=name), size,
        Size(2000, size.p, 20), contestants=("abess-path", "abess-k"),
        aims=faster_than(abess_path=1 / 15, abess_k=1.0), ridge=1e-4 / size.n,
    )  # fmt: skip


WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload(
            "ls-gaussian", "squared", synthetic, STANDARD, SMALL,
            contestants=(
                "forback-mixed", "abess-path", "abess-k", "sklearn-omp", "skscope-omp", "l1-path",
            ),
            aims=(
                *faster_than(floor=1.3, abess_path=2 / 5, sklearn_omp=3 / 4, skscope_omp=1 / 40),
                Aim("forback-mixed", "floor", 0.8),
            ),
        ),
        Workload(
            "logistic-gaussian", "logistic", synthetic, STANDARD, SMALL,
            contestants=("abess-path", "abess-k", "skscope-omp", "l1-path"),
            aims=faster_than(floor=2.5, abess_path=1 / 5, skscope_omp=1 / 25),
            ridge=1e-3,
        ),
        _correlated("ls-ar", "squared", autoregressive),
        _correlated("logistic-ar", "logistic", autoregressive),
        _correlated("ls-factor", "squared", factors),
        _correlated("logistic-factor", "logistic", factors),
        Workload(
            "obj-logistic", "logistic", synthetic, Size(1000, 5000, 30), SMALL,
            contestants=("forback-obj",),
            aims=(Aim("forback-obj", "forback", 2.5),),
            ridge=1e-3,
        ),
        Workload(
            "jax-logistic", "logistic", synthetic, Size(1000, 5000, 30), SMALL,
            contestants=("forback-jax", "skscope-foba"),
            aims=(Aim("forback-jax", "skscope-foba", 1 / 10),),
            ridge=0.01,
        ),
        Workload(
            "paper-logistic", "logistic", two_classes, Size(100, 500, 8), Size(100, 500, 8),
            contestants=("forback-obj", "abess-k", "skscope-omp"),
            aims=(
                Aim("forback-obj", "forback", 2.5), *faster_than(abess_k=1.0, skscope_omp=1 / 15),
            ),
            ridge=0.01,
        ),
        Workload(
            "sparse-logistic", "logistic", partial(synthetic, design=scattered),
            Size(20_000, 50_000, 50), Size(1000, 2000, 10),
            contestants=("abess-path",), aims=faster_than(floor=4.0), ridge=1e-4,
        ),
        _real("a9a", Size(32_561, 123, 70)),
        _real("w8a", Size(49_749, 300, 70)),
        Workload(
            "tall-logistic", "logistic", synthetic, Size(1_000_000, 50, 15), Size(20_000, 50, 5),
            contestants=("abess-k",), aims=faster_than(abess_k=1 / 4), ridge=1e-3,
        ),
        Workload(
            "tall-ls", "squared", synthetic, Size(1_000_000, 50, 15), Size(20_000, 50, 5),
            contestants=("sklearn-omp", "abess-k"), aims=faster_than(sklearn_omp=1.1),
        ),
        Workload(
            "wide-ls", "squared", synthetic, Size(200, 200_000, 30), Size(100, 5000, 10),
            contestants=("sklearn-omp", "abess-path"), aims=faster_than(sklearn_omp=1 / 2),
        ),
        Workload(
            "poisson", "poisson", synthetic, Size(2000, 5000, 20), SMALL,
            contestants=("abess-path", "abess-k"), aims=faster_than(abess_path=1 / 3),
            ridge=1e-3,
        ),
        Workload(
            "crf-gradient", "chain-gradient", home, Size(270_000, 40, 1), Size(9000, 40, 1),
            contestants=("crfsuite-iterations",), aims=faster_than(crfsuite_iterations=1 / 3),
            ridge=1e-4,
        ),
        Workload(
            "crf-sensors", "chain", home, Size(270_000, 40, 15), Size(9000, 40, 5),
            contestants=("crfsuite-l1",), aims=faster_than(crfsuite_l1=10.0), ridge=1e-4,
        ),
        Workload(
            "graph-edges", "graph", network, Size(500, 120, 240), Size(100, 20, 30),
            contestants=("glasso", "glasso-tuned", "glasso-cv"),
            aims=faster_than(glasso=10.0, glasso_tuned=10.0, glasso_cv=1.0),
        ),
    )
}  # fmt: skip
