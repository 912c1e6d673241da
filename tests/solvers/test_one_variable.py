"""Convex functions of one variable: from values, from slopes, with and without a domain."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar

from forback.core.objective import ObjectiveError
from forback.solvers.convexity import check_rising
from forback.solvers.one_variable import bracketed, largest_decrease, minimisers

#: Name -> value, slope, curvature at t, for a slope a at 0 and a size b > 0.
SHAPES = {
    "square": lambda t, a, b: (a * t + b * t**2 / 2, a + b * t, b + 0 * t),
    "quartic": lambda t, a, b: (a * t + b * t**4, a + 4 * b * t**3, 12 * b * t**2),
    "huber": lambda t, a, b: _huber(t, a, b),
    "exponential": lambda t, a, b: _exponential(t, a, b),
    "softplus": lambda t, a, b: _softplus(t, a, b),
    "barrier": lambda t, a, b: _barrier(t, a, b),
}


def _exponential(t, a, b):
    """Overflows on one side."""
    with np.errstate(over="ignore"):
        value = b * np.expm1(t) + (a - b) * t
        return value, b * np.exp(t) + a - b, b * np.exp(t)


def _huber(t, a, b):
    """Straight beyond b, with slopes a - 2|a| and a + 2|a|."""
    steep = 2 * abs(a) / b
    inside = np.clip(t, -b, b)
    value = a * t + steep * (inside**2 / 2 + inside * (t - inside))
    return value, a + steep * inside, np.where(np.abs(t) < b, steep, 0.0)


def _softplus(t, a, b):
    """Slopes between a - 2|a| and a + 2|a|."""
    s = 1 / (1 + np.exp(-np.clip(t * b, -700, 700)))
    value = 4 * abs(a) * (np.logaddexp(0, t * b) - np.log(2)) / b + (a - 2 * abs(a)) * t
    return value, a + 4 * abs(a) * (s - 0.5), 4 * abs(a) * b * s * (1 - s)


def _barrier(t, a, b):
    """Infinite outside (-b, b)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        value = a * t - np.log1p(-((t / b) ** 2))
        slope, curvature = a + 2 * t / (b**2 - t**2), 2 * (b**2 + t**2) / (b**2 - t**2) ** 2
    out = np.abs(t) >= b
    return np.where(out, np.inf, value), np.where(out, np.nan, slope), curvature


@dataclass(frozen=True)
class Family:
    """Functions of one shape, as `minimisers` and `bracketed` ask for them."""

    shape: str
    a: np.ndarray
    b: np.ndarray
    asked: list = field(default_factory=list)

    def slope_and_curvature(self, step):
        self.asked.append(len(step))
        _, slope, curvature = SHAPES[self.shape](step, self.a, self.b)
        return np.where(np.isnan(slope), np.copysign(np.inf, step), slope), curvature

    def only(self, kept):
        return Family(self.shape, self.a[kept], self.b[kept], self.asked)

    def change(self, some, steps):
        self.asked.append(len(some))
        return SHAPES[self.shape](steps, self.a[some], self.b[some])[0]

    def decreases(self):
        """By SciPy, one by one, from the right side and length."""
        return np.array([self._decrease(a, b) for a, b in zip(self.a, self.b, strict=True)])

    def _decrease(self, a, b):
        if a == 0.0:
            return 0.0
        far = -np.sign(a)
        while self._slope(far, a, b) * a > 0:
            far *= 2
        while self._slope(far / 2, a, b) * a < 0:
            far /= 2
        least = brentq(lambda t: np.clip(self._slope(t, a, b), -1e300, 1e300), 0.0, far)
        near = sorted((0.9 * least, 1.1 * least))
        found = minimize_scalar(
            lambda t: min(1e300, float(SHAPES[self.shape](np.float64(t), a, b)[0])),
            bounds=near, method="bounded", options={"xatol": 1e-9 * abs(least)},
        )  # fmt: skip
        return -found.fun

    def _slope(self, t, a, b):
        slope = float(SHAPES[self.shape](np.float64(t), a, b)[1])
        return np.sign(t) * np.inf if np.isnan(slope) else slope


def make_family(shape, seed=0, count=12, sizes=(-4, 4)):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=count) * 10.0 ** rng.uniform(*sizes, size=count)
    b = 10.0 ** rng.uniform(*sizes, size=count)
    if shape == "exponential":  # with a minimum: b > a
        b = np.abs(a) * 10.0 ** rng.uniform(0.1, 3, size=count)
    if shape == "barrier":  # the least is neither at the wall nor lost in rounding
        a = np.copysign(10.0 ** rng.uniform(-2, 2, size=count), a) / b
    a[0] = 0.0
    return Family(shape, a, b)


