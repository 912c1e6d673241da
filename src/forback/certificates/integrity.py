"""Whether a path adds up: every step, value and coefficient worked out again from the data."""

from __future__ import annotations

import numpy as np

from forback.certificates.runs import Run
from forback.protocols import Floats, Point, Step

#: Differences of Q that rounding explains, relatively.
SAME = 1e-8

#: What a fit may leave of the gradient, relative to the steepest before it.
LEFT = 1e-5


def verify(run: Run) -> float:
    """Raise ValueError where the path does not add up; else return the largest gradient left.

    That is over the supports of all points that were fitted to their end, relative to the gradient
    before.
    """
    steepest = _steepest(run)
    point, worst = run.path.start, _verify_point(run, run.path.start, "the start", steepest)
    for number, step in enumerate(run.path.steps, 1):
        name = f"step {number}"
        _verify_step(run, point, step, name)
        point = step.point
        worst = max(worst, _verify_point(run, point, name, steepest))
    return worst


def _reject(name: str, what: str) -> ValueError:
    return ValueError(
        f"the path is not what this objective gives, or was changed: at {name} {what}"
    )


def _steepest(run: Run) -> float:
    """The largest |gradient| before anything is fitted, or before any candidate is in."""
    value, gradient = run.objective.value_and_gradient(np.zeros(run.objective.dim))
    before = _finite_max(gradient) if np.isfinite(value) else 0.0
    return max(before, _finite_max(run.objective.gradient(run.path.start)))


def _finite_max(gradient: Floats) -> float:
    return float(np.abs(gradient).max(initial=0.0))


def _verify_point(run: Run, point: Point, name: str, steepest: float) -> float:
    """Check coefficients and Q of a point; return what is left of the gradient, relatively."""
    support, coef, dim = point.support, point.coef, run.objective.dim
    if len(coef) != len(support) or not np.isfinite(coef).all():
        raise _reject(name, "coefficients are missing or not finite")
    if len(support) and not (
        support[0] >= 0 and support[-1] < dim and (np.diff(support) > 0).all()
    ):
        raise _reject(name, "the support is not a sorted list of coordinates")
    value, gradient = run.objective.value_and_gradient(point.dense(dim))
    if not abs(value - point.value) <= SAME * max(abs(value), run.scale(run.path.start)):
        raise _reject(name, f"the objective is {value:.10g}, not {point.value:.10g}")
    left = _finite_max(gradient[support]) / (steepest or 1.0)
    if left > LEFT and not point.note:
        raise _reject(
            name, f"the coefficients are not the best: a gradient of {left:.1e} of that before"
        )
    return 0.0 if point.note else left


def _verify_step(run: Run, before: Point, step: Step, name: str) -> None:
    """Check that a step leads from one point to the next."""
    after = step.point
    places = np.flatnonzero(run.blocks.numbers == step.feature)
    if step.action not in ("add", "remove") or len(places) != 1:
        raise _reject(name, f"{step.action!r} of {step.feature!r} is no step of this run")
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
    _verify_numbers(run, before, step, name)


def _verify_numbers(run: Run, before: Point, step: Step, name: str) -> None:
    after: Point = step.point
    allowed = SAME * max(abs(before.value), run.scale(run.path.start))
    fall = before.value - after.value
    if step.value != after.value or not abs(fall - step.change) <= allowed:
        raise _reject(
            name, f"Q went from {before.value:.10g} to {after.value:.10g}, which is no change of "
            f"{step.change:.10g} to {step.value:.10g}",
        )  # fmt: skip
