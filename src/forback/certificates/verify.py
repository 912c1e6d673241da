"""Whether a path adds up: every value and coefficient worked out again from the data.

That steps, sizes, supports and costs follow from each other `forback.selection.path_file` has seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from forback.certificates.replay import Run, rejected
from forback.core.point import Point, Step
from forback.core.status import Status, StopReason
from forback.core.tolerances import BUDGET_RTOL
from forback.selection.descent import Descent

#: How descents end that somebody stopped.
CUT_SHORT = ("", StopReason.CALLBACK.value)


def verify(run: Run) -> float:
    """Raise ValueError where the path does not add up; else return by how much fits can improve.

    That is the largest fall of Q, over all points, when the coefficients of a support are fitted
    again, as a share of it.
    """
    worst = _verify_point(run, run.path.start, "the start")
    steps, limit = run.path.steps, run.settings.max_steps
    if limit is not None and len(steps) > max(limit, run.has_start):
        raise rejected(f"there are {len(steps)} steps, more than max_steps={limit}")
    for number, before, step in run.moves():
        _verify_step(run, before, step, f"step {number}")
        worst = max(worst, _verify_point(run, step.point, f"step {number}"))
    for number, descent in enumerate(run.path.descents, 1):
        worst = max(worst, _verify_descent(run, descent, f"descent {number} ({descent.start})"))
    return worst


def _verify_descent(run: Run, descent: Descent, name: str) -> float:
    """Check every point of a descent, and that it leads down; return what new fits would gain."""
    worst, budget = 0.0, run.settings.budget
    for number, point in enumerate(descent.points):
        here = f"step {number} of {name}" if number else f"the origin of {name}"
        worst = max(worst, _verify_point(run, point, here))
        cost = run.path.cost(point)
        if budget is not None and cost > budget * (1.0 + BUDGET_RTOL):
            raise rejected(f"at {here} groups cost {cost:g}, more than the budget {budget:g}")
    for number, before, after in _ways_down(descent):
        if not after.value < before.value:
            rise = after.value - before.value
            raise rejected(f"step {number} of {name} does not lower Q, but raises it by {rise:.4g}")
    return worst


def _ways_down(descent: Descent) -> Iterator[tuple[int, Point, Point]]:
    """From where to where each exchange leads, with the number of its last step.

    What leaves and enters by steps of its own is an exchange from the first of these to the last.
    """
    moves = list(zip(descent.points, descent.steps, strict=False))
    done = 0
    for is_one, some in groupby(moves, lambda move: move[1].action == "exchange"):
        own = list(some)
        for before, step in own if is_one else [(own[0][0], own[-1][1])]:
            done += 1 if is_one else len(own)
            if is_one or done < len(moves) or descent.ending not in CUT_SHORT:
                yield done, before, step.point


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
    if step.action != "remove" and k is not None and step.size > k:
        raise rejected(f"at {name} the run goes on although size {k} was reached")
    if budget is not None and step.cost > budget * (1.0 + BUDGET_RTOL):
        raise rejected(f"at {name} groups cost {step.cost:g}, more than the budget {budget:g}")
