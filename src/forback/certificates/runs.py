"""A path read as a run of Algorithm 1: its blocks, its rule, where its iterations began."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from forback.candidates import group_blocks
from forback.protocols import NEGLIGIBLE, Blocks, Floats, Ints, Point, Rule
from forback.selection.loop import EXHAUSTED, unit_of
from forback.selection.path import Path
from forback.selection.rules import Badness, WithinBudget
from forback.selection.select import BACKWARD, METHODS


@dataclass(frozen=True)
class Top:
    """Where an iteration began (or the run ended), and what was recorded when its size was met."""

    number: int  #: of steps done
    point: Point
    gain: float | None  #: delta^(k); None where nothing is in


@dataclass(frozen=True)
class Run:
    """A path with everything that `select` made of its arguments, worked out again."""

    objective: Any
    path: Path
    blocks: Blocks
    rule: Rule
    badness: Badness
    removes: bool  #: whether features may leave

    @classmethod
    def of(cls, objective: Any, path: Path) -> Run:
        """Read a path; raises ValueError where it cannot be one of this objective."""
        settings = path.settings
        lacking = {"method", "threshold", "ratio", "backward", "by", "budget", "k"} - set(settings)
        if lacking or settings["method"] not in METHODS:
            raise ValueError(f"path lacks the settings of a run: {sorted(lacking) or 'method'}")
        if path.dim != objective.dim or len(path.ledger.owner) != objective.n_candidates:
            raise ValueError(
                f"path is not of this objective: it has {path.dim} coordinates and "
                f"{len(path.ledger.owner)} candidates, the objective {objective.dim} and "
                f"{objective.n_candidates}"
            )
        kind, removes = METHODS[settings["method"]]
        rule: Rule = kind(settings["threshold"])
        if settings["budget"] is not None:
            rule = WithinBudget(rule, path.ledger, settings["budget"], settings["k"] is not None)
        badness = BACKWARD[settings["backward"]]
        return cls(objective, path, _blocks(objective, path), rule, badness, removes)

    @property
    def always(self) -> Ints:
        """The coordinates that are always in."""
        return self.path.start.support

    @property
    def free(self) -> Ints:
        """The candidates that may enter and leave."""
        return np.setdiff1d(np.arange(self.objective.n_candidates), self.always)

    def scale(self, point: Point) -> float:
        """The size of Q against which a change is large or small."""
        return max(unit_of(self.objective, self.path.start), abs(point.value))

    def negligible(self, point: Point) -> float:
        """A change of Q that counts as rounding."""
        return NEGLIGIBLE * self.scale(point)

    def inside(self, point: Point) -> Ints:
        """The blocks that are in."""
        first = self.blocks.coordinates[self.blocks.pointer[:-1]]
        return np.flatnonzero(np.isin(first, point.support))

    def outside(self, point: Point) -> Ints:
        """The blocks that are not."""
        return np.setdiff1d(np.arange(len(self.blocks)), self.inside(point))

    def goodness(self, point: Point) -> Floats:
        """The goodness of every block, exact where it may be the best; of those in, nothing."""
        scores = np.array(self.rule.screened(self.objective, point, self.blocks)[0], dtype=float)
        scores[self.inside(point)] = -np.inf
        return scores

    def best_outside(self, point: Point) -> float | None:
        """The best goodness outside; None where everything is in."""
        scores = self.goodness(point)
        best = float(scores.max(initial=-np.inf))
        return None if best == -np.inf else best

    def tops(self) -> Iterator[Top]:
        """Every beginning of an iteration, and the end."""
        gains: dict[int, float] = {}
        point = self.path.start
        for number, step in enumerate(self.path.steps):
            if step.action == "add":
                yield Top(number, point, gains.get(point.size))
                gains[step.size] = step.change
            point = step.point
        yield Top(len(self.path.steps), point, gains.get(point.size))


def end_of_road(path: Path) -> bool:
    """Whether the run ended because nothing was left that would lower Q."""
    return path.stop_reason.startswith((EXHAUSTED, "every candidate is in"))


def _blocks(objective: Any, path: Path) -> Blocks:
    """What entered and left as one, as `make_candidates` made it."""
    always = path.start.support
    free = np.setdiff1d(np.arange(objective.n_candidates), always)
    owner = path.ledger.owner
    if path.settings["by"] == "feature" or np.array_equal(owner, np.arange(len(owner))):
        return Blocks.singles(free, always)
    return group_blocks(owner, free, always)
