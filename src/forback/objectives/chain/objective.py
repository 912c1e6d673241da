"""Linear-chain conditional random fields: expected minus observed counts.

    Q(beta) = -log P(labels | observations) / T + 1/2 sum_m ridge_m beta_m^2

over all T steps. Candidate ``j * K + c`` weighs column j where the label is c. Transitions, biases
and, if asked for, start and end weights are always in.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, final

import numpy as np

from forback.core.blocks import Blocks
from forback.core.features import Features
from forback.core.objective import Likelihood, Objective, Scores
from forback.core.point import Point
from forback.core.types import Floats, Ints
from forback.core.units import Units
from forback.objectives.chain.data import ChainData
from forback.objectives.chain.fit import NOTHING_LEARNT, ChainCache, minimise, solve
from forback.objectives.chain.inference import Inference, Sequences, Weights, viterbi
from forback.objectives.chain.layout import Coordinates, Layout, unpack
from forback.objectives.chain.lines import line, log_ratio
from forback.objectives.chain.problem import RestrictedChain, first_steps
from forback.objectives.chain.rescaling import chain_in_range, divided
from forback.solvers import threads
from forback.solvers.best_first import Solve, best_first
from forback.solvers.bfgs import inverse_on
from forback.solvers.linalg import ridge_penalty
from forback.solvers.one_variable import largest_decrease
from forback.validation.arrays import check_ridge
from forback.validation.scalars import check_choice, check_flag, check_integer, check_number
from forback.validation.sequences import check_labels, check_observations, check_several_classes

DECODE = ("viterbi", "posterior")

#: So many candidates are scored before the best of them rules others out.
CANDIDATES_PER_ROUND = 16


class ChainObjective(Objective):
    """A linear-chain CRF made from checked parts; `ChainCRF` is the one that checks them."""

    name = "ChainCRF"

    def __init__(self, data: ChainData) -> None:
        self.data = data
        self.feature_names = data.names
        self.dim = data.dim
        self.n_candidates = data.n_candidates
        self.sequences = data.sequences
        self.classes = data.classes
        self.ridge = data.ridge

    @cached_property
    def features(self) -> Features:
        """What the candidates are called: each column with each label."""
        width = self.n_candidates // len(self.classes)
        return Features.crossed(self.feature_names, width, self.classes, together=False)

    # What the loop calls -----------------------------------------------------------------------

    def minimise(self, support: Ints, start: Point | None = None) -> Point:
        """Return beta-hat(F), the minimiser of Q over a support, by a quasi-Newton method.

        Parameters
        ----------
        support : int array
            Sorted coordinates.
        start : Point, optional
            Where to begin, and whose inverse Hessian to begin with; of any support.

        Returns
        -------
        Point
        """
        return minimise(self.data, self, np.asarray(support, dtype=np.intp), start)

    def value_and_gradient(self, beta: Floats) -> tuple[float, Floats]:
        """Return Q and its gradient at any dense vector of weights.

        Parameters
        ----------
        beta : float array of length dim

        Returns
        -------
        value : float
        gradient : float array of length dim
        """
        everywhere = RestrictedChain(self.data, self.data.all)
        return everywhere.at(np.asarray(beta, dtype=np.float64))

    def gradient(self, point: Point) -> Floats:
        """Return the gradient of Q at a point: features times expected minus observed counts.

        Parameters
        ----------
        point : Point

        Returns
        -------
        float array of length dim
        """
        expected = self.data.all.means(self._cache(point).counts)
        return expected - self.data.observed + self.ridge * point.dense(self.dim)

    def decrease_if_added(self, point: Point, blocks: Blocks, *, only_best: bool = False) -> Scores:
        """Return how far Q falls when each block alone is optimised: the goodness of FoBa-obj.

        Parameters
        ----------
        point : Point
        blocks : Blocks
        only_best : bool
            Whether only scores that may be the largest need be exact; the others may be upper
            bounds. The most promising are solved first, in rounds, and rule others out.

        Returns
        -------
        Scores
        """
        if not blocks.are_single:
            decrease = partial(self._block_decrease, point)
            return Scores.exact(np.array(threads.each(decrease, blocks)))
        solve = self._decreases_along(point, blocks.coordinates)
        if not only_best:
            return Scores.exact(solve(np.arange(len(blocks)), 0.0)[0])
        promise = np.abs(self.gradient(point)[blocks.coordinates])
        return best_first(promise, solve, first=CANDIDATES_PER_ROUND, batch=CANDIDATES_PER_ROUND)

    def increase_if_removed(
        self, point: Point, blocks: Blocks, *, below: float | None = None
    ) -> Scores:
        """Return how far Q rises when each block is set to zero without a refit: the badness.

        Parameters
        ----------
        point : Point
        blocks : Blocks
            Blocks inside the support.
        below : float, optional
            Not needed here: all scores are exact.

        Returns
        -------
        Scores
        """
        beta = point.dense(self.dim)
        inference = self._cache(point).inference

        def increase(block: Ints) -> float:
            own = block[beta[block] != 0.0]
            columns, labels = np.divmod(own, len(self.classes))
            ratio = log_ratio(inference, columns, labels, -beta[own])
            saved = self.data.observed[own] - 0.5 * self.ridge[own] * beta[own]
            return ratio / self.sequences.n_steps + float(beta[own] @ saved)

        return Scores.exact(np.array(threads.each(increase, blocks)))

    def promise(self, point: Point, blocks: Blocks) -> Floats:
        """Return half of slope^2 / curvature, summed over the weights of each block.

        Parameters
        ----------
        point : Point
        blocks : Blocks

        Returns
        -------
        float array
            As if steps did not depend on each other.
        """
        variances = self.data.all.variances(self._cache(point).counts) + self.ridge
        slopes = self.gradient(point)
        falls = np.zeros_like(slopes)
        np.divide(0.5 * slopes * slopes, variances, out=falls, where=variances > 0.0)
        return blocks.sums(falls)

    def likelihood(self) -> Likelihood:
        """Return the likelihood behind Q, for information criteria: that of the labels.

        Returns
        -------
        Likelihood
            Its observations are the steps of all sequences.
        """
        return Likelihood(float(self.sequences.n_steps), self._log_likelihood)

    def _log_likelihood(self, point: Point) -> tuple[float, int]:
        penalty = ridge_penalty(self.ridge[point.support], point.coef)
        return -self.sequences.n_steps * (point.value - penalty), len(point.support)

    def scaled(self, scales: Floats, ridge: float) -> ChainObjective:
        """Return this chain with its columns divided by scales, under another ridge."""
        return ChainObjective(divided(self.data, scales, ridge))

    def rescaled(self) -> tuple[ChainObjective, Units] | None:
        """Return this chain in units in which no column is too small, or too large, to be squared.

        Returns
        -------
        tuple of ChainObjective and Units, or None
            None where all columns are within range already.
        """
        found = chain_in_range(self.data)
        return None if found is None else (ChainObjective(found[0]), found[1])

    # What a chain knows besides ----------------------------------------------------------------

    def weights(self, point: Point) -> Weights:
        """Return the weights of observations, transitions, biases, start and end.

        Parameters
        ----------
        point : Point

        Returns
        -------
        Weights
        """
        return unpack(point.dense(self.dim), self.n_candidates, self.data.n_labels)

    def labels(self, point: Point, decode: str = "viterbi") -> Any:
        """Return the most probable labels of the sequences.

        Parameters
        ----------
        point : Point
        decode : {"viterbi", "posterior"}
            Whether labels are the most probable as a whole, or each step's by itself.

        Returns
        -------
        array of length T
        """
        check_choice(decode, "decode", DECODE)
        if decode == "viterbi":
            return self.classes[viterbi(self.sequences, self.weights(point))]
        return self.classes[self.marginals(point).argmax(axis=1)]

    def marginals(self, point: Point) -> Floats:
        """Return the probability of each label at each step.

        Parameters
        ----------
        point : Point

        Returns
        -------
        float array of shape (T, K)
        """
        return self._cache(point).inference.marginals()

    def expected_transitions(self, point: Point) -> Floats:
        """Return how often each label is expected to follow each.

        Parameters
        ----------
        point : Point

        Returns
        -------
        float array of shape (K, K)
            One row per label before.
        """
        return self._cache(point).counts.pairs.copy()

    # Pieces ------------------------------------------------------------------------------------

    def _cache(self, point: Point) -> ChainCache:
        """Return what the point carries along, worked out again if it has lost that."""
        if (cache := self.own_cache(point, ChainCache)) is not None:
            return cache
        inference = Inference(self.sequences, self.weights(point))
        return ChainCache(self, inference, inference.counts(), np.zeros((0, 0)))

    def _decreases_along(self, point: Point, coordinates: Ints) -> Solve:
        """Return what solves the problems of single coordinates, for screening best first."""
        cache = self._cache(point)
        everywhere = self.data.all
        expected = everywhere.means(cache.counts)
        pull = self.ridge * point.dense(self.dim) - self.data.observed
        slope = expected + pull
        first = first_steps(slope, expected, everywhere.variances(cache.counts) + self.ridge)
        n_steps = self.sequences.n_steps
        negligible = self.resolution(point)

        def decrease(best_so_far: float, coordinate: int) -> tuple[float, bool]:
            columns, labels = np.divmod([coordinate], len(self.classes))
            change_along = line(cache.inference, columns, labels, np.ones(1))
            ridge = self.ridge[coordinate]

            def whole(step: float) -> tuple[float, float]:
                change, derivative = change_along(step)
                value = change / n_steps + step * (pull[coordinate] + 0.5 * ridge * step)
                return value, derivative / n_steps + pull[coordinate] + ridge * step

            start = slope[coordinate], first[coordinate]
            return largest_decrease(whole, *start, ridge, negligible, best_so_far)

        def solve(some: Ints, best_so_far: float) -> tuple[Floats, int]:
            found = np.array(threads.each(partial(decrease, best_so_far), coordinates[some]))
            values, are_exact = found.reshape(-1, 2).T
            return values, int(are_exact.sum())

        return solve

    def _block_decrease(self, point: Point, block: Ints) -> float:
        """Return how far Q falls when the coordinates of a block are optimised, others held."""
        base = point.dense(self.dim)
        support = np.sort(block)
        problem = RestrictedChain(self.data, Coordinates(self.data, support), base)
        curvature = problem.curvature(self._cache(point).counts)
        inverse = inverse_on(*NOTHING_LEARNT, support, curvature)
        return max(point.value - solve(problem, self, base[support], inverse).value, 0.0)


@final
class ChainCRF(ChainObjective):
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
        classes, labels = check_labels(y, lengths)
        check_several_classes(classes)
        sequences = Sequences.of(matrix, lengths)
        parts = (sequences, len(classes), check_flag(start_end, "start_end"))
        layout = Layout(*parts)
        data = ChainData(
            *parts,
            classes,
            layout.all.means(sequences.counts(labels, len(classes))),
            ridge=check_ridge(ridge, layout.dim, per="coordinate"),
            tol=check_number(tol, "tol", low=0.0, open_low=True),
            max_iter=check_integer(max_iter, "max_iter", low=1),
            names=names,
        )
        super().__init__(data)
