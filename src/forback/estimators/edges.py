"""Edges as users name them, pairs of variables, turned into the numbers of candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from forback.candidates import make_groups
from forback.objectives.covariance import GaussianCovariance
from forback.validation import can_be_hashed


class Edges:
    """The edges of a graph by number; what is wrong with one is said by the argument's name."""

    def __init__(self, objective: GaussianCovariance) -> None:
        self._objective = objective

    def number(self, pair: Any, name: str) -> int:
        """The candidate that joins two variables, given by names or numbers, or by its own name."""
        if isinstance(pair, str) and pair in self._objective.feature_names:
            return self._objective.feature_names.index(pair)
        if not _is_pair(pair):
            raise TypeError(f"{name} must hold edges, pairs of names or numbers; met {pair!r}")
        try:
            return self._objective.edge(*pair)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name} holds the edge {pair!r}: {error}") from error

    def listed(self, pairs: Any, name: str) -> list[int]:
        """Several edges, no two alike."""
        if isinstance(pairs, str | bytes | Mapping) or not isinstance(pairs, Iterable):
            raise TypeError(f"{name} must be a list of edges, pairs of variables; met {pairs!r}")
        found = [self.number(pair, name) for pair in pairs]
        if len(set(found)) < len(found):
            raise ValueError(f"{name} lists an edge twice: {list(pairs)!r}")
        return found

    def grouped(self, groups: Mapping[Any, Any]) -> dict[Any, Any]:
        """A mapping edge -> label, or label -> edges, as label -> numbers."""
        found: dict[Any, list[int]] = {}
        for key, value in groups.items():
            label, pairs = (key, value) if _lists_edges(value) else (value, [key])
            if not can_be_hashed(label):
                raise TypeError(f"groups must have hashable labels, such as names; met {label!r}")
            if len(pairs) == 0:
                raise ValueError(f"groups gives {label!r} no edges; leave it out or list some")
            found.setdefault(label, []).extend(self.listed(pairs, "groups"))
        members = [number for numbers in found.values() for number in numbers]
        if len(set(members)) < len(members):
            raise ValueError("groups puts an edge into two groups, or twice into one")
        return found

    def priced(self, costs: Mapping[Any, Any], groups: Any) -> dict[Any, Any]:
        """A mapping group or edge -> price, with a price of 1 for all it leaves out."""
        named = make_groups(groups, self._objective.n_candidates, self._objective.feature_names)
        labels = named.labels or {}
        prices = {
            key if key in labels else self.number(key, "costs"): price
            for key, price in costs.items()
        }
        paid = {named.find(key) for key in prices}
        _, first = np.unique(named.group, return_index=True)
        return prices | {int(j): 1.0 for j in first if int(named.group[j]) not in paid}


def _is_pair(item: Any) -> bool:
    return isinstance(item, list | tuple | np.ndarray) and len(item) == 2


def _lists_edges(value: Any) -> bool:
    """Whether this is a collection of pairs rather than a label."""
    collection = isinstance(value, list | tuple | set | frozenset | np.ndarray)
    return collection and all(_is_pair(item) for item in value)
