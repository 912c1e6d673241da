"""Matrices stored by rows: products, and columns that come and go."""

from __future__ import annotations

import numpy as np

from forback.core.types import Floats, Ints
from forback.solvers.kernels.compiled import kernel


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
    data: Floats,
    rows: Ints,
    pointer: Ints,
    residual: Floats,
    center: Floats | None,
    sum_of_residual: float,
    out: Floats,
    start: int,
    stop: int,
) -> None:
    """(B - center)' residual for some columns of a matrix stored by columns."""
    for column in range(start, stop):
        total, left = 0.0, sum_of_residual
        for entry in range(pointer[column], pointer[column + 1]):
            if center is None:
                total += residual[rows[entry]] * data[entry]
            else:
                total += residual[rows[entry]] * (data[entry] - center[column])
                left -= residual[rows[entry]]
        if center is not None and pointer[column + 1] - pointer[column] < len(residual):
            total -= left * center[column]
        out[column] = total
