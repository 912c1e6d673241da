"""The theorems' right-hand sides beside what a run came to.

Implemented is what the appendix proves. `docs/theory.md` lists where statements and proofs differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, inf, isfinite, sqrt
from typing import Any

import numpy as np

from forback.certificates.curvature import Curvature, restricted_curvature, split_coordinates
from forback.certificates.inequality import LEFT_SIDE_RTOL, Inequality
from forback.certificates.replay import Run
from forback.certificates.thresholds import MARGIN, check_curvature, known_point, proved
from forback.certificates.verify import verify
from forback.core.adapter import as_objective
from forback.core.objective import Objective
from forback.core.point import Point
from forback.core.types import Ints
from forback.selection.path import Path
from forback.validation.scalars import check_integer


@dataclass(frozen=True)
class Bounds:
    """What Theorems 1 to 5 and the corollary say about a run, if the true support is known.

    Attributes
    ----------
    k : int
        The size of the true support.
    threshold : float
        The delta or epsilon of the run.
    needed : float
        The number that Theorem 1 or 2 asks the threshold to exceed.
    curvature : Curvature
    condition : Inequality
        The sparsity condition on s, with what it needs on the left.
    obstacles : tuple[str, ...]
        Why the theorems say nothing about this run.
    by_size : bool
        Whether the bounds are proved all the same, by the size reached.
    gamma : float
        A true coefficient below it counts as weak.
    weak : int
        Bar Delta: weak ones among those missed.
    inequalities : tuple[Inequality, ...]
    forward_steps : int
    least : float
        The least true coefficient.
    signal : float
        The least true coefficient over the largest gradient.
    signal_needed : float
        The ratio that the corollary asks for.
    recovered : bool
        Whether the run ended with the true support.
    """

    k: int
    threshold: float
    needed: float
    curvature: Curvature
    condition: Inequality
    obstacles: tuple[str, ...]
    by_size: bool
    gamma: float
    weak: int
    inequalities: tuple[Inequality, ...]
    forward_steps: int
    least: float
    signal: float
    signal_needed: float
    recovered: bool

    @property
    def vacuous(self) -> bool:
        """Whether the theorems' conditions fail, so that they promise nothing."""
        return bool(self.obstacles)

    @property
    def strong(self) -> bool:
        """Whether the true support is promised: no true coefficient is weak for this threshold.

        That is the corollary, whose condition is the same for the least threshold allowed.
        """
        return not self.vacuous and self.least >= self.gamma

    @property
    def holds(self) -> bool:
        """Whether every inequality holds; they may do so although they are not promised."""
        exact = self.recovered or not self.strong
        return exact and all(one.holds for one in self.inequalities)

    def __str__(self) -> str:
        status = "the theorems' conditions hold"
        if self.vacuous:
            status = "vacuous: " + "; ".join(self.obstacles)
            if self.by_size:
                status += "\n(the errors are bounded all the same: no more than s candidates occur)"
        signal = f"least signal over noise {self.signal:.4g}, the corollary asks for "
        threshold = f"threshold {self.threshold:.8g}, must exceed {self.needed / MARGIN:.8g}"
        found = f"{signal}{self.signal_needed:.4g}; true support found: {self.recovered}"
        facts = (self.curvature, self.condition, threshold, *self.inequalities, found)
        return "\n".join([status, *map(str, facts)])

    def to_dict(self) -> dict[str, Any]:
        """Return the bounds as plain numbers, words and lists, ready for JSON."""
        own = {**vars(self), "vacuous": self.vacuous, "strong": self.strong}
        del own["condition"]  # it is the first of the inequalities
        return {
            **own,
            "obstacles": list(self.obstacles),
            "s": self.curvature.s,
            "rho_minus": self.curvature.lower,
            "rho_plus": self.curvature.upper,
            "rho_plus_1": self.curvature.single,
            "curvature": self.curvature.method,
            "inequalities": {
                f"{one.source}, {one.name}": [one.left, one.right, one.holds]
                for one in (self.condition, *self.inequalities)
            },
        }


