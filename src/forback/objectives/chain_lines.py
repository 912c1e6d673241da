"""Q of a chain when a few observation weights move: how far it falls, how far it rises.

A weight touches only the steps where its column is not zero, so log Z is redone from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from forback.kernels import chain_changes as kernels
from forback.kernels.chain import SAFE
from forback.numerics import TINY
from forback.objectives.chains import Logs, Scaled, Sequences, Weights, infer
from forback.protocols import Floats, Ints
from forback.quasi_newton import TELLING

#: A decrease is known when what is left to gain is below this share of it.
SETTLED = 1e-11

#: A function of one variable, from 0: its change and its slope there.
Line = Callable[[float], tuple[float, float]]


@dataclass(frozen=True)
class ChainLines:
    """Changes of log Z from one set of weights."""

    sequences: Sequences
    weights: Weights
    messages: Scaled | Logs

    def log_ratio(self, columns: Ints, labels: Ints, move: Floats) -> float:
        """The change of log Z when these weights move."""
        place, lines = self._touched(columns)
        moves = np.zeros((len(lines), self.weights.observe.shape[1]))
        for column, label, step in zip(columns, labels, move, strict=True):
            moves[:, label] += step * self._entries(column)[lines]
        scaled = self._scaled(moves)
        if scaled is None:
            return self._moved(columns, labels, move).log_z - self.messages.log_z
        peaks = moves.max(axis=1)  # what all labels gain alike could overflow
        factors = np.ones((len(lines), len(scaled.lanes)))
        factors[:, : moves.shape[1]] = np.exp(moves - peaks[:, None])
        nothing = np.zeros((0, len(scaled.lanes)))
        change, _ = kernels.log_ratio(
            scaled.chain, _known(scaled), place, factors, nothing, scaled.lanes
        )
        return change + float(self.sequences.times[lines] @ peaks)

    def line(self, column: int, label: int) -> Line:
        """The same as a function of how far one weight moves, with its slope."""
        columns, labels = np.array([column]), np.array([label])
        place, lines = self._touched(columns)
        entries = self._entries(column)

        def at(step: float) -> tuple[float, float]:
            move = step * entries[lines]
            scaled = self._scaled(move[:, None] * [1.0, 0.0])
            if scaled is None:
                moved = self._moved(columns, labels, np.array([step]))
                slope = float(entries @ moved.counts().rows[:, label])
                return moved.log_z - self.messages.log_z, slope
            factors = np.ones((len(lines), len(scaled.lanes)))
            slopes = np.zeros_like(factors)
            factors[:, label], slopes[:, label] = np.exp(move), entries[lines]
            return kernels.log_ratio(
                scaled.chain, _known(scaled), place, factors, slopes, scaled.lanes
            )

        return at

    def _scaled(self, moves: Floats) -> Scaled | None:
        """The messages, if potentials that moved so far can go on from them."""
        if isinstance(self.messages, Logs):
            return None
        spread = self.messages.spread + np.ptp(moves, axis=1).max(initial=0.0)
        return self.messages if spread <= SAFE else None

    def _entries(self, column: int) -> Floats:
        """A column of the distinct rows, dense."""
        found = self.sequences.by_column[:, [column]]
        return np.asarray(found.toarray() if sparse.issparse(found) else found)[:, 0]

    def _touched(self, columns: Ints) -> tuple[Ints, Ints]:
        """The distinct rows where one of the columns is not zero, by number and as places."""
        where = np.zeros(len(self.sequences.times), dtype=bool)
        for column in np.unique(columns):
            where |= self._entries(column) != 0.0
        place = np.where(where, np.cumsum(where) - 1, -1)
        return place, np.flatnonzero(where)

    def _moved(self, columns: Ints, labels: Ints, move: Floats) -> Scaled | Logs:
        observe = self.weights.observe.copy()
        observe[columns, labels] += move
        w = self.weights
        return infer(self.sequences, Weights(observe, w.transitions, w.bias, w.start, w.end))


def _known(scaled: Scaled) -> kernels.Known:
    return kernels.Known(scaled.ahead, scaled.scales, scaled.behind)


@dataclass(slots=True)
class End:
    """A place on a line: how far along, the change of the function, its slope."""

    step: float
    value: float
    slope: float


def largest_decrease(
    line: Line, slope: float, step: float, least: float, negligible: float, enough: float = 0.0
) -> tuple[float, bool]:
    """How far a convex function falls below its value at 0, from its slope there.

    `least` is a curvature that it never falls below; where that is too little to tell what is left
    to gain, the curvature between two places has to do.

    Begins at `step`, then by secants (Anderson and Bjorck's) once the minimum lies between two
    ends. Where their tangents rule out that the decrease is `enough`, that bound will do: whether
    the answer is exact comes with it.
    """
    if slope == 0.0:
        return 0.0, True
    low, high, best = End(0.0, 0.0, slope), None, 0.0
    weight_low, weight_high = slope, 0.0
    for _ in range(100):
        if step == low.step:  # the rest is rounding
            break
        here = End(step, *line(step))
        best = min(best, here.value)
        bend = (here.slope - low.slope) / (here.step - low.step)
        curvature = least if least >= TELLING else bend
        left = 0.5 * here.slope * here.slope / curvature if curvature > 0.0 else np.inf
        if left <= max(-SETTLED * best, 1e-3 * negligible):
            return -min(best, here.value - left), True
        if here.slope * slope > 0.0:  # still falling; an end that stays twice counts for less
            weight_high *= _fade(here.slope, low.slope)
            low, weight_low = here, here.slope
        else:
            weight_low *= _fade(here.slope, high.slope) if high else 1.0
            high, weight_high = here, here.slope
        if high is None:
            step -= np.sign(here.slope) * min(4.0 * abs(step), abs(here.slope) / max(bend, TINY))
            continue
        bound = _tangents_meet(low, high)
        if -bound < enough:
            return -bound, False
        if weight_low == weight_high:  # of rounding only
            break
        share = weight_low / (weight_low - weight_high)
        step = low.step + min(max(share, 0.01), 0.99) * (high.step - low.step)
    return -best, True


def _fade(slope: float, before: float) -> float:
    """By how much the slope of the other end shrinks, in Anderson and Bjorck's method."""
    kept = 1.0 - slope / before
    return kept if kept > 0.0 else 0.5


def _tangents_meet(low: End, high: End) -> float:
    """The value where the tangents at both ends meet: a convex function lies above it."""
    if high.slope == low.slope:
        return min(low.value, high.value)
    rise = high.value - low.value - high.slope * (high.step - low.step)
    return low.value + low.slope * rise / (low.slope - high.slope)
