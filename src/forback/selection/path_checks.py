"""Whether the parts of a path fit together: every step leads from one point to the next."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from forback.core.costs import GroupCosts
from forback.core.point import Point, Step
from forback.files.schema import Mismatch
from forback.selection.descent import Descent

#: What each action does to a support, in words.
ACTIONS = {
    "start": "with some coordinates",
    "add": "with some coordinates",
    "remove": "without some coordinates",
    "exchange": "with some coordinates in place of others",
}


def check_parts(parts: dict[str, Any]) -> None:
    """Check all of it; ValueError, naming the field, where something contradicts the rest."""
    start = parts["start"]
    if start.size != 0:
        raise Mismatch("start.size", "0", start.size)
    for place, step in enumerate(parts["steps"]):
        if step.action == "start" and place > 0:
            raise Mismatch(f"steps[{place}].action", "add or remove after the first", step.action)
    layout = _Layout.of(parts["group_costs"], start, parts["settings"].get("by"))
    layout.check_steps(start, parts["steps"], "")
    for place, descent in enumerate(parts["descents"]):
        field = f"descents[{place}]."
        layout.check_origin(descent, field)
        layout.check_steps(descent.origin, descent.steps, field)


@dataclass(frozen=True)
class _Layout:
    """What enters and leaves as one.

    Attributes
    ----------
    costs : GroupCosts
    always : frozenset of int
        What is in from the start.
    block_of : list of int
        The number of the block that each candidate belongs to.
    sizes : Counter
        How many coordinates of each block are free.
    """

    costs: GroupCosts
    always: frozenset[int]
    block_of: list[int]
    sizes: Counter[int]

    @classmethod
    def of(cls, costs: GroupCosts, start: Point, by: str | None) -> _Layout:
        always = frozenset(start.support.tolist())
        block_of = costs.group_of.tolist()
        if by == "feature":
            block_of = list(range(len(block_of)))
        sizes = Counter(block for j, block in enumerate(block_of) if j not in always)
        return cls(costs, always, block_of, sizes)

    def check_origin(self, descent: Descent, field: str) -> None:
        """What is always in and some whole blocks are there, in some order of entry."""
        origin, entered = descent.origin, descent.entered.tolist()
        there = set(origin.support.tolist())
        support = f"{field}origin.support"
        if missing := sorted(self.always - there):
            wanted = f"with {missing}, in from the start"
            raise Mismatch(support, wanted, origin.support.tolist())
        free = there - self.always
        self._check_candidates(free, support)
        blocks = self._whole_blocks(free, support)
        if origin.size != len(blocks):
            raise Mismatch(f"{field}origin.size", f"that of its {len(blocks)} blocks", origin.size)
        if sorted(entered) != origin.support.tolist():
            raise Mismatch(f"{field}entered", "the support of the origin in some order", entered)
        if not self.always.issuperset(entered[: len(self.always)]):
            raise Mismatch(f"{field}entered", "what is always in, and then the rest", entered)

    def check_steps(self, before: Point, steps: Iterable[Step], within: str) -> None:
        """Each step leads from the point before to its own, and costs what its groups cost."""
        held = set(before.support.tolist())
        for place, step in enumerate(steps):
            field = f"{within}steps[{place}]"
            now = set(step.point.support.tolist())
            self._check_moved(before, step, now - held, held - now, field)
            self._check_numbers(before, step, field)
            before, held = step.point, now

    def _check_moved(
        self, before: Point, step: Step, came: set[int], left: set[int], field: str
    ) -> None:
        """What came and what left are the blocks that the step names."""
        support, action = f"{field}.point.support", step.action
        if action in ("add", "remove"):
            size = before.size + (1 if action == "add" else -1)
            if not step.size == step.point.size == size:
                wanted = f"that of its point, one from {before.size}"
                raise Mismatch(f"{field}.size", wanted, step.size)
        if bool(came) == (action == "remove") or bool(left) == (action in ("start", "add")):
            wanted = f"that before, {ACTIONS[action]}"
            raise Mismatch(support, wanted, step.point.support.tolist())
        self._check_candidates(came | left, support)
        new, old = self._whole_blocks(came, support), self._whole_blocks(left, support)
        _check_named(before, step, new, old, field)

    def _whole_blocks(self, moved: set[int], support: str) -> set[int]:
        """The blocks of some coordinates, of each of which all that is free is there."""
        blocks = {self.block_of[j] for j in moved}
        if len(moved) < sum(self.sizes[block] for block in blocks):
            for block in sorted(blocks):
                some = sorted(j for j in moved if self.block_of[j] == block)
                if len(some) < self.sizes[block]:
                    wanted = f"changed by all {self.sizes[block]} coordinates of {block}"
                    raise Mismatch(support, wanted, some)
        return blocks

    def _check_candidates(self, moved: set[int], support: str) -> None:
        if moved and max(moved) >= len(self.block_of):
            raise Mismatch(support, "without changes outside the candidates", sorted(moved))
        if stuck := self.always & moved:
            raise Mismatch(support, "with what is in from the start", sorted(stuck))

    def _check_numbers(self, before: Point, step: Step, field: str) -> None:
        """What a step says of its value and its cost follows from both points."""
        after = step.point
        if step.value != after.value:
            raise Mismatch(f"{field}.value", f"that of its point, {after.value!r}", step.value)
        # The sum of both may be too large to be a number, and everything is below infinity.
        fall = before.value - after.value
        slack = 1e-12 * abs(before.value) + 1e-12 * abs(after.value)
        if not math.isclose(fall, step.change, rel_tol=1e-9, abs_tol=slack):
            raise Mismatch(f"{field}.change", f"the fall of the value, {fall!r}", step.change)
        used = self.costs.used(after.support)
        if step.groups != len(used):
            raise Mismatch(f"{field}.groups", f"the {len(used)} groups in use", step.groups)
        with np.errstate(over="ignore"):
            cost = float(self.costs.prices[used].sum())
        if not math.isclose(cost, step.cost, rel_tol=1e-9, abs_tol=0.0):
            raise Mismatch(f"{field}.cost", f"what these groups cost, {cost!r}", step.cost)


def _check_named(before: Point, step: Step, came: set[int], left: set[int], field: str) -> None:
    """A step names a block that it moved and, of an exchange, one that left, and all others."""
    moved = left if step.action == "remove" else came
    several = step.action in ("start", "exchange")
    if step.feature not in moved or (len(moved) > 1 and not several):
        raise Mismatch(f"{field}.feature", f"what moved, {sorted(moved)}", step.feature)
    if step.action != "exchange" and step.out is not None:
        raise Mismatch(f"{field}.out", f"null, since the step is to {step.action}", step.out)
    if step.action == "exchange" and step.out not in left:
        raise Mismatch(f"{field}.out", f"what moved, {sorted(left)}", step.out)
    others = sorted((came | left) - {step.feature, step.out})
    if sorted(step.others) != others:
        raise Mismatch(f"{field}.others", f"what else moved, {others}", list(step.others))
    size = before.size + len(came) - len(left)
    if not step.size == step.point.size == size:
        raise Mismatch(f"{field}.size", f"that of its point, {size}", step.size)
