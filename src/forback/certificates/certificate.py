"""`certificate`: what a fitted answer promises, checked again from the data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any

import numpy as np

from forback.certificates.bounds import sufficient_s
from forback.certificates.curvature import METHODS, Curvature, restricted_curvature
from forback.certificates.replay import Run
from forback.certificates.swaps import Swaps, best_swap
from forback.certificates.verify import verify
from forback.core.blocks import Blocks
from forback.core.objective import Objective
from forback.core.point import Point
from forback.core.status import Status, StopReason
from forback.selection.path import Path
from forback.validation.scalars import check_choice, check_integer

#: How far a recomputed score may be off, relatively.
NEARLY = 1e-6


@dataclass(frozen=True)
class Check:
    """One question, its answer, and whether a yes was promised.

    Attributes
    ----------
    name : str
    passed : bool | None
        None: it cannot be told, or does not apply.
    detail : str
    promised : bool
    """

    name: str
    passed: bool | None
    detail: str
    promised: bool = True

    def __str__(self) -> str:
        mark = {True: "yes", False: "NO" if self.promised else "no", None: "--"}[self.passed]
        return f"{mark:>3}  {self.name}: {self.detail}"


@dataclass(frozen=True)
class Certificate:
    """What could be confirmed about an answer of k features.

    Attributes
    ----------
    k : int
    point : Point
    checks : tuple[Check, ...]
    swaps : Swaps
    features : tuple[str, ...]
        The names of what is chosen.
    curvature : Curvature | None
    gap : float
        No k candidates reach a Q lower by more than this; infinity: not known.
    """

    k: int
    point: Point
    checks: tuple[Check, ...]
    swaps: Swaps
    features: tuple[str, ...]
    curvature: Curvature | None
    gap: float

    @property
    def holds(self) -> bool:
        """Whether everything that the algorithm promises is confirmed."""
        return all(check.passed is not False for check in self.checks if check.promised)

    @property
    def optimal(self) -> bool:
        """Whether it is proved that no k candidates reach a lower Q."""
        return self.gap == 0.0

    def __getitem__(self, name: str) -> Check:
        return {check.name: check for check in self.checks}[name]

    def __str__(self) -> str:
        names = f" ({', '.join(self.features)})" if self.features else ""
        head = f"{self.k} chosen{names}, objective {self.point.value:.6g}: " + (
            "all guarantees hold" if self.holds else "some guarantees FAILED"
        )
        return "\n".join([head, *map(str, self.checks)])

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain words and numbers, ready for JSON."""
        answers = {check.name: asdict(check) for check in self.checks}
        return {
            "k": self.k,
            "objective": self.point.value,
            "features": list(self.features),
            "support": self.point.support.tolist(),
            "holds": self.holds,
            "optimal": self.optimal,
            "gap": self.gap if self.gap < inf else None,
            "checks": {name: _without_name(answer) for name, answer in answers.items()},
        }


def _without_name(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key != "name"}


def certificate(objective: Objective, path: Path, k: int, *, method: str = "bound") -> Certificate:
    """Check again, from the data, what the answer of k features promises.

    - *optimality*: no gradient is left on the support;
    - *forward*: every feature that entered was the best candidate, and above the threshold;
    - *backward*: whenever an iteration began, dropping a feature would have cost at least `ratio`
      of the gain recorded for that size, and every feature dropped cost less;
    - *exit*: the run ended where it should have.

    These are promises of the algorithm. Beyond them: whether any single *swap* would lower Q; the
    *corollary*'s condition, with the answer in place of the true solution; and a proof that no
    other k candidates are better (*optimal*), or by how much they might be (`gap`). With g the
    largest gradient outside and b the least coefficient, it is proved where b rho_-(2k) >= g; this
    is shown in `docs/theory.md`.

    Parameters
    ----------
    objective : Objective
        What the path was made with, or the same built again.
    path : Path
        Of `select`, or loaded from a file.
    k : int
        A size that the path visited; the answer is ``path[k]``.
    method : {"bound", "exact", "sample"}
        How `restricted_curvature` finds rho. With "sample" nothing is proved.

    Returns
    -------
    Certificate
        ``print`` it, ask `holds` and `optimal`, or take `to_dict()`.

    Raises
    ------
    ValueError
        Where the path does not add up: it is of another objective, or was changed.

    Examples
    --------
    >>> import numpy as np
    >>> from forback import select
    >>> from forback.certificates import certificate
    >>> from forback.objectives import LeastSquares
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 20))
    >>> objective = LeastSquares(X, 3 * X[:, 2] - 2 * X[:, 7] + rng.normal(size=300))
    >>> result = certificate(objective, select(objective, k=2), 2)
    >>> result.holds, result.optimal
    (True, True)
    """
    check_choice(method, "method", METHODS)
    run = Run.of(objective, path)
    objective = run.objective
    point = path[check_integer(k, "k", low=0)]
    worst = verify(run)
    detail = f"no other coefficients of these features lower Q by more than {worst:.1e} of it"
    converged = point.status is Status.CONVERGED
    checks = [
        Check("optimality", True if converged else None, detail if converged else point.note),
        _forward(run),
        _backward(run),
        _exit(run, point.size),
    ]
    curvature = _knowledge(run, point.size, method)
    swaps = best_swap(objective, point, run.blocks, _floor(curvature))
    gap, optimal = _optimal(run, point, curvature)
    checks += [_swap(run, point, swaps), _corollary(run, point, curvature), optimal]
    features = tuple(path.name(int(run.blocks.numbers[block])) for block in run.inside(point))
    known = curvature if isinstance(curvature, Curvature) else None
    return Certificate(point.size, point, tuple(checks), swaps, features, known, gap)


