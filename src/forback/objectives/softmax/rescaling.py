"""Softmax regression in units in which nothing is too small to be squared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forback.core.units import Units
from forback.designs.rescaling import design_powers
from forback.objectives.softmax.data import SoftmaxData


def classes_in_range(data: SoftmaxData) -> tuple[SoftmaxData, Units] | None:
    """Return a softmax regression in units within range, and these; None: it is already."""
    powers = design_powers(data.design, data.ridge)
    if not powers.any():
        return None
    ridge = np.ldexp(data.ridge, 2 * powers)
    scaled = replace(data, design=data.design.times(powers), ridge=ridge)
    coef_powers = np.append(powers, [0] * data.fit_intercept).repeat(data.n_classes)
    return scaled, Units(0, coef_powers.astype(np.intp))
