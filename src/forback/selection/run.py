"""A run from candidates to a path: the checks of its settings, and the driver of Algorithm 1."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

from forback.core.candidates import Candidates
from forback.core.objective import Objective, ObjectiveError
from forback.core.point import Move, Step
from forback.core.rule import Rule
from forback.core.status import Ending, StopReason
from forback.core.units import Units
from forback.selection.budget import within_budget
from forback.selection.loop import forward_backward
from forback.selection.path import Path
from forback.selection.permutation import AUTO, above_noise
from forback.selection.rules import ByDecrease, ByGradient
from forback.selection.settings import Settings

Callback = Callable[[Step], Any]


def run_selection(
    objective: Objective,
    candidates: Candidates,
    settings: Settings,
    *,
    callback: Callback | None = None,
    random_state: Any = 0,
) -> Path:
    """Do what `select` does, for candidates and settings that were checked already."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable with a Step, got {callback!r}")
    blocks = candidates.blocks
    with _Keeping(None):
        objective, units = in_range(objective)
        start = objective.minimise(blocks.always, None).of_size(0)
    simple = _in_units(settings.rule, units)
    first = start if units is None else units.point(start)
    path = Path(first, objective.dim, candidates.group_costs, {}, candidates.names)

    def run(rule: Rule, k: int | None = None) -> Generator[Move, None, Ending]:
        return forward_backward(
            objective,
            blocks,
            rule,
            start,
            k=k,
            badness=settings.badness,
            ratio=settings.ratio,
        )

    if settings.threshold == AUTO:
        with _Keeping(path):
            simple = above_noise(simple, objective, blocks, start, run, random_state)
    found = {"threshold": simple.threshold, "by": candidates.by}
    path.settings = {**vars(settings), **found}
    rule = within_budget(simple, candidates.group_costs, settings.budget, settings.k)

    def record(move: Move) -> Step:
        if units is not None:
            move = units.move(move, path.end, simple.power)
        return path.record(move, int(blocks.numbers[move.block]), candidates.columns(move.block))

    with _Keeping(path):
        moves = run(rule, settings.k)
        path.end_with(_drive(moves, path, record, settings.max_steps, callback))
    return path


class _Keeping(contextlib.AbstractContextManager[Any]):
    """Whatever ends a run early takes the path so far along, and says at which step it was.

    A class, because a generator would set the traceback of an exception, which may refuse that.
    """

    def __init__(self, path: Path | None, where: str | None = None) -> None:
        self.path, self.where = path, where

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is not None:
            with contextlib.suppress(Exception):  # it may refuse any of this
                _add_path(error, self.path, self.where)


def _add_path(error: BaseException, path: Path | None, where: str | None) -> None:
    if path is not None and getattr(error, "path", None) is path:
        return
    error.path = path  # type: ignore[attr-defined]
    if path is None:
        where = "before the first step, in the fit of what is always in"
        kept = "there is no path yet"
    else:
        where = where or f"at step {len(path.steps) + 1} (size {path.end.size} so far)"
        kept = "the path up to there is its `path`"
        if isinstance(error, KeyboardInterrupt):
            path.end_with(StopReason.INTERRUPTED.because())
        else:
            sentence = str(error) or type(error).__name__
            path.end_with(StopReason.ERROR.because(error=sentence))
    if isinstance(error, ObjectiveError):
        error.args = (f"{where}: {error}",)
    elif not isinstance(error, KeyboardInterrupt):
        error.add_note(f"Raised by `select` {where}; {kept}.")


def in_range(objective: Objective) -> tuple[Objective, Units | None]:
    """Return the objective in units in which nothing is too small to be squared, and these."""
    return objective.rescaled() or (objective, None)


def _in_units(rule: ByDecrease | ByGradient, units: Units | None) -> ByDecrease | ByGradient:
    """The rule that means the same for an objective in other units."""
    if units is None:
        return rule
    if isinstance(rule, ByDecrease):
        return replace(rule, power=units.value)
    factors, power = units.slopes
    return replace(rule, power=power, factors=factors)


def _drive(
    moves: Generator[Move, None, Ending],
    path: Path,
    record: Callable[[Move], Step],
    max_steps: int | None,
    callback: Callback | None,
) -> Ending:
    """Record moves until the generator ends or somebody stops it; return why."""
    while True:
        if max_steps is not None and len(path.steps) >= max_steps:
            return StopReason.MAX_STEPS.because(max_steps=max_steps)
        try:
            move = next(moves)
        except StopIteration as end:
            ending: Ending = end.value
            return ending
        step = record(move)
        if callback is not None and _says_stop(callback, step, path):
            return StopReason.CALLBACK.because()


def _says_stop(callback: Callback, step: Step, path: Path) -> bool:
    with _Keeping(path, f"by the callback after step {len(path.steps)} (size {path.end.size})"):
        answer = callback(step)
        try:
            return bool(answer)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"callback must answer with something true or false, got {answer!r}"
            ) from error