@settings(max_examples=60, deadline=None)
@given(shape=st.sampled_from([*SHAPES]), seed=st.integers(0, 10**6))
def test_from_values_alone(shape, seed):
    family = make_family(shape, seed)
    found = bracketed(family.change, -family.a, 1e-300)
    np.testing.assert_allclose(found, family.decreases(), rtol=1e-9)


@pytest.mark.parametrize(("shape", "seed"), [("quartic", 1550), ("barrier", 38), ("softplus", 5)])
def test_from_values_alone_where_parabolas_mislead(shape, seed):
    """A parabola through three places may promise nothing although the least is elsewhere."""
    family = make_family(shape, seed)
    found = bracketed(family.change, -family.a, 1e-300)
    np.testing.assert_allclose(found, family.decreases(), rtol=1e-9)
    assert sum(family.asked) <= 30 * len(family.a)


@settings(max_examples=60, deadline=None)
@given(shape=st.sampled_from([*SHAPES]), seed=st.integers(0, 10**6))
def test_from_slope_and_curvature(shape, seed):
    family = make_family(shape, seed)
    step = minimisers(family, np.full(len(family.a), np.inf), 1e-300)
    found = -SHAPES[shape](step, family.a, family.b)[0]
    np.testing.assert_allclose(found, family.decreases(), rtol=1e-9)


@settings(max_examples=60, deadline=None)
@given(shape=st.sampled_from([*SHAPES]), seed=st.integers(0, 10**6))
def test_one_at_a_time_by_secants(shape, seed):
    family = make_family(shape, seed)
    for a, b, expected in zip(family.a, family.b, family.decreases(), strict=True):

        def line(t, a=a, b=b):
            value, slope, _ = SHAPES[shape](np.float64(t), a, b)
            return float(value), float(np.copysign(np.inf, t) if np.isnan(slope) else slope)

        found, exact = largest_decrease(line, a, -a, 0.0, 1e-300)
        assert exact
        assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1.0, 1e30, 1e150])
def test_units_do_not_matter(scale):
    family = make_family("square", sizes=(-2, 2))
    found = bracketed(lambda some, steps: scale * family.change(some, steps), -family.a, 0.0)
    np.testing.assert_allclose(found / scale, family.a**2 / (2 * family.b), rtol=1e-8)


def test_a_function_that_falls_for_ever_ends():
    found = bracketed(lambda some, steps: np.expm1(-steps), np.array([1.0]), 1e-12)
    assert found[0] == pytest.approx(1.0, abs=1e-9)


def test_a_straight_line_down_ends():
    found = bracketed(lambda some, steps: -steps, np.array([1.0]), 1e-12)
    assert found[0] > 1e30


def test_a_slope_of_rounding_is_no_decrease():
    found = bracketed(lambda some, steps: 1e-16 + 0 * steps, np.array([-1e-17, 0.0]), 1e-12)
    np.testing.assert_array_equal(found, 0.0)


def test_nothing_to_do():
    assert len(bracketed(lambda some, steps: steps, np.zeros(0), 1e-12)) == 0
    assert len(minimisers(make_family("square", count=1).only([]), np.zeros(0), 1e-12)) == 0


def test_few_evaluations():
    family = make_family("softplus", count=64, sizes=(-1, 1))
    bracketed(family.change, -family.a, 1e-13)
    assert len(family.asked) < 60
    family = make_family("softplus", count=64, sizes=(-1, 1))
    minimisers(family, np.full(64, np.inf), 1e-13)
    assert len(family.asked) < 40


def test_secants_do_not_get_stuck_between_two_straight_lines():
    def line(t):
        return abs(t - 10.0) - 10.0 + 1e-3 * (t - 10.0) ** 2, np.sign(t - 10.0) + 2e-3 * (t - 10.0)

    found, exact = largest_decrease(line, line(0.0)[1], 1.0, 0.0, 1e-12)
    assert exact
    assert found == pytest.approx(10.0, rel=1e-6)


def test_slopes_must_rise():
    coordinates, steps = np.array([4, 7]), np.array([1.0, -1.0])
    check_rising(coordinates, steps, np.array([-1.0, 1.0]), np.array([2.0, -np.inf]))
    with pytest.raises(ObjectiveError, match="along coordinate 7 its slope falls, from 1 to 2"):
        check_rising(coordinates, steps, np.array([-1.0, 1.0]), np.array([2.0, 2.0]))
