"""Newton's method on somebody's own function, where its second derivative is given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forback.core.types import Floats, Ints
from forback.objectives.function.oracles import Oracle, Watched
from forback.solvers.newton import State


@dataclass(frozen=True)
class Curved:
    """A function of some coordinates: one of the problems `forback.numerics.newton` solves."""

    oracle: Oracle
    support: Ints
    evaluate: Watched

    saturates = has_corners = False
    certain = 0.0

    def at(self, coef: Floats) -> State:
        """Value and gradient."""
        return State(coef, *self.evaluate(coef))

    def along(self, state: State, direction: Floats) -> State:
        """Value and gradient one step from `state`."""
        return self.at(state.coef + direction)

    def hessian(self, state: State) -> Floats:
        """The second derivative."""
        found = self.oracle.hessian(state.dense(self.support, self.oracle.dim), self.support)
        assert found is not None  # whoever asks has seen it before
        return found

    def square_root(self, state: State) -> tuple[Floats, Floats]:
        """A and z with ``A'A`` the Hessian and ``A'z`` the gradient, where that bends at all."""
        hessian = self.hessian(state)
        bends, ways = np.linalg.eigh(0.5 * (hessian + hessian.T))
        root = np.sqrt(np.maximum(bends, 0.0))
        turned = ways.T @ state.gradient
        z = np.divide(turned, root, out=np.zeros_like(root), where=root > 0.0)
        return root[:, None] * ways.T, z

    def noise(self, state: State) -> tuple[float, float]:
        """Nothing is known of it."""
        return 0.0, 0.0

    def bends_alike(self, state: State, other: State) -> bool:
        """There are no corners."""
        return False

    def reach(self, direction: Floats) -> float:
        """Nothing is known of a prediction."""
        return 0.0
