"""Loops over vectors, for kernels. Array expressions do the same but take long to compile."""

from __future__ import annotations

import numpy as np

from forback.core.types import Floats, Ints
from forback.solvers.kernels.compiled import kernel


@kernel
def dot(a: Floats, b: Floats) -> float:
    """Return the sum of a * b.

    Four sums at a time, so that an addition need not wait for the one before.
    """
    s0 = s1 = s2 = s3 = 0.0
    whole = len(a) - len(a) % 4
    for i in range(0, whole, 4):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
    for i in range(whole, len(a)):
        s0 += a[i] * b[i]
    return (s0 + s1) + (s2 + s3)


@kernel
def sum_of_sizes(a: Floats) -> float:
    """Return the sum of |a|, by four sums as in `dot`."""
    s0 = s1 = s2 = s3 = 0.0
    whole = len(a) - len(a) % 4
    for i in range(0, whole, 4):
        s0 += abs(a[i])
        s1 += abs(a[i + 1])
        s2 += abs(a[i + 2])
        s3 += abs(a[i + 3])
    for i in range(whole, len(a)):
        s0 += abs(a[i])
    return (s0 + s1) + (s2 + s3)


@kernel
def dot_of_sizes(a: Floats, b: Floats) -> float:
    """Return the sum of |a * b|."""
    total = 0.0
    for i in range(len(a)):
        total += abs(a[i] * b[i])
    return total


@kernel
def add_multiple(factor: float, a: Floats, out: Floats) -> None:
    """Add factor * a to `out`."""
    for i in range(len(out)):
        out[i] += factor * a[i]


@kernel
def copy(a: Floats, out: Floats) -> None:
    """Copy a to `out`."""
    for i in range(len(out)):
        out[i] = a[i]


@kernel
def largest(a: Floats) -> float:
    """Return the largest absolute entry."""
    most = 0.0
    for i in range(len(a)):
        most = max(most, abs(a[i]))
    return most


@kernel
def overlap(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Return where the numbers that two ascending vectors share are in the first and the second."""
    places = np.empty((2, min(len(left), len(right))), np.intp)
    count = a = b = 0
    while a < len(left) and b < len(right):
        if left[a] == right[b]:
            places[0, count] = a
            places[1, count] = b
            count += 1
        step = left[a] <= right[b]
        b += left[a] >= right[b]
        a += step
    return places[0, :count], places[1, :count]
