"""Path: every step of a run, every size it visited, and why it stopped."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from forback.core.costs import GroupCosts
from forback.core.point import Move, Point, Step
from forback.core.status import Ending, StopReason
from forback.core.tolerances import BUDGET_RTOL
from forback.core.types import Floats, Ints
from forback.files.atomic import write
from forback.selection import path_file
from forback.selection.descent import Descent, kept


@dataclass
class Path:
    """What `select` returns: all that happened between the empty model and the stop.

    A size k may be visited more than once, because features leave again. `first(k)` is the
    first visit (what the paper's tables print), `last(k)` the most recent (what its text
    recommends), `best(k)` the one with the lowest objective: these are literal. `refined(k)` is the
    lowest that refinement came to, ``path[k]`` the lowest of all. `coef(k)` is
    that point as a dense vector, `to_frame()` a table of the steps; `save` and `load` keep it.
    `groups(point)` and `cost(point)` tell which groups, such as sensors, a point uses and what they
    cost; `within(cost)` is the best point that costs no more.

    Attributes
    ----------
    start : Point
        The model before the first step: the always block alone, size 0.
    steps : list of Step
        Every addition and removal, in order.
    stop_reason : str
        Why the run ended, a sentence.
    stop : StopReason
        The same as a code, for decisions.
    dim : int
        Length of the dense coefficient vectors of `coef`.
    group_costs : GroupCosts
        Which group each candidate belongs to, and what groups cost.
    settings : dict
        What `select` was asked: method, k, threshold, ratio, backward, by, budget, max_steps,
        unaffordable, refine.
    names : tuple of str or None
        Names of the blocks, where the objective was built from a table that has them.
    descents : list of Descent
        Where refinement started from, and every exchange it made.
    """

    start: Point
    dim: int
    group_costs: GroupCosts
    settings: Mapping[str, Any] = field(default_factory=dict)
    names: Sequence[str] | None = None
    steps: list[Step] = field(default_factory=list)
    stop_reason: str = ""
    stop: StopReason = StopReason.RUNNING
    descents: list[Descent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start = kept(self.start)
        self.steps = [replace(step, point=kept(step.point)) for step in self.steps]

    def record(
        self,
        move: Move,
        feature: int,
        columns: tuple[int, ...] = (),
        others: Sequence[int] = (),
    ) -> Step:
        """Append a move as a step, without its point's cache, and return it.

        `feature` is the number of its block, `columns` are those of X it consists of, `others` the
        blocks that came with it. What is recorded is read-only.
        """
        step = self._step(move, feature, columns, tuple(others))
        self.steps.append(step)
        return step

    def record_refined(
        self, move: Move, came: Sequence[int], left: Sequence[int], columns: tuple[int, ...] = ()
    ) -> Step:
        """Append a move of refinement to the last descent; blocks came, and left, by number."""
        step = self._step(move, came[0], columns, (*came[1:], *left[1:]))
        step = replace(
            step,
            out=left[0] if left else None,
            out_name=self.name(left[0]) if left else "",
            start=self.descents[-1].start,
        )
        self.descents[-1].steps.append(step)
        return step

    def _step(
        self, move: Move, feature: int, columns: tuple[int, ...], others: tuple[int, ...]
    ) -> Step:
        point = kept(move.point)
        used = self.group_costs.used(point.support)
        return Step(
            move.action,
            feature,
            point.size,
            point.value,
            move.change,
            move.score,
            point,
            "; ".join(dict.fromkeys(filter(None, (move.note, point.note)))),
            move.solved,
            len(used),
            float(self.group_costs.prices[used].sum()),
            self.name(feature),
            columns,
            others=others,
        )

    def descend_from(self, start: str, origin: Point, entered: Ints) -> None:
        """Say where the next exchanges start from."""
        self.descents.append(Descent(start, origin, np.array(entered, dtype=np.intp)))

    def end_with(self, ending: Ending) -> None:
        """Say why the run ended."""
        self.stop, self.stop_reason = ending

    @property
    def points(self) -> list[Point]:
        """The start and the point after every step, in order."""
        return [self.start, *(step.point for step in self.steps)]

    @property
    def end(self) -> Point:
        """The point where the run ended."""
        return self.steps[-1].point if self.steps else self.start

    @property
    def sizes(self) -> list[int]:
        """The sizes visited, in increasing order."""
        return sorted({point.size for point in [*self.points, *self._refined]})

    @property
    def _refined(self) -> list[Point]:
        """All that refinement came by."""
        return [point for descent in self.descents for point in descent.points]

    def answer(self, k: int | None) -> Point:
        """Where the literal run for `k` ended or, if no candidate was left, its largest size."""
        if k is None or self.end.size >= k or self.stop is not StopReason.EXHAUSTED:
            return self.end
        return self.last(max(point.size for point in self.points))

    def first(self, k: int) -> Point:
        """The point at the first visit of size `k`."""
        return self._visits(k)[0]

    def last(self, k: int) -> Point:
        """The point at the most recent visit of size `k`."""
        return self._visits(k)[-1]

    def best(self, k: int) -> Point:
        """The point with the lowest objective among the visits of size `k`."""
        return min(self._visits(k), key=lambda point: point.value)

    def refined(self, k: int) -> Point:
        """The point with the lowest objective among those of size `k` that refinement came to."""
        points = [point for point in self._refined if point.size == k]
        if not points:
            sizes = sorted({point.size for point in self._refined})
            raise KeyError(f"size {k!r} was not refined; the sizes that were are {sizes}")
        return lowest(points)

    def __getitem__(self, k: int) -> Point:
        points = [point for point in [*self.points, *self._refined] if point.size == k]
        return lowest(points or self._visits(k))

    def __iter__(self) -> Iterator[int]:
        return iter(self.sizes)

    def coef(self, k: int) -> Floats:
        """The coefficients of ``path[k]`` as a dense vector of length `dim`."""
        return self[k].dense(self.dim)

    def _visits(self, k: int) -> list[Point]:
        visits = [point for point in self.points if point.size == k]
        if not visits:
            raise KeyError(f"size {k!r} was never visited; the sizes visited are {self.sizes}")
        return visits

    def entry_order(self, point: Point) -> Ints:
        """The coordinates of `point`, one of this path's, in the order in which they entered.

        What is always in comes first; a coordinate that left and came back counts as new. A point
        of refinement goes on from the order of its origin.
        """
        runs = [(self.points, np.zeros(0, np.intp))]
        runs += [(descent.points, descent.entered) for descent in self.descents]
        for points, entered in runs:
            since = {j: place - len(entered) for place, j in enumerate(entered.tolist())}
            before = set(entered.tolist())
            for number, visited in enumerate(points):
                here = set(visited.support.tolist())
                since |= dict.fromkeys(here - before, number)
                if visited is point:
                    return np.array(sorted(here, key=lambda j: (since[j], j)), dtype=np.intp)
                before = here
        raise ValueError("point is not one of this path's points")

    def groups(self, point: Point) -> list[str]:
        """The names of the groups that one of this path's points uses, in order of entry."""
        used = self.group_costs.used(self.entry_order(point))
        return [self.group_costs.name(int(group)) for group in used]

    def cost(self, point: Point) -> float:
        """What the groups that a point uses cost; what is always in costs nothing."""
        return self.group_costs.cost(point.support)

    def within(self, cost: float) -> Point:
        """The point with the lowest objective among those that cost at most so much."""
        most = cost * (1.0 + BUDGET_RTOL)
        points = [point for point in [*self.points, *self._refined] if self.cost(point) <= most]
        if not points:
            raise KeyError(f"no point of this path costs {cost!r} or less")
        return min(points, key=lambda point: point.value)

    def name(self, feature: int) -> str:
        """The name of a block: its column or group, or its number where there are no names."""
        return str(feature) if self.names is None else self.names[feature]

    def to_frame(self) -> Any:
        """The steps as a pandas DataFrame, one row each, those of refinement last.

        Each descent from a `start` begins anew, at its origin, which has no row. Needs the extra
        ``[report]``.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                'Path.to_frame needs pandas: pip install "forback[report]"'
            ) from error
        steps = [*self.steps, *(step for descent in self.descents for step in descent.steps)]
        index = pd.RangeIndex(1, len(steps) + 1, name="step")
        columns = [
            "action",
            "feature",
            "name",
            "size",
            "groups",
            "cost",
            "value",
            "change",
            "score",
            "note",
            "out",
            "out_name",
            "others",
            "start",
        ]
        rows = [[getattr(step, column) for column in columns] for step in steps]
        return pd.DataFrame(rows, columns=columns, index=index).astype({"out": "Int64"})

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the path as JSON; `load` gives back the same numbers, bit for bit.

        The file is replaced at once, and a save that fails leaves what was there before, unless
        its folder refuses a new file: docs/path-file.md says more.
        """
        write(file, path_file.dumps(self))

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Path:
        """Read a path written by `save`; ValueError, naming the field, where it is not one."""
        try:
            return cls(**path_file.loads(FilePath(file).read_text(encoding="utf-8")))
        except ValueError as error:
            name = os.fspath(file)
            raise ValueError(f"{name!r} is not a path saved by forback: {error}") from error

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what was pickled, with no descents where there was no refinement yet."""
        self.__dict__.update({"descents": [], **state})

    def __repr__(self) -> str:
        count = Counter(step.action for step in self.steps)
        given = sum(1 + len(step.others) for step in self.steps if step.action == "start")
        method = self.settings.get("method", "path")
        return (
            f"<Path of {method}: {f'{given} given, ' if given else ''}{count['add']} added, "
            f"{count['remove']} removed, size {self.end.size}, objective {self.end.value:.6g}; "
            f"{self.stop_reason or 'running'}{self._told_of_refinement}>"
        )

    @property
    def _told_of_refinement(self) -> str:
        """How many descents led to what, for `__repr__`."""
        if not self.descents:
            return ""
        best = lowest(self._refined)
        exchanges = sum(len(descent.steps) for descent in self.descents)
        return (
            f"; refined from {len(self.descents)} starts in {exchanges} steps: size "
            f"{best.size}, objective {best.value:.6g}"
        )


def lowest(points: Sequence[Point]) -> Point:
    """Return the first point on the support where Q is lowest: its visits differ by rounding."""
    best = min(points, key=attrgetter("value"))
    return next(point for point in points if np.array_equal(point.support, best.support))
