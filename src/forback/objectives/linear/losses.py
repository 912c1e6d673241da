"""Pointwise losses of (eta, y): value, first and second derivative in eta. They know no X.

Terms free of eta are dropped. Values may be infinite where a loss overflows; they are never NaN
for finite eta. `y` has been checked and, for two-class losses, turned into 0/1 before it gets here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, expit, gammaln

from forback.core.tolerances import NEGLIGIBLE
from forback.core.types import Floats
from forback.objectives.linear.kernels import losses as kernels
from forback.validation.scalars import check_number


class Loss(Protocol):
    """What a generalised linear model needs to know about its loss."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def domain(self) -> str:
        """Which y are allowed: "real", "nonnegative", "positive" or "binary"."""

    @property
    def link(self) -> str:
        """G in g(mean of y) = eta: "identity", "log" or "logit"."""

    @property
    def curvature(self) -> tuple[float, float]:
        """Lower and upper bound of the second derivative over all eta and y."""

    @property
    def newton_floor(self) -> float:
        """The least curvature for Newton's method, where a loss is flat or straight in parts."""

    @property
    def saturates(self) -> bool:
        """Whether the infimum may lie at infinite eta, as on separable data."""

    def value(self, eta: Floats, y: Floats) -> Floats:
        """The loss."""

    def d1(self, eta: Floats, y: Floats) -> Floats:
        """Its first derivative in eta."""

    def d2(self, eta: Floats, y: Floats) -> Floats:
        """Its second derivative in eta."""

    def mean(self, eta: Floats) -> Floats:
        """The expected y at eta: the inverse link."""

    def loglik(self, mean_loss: float, y: Floats, weights: Floats) -> float | None:
        """The log-likelihood per row at that mean loss, a free scale or shape at its best.

        Constants that no fit can change may be missing. None: the loss is not a likelihood.
        """


@dataclass(frozen=True)
class Squared:
    """(y - eta)^2 / 2: least squares."""

    name: ClassVar[str] = "squared"
    domain: ClassVar[str] = "real"
    link: ClassVar[str] = "identity"
    curvature: ClassVar[tuple[float, float]] = (1.0, 1.0)
    newton_floor: ClassVar[float] = 0.0
    saturates: ClassVar[bool] = False

    def value(self, eta: Floats, y: Floats) -> Floats:
        """(y - eta)^2 / 2."""
        return 0.5 * (eta - y) ** 2

    def d1(self, eta: Floats, y: Floats) -> Floats:
        """Eta - y."""
        return eta - y

    def d2(self, eta: Floats, y: Floats) -> Floats:
        """1."""
        return np.ones_like(eta)

    def mean(self, eta: Floats) -> Floats:
        """Eta."""
        return eta

    def loglik(self, mean_loss: float, y: Floats, weights: Floats) -> float | None:
        """Gaussian, at the best variance; perfect fits are all alike."""
        spread = float(weights @ (y - weights @ y) ** 2)
        return -0.5 * math.log(max(2.0 * mean_loss, NEGLIGIBLE * spread, 1e-300))


@dataclass(frozen=True)
class LogisticLoss:
    """log(1 + exp(-m)) with the margin m = (2y - 1) eta: minus the log-likelihood of 0/1 labels."""

    name: ClassVar[str] = "logistic"
    domain: ClassVar[str] = "binary"
    link: ClassVar[str] = "logit"
    curvature: ClassVar[tuple[float, float]] = (0.0, 0.25)
    newton_floor: ClassVar[float] = 0.0
    saturates: ClassVar[bool] = True

    # Written in the margin: 1 - expit(eta) would lose every digit where the fit is good.

    def value(self, eta: Floats, y: Floats) -> Floats:
        """log(1 + exp(-m))."""
        margin = (2 * y - 1) * eta
        return np.log1p(np.exp(-np.abs(margin))) + np.maximum(-margin, 0.0)

    def d1(self, eta: Floats, y: Floats) -> Floats:
        """Probability minus label."""
        sign = 2 * y - 1
        return np.asarray(-sign * expit(-sign * eta))

    def d2(self, eta: Floats, y: Floats) -> Floats:
        """P (1 - p)."""
        return np.asarray(expit(eta) * expit(-eta))

    def mean(self, eta: Floats) -> Floats:
        """The probability of label 1."""
        return np.asarray(expit(eta))

    def loglik(self, mean_loss: float, y: Floats, weights: Floats) -> float | None:
        """Bernoulli."""
        return -mean_loss


