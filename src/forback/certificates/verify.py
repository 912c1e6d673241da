"""Whether a path adds up: every value and coefficient worked out again from the data.

That steps, sizes, supports and costs follow from each other `forback.selection.path_file` has seen.
"""

from __future__ import annotations

from forback.certificates.replay import Run, rejected
from forback.core.point import Point, Step
from forback.core.status import Status


def verify(run: Run) -> float:
    """Raise ValueError where the path does not add up; else return by how much fits can improve.

    That is the largest fall of Q, over all points, when the coefficients of a support are fitted
    again, as a share of it.
    """
    worst = _verify_point(run, run.path.start, "the start")
    steps, limit = run.path.steps, run.settings.max_steps
    if limit is not None and len(steps) > limit:
        raise rejected(f"there are {len(steps)} steps, more than max_steps={limit}")
    for number, before, step in run.moves():
        _verify_step(run, before, step, f"step {number}")
        worst = max(worst, _verify_point(run, step.point, f"step {number}"))
    return worst


def _verify_point(run: Run, point: Point, name: str) -> float:
    """Check coefficients and Q of a point; return by how much a new fit lowers Q, relatively."""
    value = run.objective.value_and_gradient(point.dense(run.objective.dim))[0]
    allowed = run.allowed(point)
    if not abs(value - point.value) <= allowed:
        raise rejected(f"at {name} the objective is {value:.10g}, not {point.value:.10g}")
    better = point.value - run.objective.minimise(point.support, point.without_cache()).value
    # Where there is no minimum, or fits were cut short, a new one from scratch must do no better.
    if better > allowed and not (
        point.status is not Status.CONVERGED
        and point.value <= run.objective.minimise(point.support).value + allowed
    ):
        raise rejected(f"at {name} other coefficients lower the objective by {better:.4g}")
    return max(float(better), 0.0) / abs(point.value) if point.value else 0.0


def _verify_step(run: Run, before: Point, step: Step, name: str) -> None:
    """Check that the run could make such a step, and pay for it."""
    method, k, budget = run.settings.method, run.settings.k, run.settings.budget
    if step.action == "remove" and run.settings.badness is None:
        raise rejected(f"at {name} something leaves, but {method} removes nothing")
    if step.action == "add" and k is not None and before.size >= k:
        raise rejected(f"at {name} the run goes on although size {k} was reached")
    if budget is not None and step.cost > budget * (1.0 + 1e-12):
        raise rejected(f"at {name} groups cost {step.cost:g}, more than the budget {budget:g}")