def theory_bounds(
    objective: Objective,
    path: Path,
    support: Any,
    s: int | None = None,
    *,
    method: str = "bound",
    curvature: Curvature | None = None,
) -> Bounds:
    """What the paper's theorems promise about a run, beside what it came to.

    The run must have ended by its `epsilon` or `delta`: the theorems are about that stop. They also
    ask for a threshold above that of `theory_thresholds`, and for an s that satisfies

        s - k > (k + 1) [(sqrt(rho_+(s) / rho_-(s)) + 1) 2 rho_+(1) / rho_-(s)]^2,

    which even perfectly orthogonal columns do from s = 17 k + 17 on only. Where a condition fails
    the result is `vacuous` and says why.

    Parameters
    ----------
    objective : Objective
    path : Path
        Of `select(objective, ...)` with single candidates, by "foba-obj" or "foba-gdt".
    support : sequence of candidates, or a mask
        The true ones.
    s : int, optional
        By default the smallest that is found to satisfy the condition, else as many as there are.
    method : {"bound", "exact", "sample"}
        How `restricted_curvature` finds rho. With "sample" nothing is proved.
    curvature : Curvature, optional
        If it is known already; it then also says s.

    Returns
    -------
    Bounds

    Examples
    --------
    >>> import numpy as np
    >>> from forback import select
    >>> from forback.certificates import theory_bounds, theory_thresholds
    >>> from forback.objectives import LeastSquares
    >>> rng = np.random.default_rng(0)
    >>> X = np.sqrt(500) * np.linalg.qr(rng.normal(size=(500, 60)))[0]  # orthogonal columns
    >>> objective = LeastSquares(X, 3 * X[:, 5] + rng.normal(size=500))
    >>> epsilon = theory_thresholds(objective, [5], s=40).epsilon
    >>> bounds = theory_bounds(objective, select(objective, epsilon=epsilon), [5])
    >>> bounds.vacuous, bounds.strong, bounds.recovered, bounds.holds
    (False, True, True, True)
    """
    run = Run.of(objective, path)
    objective = run.objective
    verify(run)
    check_curvature(curvature)
    bar = known_point(objective, support, run.always)
    true = np.intersect1d(bar.support, run.free)
    k = len(true)
    if curvature is None:
        curvature = _curvature(run, k, s, method)
    outside = np.setdiff1d(run.free, true)
    noise = float(np.abs(objective.gradient(bar)[outside]).max(initial=0.0))
    needed = proved(curvature, noise)[0 if run.by_decrease else 1]
    condition = sparsity_condition(curvature, k)
    reasons = _obstacles(run, curvature, needed)
    found = np.intersect1d(path.end.support, run.free)
    fits = len(np.union1d(found, true)) <= curvature.s
    missed = np.setdiff1d(true, found)
    coefficients = bar.dense(objective.dim)
    gamma = _gamma(curvature, run.rule.threshold, run.by_decrease)
    weak = int((np.abs(coefficients[missed]) < gamma).sum())
    least = float(np.abs(coefficients[true]).min(initial=inf))
    unmet = [] if condition.holds else [f"s = {curvature.s} fails the sparsity condition"]
    return Bounds(
        k=k,
        threshold=run.rule.threshold,
        needed=needed,
        curvature=curvature,
        condition=condition,
        obstacles=(*reasons, *unmet),
        by_size=not reasons and fits,
        gamma=gamma,
        weak=weak,
        inequalities=_inequalities(run, bar, curvature, weak, true, found),
        least=least,
        forward_steps=sum(step.action == "add" for step in path.steps),
        signal=least / noise if noise > 0.0 else inf,
        signal_needed=8.0 * curvature.single / curvature.lower**2 if curvature.lower > 0.0 else inf,
        recovered=np.array_equal(found, true),
    )


def sufficient_s(
    objective: Objective, k: int, method: str = "bound", *, always: Any = None
) -> Curvature | None:
    """The curvature at an s that satisfies the sparsity condition for k features, if there is one.

    From 17 k + 17 on, what orthogonal columns need, s is raised to what the curvature at the last s
    asks for: curvature only gets worse with s, so that no smaller one would do.

    Parameters
    ----------
    objective : Objective
    k : int
        The size of the true support.
    method, always
        As in `restricted_curvature`.

    Returns
    -------
    Curvature or None
        Its `s` is the one; None: there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from forback.certificates import sufficient_s
    >>> from forback.objectives import LeastSquares
    >>> X = np.sqrt(100) * np.linalg.qr(np.random.default_rng(0).normal(size=(100, 60)))[0]
    >>> sufficient_s(LeastSquares(X, X[:, 0]), 1).s in (34, 35)  # 17 k + 17, and rounding
    True
    """
    objective = as_objective(objective)
    k = check_integer(k, "k", low=0)
    free, _ = split_coordinates(objective, always)
    s = 17 * k + 17
    while s <= len(free):
        curvature = restricted_curvature(objective, s, method, always=always)
        least = sparsity_condition(curvature, k).left
        if least <= s:
            return curvature
        if not isfinite(least):
            return None
        s = int(least)
    return None


