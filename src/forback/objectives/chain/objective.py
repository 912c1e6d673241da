"""Linear-chain conditional random fields: expected minus observed counts.

    Q(beta) = -log P(labels | observations) / T + 1/2 sum_m ridge_m beta_m^2

over all T steps. Candidate ``j * K + c`` weighs column j where the label is c. Transitions, biases
and, if asked for, start and end weights are always in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from forback.core.blocks import Blocks
from forback.core.features import Features
from forback.core.objective import Likelihood, Objective, Scores
from forback.core.point import Point
from forback.core.status import Status
from forback.core.types import Floats, Ints
from forback.core.units import Units
from forback.designs.dense import Dense
from forback.designs.sparse import Sparse
from forback.objectives.chain.inference import (
    Counts,
    Logs,
    Scaled,
    Sequences,
    Weights,
    infer,
    likeliest,
)
from forback.objectives.chain.layout import Layout, Part
from forback.objectives.chain.lines import ChainLines
from forback.objectives.chain.rescaling import chain_in_range
from forback.solvers import threads
from forback.solvers.bfgs import descend, inverse_on
from forback.solvers.linalg import TINY, ridge_penalty
from forback.solvers.line_search import largest_decrease
from forback.solvers.newton import TRUST
from forback.validation.arrays import check_ridge
from forback.validation.scalars import check_choice, check_flag, check_integer, check_number
from forback.validation.sequences import check_labels, check_observations

T = TypeVar("T")

DECODE = ("viterbi", "posterior")

#: The least curvature a fit starts from where there is no ridge.
FLAT = 1e-6

#: The ridge, for a feature of size 1, that holds back what has none.
HAIR = 1e-12

#: So many candidates are scored before the best of them rules others out.
ROUND = 16

#: A decrease must miss the best by more than this, relatively, to be ruled out.
NEARLY = 1e-6


@dataclass(frozen=True)
class Fit:
    """What a point of a `ChainCRF` carries along."""

    owner: ChainCRF  #: whose point it is: nobody else can use it
    messages: Scaled | Logs
    counts: Counts  #: expected
    inverse: Floats  #: the inverse Hessian learnt on the support


class ChainCRF(Objective):
    """The negative log-likelihood per step of a linear-chain CRF, plus ridge.

    Parameters
    ----------
    X : array, CSR matrix or data frame of shape (T, D), or a list of them
        Observations: binary, real or one-hot. A list holds one sequence per entry.
    y : sequence of T labels, or a list of such sequences
        Any hashable labels.
    lengths : sequence of int, optional
        The lengths of the sequences that X holds one below the other; None: one sequence.
    ridge : float or array of length dim
        The L2 penalty, of transitions, biases, start and end weights too: the weight of a
        transition never seen would otherwise run to minus infinity. An array is per coordinate.
    start_end : bool
        Whether labels have weights for being the first and the last of a sequence.
    tol : float
        `minimise` stops when no |gradient| exceeds `tol` times the largest at zero weights, and
        no further gain is in sight.
    max_iter : int
        Steps per fit.

    Examples
    --------
    >>> import numpy as np
    >>> from forback import select
    >>> from forback.objectives import ChainCRF
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(rng.choice(["cook", "eat", "sleep"], 60), 10)
    >>> X = (rng.random((600, 5)) < np.where(y[:, None] == "cook", 0.8, 0.3)).astype(float)
    >>> path = select(ChainCRF(X, y), k=2)
    >>> [path.name(step.feature).split(":")[1] for step in path.steps]
    ['cook', 'cook']
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        lengths: Any = None,
        *,
        ridge: Any = 1e-4,
        start_end: bool = False,
        tol: float = 1e-6,
        max_iter: int = 1000,
    ) -> None:
        matrix, lengths, names = check_observations(X, lengths)
        self.classes, labels = check_labels(y, lengths)
        if len(self.classes) < 2:
            raise ValueError(
                f"y holds one label only, {self.classes.tolist()[0]!r}: in one class there is "
                "nothing to tell apart"
            )
        self.feature_names = names
        self.sequences = Sequences(matrix, lengths)
        self._layout = Layout(self.sequences, len(self.classes), check_flag(start_end, "start_end"))
        self.dim, self.n_candidates = self._layout.dim, self._layout.n_candidates
        self.ridge = check_ridge(ridge, self.dim, per="coordinate")
        self.tol = check_number(tol, "tol", low=0.0, open_low=True)
        self.max_iter = check_integer(max_iter, "max_iter", low=1)
        observed = self.sequences.counts(labels, len(self.classes))
        self._observed = self._layout.all.means(observed)

    # What the loop calls -----------------------------------------------------------------------

    def minimise(self, support: Ints, start: Point | None = None) -> Point:
        """beta-hat(F): the minimiser of Q over `support`, warm-started at `start`."""
        support = np.asarray(support, dtype=np.intp)
        part = _Restricted(self, self._layout.of(support), np.zeros(self.dim))
        first = self._guess if start is None else start.dense(self.dim)
        inverse = self._inverse(part.part, start)
        return part.minimum(first[support], inverse)

    def gradient(self, point: Point) -> Floats:
        """The gradient of Q: one product of the observations with expected minus observed."""
        expected = self._layout.all.means(self._fit(point).counts)
        return expected - self._observed + self.ridge * point.dense(self.dim)

    def decrease_if_added(self, point: Point, blocks: Blocks, *, only_best: bool = False) -> Scores:
        """Return how far Q falls when each block alone is optimised: the goodness of FoBa-obj.

        With `only_best` the most promising are solved first, in rounds: what they reach rules
        others out sooner.
        """
        if not blocks.are_single:
            falls = _each(lambda block: self._fall(point, blocks[block]), len(blocks))
            return Scores.exact(np.array(falls))
        solve = self._falls(point, blocks.coordinates)
        if not only_best:
            falls = _each(lambda block: solve(block, 0.0)[0], len(blocks))
            return Scores.exact(np.array(falls))
        order = np.argsort(-np.abs(self.gradient(point)[blocks.coordinates]), kind="stable")
        scores, n_exact, best_so_far = np.zeros(len(blocks)), 0, 0.0
        for begin, end in pairwise([*range(0, len(order), ROUND), len(order)]):
            some, limit = order[begin:end], best_so_far
            found = _each(lambda place: solve(some[place], limit), len(some))  # noqa: B023
            scores[some] = [score for score, _ in found]
            n_exact += sum(exact for _, exact in found)
            best_so_far = max(best_so_far, (1.0 - NEARLY) * float(scores[some].max()))
        return Scores(scores, n_exact)

    def increase_if_removed(
        self, point: Point, blocks: Blocks, *, below: float | None = None
    ) -> Scores:
        """Return how far Q rises when each block is set to zero without a refit: the badness."""
        beta, lines = point.dense(self.dim), self._lines(point)

        def rise(number: int) -> float:
            block = blocks[number]
            own = block[beta[block] != 0.0]
            columns, labels = np.divmod(own, len(self.classes))
            ratio = lines.log_ratio(columns, labels, -beta[own])
            saved = self._observed[own] - 0.5 * self.ridge[own] * beta[own]
            return ratio / self.sequences.n_steps + float(beta[own] @ saved)

        return Scores.exact(np.array(_each(rise, len(blocks))))

    def value_and_gradient(self, beta: Floats) -> tuple[float, Floats]:
        """Q and its gradient at any dense vector of length `dim`."""
        everywhere = _Restricted(self, self._layout.all, np.zeros(self.dim))
        return everywhere.at(np.asarray(beta, dtype=np.float64))

    def likelihood(self) -> Likelihood:
        """Return the likelihood behind Q, for information criteria."""
        return Likelihood(float(self.sequences.n_steps), self._log_likelihood)

    def _log_likelihood(self, point: Point) -> tuple[float, int]:
        penalty = ridge_penalty(self.ridge[point.support], point.coef)
        return -self.sequences.n_steps * (point.value - penalty), len(point.support)

    def rescaled(self) -> tuple[ChainCRF, Units] | None:
        """The same in units in which nothing is too small to be squared; None: it is already."""
        return chain_in_range(self)

    def in_units(self, columns: Dense | Sparse, units: Units) -> ChainCRF:
        """The same with the distinct rows in other units."""
        other = type(self).__new__(type(self))
        given = ("classes", "feature_names", "dim", "n_candidates", "tol", "max_iter")
        vars(other).update({name: getattr(self, name) for name in given})
        other.sequences = self.sequences.with_rows(columns.X)
        start_end = self.dim > self.n_candidates + len(self.classes) * (len(self.classes) + 1)
        other._layout = Layout(other.sequences, len(self.classes), start_end)
        other.ridge = np.ldexp(self.ridge, 2 * units.coef)
        other._observed = np.ldexp(self._observed, units.coef)
        return other

    # What a chain knows besides ----------------------------------------------------------------

    @cached_property
    def features(self) -> Features:
        """What the candidates are called: each column with each label."""
        width = self.n_candidates // len(self.classes)
        return Features.crossed(self.feature_names, width, self.classes, together=False)

    def weights(self, point: Point) -> Weights:
        """The weights of observations, transitions, biases, start and end."""
        return self._layout.weights(point.dense(self.dim))

    def labels(self, point: Point, decode: str = "viterbi") -> Any:
        """The likeliest labels as a whole ("viterbi"), or of each step by itself ("posterior")."""
        check_choice(decode, "decode", DECODE)
        if decode == "viterbi":
            return self.classes[likeliest(self.sequences, self.weights(point))]
        return self.classes[self.marginals(point).argmax(axis=1)]

    def marginals(self, point: Point) -> Floats:
        """The probability of each label at each step, T x K."""
        return self._fit(point).messages.marginals()

    def expected_transitions(self, point: Point) -> Floats:
        """How often each label is expected to follow each, K x K."""
        return self._fit(point).counts.pairs.copy()

    # Pieces ------------------------------------------------------------------------------------

    @cached_property
    def _steepest(self) -> float:
        """The largest |gradient| at zero weights."""
        return float(np.abs(self._layout.all.means(self._layout.at_zero) - self._observed).max())

    @cached_property
    def _guess(self) -> Floats:
        """Where to begin without a start: transitions as in a Markov chain, the rest at zero."""
        k, n = len(self.classes), self.sequences.n_steps
        places = self.n_candidates + np.arange(k * k)
        seen = n * self._observed[places].reshape(k, k) + n * self.ridge[places].mean() / k + 0.1
        logs = np.log(seen / seen.sum(axis=1, keepdims=True))
        guess = np.zeros(self.dim)
        guess[places] = (logs - logs.mean()).ravel()
        return guess

    def _fit(self, point: Point) -> Fit:
        """What the point carries along, worked out again if it has lost that."""
        if (kept := self.own_cache(point, Fit)) is not None:
            return kept
        messages = infer(self.sequences, self.weights(point))
        return Fit(self, messages, messages.counts(), np.zeros((0, 0)))

    def _inverse(self, part: Part, start: Point | None) -> Floats:
        """The inverse Hessian to begin with: what the start has learnt, or a rough diagonal."""
        fit = self.own_cache(start, Fit)
        if start is None or fit is None:
            counts, inverse = self._layout.at_zero, np.zeros((0, 0))
            learnt = np.zeros(0, dtype=np.intp)
        else:
            counts, inverse, learnt = fit.counts, fit.inverse, start.support
        curvature = part.variances(counts) + np.maximum(self.ridge[part.support], FLAT)
        return inverse_on(inverse, learnt, part.support, curvature)

    def _lines(self, point: Point) -> ChainLines:
        return ChainLines(self.sequences, self.weights(point), self._fit(point).messages)

    def _falls(self, point: Point, coordinates: Ints) -> Callable[[int, float], tuple[float, bool]]:
        """How far Q falls along each coordinate, if that is enough (see `largest_decrease`)."""
        point = replace(point, cache=self._fit(point))
        part, counts = self._layout.of(np.unique(coordinates)), self._fit(point).counts
        place = np.searchsorted(part.support, coordinates)
        expected, bend = part.means(counts)[place], part.variances(counts)[place]
        slope, weight = self.gradient(point)[coordinates], point.dense(self.dim)[coordinates]
        first = _first_steps(slope, expected, bend + self.ridge[coordinates])
        lines, n = self._lines(point), self.sequences.n_steps
        negligible = self.resolution(point)

        def solve(number: int, enough: float) -> tuple[float, bool]:
            j = int(coordinates[number])
            along, ridge = lines.line(*divmod(j, len(self.classes))), self.ridge[j]
            pull = ridge * weight[number] - self._observed[j]

            def line(step: float) -> tuple[float, float]:
                rise, turn = along(step)
                value = rise / n + step * (pull + 0.5 * ridge * step)
                return value, turn / n + pull + ridge * step

            return largest_decrease(line, slope[number], first[number], ridge, negligible, enough)

        return solve

    def _fall(self, point: Point, block: Ints) -> float:
        """How far Q falls when the coordinates of a block are optimised, the others held."""
        base = point.dense(self.dim)
        order = np.sort(block)
        part = _Restricted(self, self._layout.of(order), base)
        curvature = part.part.variances(self._fit(point).counts) + self.ridge[order]
        nothing = np.zeros((0, 0)), np.zeros(0, dtype=np.intp)
        inverse = inverse_on(*nothing, order, np.maximum(curvature, FLAT))
        return max(point.value - part.minimum(base[order], inverse).value, 0.0)


