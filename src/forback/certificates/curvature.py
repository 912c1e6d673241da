"""Restricted curvature: how much and how little Q bends along few coordinates.

rho_-(s) and rho_+(s) of the paper's equation (RSCC): for every t with at most s nonzero entries,

    rho_-(s) / 2 |t|^2  <=  Q(beta + t) - Q(beta) - <grad Q(beta), t>  <=  rho_+(s) / 2 |t|^2.

What is always in (an intercept) moves along without being counted: the lower constant is that of Q
minimised over it, the upper one that of Q itself. Both are what the lemmas need.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, islice
from math import comb, inf
from typing import Any

import numpy as np

from forback.certificates.sampling import FLAT, flattest, profile, sampled
from forback.core.adapter import as_objective
from forback.core.objective import HessianBounds, Objective
from forback.core.tolerances import EPS
from forback.core.types import Floats, Ints
from forback.validation.columns import check_columns
from forback.validation.scalars import check_choice, check_integer

METHODS = ("exact", "bound", "sample")

#: How many rows an objective is taken to have, for rounding, that does not tell.
TYPICAL_ROWS = 1_000

#: So many supports are enumerated at most.
SUPPORTS = 500_000

#: So many submatrices are decomposed at a time.
AT_ONCE = 20_000

#: So many coordinates may have a matrix of all pairs, and so many a spectrum.
WIDEST, SPECTRAL = 5_000, 1_500

KINDS = {
    "exact": "exact",
    "bound": "certified bounds: the true lower constant is no smaller, the true upper no larger",
    "sample": "inner estimates: the true lower constant is no larger, the true upper no smaller",
}


@dataclass(frozen=True)
class Curvature:
    """The restricted curvature of an objective, and what kind of knowledge it is.

    Attributes
    ----------
    s : int
        Coordinates that may move at once.
    lower : float
        Rho_-(s).
    upper : float
        Rho_+(s).
    single : float
        Rho_+(1).
    method : str
        "exact", "bound" or "sample".
    """

    s: int
    lower: float
    upper: float
    single: float
    method: str

    @property
    def kind(self) -> str:
        """What the numbers are, in words."""
        return KINDS[self.method]

    @property
    def certified(self) -> bool:
        """Whether conclusions drawn from these numbers are proved."""
        return self.method != "sample"

    @property
    def condition(self) -> float:
        """kappa(s) = rho_+(s) / rho_-(s)."""
        return self.upper / self.lower if self.lower > 0.0 else inf

    def __str__(self) -> str:
        return (
            f"rho_-({self.s}) = {self.lower:.4g}, rho_+({self.s}) = {self.upper:.4g}, "
            f"rho_+(1) = {self.single:.4g} ({self.kind})"
        )


def restricted_curvature(
    objective: Objective,
    s: int,
    method: str = "bound",
    *,
    always: Any = None,
    trials: int = 50,
    random_state: Any = 0,
) -> Curvature:
    """rho_-(s) and rho_+(s): the least and the largest curvature along s candidates.

    Parameters
    ----------
    objective : Objective
        For "exact" and "bound" one that knows between which matrices its Hessian lies
        (`hessian_bounds`): `LeastSquares`, `Logistic`, `GLM`, `Multinomial`.
    s : int
        How many candidates may move at once, from 1 to all.
    method : {"exact", "bound", "sample"}
        "exact" goes through all supports of a quadratic Q. "bound" is certified: from the spectrum
        and from Gershgorin's circles of the matrices between which the Hessian lies, which for a
        GLM come from the curvature range of its loss; where that range begins at 0 (logistic), the
        lower constant is the least ridge. "sample" looks at random supports and at supports grown
        greedily to be as bad as possible: an estimate from inside, for any objective.
    always : sequence of coordinates, optional
        What is always in; by default what the objective says (the coordinates past the candidates).
    trials : int
        Random supports of "sample".
    random_state : int, numpy.random.Generator or None
        Of "sample".

    Returns
    -------
    Curvature
        With `lower`, `upper`, `single` (rho_+(1)), `condition`, `method`, `kind`, `certified`.

    Examples
    --------
    >>> import numpy as np
    >>> from forback.certificates import restricted_curvature
    >>> from forback.objectives import LeastSquares
    >>> X = np.random.default_rng(0).normal(size=(400, 8))
    >>> objective = LeastSquares(X, X[:, 0])
    >>> exact = restricted_curvature(objective, 3, "exact")
    >>> bound = restricted_curvature(objective, 3, "bound")
    >>> bound.lower <= exact.lower <= exact.upper <= bound.upper
    True
    >>> print(exact)
    rho_-(3) = ... (exact)
    """
    objective = check_sound(objective)
    check_choice(method, "method", METHODS)
    free, inside = split_coordinates(objective, always)
    if len(free) == 0:
        raise ValueError("nothing can move: every candidate is always in")
    s = check_integer(s, "s", low=1)
    if s > len(free):
        raise ValueError(f"s={s} candidates cannot move at once: there are {len(free)}")
    if method == "sample":
        trials = check_integer(trials, "trials", low=1)
        return Curvature(s, *sampled(objective, s, free, inside, trials, random_state), "sample")
    low, high = _range(objective, method)
    order = np.concatenate([free, inside])
    whole = low[np.ix_(order, order)]
    enclosure = _enumerated if method == "exact" else _bounded
    lower = enclosure(profile(whole, len(free)), s)[0] - _rounding(objective, whole, len(free), s)
    upper = single = inf
    if high is not None:
        high = high[np.ix_(free, free)]
        upper, single = enclosure(high, s)[1], float(high.diagonal().max())
    grown = 1.0 + _relative(objective, len(free))
    return Curvature(s, max(lower, 0.0), upper * grown, single * grown, method)


def _relative(objective: Objective, p: int) -> float:
    """How far sums over all rows, and what is made of p of them, may be off."""
    response = objective.response()
    return EPS * ((TYPICAL_ROWS if response is None else response.n_rows) + p)


def _rounding(objective: Objective, whole: Floats, own: int, s: int) -> float:
    """How far the least eigenvalue of s candidates may be off.

    What follows along is subtracted: large means leave the rounding of their squares, and nearly
    collinear columns that of their inverse.
    """
    if np.count_nonzero(whole) == np.count_nonzero(whole.diagonal()):
        return 0.0  # a ridge alone, which is known exactly
    size = float(whole.diagonal()[:own].max())
    flat = flattest(whole, own)
    return inf if flat <= FLAT else _relative(objective, own) * s * size * (1.0 + 1.0 / flat)


def check_sound(objective: Objective) -> Objective:
    """Return an objective whose numbers can be squared; raise for any other, and for none."""
    objective = as_objective(objective)
    if objective.rescaled() is not None:
        raise ValueError(
            "X, y or the function is too small, or too large, to be squared, so that nothing "
            "can be checked in these units; multiply it by a power of two and select again"
        )
    return objective


def split_coordinates(objective: Objective, always: Any = None) -> tuple[Ints, Ints]:
    """The candidates that may enter and leave, and the coordinates that are always in."""
    given = check_columns(always, objective.dim, None, "always")
    inside = np.union1d(np.arange(objective.n_candidates, objective.dim), given)
    return np.setdiff1d(np.arange(objective.n_candidates), inside), inside


def _range(objective: Objective, method: str) -> HessianBounds:
    if objective.dim > WIDEST:
        raise ValueError(
            f'method="{method}" works on a matrix of all pairs of coordinates, which is too much '
            f'for {objective.dim}; take method="sample", or an objective of fewer columns'
        )
    bounds = objective.hessian_bounds()
    if bounds is None:
        raise ValueError(
            f'method="{method}" needs an objective that knows bounds of its Hessian; '
            f'{objective.name} does not: take method="sample"'
        )
    if method == "exact" and not bounds.are_equal:
        raise ValueError(
            'method="exact" needs a quadratic objective, such as LeastSquares, whose curvature is '
            'the same everywhere; take "bound" or "sample"'
        )
    return bounds


# The least and the largest eigenvalue of all s x s principal submatrices ------------------------


def _enumerated(matrix: Floats, s: int) -> tuple[float, float]:
    """Both of them: smaller supports bend no less and no more, by interlacing."""
    p = len(matrix)
    if comb(p, s) > SUPPORTS:
        raise ValueError(
            f"{comb(p, s)} supports of {s} out of {p} candidates are too many to go through "
            f'(limit {SUPPORTS}); take method="bound" or "sample"'
        )
    lower, upper = inf, 0.0
    supports = combinations(range(p), s)
    while some := list(islice(supports, AT_ONCE)):
        places = np.array(some)
        values = np.linalg.eigvalsh(matrix[places[:, :, None], places[:, None, :]])
        lower = min(lower, float(values[:, 0].min()))
        upper = max(upper, float(values[:, -1].max()))
    return lower, upper


def _bounded(matrix: Floats, s: int) -> tuple[float, float]:
    """The best of two bounds from below, and of three from above."""
    spectrum = np.linalg.eigvalsh(matrix) if len(matrix) <= SPECTRAL else np.array([-inf, inf])
    diagonal = matrix.diagonal()
    others = np.abs(matrix)
    np.fill_diagonal(others, 0.0)
    # How far Gershgorin's circles of any s coordinates reach: the s - 1 largest of each row.
    first = len(matrix) - s
    radii = np.partition(others, first, axis=1)[:, first + 1 :].sum(axis=1)
    lower = max(spectrum[0], (diagonal - radii).min())
    upper = min(spectrum[-1], (diagonal + radii).max(), np.sort(diagonal)[first:].sum())
    return float(lower), float(upper)
