"""What can be minimised: every objective, ready for `forback.select`."""

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
from forback.objectives.multinomial import Multinomial
from forback.objectives.quadratic import LeastSquares

__all__ = [
    "GLM",
    "ChainCRF",
    "Gamma",
    "Huber",
    "LeastSquares",
    "Logistic",
    "LogisticLoss",
    "Loss",
    "Multinomial",
    "Poisson",
    "Squared",
    "SquaredHinge",
]
