"""-log det Theta + tr(S Theta) + ridge, as a function of a few entries of Theta.

Entries come as pairs (i, j) with i <= j; theta_ij and theta_ji are one coordinate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from forback.core.types import Floats, Ints
from forback.objectives.graph.kernels.curvature import fill_curvature, mirror
from forback.solvers.newton import Problem, State

#: S has a unit diagonal here. Where a diagonal entry of Theta exceeds this, the neighbours of the
#: variable predict all but 1e-8 of its variance, and Q is taken to be unbounded below.
MAX_UNIT_PRECISION = 1e8


class Diverged(Exception):
    """Newton's method has left for infinity; `state` is the last place it looked at."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state


@dataclass(frozen=True, slots=True)
class Inverse:
    """The factor and the inverse of Theta at some place.

    Attributes
    ----------
    factor : Floats
        C, lower triangular, with C C' = Theta.
    W : Floats
        The inverse of Theta.
    """

    factor: Floats
    W: Floats


def invert(theta: Floats) -> tuple[float, Inverse | None]:
    """Return -log det and the inverse of a symmetric matrix, which is overwritten.

    They are infinity and None where it is not positive definite.
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


class RestrictedLogDet(Problem):
    """Q as a function of what the entries (i, j) add to the matrix `rest`, by default zero.

    One of the problems that `forback.solvers.newton` solves. S is on the scale of correlations.
    """

    def __init__(
        self, i: Ints, j: Ints, S: Floats, ridge: Floats, rest: Floats | None = None
    ) -> None:
        self.i = i
        self.j = j
        self.S = S
        self.ridge = ridge
        self._on_diagonal = i == j
        self.counts = np.where(self._on_diagonal, 1.0, 2.0)
        self._rest = np.zeros_like(S) if rest is None else rest
        self._weights = self.counts * S[i, j]
        self._may_diverge = bool((ridge[~self._on_diagonal] == 0.0).any())

    @property
    def certain(self) -> float:
        """Return the gain of a step that is right whatever values say: Q is self-concordant.

        A step of length 1/4 in the norm of the Hessian stays in the domain, and the next is less
        than half as long. Values cannot always tell: where variables are nearly collinear, log det
        and trace are large numbers that cancel.
        """
        return 0.5 * 0.25**2

    def at(self, coef: Floats) -> State:
        """Evaluate at `coef`."""
        theta = self._rest.copy()
        theta[self.i, self.j] += coef
        theta[self.j, self.i] = theta[self.i, self.j]
        minus_log_det, inverse = invert(theta)
        if inverse is None:
            return State(coef, np.inf, np.full(len(coef), np.nan))
        penalised = self.ridge * coef
        value = minus_log_det + float(coef @ (self._weights + 0.5 * penalised))
        gradient = self._weights - self.counts * inverse.W[self.i, self.j] + penalised
        return State(coef, value, gradient, inverse)

    def hessian(self, state: State) -> Floats:
        """Return the second derivative; raises `Diverged` where Theta has grown beyond bounds."""
        if self._may_diverge and (state.coef[self._on_diagonal] > MAX_UNIT_PRECISION).any():
            raise Diverged(state)
        out = np.empty((len(self.i), len(self.i)))
        fill_curvature(self.i, self.j, state.cache.W, self.ridge, out)
        return out

    def square_root(self, state: State) -> tuple[Floats, Floats]:
        """Return A and z with ``A'A`` the Hessian and ``A'z`` the gradient.

        With W = L L', column a of A is L' E_a L, written out, and z is L^-1 S L^-T - 1.
        """
        identity = np.eye(len(self.S))
        C = np.tril(state.cache.factor)
        L = np.ascontiguousarray(linalg.solve_triangular(C, identity, lower=True).T)
        products = L[self.i][:, :, None] * L[self.j][:, None, :]
        products[~self._on_diagonal] += products[~self._on_diagonal].transpose(0, 2, 1)
        root = np.sqrt(self.ridge)
        A = np.vstack([products.reshape(len(self.i), -1).T, np.diag(root)])
        z = np.concatenate([(C.T @ self.S @ C - identity).ravel(), root * state.coef])
        # The rows are many; a triangle with the same products is all that is asked for.
        Q, R = linalg.qr(A, mode="economic")
        return R, Q.T @ z
