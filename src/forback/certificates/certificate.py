"""`certificate`: what a fitted answer promises, checked again from the data."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from forback.certificates.bounds import sufficient_s
from forback.certificates.curvature import METHODS, Curvature, restricted_curvature
from forback.certificates.replay import Run
from forback.certificates.swaps import Swaps, best_swap
from forback.certificates.verify import verify
from forback.core.objective import Objective
from forback.core.point import Point
from forback.core.status import Status
from forback.core.types import Floats
from forback.selection.exchange import NONE_HELPS
from forback.selection.path import Path
from forback.validation.scalars import check_choice, check_integer

#: Whether a check is passed (None: it cannot be told, or does not apply), and the detail.
Answer = tuple[bool | None, str]

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

    def to_dict(self) -> dict[str, Any]:
        """Return the answer without the name of the question, ready for JSON."""
        return {"passed": self.passed, "detail": self.detail, "promised": self.promised}


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
    refined : bool
        Whether refinement found the answer, and not the literal run.
    curvature : Curvature | None
    gap : float
        No k candidates reach a Q lower by more than this; infinity: not known.
    """

    k: int
    point: Point
    checks: tuple[Check, ...]
    swaps: Swaps
    features: tuple[str, ...]
    refined: bool
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
        kind = "refined" if self.refined else "literal"
        head = f"{self.k} chosen{names}, {kind}, objective {self.point.value:.6g}: " + (
            "all guarantees hold" if self.holds else "some guarantees FAILED"
        )
        return "\n".join([head, *map(str, self.checks)])

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain words and numbers, ready for JSON."""
        return {
            "k": self.k,
            "objective": self.point.value,
            "features": list(self.features),
            "support": self.point.support.tolist(),
            "refined": self.refined,
            "holds": self.holds,
            "optimal": self.optimal,
            "gap": self.gap if self.gap < inf else None,
            "checks": {check.name: check.to_dict() for check in self.checks},
        }


def certificate(objective: Objective, path: Path, k: int, *, method: str = "bound") -> Certificate:
    """Check again, from the data, what the answer of k features promises.

    - *optimality*: no gradient is left on the support;
    - *forward*: every feature that entered was the best candidate, and above the threshold;
    - *backward*: whenever an iteration began, dropping a feature would have cost at least `ratio`
      of the gain recorded for that size, and every feature dropped cost less;
    - *exit*: the run ended where it should have;
    - *refinement*: every exchange lowered Q and, where scores have a closed form and no budget
      rules exchanges out, the answer is where no other helps.

    What a user gave a run to begin with is fitted again, not compared with others. These are
    promises of the algorithm. Beyond them: whether any single *swap* would lower Q; the
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
        A size that the path visited; the answer is ``path[k]``, literal or refined.
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
    curvature, unknown = _knowledge(run, point.size, method)
    corollary: Answer = (None, unknown)
    gap, optimal = inf, corollary
    floor = 0.0
    if curvature is not None:
        corollary = _corollary(run, point, curvature)
        gap, optimal = _optimal(run, point, curvature)
        floor = curvature.lower if curvature.certified else 0.0
    swaps = best_swap(objective, point, run.blocks, floor)
    checks = (
        Check("optimality", True if converged else None, detail if converged else point.note),
        Check("forward", *_forward(run)),
        Check("backward", *_backward(run)),
        Check("exit", *_exit(run, point.size)),
        Check("refinement", *_refinement(run, point, swaps)),
        Check("no better swap", *_swap(run, point, swaps), promised=False),
        Check("corollary", *corollary, promised=False),
        Check("optimal", *optimal, promised=False),
    )
    features = tuple(path.name(int(run.blocks.numbers[block])) for block in run.inside(point))
    refined = not any(point is visited for visited in path.points)
    return Certificate(point.size, point, checks, swaps, features, refined, curvature, gap)


# Promises of the algorithm -----------------------------------------------------------------------


