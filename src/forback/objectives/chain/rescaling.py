"""Chains whose columns are in other units: of unit variance, or small enough to be squared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forback.core.types import Floats
from forback.core.units import Units
from forback.designs.make import make_design
from forback.designs.rescaling import column_powers
from forback.objectives.chain.data import ChainData
from forback.objectives.chain.inference import Sequences

#: A variance below this fraction of the squared mean is computed again about the mean.
CANCELLED = 1e-6

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
    scaled = replace(
        data,
        layout=replace(layout, sequences=sequences),
        ridge=np.ldexp(data.ridge, 2 * coef_powers),
        observed=np.ldexp(data.observed, coef_powers),
    )
    return scaled, Units(0, coef_powers)


def divided(data: ChainData, scales: Floats, ridge: float) -> ChainData:
    """Return a chain with its columns divided by scales, under another ridge."""
    layout = data.layout
    sequences = layout.sequences
    distinct = sequences.distinct / scales
    if sparse.issparse(distinct):
        distinct = sparse.csr_array(distinct)
    observed = data.observed.copy()
    observed[: layout.n_candidates] /= np.repeat(scales, layout.n_labels)
    return replace(
        data,
        layout=replace(layout, sequences=replace(sequences, distinct=distinct)),
        ridge=np.full(layout.dim, ridge),
        observed=observed,
    )


def column_scales(sequences: Sequences) -> Floats:
    """Return the standard deviation of each column over all steps; 1 for at most two values."""
    columns = sequences.by_column
    share = sequences.times / sequences.n_steps
    mean = np.asarray(columns.T @ share)
    variance = np.asarray((columns**2).T @ share) - mean**2
    # Where the mean exceeds the spread by far, the difference would be rounding.
    far = np.flatnonzero(variance < CANCELLED * mean**2)
    if len(far):
        picked = columns[:, far]
        dense = picked.toarray() if sparse.issparse(picked) else picked
        variance[far] = share @ (dense - mean[far]) ** 2
    scales = np.sqrt(variance)
    return np.where(_has_few_values(columns) | (scales == 0.0), 1.0, scales)


def _has_few_values(columns: Any) -> NDArray[np.bool_]:
    """Return which columns hold at most two values."""
    low, high = columns.min(axis=0), columns.max(axis=0)
    if not sparse.issparse(columns):
        return np.asarray(((columns == low) | (columns == high)).all(axis=0))
    low, high = low.toarray().ravel(), high.toarray().ravel()
    counts = np.diff(columns.indptr)
    column_of = np.repeat(np.arange(columns.shape[1]), counts)
    between = (columns.data != low[column_of]) & (columns.data != high[column_of])
    has_zero_between = (counts < columns.shape[0]) & (low != 0.0) & (high != 0.0)
    others = np.bincount(column_of[between], minlength=columns.shape[1])
    return np.asarray((others == 0) & ~has_zero_between)
