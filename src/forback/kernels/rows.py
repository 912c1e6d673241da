"""Sums over rows: the loss with its derivatives, and products with a few sparse columns."""

from __future__ import annotations

import numpy as np

from forback.kernels import losses
from forback.kernels.compiled import kernel
from forback.protocols import Floats, Ints


@kernel
def evaluate(
    loss: int,
    parameter: float,
    eta: Floats,
    y: Floats,
    weights: Floats,
    residual: Floats,
    bend: Floats,
    start: int,
    stop: int,
) -> float:
    """Weighted loss of some rows, with its derivatives in eta left in `residual` and `bend`."""
    total = 0.0
    for i in range(start, stop):
        value, first, second = losses.all_three(loss, parameter, eta[i], y[i])
        total += weights[i] * value
        residual[i] = weights[i] * first
        bend[i] = weights[i] * second
    return total


@kernel
def evaluate_with_gradient(
    loss: int,
    parameter: float,
    eta: Floats,
    y: Floats,
    weights: Floats,
    residual: Floats,
    bend: Floats,
    data: Floats,
    columns: Ints,
    pointer: Ints,
    gradient: Floats,
    start: int,
    stop: int,
) -> float:
    """The same, adding B' residual to `gradient` on the way, with B stored by rows."""
    total = 0.0
    for i in range(start, stop):
        value, first, second = losses.all_three(loss, parameter, eta[i], y[i])
        total += weights[i] * value
        residual[i] = weights[i] * first
        bend[i] = weights[i] * second
        for entry in range(pointer[i], pointer[i + 1]):
            gradient[columns[entry]] += residual[i] * data[entry]
    return total


@kernel
def sandwich(
    data: Floats, columns: Ints, pointer: Ints, weights: Floats, start: int, stop: int, m: int
) -> Floats:
    """B' diag(weights) B over some rows of a matrix B stored by rows, columns ascending."""
    total = np.zeros((m, m))
    for i in range(start, stop):
        for a in range(pointer[i], pointer[i + 1]):
            scaled = weights[i] * data[a]
            row = total[columns[a]]
            for b in range(pointer[i], a + 1):
                row[columns[b]] += scaled * data[b]
    for a in range(m):
        for b in range(a):
            total[b, a] = total[a, b]
    return total


@kernel
def predict(
    data: Floats, columns: Ints, pointer: Ints, coef: Floats, out: Floats, start: int, stop: int
) -> None:
    """B coef for some rows of a matrix B stored by rows."""
    for i in range(start, stop):
        total = 0.0
        for entry in range(pointer[i], pointer[i + 1]):
            total += data[entry] * coef[columns[entry]]
        out[i] = total


@kernel
def with_column(
    data: Floats, columns: Ints, pointer: Ints, place: int, rows: Ints, values: Floats
) -> tuple[Floats, Ints, Ints]:
    """A matrix stored by rows with one more column, so that it becomes number `place`."""
    n = len(pointer) - 1
    wider, numbers = np.empty(len(data) + len(rows)), np.empty(len(data) + len(rows), columns.dtype)
    starts = np.empty_like(pointer)
    starts[0], filled, met = 0, 0, 0
    for i in range(n):
        entry = pointer[i]
        while entry < pointer[i + 1] and columns[entry] < place:
            wider[filled], numbers[filled] = data[entry], columns[entry]
            entry, filled = entry + 1, filled + 1
        if met < len(rows) and rows[met] == i:
            wider[filled], numbers[filled] = values[met], place
            met, filled = met + 1, filled + 1
        while entry < pointer[i + 1]:
            wider[filled], numbers[filled] = data[entry], columns[entry] + 1
            entry, filled = entry + 1, filled + 1
        starts[i + 1] = filled
    return wider, numbers, starts


@kernel
def without_column(
    data: Floats, columns: Ints, pointer: Ints, place: int
) -> tuple[Floats, Ints, Ints]:
    """A matrix stored by rows without its column number `place`."""
    narrower, numbers = np.empty_like(data), np.empty_like(columns)
    starts = np.empty_like(pointer)
    starts[0], filled = 0, 0
    for i in range(len(pointer) - 1):
        for entry in range(pointer[i], pointer[i + 1]):
            if columns[entry] != place:
                narrower[filled] = data[entry]
                numbers[filled] = columns[entry] - (columns[entry] > place)
                filled += 1
        starts[i + 1] = filled
    return narrower[:filled], numbers[:filled], starts


@kernel
def back_project(
    data: Floats, rows: Ints, pointer: Ints, residual: Floats, out: Floats, start: int, stop: int
) -> None:
    """B' residual for some columns of a matrix stored by columns."""
    for column in range(start, stop):
        total = 0.0
        for entry in range(pointer[column], pointer[column + 1]):
            total += residual[rows[entry]] * data[entry]
        out[column] = total
