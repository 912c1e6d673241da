"""Thresholds from a known support: those of Theorems 1 and 2, and those of the appendix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any

import numpy as np

from forback.certificates.curvature import (
    METHODS,
    Curvature,
    check_sound,
    restricted_curvature,
)
from forback.core.blocks import Blocks
from forback.core.objective import Objective
from forback.core.point import Point
from forback.core.types import Ints
from forback.validation.columns import check_columns
from forback.validation.scalars import check_choice, check_integer

#: The stop is strict, goodness < threshold; equality would hang on rounding.
MARGIN = 1.0 + 1e-6


@dataclass(frozen=True)
class Thresholds:
    """What a run may stop at, if the support is known.

    Attributes
    ----------
    point : Point
        Bar beta: the minimiser of Q on the support.
    gradient : float
        The largest |gradient| there, the level of noise.
    practical_delta : float
        The largest decrease by one more candidate, raised by a millionth.
    practical_epsilon : float
        The largest |gradient|, raised by a millionth.
    delta : float | None
        The delta of Theorem 1; None without s.
    epsilon : float | None
        The epsilon of Theorem 2; None without s.
    curvature : Curvature | None
        The curvature behind these two.
    """

    point: Point
    gradient: float
    practical_delta: float
    practical_epsilon: float
    delta: float | None = None
    epsilon: float | None = None
    curvature: Curvature | None = None

    def __str__(self) -> str:
        lines = [
            f"largest |gradient| outside {self.gradient:.4g}",
            f"appendix: delta {self.practical_delta:.4g}, epsilon {self.practical_epsilon:.4g}",
        ]
        if self.curvature is not None:
            theorems = f"theorems: delta {self.delta:.4g}, epsilon {self.epsilon:.4g}"
            lines += [theorems, str(self.curvature)]
        return "\n".join(lines)


def theory_thresholds(
    objective: Objective,
    support: Any,
    s: int | None = None,
    *,
    method: str = "bound",
    curvature: Curvature | None = None,
    always: Any = None,
) -> Thresholds:
    """The thresholds that the paper's theorems and its appendix give for a known support.

    With bar beta the minimiser of Q on the support and g the largest |gradient| there:

    - Theorem 1: delta > 4 rho_+(1) / rho_-(s)^2 g^2; Theorem 2: epsilon > 2 sqrt(2) rho_+(1) /
      rho_-(s) g.
    - The appendix, where curvature is hard to evaluate: delta = Q(bar beta) - min Q(bar beta +
      alpha e_j) over alpha and j outside; epsilon = g.

    Each is raised by a millionth: the stop is strict.

    Parameters
    ----------
    objective : Objective
    support : sequence of candidates, or a mask
        By number, or by name where the objective has names. What is always in is added.
    s : int, optional
        The s of the theorems. Without it only the appendix's choices are made.
    method : {"bound", "exact", "sample"}
        How `restricted_curvature` finds rho.
    curvature : Curvature, optional
        If it is known already.
    always : sequence of candidates, or a mask
        What the run will have always in, besides what the objective says.

    Returns
    -------
    Thresholds

    Examples
    --------
    >>> import numpy as np
    >>> from forback import select
    >>> from forback.certificates import theory_thresholds
    >>> from forback.objectives import LeastSquares
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 10))
    >>> objective = LeastSquares(X, 3 * X[:, 2] - 2 * X[:, 7] + rng.normal(size=200))
    >>> found = theory_thresholds(objective, [2, 7])
    >>> select(objective, epsilon=found.practical_epsilon).end.support.tolist()
    [2, 7]
    """
    objective = check_sound(objective)
    check_curvature(curvature)
    check_choice(method, "method", METHODS)
    inside = np.concatenate(
        [_candidates(objective, always, "always"), np.arange(objective.n_candidates, objective.dim)]
    )
    bar = known_point(objective, support, inside)
    outside = np.setdiff1d(np.arange(objective.n_candidates), bar.support)
    steepest, fall = 0.0, 0.0
    if len(outside):
        blocks = Blocks.singles(outside, inside)
        steepest = float(np.abs(objective.gradient(bar)[outside]).max())
        fall = float(objective.decrease_if_added(bar, blocks).values.max())
    k = len(bar.support) - len(inside)
    if s is not None and check_integer(s, "s", low=1) < k:
        raise ValueError(f"s={s} is less than the {k} features of support")
    bar = replace(bar.without_cache(), size=k)
    if curvature is None and s is not None:
        curvature = restricted_curvature(objective, s, method, always=inside)
    theory = () if curvature is None else (*proved(curvature, steepest), curvature)
    return Thresholds(bar, steepest, fall * MARGIN, steepest * MARGIN, *theory)


def proved(curvature: Curvature, gradient: float) -> tuple[float, float]:
    """The delta of Theorem 1 and the epsilon of Theorem 2."""
    low, single = curvature.lower, curvature.single
    if gradient == 0.0:
        return 0.0, 0.0
    if low == 0.0 or single == inf:
        return inf, inf
    delta = 4.0 * single / low**2 * gradient**2
    return delta * MARGIN, 2.0 * sqrt(2.0) * single / low * gradient * MARGIN


def known_point(objective: Objective, support: Any, always: Ints) -> Point:
    """The minimiser of Q on a support that somebody knows, bar beta in the paper."""
    chosen = _candidates(objective, support, "support")
    return objective.minimise(np.union1d(chosen, always))


def _candidates(objective: Objective, given: Any, name: str) -> Ints:
    return check_columns(given, objective.n_candidates, objective.features.own_names, name)


def check_curvature(curvature: Any) -> None:
    """A `Curvature`, or nothing."""
    if curvature is not None and not isinstance(curvature, Curvature):
        raise TypeError(f"curvature must be what restricted_curvature returns; got {curvature!r}")
