"""A step of a fit: eta, loss, derivatives and gradient in one sweep over the rows."""

from __future__ import annotations

from typing import Any

from forback.core.types import Floats, Ints
from forback.designs.design import DenseColumns, SparseRows
from forback.objectives.linear.kernels import losses
from forback.objectives.linear.kernels.losses import LossCode
from forback.solvers.kernels.compiled import kernel
from forback.solvers.kernels.vectors import add_multiple, copy, dot


@kernel
def move_dense(
    code: LossCode,
    y: Floats,
    weights: Floats,
    base: Floats,
    columns: Floats,
    direction: Floats,
    eta: Floats,
    residual: Floats,
    curvature: Floats,
    gradient: Floats,
    start: int,
    stop: int,
) -> float:
    """The weighted loss of some rows at eta = base + B direction, B's columns stored as rows.

    Eta and the weighted derivatives are left in their arrays, B' residual is added to `gradient`.
    """
    total = 0.0
    for first in range(start, stop, losses.PIECE):
        last = min(first + losses.PIECE, stop)
        here = eta[first:last]
        copy(base[first:last], here)
        for a in range(len(direction)):
            if direction[a] != 0.0:
                add_multiple(direction[a], columns[a, first:last], here)
        total += losses.evaluate(
            code,
            here,
            y[first:last],
            weights[first:last],
            residual[first:last],
            curvature[first:last],
        )
        for a in range(len(direction)):
            gradient[a] += dot(columns[a, first:last], residual[first:last])
    return total


@kernel
def move_sparse(
    code: LossCode,
    y: Floats,
    weights: Floats,
    base: Floats,
    data: Floats,
    columns: Ints,
    pointer: Ints,
    direction: Floats,
    eta: Floats,
    residual: Floats,
    curvature: Floats,
    gradient: Floats,
    start: int,
    stop: int,
) -> float:
    """The weighted loss of some rows at eta = base + B direction, with B stored by rows.

    Eta and the weighted derivatives are left in their arrays, B' residual is added to `gradient`.
    """
    total = 0.0
    for first in range(start, stop, losses.PIECE):
        last = min(first + losses.PIECE, stop)
        for i in range(first, last):
            there = base[i]
            for entry in range(pointer[i], pointer[i + 1]):
                there += data[entry] * direction[columns[entry]]
            eta[i] = there
        total += losses.evaluate(
            code,
            eta[first:last],
            y[first:last],
            weights[first:last],
            residual[first:last],
            curvature[first:last],
        )
        for i in range(first, last):
            for entry in range(pointer[i], pointer[i + 1]):
                gradient[columns[entry]] += residual[i] * data[entry]
    return total


#: The sweep for each way to store a block.
MOVES: dict[type, Any] = {DenseColumns: move_dense, SparseRows: move_sparse}
