"""Plain formulas of the objectives on dense arrays, written apart from the library's."""

import numpy as np


def _logistic(eta, y):
    s = np.where(y > 0, 1.0, -1.0)
    value = np.logaddexp(0.0, -s * eta)
    p = 1.0 / (1.0 + np.exp(s * eta))
    return value, -s * p, p * (1 - p)


def _squared(eta, y):
    return (y - eta) ** 2 / 2, eta - y, np.ones_like(eta)


def _poisson(eta, y):
    return np.exp(eta) - y * eta, np.exp(eta) - y, np.exp(eta)


def _gamma(eta, y):
    return y / np.exp(eta) + eta, 1 - y / np.exp(eta), y / np.exp(eta)


def _huber(eta, y):
    r, t = eta - y, 1.35
    inside = np.abs(r) <= t
    value = np.where(inside, r**2 / 2, t * np.abs(r) - t**2 / 2)
    return value, np.where(inside, r, t * np.sign(r)), np.where(inside, 1.0, 1e-7)


def _squared_hinge(eta, y):
    s = np.where(y > 0, 1.0, -1.0)
    slack = np.maximum(0.0, 1 - s * eta)
    return slack**2, -2 * s * slack, np.where(slack > 0, 2.0, 2e-7)


FORMULAS = {
    "squared": _squared,
    "logistic": _logistic,
    "poisson": _poisson,
    "gamma": _gamma,
    "huber": _huber,
    "squared_hinge": _squared_hinge,
}


class DenseQ:
    """Q(beta) = weighted mean loss + ridge, on a dense X with the intercept column appended."""

    def __init__(self, loss, X, y, *, ridge=0.0, fit_intercept=False, offset=None, weights=None):
        X = np.asarray(X, dtype=float)
        n, p = X.shape
        self.X = np.column_stack([X, np.ones(n)]) if fit_intercept else X
        self.dim = self.X.shape[1]
        self.y = np.asarray(y, dtype=float)
        self.ridge = np.zeros(self.dim)
        self.ridge[:p] = ridge
        self.offset = np.zeros(n) if offset is None else offset
        weights = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
        self.w = weights / weights.sum()
        self.loss = FORMULAS[loss]
        self.real = loss in ("squared", "huber")
        self.unit = (self.w @ self.y or 1.0) if loss == "poisson" else 1.0

    def _parts(self, beta):
        with np.errstate(over="ignore", invalid="ignore"):
            return self.loss(self.X @ beta + self.offset, self.y)

    def value(self, beta):
        value = self.w @ self._parts(beta)[0] + 0.5 * self.ridge @ beta**2
        return value if np.isfinite(value) else np.inf

    def rounding(self, beta):
        """What it does to Q if every eta is off by 16 units in the last place of its terms."""
        size = np.abs(self.X).max(axis=0) @ np.abs(beta) + np.abs(self.offset).max()
        off = 16 * 2.0**-52 * size
        _, slopes, bends = self._parts(beta)
        return off * (self.w @ np.abs(slopes)) + 0.5 * off**2 * (self.w @ bends)

    def gradient(self, beta):
        return self.X.T @ (self.w * self._parts(beta)[1]) + self.ridge * beta

    def hessian(self, beta):
        return self.X.T @ ((self.w * self._parts(beta)[2])[:, None] * self.X) + np.diag(self.ridge)


class SoftmaxQ:
    """Q of a softmax regression; coordinate j * K + c is column j with class c."""

    real = False

    def __init__(self, X, y, n_classes, *, ridge=0.0, fit_intercept=False, sample_weight=None):
        X = np.asarray(X, dtype=float)
        n, p = X.shape
        self.X = np.column_stack([X, np.ones(n)]) if fit_intercept else X
        self.Y = np.eye(n_classes)[y]
        self.dim, self.n_candidates = self.X.shape[1] * n_classes, p * n_classes
        self.ridge = np.zeros(self.dim)
        self.ridge[: self.n_candidates] = np.repeat(np.broadcast_to(ridge, p), n_classes)
        weights = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        self.w = weights / weights.sum()
        self.unit = 1.0

    def _probabilities(self, beta):
        eta = self.X @ beta.reshape(self.X.shape[1], -1)
        largest = eta.max(axis=1, keepdims=True)
        parts = np.exp(eta - largest)
        sums = parts.sum(axis=1, keepdims=True)
        return parts / sums, (largest + np.log(sums))[:, 0] - (eta * self.Y).sum(axis=1)

    def value(self, beta):
        return self.w @ self._probabilities(beta)[1] + 0.5 * self.ridge @ beta**2

    def gradient(self, beta):
        P, _ = self._probabilities(beta)
        return (self.X.T @ (self.w[:, None] * (P - self.Y))).ravel() + self.ridge * beta

    def hessian(self, beta):
        P, _ = self._probabilities(beta)
        spread = P[:, :, None] * (np.eye(P.shape[1]) - P[:, None])
        bends = self.w[:, None, None] * spread
        total = np.einsum("ia,ib,icd->acbd", self.X, self.X, bends, optimize=True)
        return total.reshape(self.dim, self.dim) + np.diag(self.ridge)
