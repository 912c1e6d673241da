"""Curvature looked at from inside: on random supports, and on supports chosen to be bad."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from forback.core.objective import Objective
from forback.core.types import Floats, Ints
from forback.validation.scalars import check_generator

#: Among so many candidates bad supports are looked for.
POOL = 60

#: Directions that bend less than this, relatively, are those of collinear columns.
FLAT = 1e-12

#: So many coordinates may have a Hessian by differences of gradients.
MOST = 500


def sampled(
    objective: Objective, s: int, free: Ints, always: Ints, trials: int, random_state: Any
) -> tuple[float, float, float]:
    """The least and largest curvature found on s candidates, and the largest of one candidate.

    The Hessian is looked at where the paper's constants are defined, at points no higher than zero:
    where nothing is in, and at the fit of each support.
    """
    rng = check_generator(random_state)
    start = objective.minimise(always)
    supports = [np.sort(rng.choice(free, s, replace=False)) for _ in range(trials)]
    pool = _pool(np.abs(objective.gradient(start)), free, s, rng)
    if len(pool) + len(always) > MOST:
        raise ValueError(
            f'method="sample" works out {len(pool) + len(always)} second derivatives by '
            f"differences of gradients; more than {MOST} are too many"
        )
    origin = start.dense(objective.dim)
    there = hessian(objective, origin, np.concatenate([pool, always]))
    least, most = profile(there, len(pool)), there[: len(pool), : len(pool)]
    single = float(most.diagonal().max())
    supports += [pool[_grow(least, s, lowest=True)], pool[_grow(most, s, lowest=False)]]
    lower, upper = np.inf, 0.0
    for support in supports:
        together = np.sort(np.concatenate([support, always]))
        fitted = objective.minimise(together).dense(objective.dim)
        for beta in (origin, fitted):
            matrix = hessian(objective, beta, np.concatenate([support, always]))
            lower = min(lower, float(np.linalg.eigvalsh(profile(matrix, s))[0]))
            upper = max(upper, float(np.linalg.eigvalsh(matrix[:s, :s])[-1]))
            single = max(single, float(matrix.diagonal()[:s].max()))
    return max(lower, 0.0), upper, single


def _pool(steepness: Floats, free: Ints, s: int, rng: np.random.Generator) -> Ints:
    """The steepest candidates and some others."""
    size = min(len(free), max(POOL, s))
    steepest = free[np.argsort(-steepness[free], kind="stable")[: (size + 1) // 2]]
    others = np.setdiff1d(free, steepest)
    return np.concatenate([steepest, rng.choice(others, size - len(steepest), replace=False)])


def hessian(objective: Objective, beta: Floats, coordinates: Ints) -> Floats:
    """Second derivatives of Q over some coordinates, by differences of gradients."""
    length = 1e-4 * max(1.0, float(np.abs(beta).max(initial=0.0)))
    columns = np.empty((len(coordinates), len(coordinates)))
    for place, coordinate in enumerate(coordinates):
        ahead, behind = beta.copy(), beta.copy()
        ahead[coordinate] += length
        behind[coordinate] -= length
        change = objective.value_and_gradient(ahead)[1] - objective.value_and_gradient(behind)[1]
        columns[place] = change[coordinates] / (2.0 * length)
    return np.asarray(0.5 * (columns + columns.T))


def profile(matrix: Floats, own: int) -> Floats:
    """What is left of a Hessian over its first coordinates when the others follow along."""
    inner, cross, corner = matrix[:own, :own], matrix[:own, own:], matrix[own:, own:]
    if len(corner) == 0:
        return inner
    units = np.sqrt(np.maximum(corner.diagonal(), np.finfo(float).tiny))
    cross, corner = cross / units, corner / np.outer(units, units)
    return np.asarray(inner - cross @ np.linalg.pinv(corner, rcond=FLAT, hermitian=True) @ cross.T)


def flattest(matrix: Floats, own: int) -> float:
    """The least curvature of what follows along, its coordinates scaled to curvature one."""
    corner = matrix[own:, own:]
    if len(corner) == 0:
        return 1.0
    units = np.sqrt(corner.diagonal())
    if not (units > 0.0).all():
        return 0.0
    return max(float(np.linalg.eigvalsh(corner / np.outer(units, units))[0]), 0.0)


def _grow(matrix: Floats, s: int, *, lowest: bool) -> Ints:
    """A support that bends little (or much), grown one candidate at a time."""
    everyone = range(len(matrix))
    grown: Ints = np.zeros(0, np.intp)
    while len(grown) < s:  # the first two at once: a bad pair need not have a bad member
        together = 2 if len(grown) == 0 and s > 1 else 1
        others = [one for one in combinations(everyone, together) if not set(one) & set(grown)]
        trials = np.array([[*grown, *one] for one in others], dtype=np.intp)
        values = np.linalg.eigvalsh(matrix[trials[:, :, None], trials[:, None, :]])
        grown = trials[values[:, 0].argmin() if lowest else values[:, -1].argmax()]
    return np.sort(grown)
