"""PointwiseLoss: a loss of your own of a prediction and a response, for `GLM`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from forback.core.objective import ObjectiveError
from forback.core.types import Floats
from forback.objectives.function.jax.api import Derivative
from forback.objectives.linear.losses import LINKS
from forback.validation.scalars import check_choice, check_flag

#: Where a loss is looked at when it is made: predictions, and responses by domain.
ETA = np.array([-1.7, -0.6, 0.3, 1.1])
RESPONSES = {
    "real": [-1.3, 0.0, 0.4, 2.2],
    "nonnegative": [0.0, 1.0, 2.0, 5.0],
    "positive": [0.2, 1.0, 1.7, 4.0],
    "binary": [0.0, 1.0, 0.0, 1.0],
}


@dataclass(frozen=True, repr=False)
class PointwiseLoss:
    """A loss of (eta, y), row by row, from a function of yours: ``GLM(PointwiseLoss(f), X, y)``.

    Parameters
    ----------
    value : callable
        ``value(eta, y)``, for arrays of any one shape: the loss of each entry. It must be convex
        and smooth in eta; where eta is not allowed it may be infinite.
    d1, d2 : callable, optional
        Its first and second derivative in eta; NaN where it is infinite. Without them, `value`
        must be written in jax.numpy and JAX works them out (``pip install "forback[jax]"``).
    name : str, optional
        What error messages call it; the name of the function by default.
    domain : {"real", "nonnegative", "positive", "binary"}
        Which y are allowed; a binary y arrives as 0 and 1.
    link : {"identity", "log", "logit"}
        g in g(mean of y) = eta, for `predict` of the estimators.
    curvature : pair of float
        Bounds of d2 over all eta and y.
    flat : bool, optional
        Whether d2 may be zero somewhere, as where a robust loss is linear; Newton's method then
        lifts it a little. By default a few places are looked at.
    saturates : bool, optional
        Whether the loss can approach its infimum for ever, as the logistic loss does; by default
        that is assumed for any y but a real one.
    likelihood : bool
        Whether the loss is minus a log-likelihood, so that information criteria make sense. If not,
        estimators need an explicit `k`.

    Examples
    --------
    >>> import numpy as np
    >>> from forback import select
    >>> from forback.objectives import GLM, PointwiseLoss
    >>> log_cosh = PointwiseLoss(
    ...     lambda eta, y: np.logaddexp(eta - y, y - eta),
    ...     lambda eta, y: np.tanh(eta - y),
    ...     lambda eta, y: 1 - np.tanh(eta - y) ** 2,
    ...     name="log-cosh",
    ... )
    >>> X = np.random.default_rng(0).normal(size=(200, 10))
    >>> y = X[:, 4] + np.random.default_rng(1).standard_cauchy(200)
    >>> select(GLM(log_cosh, X, y), k=1)[1].support.tolist()
    [4]
    """

    value: Callable[[Floats, Floats], Any]
    d1: Callable[[Floats, Floats], Any] | None = None
    d2: Callable[[Floats, Floats], Any] | None = None
    name: str = ""
    domain: str = "real"
    link: str = "identity"
    curvature: tuple[float, float] = (0.0, math.inf)
    flat: bool | None = None
    saturates: bool | None = None
    likelihood: bool = False

    def __post_init__(self) -> None:
        check_choice(self.domain, "domain", RESPONSES)
        check_choice(self.link, "link", LINKS)
        self._settle(curvature=_check_curvature(self.curvature))
        self._settle(likelihood=check_flag(self.likelihood, "likelihood"))
        for given, name in ((self.value, "value"), (self.d1, "d1"), (self.d2, "d2")):
            if not callable(given) and (given is not None or name == "value"):
                raise TypeError(f"{name} must be callable with (eta, y), got {given!r}")
        name = getattr(self.value, "__name__", "<own>")
        self._settle(name=self.name or (name if name.isidentifier() else "own"))
        if self.d1 is None or self.d2 is None:
            value, d1, d2 = (Derivative(self.value, order) for order in range(3))
            self._settle(value=value, d1=self.d1 or d1, d2=self.d2 or d2)
        parts = {"value": self.value, "d1": self.d1, "d2": self.d2}
        # What is written in JAX must be called in double precision, derivatives given or not.
        self._settle(**{name: _in_numpy(part, self.domain) for name, part in parts.items()})
        if self.saturates is None:
            self._settle(saturates=self.domain != "real")
        curved = _check_derivatives(self)
        if not curved.any():
            raise ObjectiveError(
                f"the {self.name} loss is straight, perhaps with corners: d2 is zero wherever it "
                "was looked at; a smooth loss must be curved somewhere, as Huber's is"
            )
        low, high = self.curvature
        if curved.min() < low * (1.0 - 1e-6) or curved.max() > high * (1.0 + 1e-6):
            raise ValueError(
                f"curvature={self.curvature} does not hold: at a few places d2 of the {self.name} "
                f"loss lies between {curved.min():.6g} and {curved.max():.6g}"
            )
        if self.flat is None:
            self._settle(flat=bool(curved.min() <= 1e-9 * curved.max()))

    def __repr__(self) -> str:
        return f"PointwiseLoss({self.name})"

    def _settle(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def newton_floor(self) -> float:
        """The least curvature that Newton's method uses."""
        high = self.curvature[1]
        return 1e-7 * (high if math.isfinite(high) else 1.0) if self.flat else 0.0

    def mean(self, eta: Floats) -> Floats:
        """Return the expected y at eta."""
        return LINKS[self.link](eta)

    def loglik(self, mean_loss: float, y: Floats, weights: Floats) -> float | None:
        """Return minus the mean loss, if it is a likelihood."""
        return -mean_loss if self.likelihood else None


