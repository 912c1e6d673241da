"""Pointwise losses of (eta, y): value, first and second derivative in eta. They know no X.

Terms free of eta are dropped. Values may be infinite where a loss overflows; they are never NaN
for finite eta. `y` has been checked and, for two-class losses, turned into 0/1 before it gets here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, expit, gammaln

from forback.core.tolerances import NEGLIGIBLE
from forback.core.types import Floats
from forback.objectives.linear.kernels import losses as kernels
from forback.validation.scalars import check_number


def _exp(eta: Floats) -> Floats:
    """The exponential, silently infinite where it overflows: a line search steps back from it."""
    with np.errstate(over="ignore"):
        return np.exp(eta)


#: From eta to the expected y, by the name of the link.
LINKS: dict[str, Callable[[Floats], Floats]] = {
    "identity": lambda eta: eta,
    "log": _exp,
    "logit": lambda eta: np.asarray(expit(eta)),
}


class Loss(Protocol):
    """What a generalised linear model needs to know about its loss.

    A class that names this one as its base takes over what is said here about a loss of eta itself
    that is no likelihood.
    """

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def domain(self) -> str:
        """Which y are allowed: "real", "nonnegative", "positive" or "binary"."""

    @property
    def link(self) -> str:
        """The link g, with g(E[y]) = eta: "identity", "log" or "logit"."""
        return "identity"

    @property
    def curvature(self) -> tuple[float, float]:
        """Lower and upper bound of the second derivative over all eta and y."""
        return 0.0, math.inf

    @property
    def newton_floor(self) -> float:
        """The least curvature for Newton's method, where a loss is flat or straight in parts."""
        return 0.0

    @property
    def saturates(self) -> bool:
        """Whether the infimum may lie at infinite eta, as on separable data."""
        return False

    def value(self, eta: Floats, y: Floats) -> Floats:
        """Return the loss of each row.

        Parameters
        ----------
        eta : float array
            Linear predictors.
        y : float array
            Responses, of the same shape.

        Returns
        -------
        float array
        """

    def d1(self, eta: Floats, y: Floats) -> Floats:
        """Return the first derivative in eta, of each row."""

    def d2(self, eta: Floats, y: Floats) -> Floats:
        """Return the second derivative in eta, of each row."""

    def mean(self, eta: Floats) -> Floats:
        """Return the expected y at eta: the inverse link."""
        return LINKS[self.link](eta)

    def loglik(self, mean_loss: float, y: Floats, weights: Floats) -> float | None:
        """Return the log-likelihood per row, a free scale or shape at its best.

        Parameters
        ----------
        mean_loss : float
            The weighted mean of the loss.
        y, weights : float arrays
            Responses, and weights that add up to 1.

        Returns
        -------
        float or None
            Constants that no fit can change may be missing. None: the loss is not a likelihood.
        """
        return None


@dataclass(frozen=True)
class Squared(Loss):
    """(y - eta)^2 / 2: least squares."""

    name = "squared"
    domain = "real"
    curvature = (1.0, 1.0)

    def value(self, eta: Floats, y: Floats) -> Floats:
        """Return (y - eta)^2 / 2."""
        return 0.5 * (eta - y) ** 2

    def d1(self, eta: Floats, y: Floats) -> Floats:
        """Return the residual eta - y."""
        return eta - y

    def d2(self, eta: Floats, y: Floats) -> Floats:
        """Return 1."""
        return np.ones_like(eta)

    def loglik(self, mean_loss: float, y: Floats, weights: Floats) -> float | None:
        """Return the Gaussian log-likelihood at the best variance; perfect fits are all alike."""
        spread = float(weights @ (y - weights @ y) ** 2)
        return -0.5 * math.log(max(2.0 * mean_loss, NEGLIGIBLE * spread, 1e-300))


@dataclass(frozen=True)
class LogisticLoss(Loss):
    """log(1 + exp(-m)) with the margin m = (2y - 1) eta: minus the log-likelihood of 0/1 labels."""

    name = "logistic"
    domain = "binary"
    link = "logit"
    curvature = (0.0, 0.25)
    saturates = True

    # Written in the margin: 1 - expit(eta) would lose every digit where the fit is good.

    def value(self, eta: Floats, y: Floats) -> Floats:
        """Return log(1 + exp(-m))."""
        margin = (2 * y - 1) * eta
        return np.log1p(np.exp(-np.abs(margin))) + np.maximum(-margin, 0.0)

    def d1(self, eta: Floats, y: Floats) -> Floats:
        """Return probability minus label."""
        sign = 2 * y - 1
        return np.asarray(-sign * expit(-sign * eta))

    def d2(self, eta: Floats, y: Floats) -> Floats:
        """Return p (1 - p)."""
        return np.asarray(expit(eta) * expit(-eta))

    def loglik(self, mean_loss: float, y: Floats, weights: Floats) -> float | None:
        """Return the log-likelihood of Bernoulli labels."""
        return -mean_loss


