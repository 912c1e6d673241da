"""The file of a `Path`: its schema, in the words of `docs/path-file.md`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from forback.core.costs import GroupCosts
from forback.core.point import Point, Step
from forback.core.status import Status, StopReason
from forback.files.schema import (
    Check,
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
from forback.selection.budget import UNAFFORDABLE
from forback.selection.descent import Descent
from forback.selection.path_checks import check_parts
from forback.selection.refinement import STARTS

if TYPE_CHECKING:
    from forback.selection.path import Path

#: The version that is written, and the first that is read, in which only sentences said how fits
#: and runs ended. The one between has codes for that, and no refinement yet.
VERSION = 4
VERSION_OF_CODES = 3
FIRST_VERSION = 2

#: How sentences began in version 2 that begin otherwise now.
_OLD_STARTS: dict[Enum, str] = {
    Status.UNBOUNDED: "no minimiser: S is singular",
    Status.INFINITE: "the function is infinite",
    StopReason.ALL_IN: "every candidate is in",
    StopReason.NOTHING_AFFORDABLE: "nothing left can be had",
    StopReason.NOTHING_AFFORDABLE_HELPS: "nothing that the",
}

CodeT = TypeVar("CodeT", bound=Enum)

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

#: What it was asked in files of version 4 and later.
LATER_SETTINGS: dict[str, Check[Any]] = {
    "refine": nullable(
        record(
            {
                "starts": listing(word(*STARTS)),
                "shortlist": whole(low=1),
                "effort": number(low=0.0),
                "seconds": nullable(number(low=0.0)),
            }
        )
    ),
    "unaffordable": word(*UNAFFORDABLE),
}

#: What is written of a point and of a step: all but the cache, and a name that `names` knows.
_POINT_FIELDS = tuple(one.name for one in fields(Point) if one.name != "cache")
_EXCHANGE_FIELDS = tuple(
    one.name for one in fields(Step) if one.name not in ("name", "out_name", "start")
)
_START_FIELDS = tuple(name for name in _EXCHANGE_FIELDS if name != "out")
_STEP_FIELDS = tuple(name for name in _START_FIELDS if name != "others")

_HEAD = {"format": whole(FIRST_VERSION, VERSION + 1), "dim": whole(low=1)}


def dumps(path: Path) -> str:
    """A path as text; ValueError, naming the field, where `loads` would not take it back."""
    return json.dumps(check(path))


def check(path: Path) -> dict[str, Any]:
    """The content of the file of a path; ValueError, naming the field, where it is none."""
    costs = path.group_costs
    content = {
        "format": VERSION,
        "dim": int(path.dim),
        "settings": dict(path.settings),
        "names": None if path.names is None else list(path.names),
        "ledger": {
            "owner": costs.group_of.tolist(),
            "prices": costs.prices.tolist(),
            "names": None if costs.names is None else list(costs.names),
        },
        "stop": path.stop.name,
        "stop_reason": path.stop_reason,
        "start": _row(path.start, _POINT_FIELDS),
        "steps": [
            _row(step, _START_FIELDS if step.action == "start" or step.others else _STEP_FIELDS)
            for step in path.steps
        ],
        "descents": [
            {
                "start": descent.start,
                "origin": _row(descent.origin, _POINT_FIELDS),
                "entered": descent.entered.tolist(),
                "steps": [_row(step, _EXCHANGE_FIELDS) for step in descent.steps],
                "ending": descent.ending,
            }
            for descent in path.descents
        ],
    }
    _build(content)
    return content


def _row(given: Point | Step, names: Sequence[str]) -> dict[str, Any]:
    return {name: _plain(getattr(given, name)) for name in names}


def _plain(value: Any) -> Any:
    """What JSON holds of the field of a point or a step."""
    if value is None or type(value) in (str, int, float):  # nearly all of them
        return value
    if isinstance(value, Point):
        return _row(value, _POINT_FIELDS)
    if isinstance(value, Enum):
        return value.name
    return list(value) if isinstance(value, tuple) else value.tolist()


def loads(text: str) -> dict[str, Any]:
    """The parts of a path; ValueError, naming the field, where the text is not one."""
    return _build(parse(text))


def _build(content: Any) -> dict[str, Any]:
    """Check everything against the schema, then whether it fits together, then build."""
    head = content if isinstance(content, dict) else {}
    # What follows depends on these two, so they come first.
    found = record(_HEAD)({name: head[name] for name in _HEAD if name in head}, "")
    parts = record(_schema(found["format"], found["dim"]))(content, "")
    del parts["format"]
    parts["group_costs"] = _group_costs(parts.pop("ledger"), parts["dim"])
    parts["names"] = None if parts["names"] is None else tuple(parts["names"])
    parts["stop"] = _code(StopReason, parts.get("stop"), parts["stop_reason"])
    parts["start"] = _point(parts["start"], "start")
    _check_names(parts)
    parts["steps"] = _steps(parts["steps"], "", parts["names"])
    parts["descents"] = [
        _descent(row, f"descents[{place}].", parts["names"])
        for place, row in enumerate(parts.get("descents", ()))
    ]
    check_parts(parts)
    return parts


def _schema(version: int, dim: int) -> dict[str, Any]:
    """What a file of a version holds."""
    point = {
        "support": wholes(dim),
        "coef": numbers(),
        "value": number(),
        "size": whole(),
        "note": word(),
    }
    step: dict[str, Check[Any]] = {
        "action": word("add", "remove"),
        "feature": whole(high=dim),
        "size": whole(),
        "value": number(),
        "change": number(),
        "score": number(),
        "note": word(),
        "solved": whole(),
        "groups": whole(),
        "cost": number(low=0.0),
    }
    top: dict[str, Any] = {}
    settings = SETTINGS
    if version >= VERSION_OF_CODES:
        point["status"] = word(*Status.__members__)
        step["columns"] = wholes()
        top["stop"] = word(*StopReason.__members__)
    step["point"] = record(point)
    steps = record(step)
    if version > VERSION_OF_CODES:
        settings = SETTINGS | LATER_SETTINGS
        start = {**step, "action": word("start"), "others": wholes(dim)}
        steps = _of_kind(record(start), steps)
        top["descents"] = listing(record(_descent_schema(step, dim)))
    return {
        **_HEAD,
        **top,
        "settings": record(settings, partial=True),
        "names": _NAMES,
        "ledger": record({"owner": wholes(), "prices": numbers(low=0.0), "names": _NAMES}),
        "stop_reason": word(),
        "start": record(point),
        "steps": listing(steps),
    }


def _of_kind(start: Check[Any], other: Check[Any]) -> Check[Any]:
    """A step checked as a start where it says that it is one."""

    def check(value: Any, field: str) -> Any:
        is_start = isinstance(value, dict) and value.get("action") == "start"
        return (start if is_start else other)(value, field)

    return check


def _descent_schema(step: dict[str, Check[Any]], dim: int) -> dict[str, Check[Any]]:
    more = {"out": nullable(whole(high=dim)), "others": wholes(dim)}
    return {
        "start": word(),
        "origin": step["point"],
        "entered": wholes(dim),
        "steps": listing(record({**step, "action": word("add", "remove", "exchange"), **more})),
        "ending": word(),
    }


def _code(codes: type[CodeT], name: str | None, sentence: str) -> CodeT:
    """Return the code of a name or, in a file of version 2, of the sentence that begins so."""
    if name is not None:
        return codes[name]
    starts = {code: _OLD_STARTS.get(code, code.value.split("{")[0]) for code in codes}
    known = [code for code, start in starts.items() if start and sentence.startswith(start)]
    return known[0] if known else next(iter(codes))


def _group_costs(row: dict[str, Any], dim: int) -> GroupCosts:
    group_of, prices, names = row["owner"], row["prices"], row["names"]
    if len(group_of) > dim:
        raise Mismatch("ledger.owner", f"at most dim={dim} groups", f"length {len(group_of)}")
    wholes(max(len(prices), 1))(group_of.tolist(), "ledger.owner")
    if names is not None:
        listing(word(), len(prices))(names, "ledger.names")
    return GroupCosts(group_of, prices, None if names is None else tuple(names))


def _descent(row: dict[str, Any], within: str, names: Sequence[str] | None) -> Descent:
    start, entered, ending = row["start"], row["entered"], row["ending"]
    origin = _point(row["origin"], f"{within}origin")
    return Descent(start, origin, entered, _steps(row["steps"], within, names, start), ending)


def _steps(
    rows: list[dict[str, Any]], within: str, names: Sequence[str] | None, start: str = ""
) -> list[Step]:
    """The steps of a run or, given a start of refinement, of a descent from there."""
    found = []
    for place, row in enumerate(rows):
        field = f"{within}steps[{place}]"
        out = row.get("out")
        own: dict[str, Any] = {
            "point": _point(row["point"], f"{field}.point"),
            "name": _name(row["feature"], f"{field}.feature", names),
            **{name: tuple(row[name].tolist()) for name in ("columns", "others") if name in row},
            "out_name": "" if out is None else _name(out, f"{field}.out", names),
            "start": start,
        }
        found.append(Step(**{**row, **own}))
    return found


def _name(block: int, field: str, names: Sequence[str] | None) -> str:
    if names is None:
        return str(block)
    if block >= len(names):
        raise Mismatch(field, f"a block, of which there are {len(names)}", block)
    return names[block]


def _point(row: dict[str, Any], field: str) -> Point:
    support, coef, note = row["support"], row["coef"], row["note"]
    if not (support[1:] > support[:-1]).all():
        raise Mismatch(f"{field}.support", "in increasing order", support.tolist())
    if len(coef) != len(support):
        raise Mismatch(f"{field}.coef", f"{len(support)} numbers, as support", len(coef))
    status = _code(Status, row.get("status"), note)
    return Point(support, coef, row["value"], row["size"], None, note, status)


def _check_names(parts: dict[str, Any]) -> None:
    """Check that `by` is given, and a name for each block that a step may report."""
    names, costs, by = parts["names"], parts["group_costs"], parts["settings"].get("by")
    if by is None:
        if names is not None or parts["steps"] or parts.get("descents"):
            raise Mismatch("settings.by", "present, as steps and names go by it", "nothing")
        return
    count = len(costs.group_of if by == "feature" else costs.prices)
    if names is not None and len(names) != count:
        raise Mismatch("names", f"{count} names, one for each {by}", len(names))
