"""Gaussian covariance selection by NumPy's own determinants and inverses, entry by entry.

Coordinates are ordered as in the library, edges first, then the diagonal; the diagonal is counted
from its minimiser without edges, so that a vector of zeros is in the domain.
"""

from itertools import combinations

import numpy as np


def _is_inside(theta):
    """Positive definite, and not just by rounding: there, an inverse is anything."""
    spectrum = np.linalg.eigvalsh(theta)
    return spectrum[0] > 1e-12 * spectrum[-1]


class CovarianceQ:
    real = False

    def __init__(self, S, ridge=0.0):
        self.S = np.asarray(S, dtype=float)
        p = len(self.S)
        self.pairs = [*combinations(range(p), 2), *((i, i) for i in range(p))]
        self.dim = len(self.pairs)
        self.ridge = np.array([0.0 if i == j else ridge for i, j in self.pairs])
        self.unit = 1.0
        self.basis = np.zeros((self.dim, p, p))
        for a, (i, j) in enumerate(self.pairs):
            self.basis[a, i, j] = self.basis[a, j, i] = 1.0

    def theta(self, beta):
        return np.diag(1 / np.diag(self.S)) + np.tensordot(beta, self.basis, 1)

    def coordinates(self, theta):
        shift = theta - np.diag(1 / np.diag(self.S))
        return np.array([shift[i, j] for i, j in self.pairs])

    def value(self, beta):
        theta = self.theta(beta)
        if not _is_inside(theta):
            return np.inf
        fit = -np.linalg.slogdet(theta)[1] + np.trace(self.S @ theta)
        return fit + 0.5 * self.ridge @ beta**2

    def gradient(self, beta):
        theta = self.theta(beta)
        if not _is_inside(theta):
            return 1e100 * np.sign(beta)  # back to where it came from
        slopes = np.einsum("aij,ij->a", self.basis, self.S - np.linalg.inv(theta))
        return slopes + self.ridge * beta

    def hessian(self, beta):
        W = np.linalg.inv(self.theta(beta))
        moved = np.einsum("ij,ajk->aik", W, self.basis)
        return np.einsum("aij,bji->ab", moved, moved) + np.diag(self.ridge)
