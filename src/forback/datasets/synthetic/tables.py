"""Tables with few columns that matter: two classes, and a linear model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forback.core.types import Floats, Ints
from forback.validation.scalars import check_choice, check_generator, check_integer, check_number

STRUCTURES = ("ar", "equal", "factors")

#: Number of common factors where `structure` is "factors".
N_FACTORS = 5


@dataclass(frozen=True)
class TwoClasses:
    """Two Gaussian classes with opposite means.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        The rows.
    y : ndarray of shape (n,)
        Classes, alternately 1 and -1.
    coef : ndarray of shape (p,)
        Mean of class 1; that of class -1 is its negative.
    support : ndarray
        Columns where `coef` is not zero, sorted.
    """

    X: Floats
    y: Ints
    coef: Floats
    support: Ints


@dataclass(frozen=True)
class Regression:
    """Correlated columns and a response that depends on few of them.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        The columns.
    y : ndarray of shape (n,)
        The response, X @ coef plus noise.
    coef : ndarray of shape (p,)
        The true coefficients.
    support : ndarray
        Columns where `coef` is not zero, sorted.
    sigma : float
        Standard deviation of the noise.
    """

    X: Floats
    y: Floats
    coef: Floats
    support: Ints
    sigma: float


def make_logistic(
    n: int = 100, p: int = 500, k: int = 5, *, norm: float = 5.0, random_state: Any = 0
) -> TwoClasses:
    """Simulate two classes whose means differ in k of p columns, as in the paper's appendix.

    The rows of class 1 are drawn from N(coef, I), those of class -1 from N(-coef, I), n / 2 of
    each. `coef` has k nonzero entries at random places, uniform on [0, 1] and then scaled to the
    Euclidean norm `norm`.

    Parameters
    ----------
    n, p : int
        Number of rows, which must be even, and of columns.
    k : int
        Number of columns whose means differ, at least 1.
    norm : float
        Euclidean norm of either mean, positive.
    random_state : int, numpy.random.Generator or None
        Seed or generator; None draws different data at every call.

    Returns
    -------
    TwoClasses
        Holds `X`, `y`, `coef` and `support`.

    Examples
    --------
    >>> data = make_logistic()
    >>> data.X.shape, data.y[:4].tolist(), len(data.support)
    ((100, 500), [1, -1, 1, -1], 5)
    """
    n, p, k = _check_sizes(n, p, k)
    if n % 2:
        raise ValueError(f"n must be even, for two classes of the same size, got {n}")
    norm = check_number(norm, "norm", low=0.0, open_low=True)
    rng = check_generator(random_state)
    support = np.sort(rng.choice(p, k, replace=False))
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
    """Simulate a linear model with correlated columns: y = X @ coef + noise.

    Rows are Gaussian with mean zero and variance one. The correlation of columns depends on
    `structure`:

    =========  ==================================================================================
    structure  correlation of columns i and j
    =========  ==================================================================================
    ar         rho^|i - j|, first-order autoregressive (celer; `corr_type="exp"` of abess)
    equal      rho, for every pair (`corr_type="const"` of abess)
    factors    rho times the cosine of two random directions: five common factors, with random
               loadings, explain a fraction rho of every column's variance
    =========  ==================================================================================

    `coef` has k nonzero entries at random places, with random signs and magnitudes uniform on
    [1, 2]. A seed gives the same places, magnitudes and underlying noise whatever `rho` and `snr`.

    Parameters
    ----------
    n, p : int
        Number of rows and of columns.
    k : int
        Number of nonzero coefficients, at least 1.
    rho : float in [0, 1)
        Strength of the correlation.
    structure : {"ar", "equal", "factors"}
        Structure of the correlation, see above.
    snr : float
        Signal-to-noise ratio: variance of X @ coef over that of the noise, positive.
    random_state : int, numpy.random.Generator or None
        Seed or generator; None draws different data at every call.

    Returns
    -------
    Regression
        Holds `X`, `y`, `coef`, `support` and `sigma`.

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
    support = np.sort(rng.choice(p, k, replace=False))
    coef = np.zeros(p)
    coef[support] = rng.uniform(1.0, 2.0, k) * rng.choice([-1.0, 1.0], k)
    white = rng.normal(size=(n, p))
    noise = rng.normal(size=n)
    if structure == "ar":
        X, signal_variance = _autoregressive(white, coef, rho)
    else:
        loadings = np.ones((p, 1)) if structure == "equal" else _draw_loadings(p, rng)
        X, signal_variance = _with_factors(white, coef, rho, loadings, rng)
    sigma = float(np.sqrt(signal_variance / snr))
    return Regression(X, X @ coef + sigma * noise, coef, support, sigma)


def _check_sizes(n: Any, p: Any, k: Any) -> tuple[int, int, int]:
    n, p, k = (check_integer(*pair, low=1) for pair in ((n, "n"), (p, "p"), (k, "k")))
    if k > p:
        raise ValueError(f"k must be at most p, the number of columns, got k={k} and p={p}")
    return n, p, k


def _draw_loadings(p: int, rng: np.random.Generator) -> Floats:
    """Draw the factor loadings of each column: a row of unit length."""
    loadings = rng.normal(size=(p, N_FACTORS))
    return np.asarray(loadings / np.linalg.norm(loadings, axis=1, keepdims=True))


def _autoregressive(white: Floats, coef: Floats, rho: float) -> tuple[Floats, float]:
    """Return first-order autoregressive rows and the variance of X @ coef."""
    X = np.sqrt(1.0 - rho**2) * white
    X[:, 0] = white[:, 0]
    for j in range(1, X.shape[1]):
        X[:, j] += rho * X[:, j - 1]
    places = np.flatnonzero(coef)
    distances = np.abs(places[:, None] - places)
    return X, float(coef[places] @ rho**distances @ coef[places])


def _with_factors(
    white: Floats, coef: Floats, rho: float, loadings: Floats, rng: np.random.Generator
) -> tuple[Floats, float]:
    """Return rows of which common factors explain a fraction rho, and the variance of X @ coef."""
    factors = rng.normal(size=(len(white), loadings.shape[1]))
    X = np.sqrt(1.0 - rho) * white + np.sqrt(rho) * factors @ loadings.T
    common = loadings.T @ coef
    return X, float((1.0 - rho) * coef @ coef + rho * common @ common)
