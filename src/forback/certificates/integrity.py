"""Whether a path adds up: every step, value and coefficient worked out again from the data."""

from __future__ import annotations

import numpy as np

from forback.certificates.runs import Run
from forback.protocols import Point, Step

#: Differences of Q that rounding and the accuracy of fits explain, relatively.
SAME = 1e-8


def verify(run: Run) -> float:
    """Raise ValueError where the path does not add up; else return by how much fits can improve.

    That is the largest fall of Q, over all points, when the coefficients of a support are fitted
    again, as a share of its size.
    """
    point, worst = run.path.start, _verify_point(run, run.path.start, "the start")
    steps, limit = run.path.steps, run.path.settings.get("max_steps")
    if limit is not None and len(steps) > limit:
        raise _reject("the end", f"there are {len(steps)} steps, more than max_steps={limit}")
    for number, step in enumerate(steps, 1):
        name = f"step {number}"
        _verify_step(run, point, step, name)
        point = step.point
        worst = max(worst, _verify_point(run, point, name))
        _verify_cost(run, step, name)
    return worst


def _reject(name: str, what: str) -> ValueError:
    return ValueError(
        f"the path is not what this objective gives, or was changed: at {name} {what}. (That of an "
        "estimator belongs to the scale it was fitted on: standardised columns, ridge=alpha)"
    )


def _verify_point(run: Run, point: Point, name: str) -> float:
    """Check coefficients and Q of a point; return by how much a new fit lowers Q, relatively."""
    support, coef, dim = point.support, point.coef, run.objective.dim
    if len(coef) != len(support) or not np.isfinite(coef).all():
        raise _reject(name, "coefficients are missing or not finite")
    if len(support) and not (
        support[0] >= 0 and support[-1] < dim and (np.diff(support) > 0).all()
    ):
        raise _reject(name, "the support is not a sorted list of coordinates")
    value = run.objective.value_and_gradient(point.dense(dim))[0]
    allowed = SAME * run.scale(point) + run.rounding(point)
    if not abs(value - point.value) <= allowed:
        raise _reject(name, f"the objective is {value:.10g}, not {point.value:.10g}")
    better = point.value - run.objective.minimise(support, point.without_cache()).value
    # Where there is no minimum, or fits were cut short, a new one from scratch must do no better.
    if better > allowed and not (
        point.note and point.value <= run.objective.minimise(support).value + allowed
    ):
        raise _reject(name, f"other coefficients lower the objective by {better:.4g}")
    return max(float(better), 0.0) / run.scale(point)


def _verify_step(run: Run, before: Point, step: Step, name: str) -> None:
    """Check that a step leads from one point to the next."""
    after = step.point
    places = np.flatnonzero(run.blocks.numbers == step.feature)
    if step.action not in ("add", "remove") or len(places) != 1:
        raise _reject(name, f"{step.action!r} of {step.feature!r} is no step of this run")
    if step.action == "remove" and not run.removes:
        raise _reject(name, f"{run.path.settings['method']} removes nothing")
    block = run.blocks[int(places[0])]
    joined = step.action == "add"
    expected = (np.union1d if joined else np.setdiff1d)(before.support, block)
    met = np.isin(block, before.support)
    if met.any() if joined else not met.all():
        raise _reject(name, f"{step.feature} was {'in' if joined else 'not in'} already")
    if not np.array_equal(expected, after.support):
        raise _reject(name, f"the support does not follow from {step.action} {step.feature}")
    if not (step.size == after.size == before.size + (1 if joined else -1)):
        raise _reject(name, f"the size is {after.size} or {step.size} after {before.size}")
    k = run.path.settings["k"]
    if joined and k is not None and before.size >= k:
        raise _reject(name, f"the run goes on although size {k} was reached")
    allowed = SAME * run.scale(before) + run.rounding(before)
    fall = before.value - after.value
    if step.value != after.value or not abs(fall - step.change) <= allowed:
        raise _reject(
            name, f"Q went from {before.value:.10g} to {after.value:.10g}, which is no change of "
            f"{step.change:.10g} to {step.value:.10g}",
        )  # fmt: skip


def _verify_cost(run: Run, step: Step, name: str) -> None:
    """Check what was paid, and that it was affordable."""
    ledger, budget = run.path.ledger, run.path.settings["budget"]
    used, cost = ledger.used(step.point.support), ledger.cost(step.point.support)
    if step.groups != len(used) or not np.isclose(step.cost, cost, rtol=1e-12, atol=0.0):
        raise _reject(name, f"{len(used)} groups cost {cost:g}, not {step.groups} {step.cost:g}")
    if budget is not None and cost > budget * (1.0 + 1e-12):
        raise _reject(name, f"groups cost {cost:g}, more than the budget {budget:g}")
