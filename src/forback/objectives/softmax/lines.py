"""Q of a softmax regression when one column's coefficients move: all K of them, or one.

All K: a problem per column by kernels, the most promising first; the others are dropped as soon as
a bound allows. One: with the others held, a logistic regression of one class against the rest, so
that the lines of linear models have the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import special

from forback.core.blocks import Blocks
from forback.core.objective import Scores
from forback.core.tolerances import SMALLEST_DIVISOR
from forback.core.types import Floats, Ints
from forback.objectives.linear.kernels.lines import NO_REST, NOISE, Columns
from forback.objectives.linear.lines import Lines, edges_of, solve_columns
from forback.objectives.linear.losses import LogisticLoss, code_of
from forback.objectives.linear.problem import Response
from forback.objectives.softmax import kernels
from forback.objectives.softmax.data import SoftmaxData
from forback.objectives.softmax.problem import Predictions
from forback.solvers import threads
from forback.solvers.best_first import best_first

#: Kinds of blocks besides single coefficients: all of one column, any others, of no interest.
WHOLE = -1
OTHER = -2
INSIDE = -3


def kinds_of(blocks: Blocks, n_classes: int) -> tuple[Ints, Ints]:
    """Return what each block is and its first column.

    A kind is the class of a single coefficient, `WHOLE`, or `OTHER`.
    """
    columns, first_class = np.divmod(blocks.firsts, n_classes)
    lengths = np.diff(blocks.pointer)
    kinds = np.where(lengths == 1, first_class, OTHER)
    several = np.flatnonzero(lengths == n_classes)
    members = blocks.coordinates[blocks.pointer[several, None] + np.arange(n_classes)]
    is_whole = members == columns[several, None] * n_classes + np.arange(n_classes)
    kinds[several[is_whole.all(axis=1)]] = WHOLE
    return kinds, columns


@dataclass(frozen=True)
class SoftmaxLines:
    """Problems of one column through one point.

    Attributes
    ----------
    data : SoftmaxData
    predictions : Predictions
    coef : Floats
        The coefficients of every column, p x K.
    """

    data: SoftmaxData
    predictions: Predictions
    coef: Floats

    def decreases(self, columns: Ints, negligible: float) -> Floats:
        """Return how far Q falls by all K coefficients of each column, exactly."""
        return self._solve(columns, negligible, 0.0)[0]

    def screened_decreases(self, columns: Ints, negligible: float, best_so_far: float) -> Scores:
        """Return decreases that are exact where they may be the largest, upper bounds elsewhere.

        The gradient says roughly how good each column is.
        """

        def solve(some: Ints, best_so_far: float) -> tuple[Floats, int]:
            return self._solve(columns[some], negligible, max(best_so_far, SMALLEST_DIVISOR))

        slopes = self.data.design.back_project_all(self.predictions.residual)[columns]
        slopes += self.data.ridge[columns, None] * self.coef[columns]
        norms = np.linalg.norm(slopes, axis=1)
        promise = norms * self.data.inverse_roots[columns]
        return best_first(promise, solve, best_so_far=best_so_far, slack=NOISE * negligible)

    def _solve(self, columns: Ints, negligible: float, best_so_far: float) -> tuple[Floats, int]:
        design = self.data.design
        facts = (self.data.ridge[columns], self.coef[columns], design.largest[columns])
        solve = partial(kernels.largest_decreases, self._rows)
        return solve_columns(solve, design, columns, facts, negligible, best_so_far)

    def increases(self, columns: Ints) -> Floats:
        """Return how far Q rises when all K coefficients of each column are set to zero."""
        entries = self.data.design.entries(columns)
        own = Columns(entries, NO_REST, self.data.ridge[columns], self.coef[columns])
        out = np.empty(len(columns))
        change = partial(kernels.changes, self._rows, own, -own.coef, out)
        threads.over_chunks(change, edges_of(entries))
        return out

    def of_class(self, label: int) -> Lines:
        """Return the problems of single coefficients of one class.

        log(1 - P + P exp(a x)) is, up to a constant, a logistic loss at logit(P) + a x.
        """
        loss = LogisticLoss()
        logs = self.predictions.logs
        is_own = (self.data.codes == label).astype(np.float64)
        response = Response(loss, code_of(loss), is_own, self.data.weights)
        logit = logs[:, label] - special.logsumexp(np.delete(logs, label, axis=1), axis=1)
        coef = np.ascontiguousarray(self.coef[:, label])
        rows = response.at(logit)[1]
        return Lines(response, self.data.design, rows, self.data.ridge, coef)

    @property
    def _rows(self) -> kernels.Rows:
        return kernels.Rows(self.data.codes, self.data.weights, self.predictions.logs)
