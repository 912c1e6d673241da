"""Chains in units in which no column is too small, or too large, to be squared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forback.core.units import Units
from forback.designs.make import make_design
from forback.designs.rescaling import column_powers
from forback.objectives.chain.data import ChainData

#: What chains take for small is meant for columns whose size is within this many powers of two.
CHAIN_RANGE_POWERS = 20


def chain_in_range(data: ChainData) -> tuple[ChainData, Units] | None:
    """Return a chain in units that are within range, and these; None: it is already."""
    layout = data.layout
    design = make_design(layout.sequences.by_column)
    ridge = data.ridge[: layout.n_candidates].reshape(-1, layout.n_labels).max(axis=1)
    powers = column_powers(design.largest, ridge, range=CHAIN_RANGE_POWERS)
    if not powers.any():
        return None
    coef_powers = np.zeros(layout.dim, dtype=np.intp)
    coef_powers[: layout.n_candidates] = np.repeat(powers, layout.n_labels)
    sequences = replace(layout.sequences, distinct=design.times(powers).X)
    observed, ridge = np.ldexp(data.observed, coef_powers), np.ldexp(data.ridge, 2 * coef_powers)
    layout = replace(layout, sequences=sequences)
    return replace(data, layout=layout, observed=observed, ridge=ridge), Units(0, coef_powers)
