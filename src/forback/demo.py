"""What `forback demo` shows: sensors of a home, or features of two bundled tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import train_test_split

from forback.core.point import Step
from forback.datasets import make_home
from forback.estimators.crf import FobaCRF, PathScore
from forback.estimators.linear import FobaClassifier, FobaRegressor
from forback.report.tables import format_table
from forback.selection.rules import METHODS

INTERVAL = 10.0  #: seconds per step of the simulation


def best_by_sensors(scores: Sequence[PathScore]) -> list[PathScore]:
    """For each number of sensors in use the model with the lowest objective."""
    best: dict[int, PathScore] = {}
    for score in scores:
        so_far = best.get(score.sensors)
        if so_far is None or score.objective < so_far.objective:
            best[score.sensors] = score
    return [best[sensors] for sensors in sorted(best)]


class Simulation:
    """A simulated home: its first part to learn from, the rest to test on."""

    def __init__(self, steps: int, seed: int) -> None:
        self.home = make_home(steps, interval=INTERVAL, random_state=seed)
        # At least half, and as much as it takes to have seen every activity.
        first_seen = np.unique(self.home.y, return_index=True)[1]
        split = max(steps // 2, int(first_seen.max()) + 1)
        self.known = self.home.X[:split], self.home.y[:split]
        self.new = self.home.X[split:], self.home.y[split:]

    @property
    def description(self) -> str:
        """What there is to see."""
        activities = len(set(self.home.y.tolist()))
        hours = len(self.home.y) * INTERVAL / 3600
        return (
            f"A home with {self.home.X.shape[1]} motion sensors and {activities} activities, "
            f"simulated for {hours:.0f} hours.\n"
            "Which sensors tell what the person is doing? A linear-chain CRF learns from the\n"
            f"first {len(self.known[1])} steps of {INTERVAL:g} s; single weights (sensor x "
            "activity) enter and\n"
            f"leave by FoBa-gdt. Errors are shares of the {len(self.new[1])} steps that follow."
        )

    def choose(self, sensors: int, callback: Callable[[Step], Any]) -> FobaCRF:
        """Choose at most so many sensors, the paper's way."""
        model = FobaCRF(budget=sensors, groups=list(self.home.sensor_names))
        return model.fit(*self.known, callback=callback)

    def story(self, model: FobaCRF) -> str:
        """Which sensors, how many are enough, and what is still mistaken."""
        ended = f"The run ended because {model.path_.stop_reason}."
        return "\n\n".join([self._errors(model), self._worst(model), ended])

    def _errors(self, model: FobaCRF) -> str:
        rows: list[list[str]] = []
        before: list[str] = []
        for score in best_by_sensors(model.score_path(*self.new)):
            names = model.path_.groups(model.path_.best(score.size))
            change = [f"+{name} ({self._room(name)})" for name in names if name not in before]
            change += [f"-{name}" for name in before if name not in names]
            rows.append(
                [str(score.sensors), str(score.size), f"{score.error:.1%}", ", ".join(change)]
            )
            before = names
        return format_table(["sensors", "weights", "error", "who came or went"], rows)

    def _worst(self, model: FobaCRF) -> str:
        rows = [
            [one.label, str(one.steps), f"{one.error:.1%}", str(one.taken_for or "")]
            for one in model.error_report(*self.new)[:5]
        ]
        title = f"The worst activities with {len(model.selected_sensors_)} sensors"
        return f"{title}\n" + format_table(
            ["activity", "steps", "error", "most often taken for"], rows
        )

    def _room(self, sensor: str) -> str:
        """The room a sensor hangs in."""
        x, y = self.home.positions[list(self.home.sensor_names).index(sensor)]
        for name, (left, bottom, right, top) in self.home.rooms.items():
            if left <= x <= right and bottom <= y <= top:
                return str(name)
        return "outside"


def tables(k: int) -> str:
    """Two bundled data sets by the four algorithms of the paper."""
    cancer = _table(
        "Breast cancer, logistic regression: test score is accuracy",
        FobaClassifier(k),
        load_breast_cancer(),
    )
    diabetes = _table(
        "Diabetes progression, least squares: test score is R^2",
        FobaRegressor(k),
        load_diabetes(scaled=False),
    )
    return f"At most k = {k} features, four algorithms\n\n{cancer}\n\n{diabetes}"


def _table(title: str, estimator: Any, bunch: Any) -> str:
    """Fit the four methods on three quarters of the rows and tabulate them."""
    X, X_test, y, y_test = train_test_split(bunch.data, bunch.target, random_state=0)
    rows = []
    for method in METHODS:
        model = clone(estimator).set_params(method=method).fit(X, y)  # compiles, the first time
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        names = ", ".join(bunch.feature_names[j] for j in model.selected_)
        rows.append(
            [
                method,
                f"{model.objective_value_:.4g}",
                f"{model.score(X_test, y_test):.3f}",
                str(model.n_iter_),
                f"{seconds:.3f}",
                names or "(none)",
            ]
        )
    header = ["method", "objective", "test score", "steps", "seconds", "features, as they entered"]
    size = f"{len(X)} rows to learn from, {len(X_test)} to test, {X.shape[1]} columns"
    return f"{title} ({size})\n" + format_table(header, rows)
