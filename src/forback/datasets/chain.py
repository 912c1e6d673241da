"""The synthetic sequences of the paper's appendix, drawn as Schmidt's crfChain draws them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forback.protocols import Floats, Ints
from forback.validation import check_generator, check_integer

#: How many values each of the four features has, besides 0 for "absent".
N_VALUES = (2, 3, 4, 5)
N_LABELS = 4


@dataclass(frozen=True)
class Chain:
    """Sentences of words, each with four categorical features and a label."""

    X: NDArray[np.uint8]  #: (n_steps, 14), one indicator per feature and value, 0 having none
    y: Ints  #: labels 1 to 4
    lengths: Ints  #: words per sentence, in order
    groups: Ints  #: for each column of X the feature, 0 to 3, that it belongs to
    categories: NDArray[np.uint8]  #: (n_steps, 4), the features themselves, 0 for "absent"


def make_chain(n_steps: int = 800, *, random_state: Any = 0) -> Chain:
    """Sequences whose labels depend on the features of a word and on the label before.

    The generator is the one of Mark Schmidt's crfChain for Matlab (`crfChain_genSynthetic`), which
    the paper's appendix uses with 800 words. What it draws, word by word:

    - Feature f of the four is uniform on 0, ..., f + 1 (so 2, 3, 4 and 5 values), 0 meaning
      "absent", independently of everything else.
    - The first word's label is uniform on 0, ..., 4, whatever its features; 0 stands for the place
      between two sentences.
    - Each later label j in 1, ..., 4 is drawn with a weight of 10^(j-1) times the number of
      features equal to j; a feature equal to 5 says nothing. Let m be the largest weight. The
      label before keeps a weight of at least m / 10. The sentence ends, as label 0, with weight
      m / 10, or m / 2 after label 4; it cannot end right after it ended.
    - If no feature speaks, all weights are zero. The original then divides zero by zero, and its
      sampler falls through to the last label, 4; so it is here (one word in 180).

    The original counts the places between sentences as words, with features of their own. Here
    they are left out, and words are drawn until there are `n_steps`; the last sentence is cut
    there.

    Parameters
    ----------
    n_steps : int
        Number of words, over all sentences.
    random_state : int, numpy.random.Generator or None
        The seed. None gives other data at every call.

    Returns
    -------
    Chain
        With `X`, `y`, `lengths`, `groups` and `categories`.

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
    # No two ends are neighbours, so that at most every second row is lost to one.
    n_rows = 2 * n_steps + 1
    features = np.stack([rng.integers(0, k + 1, n_rows) for k in N_VALUES], axis=1)
    labels = _draw_labels(features, rng)
    words = np.flatnonzero(labels)[:n_steps]
    ends = np.flatnonzero(labels[: words[-1] + 1] == 0)
    cuts = np.unique(np.searchsorted(words, ends))
    bounds = np.unique(np.concatenate([[0], cuts, [n_steps]]))
    categories = features[words].astype(np.uint8)
    groups = np.repeat(np.arange(len(N_VALUES)), N_VALUES)
    values = np.concatenate([np.arange(1, k + 1) for k in N_VALUES])
    return Chain(
        X=(categories[:, groups] == values).astype(np.uint8),
        y=labels[words],
        lengths=np.diff(bounds),
        groups=groups,
        categories=categories,
    )


def _draw_labels(features: NDArray[np.int64], rng: np.random.Generator) -> Ints:
    """A label per row, 0 where a sentence ends."""
    levels = [10.0**j * (features == j + 1).sum(axis=1) for j in range(N_LABELS)]
    weights = np.stack([np.zeros(len(features)), *levels], axis=1)
    uniforms = rng.random(len(features))
    labels = np.empty(len(features), dtype=np.intp)
    labels[0] = int(uniforms[0] * (N_LABELS + 1))
    for row in range(1, len(features)):
        labels[row] = _draw_label(weights[row], int(labels[row - 1]), float(uniforms[row]))
    return labels


def _draw_label(weight: Floats, before: int, uniform: float) -> int:
    """The next label; `weight` is that of the features and is written to."""
    largest = weight.max()
    weight[before] = max(weight[before], largest / 10)
    weight[0] = 0.0 if before == 0 else largest / (2 if before == N_LABELS else 10)
    total = np.cumsum(weight)
    # With all weights zero nothing exceeds 0 and the last label is left, as in the original.
    return min(int(np.searchsorted(total, uniform * total[-1], side="right")), N_LABELS)