def _in_numpy(function: Any, domain: str) -> Any:
    """The function itself or, where it answers with arrays of JAX, its double in NumPy's."""
    if isinstance(function, Derivative):
        return function
    try:
        answer = function(ETA, np.array(RESPONSES[domain]))
    except Exception:
        return function  # the checks that follow say what is wrong with it
    return Derivative(function, 0) if hasattr(answer, "devices") else function


def _check_curvature(curvature: Any) -> tuple[float, float]:
    try:
        low, high = map(float, curvature)
    except (TypeError, ValueError) as error:
        raise TypeError(f"curvature must be a pair (lower, upper), got {curvature!r}") from error
    if not 0.0 <= low <= high or high == 0.0:
        raise ValueError(f"curvature must have 0 <= lower <= upper, upper > 0, got {curvature!r}")
    return low, high


def _check_derivatives(loss: Any) -> Floats:
    """Compare a loss and its derivatives with differences at a few places; return d2 there."""
    eta, y = np.meshgrid(ETA, RESPONSES[loss.domain])
    parts = [("value", loss.value), ("d1", loss.d1), ("d2", loss.d2)]
    found = {}
    for name, function in parts:
        found[name] = _entries(function, eta, y, f"{name} of the {loss.name} loss")
    far = 1e-5
    for (name, function), derivative in zip(parts[:2], ("d1", "d2"), strict=True):
        ahead, behind = (np.asarray(function(eta + step, y)) for step in (far, -far))
        slope, given = (ahead - behind) / (2 * far), found[derivative]
        wrong = np.abs(slope - given) > 1e-3 * (1.0 + np.abs(given))
        if not np.isfinite(given).all() or wrong.mean() > 0.25:  # a kink may lie at one or two
            place = np.unravel_index(np.argmax(wrong | ~np.isfinite(given)), wrong.shape)
            raise ObjectiveError(
                f"{derivative} of the {loss.name} loss is not the derivative of {name}: at "
                f"eta={eta[place]}, y={y[place]} it is {given[place]:.6g}, where differences say "
                f"{slope[place]:.6g}"
            )
    if found["d2"].min() < 0.0:
        place = np.unravel_index(found["d2"].argmin(), eta.shape)
        raise ObjectiveError(
            f"the {loss.name} loss is not convex: d2 is {found['d2'][place]:.6g} at "
            f"eta={eta[place]}, y={y[place]}"
        )
    return found["d2"]


def _entries(
    function: Callable[[Floats, Floats], Any], eta: Floats, y: Floats, name: str
) -> Floats:
    """A function of matrices, since columns are evaluated many at once, that keeps their shape."""
    try:
        answer = np.asarray(function(eta, y), dtype=np.float64)
    except Exception as error:
        raise ObjectiveError(
            f"{name} fails for arrays of shape {eta.shape} ({type(error).__name__}: "
            f"{str(error).splitlines()[0]}); write it for NumPy arrays with d1 and d2, or in "
            "jax.numpy"
        ) from error
    if answer.shape != eta.shape:
        raise ObjectiveError(
            f"{name} must keep the shape of eta, got {answer.shape} for {eta.shape}: write it "
            "entry by entry, without sums"
        )
    return answer
