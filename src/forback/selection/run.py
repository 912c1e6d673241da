"""A run from candidates to a path: the driver of Algorithm 1, and of what refines its answer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any

from forback.core.candidates import Candidates
from forback.core.objective import Objective, ObjectiveError
from forback.core.point import Move, Point, Step
from forback.core.rule import Rule
from forback.core.status import Ending, StopReason
from forback.core.units import Units
from forback.selection.budget import limits_of, within_budget
from forback.selection.exchange import Exchanges
from forback.selection.loop import State, forward_backward
from forback.selection.path import Path, lowest
from forback.selection.permutation import AUTO, above_noise
from forback.selection.refine import refine
from forback.selection.refinement import Refinement
from forback.selection.rules import ByDecrease, ByGradient
from forback.selection.settings import Settings
from forback.selection.starts import Starts, Walk
from forback.selection.supports import Start, Supports
from forback.selection.warm_start import begun, resumed
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
    start : Path or sequence of int
        What to go on with, or the blocks to begin with.
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
        start: Path | Sequence[int] = (),
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
        self._start = start
        with _Keeping(None), one_blas_thread(objective.shares_out_work):
            self.objective, self._units = in_range(objective)
            nothing = self.objective.minimise(self.blocks.always, None).of_size(0)
        self._nothing = nothing
        self.walk = Walk(State(nothing), self._onwards)
        self._rule = _in_units(settings.rule, self._units)
        first = self._for_user(nothing)
        self.path = Path(first, objective.dim, candidates.group_costs, {}, candidates.names)
        if settings.threshold == AUTO:
            with _Keeping(self.path), one_blas_thread(objective.shares_out_work):

                def moves(rule: Rule) -> Generator[Move, None, Ending]:
                    return self._moves(State(nothing), rule, None)

                given = self._rule, self.objective, self.blocks, nothing, moves, random_state
                self._rule = above_noise(*given)
        found = {"threshold": self._rule.threshold, "by": candidates.by, "refine": None}
        self.path.settings = {**vars(settings), **found}

    def run(self) -> Path:
        """Do what `select` does literally, and return the path."""
        settings, path = self.settings, self.path
        costs = self.candidates.group_costs
        rule = within_budget(self._rule, costs, settings.budget, settings.unaffordable)
        with _Keeping(path), one_blas_thread(self.objective.shares_out_work):
            stopped = self._begin()
            moves = self._moves(self.walk.state, rule, settings.k)
            path.end_with(StopReason.CALLBACK.because() if stopped else self._drive(moves))
        return path

    def _begin(self) -> bool:
        """Take over what the run starts from; whether the callback says stop already."""
        start, walk = self._start, self.walk
        if isinstance(start, Path):
            given = self.objective, self.blocks, walk.state, start, self._units
            for point, entered, action in resumed(*given):
                walk.visit(action, point, entered)
            self.path.steps = list(start.steps)
            self.path.descents = list(start.descents)
        elif start:
            move = begun(self.objective, self.blocks, walk.state, list(start))
            walk.record(move)
            return self._tell(self._record(move))
        return False

    def refined(self, refinement: Refinement | None, answer: Point) -> Point:
        """Improve a point of the path, and add what comes of it to the path; return the best."""
        path, costs = self.path, self.candidates.group_costs
        if refinement is None or path.stop.is_early or answer.size == 0:
            return answer
        path.settings = {**path.settings, "refine": refinement.to_dict()}
        limits = limits_of(self.blocks, costs, answer, self.settings.k, self.settings.budget)
        supports = Supports(self.objective, self.blocks, limits)
        starts = Starts(supports, self.walk, answer, self._nothing)
        exchanges = Exchanges(supports, refinement.shortlist)
        if not starts.are_quick and not refinement.searches:
            supports.max_fits = len(self.walk.way_to(answer.size))
        rng = check_generator(self._random_state)
        where = f"in refinement (size {answer.size})"
        with _Keeping(path, where), one_blas_thread(self.objective.shares_out_work):
            for event in refine(starts, exchanges, refinement, rng):
                if isinstance(event, str):
                    path.descents[-1].ending = event
                elif isinstance(event, Start):
                    entered = supports.coordinates(event.entered)
                    path.descend_from(event.name, self._for_user(event.point), entered)
                elif self._tell(self._record_refined(event)):
                    path.descents[-1].ending = StopReason.CALLBACK.value
                    break
        made = [point for descent in path.descents for point in descent.points]
        return lowest([answer, *filter(limits.are_kept_by, made)])

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
        """Put a move of the literal run on the path."""
        if self._units is not None:
            move = self._units.move(move, self.path.end, self._rule.power)
        numbers = self.blocks.numbers
        others = [int(numbers[block]) for block in move.came[1:]]
        columns = self.candidates.columns(move.block)
        return self.path.record(move, int(numbers[move.block]), columns, others)

    def _record_refined(self, move: Move) -> Step:
        """Put a move of refinement on the path."""
        if self._units is not None:
            move = self._units.move(move, self.path.descents[-1].end, self._units.value)
        numbers = self.blocks.numbers
        left, came = ([int(numbers[block]) for block in some] for some in (move.left, move.came))
        return self.path.record_refined(move, came, left, self.candidates.columns(move.block))

    def _tell(self, step: Step) -> bool:
        """Whether the callback says stop."""
        if self._callback is None:
            return False
        path = self.path
        place = f"by the callback after step {len(path.steps)} (size {path.end.size})"
        with _Keeping(path, "by the callback in refinement" if step.start else place):
            with users_blas_threads(self.objective.shares_out_work):
                answer = self._callback(step)
            try:
                return bool(answer)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"callback must answer with something true or false, got {answer!r}"
                ) from error


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
