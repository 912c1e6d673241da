"""Q of a softmax regression when one column's coefficients move: all K of them, or one.

All K: a problem per column by kernels, the most promising first; the others are dropped as soon as
a bound allows. One: with the others held, a logistic regression of one class against the rest, so
that `lines` has the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from forback.core.blocks import Blocks
from forback.core.point import Point
from forback.core.types import Floats, Ints
from forback.designs.design import Design
from forback.objectives.linear.lines import Lines, edges_of, good_enough
from forback.objectives.linear.losses import LogisticLoss, code_of
from forback.objectives.linear.problem import Response
from forback.objectives.softmax import kernels
from forback.objectives.softmax.problem import Labels, RowScores
from forback.solvers import threads


@dataclass(frozen=True)
class Kinds:
    """Blocks by what they consist of."""

    singles: Ints  #: the blocks of one coefficient
    coordinates: Ints  #: what these are
    whole: Ints  #: the blocks of all coefficients of one column
    columns: Ints  #: which these are
    others: Ints
    n_classes: int

    @classmethod
    def of(cls, blocks: Blocks, n_classes: int, outside: Point | None = None) -> Kinds:
        """Tell blocks apart; with `outside`, only those not in the support of that point."""
        starts, lengths = blocks.pointer[:-1], np.diff(blocks.pointer)
        first = blocks.coordinates[starts]
        single, whole = lengths == 1, (lengths == n_classes) & (first % n_classes == 0)
        for c in range(1, n_classes):
            whole[whole] = blocks.coordinates[starts[whole] + c] == first[whole] + c
        free = np.ones(len(blocks), dtype=bool)
        if outside is not None:
            free = ~np.isin(first, outside.support)
        singles, rows = np.flatnonzero(single & free), np.flatnonzero(whole & free)
        others = np.flatnonzero(~(single | whole) & free)
        return cls(singles, first[singles], rows, first[rows] // n_classes, others, n_classes)

    def by_class(self) -> Iterator[tuple[int, Ints, Ints]]:
        """The single coefficients class by class: the class, the blocks, their columns."""
        labels = self.coordinates % self.n_classes
        for label in np.unique(labels):
            own = labels == label
            yield int(label), self.singles[own], self.coordinates[own] // self.n_classes


@dataclass(frozen=True)
class SoftmaxLines:
    """Problems of one column through one point."""

    labels: Labels
    design: Design
    scores: RowScores
    ridge: Floats  #: of every column
    coef: Floats  #: of every column, p x K

    def decreases(self, columns: Ints, negligible: float) -> Floats:
        """How far Q falls by all K coefficients of each column, exactly."""
        return self._solve(columns, negligible, 0.0)[0]

    def screened_decreases(
        self, columns: Ints, promise: Floats, negligible: float, least: float
    ) -> tuple[Floats, int]:
        """The same where it may be the largest and above `least`, a bound elsewhere.

        Also returns how many are exact. `promise` says roughly how good each column is.
        """
        scores, solved = np.empty(len(columns)), 0
        order, enough = np.argsort(-promise, kind="stable"), max(least, 1e-300)
        for some in (order[:1], order[1:]):
            if len(some):
                scores[some], exact = self._solve(columns[some], negligible, enough)
                solved += exact
                enough = max(enough, good_enough(scores[some], negligible))
        return scores, solved

    def _solve(self, columns: Ints, negligible: float, enough: float) -> tuple[Floats, int]:
        out, solved, width = np.empty(len(columns)), 0, self.design.columns_at_once
        for begin in range(0, len(columns), width):
            own, found = columns[begin : begin + width], out[begin : begin + width]
            entries = self.design.entries(own)
            given = (self.ridge[own], self.coef[own], self.design.largest[own])
            limits = (negligible, enough, found)

            def some(start: int, stop: int, given: Any = (entries, *given, *limits)) -> int:
                return kernels.largest_decreases(self._scored, *given, start, stop)  # type: ignore[call-arg]

            solved += sum(threads.over_chunks(some, edges_of(entries)))
            if enough > 0.0:
                enough = max(enough, good_enough(found, negligible))
        return out, solved

    def increases(self, columns: Ints) -> Floats:
        """How far Q rises when all K coefficients of each column are set to zero, exactly."""
        out, entries = np.empty(len(columns)), self.design.entries(columns)
        ridge, coef = self.ridge[columns], self.coef[columns]

        def some(start: int, stop: int) -> None:
            kernels.changes(self._scored, entries, ridge, coef, -coef, out, start, stop)

        threads.over_chunks(some, edges_of(entries))
        return out

    def of_class(self, label: int) -> Lines:
        """The problems of single coefficients of one class.

        log(1 - P + P exp(a x)) is, up to a constant, a logistic loss at logit(P) + a x.
        """
        loss = LogisticLoss()
        mine = (self.labels.codes == label).astype(np.float64)
        response = Response(loss, code_of(loss), mine, self.labels.weights)
        others = np.delete(self.scores.logs, label, axis=1)
        logit = self.scores.logs[:, label] - special.logsumexp(others, axis=1)
        coef = np.ascontiguousarray(self.coef[:, label])
        return Lines(response, self.design, response.at(logit)[1], self.ridge, coef)

    @property
    def _scored(self) -> kernels.Scored:
        return kernels.Scored(self.labels.codes, self.labels.weights, self.scores.logs)
