"""What a contestant is given, what it hands in, and what that is judged by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from forback.core.types import Floats, Ints
from forback.objectives import GLM, ChainCRF, GaussianCovariance, LeastSquares, Logistic
from forback.protocols import Point


class Unavailable(Exception):
    """Why a workload or a contestant cannot take part; a sentence for the reader."""


@dataclass(frozen=True)
class Problem:
    """Data, and the task: at most k columns for this loss and ridge.

    Attributes
    ----------
    loss : {"squared", "logistic", "poisson", "chain", "chain-gradient", "graph"}
        "chain" asks for k sensors, "chain-gradient" for the gradient with respect to all weights,
        "graph" for k edges between columns.
    """

    X: Any
    y: Floats
    loss: str
    k: int
    ridge: float


@dataclass(frozen=True)
class Choice:
    """The coordinates chosen, None where the task was another; and how many additions it took."""

    support: Ints | None
    additions: int | None = None


Run = Callable[[], Choice]


@dataclass(frozen=True)
class Aim:
    """The time of `subject` is to be at most `limit` times that of `against`."""

    subject: str
    against: str
    limit: float

    @property
    def row(self) -> str:
        """The contestant beside whose figures the aim is shown."""
        is_turned = self.against in ("forback", "floor") and self.subject != "forback"
        return self.subject if is_turned else self.against


@dataclass(frozen=True)
class Contestant:
    """Somebody who takes part in some workloads.

    Attributes
    ----------
    name : str
        Under which it is reported.
    prepare : callable
        Prepares a `Problem` and returns what is timed: a callable without arguments that gives a
        `Choice`. It raises `Unavailable` where it cannot take part. Both must be defined at the top
        level of a module, so that another process can import them.
    workloads : mapping of str to float or None
        The workloads it takes part in, each with what is aimed at there: forback's time is at most
        so many times this contestant's. None where nothing is aimed at.
    against : str, optional
        Turns the aims round, for variants of forback: the time of this contestant is at most so
        many times that of the one named.
    """

    name: str
    prepare: Callable[[Problem], Run]
    workloads: Mapping[str, float | None] = field(default_factory=dict)
    against: str = ""

    def aim(self, workload: str, subject: str = "forback") -> Aim | None:
        """Return what is aimed at in a workload, if anything: the time of `subject`, as a rule."""
        limit = self.workloads.get(workload)
        if limit is None:
            return None
        if self.against:
            return Aim(self.name, self.against, limit)
        return Aim(subject, self.name, limit)


@contextmanager
def importing(peer: str) -> Iterator[None]:
    """Turn a missing peer into a reason that says what to install."""
    try:
        yield
    except ImportError as error:
        message = f'{peer} is not installed: pip install -e ".[experiments]"'
        raise Unavailable(message) from error


def require(problem: Problem, losses: Sequence[str], dense: bool = False) -> None:
    """Say what a contestant cannot do."""
    if problem.loss not in losses:
        raise Unavailable(f"it has no {problem.loss} loss")
    if dense and not isinstance(problem.X, np.ndarray):
        raise Unavailable("it needs a dense X")


# The judge -------------------------------------------------------------------------------------


def make_objective(problem: Problem, **options: Any) -> GLM | ChainCRF | GaussianCovariance:
    """Make what forback minimises, and what every support is judged by."""
    data = {"X": problem.X, "y": problem.y, "ridge": problem.ridge, **options}
    match problem.loss:
        case "squared":
            return LeastSquares(**data)
        case "logistic":
            return Logistic(**data)
        case "chain" | "chain-gradient":
            return ChainCRF(**data)
        case "graph":
            return GaussianCovariance.from_data(standardised(problem.X), ridge=problem.ridge)
        case other:
            return GLM(other, **data)


def standardised(X: Floats) -> Floats:
    """Scale columns to mean 0 and variance 1: covariances are then correlations."""
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


def refit(problem: Problem, support: Ints) -> Point:
    """Minimise over these candidates and what is always in."""
    objective = make_objective(problem)
    chosen = np.sort(support[support < objective.n_candidates])
    always = np.arange(objective.n_candidates, objective.dim)
    return replace(objective.minimise(np.concatenate([chosen, always])), size=len(chosen))
