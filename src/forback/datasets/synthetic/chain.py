"""Sequences whose labels depend on features and on the previous label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forback.core.types import Floats, Ints
from forback.validation.scalars import check_generator, check_integer

#: Number of values of each of the four features of `make_chain`, besides 0 for "absent".
N_VALUES = (2, 3, 4, 5)

#: Number of labels of `make_chain`.
N_LABELS = 4


@dataclass(frozen=True)
class Chain:
    """Sentences of words, each with four categorical features and a label.

    Attributes
    ----------
    X : ndarray of shape (n_steps, 14)
        One indicator per feature and value; the value 0, "absent", has none.
    y : ndarray of shape (n_steps,)
        Labels 1 to 4.
    lengths : ndarray of shape (n_sentences,)
        Number of words of each sentence, in order.
    groups : ndarray of shape (14,)
        The feature, 0 to 3, that each column of X belongs to.
    categories : ndarray of shape (n_steps, 4)
        The features themselves, 0 for "absent".
    """

    X: NDArray[np.uint8]
    y: Ints
    lengths: Ints
    groups: Ints
    categories: NDArray[np.uint8]


def make_chain(n_steps: int = 800, *, random_state: Any = 0) -> Chain:
    """Simulate sequences whose labels depend on a word's features and on the previous label.

    The generator is the one of Mark Schmidt's crfChain for Matlab (`crfChain_genSynthetic`), which
    the paper's appendix uses with 800 words. It draws, word by word:

    - Feature f of the four is uniform on 0, ..., f + 1 (so 2, 3, 4 and 5 values), 0 meaning
      "absent", independently of everything else.
    - The first word's label is uniform on 0, ..., 4, whatever its features; 0 stands for the place
      between two sentences.
    - Each later label j in 1, ..., 4 is drawn with a weight of 10^(j-1) times the number of
      features equal to j; a feature equal to 5 has no effect. Let m be the largest weight. The
      previous label keeps a weight of at least m / 10. The sentence ends, as label 0, with weight
      m / 10, or m / 2 after label 4; no sentence is empty.
    - If no feature equals 1, 2, 3 or 4, all weights are zero (one word in 180). The original then
      divides zero by zero and its sampler falls through to the last label, 4; so does this one.

    The original counts the places between sentences as words, with features of their own. Here
    they are left out, and words are drawn until there are `n_steps`; the last sentence is cut
    there.

    Parameters
    ----------
    n_steps : int
        Number of words, over all sentences.
    random_state : int, numpy.random.Generator or None
        Seed or generator; None draws different data at every call.

    Returns
    -------
    Chain
        Holds `X`, `y`, `lengths`, `groups` and `categories`.

    Examples
    --------
    >>> chain = make_chain(800)
    >>> chain.X.shape, int(chain.lengths.sum())
    ((800, 14), 800)
    >>> chain.groups
    array([0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3])
    """
    n_steps = check_integer(n_steps, "n_steps", low=1)
    rng = check_generator(random_state)
    # No two sentence ends are adjacent, so at most every second row is one.
    n_rows = 2 * n_steps + 1
    features = np.stack([rng.integers(0, k + 1, n_rows) for k in N_VALUES], axis=1)
    labels = _draw_labels(features, rng)
    words = np.flatnonzero(labels)[:n_steps]
    sentences = np.cumsum(labels == 0)[words]
    categories = features[words].astype(np.uint8)
    groups = np.repeat(np.arange(len(N_VALUES)), N_VALUES)
    values = np.concatenate([np.arange(1, k + 1) for k in N_VALUES])
    return Chain(
        X=(categories[:, groups] == values).astype(np.uint8),
        y=labels[words],
        lengths=np.unique(sentences, return_counts=True)[1],
        groups=groups,
        categories=categories,
    )


def _draw_labels(features: NDArray[np.int64], rng: np.random.Generator) -> Ints:
    """Draw a label per row, 0 where a sentence ends."""
    levels = [10.0**j * (features == j + 1).sum(axis=1) for j in range(N_LABELS)]
    weights = np.stack([np.zeros(len(features)), *levels], axis=1)
    uniforms = rng.random(len(features))
    labels = np.empty(len(features), dtype=np.intp)
    labels[0] = int(uniforms[0] * (N_LABELS + 1))
    for row in range(1, len(features)):
        labels[row] = _draw_label(weights[row], int(labels[row - 1]), float(uniforms[row]))
    return labels


def _draw_label(weight: Floats, previous: int, uniform: float) -> int:
    """Draw the next label by inversion; `weight`, by label, is overwritten."""
    largest = weight.max()
    weight[previous] = max(weight[previous], largest / 10)
    weight[0] = 0.0 if previous == 0 else largest / (2 if previous == N_LABELS else 10)
    total = np.cumsum(weight)
    # With all weights zero no sum exceeds 0 and the last label is taken, as in the original.
    return min(int(np.searchsorted(total, uniform * total[-1], side="right")), N_LABELS)
