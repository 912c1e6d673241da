"""Homes, what to learn from and to test on, and runs on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contestants.crfsuite import BIAS, items_of, make_trainer, train
from experiments.study import Row
from forback import FobaCRF
from forback.core.types import Ints
from forback.datasets import load_sensor_log, make_home
from forback.demo import best_by_sensors
from forback.estimators.crf import PathScore

SIMULATED = "simulated"

#: The encodings of a log in which a column tells about one sensor alone. In the third, "last",
#: it depends on all the others: it could not be had from those chosen.
ENCODINGS = ("raw", "change")


@dataclass(frozen=True)
class Spec:
    """A home: what it is called, how it is read, and how far one goes."""

    name: str
    interval: float  #: seconds of a step
    budget: int  #: sensors at most
    encoding: str = "raw"
    steps: int = 0  #: to simulate
    levels: tuple[int, ...] = ()  #: numbers of sensors at which single activities are looked at
    iterations: int = 500  #: of an L1-CRF at most


@dataclass(frozen=True)
class Side:
    """Sequences one below the other."""

    X: NDArray[np.uint8]
    y: NDArray[np.str_]
    lengths: Ints

    @property
    def steps(self) -> int:
        """The number of steps."""
        return len(self.y)

    def __iter__(self) -> Any:
        return iter((self.X, self.y, self.lengths))


@dataclass(frozen=True)
class Data:
    """What to learn from and what to test on."""

    known: Side
    new: Side
    left_out: int  #: steps to test on whose activity was never seen before
    names: tuple[str, ...]  #: of sensors

    @property
    def ridge(self) -> float:
        """The ridge of a standard normal prior on each weight: half its square over all steps."""
        return 1.0 / self.known.steps


@lru_cache(maxsize=2)
def load(spec: Spec) -> Data:
    """Load a home; half of a simulation, or every other sequence of a log, is to learn from."""
    if spec.name == SIMULATED:
        home = make_home(spec.steps, interval=spec.interval)
        first_half = np.arange(spec.steps) < spec.steps // 2
        return split(home.X, home.y, [spec.steps], first_half, home.sensor_names)
    log = load_sensor_log(spec.name, interval=spec.interval, encoding=spec.encoding)
    every_other = np.repeat(np.arange(len(log.lengths)) % 2 == 0, log.lengths)
    return split(log.X, log.y, log.lengths, every_other, log.sensor_names)


def split(
    X: NDArray[np.uint8], y: NDArray[np.str_], lengths: Any, learn: Any, names: tuple[str, ...]
) -> Data:
    """Split the steps; those to test on with an activity never learnt are left out.

    A sequence is cut there, and where it goes from one side to the other.
    """
    seen = np.isin(y, np.unique(y[learn]))
    starts = np.zeros(len(y), dtype=bool)
    starts[np.cumsum(lengths)[:-1]] = True
    starts[1:] |= (learn[1:] != learn[:-1]) | ~seen[:-1]
    piece = np.cumsum(starts)

    def side(own: Any) -> Side:
        return Side(X[own], y[own], np.unique(piece[own], return_counts=True)[1])

    return Data(side(learn), side(~learn & seen), int(np.sum(~seen)), names)


# Runs ------------------------------------------------------------------------------------------


def all_sensors(spec: Spec) -> list[Row]:
    """Fit every weight of every sensor; of a log, in both encodings."""
    rows: list[Row] = []
    for encoding in dict.fromkeys((spec.encoding, *ENCODINGS)):
        if spec.name == SIMULATED and encoding != spec.encoding:
            continue
        data = load(replace(spec, encoding=encoding))
        everything = list(range(len(data.names)))
        model = FobaCRF(k=0, always=everything, alpha=data.ridge).fit(*data.known)
        row = {
            "home": spec.name,
            "what": "all",
            "encoding": encoding,
            "used": int(encoding == spec.encoding),
            "interval": spec.interval,
            "sensors": len(data.names),
            "weights": model.coef_.size,
            "error": 1.0 - model.score(*data.new),
            "train_error": 1.0 - model.score(*data.known),
            "labels": len(model.classes_),
            "known": data.known.steps,
            "new": data.new.steps,
            "left_out": data.left_out,
        }
        rows.append(row)
    return rows


def greedy(spec: Spec, method: str, ridge: float | None = None) -> list[Row]:
    """Let single weights enter and leave until one more sensor than the budget is wanted.

    For each number of sensors the model with the lowest objective counts. `ridge` is for those who
    want another one: its rows are kept apart.
    """
    data = load(spec)
    alpha = data.ridge if ridge is None else ridge
    literal: dict[str, Any] = {"refine": None, "unaffordable": "stop", "groups": list(data.names)}
    model = FobaCRF(budget=spec.budget, method=method, alpha=alpha, **literal)
    model.fit(*data.known)
    best = best_by_sensors(model.score_path(*data.new))
    what = "curve" if ridge is None else "ridge"
    shared = {"home": spec.name, "what": what, "method": method, "ridge": alpha}
    rows: list[Row] = [{**shared, **_told(model, score)} for score in best]
    if method == "foba-gdt" and ridge is None:
        rows += [row for level in spec.levels for row in _activities(spec, model, best, level)]
    return rows


def refined(spec: Spec, budget: int) -> list[Row]:
    """Fit to a number of sensors as the estimator does it unless told otherwise.

    For each number of sensors on the way the model with the lowest objective counts.
    """
    data = load(spec)
    model = FobaCRF(budget=budget, alpha=data.ridge, groups=list(data.names)).fit(*data.known)
    best = best_by_sensors(model.score_path(*data.new))
    shared = {"home": spec.name, "what": "refined", "level": budget, "ridge": data.ridge}
    return [{**shared, **_told(model, score)} for score in best]


def _told(model: FobaCRF, score: PathScore) -> Row:
    """What a row tells of a model of a path."""
    return {
        "sensors": score.sensors,
        "weights": score.size,
        "error": score.error,
        "objective": score.objective,
        "chosen": ", ".join(model.path_.groups(model.path_[score.size])),
    }


def _activities(spec: Spec, model: FobaCRF, best: Sequence[PathScore], level: int) -> list[Row]:
    """Report the error of each activity with the best model of at most so many sensors."""
    score = min((one for one in best if one.sensors <= level), key=lambda one: one.objective)
    report = model.error_report(*load(spec).new, size=score.size)
    return [
        {
            "home": spec.name,
            "what": "activity",
            "level": level,
            "sensors": score.sensors,
            "label": one.label,
            "steps": one.steps,
            "error": one.error,
            "taken_for": one.taken_for,
        }
        for one in report
        if one.steps
    ]


def l1(spec: Spec, penalty: float) -> list[Row]:
    """Fit an L1-CRF of crfsuite and let it decode; the penalty is per step."""
    data = load(spec)
    trainer = _trainer(spec)
    trainer.set_params({"c1": penalty * data.known.steps, "c2": 0.0})
    X, y, lengths = data.new
    done = train(trainer, spec.iterations, to_the_end=False, new=items_of(X, lengths))
    own = [attribute for attribute, _ in done.weights if attribute != BIAS]
    used = sorted(set(map(int, own)))
    row = {
        "home": spec.name,
        "what": "curve",
        "method": "l1",
        "penalty": penalty,
        "sensors": len(used),
        "weights": len(own),
        "error": float(np.mean(np.array(done.labels) != y)),
        "iterations": done.iterations,
        "limit": spec.iterations,
        "chosen": ", ".join(data.names[j] for j in used),
    }
    return [row]


@lru_cache(maxsize=1)
def _trainer(spec: Spec) -> Any:
    X, y, lengths = load(spec).known
    return make_trainer(X, y.tolist(), lengths)
