"""Generated data with a known truth: sequences, tables and Gaussian graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forback.core.types import Floats, Ints
from forback.validation.scalars import check_choice, check_generator, check_integer, check_number

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


STRUCTURES = ("ar", "equal", "factors")

#: How many common factors there are.
N_FACTORS = 5


@dataclass(frozen=True)
class TwoClasses:
    """Rows of two Gaussians on either side of the origin."""

    X: Floats  #: (n, p)
    y: Ints  #: 1 and -1 in turn
    coef: Floats  #: (p,), the mean of the rows of class 1; that of the others is its negative
    support: Ints  #: where `coef` is not zero, sorted


@dataclass(frozen=True)
class Regression:
    """Correlated columns and a response that few of them make."""

    X: Floats  #: (n, p)
    y: Floats  #: X @ coef and noise
    coef: Floats  #: (p,)
    support: Ints  #: where `coef` is not zero, sorted
    sigma: float  #: standard deviation of the noise


def make_logistic(
    n: int = 100, p: int = 500, k: int = 5, *, norm: float = 5.0, random_state: Any = 0
) -> TwoClasses:
    """Two classes whose means differ in k of p columns, as in the paper's appendix.

    The rows of class 1 are drawn from N(coef, I), those of class -1 from N(-coef, I), as many of
    either. `coef` has k entries that are not zero, at random places, uniform on [0, 1] and then
    scaled to the Euclidean length `norm`.

    Parameters
    ----------
    n, p : int
        Rows, an even number, and columns.
    k : int
        How many columns tell the classes apart; at least one.
    norm : float
        The distance of either mean from the origin, positive.
    random_state : int, numpy.random.Generator or None
        The seed. None gives other data at every call.

    Returns
    -------
    TwoClasses
        With `X`, `y`, `coef` and `support`.

    Examples
    --------
    >>> data = make_logistic()
    >>> data.X.shape, data.y[:4].tolist(), len(data.support)
    ((100, 500), [1, -1, 1, -1], 5)
    """
    n, p, k = _check_sizes(n, p, k)
    if n % 2:
        raise ValueError(f"n must be even, for two classes of the same size; met {n}")
    norm = check_number(norm, "norm", low=0.0, open_low=True)
    rng = check_generator(random_state)
    support = _draw_support(p, k, rng)
    sizes = 1.0 - rng.random(k)  # in (0, 1]
    coef = np.zeros(p)
    coef[support] = norm / np.linalg.norm(sizes) * sizes
    y = np.tile(np.array([1, -1], dtype=np.intp), n // 2)
    return TwoClasses(rng.normal(size=(n, p)) + np.outer(y, coef), y, coef, support)


def make_correlated(
    n: int = 100,
    p: int = 200,
    k: int = 10,
    *,
    rho: float = 0.5,
    structure: str = "ar",
    snr: float = 10.0,
    random_state: Any = 0,
) -> Regression:
    """A linear model with correlated columns: y = X @ coef + noise.

    Rows are Gaussian with mean zero and variance one. What correlates the columns:

    =========  ==================================================================================
    structure  correlation of columns i and j
    =========  ==================================================================================
    ar         rho^|i - j|: neighbours are alike (celer; `corr_type="exp"` of abess)
    equal      rho, whichever they are (`corr_type="const"` of abess)
    factors    rho times the cosine of two random directions: a share rho of every column's
               variance comes from five common factors, mixed in its own way
    =========  ==================================================================================

    `coef` has k entries that are not zero, at random places, of either sign and uniform on [1, 2]
    in size. A seed gives the same places, sizes and underlying noise whatever `rho` and `snr`.

    Parameters
    ----------
    n, p : int
        Rows and columns.
    k : int
        How many columns count; at least one.
    rho : float in [0, 1)
        How strongly columns are correlated.
    structure : {"ar", "equal", "factors"}
        Which columns are.
    snr : float
        Variance of X @ coef over that of the noise, positive.
    random_state : int, numpy.random.Generator or None
        The seed. None gives other data at every call.

    Returns
    -------
    Regression
        With `X`, `y`, `coef`, `support` and `sigma`.

    Examples
    --------
    >>> data = make_correlated(rho=0.9, structure="equal")
    >>> data.X.shape, len(data.support)
    ((100, 200), 10)
    >>> bool(np.corrcoef(data.X[:, 0], data.X[:, 1])[0, 1] > 0.8)
    True
    """
    n, p, k = _check_sizes(n, p, k)
    check_choice(structure, "structure", STRUCTURES)
    rho = check_number(rho, "rho", low=0.0, high=1.0)
    snr = check_number(snr, "snr", low=0.0, open_low=True)
    rng = check_generator(random_state)
    support = _draw_support(p, k, rng)
    coef = np.zeros(p)
    coef[support] = rng.uniform(1.0, 2.0, k) * rng.choice([-1.0, 1.0], k)
    white, noise = rng.normal(size=(n, p)), rng.normal(size=n)
    if structure == "ar":
        X, signal = _autoregressive(white, coef, rho)
    else:
        directions = np.ones((p, 1)) if structure == "equal" else _directions(p, rng)
        X, signal = _with_factors(white, coef, rho, directions, rng)
    sigma = float(np.sqrt(signal / snr))
    return Regression(X, X @ coef + sigma * noise, coef, support, sigma)


def _check_sizes(n: Any, p: Any, k: Any) -> tuple[int, int, int]:
    n, p, k = (check_integer(*pair, low=1) for pair in ((n, "n"), (p, "p"), (k, "k")))
    if k > p:
        raise ValueError(f"k must be at most p, the number of columns; met k={k} and p={p}")
    return n, p, k


def _draw_support(p: int, k: int, rng: np.random.Generator) -> Ints:
    return np.sort(rng.choice(p, k, replace=False))


def _directions(p: int, rng: np.random.Generator) -> Floats:
    """How each column mixes the factors: a row of unit length."""
    mixes = rng.normal(size=(p, N_FACTORS))
    return np.asarray(mixes / np.linalg.norm(mixes, axis=1, keepdims=True))


def _autoregressive(white: Floats, coef: Floats, rho: float) -> tuple[Floats, float]:
    """Rows whose every entry remembers the one before; the variance of X @ coef."""
    X = np.sqrt(1.0 - rho**2) * white
    X[:, 0] = white[:, 0]
    for j in range(1, X.shape[1]):
        X[:, j] += rho * X[:, j - 1]
    places = np.flatnonzero(coef)
    distances = np.abs(places[:, None] - places)
    return X, float(coef[places] @ rho**distances @ coef[places])


def _with_factors(
    white: Floats, coef: Floats, rho: float, directions: Floats, rng: np.random.Generator
) -> tuple[Floats, float]:
    """Rows with a share rho from common factors; the variance of X @ coef."""
    factors = rng.normal(size=(len(white), directions.shape[1]))
    X = np.sqrt(1.0 - rho) * white + np.sqrt(rho) * factors @ directions.T
    common = directions.T @ coef
    return X, float((1.0 - rho) * coef @ coef + rho * common @ common)


KINDS = ("chain", "star", "random")

#: Edges per variable of a random graph.
DENSITY = 2

#: What the eigenvalues of a random graph's precision matrix are kept above.
LEAST = 0.3


@dataclass(frozen=True)
class Graph:
    """Rows of a Gaussian and the graph of its precision matrix."""

    X: Floats  #: (n, p)
    precision: Floats  #: (p, p), zero where there is no edge
    edges: Ints  #: (number of edges, 2), each row with the lower variable first


def make_graph(kind: str = "chain", *, n: int = 200, p: int = 36, random_state: Any = 0) -> Graph:
    """Draw n rows of a Gaussian with mean zero whose precision matrix is that of a graph.

    ========  ===================================================================================
    kind      edges
    ========  ===================================================================================
    chain     between neighbours: a diagonal of 1, entries of -0.4
    star      between variable 0 and one in five of the others: a diagonal of 1, entries that
              make the partial correlations with the hub -0.9 / sqrt(number of edges)
    random    2p of them anywhere, entries of 0.2 to 0.5 of either sign; the diagonal exceeds the
              sum of a row by 0.3
    ========  ===================================================================================

    Parameters
    ----------
    kind : {"chain", "star", "random"}
        Which graph.
    n, p : int
        Rows and variables; at least two variables.
    random_state : int, numpy.random.Generator or None
        The seed. None gives other data at every call.

    Returns
    -------
    Graph
        With `X`, `precision` and `edges`.

    Examples
    --------
    >>> graph = make_graph("star", n=100, p=36)
    >>> graph.X.shape, len(graph.edges)
    ((100, 36), 7)
    """
    check_choice(kind, "kind", KINDS)
    n, p = check_integer(n, "n", low=1), check_integer(p, "p", low=2)
    rng = check_generator(random_state)
    make = {"chain": _chain, "star": _star, "random": _random}[kind]
    precision = make(p, rng)
    # Theta = C C': if z is white noise, C'^-1 z has the covariance wanted.
    factor = np.linalg.cholesky(precision)
    X = np.linalg.solve(factor.T, rng.normal(size=(p, n))).T
    edges = np.argwhere(np.triu(precision, 1) != 0.0)
    return Graph(np.ascontiguousarray(X), precision, edges)


def _chain(p: int, rng: np.random.Generator) -> Floats:
    return np.eye(p) - 0.4 * (np.eye(p, k=1) + np.eye(p, k=-1))


def _star(p: int, rng: np.random.Generator) -> Floats:
    leaves = np.arange(1, p)[: max(1, (p - 1) // 5)]
    precision = np.eye(p)
    precision[0, leaves] = precision[leaves, 0] = -0.9 / np.sqrt(len(leaves))
    return precision


def _random(p: int, rng: np.random.Generator) -> Floats:
    i, j = np.triu_indices(p, 1)
    picked = rng.choice(len(i), min(len(i), DENSITY * p), replace=False)
    entries = rng.uniform(0.2, 0.5, len(picked)) * rng.choice([-1.0, 1.0], len(picked))
    precision = np.zeros((p, p))
    precision[i[picked], j[picked]] = precision[j[picked], i[picked]] = entries
    return precision + np.diag(np.abs(precision).sum(axis=1) + LEAST)
