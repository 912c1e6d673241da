"""Bounds of a softmax regression: what whole columns are worth at most, what they cost at least.

Softmax regression is self-concordant (`forback.solvers.concordance`): the curvature of a row falls
no faster than exp(-t) when the difference of two of its scores moves by t. All is said of whole
columns, K coefficients each; that these may rise alike without any effect is dealt with as in
`problem`: a term in that direction makes Hessians regular and leaves all lengths as they are, if a
step is taken without its part in that direction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from forback.core.blocks import Blocks
from forback.core.point import Point
from forback.core.types import Floats, Ints
from forback.objectives.linear.kernels.lines import most_to_gain
from forback.objectives.softmax.data import SoftmaxData
from forback.objectives.softmax.problem import HESSIAN_CHUNK_ENTRIES, Coefficients, Predictions
from forback.solvers.concordance import WIDENED, fastest_bend, removal_bounds
from forback.solvers.linalg import inverse_roots
from forback.solvers.quadratic_model import QuadraticModel


class Bends(NamedTuple):
    """Second order of Q along some sets of columns, count of them, m coefficients each.

    Attributes
    ----------
    halves : float array of shape (count, m, m)
        For each set R such that R R' is the inverse Hessian.
    fastest : float array of length count
        How fast Q bends along a step of length 1; infinite where the Hessian is nearly singular.
    sizes : float array of shape (count, m)
        Roots of the curvature along each coefficient, which are the direction made regular.
    """

    halves: Floats
    fastest: Floats
    sizes: Floats


@np.errstate(over="ignore", invalid="ignore")
def bends_of(columns: Floats, weights: Floats, shares: Floats, ridge: Floats) -> Bends:
    """Look at sets of whole columns, an array of count x width x n, where rows have these shares.

    `ridge` is that of each column, count x width.
    """
    count, width, n = columns.shape
    n_classes = shares.shape[1]
    hessians = _hessians(columns, weights[None], shares)
    blocks = hessians.reshape(count, width, n_classes, width, n_classes)
    own = np.arange(width)
    centred = np.eye(n_classes) - 1.0 / n_classes
    blocks[:, own, :, own] += (ridge.T[:, :, None, None]) * centred
    sizes = np.sqrt(np.maximum(np.einsum("bii->bi", hessians), 0.0))
    table = sizes.reshape(count, width, n_classes)
    blocks[:, own, :, own] += (table[:, :, :, None] * table[:, :, None]).transpose(1, 0, 2, 3)
    halves, is_sound = inverse_roots(hessians)
    squares = np.zeros((count, n))
    by_class = halves.reshape(count, width, n_classes, -1)
    for c in range(n_classes):
        for d in range(c):
            apart = (by_class[:, :, c] - by_class[:, :, d]).transpose(0, 2, 1) @ columns
            np.maximum(squares, np.einsum("bmi,bmi->bi", apart, apart), out=squares)
    weighted = _hessians(columns, weights * squares, shares)
    fastest = fastest_bend(squares, halves.transpose(0, 2, 1) @ weighted @ halves)
    return Bends(halves, np.where(is_sound, fastest, np.inf), sizes)


def _hessians(columns: Floats, weights: Floats, shares: Floats) -> Floats:
    """The second derivatives of the mean loss, with a row of weights for all sets or for each."""
    count, width, _ = columns.shape
    n_classes = shares.shape[1]
    out = np.zeros((count, width, n_classes, width, n_classes))
    across = columns.transpose(0, 2, 1)
    for c in range(n_classes):
        for d in range(c):
            part = (columns * (weights * shares[:, c] * shares[:, d])[:, None]) @ across
            out[:, :, c, :, d] -= part
            out[:, :, d, :, c] -= part
            # What is close to one is a sum of what is small.
            out[:, :, c, :, c] += part
            out[:, :, d, :, d] += part
    return out.reshape(count, width * n_classes, width * n_classes)


def sets_of_columns(blocks: Blocks, n_classes: int) -> Iterator[tuple[Ints, Ints]]:
    """Give the blocks that consist of whole columns by width: which they are, and their columns."""
    widths = np.diff(blocks.pointer)
    for width in np.unique(widths[widths % n_classes == 0]).tolist():
        same = np.flatnonzero(widths == width)
        members = blocks.coordinates[blocks.pointer[same, None] + np.arange(width)]
        columns = members[:, ::n_classes] // n_classes
        whole = (columns[:, :, None] * n_classes + np.arange(n_classes)).reshape(len(same), -1)
        is_whole = (members == whole).all(axis=1)
        yield same[is_whole], columns[is_whole]


@np.errstate(over="ignore", invalid="ignore")
def most_falls(
    data: SoftmaxData, predictions: Predictions, slopes: Floats, columns: Ints
) -> tuple[Floats, Floats]:
    """Return what Newton's method expects of sets of columns outside, and what is there at most.

    `slopes` are p x K, `columns` a row for each set.
    """
    count, width = columns.shape
    expected = np.full(count, np.inf)
    most = np.full(count, np.inf)
    step = max(1, HESSIAN_CHUNK_ENTRIES // (columns.shape[1] * data.n_classes * len(data.weights)))
    for start in range(0, count, step):
        part = slice(start, start + step)
        own = columns[part]
        block = np.ascontiguousarray(data.design.toarray(own.ravel()).T).reshape(*own.shape, -1)
        bends = bends_of(block, data.weights, predictions.probabilities, data.ridge[own])
        gradient = slopes[own].reshape(len(own), 1, width * data.n_classes)
        gains = 0.5 * np.square(gradient @ bends.halves).sum(axis=(1, 2))
        speeds = np.sqrt(2.0 * gains) * bends.fastest
        sound = np.isfinite(speeds)
        expected[part] = np.where(sound, gains, np.inf)
        bounds = [most_to_gain(*pair) for pair in zip(gains, speeds, strict=True)]
        most[part] = np.where(sound, np.array(bounds) * (1.0 + WIDENED), np.inf)
    return expected, most


def least_costs(
    data: SoftmaxData, predictions: Predictions, point: Point, blocks: Blocks
) -> Floats | None:
    """Return numbers that the costs of removals after a refit are never below.

    None where coefficients are in whose column is not in as a whole, or the Hessian is nearly
    singular.
    """
    problem = data.restricted(point.support)
    own = problem.own
    n_classes = data.n_classes
    if own.whole.size < len(point.support) or not all(_is_whole(b, n_classes) for b in blocks):
        return None
    ridge = problem.ridge.reshape(1, -1, n_classes)[:, :, 0]
    columns = np.ascontiguousarray(problem.block.T)[None]
    bends = bends_of(columns, data.weights, predictions.probabilities, ridge)
    if not np.isfinite(bends.fastest[0]):
        return None
    half = bends.halves[0]
    slopes = problem.state(point.coef, predictions).gradient
    # Without the part that changes nothing and that makes Hessians regular.
    sizes = bends.sizes.reshape(-1, n_classes)
    table = point.coef.reshape(-1, n_classes)
    table = table - ((sizes * table).sum(axis=1) / sizes.sum(axis=1))[:, None]
    model = QuadraticModel(table.reshape(-1, 1), half @ half.T)
    places = blocks.places_in(point.support)
    steep = float(np.linalg.norm(half.T @ slopes))
    return removal_bounds(model, places, float(bends.fastest[0]), steep)


def _is_whole(coordinates: Ints, n_classes: int) -> bool:
    return Coefficients.of(coordinates, n_classes).whole.size == len(coordinates)
