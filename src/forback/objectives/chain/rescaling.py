"""Chains whose columns are in other units: of unit variance, or small enough to be squared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from forback.core.types import Floats
from forback.core.units import Units
from forback.designs.make import make_design
from forback.designs.rescaling import column_powers
from forback.objectives.chain.data import ChainData

#: What chains take for small is meant for columns whose size is within this many powers of two.
CHAIN_RANGE_POWERS = 20


def chain_in_range(data: ChainData) -> tuple[ChainData, Units] | None:
    """Return a chain in units that are within range, and these; None: it is already."""
    design = make_design(data.sequences.by_column)
    ridge = data.ridge[: data.n_candidates].reshape(-1, data.n_labels).max(axis=1)
    powers = column_powers(design.largest, ridge, range=CHAIN_RANGE_POWERS)
    if not powers.any():
        return None
    coef_powers = data.per_coordinate(powers, 0)
    ridge = np.ldexp(data.ridge, 2 * coef_powers)
    observed = np.ldexp(data.observed, coef_powers)
    return _replaced(data, design.times(powers).X, ridge, observed), Units(0, coef_powers)


def divided(data: ChainData, scales: Floats, ridge: float) -> ChainData:
    """Return a chain with its columns divided by scales, under another ridge."""
    observed = data.observed / data.per_coordinate(scales, 1.0)
    distinct = data.sequences.distinct / scales
    return _replaced(data, distinct, np.full(data.dim, ridge), observed)


def _replaced(data: ChainData, distinct: Any, ridge: Floats, observed: Floats) -> ChainData:
    """Return a chain with other entries of the distinct rows, and what goes with them."""
    sequences = replace(data.sequences, distinct=distinct)
    return replace(data, sequences=sequences, ridge=ridge, observed=observed)
