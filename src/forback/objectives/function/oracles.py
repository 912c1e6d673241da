"""What can be asked about a function whose inside is not known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from forback.core.objective import ObjectiveError
from forback.core.types import Floats, Ints
from forback.solvers.convexity import SLOPE_FALL_RTOL, not_convex
from forback.solvers.one_variable import bracketed

#: The vectors that a function is asked about at once hold at most so many numbers.
MAX_NUMBERS_AT_ONCE = 1 << 22

#: What NumPy calls real numbers: bool, integers, floats.
REAL_KINDS = "biuf"

#: A function of some coordinates, the others held fixed: its value, its gradient, and the gradient
#: over all coordinates, if that is known.
Evaluate = Callable[[Floats], tuple[float, Floats, Floats | None]]


@dataclass(frozen=True)
class CoordinateSearch:
    """A function along single coordinates, whose decrease along each is wanted.

    Attributes
    ----------
    beta : Floats
        The point in which the lines meet.
    value : float
        The function there.
    coordinates : Ints
    slopes : Floats
        The derivative along each coordinate.
    steps : Floats
        Guesses at how far it is to the minimum.
    least : Floats
        Curvatures that the function never falls below.
    negligible : float
        A decrease that does not count.
    noise : float
        By how much each slope may be wrong.
    """

    beta: Floats
    value: float
    coordinates: Ints
    slopes: Floats
    steps: Floats
    least: Floats
    negligible: float
    noise: float


class Oracle(Protocol):
    """A function of `dim` coordinates. It is finite or plus infinity, never NaN.

    `hessian_columns` and `decreases` may answer None: not known, or not at a good price.

    Attributes
    ----------
    dim : int
        The number of coordinates.
    has_hessian : bool
        Whether all columns of the Hessian come at once, for the price of one.
    factor : float
        A power of two that the function is multiplied by.
    """

    dim: int
    has_hessian: bool
    factor: float

    def at(self, beta: Floats) -> tuple[float, Floats]:
        """Return value and gradient."""

    def on(self, support: Ints, base: Floats) -> Evaluate:
        """Return the function of some coordinates; the others stay where `base` has them."""

        def evaluate(coef: Floats) -> tuple[float, Floats, Floats | None]:
            beta = base.copy()
            beta[support] = coef
            value, gradient = self.at(beta)
            return value, gradient[support], gradient

        return evaluate

    def without(self, beta: Floats, blocks: Sequence[Ints]) -> Floats:
        """Return the value with each block of coordinates set to zero."""

    def hessian_columns(self, beta: Floats, coordinates: Ints, support: Ints) -> Floats | None:
        """Return columns of the second derivative, len(support) x len(coordinates)."""

    def decreases(self, search: CoordinateSearch) -> Floats | None:
        """Return how far the function falls along each coordinate, all at once."""


@dataclass
class WatchedFunction:
    """A function of some coordinates whose slope must not fall between two evaluations.

    Nor must its value fall below `floor`, where it seems to be unbounded below. `whole_gradient` is
    that over all coordinates at the last evaluation, if that is known.
    """

    _evaluate: Evaluate
    _noise: float
    _floor: float
    _last: tuple[Floats, Floats] | None = None
    whole_gradient: Floats | None = None

    def __call__(self, coef: Floats) -> tuple[float, Floats]:
        """Return value and gradient over the coordinates."""
        value, gradient, self.whole_gradient = self._evaluate(coef)
        if not np.isfinite(value):
            return np.inf, np.full(len(coef), np.nan)
        check_floor(value, self._floor)
        if self._last is not None:
            here, before = self._last
            direction = coef - here
            lengths = np.abs(direction)
            allowed = SLOPE_FALL_RTOL * ((np.abs(before) + np.abs(gradient)) @ lengths)
            allowed += self._noise * lengths.sum()
            if float((gradient - before) @ direction) < -allowed:
                slopes = float(before @ direction), float(gradient @ direction)
                raise not_convex("between two places", *slopes)
        self._last = coef.copy(), gradient.copy()
        return value, gradient


@dataclass
class Callables(Oracle):
    """A function given by callables of NumPy vectors."""

    dim: int
    _value_and_gradient: Callable[[Floats], tuple[float, Floats]]
    _hessian: Callable[[Floats], Any] | None
    _hessian_vector: Callable[[Floats, Floats], Any] | None
    _value_many: Callable[[Floats], Any] | None
    factor: float = 1.0

    def __post_init__(self) -> None:
        self.has_hessian = self._hessian is not None

    def at(self, beta: Floats) -> tuple[float, Floats]:
        """Return value and gradient."""
        answer = self._value_and_gradient(beta.copy())  # the user's function may write to it
        try:
            value, gradient = answer
        except (TypeError, ValueError) as error:
            raise ObjectiveError(
                f"value_and_gradient must return a pair (value, gradient), got {_brief(answer)}"
            ) from error
        value, gradient = check_pair(value, gradient, self.dim)
        return self.factor * value, self.factor * gradient

    def without(self, beta: Floats, blocks: Sequence[Ints]) -> Floats:
        """Return the value with each block of coordinates set to zero."""
        return self._values(beta, blocks, np.zeros(len(blocks)))

    def hessian_columns(self, beta: Floats, coordinates: Ints, support: Ints) -> Floats | None:
        """Return columns of the second derivative, if it or products with it are given."""
        if self._hessian is not None:
            whole = _array(self._hessian(beta.copy()), (self.dim, self.dim), "hessian")
            return self.factor * whole[np.ix_(support, coordinates)]
        if self._hessian_vector is None:
            return None
        columns = np.empty((len(support), len(coordinates)))
        for place, j in enumerate(coordinates):
            unit = np.zeros(self.dim)
            unit[j] = 1.0
            product = self._hessian_vector(beta.copy(), unit)
            columns[:, place] = _array(product, (self.dim,), "hessian_vector")[support]
        return self.factor * columns

    def decreases(self, search: CoordinateSearch) -> Floats | None:
        """Return how far the function falls along each coordinate, if many values come at once."""
        if self._value_many is None:
            return None

        def change(some: Ints, steps: Floats) -> Floats:
            moving = search.coordinates[some]
            return self._values(search.beta, moving, search.beta[moving] + steps) - search.value

        return bracketed(change, search.steps, search.negligible)

    def _values(self, beta: Floats, blocks: Sequence[Ints] | Ints, entries: Floats) -> Floats:
        """The function where each block of coordinates, one at a time, has another entry.

        In batches that fit into memory.
        """
        values = np.empty(len(blocks))
        batch = max(1, MAX_NUMBERS_AT_ONCE // self.dim)
        for begin in range(0, len(blocks), batch):
            part = slice(begin, begin + batch)
            betas = np.tile(beta, (len(blocks[part]), 1))
            for row, block, entry in zip(betas, blocks[part], entries[part], strict=True):
                row[block] = entry
            if self._value_many is None:
                values[part] = [self.at(row)[0] for row in betas]
            else:
                found = _array(self._value_many(betas), (len(betas),), "value_many", True)
                values[part] = self.factor * found
        return values


def check_floor(value: float, floor: float) -> None:
    """Raise where a function has fallen so far that it seems to have no minimum."""
    if value < floor:
        raise ObjectiveError(
            f"the objective is unbounded below: it has come down to {value:.3g} and still falls; "
            "a ridge would give it a minimum"
        )


def check_pair(value: Any, gradient: Any, dim: int) -> tuple[float, Floats]:
    """Return a value and its gradient as numbers; infinite values have any gradient."""
    if np.ma.is_masked(value):
        raise ObjectiveError("the function returned a masked value; it must return one number")
    if np.ndim(value) != 0:
        raise ObjectiveError(
            f"the function must return one number, got an array of shape {np.shape(value)}"
        )
    if np.asarray(value).dtype.kind not in REAL_KINDS:
        raise ObjectiveError(f"the function must return one real number, got {_brief(value)}")
    number = float(value)
    if np.isnan(number):
        raise ObjectiveError("the function returned NaN; outside its domain it may return inf")
    if number == -np.inf:
        raise ObjectiveError("the function returned -inf: it is unbounded below")
    if number == np.inf:
        return number, np.full(dim, np.nan)
    return number, _array(gradient, (dim,), "the gradient")


def _array(values: Any, shape: tuple[int, ...], name: str, infinite: bool = False) -> Floats:
    """What a function returned, copied in case it returns the same array again."""
    try:
        found = np.asarray(values)
    except (TypeError, ValueError):  # such as rows of different lengths
        found = np.array(None)
    if found.dtype.kind not in REAL_KINDS:
        raise ObjectiveError(f"{name} must be an array of real numbers, got {_brief(values)}")
    if np.ma.is_masked(values):
        raise ObjectiveError(f"{name} must not have masked entries, got {_brief(values)}")
    found = np.array(found, dtype=np.float64)
    if found.shape != shape:
        raise ObjectiveError(f"{name} must have shape {shape}, got shape {found.shape}")
    if infinite and np.isnan(found).any():
        raise ObjectiveError(f"{name} returned NaN; outside its domain it may return inf")
    if not infinite and not np.isfinite(found).all():
        raise ObjectiveError(f"{name} holds NaN or infinite numbers where the value is finite")
    if (found == -np.inf).any():
        raise ObjectiveError(f"{name} holds -inf: the function is unbounded below")
    return found


def _brief(answer: Any) -> str:
    text = repr(answer)
    return text if len(text) <= 60 else f"{type(answer).__name__} {text[:50]}..."


def first_evaluation(oracle: Oracle, beta: Floats) -> tuple[float, Floats]:
    """Evaluate where fits begin; what goes wrong there may well be the dimension."""
    try:
        value, gradient = oracle.at(beta)
    except ObjectiveError:
        raise
    except (IndexError, TypeError, ValueError) as error:
        raise ObjectiveError(
            f"the function fails for a vector of length dim={len(beta)}: {error}"
        ) from error
    if not np.isfinite(value):
        raise ObjectiveError(
            "the function is infinite where fits begin; give start= a vector of length "
            f"{len(beta)} where it is finite"
        )
    return value, gradient
