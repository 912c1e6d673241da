"""Columns too small, or too large, to be squared: powers of two that bring them into range."""

from __future__ import annotations

import numpy as np

from forback.core.types import Floats, Ints
from forback.core.units import RANGE, exponents
from forback.designs.design import Design

#: The coefficient of a column that is smaller might overflow.
SMALLEST = 2.0**-1000

#: Beside it nothing else counts.
LARGEST_RIDGE = 2.0**500


def column_powers(sizes: Floats, ridge: Floats, range: int = RANGE) -> Ints:
    """The power of two that brings each column to about 1; 0 for those within range."""
    if (sizes[sizes > 0.0] < SMALLEST).any():
        raise ValueError(
            f"X must have columns that are zero or reach {SMALLEST:.0e}, got one that reaches "
            f"{sizes[sizes > 0.0].min():.0e}; its coefficient might overflow. Multiply it by a "
            "constant"
        )
    return exponents(sizes, ridge, range)


def design_powers(design: Design, ridge: Floats) -> Ints:
    """The power of two that brings each column of a design to about 1."""
    if not design.is_out_of_range:
        return np.zeros(design.shape[1], dtype=np.intp)
    return column_powers(design.largest, ridge)
