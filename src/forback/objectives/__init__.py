"""What can be minimised: every objective, ready for `forback.select`."""

from forback.objectives.covariance import GaussianCovariance
from forback.objectives.crf import ChainCRF
from forback.objectives.linear import GLM, Logistic
from forback.objectives.losses import (
    Gamma,
    Huber,
    LogisticLoss,
    Loss,
    Poisson,
    Squared,
    SquaredHinge,
)
from forback.objectives.quadratic import LeastSquares

__all__ = [
    "GLM",
    "ChainCRF",
    "Gamma",
    "GaussianCovariance",
    "Huber",
    "LeastSquares",
    "Logistic",
    "LogisticLoss",
    "Loss",
    "Poisson",
    "Squared",
    "SquaredHinge",
]
