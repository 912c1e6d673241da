"""The candidates of an objective as the user wants them."""

from __future__ import annotations

from typing import Any

import numpy as np

from forback.core.blocks import Blocks
from forback.core.candidates import Candidates, Groups, group_blocks
from forback.core.costs import GroupCosts
from forback.core.objective import Objective
from forback.core.types import ColumnLabels
from forback.validation.columns import check_columns
from forback.validation.groups import check_costs, check_groups
from forback.validation.scalars import check_choice


def make_groups(groups: Any, width: int, names: ColumnLabels | None) -> Groups:
    """Return the groups of `width` columns as the user wants them."""
    if groups is None:
        return Groups(np.arange(width), None, names)
    labels = check_groups(groups, width, names)
    number = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    return Groups(np.array([number[label] for label in labels], dtype=np.intp), number, names)


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
    group_of, always_candidates = grouped.group, always_columns
    if features.column_of is not None:
        group_of = group_of[features.column_of]
        always_candidates = np.flatnonzero(np.isin(features.column_of, always_columns))
    is_free = np.ones(n, dtype=bool)
    is_free[always_candidates] = False
    free = np.flatnonzero(is_free)
    always_in = np.concatenate([always_candidates, np.arange(n, objective.dim)])
    group_costs = GroupCosts(group_of, prices, grouped.names)
    if by == "feature" or (groups is None and features.column_of is None):
        own = features.own_names
        block_names = None if own is None else tuple(map(str, own))
        blocks = Blocks.singles(free, always_in)
    else:
        block_names = grouped.names
        blocks = group_blocks(group_of, free, always_in)
    return Candidates(blocks, block_names, group_costs, by, features, grouped)