@dataclass(frozen=True)
class Poisson(Loss):
    """exp(eta) - y eta: counts with a log link."""

    name = "poisson"
    domain = "nonnegative"
    link = "log"
    saturates = True

    def value(self, eta: Floats, y: Floats) -> Floats:
        """Return exp(eta) - y eta."""
        return _exp(eta) - y * eta

    def d1(self, eta: Floats, y: Floats) -> Floats:
        """Return exp(eta) - y."""
        return _exp(eta) - y

    def d2(self, eta: Floats, y: Floats) -> Floats:
        """Return exp(eta)."""
        return _exp(eta)

    def loglik(self, mean_loss: float, y: Floats, weights: Floats) -> float | None:
        """Return the log-likelihood of Poisson counts, without log y!."""
        return -mean_loss


@dataclass(frozen=True)
class Gamma(Loss):
    """y exp(-eta) + eta: positive amounts with a log link."""

    name = "gamma"
    domain = "positive"
    link = "log"
    saturates = True

    def value(self, eta: Floats, y: Floats) -> Floats:
        """Return y exp(-eta) + eta."""
        return y * _exp(-eta) + eta

    def d1(self, eta: Floats, y: Floats) -> Floats:
        """Return 1 - y exp(-eta)."""
        return 1.0 - y * _exp(-eta)

    def d2(self, eta: Floats, y: Floats) -> Floats:
        """Return y exp(-eta)."""
        return y * _exp(-eta)

    def loglik(self, mean_loss: float, y: Floats, weights: Floats) -> float | None:
        """Return the log-likelihood of gamma amounts at the best shape."""
        # With shape v: v log v - log Gamma(v) - v c, where c = 1 + half the mean deviance.
        mean_log = float(weights @ np.log(y))
        c = min(max(mean_loss - mean_log, 1.0 + 1e-12), 1e6)
        # log v + 1 - digamma(v) falls from infinity to 1, so a root is bracketed by these ends.
        shape = brentq(lambda v: math.log(v) + 1.0 - digamma(v) - c, 1e-8, 1e13)
        return float(shape * math.log(shape) - gammaln(shape) - shape * c - mean_log)


@dataclass(frozen=True)
class Huber(Loss):
    """r^2 / 2 up to |r| = threshold, linear beyond, with r = y - eta.

    `threshold` is in the units of y: residuals beyond it count as outliers. Since it is fixed there
    is no scale to speak of, and no likelihood.

    Attributes
    ----------
    threshold : float
    typical : float
        The size of y, which objectives fill in; no answer depends on it.
    """

    threshold: float = 1.35
    typical: float = 1.0

    name = "huber"
    domain = "real"
    curvature = (0.0, 1.0)

    def __post_init__(self) -> None:
        check_number(self.threshold, "threshold", low=0.0, open_low=True)

    @property
    def newton_floor(self) -> float:
        """Curvature with which a step on a straight part goes at most 1e7 times the size of y."""
        return 1e-7 * min(1.0, self.threshold / self.typical)

    def value(self, eta: Floats, y: Floats) -> Floats:
        """Return r^2 / 2 inside, threshold * (|r| - threshold / 2) outside."""
        inside = np.minimum(np.abs(eta - y), self.threshold)
        return inside * (np.abs(eta - y) - 0.5 * inside)

    def d1(self, eta: Floats, y: Floats) -> Floats:
        """Return the residual eta - y, clipped to the threshold."""
        return np.clip(eta - y, -self.threshold, self.threshold)

    def d2(self, eta: Floats, y: Floats) -> Floats:
        """Return 1 inside, 0 outside."""
        return (np.abs(eta - y) <= self.threshold).astype(np.float64)


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """max(0, 1 - m)^2 with the margin m = (2y - 1) eta: the smooth support vector machine."""

    name = "squared_hinge"
    domain = "binary"
    curvature = (0.0, 2.0)
    newton_floor = 2e-7

    def value(self, eta: Floats, y: Floats) -> Floats:
        """Return max(0, 1 - m)^2."""
        return np.maximum(0.0, 1.0 - (2 * y - 1) * eta) ** 2

    def d1(self, eta: Floats, y: Floats) -> Floats:
        """Return -2 (2y - 1) max(0, 1 - m)."""
        sign = 2 * y - 1
        return -2.0 * sign * np.maximum(0.0, 1.0 - sign * eta)

    def d2(self, eta: Floats, y: Floats) -> Floats:
        """Return 2 where the margin is below 1, else 0."""
        return np.where((2 * y - 1) * eta < 1.0, 2.0, 0.0)


#: Below this fraction of y a residual is rounding: no threshold of Huber's need be smaller.
RESOLVED = 1e-13

#: The losses by name.
LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (Squared(), LogisticLoss(), Poisson(), Gamma(), Huber(), SquaredHinge())
}


#: Losses with the least value 0, whatever y is.
NEVER_NEGATIVE = (Squared, LogisticLoss, Huber, SquaredHinge)

#: How kernels know the losses; a subclass may differ in anything, so it is not looked up.
_KINDS = {type(LOSSES[name]): kind for kind, name in enumerate(kernels.KNOWN_LOSSES)}


def code_of(loss: Loss) -> kernels.LossCode | None:
    """Return how kernels know the loss; None for one of your own."""
    kind = _KINDS.get(type(loss))
    if kind is None:
        return None
    concordant = kind in (kernels.LOGISTIC, kernels.POISSON, kernels.GAMMA)
    threshold = float(loss.threshold) if isinstance(loss, Huber) else 0.0
    return kernels.LossCode(kind, threshold, loss.newton_floor, concordant)
