"""Softmax regression in units in which nothing is too small to be squared."""

from __future__ import annotations

from typing import Any

import numpy as np

from forback.core.units import Units
from forback.designs.rescaling import design_powers


def classes_in_range(model: Any) -> tuple[Any, Units] | None:
    """A softmax regression in units that are within range, and these; None: it is already."""
    classes = len(model.classes)
    ridge = model.ridge[: model.n_candidates : classes]
    powers = design_powers(model.design, ridge)
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
