"""Features: what the candidates of an objective are called, and which column each belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any, Self

import numpy as np

from forback.core.types import ColumnLabels, Ints


@dataclass(frozen=True, eq=False)
class Features:
    """Names, owner columns and default grouping of the candidates of an objective.

    Attributes
    ----------
    n_candidates : int
        How many there are.
    names : tuple or None
        Labels of the columns of X, by which a user calls them; None: columns have no labels.
    column_of : int array or None
        The column that each candidate belongs to; None: candidate j is column j.
    candidate_names : tuple of str or None
        Names of the candidates; None: those of their columns.
    together : bool
        Whether the candidates of a column enter and leave together unless the user asks for single
        ones.
    """

    n_candidates: int
    names: ColumnLabels | None = None
    column_of: Ints | None = None
    candidate_names: tuple[str, ...] | None = None
    together: bool = False

    @classmethod
    def crossed(
        cls, names: ColumnLabels | None, n_columns: int, labels: Iterable[Any], *, together: bool
    ) -> Self:
        """Features of a model with a coefficient for each column and each label.

        Candidate ``j * K + c`` is column j with label c, called "age:setosa".
        """
        labels = list(labels)
        columns = range(n_columns) if names is None else names
        own = tuple(f"{column}:{label}" for column, label in product(columns, labels))
        owner = np.repeat(np.arange(n_columns), len(labels))
        return cls(len(own), names, owner, own, together)

    @property
    def n_columns(self) -> int:
        """The number of columns of X."""
        return self.n_candidates if self.column_of is None else int(self.column_of[-1]) + 1

    @property
    def own_names(self) -> ColumnLabels | None:
        """What single candidates are called: their own names, else the labels of the columns."""
        return self.names if self.candidate_names is None else self.candidate_names

    def columns_of(self, candidates: Ints) -> Ints:
        """The columns that some candidates belong to, each once, in order of first appearance."""
        if self.column_of is None:
            return candidates
        owners = self.column_of[candidates]
        return np.array(list(dict.fromkeys(owners.tolist())), dtype=np.intp)
