"""What can be minimised: every objective, ready for `forback.select`."""

from forback.objectives.autodiff import from_jax
from forback.objectives.covariance import GaussianCovariance
from forback.objectives.crf import ChainCRF
from forback.objectives.function import Function, from_function
from forback.objectives.linear import GLM
from forback.objectives.logistic import Logistic
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
from forback.objectives.pointwise import PointwiseLoss
from forback.objectives.quadratic import LeastSquares

__all__ = [
    "GLM",
    "ChainCRF",
    "Function",
    "Gamma",
    "GaussianCovariance",
    "Huber",
    "LeastSquares",
    "Logistic",
    "LogisticLoss",
    "Loss",
    "Multinomial",
    "PointwiseLoss",
    "Poisson",
    "Squared",
    "SquaredHinge",
    "from_function",
    "from_jax",
]