@dataclass(frozen=True)
class Poisson:
    """exp(eta) - y eta: counts with a log link."""

    name: ClassVar[str] = "poisson"
    domain: ClassVar[str] = "nonnegative"
    link: ClassVar[str] = "log"
    curvature: ClassVar[tuple[float, float]] = (0.0, math.inf)
    newton_floor: ClassVar[float] = 0.0
    saturates: ClassVar[bool] = True

    def value(self, eta: Floats, y: Floats) -> Floats:
        """exp(eta) - y eta."""
        return _exp(eta) - y * eta

    def d1(self, eta: Floats, y: Floats) -> Floats:
        """exp(eta) - y."""
        return _exp(eta) - y

    def d2(self, eta: Floats, y: Floats) -> Floats:
        """exp(eta)."""
        return _exp(eta)

    def mean(self, eta: Floats) -> Floats:
        """exp(eta)."""
        return _exp(eta)

    def loglik(self, mean_loss: float, y: Floats, weights: Floats) -> float | None:
        """Poisson, without log y!."""
        return -mean_loss


@dataclass(frozen=True)
class Gamma:
    """y exp(-eta) + eta: positive amounts with a log link."""

    name: ClassVar[str] = "gamma"
    domain: ClassVar[str] = "positive"
    link: ClassVar[str] = "log"
    curvature: ClassVar[tuple[float, float]] = (0.0, math.inf)
    newton_floor: ClassVar[float] = 0.0
    saturates: ClassVar[bool] = True

    def value(self, eta: Floats, y: Floats) -> Floats:
        """Y exp(-eta) + eta."""
        return y * _exp(-eta) + eta

    def d1(self, eta: Floats, y: Floats) -> Floats:
        """1 - y exp(-eta)."""
        return 1.0 - y * _exp(-eta)

    def d2(self, eta: Floats, y: Floats) -> Floats:
        """Y exp(-eta)."""
        return y * _exp(-eta)

    def mean(self, eta: Floats) -> Floats:
        """exp(eta)."""
        return _exp(eta)

    def loglik(self, mean_loss: float, y: Floats, weights: Floats) -> float | None:
        """Gamma, at the best shape."""
        # With shape v: v log v - log Gamma(v) - v c, where c = 1 + half the mean deviance.
        mean_log = float(weights @ np.log(y))
        c = min(max(mean_loss - mean_log, 1.0 + 1e-12), 1e6)
        # log v + 1 - digamma(v) falls from infinity to 1, so a root is bracketed by these ends.
        shape = brentq(lambda v: math.log(v) + 1.0 - digamma(v) - c, 1e-8, 1e13)
        return float(shape * math.log(shape) - gammaln(shape) - shape * c - mean_log)


