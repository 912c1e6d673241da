"""The output of `forback demo`: sensors of a simulated home, or features of two bundled tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import train_test_split

from forback.core.point import Step
from forback.datasets import make_home
from forback.datasets.home.floorplan import room_of
from forback.estimators.crf import FobaCRF, PathScore
from forback.estimators.linear import FobaClassifier, FobaRegressor
from forback.report.tables import format_table
from forback.selection.rules import METHODS

#: Length of a step of the simulation.
STEP_SECONDS = 10.0


def best_by_sensors(scores: Sequence[PathScore]) -> list[PathScore]:
    """Return, for each number of sensors, the model with the lowest objective.

    Parameters
    ----------
    scores : list of PathScore
        From `FobaCRF.score_path`.

    Returns
    -------
    list of PathScore
        One for each number of sensors, ascending.
    """
    best: dict[int, PathScore] = {}
    for score in sorted(scores, key=attrgetter("sensors", "objective")):
        best.setdefault(score.sensors, score)
    return list(best.values())


class Simulation:
    """A simulated home, split in time into a training and a test part.

    Parameters
    ----------
    steps : int
        Number of steps to simulate.
    seed : int
        Seed of the simulation.
    """

    def __init__(self, steps: int, seed: int) -> None:
        self.home = make_home(steps, interval=STEP_SECONDS, random_state=seed)
        # At least half, and enough for every activity to occur in the training part.
        first_seen = np.unique(self.home.y, return_index=True)[1]
        split = max(steps // 2, int(first_seen.max()) + 1)
        self.train = self.home.X[:split], self.home.y[:split]
        self.test = self.home.X[split:], self.home.y[split:]

    @property
    def description(self) -> str:
        """A few lines about the home and the model."""
        activities = len(np.unique(self.home.y))
        hours = len(self.home.y) * STEP_SECONDS / 3600
        return (
            f"A home with {self.home.X.shape[1]} motion sensors and {activities} activities, "
            f"simulated for {hours:.0f} hours.\n"
            "Which sensors tell what the person is doing? A linear-chain CRF learns from the\n"
            f"first {len(self.train[1])} steps of {STEP_SECONDS:g} s; single weights (sensor x "
            "activity) enter and\n"
            f"leave by FoBa-gdt. Errors are fractions of the {len(self.test[1])} steps that follow."
        )

    def choose(self, sensors: int, callback: Callable[[Step], Any]) -> FobaCRF:
        """Fit a CRF with at most so many sensors, as in the paper.

        Parameters
        ----------
        sensors : int
            The budget.
        callback : callable
            Called with every step.

        Returns
        -------
        FobaCRF
            The fitted model.
        """
        model = FobaCRF(budget=sensors, groups=list(self.home.sensor_names))
        return model.fit(*self.train, callback=callback)

    def report(self, model: FobaCRF) -> str:
        """Return tables of the test error by number of sensors and of the worst activities."""
        stopped = f"The run stopped: {model.path_.stop_reason}."
        return "\n\n".join([self._error_table(model), self._worst_activities(model), stopped])

    def _error_table(self, model: FobaCRF) -> str:
        rooms = np.array(list(self.home.rooms))[room_of(self.home.positions)]
        room = dict(zip(self.home.sensor_names, rooms.tolist(), strict=True))
        rows: list[list[str]] = []
        previous: list[str] = []
        for score in best_by_sensors(model.score_path(*self.test)):
            names = model.path_.groups(model.path_[score.size])
            change = [f"+{name} ({room[name]})" for name in names if name not in previous]
            change += [f"-{name}" for name in previous if name not in names]
            error = f"{score.error:.1%}"
            rows.append([str(score.sensors), str(score.size), error, ", ".join(change)])
            previous = names
        return format_table(["sensors", "weights", "error", "sensors added / removed"], rows)

    def _worst_activities(self, model: FobaCRF) -> str:
        header = ["activity", "steps", "error", "most often taken for"]
        rows = [
            [row.label, str(row.steps), f"{row.error:.1%}", str(row.taken_for or "")]
            for row in model.error_report(*self.test)[:5]
        ]
        title = f"The worst activities with {len(model.selected_sensors_)} sensors"
        return f"{title}\n{format_table(header, rows)}"


def tables(k: int) -> str:
    """Return tables of two bundled data sets: the paper's four algorithms, and a refined answer.

    Parameters
    ----------
    k : int
        The most features to choose.

    Returns
    -------
    str
        Text to print.
    """
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
    title = f"At most k = {k} features: the paper's four algorithms, and a refined answer"
    return f"{title}\n\n{cancer}\n\n{diabetes}"


def _table(title: str, estimator: Any, bunch: Any) -> str:
    """Fit all methods on three quarters of the rows and return a table of them."""
    X, X_test, y, y_test = train_test_split(bunch.data, bunch.target, random_state=0)
    rows = []
    literal: dict[str, dict[str, Any]] = {
        name: {"method": name, "refine": None} for name in METHODS
    }
    for method, options in {**literal, "refined": {}}.items():
        model = clone(estimator).set_params(**options).fit(X, y)  # compiles, the first time
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        score = model.score(X_test, y_test)
        names = ", ".join(bunch.feature_names[j] for j in model.selected_)
        numbers = [f"{model.objective_value_:.4g}", f"{score:.3f}", f"{model.n_iter_}"]
        rows.append([method, *numbers, f"{seconds:.3f}", names or "(none)"])
    header = ["method", "objective", "test score", "steps", "seconds", "features, in order"]
    size = f"{len(X)} training rows, {len(X_test)} test rows, {X.shape[1]} columns"
    return f"{title} ({size})\n{format_table(header, rows)}"
