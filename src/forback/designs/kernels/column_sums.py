"""Passes over a design: sums down every column at once.

The sums of a column x are x'residual, (x^2)'curvature and (|x|^3)'curvature, each a row of `sums`.
Without a curvature the first is all there is, and without a center nothing is taken off: what is
None is compiled to nothing at all.
"""

from __future__ import annotations

import numpy as np

from forback.core.types import Floats, Ints
from forback.solvers.kernels.compiled import kernel

#: Columns whose sums are kept in the nearest cache while rows stream by.
WIDTH = 1024


@kernel
def sums_by_rows(
    X: Floats,
    residual: Floats,
    curvature: Floats | None,
    center: Floats | None,
    sums: Floats,
    start: int,
    stop: int,
) -> None:
    """Write the sums of some columns of X - center, stored by rows, to `sums`, added up in double.

    Four rows at a time, so that each sum is loaded and stored a quarter as often.
    """
    n = X.shape[0]
    whole = n - n % 4
    bend = residual if curvature is None else curvature
    for first in range(start, stop, WIDTH):
        width = min(WIDTH, stop - first)
        own = np.zeros((3, width))  # of this thread: neighbours in `sums` share cache lines
        ones = own[0]
        twos = own[1]
        threes = own[2]
        for i in range(0, whole, 4):
            r0, r1, r2, r3 = residual[i], residual[i + 1], residual[i + 2], residual[i + 3]
            b0, b1, b2, b3 = bend[i], bend[i + 1], bend[i + 2], bend[i + 3]
            x0, x1 = X[i, first : first + width], X[i + 1, first : first + width]
            x2, x3 = X[i + 2, first : first + width], X[i + 3, first : first + width]
            for j in range(width):
                c = 0.0 if center is None else center[first + j]
                a0, a1, a2, a3 = x0[j] - c, x1[j] - c, x2[j] - c, x3[j] - c
                ones[j] += (r0 * a0 + r1 * a1) + (r2 * a2 + r3 * a3)
                if curvature is not None:
                    s0, s1, s2, s3 = b0 * a0 * a0, b1 * a1 * a1, b2 * a2 * a2, b3 * a3 * a3
                    twos[j] += (s0 + s1) + (s2 + s3)
                    threes[j] += (s0 * abs(a0) + s1 * abs(a1)) + (s2 * abs(a2) + s3 * abs(a3))
        for i in range(whole, n):
            for j in range(width):
                a = X[i, first + j] - (0.0 if center is None else center[first + j])
                ones[j] += residual[i] * a
                if curvature is not None:
                    twos[j] += curvature[i] * a * a
                    threes[j] += curvature[i] * a * a * abs(a)
        sums[:, first : first + width] = own


@kernel
def sums_by_columns(
    data: Floats,
    rows: Ints | None,
    pointer: Ints,
    residual: Floats,
    curvature: Floats | None,
    center: Floats | None,
    totals: tuple[float, float],
    sums: Floats,
    start: int,
    stop: int,
) -> None:
    """Write the sums of some columns, stored one after the other, to `sums`.

    Two sums each, so that an addition need not wait for the one before it. Without `rows` every row
    is stored. Others are zero, and minus the center once that is taken off: all of them together
    count by what is left of the `totals` of residual and curvature.
    """
    n = len(residual)
    bend = residual if curvature is None else curvature
    for column in range(start, stop):
        one = two = three = odd_one = odd_two = odd_three = 0.0
        residual_left, curvature_left = totals
        low = pointer[column]
        high = pointer[column + 1]
        c = 0.0 if center is None else center[column]
        even = low + (high - low) // 2 * 2
        for entry in range(low, even, 2):
            i = entry - low if rows is None else rows[entry]
            k = i + 1 if rows is None else rows[entry + 1]
            a = data[entry] - c
            b = data[entry + 1] - c
            residual_left -= residual[i] + residual[k]
            curvature_left -= bend[i] + bend[k]
            one += residual[i] * a
            odd_one += residual[k] * b
            square = bend[i] * a * a
            odd_square = bend[k] * b * b
            two += square
            odd_two += odd_square
            three += square * abs(a)
            odd_three += odd_square * abs(b)
        if even < high:
            i = even - low if rows is None else rows[even]
            a = data[even] - c
            residual_left -= residual[i]
            curvature_left -= bend[i]
            one += residual[i] * a
            two += bend[i] * a * a
            three += bend[i] * a * a * abs(a)
        if center is not None and rows is not None and high - low < n:
            one -= residual_left * c
            two += curvature_left * c * c
            three += curvature_left * c * c * abs(c)
        sums[0, column] = one + odd_one
        if curvature is not None:
            sums[1, column] = two + odd_two
            sums[2, column] = three + odd_three