def _forward(run: Run) -> Answer:
    added = 0
    for number, before, step in run.moves():
        if step.action == "add":
            added += 1
            place = run.place(step)
            scores = run.goodness(before)
            best, own = float(scores.max()), float(scores[place])
            slack = NEARLY * abs(best) + run.score_noise(before, own, place)
            detail = f"step {number} scored {own:.6g}, the threshold is {run.rule.threshold:.6g}"
            if abs(own - step.score) > slack:
                return False, f"{detail}; recorded is {step.score:.6g}"
            if own < run.rule.threshold - slack:
                return False, detail
            better = np.flatnonzero(scores > own + slack)  # of use, they would have come first
            if any(run.lowers(before, int(block)) for block in better):
                return False, f"{detail}; the best candidate scored {best:.6g}"
    given = "; what was given to begin with was not compared" if run.has_start else ""
    return True, f"{added} additions, each the best candidate{given}"


def _backward(run: Run) -> Answer:
    if run.settings.badness is None:
        return None, f"{run.settings.method} has no backward steps"
    ratio, least, seen = run.settings.ratio, inf, 0
    for top in run.iterations():
        if top.gain is None or top.gain <= run.objective.resolution(top.point):
            continue
        rise = float(run.costs(top.point, run.inside(top.point)).min())
        least, seen = min(least, rise / top.gain), seen + 1
        slack = run.cost_noise(top.point, rise)
        if rise < (1.0 - NEARLY) * ratio * top.gain - slack:
            wrong = f"after step {top.number} one feature could go for {rise:.6g}, less than "
            return False, f"{wrong}{ratio:g} of {top.gain:.6g}"
    wrong = _bad_removal(run, ratio)
    if wrong:
        return False, wrong
    removed = sum(step.action == "remove" for step in run.path.steps)
    detail = f"{removed} removals, each cheap enough"
    if seen:
        detail += f"; what stayed would have cost at least {least:.3g} times the gain recorded"
    return True, detail


def _bad_removal(run: Run, ratio: float) -> str:
    """What is wrong with a removal: too expensive, not the cheapest, or not what was recorded."""
    gains: dict[int, float] = {}
    for number, before, step in run.moves():
        if step.action != "remove":
            gains[step.size] = run.gain(step)
        else:
            gain = gains.get(step.size + 1, 0.0)
            rise = float(run.costs(before, np.array([run.place(step)]))[0])
            slack = NEARLY * gain + run.cost_noise(before, rise)
            detail = f"step {number}, the removal of {step.feature}, cost {rise:.6g}"
            if abs(rise - step.score) > slack:
                return f"{detail}; recorded is {step.score:.6g}"
            if rise > run.costs(before, run.inside(before)).min() + slack:
                return f"{detail}; another was cheaper"
            if rise >= ratio * gain + slack:
                return f"{detail}, not less than {ratio:g} of {gain:.6g}"
    return ""


def _exit(run: Run, k: int) -> Answer:
    """Whether the run ended where it should have; it may have gone on beyond the answer."""
    passed, detail = _end(run)
    further = f"the run went on to size {run.path.end.size}; " if run.path.end.size != k else ""
    return passed, f"{further}{detail}"


def _end(run: Run) -> Answer:
    end, reason = run.path.end, run.path.stop_reason
    k, steps = run.settings.k, run.settings.max_steps
    if k is not None and end.size >= k:
        return True, f"size {k} was reached"
    best = run.best_outside(end)
    if best is None:
        return True, "no candidate was left that lowers the objective"
    detail = f"the best goodness outside is {best:.6g}, the threshold {run.rule.threshold:.6g}"
    if best < (1.0 + NEARLY) * run.rule.threshold:
        return True, detail
    if run.rule.refuses(end, run.blocks, int(run.goodness(end).argmax()), best):
        return True, reason
    if steps is not None and len(run.path.steps) >= steps:
        return True, f"{steps} steps were done"
    if run.path.stop.is_from_outside:
        return None, f"{reason}; {detail}"
    return False, f"no reason to end here: {detail}"


def _refinement(run: Run, point: Point, swaps: Swaps) -> Answer:
    """Whether refinement ended where it should have; that it leads down `verify` has seen."""
    descents = run.path.descents
    if not descents:
        return None, "there was none"
    steps = sum(len(descent.steps) for descent in descents)
    seen = f"{len(descents)} starts and {steps} steps, all confirmed"
    own = [descent for descent in descents if any(point is here for here in descent.points)]
    where = f"the answer is from {own[0].start!r}" if own else "the literal answer is as low"
    ended = any(
        descent.ending == NONE_HELPS and np.array_equal(descent.end.support, point.support)
        for descent in descents
    )
    helps = swaps.gain > run.allowed(point) and run.settings.budget is None
    if ended and helps and swaps.out is not None and swaps.into is not None:
        pair = run.blocks.take([swaps.out]), run.blocks.take([swaps.into])
        scores = run.objective.decrease_if_exchanged(point, *pair, estimate=True)
        if scores.n_exact and scores.values[0, 0] > run.allowed(point):
            return False, f"{where}, where another exchange lowers Q by {swaps.gain:.6g}; {seen}"
    return True, f"{where}; {seen}"