@dataclass(frozen=True)
class Huber:
    """r^2 / 2 up to |r| = threshold, straight beyond, with r = y - eta.

    `threshold` is in the units of y: residuals beyond it count as outliers.
    """

    threshold: float = 1.35
    typical: float = 1.0  #: the size of y, which objectives fill in; no answer depends on it

    name: ClassVar[str] = "huber"
    domain: ClassVar[str] = "real"
    link: ClassVar[str] = "identity"
    curvature: ClassVar[tuple[float, float]] = (0.0, 1.0)
    saturates: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_number(self.threshold, "threshold", low=0.0, open_low=True)

    @property
    def newton_floor(self) -> float:
        """Such that a step on a straight stretch may go 1e7 times as far as y is large."""
        return 1e-7 * min(1.0, self.threshold / self.typical)

    def value(self, eta: Floats, y: Floats) -> Floats:
        """r^2 / 2 inside, threshold * (|r| - threshold / 2) outside."""
        inside = np.minimum(np.abs(eta - y), self.threshold)
        return inside * (np.abs(eta - y) - 0.5 * inside)

    def d1(self, eta: Floats, y: Floats) -> Floats:
        """The residual eta - y, clipped to the threshold."""
        return np.clip(eta - y, -self.threshold, self.threshold)

    def d2(self, eta: Floats, y: Floats) -> Floats:
        """1 inside, 0 outside."""
        return (np.abs(eta - y) <= self.threshold).astype(np.float64)

    def mean(self, eta: Floats) -> Floats:
        """Eta."""
        return eta

    def loglik(self, mean_loss: float, y: Floats, weights: Floats) -> float | None:
        """None: with a fixed threshold there is no scale to speak of."""
        return None


@dataclass(frozen=True)
class SquaredHinge:
    """max(0, 1 - m)^2 with the margin m = (2y - 1) eta: the smooth support vector machine."""

    name: ClassVar[str] = "squared_hinge"
    domain: ClassVar[str] = "binary"
    link: ClassVar[str] = "identity"
    curvature: ClassVar[tuple[float, float]] = (0.0, 2.0)
    newton_floor: ClassVar[float] = 2e-7
    saturates: ClassVar[bool] = False

    def value(self, eta: Floats, y: Floats) -> Floats:
        """max(0, 1 - m)^2."""
        return np.maximum(0.0, 1.0 - (2 * y - 1) * eta) ** 2

    def d1(self, eta: Floats, y: Floats) -> Floats:
        """-2 (2y - 1) max(0, 1 - m)."""
        sign = 2 * y - 1
        return -2.0 * sign * np.maximum(0.0, 1.0 - sign * eta)

    def d2(self, eta: Floats, y: Floats) -> Floats:
        """2 where the margin is below 1, else 0."""
        return np.where((2 * y - 1) * eta < 1.0, 2.0, 0.0)

    def mean(self, eta: Floats) -> Floats:
        """eta: the squared hinge has no probabilities."""
        return eta

    def loglik(self, mean_loss: float, y: Floats, weights: Floats) -> float | None:
        """None: the squared hinge is not a likelihood."""
        return None


#: Below this share of y a residual is rounding: no threshold of Huber's need be smaller.
RESOLVED = 1e-13

#: The losses by name.
LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (Squared(), LogisticLoss(), Poisson(), Gamma(), Huber(), SquaredHinge())
}


#: Losses with the least value 0, whatever y is.
NEVER_NEGATIVE = (Squared, LogisticLoss, Huber, SquaredHinge)

#: How kernels know the losses; a subclass may differ in anything, so it is not looked up.
_KINDS: dict[type, int] = {
    Squared: kernels.SQUARED,
    LogisticLoss: kernels.LOGISTIC,
    Poisson: kernels.POISSON,
    Gamma: kernels.GAMMA,
    Huber: kernels.HUBER,
    SquaredHinge: kernels.SQUARED_HINGE,
}


def code_of(loss: Loss) -> kernels.LossCode | None:
    """How kernels know the loss; None for somebody else's."""
    kind = _KINDS.get(type(loss))
    if kind is None:
        return None
    concordant = kind in (kernels.LOGISTIC, kernels.POISSON, kernels.GAMMA)
    return kernels.LossCode(
        kind, float(getattr(loss, "threshold", 0.0)), loss.newton_floor, concordant
    )


def _exp(eta: Floats) -> Floats:
    """Exp that overflows to infinity in silence: a line search steps back from it."""
    with np.errstate(over="ignore"):
        return np.exp(eta)
