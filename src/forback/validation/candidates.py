"""The candidates of an objective as the user wants them."""

from __future__ import annotations

from typing import Any

import numpy as np

from forback.core.candidates import Alone, Candidates, Groups, make_blocks
from forback.core.costs import GroupCosts
from forback.core.objective import Objective
from forback.core.types import ColumnLabels
from forback.validation.columns import check_columns
from forback.validation.groups import check_costs, check_groups
from forback.validation.scalars import check_choice


def make_groups(groups: Any, width: int, names: ColumnLabels | None) -> Groups:
    """Return the groups of `width` columns as the user wants them."""
    columns = range(width) if names is None else names
    if groups is None:
        return Groups(np.arange(width), columns, {}, names)
    given = check_groups(groups, width, names)
    number = {label: place for place, label in enumerate(dict.fromkeys(given))}
    labels = [columns[label.column] if isinstance(label, Alone) else label for label in number]
    return Groups(np.array([number[label] for label in given], np.intp), labels, number, names)


def make_candidates(
    objective: Objective,
    *,
    groups: Any = None,
    by: str | None = None,
    always: Any = None,
    costs: Any = None,
) -> Candidates:
    """Return the candidates of an objective; `select` says what the words mean."""
    features, n = objective.features, objective.n_candidates
    if by is None:
        by = "group" if groups is not None or features.together else "feature"
    check_choice(by, "by", ("group", "feature"))
    width, names = features.n_columns, features.names
    grouped = make_groups(groups, width, names)
    always_columns = check_columns(always, width, names, "always")
    prices = check_costs(costs, grouped, free=grouped.group[always_columns])
    group_of = grouped.group
    is_always = np.zeros(width, dtype=bool)
    is_always[always_columns] = True
    if features.column_of is not None:
        group_of = group_of[features.column_of]
        is_always = is_always[features.column_of]
    always_in = np.concatenate([np.flatnonzero(is_always), np.arange(n, objective.dim)])
    blocks = make_blocks(by, group_of, np.flatnonzero(~is_always), always_in)
    own = by == "feature" or (groups is None and features.column_of is None)
    group_names = grouped.names
    called = features.own_names if own else group_names
    block_names = None if called is None else tuple(map(str, called))
    group_costs = GroupCosts(group_of, prices, group_names)
    return Candidates(blocks, block_names, group_costs, by, features, grouped)