class _Restricted:
    """Q as a function of some coordinates; the others stay where `base` has them."""

    def __init__(self, objective: ChainCRF, part: Part, base: Floats) -> None:
        self.objective, self.part, self.support = objective, part, part.support
        self._base = base
        self._last: tuple[Scaled | Logs, Counts] | None = None

    def at(self, coef: Floats) -> tuple[float, Floats]:
        """Q and its gradient over the coordinates."""
        objective = self.objective
        beta = self._base.copy()
        beta[self.support] = coef
        self._last = None  # its arrays serve again
        messages = infer(objective.sequences, objective._layout.weights(beta))
        counts = messages.counts()
        self._last = messages, counts
        value = messages.log_z / objective.sequences.n_steps - float(objective._observed @ beta)
        value += ridge_penalty(objective.ridge, beta)
        own = self.support
        slopes = self.part.means(counts) - objective._observed[own] + objective.ridge[own] * coef
        return value, slopes

    def minimum(self, start: Floats, inverse: Floats) -> Point:
        """Where Q is least.

        A weight without ridge that only gains by running away is held back by a hair.
        """
        objective, sizes = self.objective, np.maximum(self.part.sizes, TINY)
        ridge = objective.ridge[self.support]
        hair = np.where(ridge == 0.0, HAIR * sizes**2, 0.0)

        def held(coef: Floats) -> tuple[float, Floats]:
            value, slopes = self.at(coef)
            return value + ridge_penalty(hair, coef), slopes + hair * coef

        found = descend(
            held, start, inverse, least=ridge + hair, steep=objective.tol * objective._steepest,
            unit=1.0, max_iter=objective.max_iter, reach=TRUST / sizes,
        )  # fmt: skip
        assert self._last is not None  # the last evaluation was made where the descent ended
        coef, fit = found.place.coef, Fit(objective, *self._last, found.inverse)
        away = (hair > 0.0) & (np.abs(coef) * sizes > TRUST)
        status = found.status
        if status is Status.CONVERGED and away.any():
            status = Status.NO_MINIMISER
        value = found.place.value - ridge_penalty(hair, coef)
        note = status.note(max_iter=objective.max_iter)
        return Point(self.support, coef, value, 0, fit, note, status)


def _first_steps(slope: Floats, expected: Floats, bend: Floats) -> Floats:
    """Where the minimum along a coordinate may lie: Newton's step, in logarithms if it is long.

    A feature that is expected E and observed O times wants a weight near log(O / E).
    """
    bend = np.maximum(bend, FLAT)
    share = np.divide(slope, expected, out=np.zeros_like(slope), where=expected > 0.0)
    share = np.clip(share, None, 1.0 - 1e-3)
    return np.where(share != 0.0, np.log1p(-share) * expected, -slope) / bend


def _each(score: Callable[[int], T], count: int) -> list[T]:
    """A score for each number; kernels let several threads work at once."""

    def some(start: int, stop: int) -> list[T]:
        return [score(number) for number in range(start, stop)]

    parts = threads.over_chunks(some, list(range(count + 1)))
    return [one for part in parts for one in part]