def sparsity_condition(curvature: Curvature, k: int) -> Inequality:
    """The condition on s for a true support of size k; strict, so the next whole number counts."""
    low, single = curvature.lower, curvature.single
    demand = inf
    if low > 0.0 and isfinite(single):
        demand = (k + 1) * ((sqrt(curvature.condition) + 1.0) * 2.0 * single / low) ** 2
    least = floor(k + demand) + 1 if isfinite(demand) else inf
    return Inequality("Sparsity condition", "least s that would do", least, curvature.s)


def _curvature(run: Run, k: int, s: int | None, method: str) -> Curvature:
    if s is None and method == "exact":
        raise ValueError('method="exact" needs s: going through all supports of every size is long')
    found = sufficient_s(run.objective, k, method, always=run.always) if s is None else None
    most = len(run.free) if s is None else s
    return found or restricted_curvature(run.objective, most, method, always=run.always)


def _gamma(curvature: Curvature, threshold: float, by_decrease: bool) -> float:
    if curvature.lower <= 0.0:
        return inf
    if by_decrease:
        return 4.0 * sqrt(curvature.single * threshold) / curvature.lower
    return 2.0 * sqrt(2.0) * threshold / curvature.lower


def _obstacles(run: Run, curvature: Curvature, needed: float) -> list[str]:
    """Why the theorems say nothing, but for the condition on s."""
    settings = run.settings
    reasons = []
    if settings.badness is None:
        reasons.append(f"{settings.method} has no backward steps, which the lemmas need")
    if settings.ratio != 0.5 or settings.backward != "coordinate":
        reasons.append('the lemmas are about ratio=0.5 and backward="coordinate"')
    if run.has_start:
        reasons.append("the theorems are about runs that begin with nothing")
    if not run.blocks.are_single or settings.budget is not None:
        reasons.append("the lemmas are about single candidates without a budget")
    if curvature.lower <= 0.0:
        reasons.append(f"rho_-({curvature.s}) is 0")
    if not run.rule.threshold > needed / MARGIN:
        reasons.append(f"the threshold {run.rule.threshold:.4g} is not above {needed:.4g}")
    best = run.best_outside(run.path.end)
    if (best is not None and not best < run.rule.threshold) or run.cut_short:
        reasons.append("the run did not end by its threshold")
    if not curvature.certified:
        reasons.append("the curvature is an estimate, so that nothing is proved")
    if curvature.s > _number_of_rows(run.objective):
        reasons.append(f"s = {curvature.s} exceeds the number of rows")
    return reasons


def _number_of_rows(objective: Objective) -> float:
    response, likelihood = objective.response(), objective.likelihood()
    if response is not None:
        return response.n_rows
    return inf if likelihood is None else likelihood.n


def _inequalities(
    run: Run, bar: Point, curvature: Curvature, weak: int, true: Ints, found: Ints
) -> tuple[Inequality, ...]:
    """Theorems 1 to 5, whichever rule the run had."""
    end, threshold = run.path.end, run.rule.threshold
    low, single, kappa = curvature.lower, curvature.single, curvature.condition
    if low <= 0.0:
        return ()
    missed, extra = np.setdiff1d(true, found), np.setdiff1d(found, true)
    dim = run.objective.dim
    apart = (end.dense(dim) - bar.dense(dim))[run.free]
    # The statement of Theorem 4 prints rho_+(1)^2 in the first; its proof gives rho_+(1).
    unit = 2.0 * single * threshold if run.by_decrease else threshold**2
    length = float(np.sum(bar.coef**2) + np.sum(end.coef**2))
    four, one = ("Theorem 4", "Theorem 1") if run.by_decrease else ("Theorem 5", "Theorem 2")
    stop = 4.0 * kappa**2 * (sqrt(kappa) + 1.0) ** 2 * (len(true) + 1)
    excess = end.value - bar.value
    return (
        Inequality(one, "size at the stop", end.size, curvature.s - len(true)),
        Inequality("Theorem 3", "size at the stop", end.size, stop),
        Inequality(
            four,
            "squared estimation error",
            float(apart @ apart),
            8.0 * unit / low**2 * weak,
            LEFT_SIDE_RTOL * length,
        ),
        Inequality(four, "objective error", excess, unit / low * weak, run.allowed(end)),
        Inequality(four, "features missed", len(missed), 2.0 * weak),
        Inequality(four, "wrong features", len(extra), 8.0 * single**2 / low**2 * len(missed)),
    )