# Promises of the algorithm -----------------------------------------------------------------------


def _forward(run: Run) -> Check:
    before, added = run.path.start, 0
    for number, step in enumerate(run.path.steps, 1):
        if step.action == "add":
            added += 1
            place = int(np.flatnonzero(run.blocks.numbers == step.feature)[0])
            scores = run.goodness(before)
            best, own = float(scores.max()), float(scores[place])
            slack = NEARLY * abs(best) + run.score_noise(before, own, place)
            detail = f"step {number} scored {own:.6g}, the threshold is {run.rule.threshold:.6g}"
            if abs(own - step.score) > slack:
                return Check("forward", False, f"{detail}; recorded is {step.score:.6g}")
            if own < run.rule.threshold - slack:
                return Check("forward", False, detail)
            better = np.flatnonzero(scores > own + slack)  # of use, they would have come first
            if any(run.lowers(before, int(block)) for block in better):
                return Check("forward", False, f"{detail}; the best candidate scored {best:.6g}")
        before = step.point
    return Check("forward", True, f"{added} additions, each the best candidate")


def _backward(run: Run) -> Check:
    if not run.removes:
        return Check("backward", None, f"{run.path.settings['method']} has no backward steps")
    ratio, least, seen = run.path.settings["ratio"], inf, 0
    for top in run.iterations():
        if top.gain is None or top.gain <= run.resolution(top.point):
            continue
        rise = _cheapest(run, top.point)[1]
        least, seen = min(least, rise / top.gain), seen + 1
        slack = run.cost_noise(top.point, rise)
        if rise < (1.0 - NEARLY) * ratio * top.gain - slack:
            wrong = f"after step {top.number} one feature could go for {rise:.6g}, less than "
            return Check("backward", False, f"{wrong}{ratio:g} of {top.gain:.6g}")
    wrong = _bad_removal(run, ratio)
    if wrong:
        return Check("backward", False, wrong)
    removed = sum(step.action == "remove" for step in run.path.steps)
    detail = f"{removed} removals, each cheap enough"
    if seen:
        detail += f"; what stayed would have cost at least {least:.3g} times the gain recorded"
    return Check("backward", True, detail)


def _cheapest(run: Run, point: Point) -> tuple[int, float]:
    """The block that leaves most cheaply, and what that costs."""
    inside = run.inside(point)
    rises = run.badness(run.objective, point, run.blocks.take(inside), inf).values
    return int(inside[rises.argmin()]), float(rises.min())


def _bad_removal(run: Run, ratio: float) -> str:
    """What is wrong with a removal: too dear, not the cheapest, or not what was recorded."""
    gains: dict[int, float] = {}
    before = run.path.start
    for number, step in enumerate(run.path.steps, 1):
        if step.action == "add":
            gains[step.size] = step.change
        else:
            gain = gains[step.size + 1]
            block = run.blocks[int(np.flatnonzero(run.blocks.numbers == step.feature)[0])]
            own = Blocks.of([block], run.always)
            rise = float(run.badness(run.objective, before, own, inf).values[0])
            slack = NEARLY * gain + run.cost_noise(before, rise)
            detail = f"step {number}, the removal of {step.feature}, cost {rise:.6g}"
            if abs(rise - step.score) > slack:
                return f"{detail}; recorded is {step.score:.6g}"
            if rise > _cheapest(run, before)[1] + slack:
                return f"{detail}; another was cheaper"
            if rise >= ratio * gain + slack:
                return f"{detail}, not less than {ratio:g} of {gain:.6g}"
        before = step.point
    return ""


def _exit(run: Run, k: int) -> Check:
    """Whether the run ended where it should have; it may have gone on beyond the answer."""
    check = _end(run)
    further = f"the run went on to size {run.path.end.size}; " if run.path.end.size != k else ""
    return replace(check, detail=f"{further}{check.detail}")


def _end(run: Run) -> Check:
    end, settings, reason = run.path.end, run.path.settings, run.path.stop_reason
    if settings["k"] is not None and end.size >= settings["k"]:
        return Check("exit", True, f"size {settings['k']} was reached")
    best = run.best_outside(end)
    if best is None:
        return Check("exit", True, "no candidate was left that lowers the objective")
    detail = f"the best goodness outside is {best:.6g}, the threshold {run.rule.threshold:.6g}"
    if best < (1.0 + NEARLY) * run.rule.threshold:
        return Check("exit", True, detail)
    if run.rule.refuses(end, run.blocks, int(run.goodness(end).argmax()), best):
        return Check("exit", True, reason)
    steps = settings.get("max_steps")
    if steps is not None and len(run.path.steps) >= steps:
        return Check("exit", True, f"{steps} steps were done")
    if run.path.stop in (StopReason.CALLBACK, StopReason.INTERRUPTED):
        return Check("exit", None, f"{reason}; {detail}")
    return Check("exit", False, f"no reason to end here: {detail}")


