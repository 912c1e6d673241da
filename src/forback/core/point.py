"""Point, Move and Step: a minimiser on a support, a way from one to the next, and its record."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from forback.core.status import Status
from forback.core.types import Floats, Ints


@dataclass(frozen=True, slots=True)
class Point:
    """The minimiser of Q over the coordinates in `support`, beta-hat(F) in the paper.

    Attributes
    ----------
    support : int array
        Sorted coordinates, the always ones included.
    coef : float array
        Coefficients on `support`.
    value : float
        Q at this point.
    size : int
        Number of chosen blocks; always coordinates never count.
    cache
        Whatever its objective wants to carry along; nobody else reads it.
    note : str
        What a reader of the result should know, for example that there is no minimiser.
    status : Status
        How the fit ended, as a code. With a note of your own and no status it is ``OTHER``.
    """

    support: Ints
    coef: Floats
    value: float
    size: int = 0
    cache: Any = None
    note: str = ""
    status: Status = Status.CONVERGED

    def __post_init__(self) -> None:
        if self.note and self.status is Status.CONVERGED:
            object.__setattr__(self, "status", Status.OTHER)

    def without_cache(self) -> Point:
        """Return the point without its cache, light enough to be kept for every step of a path."""
        # Here and below several times as quick as `replace`, which counts: every step comes here.
        return Point(self.support, self.coef, self.value, self.size, None, self.note, self.status)

    def of_size(self, size: int) -> Point:
        """Return the point as one of so many blocks."""
        return Point(self.support, self.coef, self.value, size, self.cache, self.note, self.status)

    def dense(self, dim: int) -> Floats:
        """Return the coefficients as a vector of length `dim`, zero off the support."""
        beta = np.zeros(dim)
        beta[self.support] = self.coef
        return beta


class Move(NamedTuple):
    """A block that enters or leaves, and the point refitted: what a path records as a `Step`."""

    action: str
    block: int  #: its place among the `Blocks` of the run
    score: float
    point: Point
    change: float
    solved: int
    note: str = ""
    left: tuple[int, ...] = ()  #: the places of the blocks that leave in an exchange
    came: tuple[int, ...] = ()  #: and of those that come, `block` the first


@dataclass(frozen=True, slots=True)
class Step:
    """One move: blocks entered, left or took the place of others, and Q was minimised again.

    Attributes
    ----------
    action : {"add", "remove", "exchange", "start"}
        "start": all that a run was given to begin with came in, `feature` and `others`.
    feature : int
        The block's number: its coordinate, or its group in order of appearance.
    size : int
        Number of chosen blocks after the step.
    value : float
        Q after the step.
    change : float
        Q before the step minus Q after it: the paper's delta^(k) for an addition.
    score : float
        Goodness of the block added, badness of the block removed; of an exchange, the fall of Q
        that was expected.
    point : Point
        The minimiser after the step.
    note : str
        Anything unusual: skipped candidates, no minimiser, no convergence.
    solved : int
        How many blocks were scored exactly; bounds ruled the others out.
    groups : int
        Number of groups (sensors, say) in use after the step.
    cost : float
        The cost of these groups.
    name : str
        What the block is called: the name of its column or group, or its number.
    columns : tuple of int
        The columns of X that the block consists of.
    out : int or None
        The number of the block that an exchange took out; of several, the first.
    out_name : str
        What that is called.
    start : str
        From which start of refinement the step was made; empty for those of the run itself.
    others : tuple of int
        The numbers of the blocks that came or left with these.
    """

    action: str
    feature: int
    size: int
    value: float
    change: float
    score: float
    point: Point
    note: str = ""
    solved: int = 0
    groups: int = 0
    cost: float = 0.0
    name: str = ""
    columns: tuple[int, ...] = ()
    out: int | None = None
    out_name: str = ""
    start: str = ""
    others: tuple[int, ...] = ()

    def __setstate__(self, state: list[Any]) -> None:
        """Take what was pickled; before there were exchanges a step had fewer fields."""
        own = fields(self)
        values = [*state, *(one.default for one in own[len(state) :])]
        for one, value in zip(own, values, strict=True):
            object.__setattr__(self, one.name, value)
