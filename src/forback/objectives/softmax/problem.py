"""Softmax regression on a few coefficients: the small problem that Newton's method solves.

The loss does not change when all K coefficients of a column rise alike. A column all of whose
coefficients are in is therefore penalised by what is left of them without their mean, which is what
the ridge comes to at the minimum, and the Hessian gets a term of rank one along that direction:
both leave the answer as it is, and it is regular.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forback.core.types import Floats, Ints
from forback.designs.dense_block import ROWS_AT_ONCE
from forback.objectives.softmax.kernels import Rows, softmax
from forback.solvers import threads
from forback.solvers.linalg import ridge_penalty
from forback.solvers.newton import Problem, State

#: How many numbers are held at a time on the way to a Hessian.
HESSIAN_CHUNK_ENTRIES = 1 << 20

#: The share of what columns and coefficients make together that the rounding of intercepts loses.
INTERCEPT_ROUNDING = 1e-13

#: Singular values below this share of the largest belong to the direction in which all classes rise
#: alike.
LEVEL_RCOND = 1e-12

#: Curvature below this share of the mean square of a column is that of probabilities of 0 or 1.
FADED_RTOL = 1e-18


class Predictions(NamedTuple):
    """What a model says about all rows, n x K, and their mean loss.

    Attributes
    ----------
    value : float
    logs : Floats
        Log-probabilities.
    probabilities : Floats
    residual : Floats
        W (P - Y).
    """

    value: float
    logs: Floats
    probabilities: Floats
    residual: Floats


@dataclass(frozen=True, slots=True)
class Labels:
    """The class of each row and its weight: all that is known about the rows besides X."""

    codes: Ints
    weights: Floats
    n_classes: int

    def predictions(self, scores: Floats) -> Predictions:
        """Return what these scores say; the loss is infinite where it overflows.

        Takes the array over.
        """
        probabilities, residual = np.empty_like(scores), np.empty_like(scores)
        rows = Rows(self.codes, self.weights, scores)
        loss = partial(softmax, rows, probabilities, residual)
        edges = threads.edges(len(scores), max(1, ROWS_AT_ONCE // self.n_classes))
        value = sum(threads.over_chunks(loss, edges))
        return Predictions(value if np.isfinite(value) else np.inf, scores, probabilities, residual)

    def levelled(self, predictions: Predictions, most: float) -> Predictions:
        """Add a constant per class such that slopes add up to zero.

        They do at a minimum with intercepts. Nothing is added where it would have to be more than
        `most`: then this is no minimum.
        """
        shares = predictions.probabilities
        hessian = np.diag(self.weights @ shares) - shares.T @ (self.weights[:, None] * shares)
        shift = -np.linalg.lstsq(hessian, predictions.residual.sum(axis=0), rcond=LEVEL_RCOND)[0]
        if np.abs(shift).max() > most:
            return predictions
        return self.predictions(predictions.logs + shift)


@dataclass(frozen=True)
class Coefficients:
    """Some coefficients, column by column: where each is in a table of columns and classes.

    Attributes
    ----------
    coordinates : Ints
    columns : Ints
        The columns they belong to, in order.
    place : Ints
        The place of each coefficient's column among these columns.
    label : Ints
        Its class.
    n_classes : int
    """

    coordinates: Ints
    columns: Ints
    place: Ints
    label: Ints
    n_classes: int

    @classmethod
    def of(cls, coordinates: Ints, n_classes: int) -> Coefficients:
        """Return the coefficients with these numbers."""
        columns, place = np.unique(coordinates // n_classes, return_inverse=True)
        return cls(coordinates, columns, place, coordinates % n_classes, n_classes)

    @cached_property
    def whole(self) -> Ints:
        """For each column all of whose coefficients are here, where these are: columns x K."""
        order = np.argsort(self.place * self.n_classes + self.label)
        counts = np.bincount(self.place, minlength=len(self.columns))
        starts = (np.cumsum(counts) - counts)[counts == self.n_classes]
        return np.asarray(order[starts[:, None] + np.arange(self.n_classes)])

    def table(self, coef: Floats) -> Floats:
        """Return the coefficients as a table of columns x K, zero where there is none."""
        table = np.zeros((len(self.columns), self.n_classes))
        table[self.place, self.label] = coef
        return table

    def centred(self, coef: Floats) -> Floats:
        """Return equivalent coefficients of least norm: those of a whole column sum to zero."""
        coef = coef.copy()
        coef[self.whole] -= coef[self.whole].mean(axis=1, keepdims=True)
        return coef


@dataclass(frozen=True)
class RestrictedSoftmax(Problem):
    """Q as a function of a few coefficients, the rest of the scores held fixed.

    Attributes
    ----------
    labels : Labels
    block : Floats
        The columns they belong to, n x m.
    own : Coefficients
    ridge : Floats
        The penalty of each coefficient; the same for all of a column.
    base : Floats | float
        Eta without the columns, n x K.
    """

    labels: Labels
    block: Floats
    own: Coefficients
    ridge: Floats
    base: Floats | float = 0.0

    saturates = True  # the loss can approach zero for ever

    def at(self, coef: Floats) -> State:
        """Return value and gradient at `coef`; the predictions are kept in the state."""
        return self._moved(self.base, coef, coef)

    def along(self, state: State, direction: Floats) -> State:
        """Return value and gradient one step from `state`."""
        return self._moved(state.cache.logs, direction, state.coef + direction)

    def _moved(self, base: Floats | float, direction: Floats, coef: Floats) -> State:
        with np.errstate(over="ignore", invalid="ignore"):
            return self.state(coef, self.labels.predictions(base + self.predict(direction)))

    def predict(self, coef: Floats) -> Floats:
        """Return what the coefficients add to the scores."""
        return np.asarray(self.block @ self.own.table(coef))

    def predictions_again(self, coef: Floats, *, far: bool) -> Predictions:
        """Return the predictions of a point that has lost them.

        Where columns are `far` from zero they are centred first, and the constant that is lost with
        the rounding of intercepts is found again.
        """
        if not far:
            return self.labels.predictions(self.predict(coef))
        mean = self.labels.weights @ self.block
        table = self.own.table(coef)
        predictions = self.labels.predictions((self.block - mean) @ table + mean @ table)
        size = float(np.abs(self.block).max(axis=0) @ np.abs(table).max(axis=1))
        return self.labels.levelled(predictions, INTERCEPT_ROUNDING * size)

    def state(self, coef: Floats, predictions: Predictions) -> State:
        """Return value and gradient where the predictions are known already."""
        centred = self.own.centred(coef)
        slopes = (self.block.T @ predictions.residual)[self.own.place, self.own.label]
        value = predictions.value + ridge_penalty(self.ridge, centred)
        return State(coef, value, slopes + self.ridge * centred, predictions)

    def reach(self, direction: Floats) -> float:
        """Return how far a step along `direction` moves any score."""
        return float(np.max(np.abs(self.predict(self.own.centred(direction))), initial=0.0))

    def hessian(self, state: State) -> Floats:
        """Return the second derivative, made regular."""
        every = np.arange(len(self.ridge))
        hessian = self._regular(self._hessian_rows(state.cache, every), self.own.whole)
        return self._settled(hessian)

    def bordered(self, hessian: Floats, places: Ints, state: State) -> Floats:
        """Complete the Hessian of some whole columns, whose coefficients are at `places`."""
        missing = np.setdiff1d(np.arange(len(self.ridge)), places, assume_unique=True)
        full = np.zeros((len(self.ridge), len(self.ridge)))
        full[missing] = self._hessian_rows(state.cache, missing)
        full[:, missing] = full[missing].T
        fresh = self.own.whole[np.isin(self.own.whole, missing).all(axis=1)]
        full = self._regular(full, fresh)
        full[places[:, None], places] = hessian
        return self._settled(full)

    def _faded(self, hessian: Floats) -> NDArray[np.bool_]:
        """Which coefficients no longer matter, because Q hardly bends along them.

        Where classes are separable and there is no ridge, the probability of a class may be 1e-200
        wherever a column is not zero. A step along such a coefficient would be all rounding.
        """
        sizes = self.labels.weights @ np.square(self.block)
        return np.asarray(np.diag(hessian) < FADED_RTOL * sizes[self.own.place])

    def _settled(self, hessian: Floats) -> Floats:
        """Let coefficients that no longer matter stay where they are."""
        faded = np.flatnonzero(self._faded(hessian))
        if len(faded):
            hessian[faded] = hessian[:, faded] = 0.0
            hessian[faded, faded] = np.diag(hessian).max()
        return hessian

    def _hessian_rows(self, predictions: Predictions, wanted: Ints) -> Floats:
        """Return some rows of the second derivative of the mean loss.

        Coefficients (a, c) and (b, d) meet in the weighted sum of x_a x_b P_c ([c = d] - P_d). Two
        large products do it, a few rows of X at a time: small ones, class by class, would wait for
        threads.
        """
        n, m = self.block.shape
        place, label = self.own.place, self.own.label
        mine, rows = np.unique(place[wanted], return_inverse=True)
        total = np.zeros((len(wanted), len(place)))
        within = np.zeros((len(mine) * m, self.own.n_classes))
        step = max(256, HESSIAN_CHUNK_ENTRIES // max(1, len(place), len(mine) * m))
        for start in range(0, n, step):
            some = slice(start, start + step)
            block, shares = self.block[some], predictions.probabilities[some]
            weights = self.labels.weights[some, None]
            with np.errstate(over="ignore", invalid="ignore"):
                shared = np.take(np.sqrt(weights) * block, place, axis=1)
                shared *= np.take(shares, label, axis=1)
                ours = shared if len(wanted) == len(place) else np.take(shared, wanted, axis=1)
                total -= ours.T @ shared
                pairs = np.take(block, mine, axis=1)[:, :, None] * block[:, None, :]
                within += pairs.reshape(len(block), len(mine) * m).T @ (weights * shares)
        if not (np.isfinite(total).all() and np.isfinite(within).all()):
            raise ValueError(
                "X must hold values below about 1e150, whose squares are finite, got larger ones; "
                "divide its columns by a constant"
            )
        within = within.reshape(len(mine), m, self.own.n_classes)[rows[:, None], place, label]
        return np.asarray(total + np.where(label[wanted][:, None] == label, within, 0.0))

    def _regular(self, hessian: Floats, whole: Ints) -> Floats:
        """Add the ridge and, for each of these whole columns, the term along what changes nothing.

        It is as large as each coefficient's own curvature, so that rare classes are not drowned.
        """
        hessian[np.diag_indices_from(hessian)] += self.ridge
        own = whole[:, :, None], whole[:, None, :]
        hessian[own] -= self.ridge[whole[:, :1, None]] / self.own.n_classes
        root = np.sqrt(np.maximum(np.diag(hessian)[whole], 0.0))
        hessian[own] += root[:, :, None] * root[:, None, :]
        return hessian

    def square_root(self, state: State) -> tuple[Floats, Floats]:
        """Return a triangle R and z with R'R the Hessian and R'z the gradient.

        A row's K x K curvature diag(P) - P P' is M'M with M = (I - s s') diag(s), s = sqrt(P). The
        rows are added to the triangle a few at a time.
        """
        place, label, n_classes = self.own.place, self.own.label, self.own.n_classes
        triangle = self._penalty_root(state)
        step = max(1, HESSIAN_CHUNK_ENTRIES // (n_classes * max(1, len(place))))
        identity = np.eye(n_classes)[:, label]
        for start in range(0, len(self.block), step):
            some = slice(start, start + step)
            root = np.sqrt(self.labels.weights[some, None])
            shares = np.sqrt(state.cache.probabilities[some])
            own = shares[:, None, label]
            halves = own * (identity - shares[:, :, None] * own)
            halves *= (root * self.block[some])[:, None, place]
            residual = state.cache.residual[some] / root
            z = np.divide(residual, shares, out=np.zeros_like(residual), where=shares > 0)
            rows = np.column_stack([halves.reshape(-1, len(place)), z.ravel()])
            triangle = np.asarray(np.linalg.qr(np.vstack([triangle, rows]), mode="r"))
        root = triangle[:, :-1]
        root[:, self._faded(self._hessian_rows(state.cache, np.arange(len(place))))] = 0.0
        return root, triangle[:, -1]

    def _penalty_root(self, state: State) -> Floats:
        """Return the rows of R and z that make the ridge, and what makes the Hessian regular."""
        whole = self.own.whole
        size = len(self.ridge)
        rows = np.zeros((size + len(whole), size + 1))
        rows[:size, :size] = np.diag(np.sqrt(self.ridge))
        mean = np.sqrt(self.ridge[whole[:, :1, None]]) / self.own.n_classes
        rows[whole[:, :, None], whole[:, None, :]] -= mean
        rows[:size, -1] = np.sqrt(self.ridge) * self.own.centred(state.coef)
        curvature = 0.5 * np.diag(self.hessian(state))  # what makes it regular doubles it
        rows[size + np.arange(len(whole))[:, None], whole] = np.sqrt(curvature[whole])
        return rows