# Beyond ------------------------------------------------------------------------------------------


def _knowledge(run: Run, k: int, method: str) -> Curvature | str:
    """The curvature along 2k candidates, which two answers of k span; else why there is none."""
    if not run.blocks.are_single:
        return "proofs are about single candidates, not about groups"
    if k == 0:
        return "nothing is in"
    try:
        s = min(2 * k, len(run.free))
        return restricted_curvature(run.objective, s, method, always=run.always)
    except ValueError as error:
        return str(error)


def _floor(curvature: Curvature | str) -> float:
    if isinstance(curvature, str) or not curvature.certified:
        return 0.0
    return curvature.lower


def _swap(run: Run, point: Point, swaps: Swaps) -> Check:
    seen = f"{swaps.judged} of {swaps.pairs} pairs judged"
    if swaps.gain > run.resolution(point):
        out, into = (
            run.path.name(int(run.blocks.numbers[place])) for place in (swaps.out, swaps.into)
        )
        detail = f"{into} for {out} lowers Q by {swaps.gain:.6g} ({seen}, prices aside)"
        return Check("no better swap", False, detail, promised=False)
    passed = True if swaps.complete else None
    return Check("no better swap", passed, f"none found ({seen})", promised=False)


def _corollary(run: Run, point: Point, curvature: Curvature | str) -> Check:
    name = "corollary"
    if isinstance(curvature, str):
        return Check(name, None, curvature, promised=False)
    method = "sample" if curvature.method == "sample" else "bound"  # s may be large
    wide = sufficient_s(run.objective, point.size, method, always=run.always)
    if wide is None:
        detail = f"vacuous: no s satisfies the sparsity condition for k = {point.size}"
        return Check(name, None, detail, promised=False)
    least, steepest = _signal(run, point)
    needed = 8.0 * wide.single / wide.lower**2
    detail = f"least coefficient {least:.4g}, needed {needed:.4g} x {steepest:.4g}; {wide}"
    passed = least >= needed * steepest if wide.certified else None
    return Check(name, passed, detail, promised=False)


def _optimal(run: Run, point: Point, curvature: Curvature | str) -> tuple[float, Check]:
    """Whether strong convexity proves the answer best, and how much better another could be."""
    name = "optimal"
    if isinstance(curvature, str):
        return inf, Check(name, None, curvature, promised=False)
    if curvature.lower <= 0.0:
        flat = f"rho_-({curvature.s}) is 0: collinear columns, or a loss that is flat without ridge"
        return inf, Check(name, None, flat, promised=False)
    if point.status is not Status.CONVERGED:
        return inf, Check(name, None, point.note, promised=False)
    inside, outside = np.intersect1d(point.support, run.free), run.outside(point)
    own = np.sort(np.abs(point.dense(run.objective.dim)[inside]))
    slopes, rho = run.objective.gradient(point), curvature.lower
    # Rounding moves a gradient by no more than this: see `Run.score_noise`.
    off = run.resolution(point)
    noise = float(np.sqrt(2.0 * off * curvature.single))
    steepest = np.sort(np.abs(slopes[run.blocks.coordinates[outside]]))[::-1] + noise
    m = min(len(own), len(steepest))
    # Swapping m features gains at most g^2 / (2 rho) each and loses at least rho b^2 / 2 each, up
    # to what a fit has left of the gradient on the support.
    with np.errstate(over="ignore"):
        each = 0.5 * (steepest[:m] ** 2 / rho - rho * own[:m] ** 2)
    left = float(np.linalg.norm(slopes[point.support]))
    same = 0.5 * left**2 / rho  # the same features refitted
    slack = left * np.sqrt(np.cumsum(own[:m] ** 2)) + same
    gap = float((np.cumsum(each) + slack).max(initial=same if same > off else 0.0))
    detail = f"others could be better, by {gap:.4g} at most"
    if gap == 0.0:
        detail = "no other candidates are better"
    kind = f"rho_-({curvature.s}) = {curvature.lower:.4g}"
    if not curvature.certified:
        return inf, Check(name, None, f"{detail}, if {kind}, an estimate", promised=False)
    return gap, Check(name, True if gap == 0.0 else None, f"{detail} ({kind})", promised=False)


def _signal(run: Run, point: Point) -> tuple[float, float]:
    """The least coefficient and the largest gradient outside."""
    inside = np.intersect1d(point.support, run.free)
    least = np.abs(point.dense(run.objective.dim)[inside]).min(initial=inf)
    slopes = run.objective.gradient(point)[run.blocks.coordinates[run.outside(point)]]
    return float(least), float(np.abs(slopes).max(initial=0.0))
