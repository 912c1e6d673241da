"""Edges as users name them, pairs of variables, turned into the numbers of candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from forback.core.candidates import Alone
from forback.objectives.graph.objective import GaussianCovariance
from forback.validation.candidates import make_groups
from forback.validation.scalars import check_number


class Edges:
    """The edges of a graph by number; errors name the argument that an edge was given in."""

    def __init__(self, objective: GaussianCovariance) -> None:
        self._objective = objective

    def number(self, pair: Any, name: str) -> int:
        """Return the candidate for a pair of variables, or for the name of an edge."""
        if isinstance(pair, str) and pair in self._objective.feature_names:
            return self._objective.feature_names.index(pair)
        if not _is_pair(pair):
            raise TypeError(f"{name} must hold edges, pairs of names or numbers, got {pair!r}")
        try:
            return self._objective.edge(*pair)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name} holds the edge {pair!r}: {error}") from error

    def listed(self, pairs: Any, name: str) -> list[int]:
        """Return the candidates for several edges, no two of which may be alike."""
        if isinstance(pairs, str | bytes | Mapping) or not isinstance(pairs, Iterable):
            raise TypeError(f"{name} must be a list of edges, pairs of variables, got {pairs!r}")
        found = [self.number(pair, name) for pair in pairs]
        if len(set(found)) < len(found):
            raise ValueError(f"{name} lists an edge twice: {list(pairs)!r}")
        return found

    def grouped(self, groups: Mapping[Any, Any]) -> list[Any]:
        """Turn a mapping edge -> label, or label -> edges, into a label for each candidate."""
        found: list[Any] = [Alone(number) for number in range(self._objective.n_candidates)]
        for key, value in groups.items():
            label, pairs = (key, value) if _lists_edges(value) else (value, [key])
            if len(pairs) == 0:
                raise ValueError(f"groups gives {label!r} no edges; leave it out or list some")
            for number in self.listed(pairs, "groups"):
                if not isinstance(found[number], Alone):
                    raise ValueError("groups puts an edge into two groups, or twice into one")
                found[number] = label
        return found

    def priced(self, costs: Mapping[Any, Any], groups: Any) -> list[float]:
        """Turn a mapping group or edge -> price into a price per edge: 1 for all it leaves out."""
        named = make_groups(groups, self._objective.n_candidates, self._objective.feature_names)
        prices: dict[int, float] = {}
        for key, price in costs.items():
            price = check_number(price, f"costs[{key!r}]", low=0.0)
            known = key in named.numbers
            group = named.numbers[key] if known else named.group[self.number(key, "costs")]
            if prices.setdefault(int(group), price) != price:
                raise ValueError(f"costs gives {key!r}, or what it is grouped with, two prices")
        return [prices.get(int(group), 1.0) for group in named.group]

    def check_per_edge(self, given: Any, name: str) -> Any:
        """Return a label or a price for each edge, if there are as many; others refuse the rest."""
        n = self._objective.n_candidates
        if isinstance(given, list | tuple | np.ndarray) and len(given) != n:
            raise ValueError(
                f"{name} must have one entry per edge: {n}, got {len(given)}. A mapping may name "
                "some edges only"
            )
        return given


def _is_pair(item: Any) -> bool:
    return isinstance(item, list | tuple | np.ndarray) and len(item) == 2


def _lists_edges(value: Any) -> bool:
    """Whether this is a collection of pairs rather than a label."""
    collection = isinstance(value, list | tuple | set | frozenset | np.ndarray)
    return collection and all(_is_pair(item) for item in value)
