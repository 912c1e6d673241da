"""-log det Theta + tr(S Theta) + ridge, as a function of a few entries of Theta.

Entries come as pairs (i, j) with i <= j; theta_ij and theta_ji are one coordinate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from forback.core.types import Floats, Ints
from forback.objectives.graph.kernels.logdet import fill_curvature, mirror
from forback.solvers.newton import State

#: S has a unit diagonal here. Where a diagonal entry of Theta exceeds this, the variable is told by
#: its neighbours to all but a hundred millionth, and Q is taken to fall without end.
RUNAWAY = 1e8


class RunsAway(Exception):
    """Newton's method has left for infinity; `state` is where it was seen last."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state


@dataclass(frozen=True, slots=True)
class Inverse:
    """What is known of Theta at some place."""

    factor: Floats  #: C, lower triangular, with C C' = Theta
    W: Floats  #: the inverse of Theta


def invert(theta: Floats) -> tuple[float, Inverse | None]:
    """-log det and the inverse of a symmetric matrix; infinity where it is not positive definite.

    What is given is overwritten.
    """
    if len(theta) == 0:
        return 0.0, Inverse(theta, theta)
    # A transpose is in LAPACK's own order.
    factor, info = linalg.lapack.dpotrf(theta.T, lower=True, overwrite_a=True)
    if info != 0:
        return np.inf, None
    half, info = linalg.lapack.dpotri(factor, lower=True)
    W = half.T
    mirror(W)
    diagonal = factor.diagonal()
    if not (info == 0 and diagonal.min() > 0.0 and np.isfinite(W.diagonal()).all()):
        return np.inf, None
    return -2.0 * float(np.log(diagonal).sum()), Inverse(factor, W)


class Entries:
    """Q as a function of what the entries (i, j) add to the matrix `rest`, by default zero.

    One of the problems that `forback.numerics.newton` solves. S is on the scale of correlations.
    """

    saturates = has_corners = False

    #: Q is self-concordant: a step of length 1/4 in the norm of the Hessian stays in the domain,
    #: and the next is less than half as long. Values cannot always tell: where variables are
    #: nearly collinear, log det and trace are large numbers that cancel.
    certain = 0.5 * 0.25**2

    def __init__(
        self, i: Ints, j: Ints, S: Floats, ridge: Floats, rest: Floats | None = None
    ) -> None:
        self.i, self.j, self.S, self.ridge = i, j, S, ridge
        self._on_diagonal = i == j
        self.counts = np.where(self._on_diagonal, 1.0, 2.0)
        self._rest = np.zeros_like(S) if rest is None else rest
        self._held = self._rest[i, j]
        self._weights = self.counts * S[i, j]
        self._may_run_away = bool((ridge[~self._on_diagonal] == 0.0).any())

    def theta(self, coef: Floats) -> Floats:
        """The whole matrix."""
        theta, own = self._rest.copy(), self._held + coef
        theta[self.i, self.j] = own
        theta[self.j, self.i] = own
        return theta

    def at(self, coef: Floats) -> State:
        """Evaluate at `coef`."""
        logs, inverse = invert(self.theta(coef))
        if inverse is None:
            return State(coef, np.inf, np.full(len(coef), np.nan))
        pull = self.ridge * coef
        value = logs + float(coef @ (self._weights + 0.5 * pull))
        slopes = self._weights - self.counts * inverse.W[self.i, self.j] + pull
        return State(coef, value, slopes, inverse)

    def along(self, state: State, direction: Floats) -> State:
        """Evaluate one step from `state`."""
        return self.at(state.coef + direction)

    def hessian(self, state: State) -> Floats:
        """The second derivative; raises `RunsAway` where Theta has grown beyond all bounds."""
        if self.has_run_away(state):
            raise RunsAway(state)
        out = np.empty((len(self.i), len(self.i)))
        fill_curvature(self.i, self.j, state.cache.W, self.ridge, out)
        return out

    def has_run_away(self, state: State) -> bool:
        """Whether Q seems to have no minimiser."""
        return self._may_run_away and bool((state.coef[self._on_diagonal] > RUNAWAY).any())

    def square_root(self, state: State) -> tuple[Floats, Floats]:
        """A and z with ``A'A`` the Hessian and ``A'z`` the gradient.

        With W = L L', column a of A is L' E_a L, written out, and z is L^-1 S L^-T - 1.
        """
        q, C = len(self.S), np.tril(state.cache.factor)
        L = np.ascontiguousarray(linalg.solve_triangular(C, np.eye(q), lower=True).T)
        one, other = L[self.i], L[self.j]
        products = one[:, :, None] * other[:, None, :]
        products = np.where(
            self._on_diagonal[:, None, None], products, products + products.transpose(0, 2, 1)
        )
        A = products.reshape(len(self.i), q * q).T
        z = (C.T @ self.S @ C - np.eye(q)).ravel()
        root = np.sqrt(self.ridge)
        A, z = np.vstack([A, np.diag(root)]), np.concatenate([z, root * state.coef])
        # The rows are many; a triangle with the same products is all that is asked for.
        Q, R = linalg.qr(A, mode="economic")
        return R, Q.T @ z

    def noise(self, state: State) -> tuple[float, float]:
        """Tolerances are far above it."""
        return 0.0, 0.0

    def bends_alike(self, state: State, other: State) -> bool:
        """There are no corners."""
        return False

    def reach(self, direction: Floats) -> float:
        """No loss saturates here."""
        return 0.0
