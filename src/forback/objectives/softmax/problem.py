"""Softmax regression on a few coefficients: the small problem that Newton's method solves.

The loss does not change when all K coefficients of a column rise alike. A column all of whose
coefficients are in is therefore penalised by what is left of them without their mean, which is what
the ridge comes to at the minimum, and the Hessian gets a term of rank one along that direction:
both leave the answer as it is, and it is regular.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from forback.core.types import Floats, Ints
from forback.designs.dense_block import ROWS_AT_ONCE
from forback.objectives.softmax.kernels import soften
from forback.solvers import threads
from forback.solvers.linalg import ridge_penalty
from forback.solvers.newton import State

#: How many numbers are held at a time on the way to a Hessian.
HESSIAN_ENTRIES = 1 << 20

#: The share of what columns and coefficients make together that the rounding of intercepts loses.
LOST = 1e-13


class RowScores(NamedTuple):
    """What is known about the rows, n x K, at some place; their mean loss."""

    value: float
    logs: Floats  #: log-probabilities
    probabilities: Floats
    residual: Floats  #: w (P - Y)


@dataclass(frozen=True, slots=True)
class Labels:
    """The class of each row and its weight: all that is known about the rows besides X."""

    codes: Ints
    weights: Floats
    n_classes: int

    def at(self, scores: Floats) -> RowScores:
        """The mean loss, infinite where it overflows, and its derivatives; takes the array over."""
        probabilities, residual = np.empty_like(scores), np.empty_like(scores)

        def some(start: int, stop: int) -> float:
            return soften(self.codes, self.weights, scores, probabilities, residual, start, stop)

        edges = threads.edges(len(scores), max(1, ROWS_AT_ONCE // self.n_classes))
        value = sum(threads.over_chunks(some, edges))
        return RowScores(value if np.isfinite(value) else np.inf, scores, probabilities, residual)

    def levelled(self, scores: RowScores, most: float) -> RowScores:
        """The same where a constant is added per class such that slopes add up to zero.

        They do at a minimum with intercepts; see `restricted.Rows.levelled`. Nothing is added where
        it would have to be more than `most`: then this is no minimum.
        """
        shares = scores.probabilities
        bends = np.diag(self.weights @ shares) - shares.T @ (self.weights[:, None] * shares)
        shift = -np.linalg.lstsq(bends, scores.residual.sum(axis=0), rcond=1e-12)[0]
        return self.at(scores.logs + shift) if np.abs(shift).max() <= most else scores


@dataclass(frozen=True)
class Part:
    """Some coefficients, column by column: where each is in a table of columns and classes."""

    columns: Ints  #: the columns they belong to, in order
    place: Ints  #: of each coefficient, among these columns
    label: Ints  #: its class
    n_classes: int

    @classmethod
    def of(cls, coordinates: Ints, n_classes: int) -> Part:
        """The coefficients with these numbers."""
        columns, place = np.unique(coordinates // n_classes, return_inverse=True)
        return cls(columns, place, coordinates % n_classes, n_classes)

    @cached_property
    def whole(self) -> Ints:
        """For each column all of whose coefficients are here, where these are: columns x K."""
        order = np.argsort(self.place * self.n_classes + self.label)
        counts = np.bincount(self.place, minlength=len(self.columns))
        starts = np.concatenate([[0], np.cumsum(counts)])[:-1][counts == self.n_classes]
        return np.asarray(order[starts[:, None] + np.arange(self.n_classes)])

    def table(self, coef: Floats) -> Floats:
        """The coefficients as a table of columns x K, zero where there is none."""
        table = np.zeros((len(self.columns), self.n_classes))
        table[self.place, self.label] = coef
        return table

    def centred(self, coef: Floats) -> Floats:
        """The same coefficients of least norm: those of a whole column sum to zero."""
        coef = coef.copy()
        coef[self.whole] -= coef[self.whole].mean(axis=1, keepdims=True)
        return coef


@dataclass(frozen=True, slots=True)
class Restricted:
    """Q as a function of a few coefficients, the rest of the scores held fixed."""

    labels: Labels
    block: Floats  #: the columns they belong to, n x m
    part: Part
    ridge: Floats  #: of each coefficient; the same for all of a column
    base: Floats | float = 0.0  #: what the columns add to, n x K

    has_corners = False

    @property
    def certain(self) -> float:
        """Values decide."""
        return 0.0

    @property
    def saturates(self) -> bool:
        """The loss can approach zero for ever."""
        return True

    def at(self, coef: Floats) -> State:
        """Value and gradient at `coef`; the scores are kept in the state."""
        return self._moved(self.base, coef, coef)

    def along(self, state: State, direction: Floats) -> State:
        """Value and gradient one step from `state`."""
        return self._moved(state.cache.logs, direction, state.coef + direction)

    def _moved(self, base: Floats | float, direction: Floats, coef: Floats) -> State:
        with np.errstate(over="ignore", invalid="ignore"):
            return self.state(coef, self.labels.at(base + self.predict(direction)))

    def predict(self, coef: Floats) -> Floats:
        """What the coefficients add to the scores."""
        return np.asarray(self.block @ self.part.table(coef))

    def scores_again(self, coef: Floats, *, far: bool) -> RowScores:
        """The scores of a point that has lost them.

        Where columns are `far` from zero they are centred first, and the constant that is lost with
        the rounding of intercepts is found again.
        """
        if not far:
            return self.labels.at(self.predict(coef))
        mean, table = self.labels.weights @ self.block, self.part.table(coef)
        scores = self.labels.at((self.block - mean) @ table + mean @ table)
        size = float(np.abs(self.block).max(axis=0) @ np.abs(table).max(axis=1))
        return self.labels.levelled(scores, LOST * size)

    def state(self, coef: Floats, scores: RowScores) -> State:
        """Value and gradient where the scores are known already."""
        left = self.part.centred(coef)
        slopes = (self.block.T @ scores.residual)[self.part.place, self.part.label]
        value = scores.value + ridge_penalty(self.ridge, left)
        return State(coef, value, slopes + self.ridge * left, scores)

    def noise(self, state: State) -> tuple[float, float]:
        """Tolerances are far above it."""
        return 0.0, 0.0

    def bends_alike(self, state: State, other: State) -> bool:
        """There are no corners."""
        return False

    def reach(self, direction: Floats) -> float:
        """How far a step along `direction` moves any score."""
        return float(np.max(np.abs(self.predict(self.part.centred(direction))), initial=0.0))

    def hessian(self, state: State) -> Floats:
        """Second derivative, made regular."""
        every = np.arange(len(self.ridge))
        return self._regular(self._bends(state.cache, every), self.part.whole)

    def bordered(self, hessian: Floats, places: Ints, state: State) -> Floats:
        """The Hessian of some whole columns, their coefficients at `places`, completed."""
        missing = np.setdiff1d(np.arange(len(self.ridge)), places, assume_unique=True)
        full = np.empty((len(self.ridge), len(self.ridge)))
        rows = self._bends(state.cache, missing)
        full[missing], full[:, missing] = rows, rows.T
        full[places[:, None], places] = 0.0
        fresh = self.part.whole[np.isin(self.part.whole, missing).all(axis=1)]
        full = self._regular(full, fresh)
        full[places[:, None], places] = hessian
        return full

    def _bends(self, scores: RowScores, own: Ints) -> Floats:
        """Some rows of the second derivative of the mean loss, a few rows of X at a time.

        Coefficients (a, c) and (b, d) meet in the weighted sum of x_a x_b P_c ([c = d] - P_d). Two
        large products do it: small ones, class by class, would wait for threads.
        """
        (n, m), place, label = self.block.shape, self.part.place, self.part.label
        mine, rows = np.unique(place[own], return_inverse=True)
        total = np.zeros((len(own), len(place)))
        within = np.zeros((len(mine) * m, self.part.n_classes))
        step = max(256, HESSIAN_ENTRIES // max(1, len(place), len(mine) * m))
        for start in range(0, n, step):
            some = slice(start, start + step)
            block, shares = self.block[some], scores.probabilities[some]
            weights = self.labels.weights[some, None]
            with np.errstate(over="ignore", invalid="ignore"):
                shared = np.take(np.sqrt(weights) * block, place, axis=1)
                shared *= np.take(shares, label, axis=1)
                ours = shared if len(own) == len(place) else np.take(shared, own, axis=1)
                total -= ours.T @ shared
                pairs = np.take(block, mine, axis=1)[:, :, None] * block[:, None, :]
                within += pairs.reshape(len(block), len(mine) * m).T @ (weights * shares)
        if not (np.isfinite(total).all() and np.isfinite(within).all()):
            raise ValueError(
                "X holds values too large to square (beyond about 1e150); divide its columns by a "
                "constant"
            )
        within = within.reshape(len(mine), m, self.part.n_classes)[rows[:, None], place, label]
        return np.asarray(total + np.where(label[own][:, None] == label, within, 0.0))

    def _regular(self, hessian: Floats, whole: Ints) -> Floats:
        """Add the ridge and, for each of these whole columns, the term along what changes nothing.

        It is as large as each coefficient's own curvature, so that rare classes are not drowned.
        """
        hessian[np.diag_indices_from(hessian)] += self.ridge
        own = whole[:, :, None], whole[:, None, :]
        hessian[own] -= self.ridge[whole[:, :1, None]] / self.part.n_classes
        root = np.sqrt(np.maximum(np.diag(hessian)[whole], 0.0))
        hessian[own] += root[:, :, None] * root[:, None, :]
        return hessian

    def square_root(self, state: State) -> tuple[Floats, Floats]:
        """A triangle R and z with R'R the Hessian and R'z the gradient.

        A row's K x K curvature diag(P) - P P' is M'M with M = (I - s s') diag(s), s = sqrt(P). The
        rows are added to the triangle a few at a time.
        """
        part, scores, K = self.part, state.cache, self.part.n_classes
        triangle = np.column_stack(self._penalty_root(state))
        step = max(1, HESSIAN_ENTRIES // (K * max(1, len(part.place))))
        identity = np.eye(K)[:, part.label]
        for start in range(0, len(self.block), step):
            some = slice(start, start + step)
            root = np.sqrt(self.labels.weights[some])
            shares = np.sqrt(scores.probabilities[some])
            own = shares[:, None, part.label]
            halves = own * (identity - shares[:, :, None] * own)
            halves *= (root[:, None] * self.block[some])[:, None, part.place]
            residual = scores.residual[some] / root[:, None]
            z = np.divide(residual, shares, out=np.zeros_like(residual), where=shares > 0)
            rows = np.column_stack([halves.reshape(-1, len(part.place)), z.ravel()])
            triangle = np.asarray(np.linalg.qr(np.vstack([triangle, rows]), mode="r"))
        return triangle[:, :-1], triangle[:, -1]

    def _penalty_root(self, state: State) -> tuple[Floats, Floats]:
        """The same for the ridge, and for what makes the Hessian regular."""
        whole, K = self.part.whole, self.part.n_classes
        root = np.diag(np.sqrt(self.ridge))
        root[whole[:, :, None], whole[:, None, :]] -= np.sqrt(self.ridge[whole[:, :1, None]]) / K
        z = np.sqrt(self.ridge) * self.part.centred(state.coef)
        shares = state.cache.probabilities
        bends = (self.block**2).T @ (self.labels.weights[:, None] * shares * (1.0 - shares))
        bends = bends[self.part.place, self.part.label] + self.ridge
        gauges = np.zeros((len(whole), len(z)))
        gauges[np.arange(len(whole))[:, None], whole] = np.sqrt(bends[whole])
        return np.vstack([root, gauges]), np.concatenate([z, np.zeros(len(whole))])
