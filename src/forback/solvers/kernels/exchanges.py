"""The scores of all exchanges of one coordinate for another."""

from __future__ import annotations

from forback.core.types import Floats, Ints
from forback.solvers.kernels.compiled import kernel


@kernel
def fill_bends(cross: Floats, held: Floats, bends: Floats) -> None:
    """Take off the curvature of each column what those inside make up for: cross' held."""
    for i in range(len(cross)):
        for j in range(len(bends)):
            bends[j] -= cross[i, j] * held[i, j]


@kernel
def fill_falls(
    own: Ints,
    roots: Floats,
    pull: Floats,
    held: Floats,
    slopes: Floats,
    bends: Floats,
    least: Floats,
    costs: Floats,
    falls: Floats,
) -> None:
    """How far a quadratic function falls when one coordinate leaves, at its cost, and one joins.

    A row for each that leaves. Those that join have r slopes and a curvature (`bends`); what left
    adds to both, as its row of `held` over its root says, by its pull. Nothing falls where the
    curvature is below `least`.
    """
    for i in range(len(own)):
        row = held[own[i]]
        share = 1.0 / roots[i]
        for j in range(len(bends)):
            freed = row[j] * share
            bend = bends[j] + freed * freed
            fall = 0.0
            for r in range(len(slopes)):
                slope = slopes[r, j] - pull[i, r] * freed
                fall += slope * slope
            falls[i, j] = (0.5 * fall / bend if bend > least[j] else 0.0) - costs[i]
