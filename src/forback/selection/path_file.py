"""The file of a `Path`: its schema, version 2, in the words of `docs/path-file.md`."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from forback.core.costs import Ledger
from forback.core.point import Point, Step
from forback.files.schema import (
    Mismatch,
    listing,
    nullable,
    number,
    numbers,
    parse,
    record,
    whole,
    wholes,
    word,
)

if TYPE_CHECKING:
    from forback.selection.path import Path

#: The version that is written; every reader reads all versions since 2.
VERSION = 2

_NAMES = nullable(listing(word()))

#: What `select` was asked; a path that was put together by hand may lack some, but `by` only where
#: it has neither steps nor names.
SETTINGS = {
    "method": word("foba-gdt", "foba-obj", "forward-gdt", "forward-obj"),
    "k": nullable(whole()),
    "threshold": number(low=0.0),
    "ratio": number(low=0.0, high=1.0),
    "backward": word("coordinate", "refit"),
    "by": word("group", "feature"),
    "budget": nullable(number(low=0.0)),
    "max_steps": nullable(whole()),
}

_HEAD = {"format": whole(VERSION, VERSION + 1), "dim": whole(low=1)}


def dumps(path: Path) -> str:
    """A path as text; ValueError, naming the field, where `loads` would not take it back."""
    return json.dumps(check(path))


def check(path: Path) -> dict[str, Any]:
    """The content of the file of a path; ValueError, naming the field, where it is none."""
    content = {
        "format": VERSION,
        "dim": int(path.dim),
        "settings": dict(path.settings),
        "names": None if path.names is None else list(path.names),
        "ledger": {
            "owner": path.ledger.owner.tolist(),
            "prices": path.ledger.prices.tolist(),
            "names": None if path.ledger.names is None else list(path.ledger.names),
        },
        "stop_reason": path.stop_reason,
        "start": _point_row(path.start),
        "steps": [_step_row(step) for step in path.steps],
    }
    _build(content)
    return content


def _point_row(point: Point) -> dict[str, Any]:
    return {
        "support": point.support.tolist(),
        "coef": point.coef.tolist(),
        "value": float(point.value),
        "size": int(point.size),
        "note": point.note,
    }


def _step_row(step: Step) -> dict[str, Any]:
    return {
        "action": step.action,
        "feature": int(step.feature),
        "size": int(step.size),
        "value": float(step.value),
        "change": float(step.change),
        "score": float(step.score),
        "note": step.note,
        "solved": int(step.solved),
        "groups": int(step.groups),
        "cost": float(step.cost),
        "point": _point_row(step.point),
    }


def loads(text: str) -> dict[str, Any]:
    """The parts of a path; ValueError, naming the field, where the text is not one."""
    return _build(parse(text))


def _build(content: Any) -> dict[str, Any]:
    """Check everything against the schema, then whether it fits together, then build."""
    head = content if isinstance(content, dict) else {}
    # What follows depends on these two, so they come first.
    found = record(_HEAD)({name: head[name] for name in _HEAD if name in head}, "")
    point = {
        "support": wholes(found["dim"]),
        "coef": numbers(),
        "value": number(),
        "size": whole(),
        "note": word(),
    }
    step = {
        "action": word("add", "remove"),
        "feature": whole(high=found["dim"]),
        "size": whole(),
        "value": number(),
        "change": number(),
        "score": number(),
        "note": word(),
        "solved": whole(),
        "groups": whole(),
        "cost": number(low=0.0),
        "point": record(point),
    }
    ledger = {
        "owner": wholes(),
        "prices": numbers(low=0.0),
        "names": _NAMES,
    }
    parts = record(
        {
            **_HEAD,
            "settings": record(SETTINGS, partial=True),
            "names": _NAMES,
            "ledger": record(ledger),
            "stop_reason": word(),
            "start": record(point),
            "steps": listing(record(step)),
        }
    )(content, "")
    del parts["format"]
    parts["ledger"] = _ledger(parts["ledger"], parts["dim"])
    parts["names"] = None if parts["names"] is None else tuple(parts["names"])
    parts["start"] = _point(parts["start"], "start")
    parts["steps"] = [
        Step(**{**row, "point": _point(row["point"], f"steps[{place}].point")})
        for place, row in enumerate(parts["steps"])
    ]
    _check_names(parts)
    _check_steps(parts)
    return parts


def _ledger(row: dict[str, Any], dim: int) -> Ledger:
    owner, prices, names = row["owner"], row["prices"], row["names"]
    if len(owner) > dim:
        raise Mismatch("ledger.owner", f"at most dim={dim} groups", f"length {len(owner)}")
    wholes(max(len(prices), 1))(owner.tolist(), "ledger.owner")
    if names is not None:
        listing(word(), len(prices))(names, "ledger.names")
    return Ledger(owner, prices, None if names is None else tuple(names))


def _point(row: dict[str, Any], field: str) -> Point:
    support, coef = row["support"], row["coef"]
    if not (support[1:] > support[:-1]).all():
        raise Mismatch(f"{field}.support", "in increasing order", support.tolist())
    if len(coef) != len(support):
        raise Mismatch(f"{field}.coef", f"{len(support)} numbers, as support", len(coef))
    return Point(support, coef, row["value"], row["size"], None, row["note"])


def _check_names(parts: dict[str, Any]) -> None:
    """It is said what blocks are, and there is a name for each that a step may report."""
    names, ledger, by = parts["names"], parts["ledger"], parts["settings"].get("by")
    if by is None:
        if names is not None or parts["steps"]:
            raise Mismatch("settings.by", "present, as steps and names go by it", "nothing")
        return
    count = len(ledger.owner if by == "feature" else ledger.prices)
    if names is not None and len(names) != count:
        raise Mismatch("names", f"{count} names, one for each {by}", len(names))


def _check_steps(parts: dict[str, Any]) -> None:
    """Each step leads from the point before to its own, and costs what its groups cost."""
    before: Point = parts["start"]
    if before.size != 0:
        raise Mismatch("start.size", "0", before.size)
    blocks = _Blocks(parts["settings"].get("by"), parts["ledger"], before)
    for place, step in enumerate(parts["steps"]):
        field, after, joined = f"steps[{place}]", step.point, step.action == "add"
        if not step.size == after.size == before.size + (1 if joined else -1):
            raise Mismatch(f"{field}.size", f"that of its point, one from {before.size}", step.size)
        less, more = (before, after) if joined else (after, before)
        moved = sorted(set(more.support.tolist()) - set(less.support.tolist()))
        if len(moved) == 0 or len(moved) + len(less.support) != len(more.support):
            wanted = f"that before, {'with' if joined else 'without'} some coordinates"
            raise Mismatch(f"{field}.point.support", wanted, after.support.tolist())
        blocks.check(step, moved, field)
        if step.value != after.value:
            raise Mismatch(f"{field}.value", f"that of its point, {after.value!r}", step.value)
        # The sum of both values may be too large to be a number, and everything is below infinity.
        fall, slack = before.value - after.value, 1e-12 * abs(before.value)
        slack += 1e-12 * abs(after.value)
        if not math.isclose(fall, step.change, rel_tol=1e-9, abs_tol=slack):
            raise Mismatch(f"{field}.change", f"the fall of the value, {fall!r}", step.change)
        _check_cost(parts["ledger"], step, field)
        before = after


def _check_cost(ledger: Ledger, step: Step, field: str) -> None:
    used = ledger.used(step.point.support)
    if step.groups != len(used):
        raise Mismatch(f"{field}.groups", f"the {len(used)} groups in use", step.groups)
    with np.errstate(over="ignore"):
        cost = float(ledger.prices[used].sum())
    if not math.isclose(cost, step.cost, rel_tol=1e-9, abs_tol=0.0):
        raise Mismatch(f"{field}.cost", f"what these groups cost, {cost!r}", step.cost)


class _Blocks:
    """What steps may move: blocks of candidates, without those that are in from the start."""

    def __init__(self, by: str | None, ledger: Ledger, start: Point) -> None:
        self.by, self.owner, self.always = by, ledger.owner, set(start.support.tolist())
        free = np.delete(self.owner, start.support[start.support < len(self.owner)])
        self.sizes = np.bincount(free, minlength=len(ledger.prices))  # of groups

    def check(self, step: Step, moved: list[int], field: str) -> None:
        """What moved is the block that the step names, and all of it."""
        support = f"{field}.point.support"
        if moved[-1] >= len(self.owner):
            raise Mismatch(support, "without changes outside the candidates", moved)
        if not self.always.isdisjoint(moved):
            raise Mismatch(
                support, "with what is in from the start", sorted(self.always & set(moved))
            )
        blocks = set(moved if self.by == "feature" else self.owner[moved].tolist())
        if blocks != {step.feature}:
            raise Mismatch(f"{field}.feature", f"what moved, {sorted(blocks)}", step.feature)
        if self.by == "group" and len(moved) != self.sizes[step.feature]:
            wanted = f"changed by all {self.sizes[step.feature]} coordinates of {step.feature}"
            raise Mismatch(support, wanted, moved)
