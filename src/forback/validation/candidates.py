"""The candidates of an objective as the user wants them."""

from __future__ import annotations

from typing import Any

import numpy as np

from forback.core.blocks import Blocks
from forback.core.candidates import Candidates, Groups, group_blocks
from forback.core.costs import Ledger
from forback.core.types import ColumnLabels
from forback.validation.columns import check_columns, check_costs, check_groups
from forback.validation.scalars import (
    check_choice,
)


def make_groups(groups: Any, width: int, names: ColumnLabels | None) -> Groups:
    """The groups of `width` columns as the user wants them."""
    if groups is None:
        return Groups(np.arange(width), None, names)
    labels = check_groups(groups, width, names)
    number = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    return Groups(np.array([number[label] for label in labels], dtype=np.intp), number, names)


def make_candidates(
    objective: Any,
    *,
    groups: Any = None,
    by: str | None = None,
    always: Any = None,
    costs: Any = None,
) -> Candidates:
    """The candidates of an objective as the user wants them: `select` says what the words mean.

    An objective may name its columns (`feature_names`), say which column each candidate belongs to
    (`columns`; by default candidate j is column j), name the candidates (`candidate_names`) and say
    what `by` is where neither it nor groups are given (`default_by`; else "feature").
    """
    if by is None:
        by = getattr(objective, "default_by", "feature") if groups is None else "group"
    check_choice(by, "by", ("group", "feature"))
    n, names = objective.n_candidates, getattr(objective, "feature_names", None)
    columns = getattr(objective, "columns", None)
    width = n if columns is None else int(columns[-1]) + 1
    grouped = make_groups(groups, width, names)
    insisted = check_columns(always, width, names, "always")
    prices = check_costs(costs, grouped, free=grouped.group[insisted])
    owner = grouped.group
    if columns is not None:
        owner, insisted = owner[columns], np.flatnonzero(np.isin(columns, insisted))
    free = np.arange(n)
    if len(insisted):
        free = np.setdiff1d(free, insisted, assume_unique=True)
    always_in = np.concatenate([insisted, np.arange(n, objective.dim)])
    ledger = Ledger(owner, prices, grouped.names)
    if by == "feature" or (groups is None and columns is None):
        own = getattr(objective, "candidate_names", names)
        own_names = None if own is None else tuple(map(str, own))
        return Candidates(Blocks.singles(free, always_in), own_names, ledger, by)
    return Candidates(group_blocks(owner, free, always_in), grouped.names, ledger, by)
