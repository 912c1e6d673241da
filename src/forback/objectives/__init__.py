"""What can be minimised: every objective, ready for `forback.select`.

The names are loaded on first use: a linear model needs no chains, and nothing needs JAX but
`from_jax`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forback.core.lazy import lazily

if TYPE_CHECKING:
    from forback.objectives.chain.objective import ChainCRF
    from forback.objectives.function.api import from_function
    from forback.objectives.function.jax.api import from_jax
    from forback.objectives.function.objective import Function
    from forback.objectives.graph.objective import GaussianCovariance
    from forback.objectives.linear.losses import (
        Gamma,
        Huber,
        LogisticLoss,
        Loss,
        Poisson,
        Squared,
        SquaredHinge,
    )
    from forback.objectives.linear.objective import GLM
    from forback.objectives.linear.own_loss import PointwiseLoss
    from forback.objectives.linear.shorthands import LeastSquares, Logistic
    from forback.objectives.softmax.objective import Multinomial

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

_LOSSES = ("Gamma", "Huber", "LogisticLoss", "Loss", "Poisson", "Squared", "SquaredHinge")

__getattr__, __dir__ = lazily(
    __name__,
    {
        "ChainCRF": "forback.objectives.chain.objective",
        "Function": "forback.objectives.function.objective",
        "GLM": "forback.objectives.linear.objective",
        "GaussianCovariance": "forback.objectives.graph.objective",
        "LeastSquares": "forback.objectives.linear.shorthands",
        "Logistic": "forback.objectives.linear.shorthands",
        "Multinomial": "forback.objectives.softmax.objective",
        "PointwiseLoss": "forback.objectives.linear.own_loss",
        "from_function": "forback.objectives.function.api",
        "from_jax": "forback.objectives.function.jax.api",
        **dict.fromkeys(_LOSSES, "forback.objectives.linear.losses"),
    },
)
