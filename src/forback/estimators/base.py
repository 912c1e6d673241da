"""From an objective to a chosen point: what all estimators share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from forback.core.candidates import Candidates
from forback.core.objective import Objective
from forback.core.point import Point, Step
from forback.core.status import Status, StopReason
from forback.core.types import ColumnLabels
from forback.core.warn import warn_user
from forback.selection.budget import PASS, PASS_UNTIL_SPENT, STOP
from forback.selection.criteria import CRITERIA, EBIC_GAMMA, choose_point, likelihood_of
from forback.selection.path import Path
from forback.selection.refinement import Refinement, check_refine
from forback.selection.run import Selection
from forback.selection.settings import check_settings
from forback.validation.candidates import make_candidates
from forback.validation.containers import (
    are_numbers_from_zero,
    check_container,
    column_labels,
    frame_labels,
)
from forback.validation.scalars import check_choice, check_integer, check_k

#: The largest size that a criterion considers by default.
MAX_CONSIDERED = 100

#: The sections of a docstring that `documented` knows, with their text.
_SECTIONS = re.compile(r"(Parameters|Attributes)\n *-+\n *(.*?)\s*(?:\n\n|\Z)", re.DOTALL)

T = TypeVar("T", bound=type)


@dataclass(eq=False, repr=False)
class FobaEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that chooses features by `select`; subclasses add parameters and defaults.

    Parameters
    ----------
    k : int, optional
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
        The largest size considered then. None: min(100, number of candidates,
        (n_samples - 1) // 2).
    refine : {"swap", "search"} or Refinement, optional
        What improves the answer once the algorithm has ended: "swap" exchanges features, from
        several starts, until no exchange helps; "search" goes on with exchanges of two and seeded
        kicks; `Refinement` has the knobs. None: nothing, which is the paper's answer. Where a
        criterion chooses the size, the point of that size is refined.
    ratio : float in [0, 1)
        A feature leaves when removing it raises the objective by less than this fraction of the
        gain recorded when the current size was reached.
    backward : {"coordinate", "refit"}
        Whether the cost of leaving is taken before (the paper) or after refitting the others.
    epsilon, delta : float or "auto", optional
        Thresholds on the largest gradient (gdt methods) or decrease (obj methods) outside, on the
        scale fitted: the run stops below them. "auto" (not for sequences and graphs): the
        permutation threshold at family-wise level 5 %, see `select`; it is kept as
        ``path_.settings["threshold"]``.
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
        The most that the groups in use may cost together: by default, their number.
    unaffordable : {"pass", "stop"}
        What becomes of candidates that `budget` is too small for. "pass": they are passed over as
        long as there is a group that can still be paid for; then, unless `k` is given, the run ends
        at the first of them that is the best. "stop": the run ends at the first, as in the paper.

    Attributes
    ----------
    support_ : bool array of shape (p,)
        Which columns the model uses.
    selected_ : int array
        The columns that the model uses in order of entry, after those of `always`; those that
        refinement brought in come last.
    k_ : int
        Number of features or groups chosen.
    path_ : Path
        Every step; its coefficients are on the scale fitted, an intercept comes last. Where a
        criterion chose the size, the path goes on to `k_max`, and the model is ``path_[k_]``.
    objective_value_ : float
        The objective on the scale fitted.
    n_iter_ : int
        Number of steps before refinement.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    k: int | None = None
    _: KW_ONLY
    method: str = "foba-gdt"
    criterion: str = "bic"
    k_max: int | None = None
    refine: str | Refinement | None = "swap"
    ratio: float = 0.5
    backward: str = "coordinate"
    epsilon: float | str | None = None
    delta: float | str | None = None
    groups: Any = None
    by: str = "group"
    always: Any = None
    costs: Any = None
    budget: float | None = None
    unaffordable: str = "pass"
    alpha: float | None = 0.0
    standardize: bool = True
    tol: float = 1e-8
    max_iter: int = 100
    verbose: int = 0

    _criteria: ClassVar[tuple[str, ...]] = CRITERIA
    gamma: float = field(default=EBIC_GAMMA, init=False)  #: of EBIC, where it is no parameter
    random_state: Any = field(default=0, init=False)  #: of "auto", where it is no parameter

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
        if now is None or before is None or now == before:
            return
        if _left_to_sklearn(now) and _left_to_sklearn(before):
            return
        raise ValueError(
            f"{name} must have the column labels of fit, in the same order, got {now[:5]!r}..., "
            f"not {before[:5]!r}...; pass {name}[labels], or {name}.to_numpy() to go by position"
        )

    def _candidates(self, objective: Objective) -> Candidates:
        """What may be chosen, resolved once for the whole fit."""
        return make_candidates(
            objective, groups=self.groups, by=self.by, always=self.always, costs=self.costs
        )

    def _run(
        self, objective: Objective, candidates: Candidates, k: int | None, callback: Any = None
    ) -> Selection:
        """Run the algorithm with this estimator's settings."""
        settings = check_settings(
            candidates,
            k,
            self.method,
            epsilon=self.epsilon,
            delta=self.delta,
            ratio=self.ratio,
            backward=self.backward,
            budget=self.budget,
            unaffordable=self._reading_of_budget(k),
        )
        show = callback or self._printer(len(candidates.blocks))
        selection = Selection(
            objective, candidates, settings, callback=show, random_state=self.random_state
        )
        selection.run()
        return selection

    def _reading_of_budget(self, k: int | None) -> str:
        """What `unaffordable` comes to in a run to a size."""
        if check_choice(self.unaffordable, "unaffordable", (PASS, STOP)) == STOP:
            return STOP
        return PASS_UNTIL_SPENT if k is None else PASS

    @property
    def _size_is_given(self) -> bool:
        """Whether the user, and not a criterion, says how far a run goes."""
        limits = (self.k, self.epsilon, self.delta, self.budget)
        return any(limit is not None for limit in limits)

    def _choose(
        self,
        objective: Objective,
        candidates: Candidates,
        callback: Any = None,
        best_of: Callable[[Path], Point] | None = None,
    ) -> Point:
        """Run the algorithm, set what is fitted whatever the objective, and return the answer.

        Where no limit is given, `best_of` chooses among the points of the path: by default, an
        information criterion. The point of that size is then refined.
        """
        check_choice(self.criterion, "criterion", self._criteria)
        refinement = check_refine(self.refine)
        if self._size_is_given:
            selection = self._run(objective, candidates, self.k, callback)
            path, point = selection.path, _end_of_run(selection.path, self.k)
        else:
            n_blocks = len(candidates.blocks)
            most = min(n_blocks, self._most_considered(int(likelihood_of(objective).n)))
            k = most if self.k_max is None else check_k(self.k_max, n_blocks, "k_max")
            selection = self._run(objective, candidates, k, callback)
            path = selection.path
            if best_of is not None:
                point = best_of(path)
            else:
                point = choose_point(objective, path, self.criterion, n_blocks, self.gamma)
        point = selection.refined(refinement, point)
        if point.size == 0 and self._size_is_given and self.k != 0:
            warn_user(f"no feature was chosen: {path.stop_reason}")
        if message := _WARNINGS.get(point.status):
            warn_user(message.format(note=point.note), ConvergenceWarning)
        self.k_ = point.size
        self.path_ = path
        self.objective_value_ = point.value
        self.n_iter_ = len(path.steps)
        return point

    def _most_considered(self, n: int) -> int:
        """The largest size that a criterion considers for n rows, where `k_max` does not say."""
        return min(MAX_CONSIDERED, max(1, (n - 1) // 2))

    def _set_columns(self, candidates: Candidates, point: Point) -> None:
        """Say which columns of X the point uses, and in which order they came in."""
        entered = self.path_.entry_order(point)
        features = candidates.features
        self.selected_ = features.columns_of(entered[entered < features.n_candidates])
        self.support_ = np.isin(np.arange(self.n_features_in_), self.selected_)

    def _printer(self, n_blocks: int) -> Callable[[Step], None] | None:
        """What `verbose` asks for: a line now, and a callback that prints one per step."""
        if self.verbose is not True and not check_integer(self.verbose, "verbose", low=0):
            return None
        print(f"{self.method} among {n_blocks} candidates", flush=True)

        def show(step: Step) -> None:
            sign = {"add": "+", "remove": "-", "exchange": f"- {step.out_name} +"}[step.action]
            note = f"  ({step.note})" if step.note else ""
            paid = "" if step.cost == step.size else f"  groups {step.groups}  cost {step.cost:g}"
            print(f"{sign} {step.name}  size {step.size}{paid}  objective {step.value:.6g}{note}")

        return show


def documented(cls: T) -> T:
    """Fill what base classes say into a docstring: ``{Base.Parameters}``, ``{Base.Attributes}``."""
    text = cls.__doc__ or ""
    for base in cls.__mro__[1:]:
        for title, section in _SECTIONS.findall(base.__doc__ or ""):
            text = text.replace(f"{{{base.__name__}.{title}}}", section)
    cls.__doc__ = text
    return cls


def _left_to_sklearn(labels: ColumnLabels) -> bool:
    """Whether labels are names, or none at all: scikit-learn has words for those that differ."""
    return are_numbers_from_zero(labels) or all(isinstance(label, str) for label in labels)


def _end_of_run(path: Path, k: int | None) -> Point:
    """Return the literal answer; where that is too small because no candidate was left, warn."""
    point = path.answer(k)
    if k is not None and point.size < k and path.stop is StopReason.EXHAUSTED:
        warn_user(f"only {point.size} of k={k} features were chosen: {path.stop_reason}")
    return point


#: What to do about an answer whose fit ended in some way.
_WARNINGS = {
    Status.NO_MINIMISER: (
        "the features chosen separate the data, so their coefficients run to infinity; set "
        "alpha > 0"
    ),
    Status.UNBOUNDED: (
        "the edges chosen join variables on which the covariance of X is singular, so their "
        "precision runs to infinity; set alpha > 0 or choose fewer edges"
    ),
    Status.MAX_ITER: "{note}; increase max_iter or tol",
    Status.STUCK: "{note}; bring columns and response to one scale, or set alpha > 0",
}
