"""A run from candidates to a path: the driver of Algorithm 1, and of what refines its answer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forback.core.candidates import Candidates
from forback.core.objective import Objective, ObjectiveError
from forback.core.point import Move, Point, Step
from forback.core.rule import Rule
from forback.core.status import Ending, StopReason
from forback.core.tolerances import BUDGET_RTOL
from forback.core.types import Ints
from forback.core.units import Units
from forback.selection.budget import within_budget
from forback.selection.exchange import Exchanges, Start
from forback.selection.loop import State, forward_backward
from forback.selection.path import Path
from forback.selection.permutation import AUTO, above_noise
from forback.selection.refine import refine
from forback.selection.refinement import Refinement
from forback.selection.rules import ByDecrease, ByGradient
from forback.selection.settings import Settings
from forback.selection.starts import Starts, Walk
from forback.solvers.threads import one_blas_thread, users_blas_threads
from forback.validation.scalars import check_generator

Callback = Callable[[Step], Any]


class Selection:
    """A run of Algorithm 1, and what may follow it.

    What is given must have been checked already.

    Parameters
    ----------
    objective : Objective
    candidates : Candidates
    settings : Settings
    callback : callable, optional
    random_state : int, numpy.random.Generator or None
        For permutations, and for the kicks of a search.
    """

    def __init__(
        self,
        objective: Objective,
        candidates: Candidates,
        settings: Settings,
        *,
        callback: Callback | None = None,
        random_state: Any = 0,
    ) -> None:
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable with a Step, got {callback!r}")
        self.candidates = candidates
        self.blocks = candidates.blocks
        self.settings = settings
        self._callback = callback
        self._random_state = random_state
        with _Keeping(None), one_blas_thread(objective.shares_out_work):
            self.objective, self._units = in_range(objective)
            start = self.objective.minimise(self.blocks.always, None).of_size(0)
        self._first = start
        self.walk = Walk(State(start), self._onwards)
        self._rule = _in_units(settings.rule, self._units)
        first = self._for_user(start)
        self.path = Path(first, objective.dim, candidates.group_costs, {}, candidates.names)
        if settings.threshold == AUTO:
            with _Keeping(self.path), one_blas_thread(objective.shares_out_work):

                def moves(rule: Rule) -> Generator[Move, None, Ending]:
                    return self._moves(State(start), rule, None)

                given = self._rule, self.objective, self.blocks, start, moves, random_state
                self._rule = above_noise(*given)
        found = {"threshold": self._rule.threshold, "by": candidates.by, "refine": None}
        self.path.settings = {**vars(settings), **found}

    def run(self) -> Path:
        """Do what `select` does literally, and return the path."""
        settings, path = self.settings, self.path
        rule = within_budget(self._rule, self.candidates.group_costs, settings.budget, settings.k)
        with _Keeping(path), one_blas_thread(self.objective.shares_out_work):
            moves = self._moves(self.walk.state, rule, settings.k)
            path.end_with(self._drive(moves))
        return path

    def refine(self, refinement: Refinement | None, size: int | None = None) -> Path:
        """Improve the answer, or that of another size, and add it to the path."""
        path = self.path
        answer = path.answer(self.settings.k)
        size = answer.size if size is None else size
        if refinement is None or path.stop.is_early or size == 0:
            return path
        path.settings = {**path.settings, "refine": refinement.to_dict()}
        most = self._most(answer)
        rule = replace(self._rule, threshold=0.0)
        starts = Starts(
            self.objective, self.blocks, rule, self.walk, size, self._first, self._fits(most)
        )
        exchanges = Exchanges(
            self.objective, self.blocks, refinement.shortlist, self._allowed(most)
        )
        if not self.objective.has_quick_exchanges and refinement.effort == 0.0:
            exchanges.max_fits = len(path.steps)
        rng = check_generator(self._random_state)
        with _Keeping(path), one_blas_thread(self.objective.shares_out_work):
            for event in refine(starts, exchanges, refinement, rng):
                if isinstance(event, str):
                    path.descents[-1].ending = event
                elif isinstance(event, Start):
                    entered = [self.blocks.always, *(self.blocks[b] for b in event.entered)]
                    path.descend_from(
                        event.name, self._for_user(event.point), np.concatenate(entered)
                    )
                elif self._tell(self._record(event)):
                    path.descents[-1].ending = StopReason.CALLBACK.value
                    break
        return path

    # What a run is made of ---------------------------------------------------------------------

    def _moves(self, state: State, rule: Rule, k: int | None) -> Generator[Move, None, Ending]:
        badness, ratio = self.settings.badness, self.settings.ratio
        return forward_backward(
            self.objective, self.blocks, rule, state, k=k, badness=badness, ratio=ratio
        )

    def _onwards(self, state: State, k: int) -> Generator[Move, None, Ending]:
        """The moves on to a size, with no threshold and whatever blocks cost."""
        return self._moves(state, replace(self._rule, threshold=0.0), k)

    def _drive(self, moves: Generator[Move, None, Ending]) -> Ending:
        """Record moves until the generator ends or somebody stops it; return why."""
        most = self.settings.max_steps
        while True:
            if most is not None and len(self.path.steps) >= most:
                return StopReason.MAX_STEPS.because(max_steps=most)
            try:
                move = next(moves)
            except StopIteration as end:
                ending: Ending = end.value
                return ending
            self.walk.record(move)
            if self._tell(self._record(move)):
                return StopReason.CALLBACK.because()

    # What a path is told -----------------------------------------------------------------------

    def _for_user(self, point: Point) -> Point:
        return point if self._units is None else self._units.point(point)

    def _record(self, move: Move) -> Step:
        path, number = self.path, self.blocks.numbers
        out = None if move.out is None else int(number[move.out])
        columns = self.candidates.columns(move.block)
        if self._units is not None:
            before = path.end if out is None else path.descents[-1].end
            power = self._rule.power if out is None else self._units.value
            move = self._units.move(move, before, power)
        return path.record(move, int(number[move.block]), columns, out)

    def _tell(self, step: Step) -> bool:
        """Whether the callback says stop."""
        if self._callback is None:
            return False
        path = self.path
        place = f"by the callback after step {len(path.steps)} (size {path.end.size})"
        with _Keeping(path, place if step.out is None else "by the callback after an exchange"):
            with users_blas_threads(self.objective.shares_out_work):
                answer = self._callback(step)
            try:
                return bool(answer)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"callback must answer with something true or false, got {answer!r}"
                ) from error

    # What an answer may cost -------------------------------------------------------------------

    def _most(self, answer: Point) -> float | None:
        """What a refined answer may cost; None where there is no budget."""
        if self.settings.budget is None:
            return None
        spent = self.candidates.group_costs.cost(answer.support)
        return self.settings.budget if self.settings.k is not None else spent

    def _fits(self, most: float | None) -> Callable[[Point], bool]:
        costs = self.candidates.group_costs
        return lambda point: most is None or costs.cost(point.support) <= most * (1 + BUDGET_RTOL)

    def _allowed(self, most: float | None) -> Callable[..., NDArray[np.bool_]] | None:
        """Which exchanges are not too expensive."""
        if most is None:
            return None
        costs, blocks = self.candidates.group_costs, self.blocks

        def allowed(point: Point, inside: Ints, outside: Ints) -> NDArray[np.bool_]:
            rows = []
            for block in inside:
                kept = np.setdiff1d(point.support, blocks[block], assume_unique=True)
                left = most * (1.0 + BUDGET_RTOL) - costs.cost(kept)
                rows.append(costs.extra(kept, blocks.take(outside)) <= left)
            return np.array(rows)

        return allowed


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
