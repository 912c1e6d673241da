"""How the time of a whole path grows with n, p and k, one at a time, beside the floor's own."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from statistics import median

import numpy as np

from benchmarks.contestants.forback import forback_path
from benchmarks.contract import Problem
from benchmarks.runner.race import Rules, Say, pinned
from benchmarks.runner.worker import products, timed
from benchmarks.workloads import Size, correlated

#: The largest exponents aimed at. Work beyond the passes over X is allowed to show in k.
LIMITS = {"n": 1.05, "p": 1.05, "k": 1.3}
RIDGE = {"squared": 0.0, "logistic": 1e-3}
#: Sizes at which the passes over X dominate; the grown one is doubled three times from here.
BASES = {"n": Size(1000, 5000, 20), "p": Size(1000, 5000, 20), "k": Size(1000, 10_000, 10)}
SMALL_BASES = {"n": Size(200, 1000, 5), "p": Size(200, 1000, 5), "k": Size(200, 1000, 4)}
DOUBLINGS = 3


@dataclass(frozen=True)
class GrowthPoint:
    """Median seconds of a path, and of its floor, at one size of a study."""

    loss: str
    axis: str
    size: Size
    seconds: float
    floor: float


@dataclass(frozen=True)
class Growth:
    """The exponent of one study: time is about size to this power."""

    loss: str
    axis: str
    exponent: float
    floor_exponent: float
    limit: float | None

    @property
    def is_met(self) -> bool | None:
        """Whether the aim was met; None at small sizes, where there is none."""
        return None if self.limit is None else self.exponent <= self.limit


def study(loss: str, axis: str, base: Size, repeats: int) -> list[GrowthPoint]:
    """Time paths and floors, alternately, while one of n, p, k doubles."""
    sizes = [replace(base, **{axis: getattr(base, axis) * 2**i}) for i in range(DOUBLINGS + 1)]
    truth = max(size.k for size in sizes)  # the same response, however far the path goes
    return [_point(loss, axis, size, truth, repeats) for size in sizes]


def _point(loss: str, axis: str, size: Size, truth: int, repeats: int) -> GrowthPoint:
    X, y = correlated(np.random.default_rng(0), replace(size, k=truth), loss)
    path = forback_path(Problem(X, y, loss, size.k, RIDGE[loss]))
    path()  # warm-up
    floors: list[float] = []
    seconds: list[float] = []
    for _ in range(repeats):
        floors.append(timed(lambda: products(X, y, size.k)))
        seconds.append(timed(path))
    return GrowthPoint(loss, axis, size, median(seconds), median(floors))


def growth(rules: Rules, quick: bool, say: Say) -> tuple[list[GrowthPoint], list[Growth]]:
    """Run every study in a process with pinned threads, and fit an exponent to each."""
    points: list[GrowthPoint] = []
    exponents = []
    context = get_context("spawn")
    with pinned(rules.threads), ProcessPoolExecutor(1, mp_context=context) as process:
        for loss in RIDGE:
            for axis, base in (SMALL_BASES if quick else BASES).items():
                say(f"  {loss}: {axis} grows from {base}")
                found = process.submit(study, loss, axis, base, rules.rounds).result()
                points += found
                exponents.append(fit(found, None if quick else LIMITS[axis]))
    return points, exponents


def fit(points: Sequence[GrowthPoint], limit: float | None) -> Growth:
    """Fit exponents by least squares on logarithms."""
    loss, axis = points[0].loss, points[0].axis
    sizes = np.log([getattr(point.size, axis) for point in points])
    exponent, _ = np.polyfit(sizes, np.log([point.seconds for point in points]), 1)
    floor_exponent, _ = np.polyfit(sizes, np.log([point.floor for point in points]), 1)
    return Growth(loss, axis, float(exponent), float(floor_exponent), limit)
