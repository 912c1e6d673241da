"""A linear-chain CRF by listing every sequence of labels: slow, literal, sharing no code.

Coordinates are ordered as in the library: column by column with one weight per label, then the
transitions, the biases and, with `start_end`, the start and end weights.
"""

from itertools import pairwise, product

import numpy as np


def feature_vector(X, labels, n_labels, start_end):
    """What each coordinate counts on one sequence with these labels."""
    k, width = n_labels, X.shape[1]
    observe, mix = np.zeros((width, k)), np.zeros((k, k))
    bias, start, end = np.zeros(k), np.zeros(k), np.zeros(k)
    for x, label in zip(X, labels, strict=True):
        observe[:, label] += x
        bias[label] += 1.0
    for before, after in pairwise(labels):
        mix[before, after] += 1.0
    start[labels[0]] = end[labels[-1]] = 1.0
    ends = [start, end] if start_end else []
    return np.concatenate([observe.ravel(), mix.ravel(), bias, *ends])


class Listing:
    """All sequences of labels for some observations, and what each of them counts."""

    def __init__(self, parts, n_labels, start_end=True):
        self.parts = [np.asarray(part, dtype=float) for part in parts]
        self.n_labels = n_labels
        self.all = [
            list(product(range(n_labels), repeat=len(part))) for part in self.parts
        ]  # fmt: skip
        self.counts = [
            np.array([feature_vector(part, labels, n_labels, start_end) for labels in every])
            for part, every in zip(self.parts, self.all, strict=True)
        ]
        self.dim = self.counts[0].shape[1]

    def log_z(self, beta):
        return sum(_log_sum(counts @ beta) for counts in self.counts)

    def probabilities(self, beta):
        """For each sequence, how likely each labelling is."""
        return [
            np.exp(counts @ beta - _log_sum(counts @ beta)) for counts in self.counts
        ]  # fmt: skip

    def expected(self, beta):
        """The expected count of every coordinate."""
        pairs = zip(self.probabilities(beta), self.counts, strict=True)
        return sum(p @ counts for p, counts in pairs)

    def covariance(self, beta):
        """The second derivative of log Z."""
        total = np.zeros((self.dim, self.dim))
        for p, counts in zip(self.probabilities(beta), self.counts, strict=True):
            centred = counts - p @ counts
            total += centred.T @ (p[:, None] * centred)
        return total

    def marginals(self, beta):
        """The probability of each label at each step of all sequences."""
        found = []
        for p, every in zip(self.probabilities(beta), self.all, strict=True):
            labels = np.array(every)
            found += [
                [p[labels[:, step] == c].sum() for c in range(self.n_labels)]
                for step in range(labels.shape[1])
            ]
        return np.array(found)

    def viterbi(self, beta):
        """The likeliest labels of all sequences."""
        pairs = zip(self.all, self.counts, strict=True)
        return np.concatenate([every[int(np.argmax(counts @ beta))] for every, counts in pairs])


def _log_sum(scores):
    largest = scores.max()
    return largest + np.log(np.exp(scores - largest).sum())


class ChainQ:
    """Q of a `ChainCRF`, as `reference.algorithm1` wants it."""

    real = False

    def __init__(self, parts, labels, n_labels, *, ridge=1e-4, start_end=False):
        self.listing = Listing(parts, n_labels, start_end)
        self.dim = self.listing.dim
        self.n_candidates = parts[0].shape[1] * n_labels
        self.n_steps = sum(map(len, parts))
        self.ridge = np.broadcast_to(np.asarray(ridge, dtype=float), self.dim)
        observed = zip(self.listing.parts, labels, strict=True)
        self.observed = sum(
            feature_vector(part, list(own), n_labels, start_end) for part, own in observed
        )
        self.unit = 1.0

    def value(self, beta):
        likelihood = self.observed @ beta - self.listing.log_z(beta)
        return -likelihood / self.n_steps + 0.5 * self.ridge @ beta**2

    def gradient(self, beta):
        return (self.listing.expected(beta) - self.observed) / self.n_steps + self.ridge * beta

    def hessian(self, beta):
        return self.listing.covariance(beta) / self.n_steps + np.diag(self.ridge)


def log_z_by_columns(emit, mix, start, end):
    """Log Z of one long sequence, by a tree of log-sum-exp products of K x K matrices.

    `emit` holds the scores of each label at each step.
    """
    if len(emit) == 1:
        return _log_sum(start + emit[0] + end)
    first = start + emit[0]
    steps = mix[None] + emit[1:, None, :]
    while len(steps) > 1:
        odd = steps[len(steps) - len(steps) % 2 :]
        left, right = steps[0 : len(steps) - len(odd) : 2], steps[1 : len(steps) : 2]
        sums = left[:, :, :, None] + right[:, None, :, :]
        largest = sums.max(axis=2)
        pairs = largest + np.log(np.exp(sums - largest[:, :, None, :]).sum(axis=2))
        steps = np.concatenate([pairs, odd])
    return _log_sum((first[:, None] + steps[0] + end[None, :]).ravel())
