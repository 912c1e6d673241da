"""A path read as a run of Algorithm 1: its blocks, its rule, where its iterations began."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import count
from typing import NamedTuple

import numpy as np

from forback.certificates.curvature import check_sound
from forback.core.blocks import Blocks
from forback.core.candidates import make_blocks
from forback.core.objective import Objective
from forback.core.point import Point, Step
from forback.core.rule import Rule
from forback.core.types import Floats, Ints
from forback.selection import path_file
from forback.selection.budget import unaffordable_by_default, within_budget
from forback.selection.loop import outside
from forback.selection.path import Path
from forback.selection.rules import BACKWARD, ByDecrease
from forback.selection.settings import Settings

#: What fits, at their tolerance, may leave of Q, relatively.
SAME = 1e-8


def rejected(what: str) -> ValueError:
    """Return the error for a path that does not add up."""
    return ValueError(
        f"the path is not what this objective gives, or was changed: {what}. (That of an estimator "
        "belongs to the scale it was fitted on: standardised columns, ridge=alpha)"
    )


class Iteration(NamedTuple):
    """Where an iteration began (or the run ended), and what was recorded when its size was reached.

    Attributes
    ----------
    number : int
        How many steps were done.
    point : Point
    gain : float | None
        Delta^(k); None where nothing is in.
    """

    number: int
    point: Point
    gain: float | None


@dataclass(frozen=True)
class Run:
    """A path with everything that `select` made of its arguments, worked out again.

    Attributes
    ----------
    objective : Objective
    path : Path
    blocks : Blocks
    settings : Settings
    rule : Rule
        That of the settings, within the budget.
    """

    objective: Objective
    path: Path
    blocks: Blocks
    settings: Settings
    rule: Rule

    @classmethod
    def of(cls, objective: Objective, path: Path) -> Run:
        """Read a path; raises ValueError where it cannot be one of this objective."""
        objective = check_sound(objective)
        if not isinstance(path, Path):
            raise TypeError(f"path must be a Path, such as select returns; got {path!r}")
        usual = unaffordable_by_default(path.settings.get("k"))
        given = {"unaffordable": usual, **path.settings}
        lacking = path_file.SETTINGS.keys() - given.keys() - {"max_steps"}
        if lacking:
            raise ValueError(f"path lacks the settings of a run: {sorted(lacking)}")
        if path.dim != objective.dim or len(path.group_costs.group_of) != objective.n_candidates:
            raise ValueError(
                f"path is not of this objective: it has {path.dim} coordinates and "
                f"{len(path.group_costs.group_of)} candidates, the objective {objective.dim} and "
                f"{objective.n_candidates}"
            )
        try:
            path_file.check(path)
        except ValueError as error:
            raise rejected(str(error)) from error
        asked = [one.name for one in fields(Settings)]
        settings = Settings(**{name: given[name] for name in asked if name in given})
        rule = within_budget(
            settings.rule, path.group_costs, settings.budget, settings.unaffordable
        )
        return cls(objective, path, _blocks(objective, path), settings, rule)

    @property
    def has_start(self) -> bool:
        """Whether the run began with blocks that the user gave."""
        return any(step.action == "start" for step in self.path.steps[:1])

    @property
    def always(self) -> Ints:
        """The coordinates that are always in."""
        return self.path.start.support

    @property
    def free(self) -> Ints:
        """The candidates that may enter and leave."""
        return np.setdiff1d(np.arange(self.objective.n_candidates), self.always)

    @property
    def by_decrease(self) -> bool:
        """Whether goodness is how far Q falls (FoBa-obj), not the gradient (FoBa-gdt)."""
        return isinstance(self.settings.rule, ByDecrease)

    @property
    def cut_short(self) -> bool:
        """Whether somebody stopped the run, perhaps before it was done with looking back."""
        return bool(self.path.steps) and self.path.stop.is_early

    def allowed(self, point: Point) -> float:
        """What Q at a point may be off by: rounding, and what the accuracy of fits leaves."""
        return SAME * abs(point.value) + 10.0 * self.objective.resolution(point)

    def score_noise(self, point: Point, score: float, block: int) -> float:
        """What the goodness of a block may be off by, where Q is off by its resolution.

        An error e of Q at its minimum moves a gradient by sqrt(2 e h), with h the curvature along
        the block, and the decrease d = g^2 / 2h that goes with it by 2 sqrt(e d).
        """
        off = self.objective.resolution(point)
        own = self.objective.decrease_if_added(point, self.blocks.take([block])).values
        decrease = max(float(own[0]), off)
        if self.by_decrease:
            return self.cost_noise(point, decrease)
        return abs(score) * float(np.sqrt(off / decrease)) if decrease > 0.0 else 0.0

    def cost_noise(self, point: Point, cost: float) -> float:
        """What the cost of a removal may be off by, in the same way."""
        off = self.objective.resolution(point)
        return 2.0 * float(np.sqrt(off * max(cost, off))) + off

    def costs(self, point: Point, places: Ints) -> Floats:
        """What it costs when a block leaves, exact for the cheapest of these."""
        badness = BACKWARD[self.settings.backward]
        return badness(self.objective, point, self.blocks.take(places), np.inf).values

    def inside(self, point: Point) -> Ints:
        """The blocks that are in."""
        return np.flatnonzero(np.isin(self.blocks.firsts, point.support))

    def outside(self, point: Point) -> Ints:
        """The blocks that are not."""
        return np.setdiff1d(np.arange(len(self.blocks)), self.inside(point))

    def goodness(self, point: Point) -> Floats:
        """The goodness of every block, exact where it may be the best; of those in, nothing."""
        scores = self.rule.goodness(self.objective, point, self.blocks, only_best=True)
        return outside(scores, self.inside(point))[0]

    def best_outside(self, point: Point) -> float | None:
        """The best goodness outside that is of use; None where there is none.

        A candidate is of no use if Q does not fall when it joins, and the loop passes it over.
        """
        scores = self.goodness(point)
        while scores.max(initial=-np.inf) > -np.inf:
            best = int(scores.argmax())
            if scores[best] < self.rule.threshold or self.lowers(point, best):
                return float(scores[best])
            scores[best] = -np.inf
        return None

    def lowers(self, point: Point, block: int) -> bool:
        """Whether Q falls by more than rounding when a block joins."""
        wider = np.union1d(point.support, self.blocks[block])
        fall = point.value - self.objective.minimise(wider, point).value
        return bool(fall > 2.0 * self.objective.resolution(point))

    def moves(self) -> Iterator[tuple[int, Point, Step]]:
        """Every step, with its number, from 1, and the point before it."""
        return zip(count(1), self.path.points, self.path.steps, strict=False)

    def gain(self, step: Step) -> float:
        """What is recorded when a size is reached; at a start, what its cheapest block costs."""
        if step.action == "add":
            return step.change
        inside = self.blocks.take(self.inside(step.point))
        return float(self.objective.increase_after_refit(step.point, inside).values.min())

    def place(self, step: Step) -> int:
        """The place, among the blocks, of what a step moves."""
        return int(np.searchsorted(self.blocks.numbers, step.feature))

    def iterations(self) -> Iterator[Iteration]:
        """Every beginning of an iteration, and the end if the next could have begun there."""
        gains: dict[int, float] = {}
        for number, before, step in self.moves():
            if step.action == "add":
                yield Iteration(number - 1, before, gains.get(before.size))
            if step.action != "remove":
                gains[step.size] = self.gain(step)
        end = self.path.end
        if not self.cut_short:
            yield Iteration(len(self.path.steps), end, gains.get(end.size))


def _blocks(objective: Objective, path: Path) -> Blocks:
    """What entered and left as one, as `make_candidates` made it."""
    always = path.start.support
    free = np.setdiff1d(np.arange(objective.n_candidates), always)
    return make_blocks(path.settings["by"], path.group_costs.group_of, free, always)
