"""A step of a fit: eta, loss, derivatives and gradient in one sweep over the rows."""

from __future__ import annotations

from typing import Any

from forback.core.types import Floats, Ints
from forback.designs.design import DenseColumns, SparseRows
from forback.objectives.linear.kernels.losses import PIECE, Target, evaluate
from forback.objectives.linear.rows import Rows
from forback.solvers.kernels.compiled import kernel
from forback.solvers.kernels.vectors import add_multiple, copy, dot


@kernel
def move_dense(
    target: Target,
    base: Floats,
    columns: Floats,
    direction: Floats,
    rows: Rows,
    gradient: Floats,
    start: int,
    stop: int,
) -> float:
    """Return the weighted loss of some rows at eta = base + B direction, B's columns being rows.

    Eta and the weighted derivatives are left in `rows`, B' residual is added to `gradient`.
    """
    total = 0.0
    for first in range(start, stop, PIECE):
        last = min(first + PIECE, stop)
        eta = rows.eta[first:last]
        copy(base[first:last], eta)
        for a in range(len(direction)):
            if direction[a] != 0.0:
                add_multiple(direction[a], columns[a, first:last], eta)
        total += evaluate(target, rows, first, last)
        for a in range(len(direction)):
            gradient[a] += dot(columns[a, first:last], rows.residual[first:last])
    return total


@kernel
def move_sparse(
    target: Target,
    base: Floats,
    data: Floats,
    columns: Ints,
    pointer: Ints,
    direction: Floats,
    rows: Rows,
    gradient: Floats,
    start: int,
    stop: int,
) -> float:
    """Return the weighted loss of some rows at eta = base + B direction, with B stored by rows.

    Eta and the weighted derivatives are left in `rows`, B' residual is added to `gradient`.
    """
    total = 0.0
    for first in range(start, stop, PIECE):
        last = min(first + PIECE, stop)
        for i in range(first, last):
            eta = base[i]
            for entry in range(pointer[i], pointer[i + 1]):
                eta += data[entry] * direction[columns[entry]]
            rows.eta[i] = eta
        total += evaluate(target, rows, first, last)
        for i in range(first, last):
            for entry in range(pointer[i], pointer[i + 1]):
                gradient[columns[entry]] += rows.residual[i] * data[entry]
    return total


#: The sweep for each way to store a block.
MOVES: dict[type, Any] = {DenseColumns: move_dense, SparseRows: move_sparse}
