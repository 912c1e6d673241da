"""Refinement: how far an answer is to be improved beyond the literal run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from forback.validation.containers import as_list
from forback.validation.scalars import check_flag, check_integer, check_number

#: Where exchanges may start from, by the names that paths use.
STARTS = ("path", "overshoot", "deep", "marginal", "neighbours")

#: The effort of "search".
SEARCH_EFFORT = 300.0


@dataclass(frozen=True, kw_only=True)
class Refinement:
    """How the answer of a run is refined, for `select` and the `refine` of every estimator.

    Each start is a support of the wanted size k; from each, the best exchange of one block is made
    until none lowers Q. "swap" is short for ``Refinement()``, "search" for
    ``Refinement(effort=300)``.

    Parameters
    ----------
    starts : sequence of {"path", "overshoot", "deep", "marginal", "neighbours"}
        Where exchanges start from. "path": the best support of size k on the way to 2k.
        "overshoot": 3k blocks, of which those leave, one after another, that cost least after a
        refit of the others. "deep": the same from min(8k, n/2, p) blocks for n rows, or n/6 where
        the loss is not quadratic. "marginal": the k blocks that are best before any is in.
        "neighbours": from the best support so far to another size, by k/5 and k/2 blocks more and
        fewer, exchanges there, and back; until that helps no more.
        What a run cannot reach is shortened; a "deep" start no larger than "overshoot" is left out.
        Where none is left, it is "path".
    shortlist : int
        How many exchanges are refitted, at most, to find the best where scores are estimates.
    effort : float
        How long the search goes on once no exchange helps from any start, in sweeps: a sweep tries
        every exchange of one block. First exchanges of two blocks are tried, then, from the best
        support, a few random blocks leave, others fill their places, and exchanges follow. With
        any effort the deep start takes up to n/2 blocks whatever the loss. 0: no such search.
    seconds : float, optional
        How long the search goes on in seconds, if it is not over before; without an `effort` they
        alone end it. This is the one setting whose results cannot be reproduced.
    progress : bool
        Whether the search shows on standard error how far it is.

    Examples
    --------
    >>> import numpy as np
    >>> from forback import Refinement, select
    >>> from forback.objectives import LeastSquares
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2, 100))
    >>> X = np.column_stack([a + b + 0.3 * rng.normal(size=100), a, b])
    >>> select(LeastSquares(X, a + b), k=2)[2].support.tolist()
    [0, 1]
    >>> path = select(LeastSquares(X, a + b), k=2, refine=Refinement(starts=["path"]))
    >>> path[2].support.tolist()
    [1, 2]
    """

    starts: Any = STARTS
    shortlist: int = 8
    effort: float = 0.0
    seconds: float | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        names = ", ".join(map(repr, STARTS))
        one = isinstance(self.starts, str)
        given = [self.starts] if one else as_list(self.starts, "starts", f"some of {names}")
        wrong = [start for start in given if start not in STARTS]
        if wrong or not set(given) & set(STARTS[:-1]):
            raise ValueError(
                f"starts must be some of {names}, the last not alone; got {self.starts!r}"
            )
        in_order = tuple(start for start in STARTS if start in given)
        object.__setattr__(self, "starts", in_order)
        check_integer(self.shortlist, "shortlist", low=1)
        check_number(self.effort, "effort", low=0.0)
        if self.seconds is not None:
            check_number(self.seconds, "seconds", low=0.0)
        check_flag(self.progress, "progress")

    @property
    def searches(self) -> bool:
        """Whether a search follows the exchanges."""
        return self.effort > 0.0 or self.seconds is not None

    def to_dict(self) -> dict[str, Any]:
        """Return what shaped the answer, ready for JSON."""
        return {
            "starts": list(self.starts),
            "shortlist": self.shortlist,
            "effort": float(self.effort),
            "seconds": None if self.seconds is None else float(self.seconds),
        }


#: What `refine` may be called by.
NAMED: dict[str, Refinement] = {"swap": Refinement(), "search": Refinement(effort=SEARCH_EFFORT)}


def check_refine(refine: Any) -> Refinement | None:
    """Return what `refine` asks for; ValueError or TypeError where it is nothing known."""
    if refine is None or isinstance(refine, Refinement):
        return refine
    if isinstance(refine, str) and refine in NAMED:
        return NAMED[refine]
    wanted = 'None, "swap", "search" or a Refinement(...)'
    kind = ValueError if isinstance(refine, str) else TypeError
    raise kind(f"refine must be {wanted}, got {refine!r}")
