"""skscope's FobaSolver, ForwardSolver and OMPSolver, with the paper's Algorithm 1 behind them.

What differs from skscope, and why, is in ``docs/coming-from-skscope.md``.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from forback.core.point import Point
from forback.core.types import Floats, Ints
from forback.objectives.function.api import from_function
from forback.objectives.function.jax.api import from_jax
from forback.objectives.function.objective import Function
from forback.selection.path import Path
from forback.selection.select import select
from forback.validation.containers import refuse_mask, refuse_unordered
from forback.validation.scalars import check_flag, check_integer, check_number

__all__ = ["FobaSolver", "ForwardSolver", "OMPSolver"]


class _Solver(BaseEstimator):  # type: ignore[misc]
    """What the three share."""

    def __init__(
        self,
        dimensionality: int,
        sparsity: Any = None,
        sample_size: int = 1,
        *,
        threshold: float = 0.0,
        preselect: Any = (),
        group: Any = None,
        ic_method: Callable[[float, int, int, int], float] | None = None,
        cv: int = 1,
        cv_fold_id: Any = None,
        split_method: Callable[[Any, Ints], Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.dimensionality = dimensionality
        self.sparsity = sparsity
        self.sample_size = sample_size
        self.threshold = threshold
        self.preselect = preselect
        self.group = group
        self.ic_method = ic_method
        self.cv = cv
        self.cv_fold_id = cv_fold_id
        self.split_method = split_method
        self.random_state = random_state

    def solve(
        self,
        objective: Callable[..., Any],
        data: Any = None,
        *,
        gradient: Callable[..., Any] | None = None,
        jit: bool = False,
    ) -> Floats:
        """Minimise ``objective(params)`` or ``objective(params, data)`` over sparse params.

        Parameters
        ----------
        objective : callable
            Written in jax.numpy, unless `gradient` is given.
        data : optional
            The second argument of `objective` and `gradient`, if they take one.
        gradient : callable, optional
            ``gradient(params)`` or ``gradient(params, data)``.
        jit : bool
            Accepted and not needed: what JAX can compile always is.

        Returns
        -------
        array of shape (dimensionality,)
            The solution; `get_result` has more, and ``path_`` every step.
        """
        p = check_integer(self.dimensionality, "dimensionality", low=1)
        sizes = self._sizes()

        def on(part: Any) -> Function:
            return _make(objective, gradient, part, p)

        path = self._path(on(data), max(sizes))
        reached = self._reached(path)
        visited = [size for size in sizes if size in reached]
        if not visited:
            visited = [max(reached)]
            warnings.warn(
                f"sparsity {sizes[0]} was not reached, {visited[0]} is the answer: "
                f"{path.stop_reason}",
                stacklevel=2,
            )
        if len(visited) > 1 and check_integer(self.cv, "cv", low=1) > 1:
            merits = self._held_out(on, data, visited)
        else:
            merits = [self._merit(reached[size]) for size in visited]
        best = int(np.argmin(merits))
        point = reached[visited[best]]
        self.path_ = path
        self.params = point.dense(p)
        self.support_set = point.support
        self.objective_value = point.value
        self.eval_objective = merits[best]
        return self.params.copy()

    def get_result(self) -> dict[str, Any]:
        """The solution, its support, its objective and what its sparsity was chosen by."""
        return {
            "params": self.get_estimated_params(),
            "support_set": self.get_support(),
            "objective_value": self.objective_value,
            "eval_objective": self.eval_objective,
        }

    def get_estimated_params(self) -> Floats:
        """The solution."""
        self._check_solved()
        return self.params.copy()

    def get_support(self) -> Ints:
        """The coordinates that are not zero, sorted."""
        self._check_solved()
        return self.support_set.copy()

    def _check_solved(self) -> None:
        if not hasattr(self, "path_"):
            raise NotFittedError("call solve first: there is no solution yet")

    # Pieces ------------------------------------------------------------------------------------

    @property
    def _labels(self) -> list[Any]:
        if self.group is None:
            return list(range(self.dimensionality))
        refuse_mask(self.group, "group")
        refuse_unordered(self.group, "group")
        return list(self.group)

    @property
    def _always(self) -> list[int]:
        """The coordinates of the groups preselected."""
        wanted, labels = self._preselected, self._labels
        unknown = [label for label in wanted if label not in labels]
        if unknown:
            raise ValueError(f"preselect holds {unknown[0]!r}, which is no group or coordinate")
        return [place for place, label in enumerate(labels) if label in wanted]

    @property
    def _preselected(self) -> list[Any]:
        """The groups preselected; a mask says which coordinates' are."""
        if isinstance(self.preselect, str | bytes) or not isinstance(self.preselect, Iterable):
            raise TypeError(f"preselect must be a list, or a mask; met {self.preselect!r}")
        refuse_mask(self.preselect, "preselect")
        if not isinstance(self.preselect, set | frozenset):
            refuse_unordered(self.preselect, "preselect")
        listed = list(self.preselect)
        if not listed or not all(isinstance(item, bool | np.bool_) for item in listed):
            return listed
        if len(listed) != self.dimensionality:
            raise ValueError(
                f"preselect is a mask of length {len(listed)}; there are {self.dimensionality} "
                "coordinates"
            )
        return [label for label, wanted in zip(self._labels, listed, strict=True) if wanted]

    @property
    def _n_preselected(self) -> int:
        return len(set(self._preselected))

    def _sizes(self) -> list[int]:
        """The sparsities asked for, preselected groups included, smallest first."""
        groups, least = len(set(self._labels)), self._n_preselected
        if self.sparsity is None:  # skscope's default
            most = groups if groups <= 5 else int(groups / np.log(np.log(groups)) / np.log(groups))
            sizes = [*range(least, max(least, most) + 1)]
        else:
            listed = np.atleast_1d(self.sparsity).tolist()
            sizes = sorted({check_integer(size, "sparsity", low=0) for size in listed})
        if not sizes or sizes[0] < least or sizes[-1] > groups:
            raise ValueError(
                f"sparsity must lie between {least}, what is preselected, and {groups}; met "
                f"{self.sparsity!r}"
            )
        if len(sizes) > 1 and self.cv == 1 and self.ic_method is None:
            raise ValueError(
                "to choose among several sparsities give ic_method, or cv with split_method"
            )
        return sizes

    def _path(self, objective: Function, largest: int) -> Path:
        method, ratio = self._algorithm()
        threshold = check_number(self.threshold, "threshold", low=0.0)
        stop: dict[str, Any] = {}
        if threshold:
            stop["epsilon" if method.endswith("gdt") else "delta"] = threshold
        return select(
            objective, largest - self._n_preselected, method, ratio=ratio,
            groups=None if self.group is None else self._labels, always=self._always, **stop,
        )  # fmt: skip

    def _algorithm(self) -> tuple[str, float]:
        """The method of `select` and its ratio."""
        return "forward-gdt", 0.5

    def _reached(self, path: Path) -> dict[int, Point]:
        """For each sparsity, the point where a run to that sparsity ends.

        Later visits may be lower, but the answer must not depend on which others are asked for.
        """
        reached = {self._n_preselected: path.first(0)}
        for step, following in zip(path.steps, [*path.steps[1:], None], strict=False):
            if following is None or following.action == "add":  # where Algorithm 1 tests its stops
                reached.setdefault(step.size + self._n_preselected, step.point)
        return reached

    def _merit(self, point: Point) -> float:
        if self.ic_method is None:
            return point.value
        if not callable(self.ic_method):
            raise TypeError(f"ic_method must be callable; met {self.ic_method!r}")
        n = check_integer(self.sample_size, "sample_size", low=2)
        merit = float(self.ic_method(point.value, self.dimensionality, len(point.support), n))
        if np.isnan(merit):
            raise ValueError(f"ic_method returned NaN for {len(point.support)} nonzeros")
        return merit

    def _held_out(
        self, on: Callable[[Any], Function], data: Any, sizes: Sequence[int]
    ) -> list[float]:
        """The mean objective on the folds left out, for each sparsity."""
        if self.split_method is None:
            raise ValueError("cv > 1 needs split_method(data, rows), which takes rows of the data")
        losses = np.zeros((self.cv, len(sizes)))
        for fold, (rows, held_out) in enumerate(self._folds()):
            path = self._path(on(self.split_method(data, rows)), max(sizes))
            rest = on(self.split_method(data, held_out))
            reached = self._reached(path)
            for place, size in enumerate(sizes):
                point = reached[max(s for s in reached if s <= size)]
                losses[fold, place] = rest.value_and_gradient(point.dense(rest.dim))[0]
        return [float(loss) for loss in losses.mean(axis=0)]

    def _folds(self) -> list[tuple[Ints, Ints]]:
        n = check_integer(self.sample_size, "sample_size", low=self.cv)
        if self.cv_fold_id is None:
            seed = 0 if self.random_state is None else self.random_state
            fold = np.random.default_rng(seed).permutation(n) % self.cv
        else:
            refuse_mask(self.cv_fold_id, "cv_fold_id")
            refuse_unordered(self.cv_fold_id, "cv_fold_id")
            fold = np.asarray(self.cv_fold_id)
        if fold.shape != (n,) or len(np.unique(fold)) != self.cv:
            raise ValueError(f"cv_fold_id must give each of {n} rows one of {self.cv} folds")
        return [
            (np.flatnonzero(fold != label), np.flatnonzero(fold == label))
            for label in np.unique(fold)
        ]


