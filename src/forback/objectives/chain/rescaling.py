"""Chains in units in which no column is too small, or too large, to be squared."""

from __future__ import annotations

from typing import Any

import numpy as np

from forback.core.units import Units
from forback.designs.make import make_design
from forback.designs.rescaling import column_powers

#: What chains take for small is meant for columns whose size is within this many powers of two.
CHAIN_RANGE = 20


def chain_in_range(model: Any) -> tuple[Any, Units] | None:
    """A chain in units that are within range, and these; None: it is already."""
    design = make_design(model.sequences.by_column)
    n, k = model.n_candidates, len(model.classes)
    ridge = model.ridge[:n].reshape(-1, k).max(axis=1)
    powers = column_powers(design.largest, ridge, range=CHAIN_RANGE)
    if not powers.any():
        return None
    units = Units(0, np.append(np.repeat(powers, k), np.zeros(model.dim - n, dtype=np.intp)))
    return model.in_units(design.times(powers), units), units
