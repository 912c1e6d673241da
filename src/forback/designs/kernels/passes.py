"""Passes over a design: sums down every column at once."""

from __future__ import annotations

import numpy as np

from forback.core.types import Floats, Ints
from forback.solvers.kernels.compiled import kernel

#: Columns whose sums are kept in the nearest cache while rows stream by.
WIDTH = 1024


@kernel
def back_project_rows(
    X: Floats, residual: Floats, center: Floats | None, slopes: Floats, start: int, stop: int
) -> None:
    """(X - center)' residual for some columns of a matrix stored by rows, added up in double.

    Four rows at a time, so that each sum is loaded and stored a quarter as often. A center of None
    is compiled to nothing at all.
    """
    n = X.shape[0]
    whole = n - n % 4
    sums = np.empty(WIDTH)
    for first in range(start, stop, WIDTH):
        width = min(WIDTH, stop - first)
        sums[:] = 0.0
        for i in range(0, whole, 4):
            r0, r1, r2, r3 = residual[i], residual[i + 1], residual[i + 2], residual[i + 3]
            x0, x1 = X[i, first : first + width], X[i + 1, first : first + width]
            x2, x3 = X[i + 2, first : first + width], X[i + 3, first : first + width]
            for j in range(width):
                if center is None:
                    sums[j] += (r0 * x0[j] + r1 * x1[j]) + (r2 * x2[j] + r3 * x3[j])
                else:
                    c = center[first + j]
                    sums[j] += (r0 * (x0[j] - c) + r1 * (x1[j] - c)) + (
                        r2 * (x2[j] - c) + r3 * (x3[j] - c)
                    )
        for i in range(whole, n):
            for j in range(width):
                if center is None:
                    sums[j] += residual[i] * X[i, first + j]
                else:
                    sums[j] += residual[i] * (X[i, first + j] - center[first + j])
        slopes[first : first + width] = sums[:width]


@kernel
def three_sums_rows(
    X: Floats,
    residual: Floats,
    curvature: Floats,
    center: Floats | None,
    slopes: Floats,
    squares: Floats,
    cubes: Floats,
    start: int,
    stop: int,
) -> None:
    """X' residual, (X^2)' curvature and (|X|^3)' curvature for columns of a matrix stored by rows.

    With a center, for X - center.
    """
    n = X.shape[0]
    whole = n - n % 4
    ones = np.empty(WIDTH)
    twos = np.empty(WIDTH)
    threes = np.empty(WIDTH)
    for first in range(start, stop, WIDTH):
        width = min(WIDTH, stop - first)
        ones[:] = 0.0
        twos[:] = 0.0
        threes[:] = 0.0
        for i in range(0, whole, 4):
            r0, r1, r2, r3 = residual[i], residual[i + 1], residual[i + 2], residual[i + 3]
            b0, b1, b2, b3 = curvature[i], curvature[i + 1], curvature[i + 2], curvature[i + 3]
            x0, x1 = X[i, first : first + width], X[i + 1, first : first + width]
            x2, x3 = X[i + 2, first : first + width], X[i + 3, first : first + width]
            for j in range(width):
                c = 0.0 if center is None else center[first + j]
                a0, a1, a2, a3 = x0[j] - c, x1[j] - c, x2[j] - c, x3[j] - c
                ones[j] += (r0 * a0 + r1 * a1) + (r2 * a2 + r3 * a3)
                s0, s1, s2, s3 = b0 * a0 * a0, b1 * a1 * a1, b2 * a2 * a2, b3 * a3 * a3
                twos[j] += (s0 + s1) + (s2 + s3)
                threes[j] += (s0 * abs(a0) + s1 * abs(a1)) + (s2 * abs(a2) + s3 * abs(a3))
        for i in range(whole, n):
            for j in range(width):
                a = X[i, first + j] - (0.0 if center is None else center[first + j])
                ones[j] += residual[i] * a
                twos[j] += curvature[i] * a * a
                threes[j] += curvature[i] * a * a * abs(a)
        slopes[first : first + width] = ones[:width]
        squares[first : first + width] = twos[:width]
        cubes[first : first + width] = threes[:width]


@kernel
def three_sums_columns(
    data: Floats,
    rows: Ints,
    pointer: Ints,
    aligned: bool,
    residual: Floats,
    curvature: Floats,
    center: Floats | None,
    totals: tuple[float, float],
    slopes: Floats,
    squares: Floats,
    cubes: Floats,
    start: int,
    stop: int,
) -> None:
    """The three sums for columns stored one after the other; `aligned`: every row is stored.

    Two sums each, so that an addition need not wait for the one before it. Rows that are not stored
    are zero, and minus the center once that is taken off: all of them together count by what is
    left of the `totals` of residual and curvature.
    """
    n = len(residual)
    for column in range(start, stop):
        one = two = three = odd_one = odd_two = odd_three = 0.0
        residual_left, curvature_left = totals
        low = pointer[column]
        high = pointer[column + 1]
        c = 0.0 if center is None else center[column]
        even = low + (high - low) // 2 * 2
        for entry in range(low, even, 2):
            i = entry - low if aligned else rows[entry]
            k = i + 1 if aligned else rows[entry + 1]
            a = data[entry] - c
            b = data[entry + 1] - c
            if center is not None and not aligned:
                residual_left -= residual[i] + residual[k]
                curvature_left -= curvature[i] + curvature[k]
            one += residual[i] * a
            odd_one += residual[k] * b
            square = curvature[i] * a * a
            odd_square = curvature[k] * b * b
            two += square
            odd_two += odd_square
            three += square * abs(a)
            odd_three += odd_square * abs(b)
        if even < high:
            i = even - low if aligned else rows[even]
            a = data[even] - c
            residual_left -= residual[i]
            curvature_left -= curvature[i]
            one += residual[i] * a
            two += curvature[i] * a * a
            three += curvature[i] * a * a * abs(a)
        if center is not None and not aligned and high - low < n:
            one -= residual_left * c
            two += curvature_left * c * c
            three += curvature_left * c * c * abs(c)
        slopes[column] = one + odd_one
        squares[column] = two + odd_two
        cubes[column] = three + odd_three