class FobaSolver(_Solver):
    """FoBa-gdt, or FoBa-obj with ``use_gradient=False``: features enter and leave again.

    Parameters
    ----------
    dimensionality : int
        The number of parameters.
    sparsity : int or array of int, optional
        How many may be nonzero, those of `preselect` included. Several: one run, and `ic_method`
        or `cv` chooses.
    sample_size : int
        For `ic_method` and `cv`.
    use_gradient : bool
        Whether goodness is the gradient (FoBa-gdt) or the decrease of the objective (FoBa-obj).
    threshold : float
        The paper's epsilon (FoBa-gdt) or delta (FoBa-obj): the run ends when none is better.
    foba_threshold_ratio : float in [0, 1)
        A feature leaves when that costs less than this share of the gain recorded.
    preselect : sequence
        Coordinates, or groups, that are always in: fitted first, never removed.
    group : sequence of labels, optional
        Which parameters enter and leave together; any labels, in any order.
    ic_method : callable, optional
        ``ic_method(objective value, dimensionality, number of nonzeros, sample_size)``.
    cv : int
        The number of folds, with `split_method`.
    cv_fold_id, random_state
        The fold of each row, or the seed that draws them; None is always the same seed.
    split_method : callable, optional
        ``split_method(data, rows)``: some rows of the data.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> from forback.compat.skscope import FobaSolver
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> y = X[:, 3] - X[:, 8]
    >>> solver = FobaSolver(20, sparsity=2)
    >>> params = solver.solve(lambda beta: jnp.sum((y - X @ beta) ** 2))
    >>> solver.get_support().tolist()
    [3, 8]
    """

    def __init__(
        self,
        dimensionality: int,
        sparsity: Any = None,
        sample_size: int = 1,
        *,
        use_gradient: bool = True,
        threshold: float = 0.0,
        foba_threshold_ratio: float = 0.5,
        preselect: Any = (),
        group: Any = None,
        ic_method: Callable[[float, int, int, int], float] | None = None,
        cv: int = 1,
        cv_fold_id: Any = None,
        split_method: Callable[[Any, Ints], Any] | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            dimensionality, sparsity, sample_size, threshold=threshold, preselect=preselect,
            group=group, ic_method=ic_method, cv=cv, cv_fold_id=cv_fold_id,
            split_method=split_method, random_state=random_state,
        )  # fmt: skip
        self.use_gradient = use_gradient
        self.foba_threshold_ratio = foba_threshold_ratio

    def _algorithm(self) -> tuple[str, float]:
        by_gradient = check_flag(self.use_gradient, "use_gradient")
        return "foba-gdt" if by_gradient else "foba-obj", self.foba_threshold_ratio


class ForwardSolver(_Solver):
    """Forward-obj: features enter by decrease of the objective. Parameters as in `FobaSolver`."""

    def _algorithm(self) -> tuple[str, float]:
        return "forward-obj", 0.5


class OMPSolver(_Solver):
    """Forward-gdt: features enter by gradient. Parameters as in `FobaSolver`."""


def _make(
    objective: Callable[..., Any], gradient: Callable[..., Any] | None, data: Any, p: int
) -> Function:
    value = _value(objective, data)
    if gradient is None:
        return from_jax(value, p)
    slope = _value(gradient, data)
    return from_function(lambda beta: (float(value(beta)), np.asarray(slope(beta))), p)


def _value(function: Callable[..., Any], data: Any) -> Callable[[Any], Any]:
    """The function of params alone, whether it takes data or not.

    A second argument with a default is data only if there are some.
    """
    if not callable(function):
        raise TypeError(f"objective and gradient must be callable; met {function!r}")
    takes = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        and (data is not None or parameter.default is parameter.empty)
    ]
    return function if len(takes) < 2 else lambda params: function(params, data)
