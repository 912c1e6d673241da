"""What can be asked about a function whose inside is not known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from forback.core.objective import ObjectiveError
from forback.core.types import Floats, Ints
from forback.solvers.convexity import SLOPE_FALL_RTOL as BENT, NotConvex, not_convex
from forback.solvers.line_search import bracketed

T = TypeVar("T")

#: So many numbers, at most, are in the vectors that a function is asked about at once.
AT_ONCE = 1 << 22

#: A gradient may be wrong by this share of the largest where fits begin, and by so many times what
#: it was seen to be off; it takes more to say that a function is not convex.
WOBBLE, MISTRUST = 1e-4, 10.0

#: What NumPy calls real numbers: bool, integers, floats.
REAL = "biuf"


class Oracle(Protocol):
    """A function of `dim` coordinates. It is finite or plus infinity, never NaN.

    `hessian`, `products` and `falls` may answer None: not known, or not at a good price.
    """

    @property
    def dim(self) -> int:
        """The number of coordinates."""

    def at(self, beta: Floats) -> tuple[float, Floats]:
        """Value and gradient."""

    def on(self, support: Ints, base: Floats) -> Evaluate:
        """The same as a function of some coordinates; the others stay where `base` has them."""

    def without(self, beta: Floats, blocks: Sequence[Ints]) -> Floats:
        """The value with each block of coordinates set to zero."""

    def hessian(self, beta: Floats, support: Ints) -> Floats | None:
        """The second derivative on some coordinates."""

    def products(self, beta: Floats, coordinates: Ints, support: Ints) -> Floats | None:
        """Columns of the second derivative, len(support) x len(coordinates)."""

    def falls(
        self,
        beta: Floats,
        value: float,
        coordinates: Ints,
        slopes: Floats,
        steps: Floats,
        negligible: float,
        noise: float,
    ) -> Floats | None:
        """How far the function falls along each coordinate, all at once; slopes have `noise`.

        `steps` are guesses at how far it is to the minimum.
        """


class Evaluate(Protocol):
    """A function of some coordinates, the others held fixed."""

    def __call__(self, coef: Floats) -> tuple[float, Floats]:
        """Value and gradient."""

    def whole_gradient(self) -> Floats | None:
        """The gradient over all coordinates where it was evaluated last, if that is known."""


class Restricted:
    """`Oracle.on` by whole evaluations."""

    def __init__(self, oracle: Oracle, support: Ints, base: Floats) -> None:
        self._oracle, self._support, self._base = oracle, support, base
        self._last: Floats | None = None

    def __call__(self, coef: Floats) -> tuple[float, Floats]:
        """Value and gradient over some coordinates."""
        beta = self._base.copy()
        beta[self._support] = coef
        value, self._last = self._oracle.at(beta)
        return value, self._last[self._support]

    def whole_gradient(self) -> Floats | None:
        """The gradient over all coordinates at the last place."""
        return self._last


class Watched:
    """A function of a few coordinates that must not bend down between two places it is seen at."""

    def __init__(self, evaluate: Evaluate, noise: float, floor: float) -> None:
        self._evaluate, self._noise, self._floor = evaluate, noise, floor
        self.whole_gradient = evaluate.whole_gradient
        self._last: tuple[Floats, Floats] | None = None

    def __call__(self, coef: Floats) -> tuple[float, Floats]:
        """Value and gradient over the coordinates."""
        value, gradient = self._evaluate(coef)
        if not np.isfinite(value):
            return np.inf, np.full(len(coef), np.nan)
        check_floor(value, self._floor)
        if self._last is not None:
            way, turn = coef - self._last[0], gradient - self._last[1]
            before, ahead = float(self._last[1] @ way), float(gradient @ way)
            steep = np.abs(self._last[1]) @ np.abs(way) + np.abs(gradient) @ np.abs(way)
            if float(turn @ way) < -BENT * steep - self._noise * np.abs(way).sum():
                raise not_convex("between two places", before, ahead)
        self._last = coef.copy(), gradient.copy()
        return value, gradient


class Doubt:
    """How far gradients may be off before a function is called not convex.

    By a share of the `steepest` where fits begin, or by what they were seen to be off, which is
    looked at where a function seems not to be convex.
    """

    def __init__(self, oracle: Oracle, begin: Floats, noise: float, steepest: float) -> None:
        self._oracle, self._begin = oracle, begin
        self.noise, self.measured = max(noise, WOBBLE * steepest), 0.0

    def patiently(self, job: Callable[[], T]) -> T:
        """What a job gives; a second time where gradients turn out to be noisier than thought."""
        try:
            return job()
        except NotConvex:
            # Places so close to each other that gradients should agree.
            apart = 4.0 * np.finfo(float).eps * np.maximum(np.abs(self._begin), 1.0)
            places = [self._begin + times * apart for times in (-2.0, -1.0, 0.0, 1.0)]
            looks = [self._oracle.at(place)[1] for place in places]
            off = MISTRUST * float(np.ptp(looks, axis=0).max())
            if off <= self.noise:
                raise
            self.noise = self.measured = off
            return job()


class Callables:
    """A function given by callables of NumPy vectors."""

    def __init__(
        self,
        value_and_gradient: Callable[[Floats], tuple[float, Floats]],
        dim: int,
        hessian: Callable[[Floats], Any] | None = None,
        hessian_vector: Callable[[Floats, Floats], Any] | None = None,
        value_many: Callable[[Floats], Any] | None = None,
    ) -> None:
        self.dim = dim
        self._value_and_gradient = _callable(value_and_gradient, "value_and_gradient")
        self._hessian = _callable(hessian, "hessian", optional=True)
        self._hessian_vector = _callable(hessian_vector, "hessian_vector", optional=True)
        self._value_many = _callable(value_many, "value_many", optional=True)

    def at(self, beta: Floats) -> tuple[float, Floats]:
        """Value and gradient."""
        answer = self._value_and_gradient(beta.copy())  # the user's function may write to it
        try:
            value, gradient = answer
        except (TypeError, ValueError) as error:
            raise ObjectiveError(
                f"value_and_gradient must return a pair (value, gradient); met {_brief(answer)}"
            ) from error
        return check_pair(value, gradient, self.dim)

    def on(self, support: Ints, base: Floats) -> Evaluate:
        """The same as a function of some coordinates."""
        return Restricted(self, support, base)

    def without(self, beta: Floats, blocks: Sequence[Ints]) -> Floats:
        """The value with each block of coordinates set to zero."""

        def zeroed(block: Ints) -> Floats:
            other = beta.copy()
            other[block] = 0.0
            return other

        if self._value_many is None:
            return np.array([self.at(zeroed(block))[0] for block in blocks])
        return self._values(len(blocks), lambda place: zeroed(blocks[place]))

    def hessian(self, beta: Floats, support: Ints) -> Floats | None:
        """The second derivative on some coordinates, if there is one."""
        if self._hessian is None:
            return None
        whole = _array(self._hessian(beta.copy()), (self.dim, self.dim), "hessian")
        return whole[np.ix_(support, support)]

    def products(self, beta: Floats, coordinates: Ints, support: Ints) -> Floats | None:
        """Columns of the second derivative, if there are products."""
        if self._hessian_vector is None:
            return None
        columns = np.empty((len(support), len(coordinates)))
        for place, j in enumerate(coordinates):
            unit = np.zeros(self.dim)
            unit[j] = 1.0
            product = self._hessian_vector(beta.copy(), unit)
            columns[:, place] = _array(product, (self.dim,), "hessian_vector")[support]
        return columns

    def falls(
        self,
        beta: Floats,
        value: float,
        coordinates: Ints,
        slopes: Floats,
        steps: Floats,
        negligible: float,
        noise: float,
    ) -> Floats | None:
        """How far the function falls along each coordinate, if many values come at once."""
        if self._value_many is None:
            return None

        def change(some: Ints, steps: Floats) -> Floats:
            def moved(place: int) -> Floats:
                other = beta.copy()
                other[coordinates[some[place]]] += steps[place]
                return other

            return self._values(len(some), moved) - value

        return bracketed(change, steps, negligible)

    def _values(self, count: int, vector: Callable[[int], Floats]) -> Floats:
        """The function at so many vectors, in batches that fit into memory."""
        assert self._value_many is not None
        values, batch = np.empty(count), max(1, AT_ONCE // self.dim)
        for begin in range(0, count, batch):
            end = min(begin + batch, count)
            betas = np.stack([vector(place) for place in range(begin, end)])
            values[begin:end] = _array(self._value_many(betas), (end - begin,), "value_many", True)
        return values


class Multiplied:
    """A function times a power of two, for functions too small, or too large, to be squared."""

    def __init__(self, oracle: Oracle, power: int) -> None:
        self.oracle, self.dim, self._power = oracle, oracle.dim, power

    def at(self, beta: Floats) -> tuple[float, Floats]:
        """Value and gradient."""
        return self._both(*self.oracle.at(beta))

    def on(self, support: Ints, base: Floats) -> Evaluate:
        """The same as a function of some coordinates."""
        return _MultipliedPart(self, self.oracle.on(support, base))

    def _both(self, value: float, gradient: Floats) -> tuple[float, Floats]:
        return float(np.ldexp(value, self._power)), np.ldexp(gradient, self._power)

    def _all(self, answer: Floats | None) -> Floats | None:
        return None if answer is None else np.ldexp(answer, self._power)

    def without(self, beta: Floats, blocks: Sequence[Ints]) -> Floats:
        """The value with each block of coordinates set to zero."""
        return np.asarray(np.ldexp(self.oracle.without(beta, blocks), self._power))

    def hessian(self, beta: Floats, support: Ints) -> Floats | None:
        """The second derivative on some coordinates."""
        return self._all(self.oracle.hessian(beta, support))

    def products(self, beta: Floats, coordinates: Ints, support: Ints) -> Floats | None:
        """Columns of the second derivative."""
        return self._all(self.oracle.products(beta, coordinates, support))

    def falls(
        self,
        beta: Floats,
        value: float,
        coordinates: Ints,
        slopes: Floats,
        steps: Floats,
        negligible: float,
        noise: float,
    ) -> Floats | None:
        """How far the function falls along each coordinate, in the units it is given in."""
        value, negligible, noise = np.ldexp((value, negligible, noise), -self._power).tolist()
        given = coordinates, np.ldexp(slopes, -self._power), steps
        return self._all(self.oracle.falls(beta, value, *given, negligible, noise))


class _MultipliedPart:
    """A function of some coordinates times a power of two."""

    def __init__(self, whole: Multiplied, part: Evaluate) -> None:
        self._whole, self._part = whole, part

    def __call__(self, coef: Floats) -> tuple[float, Floats]:
        return self._whole._both(*self._part(coef))

    def whole_gradient(self) -> Floats | None:
        """The gradient over all coordinates where it was evaluated last, if that is known."""
        return self._whole._all(self._part.whole_gradient())


def check_floor(value: float, floor: float) -> None:
    """Raise where a function has fallen so far that it seems to have no minimum."""
    if value < floor:
        raise ObjectiveError(
            f"the function falls without end: it has come down to {value:.3g} and still falls. It "
            "has no minimum; a ridge would give it one"
        )


def check_pair(value: Any, gradient: Any, dim: int) -> tuple[float, Floats]:
    """A value and its gradient as numbers; infinite values have any gradient."""
    if np.ma.is_masked(value):
        raise ObjectiveError("the function returned a masked value; it must return one number")
    if np.ndim(value) != 0:
        raise ObjectiveError(
            f"the function must return one number; met an array of shape {np.shape(value)}"
        )
    if np.asarray(value).dtype.kind not in REAL:
        raise ObjectiveError(f"the function must return one real number; met {_brief(value)}")
    number = float(value)
    if np.isnan(number):
        raise ObjectiveError("the function returned NaN; outside its domain it may return inf")
    if number == -np.inf:
        raise ObjectiveError("the function returned -inf: it has no minimum")
    if number == np.inf:
        return number, np.full(dim, np.nan)
    return number, _array(gradient, (dim,), "the gradient")


def _array(values: Any, shape: tuple[int, ...], name: str, infinite: bool = False) -> Floats:
    """What a function returned, copied in case it returns the same array again."""
    try:
        found = np.asarray(values)
    except (TypeError, ValueError):  # such as rows of different lengths
        found = np.array(None)
    if found.dtype.kind not in REAL:
        raise ObjectiveError(f"{name} must be an array of real numbers; met {_brief(values)}")
    if np.ma.is_masked(values):
        raise ObjectiveError(f"{name} must not have masked entries, got {_brief(values)}")
    found = np.array(found, dtype=np.float64)
    if found.shape != shape:
        raise ObjectiveError(f"{name} must have shape {shape}; met shape {found.shape}")
    if infinite and np.isnan(found).any():
        raise ObjectiveError(f"{name} returned NaN; outside its domain it may return inf")
    if not infinite and not np.isfinite(found).all():
        raise ObjectiveError(f"{name} holds NaN or infinite numbers where the value is finite")
    if (found == -np.inf).any():
        raise ObjectiveError(f"{name} holds -inf: the function has no minimum")
    return found


def _callable(function: Any, name: str, optional: bool = False) -> Any:
    if not callable(function) and not (optional and function is None):
        raise TypeError(f"{name} must be callable; met {function!r}")
    return function


def _brief(answer: Any) -> str:
    text = repr(answer)
    return text if len(text) <= 60 else f"{type(answer).__name__} {text[:50]}..."


def first_look(oracle: Oracle, beta: Floats) -> tuple[float, Floats]:
    """Value and gradient where fits begin; what goes wrong there may well be the dimension."""
    try:
        return oracle.at(beta)
    except ObjectiveError:
        raise
    except (IndexError, TypeError, ValueError) as error:
        raise ObjectiveError(
            f"the function fails for a vector of length dim={len(beta)}: {error}"
        ) from error
