"""What the linear estimators share: from a checked X, y and loss to a chosen point."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from forback import validation
from forback.candidates import make_blocks
from forback.estimators.scaling import Scaling, standardize, unscaled
from forback.numerics import NO_MINIMISER
from forback.objectives.linear import GLM
from forback.objectives.losses import Loss, Squared
from forback.objectives.quadratic import LeastSquares
from forback.protocols import Blocks, Floats, Point, Step
from forback.selection.choice import PENALTIES, choose_point
from forback.selection.loop import EXHAUSTED
from forback.selection.path import Path
from forback.selection.select import select

T = TypeVar("T", bound=type)

_PARAMETERS = """k : int, optional
        Number of features (or groups) to choose; those of `always` are not counted. None: as many
        as `epsilon` or `delta` lets in if one is given, else the number that minimises
        `criterion` among the sizes on the way to `k_max`.
    method : {"foba-gdt", "foba-obj", "forward-gdt", "forward-obj"}
        Which of the paper's algorithms: features enter by gradient or by decrease of the
        objective; with ("foba") or without ("forward") leaving again.
    criterion : {"bic", "aic"}
        How the size is chosen when `k`, `epsilon` and `delta` are all None. Both want rows to
        outnumber columns; on a wide table choose `k` by cross-validation.
    k_max : int, optional
        The largest size considered then; None means min(p, 100, (n - 1) // 2).
    ratio : float in [0, 1)
        A feature leaves when that costs less than this share of the gain recorded.
    backward : {"coordinate", "refit"}
        Whether the cost of leaving is taken before (the paper) or after refitting the others.
    epsilon, delta : float, optional
        Thresholds on the largest gradient (gdt methods) or decrease (obj methods) outside, on the
        scale fitted: the run stops below them.
    groups : sequence of labels or mapping column -> label, optional
        Columns of one label enter and leave together, and `k` counts groups. Columns that a
        mapping leaves out are groups of their own.
    always : sequence of columns or mask, optional
        Columns, by number or name, that are always in.
    alpha : float
        Ridge penalty: ``alpha / 2 * sum(coef**2)`` next to the mean of the loss, on the scale
        fitted. For n rows, ``LogisticRegression(C=1 / (n * alpha))`` and
        ``Ridge(alpha=n * alpha)`` of scikit-learn penalise alike.
    fit_intercept : bool
        Whether to fit an intercept; it is never penalised.
    standardize : bool
        Whether to select on columns of unit variance; coefficients come back on your scale.
        Sparse columns are scaled but not centred.
    tol : float
        Accuracy of each fit, relative to the gradient before any feature is in.
    max_iter : int
        Newton steps per fit.
    verbose : int
        1 prints a line per step."""

_ATTRIBUTES = """support_ : bool array of shape (p,)
        Which columns the model uses.
    selected_ : int array
        The same columns in order of entry, after those of `always`.
    k_ : int
        Number of features or groups chosen.
    path_ : Path
        Every step; its coefficients are on the scale fitted, the intercept last. Where a criterion
        chose the size, the path goes on to `k_max`, and the model is ``path_[k_]``.
    objective_value_ : float
        The objective on the scale fitted.
    n_iter_ : int
        Number of steps.
    n_features_in_, feature_names_in_
        As in scikit-learn."""


def documented(cls: T) -> T:
    """Fill the parameters and attributes that all estimators share into a docstring."""
    text = (cls.__doc__ or "").replace("{parameters}", _PARAMETERS)
    cls.__doc__ = text.replace("{attributes}", _ATTRIBUTES)
    return cls


class FobaLinear(BaseEstimator):  # type: ignore[misc]
    """A linear model with few features; the public estimators add what y means."""

    def __init__(
        self,
        k: int | None = None,
        *,
        loss: str | Loss = "squared",
        method: str = "foba-gdt",
        criterion: str = "bic",
        k_max: int | None = None,
        ratio: float = 0.5,
        backward: str = "coordinate",
        epsilon: float | None = None,
        delta: float | None = None,
        groups: Any = None,
        always: Any = None,
        alpha: float = 0.0,
        fit_intercept: bool = True,
        standardize: bool = True,
        tol: float = 1e-8,
        max_iter: int = 100,
        verbose: int = 0,
    ) -> None:
        self.k = k
        self.loss = loss
        self.method = method
        self.criterion = criterion
        self.k_max = k_max
        self.ratio = ratio
        self.backward = backward
        self.epsilon = epsilon
        self.delta = delta
        self.groups = groups
        self.always = always
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def _select(
        self, X: Any, y: Floats, loss: Loss, weights: Floats, *, given: Any
    ) -> tuple[Floats, float]:
        """Choose features for checked input, set what is fitted, return coef and intercept.

        `given` is X before it was checked: a copy that checking made may be scaled in place.
        """
        p = X.shape[1]
        objective, scaling = self._objective(X, y, loss, weights, in_place=_is_own(X, given))
        blocks, names = make_blocks(
            p, objective.dim, groups=self.groups, always=self.always, names=objective.feature_names
        )
        k, choosing = self._size(objective, blocks)
        path = select(
            objective, k, self.method, epsilon=self.epsilon, delta=self.delta, ratio=self.ratio,
            backward=self.backward, groups=self.groups, always=self.always,
            callback=self._printer(names),
        )  # fmt: skip
        point = choose_point(objective, path, self.criterion) if choosing else _answer(path, k)
        _warn_of(point)
        entered = path.entry_order(point)
        self.selected_ = entered[entered < p]
        self.support_ = np.isin(np.arange(p), self.selected_)
        self.k_ = point.size
        self.path_ = path
        self.objective_value_ = point.value
        self.n_iter_ = len(path.steps)
        self._loss = loss
        beta = point.dense(objective.dim)
        intercept = float(beta[-1]) if objective.fit_intercept else 0.0
        return scaling.to_users_scale(beta[:p], intercept)

    def _objective(
        self, X: Any, y: Floats, loss: Loss, weights: Floats, *, in_place: bool
    ) -> tuple[GLM, Scaling]:
        intercept = validation.check_flag(self.fit_intercept, "fit_intercept")
        kept, y, kept_weights = validation.drop_weightless(weights, X, y, weights)
        in_place = in_place or kept is not X
        kept, scaling = validation.tidy_matrix(kept), unscaled(X.shape[1])
        if validation.check_flag(self.standardize, "standardize"):
            kept, scaling = standardize(kept, kept_weights, center=intercept, in_place=in_place)
        objective = (LeastSquares if isinstance(loss, Squared) else GLM).trusted(
            loss,
            kept,
            y,
            ridge=np.full(X.shape[1], validation.check_number(self.alpha, "alpha", low=0.0)),
            fit_intercept=intercept,
            offset=np.zeros(len(y)),
            weights=kept_weights,
            tol=validation.check_number(self.tol, "tol", low=0.0, open_low=True),
            max_iter=validation.check_integer(self.max_iter, "max_iter", low=1),
        )
        names = getattr(self, "feature_names_in_", None)
        objective.feature_names = None if names is None else tuple(names)
        return objective, scaling

    def _size(self, objective: GLM, blocks: Blocks) -> tuple[int | None, bool]:
        """The k for `select`, and whether the criterion chooses among the sizes up to it."""
        validation.check_choice(self.criterion, "criterion", PENALTIES)
        if self.k is not None or self.epsilon is not None or self.delta is not None:
            return self.k, False
        objective.information(objective.minimise(blocks.always))  # raises without a likelihood
        if self.k_max is not None:
            return validation.check_k(self.k_max, len(blocks), "k_max"), True
        return min(len(blocks), 100, max(1, int(objective.n_samples - 1) // 2)), True

    def _printer(self, names: Sequence[str] | None) -> Callable[[Step], None] | None:
        """What `verbose` asks for: a callback that prints a line per step."""
        if self.verbose is not True and not validation.check_integer(
            self.verbose, "verbose", low=0
        ):
            return None

        def show(step: Step) -> None:
            name = step.feature if names is None else names[step.feature]
            sign = {"add": "+", "remove": "-"}[step.action]
            note = f"  ({step.note})" if step.note else ""
            print(f"{sign} {name}  size {step.size}  objective {step.value:.6g}{note}")

        return show

    def _linear_predictor(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        eta = safe_sparse_dot(X, np.ravel(self.coef_), dense_output=True)
        return np.asarray(eta + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def _is_own(checked: Any, given: Any) -> bool:
    """Whether checking surely made a copy that nobody else holds.

    An object of another kind may have handed out the very array it keeps.
    """
    if sparse.issparse(checked):
        return bool(sparse.issparse(given) and given.format != "csc")
    copied = checked is not given and checked.base is None
    return copied and (isinstance(given, np.ndarray | list | tuple) or _is_frame(given))


def _is_frame(given: Any) -> bool:
    """A pandas or polars frame: its columns meet in one array only by being copied."""
    return type(given).__module__.split(".")[0] in ("pandas", "polars")


def _answer(path: Path, k: int | None) -> Point:
    """Where a literal run ended; at the end of the road, the largest size it reached."""
    if k is None or path.end.size >= k or not path.stop_reason.startswith(EXHAUSTED):
        return path.end
    point = path.last(max(path.sizes))
    warnings.warn(
        f"only {point.size} of k={k} features were chosen: {path.stop_reason}",
        UserWarning,
        stacklevel=4,
    )
    return point


def _warn_of(point: Point) -> None:
    if NO_MINIMISER in point.note:
        warnings.warn(
            "the features chosen separate the data, so their coefficients run to infinity; "
            "set alpha > 0",
            ConvergenceWarning,
            stacklevel=4,
        )
    if "not converged" in point.note:
        warnings.warn(f"{point.note}; increase max_iter or tol", ConvergenceWarning, stacklevel=4)
