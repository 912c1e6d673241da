"""Functions as somebody might write them, one list for every test that needs them."""

import numpy as np
from scipy.special import expit

from forback.objectives import GLM, Logistic, PointwiseLoss, from_function

#: What `from_function` may be told besides value and gradient.
EXTRAS = ("hessian", "hessian_vector", "value_many", "curvature")


class Ridged:
    """Mean logistic loss plus ridge, with every derivative; the intercept, if any, comes last."""

    def __init__(self, X, y, *, ridge=1e-2, fit_intercept=False):
        n, p = X.shape
        self.X = np.column_stack([X, np.ones(n)]) if fit_intercept else X
        self.y, self.p, self.dim = y, p, self.X.shape[1]
        self.ridge = np.r_[np.full(p, ridge), np.zeros(self.dim - p)]

    def __call__(self, beta):
        eta = self.X @ beta
        value = np.mean(np.logaddexp(0.0, eta) - self.y * eta) + 0.5 * self.ridge @ beta**2
        return value, self.X.T @ (expit(eta) - self.y) / len(eta) + self.ridge * beta

    def value_many(self, betas):
        return np.array([self(beta)[0] for beta in betas])

    def hessian(self, beta):
        mean = expit(self.X @ beta)
        weights = mean * (1 - mean) / len(mean)
        return self.X.T @ (weights[:, None] * self.X) + np.diag(self.ridge)

    def hessian_vector(self, beta, v):
        return self.hessian(beta) @ v

    @property
    def curvature(self):
        return self.ridge, self.ridge + 0.25 * np.mean(self.X**2, axis=0)

    def objective(self, *extras, **options):
        given = {name: getattr(self, name) for name in extras}
        return from_function(self, self.dim, n_candidates=self.p, **given, **options)

    def in_jax(self):
        """The same in jax.numpy."""
        import jax.numpy as jnp

        X, y, ridge = self.X, self.y, self.ridge

        def function(beta):
            eta = X @ beta
            return jnp.mean(jnp.logaddexp(0.0, eta) - y * eta) + 0.5 * jnp.sum(ridge * beta**2)

        return function


def logistic_value(eta, y):
    return np.logaddexp(0.0, eta) - y * eta


def logistic_slope(eta, y):
    return expit(eta) - y


def logistic_bend(eta, y):
    return expit(eta) * expit(-eta)


NUMPY_LOGISTIC = PointwiseLoss(logistic_value, logistic_slope, logistic_bend, domain="binary")


def every_logistic(X, y, ridge=1e-2, fit_intercept=False):
    """Name -> the same objective: natively, as a function, in JAX, as a loss of its own."""
    import jax.numpy as jnp

    from forback.objectives import from_jax

    def in_jax(eta, y):
        return jnp.logaddexp(0.0, eta) - y * eta

    written = Ridged(X, y, ridge=ridge, fit_intercept=fit_intercept)
    options = {"ridge": ridge, "fit_intercept": fit_intercept}
    return {
        "native": Logistic(X, y, **options),
        "gradient": written.objective(),
        "hessian": written.objective("hessian"),
        "products": written.objective("hessian_vector", "curvature"),
        "values": written.objective("value_many", "hessian"),
        "jax": from_jax(written.in_jax(), written.dim, n_candidates=written.p),
        "pointwise": GLM(NUMPY_LOGISTIC, X, y, **options),
        "pointwise in jax": GLM(PointwiseLoss(in_jax, domain="binary"), X, y, **options),
    }


def quadratic(H, c):
    """beta -> 1/2 beta'H beta - c'beta, and its gradient."""
    return lambda beta: (0.5 * beta @ H @ beta - c @ beta, H @ beta - c)


def steps(path):
    return [(step.action, step.feature, step.size) for step in path.steps]


def assert_optimal(objective, path, optimality=1e-6):
    """At every point of a path the gradient on its support is gone, and the value is Q."""
    before = np.abs(objective.value_and_gradient(path.points[0].dense(objective.dim))[1]).max()
    for point in path.points:
        value, gradient = objective.value_and_gradient(point.dense(objective.dim))
        assert abs(value - point.value) <= 1e-12 * max(1.0, abs(value))
        assert np.abs(gradient[point.support]).max(initial=0.0) <= optimality * before
