"""Data in other units: where columns or a response are too small, or too large, to be squared.

See `forback.units`. Everything is multiplied by powers of two, so that no digit is lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from forback.objectives.designs import Design
from forback.objectives.losses import RESOLVED, Huber, Loss, Squared
from forback.objectives.sparse_designs import make_design
from forback.protocols import Floats, Ints
from forback.units import RANGE, Units, exponent, exponents

#: The coefficient of a column that is smaller might overflow.
SMALLEST = 2.0**-1000

#: Beside it nothing else counts.
LARGEST_RIDGE = 2.0**500

#: What chains take for small is meant for columns whose size is within this many powers of two.
CHAIN_RANGE = 20


@dataclass(frozen=True)
class Parts:
    """What a generalised linear model in other units is made of."""

    data: tuple[Loss, Design, Floats]  #: loss, X and y
    settings: dict[str, Any]
    units: Units


def column_powers(sizes: Floats, ridge: Floats, range: int = RANGE) -> Ints:
    """The power of two that brings each column to about 1; 0 for those within range."""
    if (sizes[sizes > 0.0] < SMALLEST).any():
        raise ValueError(
            f"X must have columns that are zero or reach {SMALLEST:.0e}, got one that reaches "
            f"{sizes[sizes > 0.0].min():.0e}; its coefficient might overflow. Multiply it by a "
            "constant"
        )
    return exponents(sizes, ridge, range)


def _powers(design: Design, ridge: Floats) -> Ints:
    if not design.is_out_of_range:
        return np.zeros(design.shape[1], dtype=np.intp)
    return column_powers(design.largest, ridge)


def in_range(model: Any) -> Parts | None:
    """The parts of a generalised linear model in units that are within range; None: they are."""
    p = model.n_candidates
    columns = _powers(model.design, model.ridge[:p])
    loss, response, corners = _loss_in_range(model.loss, model.y, model.offset)
    if not (columns.any() or response or corners):
        return None
    with np.errstate(over="ignore"):
        ridge = np.ldexp(model.ridge[:p], 2 * columns + corners)
    settings = {
        "ridge": np.minimum(ridge, LARGEST_RIDGE),
        "offset": np.ldexp(model.offset, response),
        "weights": model.weights,
        "tol": model.tol,
        "max_iter": model.max_iter,
    }
    coef = np.zeros(model.dim, dtype=np.intp) - response
    coef[:p] += columns
    data = loss, model.design.times(columns), np.ldexp(model.y, response)
    return Parts(data, settings, Units(-2 * response - corners, coef))


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


def classes_in_range(model: Any) -> tuple[Any, Units] | None:
    """A softmax regression in units that are within range, and these; None: it is already."""
    classes = len(model.classes)
    ridge = model.ridge[: model.n_candidates : classes]
    powers = _powers(model.design, ridge)
    if not powers.any():
        return None
    other = type(model).trusted(
        model.classes, model.design.times(powers), model.codes,
        ridge=np.ldexp(ridge, 2 * powers), fit_intercept=model.fit_intercept,
        weights=model.weights, tol=model.tol, max_iter=model.max_iter,
    )  # fmt: skip
    other.n_samples, other.feature_names = model.n_samples, model.feature_names
    intercepts = np.zeros(model.dim - model.n_candidates, dtype=np.intp)
    return other, Units(0, np.append(np.repeat(powers, classes), intercepts))


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
