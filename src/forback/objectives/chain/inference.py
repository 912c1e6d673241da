"""Inference in linear chains: log Z, expected counts, marginals, the most probable labels.

Observation rows that repeat are kept once; everything that depends on a row is computed once.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import softmax

from forback.core.types import Floats, Ints
from forback.objectives.chain.kernels import forward_backward, log_space
from forback.objectives.chain.kernels.forward_backward import (
    MAX_LOG_SPREAD,
    Chain,
    Counts,
    Messages,
)
from forback.solvers import threads

#: Sequences are shared out among threads in about this many parts.
PARTS_OF_SEQUENCES = 8

#: Expected counts are added up in this many parts of the steps, whatever the number of threads.
PARTS_OF_STEPS = 4

#: A recursion over sequences, from one to another; it may return the sum of their log Z.
Recursion = Callable[[int, int], float | None]


@dataclass(frozen=True)
class Weights:
    """The parameters of a linear-chain CRF with D columns and K labels.

    Attributes
    ----------
    observe : Floats
        D x K.
    transitions : Floats
        K x K, from the label before.
    bias : Floats
        K.
    start : Floats
        K, for the first label of a sequence.
    end : Floats
        K, for the last.
    """

    observe: Floats
    transitions: Floats
    bias: Floats
    start: Floats
    end: Floats


@dataclass(frozen=True, eq=False)
class Sequences:
    """Observations of several sequences, one after the other, repeated rows kept once.

    Attributes
    ----------
    distinct : Any
        The U different rows, U x D.
    rows : Ints
        The distinct row observed at each step, by its number.
    edges : Ints
        Where sequences begin; the last entry is the number of steps.
    _spare : list[Messages]
    """

    distinct: Any
    rows: Ints
    edges: Ints
    _spare: list[Messages] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def of(cls, X: Any, lengths: Ints) -> Sequences:
        """Take apart a matrix that holds sequences of these lengths one below the other."""
        edges = np.concatenate(([0], np.cumsum(lengths))).astype(np.intp)
        return cls(*_distinct_rows(X), edges)

    @property
    def n_steps(self) -> int:
        """The number of steps of all sequences."""
        return int(self.edges[-1])

    @property
    def n_sequences(self) -> int:
        """The number of sequences."""
        return len(self.edges) - 1

    @cached_property
    def times(self) -> Floats:
        """How often each distinct row occurs."""
        return np.bincount(self.rows).astype(np.float64)

    @cached_property
    def is_first(self) -> Ints:
        """1 for the first step of a sequence, else 0; a 1 follows the last step."""
        return np.bincount(self.edges, minlength=self.n_steps + 1)

    @cached_property
    def by_column(self) -> Any:
        """The distinct rows with columns at hand: Fortran order, or CSC."""
        if sparse.issparse(self.distinct):
            return sparse.csc_array(self.distinct)
        return np.asfortranarray(self.distinct)

    def column(self, number: int) -> Floats:
        """Return a column of the distinct rows, dense."""
        found = self.by_column[:, [number]]
        return np.asarray(found.toarray() if sparse.issparse(found) else found)[:, 0]

    def counts(self, labels: Ints, n_labels: int) -> Counts:
        """Count how often each of the given labels occurs where."""

        def tally(numbers: Ints, *shape: int) -> Floats:
            counts = np.bincount(numbers, minlength=math.prod(shape))
            return counts.reshape(shape).astype(np.float64)

        k = n_labels
        follows = self.is_first[1:-1] == 0
        return Counts(
            tally(self.rows * k + labels, self.distinct.shape[0], k),
            tally((labels[:-1] * k + labels[1:])[follows], k, k),
            tally(labels[self.edges[:-1]], k),
            tally(labels[self.edges[1:] - 1], k),
        )

    def score_chain(self, weights: Weights) -> Chain:
        """Return logarithms of potentials: scores of labels where each distinct row is observed."""
        used = np.flatnonzero(weights.observe.any(axis=1))
        scores = np.asarray(self.by_column[:, used] @ weights.observe[used] + weights.bias)
        others = (weights.transitions, weights.start, weights.end)
        return Chain(scores, *others, self.rows, self.edges, self.is_first, width=())

    def borrow(self, width: int) -> Messages:
        """Return arrays for messages; those of inferences that nobody holds serve again."""
        try:
            while True:  # asking first whether there are any would leave time for another thread
                arrays = self._spare.pop()
                if arrays.alpha.shape[1] == width:
                    return arrays
        except IndexError:
            n = self.n_steps
            return Messages(np.empty((n, width)), np.empty(n), np.empty((n, width)))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_spare": []}

    def over_sequences(self, *recursions: Recursion) -> float:
        """Run recursions over all sequences, on several threads; add up what they return."""
        size = max(self.n_steps // PARTS_OF_SEQUENCES, 1)
        cuts = np.searchsorted(self.edges, np.arange(0, self.n_steps, size))
        parts = pairwise(sorted({0, *map(int, cuts), self.n_sequences}))
        tasks = [partial(recursion, *part) for part in parts for recursion in recursions]
        return sum(threads.each(lambda task: task() or 0.0, tasks))


def _distinct_rows(X: Any) -> tuple[Any, Ints]:
    """Return the rows that differ, in order of appearance, and which of them each row is.

    They are told apart by one random number each; that equals are equal is then checked.
    """
    key = X @ np.random.default_rng(0).normal(size=X.shape[1])
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    distinct = X[first[order]]
    rows = np.argsort(order)[which]
    again = distinct[rows]
    same = (again != X).nnz == 0 if sparse.issparse(X) else np.array_equal(again, X)
    if not same:  # two different rows share a number
        return X, np.arange(X.shape[0])
    return distinct, rows


class Inference:
    """Forward and backward messages along sequences at one set of weights.

    By potentials, which is quick, where they span few enough powers of e (`log_spread`); elsewhere
    by logarithms, which is slower, and safe for any weights.
    """

    def __init__(self, sequences: Sequences, weights: Weights) -> None:
        scores = sequences.score_chain(weights)
        spreads = [np.ptp(scores.emission, axis=1).max(), *map(np.ptp, scores[1:4])]
        self.sequences = sequences
        self.weights = weights
        self.n_labels = len(weights.bias)
        self.log_spread = float(sum(spreads))
        self.is_scaled = self.log_spread <= MAX_LOG_SPREAD
        self.chain = scores
        log_offset = 0.0
        if self.is_scaled:
            self.chain, log_offset = _exponentiated(sequences, scores)
        self.messages = sequences.borrow(self.chain.emission.shape[1])
        weakref.finalize(self, sequences._spare.append, self.messages)
        both = (self._kernels.forward, self._kernels.backward)
        recursions = [partial(kernel, self.chain, self.messages) for kernel in both]
        self.log_z = sequences.over_sequences(*recursions) + log_offset

    @property
    def _kernels(self) -> ModuleType:
        return forward_backward if self.is_scaled else log_space

    def counts(self) -> Counts:
        """Return how often labels are expected to occur where."""

        def some(begin: int, end: int) -> Counts:
            counts = Counts(*(np.zeros(part.shape) for part in self.chain[:4]))
            self._kernels.expected_counts(self.chain, self.messages, counts, begin, end)
            return counts

        k = self.n_labels
        edges = [self.sequences.n_steps * i // PARTS_OF_STEPS for i in range(PARTS_OF_STEPS + 1)]
        parts = threads.over_chunks(some, edges)
        rows, pairs, first, last = (sum(part) for part in zip(*parts, strict=True))
        return Counts(rows[:, :k], pairs[:k, :k], first[:k], last[:k])

    def marginals(self) -> Floats:
        """Return the probability of each label at each step."""
        alpha = self.messages.alpha[:, : self.n_labels]
        beta = self.messages.beta[:, : self.n_labels]
        share = alpha * beta if self.is_scaled else softmax(alpha + beta, axis=1)
        return np.asarray(share / share.sum(axis=1, keepdims=True))


def _exponentiated(sequences: Sequences, scores: Chain) -> tuple[Chain, float]:
    """Return potentials of at most 1, labels padded to a multiple of 8, and what log Z lacks."""
    missing = -len(scores.start) % 8
    peaks = scores.emission.max(axis=1)
    emission = np.pad(np.exp(scores.emission - peaks[:, None]), [(0, 0), (0, missing)])
    others = scores[1:4]
    transition, start, end = (np.pad(np.exp(part - part.max()), (0, missing)) for part in others)
    times = (sequences.n_steps - sequences.n_sequences, *[sequences.n_sequences] * 2)
    taken_out = sum(n * part.max() for n, part in zip(times, others, strict=True))
    log_offset = float(sequences.times @ peaks + taken_out)
    potentials = (emission, transition, start, end)
    return Chain(*potentials, *scores[4:7], width=(0,) * emission.shape[1]), log_offset


def viterbi(sequences: Sequences, weights: Weights) -> Ints:
    """Return the most probable labels of each sequence as a whole, by number."""
    chain = sequences.score_chain(weights)
    choices = np.empty((sequences.n_steps, len(weights.bias)), dtype=np.int32)
    labels = np.empty(sequences.n_steps, dtype=np.intp)
    sequences.over_sequences(partial(log_space.viterbi, chain, choices, labels))
    return labels
