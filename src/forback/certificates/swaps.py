"""Whether one feature for another would lower Q."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forback.core.adapter import as_objective
from forback.core.blocks import Blocks
from forback.core.objective import Objective
from forback.core.point import Point
from forback.core.tolerances import EPS
from forback.core.types import Floats
from forback.solvers.quadratic_model import COPY_RTOL

#: What sums of products are off by, in units of the last place.
ULPS_OF_SUMS = 64.0

#: So many pairs are refitted at most.
REFITS = 2_000

#: What the fall of Q in closed form may be off by, relatively: most where a candidate is all but a
#: copy of what stays. Of what is more of a copy than that, scores say that Q does not fall.
OFF = ULPS_OF_SUMS * EPS / COPY_RTOL


@dataclass(frozen=True)
class Swaps:
    """The best swap found: `out` leaves and `into` comes, blocks by their places.

    Attributes
    ----------
    gain : float
        The fall of Q; negative where every swap raises it. Where `out` is None, all pairs were
        ruled out, and it is an upper bound of what any of them gains.
    out : int | None
    into : int | None
    pairs : int
        The number of pairs.
    judged : int
        How many pairs were worked out exactly or ruled out by a bound.
    """

    gain: float
    out: int | None
    into: int | None
    pairs: int
    judged: int

    @property
    def complete(self) -> bool:
        """Whether no pair is left that might do better."""
        return self.judged == self.pairs


def best_swap(objective: Objective, point: Point, blocks: Blocks, lower: float = 0.0) -> Swaps:
    """Look at every pair of a block inside and one outside.

    Pairs are refitted, the most promising first, unless they are ruled out: by scores in closed
    form, which a quadratic Q has, or by a certified `lower` curvature.
    """
    objective = as_objective(objective)
    is_in = np.isin(blocks.firsts, point.support)
    inside, outside = np.flatnonzero(is_in), np.flatnonzero(~is_in)
    if len(inside) == 0 or len(outside) == 0:
        return Swaps(-np.inf, None, None, 0, 0)
    pairs = _Pairs(objective, point, blocks.take(inside), blocks.take(outside))
    limits = pairs.limits(lower)
    exact = blocks.are_single and pairs.n_exact == np.isfinite(pairs.gains).sum() == limits.size
    best: tuple[float, int | None, int | None] = (-np.inf, None, None)
    if exact:
        limits = np.minimum(limits, pairs.limits_of_exact())
    else:
        best = (float(limits[limits <= 0.0].max(initial=-np.inf)), None, None)
    refits = unjudged = 0
    for place in np.argsort(-pairs.gains, axis=None, kind="stable"):
        row, column = divmod(int(place), len(outside))
        if limits[row, column] <= best[0]:
            continue
        if refits == REFITS:
            unjudged += 1
            continue
        refits += 1
        gain = pairs.refit(row, column)
        if gain > best[0]:
            best = gain, int(inside[row]), int(outside[column])
    return Swaps(*best, limits.size, limits.size - unjudged)


class _Pairs:
    """Every pair of a block inside, a row, and one outside, a column.

    Attributes
    ----------
    gains : float array
        How far Q falls by each exchange, as far as scores tell.
    n_exact : int
        How many of these are exact, but for rounding.
    """

    def __init__(self, objective: Objective, point: Point, inside: Blocks, outside: Blocks) -> None:
        self.objective, self.point, self.outside = objective, point, outside
        scores = objective.decrease_if_exchanged(point, inside, outside, estimate=True)
        self.gains = np.nan_to_num(scores.values, nan=-np.inf, neginf=-np.inf)
        self.n_exact = scores.n_exact
        kept = [np.setdiff1d(point.support, block, assume_unique=True) for block in inside]
        self.without = [objective.minimise(support, point) for support in kept]
        values = np.array([left.value for left in self.without])[:, None]
        self.costs = values - point.value
        self.rounding = ULPS_OF_SUMS * EPS * (np.abs(values) + abs(point.value))
        self.slopes = np.array([outside.norms(objective.gradient(left)) for left in self.without])

    def refit(self, row: int, column: int) -> float:
        """Return how far Q really falls."""
        left = self.without[row]
        wider = np.union1d(left.support, self.outside[column])
        return self.point.value - self.objective.minimise(wider, left).value

    def limits(self, lower: float) -> Floats:
        """Return how far Q falls at most where it bends no less than that; infinity for 0."""
        if lower <= 0.0:
            return np.full_like(self.slopes, np.inf)
        with np.errstate(over="ignore"):  # next to no curvature bounds next to nothing
            return 0.5 * self.slopes**2 / lower - self.costs

    def limits_of_exact(self) -> Floats:
        """Return how far Q falls at most by exact scores, with what these may be off by.

        Where what left explains nearly all, its cost and the fall that follows cancel. Scores see
        no fall where a candidate is a copy of what stays, or where rounding hides it: it may fall
        then, unless the slope is zero. What is inside may be collinear, so that the closed form
        does not hold: the best score of each row is compared with a refit.
        """
        falls = self.gains + self.costs
        off = OFF * np.abs(falls) + self.rounding
        limits = np.where((falls > self.rounding) | (self.slopes == 0.0), self.gains + off, np.inf)
        slack = 2.0 * self.objective.resolution(self.point)
        for row, column in enumerate(self.gains.argmax(axis=1).tolist()):
            if limits[row, column] < np.inf:
                wrong = abs(self.refit(row, column) - self.gains[row, column])
                if wrong > off[row, column] + slack:
                    limits[row] = np.inf
        return limits
