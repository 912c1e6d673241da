"""Sequences of labels: log Z, expected counts, marginals, the likeliest labels.

Observation rows that repeat are kept once; everything that depends on a row is computed once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from forback.core.types import Floats, Ints
from forback.objectives.chain.kernels import logs
from forback.objectives.chain.kernels import scaled as kernels
from forback.solvers import threads

#: Sequences are shared out in about this many parts.
SHARES = 8

#: Expected counts are added up in this many parts, whatever the number of threads.
PARTS = 4

#: A recursion over some sequences, from one to another; the sum of their log Z, or 0.
Direction = Callable[[int, int], float]


@dataclass(frozen=True)
class Weights:
    """The parameters of a linear-chain CRF with D columns and K labels."""

    observe: Floats  #: D x K
    transitions: Floats  #: K x K, from the label before
    bias: Floats  #: K
    start: Floats  #: K, for the first label of a sequence
    end: Floats  #: K, for the last


class Counts(NamedTuple):
    """How often labels occur, or are expected to."""

    rows: Floats  #: U x K: each label where each distinct row is observed
    pairs: Floats  #: K x K: each label after each
    first: Floats  #: K: each label as the first of a sequence
    last: Floats  #: K: and as the last


class Sequences:
    """Observations of several sequences, one after the other, repeated rows kept once."""

    def __init__(self, X: Any, lengths: Ints) -> None:
        self.distinct, self.rows = _distinct_rows(X)  #: U x D, and its line for each step
        self.times = np.bincount(self.rows).astype(np.float64)  #: how often each occurs
        self.edges = np.concatenate(([0], np.cumsum(lengths))).astype(np.intp)
        self.starts = np.zeros(self.n_steps + 1, dtype=np.intp)
        self.starts[self.edges] = 1
        self._spare: list[tuple[Floats, Floats, Floats]] = []

    def with_rows(self, distinct: Any) -> Sequences:
        """The same sequences of other rows, as many."""
        other = Sequences.__new__(Sequences)
        vars(other).update(rows=self.rows, times=self.times, edges=self.edges, starts=self.starts)
        other.distinct, other._spare = distinct, []
        return other

    @property
    def n_steps(self) -> int:
        """The number of steps of all sequences."""
        return int(self.edges[-1])

    @property
    def n_sequences(self) -> int:
        """The number of sequences."""
        return len(self.edges) - 1

    @cached_property
    def by_column(self) -> Any:
        """The distinct rows with columns at hand: Fortran order, or CSC."""
        if sparse.issparse(self.distinct):
            return sparse.csc_array(self.distinct)
        return np.asfortranarray(self.distinct)

    def counts(self, labels: Ints, n_labels: int) -> Counts:
        """How often each of the given labels occurs where."""

        def tally(where: Ints, which: Ints, size: int) -> Floats:
            flat = np.bincount(where * n_labels + which, minlength=size * n_labels)
            return flat.reshape(size, n_labels).astype(np.float64)

        follows = self.starts[1:-1] == 0
        before, after = labels[:-1][follows], labels[1:][follows]
        first, last = labels[self.edges[:-1]], labels[self.edges[1:] - 1]
        nowhere = np.zeros(self.n_sequences, dtype=np.intp)
        return Counts(
            tally(self.rows, labels, self.distinct.shape[0]),
            tally(before, after, n_labels),
            tally(nowhere, first, 1)[0],
            tally(nowhere, last, 1)[0],
        )

    def scores(self, weights: Weights) -> Floats:
        """The score of each label where each distinct row is observed."""
        used = np.flatnonzero(weights.observe.any(axis=1))
        seen = self.by_column[:, used] @ weights.observe[used]
        return np.asarray(seen + weights.bias)

    def room(self, width: int) -> tuple[Floats, Floats, Floats]:
        """Arrays for messages; those of inferences that nobody holds any more serve again."""
        try:
            while True:  # asking first whether there are any would leave time for another thread
                arrays = self._spare.pop()
                if arrays[0].shape[1] == width:
                    return arrays
        except IndexError:
            n = self.n_steps
            return np.empty((n, width)), np.empty(n), np.empty((n, width))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_spare": []}

    def give_back(self, arrays: tuple[Floats, Floats, Floats]) -> None:
        """Let `room` hand out these arrays again."""
        self._spare.append(arrays)

    def shared_out(self, *ways: Direction) -> float:
        """Run recursions over all sequences, on several threads; the sum of what they return."""
        most = max(self.n_steps // SHARES, 1)
        cuts = np.searchsorted(self.edges, np.arange(0, self.n_steps, most))
        shares = list(pairwise(sorted({0, *map(int, cuts), self.n_sequences})))
        tasks = [(way, *share) for share in shares for way in ways]

        def some(start: int, stop: int) -> float:
            return sum(way(first, last) for way, first, last in tasks[start:stop])

        return sum(threads.over_chunks(some, list(range(len(tasks) + 1))))

    def over_steps(self, work: Callable[[int, int], Counts]) -> Counts:
        """Counts of all steps, added up part by part in an order that is always the same."""
        parts = threads.over_chunks(work, [self.n_steps * i // PARTS for i in range(PARTS + 1)])
        return Counts(*(sum(part) for part in zip(*parts, strict=True)))


def _distinct_rows(X: Any) -> tuple[Any, Ints]:
    """The rows that differ, in order of appearance, and which of them each row is.

    They are told apart by one random number each; that equals are equal is then checked.
    """
    key = X @ np.random.default_rng(0).normal(size=X.shape[1])
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    distinct, rows = X[first[order]], number[which].astype(np.intp)
    again = distinct[rows]
    same = (again != X).nnz == 0 if sparse.issparse(X) else np.array_equal(again, X)
    if not same:  # two different rows have met
        return X, np.arange(X.shape[0])
    return distinct, rows


class Scaled:
    """Messages along sequences at one set of weights, by potentials that cannot underflow."""

    def __init__(self, sequences: Sequences, weights: Weights, scores: Floats) -> None:
        self.sequences, self.n_labels = sequences, scores.shape[1]
        self.spread = _spread(weights, scores)
        self.lanes = (0,) * (-(-self.n_labels // 8) * 8)
        peaks = scores.max(axis=1)
        self.chain = kernels.Chain(
            self._potentials(scores - peaks[:, None]),
            self._potentials(weights.transitions - weights.transitions.max(), from_labels=True),
            self._potentials(weights.start - weights.start.max()),
            self._potentials(weights.end - weights.end.max()),
            sequences.rows,
            sequences.edges,
        )
        room = sequences.room(len(self.lanes))
        weakref.finalize(self, sequences.give_back, room)
        self.ahead, self.scales, self.behind = room
        n, m = sequences.n_steps, sequences.n_sequences
        taken_out = sequences.times @ peaks + (n - m) * weights.transitions.max()
        taken_out += m * (weights.start.max() + weights.end.max())
        self.log_z = sequences.shared_out(self._forward, self._backward) + float(taken_out)

    def _potentials(self, scores: Floats, from_labels: bool = False) -> Floats:
        """Exponentials, with zeros for the labels that fill up the lanes."""
        missing = len(self.lanes) - self.n_labels
        padding = [(0, 0)] * (scores.ndim - 1) + [(0, missing)]
        if from_labels:  # lines are labels too
            padding[0] = (0, missing)
        return np.pad(np.exp(scores), padding)

    def _forward(self, first: int, last: int) -> float:
        return kernels.forward(self.chain, first, last, self.lanes, self.ahead, self.scales)

    def _backward(self, first: int, last: int) -> float:
        kernels.backward(self.chain, first, last, self.lanes, self.behind)
        return 0.0

    def counts(self) -> Counts:
        """How often labels are expected to occur where."""
        width, lines, k = len(self.lanes), len(self.chain.emit), self.n_labels

        def some(begin: int, end: int) -> Counts:
            sizes = ((lines, width), (width, width), (width,), (width,))
            sums = kernels.Sums(*(np.zeros(size) for size in sizes))
            kernels.expected_counts(
                self.chain, begin, end, self.lanes, self.sequences.starts,
                self.ahead, self.scales, self.behind, sums,
            )  # fmt: skip
            return Counts(*sums)

        rows, pairs, first, last = self.sequences.over_steps(some)
        return Counts(rows[:, :k], (pairs * self.chain.mix)[:k, :k], first[:k], last[:k])

    def marginals(self) -> Floats:
        """The probability of each label at each step."""
        share = self.ahead[:, : self.n_labels] * self.behind[:, : self.n_labels]
        return np.asarray(share / share.sum(axis=1, keepdims=True))


class Logs:
    """The same by logarithms: slower, and safe for any weights."""

    def __init__(self, sequences: Sequences, weights: Weights, scores: Floats) -> None:
        self.sequences = sequences
        self.chain = _score_chain(sequences, weights, scores)
        room = sequences.room(scores.shape[1])
        weakref.finalize(self, sequences.give_back, room)
        self.ahead, _, self.behind = room
        self.log_z = sequences.shared_out(self._forward, self._backward)

    def _forward(self, first: int, last: int) -> float:
        return logs.forward_logs(self.chain, first, last, self.ahead)

    def _backward(self, first: int, last: int) -> float:
        logs.backward_logs(self.chain, first, last, self.behind)
        return 0.0

    def counts(self) -> Counts:
        """How often labels are expected to occur where."""
        lines, k = self.chain.emit.shape

        def some(begin: int, end: int) -> Counts:
            sums = kernels.Sums(np.zeros((lines, k)), np.zeros((k, k)), np.zeros(k), np.zeros(k))
            logs.expected_counts_logs(
                self.chain, begin, end, self.sequences.starts, self.ahead, self.behind, sums
            )
            return Counts(*sums)

        return self.sequences.over_steps(some)

    def marginals(self) -> Floats:
        """The probability of each label at each step."""
        total = self.ahead + self.behind
        share = np.exp(total - total.max(axis=1, keepdims=True))
        return np.asarray(share / share.sum(axis=1, keepdims=True))


def infer(sequences: Sequences, weights: Weights) -> Scaled | Logs:
    """Messages at these weights, the quick way wherever it is safe."""
    scores = sequences.scores(weights)
    safe = _spread(weights, scores) <= kernels.SAFE
    return (Scaled if safe else Logs)(sequences, weights, scores)


def _spread(weights: Weights, scores: Floats) -> float:
    """How many powers of e lie between the largest and the smallest weight a step can have."""
    parts = (weights.transitions, weights.start, weights.end)
    return float(np.ptp(scores, axis=1).max() + sum(np.ptp(part) for part in parts))


def likeliest(sequences: Sequences, weights: Weights) -> Ints:
    """The labels, by number, of highest probability for each sequence as a whole (Viterbi)."""
    scores = sequences.scores(weights)
    chain = _score_chain(sequences, weights, scores)
    choices = np.empty((sequences.n_steps, scores.shape[1]), dtype=np.int32)
    labels = np.empty(sequences.n_steps, dtype=np.intp)

    def some(first: int, last: int) -> float:
        logs.best_labels(chain, first, last, choices, labels)
        return 0.0

    sequences.shared_out(some)
    return labels


def _score_chain(sequences: Sequences, weights: Weights, scores: Floats) -> kernels.Chain:
    return kernels.Chain(
        scores, weights.transitions, weights.start, weights.end, sequences.rows, sequences.edges
    )
