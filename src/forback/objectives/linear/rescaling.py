"""A generalised linear model in units in which nothing is too small to be squared.

Everything is multiplied by powers of two, so that no digit is lost; see `forback.core.units`.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from forback.core.types import Floats
from forback.core.units import RANGE, Units, exponent
from forback.designs.rescaling import LARGEST_RIDGE, design_powers
from forback.objectives.linear.data import LinearData
from forback.objectives.linear.losses import RESOLVED, Huber, Loss, Squared


def in_range(data: LinearData) -> tuple[LinearData, Units] | None:
    """Return the model in units that are within range, and these units; None: it is already."""
    columns = design_powers(data.design, data.ridge)
    loss, response, corners = _loss_in_range(data.loss, data.y, data.offset)
    if not (columns.any() or response or corners):
        return None
    with np.errstate(over="ignore"):
        ridge = np.ldexp(data.ridge, 2 * columns + corners)
    scaled = replace(
        data,
        loss=loss,
        design=data.design.times(columns),
        y=np.ldexp(data.y, response),
        offset=np.ldexp(data.offset, response),
        ridge=np.minimum(ridge, LARGEST_RIDGE),
    )
    coef = np.zeros(data.dim, dtype=np.intp) - response
    coef[: data.n_candidates] += columns
    return scaled, Units(-2 * response - corners, coef)


def _loss_in_range(loss: Loss, y: Floats, offset: Floats) -> tuple[Loss, int, int]:
    """A loss for y times a power of two, that power, and by which other power the loss is more.

    A real y is brought to about 1 if it is too small, or too large, to be squared, and Huber's
    threshold goes with it. A threshold that is lost in the rounding of y is raised to one that is
    not: beyond it the loss is larger by as much, and otherwise the same.
    """
    if not isinstance(loss, Squared | Huber):
        return loss, 0, 0
    size = max(float(np.abs(y).max()), float(np.abs(offset).max()))
    power = exponent(size)
    if isinstance(loss, Squared):
        return loss, power, 0
    # As pairs of a number and a power of two, since one of them may be no number in these units.
    mantissa, own = math.frexp(loss.threshold)
    least, wanted = math.frexp(RESOLVED * math.ldexp(size, power))
    own = min(own + power, RANGE + 64)  # no residual reaches that
    corners = max(0, wanted - own + (mantissa < least))
    return replace(loss, threshold=math.ldexp(mantissa, own + corners)), power, corners