# Beyond ------------------------------------------------------------------------------------------


def _knowledge(run: Run, k: int, method: str) -> tuple[Curvature | None, str]:
    """The curvature along 2k candidates, which two answers of k span; else why there is none."""
    if not run.blocks.are_single:
        return None, "proofs are about single candidates, not about groups"
    if k == 0:
        return None, "nothing is in"
    try:
        s = min(2 * k, len(run.free))
        return restricted_curvature(run.objective, s, method, always=run.always), ""
    except ValueError as error:
        return None, str(error)


def _swap(run: Run, point: Point, swaps: Swaps) -> Answer:
    seen = f"{swaps.judged} of {swaps.pairs} pairs judged"
    if swaps.gain > run.objective.resolution(point):
        out, into = (
            run.path.name(int(run.blocks.numbers[place])) for place in (swaps.out, swaps.into)
        )
        return False, f"{into} for {out} lowers Q by {swaps.gain:.6g} ({seen}, prices aside)"
    return True if swaps.complete else None, f"none found ({seen})"


def _corollary(run: Run, point: Point, curvature: Curvature) -> Answer:
    method = "sample" if curvature.method == "sample" else "bound"  # s may be large
    wide = sufficient_s(run.objective, point.size, method, always=run.always)
    if wide is None:
        return None, f"vacuous: no s satisfies the sparsity condition for k = {point.size}"
    own, outside = _signal(run, point)
    least, steepest = own.min(initial=inf), outside.max(initial=0.0)
    needed = 8.0 * wide.single / wide.lower**2
    detail = f"least coefficient {least:.4g}, needed {needed:.4g} x {steepest:.4g}; {wide}"
    return bool(least >= needed * steepest) if wide.certified else None, detail


def _optimal(run: Run, point: Point, curvature: Curvature) -> tuple[float, Answer]:
    """Whether strong convexity proves the answer best, and how much better another could be."""
    if curvature.lower <= 0.0:
        flat = f"rho_-({curvature.s}) is 0: collinear columns, or a loss that is flat without ridge"
        return inf, (None, flat)
    if point.status is not Status.CONVERGED:
        return inf, (None, point.note)
    own, outside = _signal(run, point)
    rho = curvature.lower
    # Rounding moves a gradient by no more than this: see `Run.score_noise`.
    off = run.objective.resolution(point)
    noise = float(np.sqrt(2.0 * off * curvature.single))
    steepest = outside + noise
    m = min(len(own), len(steepest))
    # Swapping m features gains at most g^2 / (2 rho) each and loses at least rho b^2 / 2 each, up
    # to what a fit has left of the gradient on the support.
    with np.errstate(over="ignore"):
        each = 0.5 * (steepest[:m] ** 2 / rho - rho * own[:m] ** 2)
    left = float(np.linalg.norm(run.objective.gradient(point)[point.support]))
    same = 0.5 * left**2 / rho  # the same features refitted
    slack = left * np.sqrt(np.cumsum(own[:m] ** 2)) + same
    gap = float((np.cumsum(each) + slack).max(initial=same if same > off else 0.0))
    detail = f"others could be better, by {gap:.4g} at most"
    if gap == 0.0:
        detail = "no other candidates are better"
    kind = f"rho_-({curvature.s}) = {curvature.lower:.4g}"
    if not curvature.certified:
        return inf, (None, f"{detail}, if {kind}, an estimate")
    return gap, (True if gap == 0.0 else None, f"{detail} ({kind})")


def _signal(run: Run, point: Point) -> tuple[Floats, Floats]:
    """The size of coefficients, the least first, and of gradients outside, the largest first."""
    inside = np.intersect1d(point.support, run.free)
    own = np.abs(point.dense(run.objective.dim)[inside])
    slopes = run.objective.gradient(point)[run.blocks.coordinates[run.outside(point)]]
    return np.sort(own), np.sort(np.abs(slopes))[::-1]
