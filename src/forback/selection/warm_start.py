"""Warm starts: a run that begins at a support somebody gives, or goes on where another ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from forback.core.blocks import Blocks
from forback.core.candidates import Candidates
from forback.core.objective import Objective
from forback.core.point import Move, Point
from forback.core.tolerances import BUDGET_RTOL
from forback.core.units import Units, times_power
from forback.selection.loop import State
from forback.selection.path import Path
from forback.selection.permutation import AUTO
from forback.selection.settings import Settings
from forback.validation.columns import check_columns

#: What must be the same in a run and in what goes on with it.
SAME_SETTINGS = ("by", "method", "ratio", "backward", "threshold", "budget")

#: How far the objective may differ, relatively, where a path ended and the run goes on.
SAME_VALUE_RTOL = 1e-6


def check_start(
    start: Any, candidates: Candidates, dim: int, settings: Settings
) -> Path | list[int]:
    """Return the path to go on with, or the blocks to begin with; none where there is no start.

    Parameters
    ----------
    start : None, Path, Point, or columns as `check_columns` takes them
    candidates : Candidates
    dim : int
    settings : Settings

    Returns
    -------
    Path or list of int
    """
    if isinstance(start, Path):
        _check_path(start, candidates, dim, settings)
        return start
    inside = np.zeros(dim, dtype=bool)
    if isinstance(start, Point):
        if len(start.support) and start.support[-1] >= dim:
            raise ValueError(f"start is a point of another objective: this one has dim={dim}")
        inside[start.support] = True
    else:
        features = candidates.features
        columns = check_columns(start, features.n_columns, features.names, "start")
        column_of = features.column_of
        owner = np.arange(features.n_candidates) if column_of is None else column_of
        inside[: features.n_candidates] = np.isin(owner, columns)
    chosen = _whole_blocks(inside, candidates)
    _check_room(chosen, candidates, settings)
    return chosen


def _whole_blocks(inside: Any, candidates: Candidates) -> list[int]:
    """The blocks that are in; none may be in by halves."""
    blocks = candidates.blocks
    count = blocks.sums(inside.astype(float))
    in_part = (count > 0.0) & (count < np.diff(blocks.pointer))
    if in_part.any():
        name = _name(candidates, int(in_part.argmax()))
        raise ValueError(f"start holds only a part of the group {name}; give all of it")
    return np.flatnonzero(count).tolist()


def _check_room(chosen: list[int], candidates: Candidates, settings: Settings) -> None:
    if settings.k is not None and len(chosen) > settings.k:
        raise ValueError(
            f"start holds {len(chosen)} features or groups, more than k={settings.k}; raise k, or "
            "leave some out"
        )
    blocks = candidates.blocks
    support = np.concatenate([blocks.always, *(blocks[block] for block in chosen)])
    cost = candidates.group_costs.cost(support)
    if settings.budget is not None and cost > settings.budget * (1.0 + BUDGET_RTOL):
        raise ValueError(f"start costs {cost:g}, more than budget={settings.budget:g}")


def _check_path(path: Path, candidates: Candidates, dim: int, settings: Settings) -> None:
    """Say what differs between the run of a path and the one that is to go on with it."""
    given: Mapping[str, Any] = path.settings
    mine = {**vars(settings), "by": candidates.by}
    if settings.threshold == AUTO:  # which the run before has settled
        mine["threshold"] = given.get("threshold")
    for name in SAME_SETTINGS:
        if name in given and given[name] != mine[name]:
            raise ValueError(
                f"start is a path with {name}={given[name]!r}, not {mine[name]!r}; give the same, "
                "or start=path[size] to begin from its support only"
            )
    same_always = np.array_equal(path.start.support, candidates.blocks.always)
    same_groups = np.array_equal(path.group_costs.group_of, candidates.group_costs.group_of)
    if path.dim != dim or not (same_always and same_groups):
        raise ValueError("start is a path of other candidates: the data, groups or always differ")
    if not np.array_equal(path.group_costs.prices, candidates.group_costs.prices):
        raise ValueError(
            "start is a path with other costs; give the same, or start=path[size] to begin from "
            "its support only"
        )
    if settings.k is not None and path.end.size > settings.k:
        raise ValueError(f"start is a path to size {path.end.size}, beyond k={settings.k}")


def _name(candidates: Candidates, block: int) -> str:
    number = int(candidates.blocks.numbers[block])
    return str(number) if candidates.names is None else candidates.names[number]


def begun(objective: Objective, blocks: Blocks, state: State, chosen: list[int]) -> Move:
    """Put a state at a support, and return the move that leads there.

    The gain of its size is what its cheapest block costs once the others are refitted. Smaller
    sizes have none, so that nothing leaves once it is smaller than that.
    """
    before = state.point
    support = np.sort(np.concatenate([before.support, *(blocks[block] for block in chosen)]))
    point = objective.minimise(support, before).of_size(len(chosen))
    costs = objective.increase_after_refit(point, blocks.take(chosen)).values
    cheapest = int(costs.argmin())
    state.point = point
    state.chosen.extend(chosen)
    state.gains[len(chosen)] = max(float(costs[cheapest]), 0.0)
    out = blocks[chosen[cheapest]]
    state.origins[len(chosen)] = np.setdiff1d(support, out, assume_unique=True)
    fall = before.value - point.value
    return Move("start", chosen[0], fall, point, fall, 0, came=tuple(chosen))


def resumed(
    objective: Objective, blocks: Blocks, state: State, path: Path, units: Units | None
) -> list[tuple[Point, list[int], str]]:
    """Put a state where a path ended, and return its points with the blocks of each, and actions.

    Gains are those that the path recorded.
    """
    place = {int(number): block for block, number in enumerate(blocks.numbers)}
    power = 0 if units is None else -units.value
    visits = []
    before = path.start
    for step in path.steps:
        if step.action == "start":
            begun(objective, blocks, state, [place[one] for one in (step.feature, *step.others)])
        elif step.action == "add":
            state.chosen.append(place[step.feature])
            state.gains[step.size] = times_power(step.change, power)
            state.origins[step.size] = before.support
        else:
            state.chosen.remove(place[step.feature])
        before = step.point
        visit = replace(before, value=times_power(before.value, power))
        visits.append((visit, list(state.chosen), step.action))
    end = objective.minimise(before.support, None).of_size(len(state.chosen))
    # In the user's units, in which the path has its values: there they may be too small to tell.
    now = times_power(end.value, -power)
    rounding = SAME_VALUE_RTOL * abs(now) + times_power(objective.resolution(end), -power)
    if abs(now - before.value) > rounding:
        raise ValueError(
            f"start is a path of other data: where it ended, the objective is {now:.6g}, and not "
            f"{before.value:.6g}"
        )
    state.point = end
    return visits
