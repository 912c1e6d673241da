"""Tables with a known sparse truth: the paper's two classes, and correlated columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forback.protocols import Floats, Ints
from forback.validation import check_choice, check_generator, check_integer, check_number

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
