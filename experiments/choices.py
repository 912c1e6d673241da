"""What a contestant of `forback bench` hands in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.workloads import Problem, Unavailable
from forback.core.types import Ints


@dataclass(frozen=True)
class Choice:
    """The coordinates chosen, None where the task was another; and how many additions it took."""

    support: Ints | None
    additions: int | None = None


Run = Callable[[], Choice]


@contextmanager
def importing(peer: str) -> Iterator[None]:
    """Turn a missing peer into a reason that says what to install."""
    try:
        yield
    except ImportError as error:
        message = f'{peer} is not installed: pip install "forback[experiments]"'
        raise Unavailable(message) from error


def l1_option() -> dict[str, Any]:
    """How to ask scikit-learn for an L1 penalty: 1.8 renamed it and warns of the old name."""
    from sklearn.linear_model import LogisticRegression

    return {"penalty": "l1"} if LogisticRegression().l1_ratio is None else {"l1_ratio": 1.0}


def require(problem: Problem, losses: Sequence[str], dense: bool = False) -> None:
    """Say what a peer cannot do."""
    if problem.loss not in losses:
        raise Unavailable(f"it has no {problem.loss} loss")
    if dense and not isinstance(problem.X, np.ndarray):
        raise Unavailable("it needs a dense X")
