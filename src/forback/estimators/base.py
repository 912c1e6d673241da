"""From an objective to a chosen point: what all estimators share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from forback.core.blocks import Blocks
from forback.core.point import Point, Step
from forback.core.types import ColumnLabels
from forback.selection.criteria import CRITERIA, GAMMA, choose_point
from forback.selection.loop import EXHAUSTED
from forback.selection.path import Path
from forback.selection.select import select
from forback.solvers.newton import NO_MINIMISER, UNBOUNDED
from forback.validation.candidates import make_candidates
from forback.validation.containers import (
    are_numbers_from_zero,
    check_container,
    column_labels,
    frame_labels,
)
from forback.validation.scalars import check_choice, check_integer, check_k

T = TypeVar("T", bound=type)

#: From a path that goes on to a size, the point to use.
Pick = Callable[[Path, int | None], Point]

_CHOICE = """k : int, optional
        Number of features (or groups) to choose; those of `always` are not counted. None: as many
        as `epsilon`, `delta` or `budget` lets in if one is given, else the number that minimises
        `criterion` among the sizes on the way to `k_max`.
    method : {"foba-gdt", "foba-obj", "forward-gdt", "forward-obj"}
        Which of the paper's algorithms: features enter by gradient or by decrease of the
        objective; with ("foba") or without ("forward") leaving again.
    criterion : {"bic", "aic", "ebic"}
        How the size is chosen when `k`, `epsilon`, `delta` and `budget` are all None. BIC and AIC
        want rows to outnumber columns; EBIC also counts how many models of a size there are (with
        gamma = 1/2). On a wide table choose `k` by cross-validation.
    k_max : int, optional
        The largest size considered then; None means 100, or all there are, or
        half the rows.
    ratio : float in [0, 1)
        A feature leaves when that costs less than this share of the gain recorded.
    backward : {"coordinate", "refit"}
        Whether the cost of leaving is taken before (the paper) or after refitting the others.
    epsilon, delta : float or "auto", optional
        Thresholds on the largest gradient (gdt methods) or decrease (obj methods) outside, on the
        scale fitted: the run stops below them. "auto" (not for sequences and graphs): what noise
        alone exceeds in one case of twenty, see `select`; ``path_.settings["threshold"]`` tells it.
    groups : sequence of labels or mapping, optional
        Which columns belong together, such as the columns of one sensor: one label per column, or
        a mapping column -> label or label -> columns (a list, a tuple, ...). Columns that a mapping
        leaves out, and all columns by default, are groups of their own. A pandas Series, here and
        below, is a mapping from its index.
    by : {"group", "feature"}
        Whether whole groups enter and leave, and `k` counts them, or single features; a group is
        then in use, and paid for, as soon as one of its features is.
    always : sequence of columns or mask, optional
        Columns that are always in, and free; by their labels where X is a frame, by number where
        a number cannot be a label.
    costs : sequence of numbers or mapping, optional
        What a group costs, once: a price per column, or a mapping group -> price with a price for
        every group that is not always in. By default each costs 1.
    budget : float, optional
        The most that the groups in use may cost together: by default, their number. The run ends
        when the best candidate is unaffordable; with `k`, such candidates are passed over."""

_ATTRIBUTES = """support_ : bool array of shape (p,)
        Which columns the model uses.
    selected_ : int array
        The same columns in order of entry, after those of `always`.
    k_ : int
        Number of features or groups chosen.
    path_ : Path
        Every step; its coefficients are on the scale fitted, what is always in comes last. Where a
        criterion chose the size, the path goes on to `k_max`, and the model is ``path_[k_]``.
    objective_value_ : float
        The objective on the scale fitted.
    n_iter_ : int
        Number of steps.
    n_features_in_, feature_names_in_
        As in scikit-learn."""


def documented(**more: str) -> Callable[[T], T]:
    """Fill the parameters and attributes that estimators share, and `more`, into a docstring."""

    def fill(cls: T) -> T:
        text = cls.__doc__ or ""
        for name, part in {"choice": _CHOICE, "attributes": _ATTRIBUTES, **more}.items():
            text = text.replace("{" + name + "}", part)
        cls.__doc__ = text
        return cls

    return fill


class Choosing(BaseEstimator):  # type: ignore[misc]
    """An estimator that chooses features by `select`; its subclasses bring the parameters."""

    gamma = GAMMA  #: of EBIC, where it is no parameter
    random_state: Any = 0  #: of "auto", where it is no parameter

    def _validated(self, X: Any, y: Any = "no_validation", *, name: str = "X", **rules: Any) -> Any:
        """X, or X and y, as scikit-learn checks them, once their containers are found sound."""
        checked = self._sound(X, name, reset=rules.get("reset", True))
        y = y if isinstance(y, str) else check_container(y, "y")
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # numbers beyond 1e308 are refused
                return validate_data(self, checked, y, **rules)
        except OverflowError as error:
            raise ValueError(f"X and y must hold numbers below 1e308: {error}") from error

    def _sound(self, X: Any, name: str = "X", *, reset: bool = False) -> Any:
        """X without an empty mask, once its labels and its container are found sound."""
        self._remember_labels(X, name, reset=reset)
        return check_container(X, name)

    def _remember_labels(self, X: Any, name: str = "X", *, reset: bool) -> None:
        """Keep what the columns are called, or compare it: scikit-learn does so for text only."""
        now = frame_labels(X, name)
        if reset:
            self._labels, self._frame_labels = column_labels(X, name), now
            return
        before = self._frame_labels
        if now is None or before is None or now == before or _left_to_sklearn(now, before):
            return
        raise ValueError(
            f"{name} must have the column labels of fit, in the same order, got {now[:5]!r}..., "
            f"not {before[:5]!r}...; pass {name}[labels], or {name}.to_numpy() to go by position"
        )

    def _choose(
        self,
        objective: Any,
        stacklevel: int,
        callback: Callable[[Step], Any] | None = None,
        *,
        wanted: Mapping[str, Any] | None = None,
        most: int | None = None,
        pick: Pick | None = None,
    ) -> Point:
        """Run the algorithm, set what is fitted whatever the objective, and return the answer.

        Warnings appear where the caller is `stacklevel` calls up. An estimator may give groups,
        `always` and costs in other words (`wanted`), another default of `k_max` (`most`), and its
        own choice of a size (`pick`).
        """
        wanted = wanted or {
            "groups": self.groups, "by": self.by, "always": self.always, "costs": self.costs
        }  # fmt: skip
        candidates = make_candidates(objective, **wanted)
        if pick is None:
            check_choice(self.criterion, "criterion", CRITERIA)
        k, choosing = self._size(objective, candidates.blocks, most)
        path = select(
            objective, k, self.method, epsilon=self.epsilon, delta=self.delta, ratio=self.ratio,
            backward=self.backward, budget=self.budget,
            callback=callback or self._printer(candidates.names),
            random_state=self.random_state, **wanted,
        )  # fmt: skip
        if choosing and pick is not None:
            point = pick(path, k)
        elif choosing:
            n_blocks = len(candidates.blocks)
            point = choose_point(objective, path, self.criterion, n_blocks, self.gamma)
        else:
            point = _answer(path, k, stacklevel)
        _warn_of(point, stacklevel)
        self.k_ = point.size
        self.path_ = path
        self.objective_value_ = point.value
        self.n_iter_ = len(path.steps)
        return point

    def _set_columns(self, objective: Any, point: Point) -> None:
        """Say which columns of X the point uses, and in which order they came in."""
        entered = self.path_.entry_order(point)
        candidates = entered[entered < objective.n_candidates]
        columns = getattr(objective, "columns", np.arange(objective.n_candidates))
        self.selected_ = np.array(list(dict.fromkeys(columns[candidates])), dtype=np.intp)
        self.support_ = np.isin(np.arange(self.n_features_in_), self.selected_)

    def _size(self, objective: Any, blocks: Blocks, most: int | None) -> tuple[int | None, bool]:
        """The k for `select`, and whether the criterion chooses among the sizes up to it."""
        limits = (self.k, self.epsilon, self.delta, self.budget)
        if any(limit is not None for limit in limits):
            return self.k, False
        nowhere = Point(blocks.always, np.zeros(len(blocks.always)), 1.0)
        objective.information(nowhere)  # raises without a likelihood
        if self.k_max is not None:
            return check_k(self.k_max, len(blocks), "k_max"), True
        if most is None:
            most = min(100, max(1, int(objective.n_samples - 1) // 2))
        return min(len(blocks), most), True

    def _printer(self, names: Sequence[str] | None) -> Callable[[Step], None] | None:
        """What `verbose` asks for: a callback that prints a line per step."""
        if self.verbose is not True and not check_integer(self.verbose, "verbose", low=0):
            return None

        def show(step: Step) -> None:
            name = step.feature if names is None else names[step.feature]
            sign = {"add": "+", "remove": "-"}[step.action]
            note = f"  ({step.note})" if step.note else ""
            paid = "" if step.cost == step.size else f"  groups {step.groups}  cost {step.cost:g}"
            print(f"{sign} {name}  size {step.size}{paid}  objective {step.value:.6g}{note}")

        return show


def _left_to_sklearn(one: ColumnLabels, other: ColumnLabels) -> bool:
    """Whether labels are names, or names beside none at all: scikit-learn has words for that."""
    names = [all(isinstance(label, str) for label in labels) for labels in (one, other)]
    return (
        all(names)
        or (names[0] and are_numbers_from_zero(other))
        or (names[1] and are_numbers_from_zero(one))
    )


def _answer(path: Path, k: int | None, stacklevel: int) -> Point:
    """Where a literal run ended; at the end of the road, the largest size it reached."""
    if k is None or path.end.size >= k or not path.stop_reason.startswith(EXHAUSTED):
        return path.end
    point = path.last(max(path.sizes))
    warnings.warn(
        f"only {point.size} of k={k} features were chosen: {path.stop_reason}",
        UserWarning,
        stacklevel=stacklevel,
    )
    return point


def _warn_of(point: Point, stacklevel: int) -> None:
    if NO_MINIMISER in point.note:
        warnings.warn(
            "the features chosen separate the data, so their coefficients run to infinity; "
            "set alpha > 0",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
    if UNBOUNDED in point.note:
        warnings.warn(
            "the edges chosen join variables on which the covariance of X is singular, so their "
            "precision runs to infinity; set alpha > 0 or choose fewer edges",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
    if "not converged" in point.note:
        advice = (
            "increase max_iter or tol" if "max_iter" in point.note
            else "bring columns and response to one scale, or set alpha > 0"
        )  # fmt: skip
        warnings.warn(f"{point.note}; {advice}", ConvergenceWarning, stacklevel=stacklevel)
