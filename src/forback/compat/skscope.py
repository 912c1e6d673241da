"""skscope's FobaSolver, ForwardSolver and OMPSolver, with the paper's Algorithm 1 behind them.

What differs from skscope, and why, is in ``docs/coming-from-skscope.md``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from itertools import compress
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import LeaveOneGroupOut

from forback.core.point import Point
from forback.core.types import Floats, Ints
from forback.core.warn import warn_user
from forback.objectives.function.api import from_function
from forback.objectives.function.jax.api import from_jax
from forback.objectives.function.objective import Function
from forback.selection.path import Path
from forback.selection.select import select
from forback.validation.containers import refuse_mask, refuse_unordered
from forback.validation.scalars import check_flag, check_integer, check_number

__all__ = ["FobaSolver", "ForwardSolver", "OMPSolver"]


@dataclass(eq=False, repr=False)
class _Solver(BaseEstimator):  # type: ignore[misc]
    """What the three solvers share; `FobaSolver` says what the parameters are."""

    dimensionality: int
    sparsity: Any = None
    sample_size: int = 1
    _: KW_ONLY
    threshold: float = 0.0
    preselect: Any = ()
    group: Any = None
    ic_method: Callable[[float, int, int, int], float] | None = None
    cv: int = 1
    cv_fold_id: Any = None
    split_method: Callable[[Any, Ints], Any] | None = None
    random_state: Any = None

    #: The method of `select` that a solver stands for.
    _method: ClassVar[str]

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
        make = partial(_make, objective, gradient, p)
        path = self._path(make(data), max(sizes))
        reached = self._reached(path)
        visited = [size for size in sizes if size in reached]
        if not visited:
            visited = [max(reached)]
            warn_user(
                f"sparsity {sizes[0]} was not reached, {visited[0]} is the answer: "
                f"{path.stop_reason}"
            )
        if len(visited) > 1 and check_integer(self.cv, "cv", low=1) > 1:
            merits = self._held_out(make, data, visited)
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
        """Return the solution and what it was chosen by.

        Returns
        -------
        dict
            ``params``, ``support_set``, ``objective_value`` and ``eval_objective``, by which the
            sparsity was chosen.
        """
        if "path_" not in vars(self):
            raise NotFittedError("call solve first: there is no solution yet")
        names = ("params", "support_set", "objective_value", "eval_objective")
        return {name: copy(getattr(self, name)) for name in names}

    def get_estimated_params(self) -> Floats:
        """Return the solution.

        Returns
        -------
        float array of shape (dimensionality,)
        """
        params: Floats = self.get_result()["params"]
        return params

    def get_support(self) -> Ints:
        """Return the coordinates that are not zero.

        Returns
        -------
        int array
            Sorted.
        """
        support: Ints = self.get_result()["support_set"]
        return support

    # Pieces ------------------------------------------------------------------------------------

    @property
    def _labels(self) -> list[Any]:
        """The group of each coordinate."""
        if self.group is None:
            return list(range(self.dimensionality))
        return _listed(self.group, "group")

    @property
    def _preselected(self) -> list[Any]:
        """The groups preselected; a mask says which coordinates' are."""
        if isinstance(self.preselect, str | bytes) or not isinstance(self.preselect, Iterable):
            raise TypeError(f"preselect must be a list, or a mask, got {self.preselect!r}")
        is_set = isinstance(self.preselect, set | frozenset)
        wanted = list(self.preselect) if is_set else _listed(self.preselect, "preselect")
        labels = self._labels
        if wanted and all(isinstance(item, bool | np.bool_) for item in wanted):
            if len(wanted) != len(labels):
                raise ValueError(
                    f"preselect is a mask of length {len(wanted)}; there are {len(labels)} "
                    "coordinates"
                )
            wanted = list(compress(labels, wanted))
        unknown = [label for label in wanted if label not in labels]
        if unknown:
            raise ValueError(f"preselect holds {unknown[0]!r}, which is no group or coordinate")
        return list(dict.fromkeys(wanted))

    def _sizes(self) -> list[int]:
        """The sparsities asked for, preselected groups included, smallest first."""
        groups = len(set(self._labels))
        least = len(self._preselected)
        if self.sparsity is None:  # skscope's default
            most = groups if groups <= 5 else int(groups / np.log(np.log(groups)) / np.log(groups))
            sizes = [*range(least, max(least, most) + 1)]
        else:
            listed = np.atleast_1d(self.sparsity).tolist()
            sizes = sorted({check_integer(size, "sparsity", low=0) for size in listed})
        if not sizes or sizes[0] < least or sizes[-1] > groups:
            raise ValueError(
                f"sparsity must lie between {least}, what is preselected, and {groups}, got "
                f"{self.sparsity!r}"
            )
        if len(sizes) > 1 and self.cv == 1 and self.ic_method is None:
            raise ValueError(
                "to choose among several sparsities give ic_method, or cv with split_method"
            )
        return sizes

    def _path(self, objective: Function, largest: int) -> Path:
        method, ratio = self._algorithm()
        preselected = self._preselected
        threshold = check_number(self.threshold, "threshold", low=0.0) or None
        return select(
            objective,
            largest - len(preselected),
            method,
            epsilon=threshold if method.endswith("gdt") else None,
            delta=None if method.endswith("gdt") else threshold,
            ratio=ratio,
            groups=None if self.group is None else self._labels,
            always=[place for place, label in enumerate(self._labels) if label in preselected],
        )

    def _algorithm(self) -> tuple[str, float]:
        """The method of `select`, and its ratio."""
        return self._method, 0.5

    def _reached(self, path: Path) -> dict[int, Point]:
        """For each sparsity, the point where a run to that sparsity ends.

        Later visits may be lower, but the answer must not depend on which others are asked for.
        """
        n_preselected = len(self._preselected)
        reached = {n_preselected: path.first(0)}
        for step, following in zip(path.steps, [*path.steps[1:], None], strict=False):
            if following is None or following.action == "add":  # where Algorithm 1 tests its stops
                reached.setdefault(step.size + n_preselected, step.point)
        return reached

    def _merit(self, point: Point) -> float:
        if self.ic_method is None:
            return point.value
        if not callable(self.ic_method):
            raise TypeError(f"ic_method must be callable, got {self.ic_method!r}")
        n = check_integer(self.sample_size, "sample_size", low=2)
        merit = float(self.ic_method(point.value, self.dimensionality, len(point.support), n))
        if np.isnan(merit):
            raise ValueError(f"ic_method returned NaN for {len(point.support)} nonzeros")
        return merit

    def _held_out(
        self, make: Callable[[Any], Function], data: Any, sizes: Sequence[int]
    ) -> list[float]:
        """The mean objective on the folds left out, for each sparsity."""
        if self.split_method is None:
            raise ValueError("cv > 1 needs split_method(data, rows), which takes rows of the data")
        losses = []
        for rows, held_out in self._folds():
            path = self._path(make(self.split_method(data, rows)), max(sizes))
            rest = make(self.split_method(data, held_out))
            reached = self._reached(path)
            points = [reached[max(s for s in reached if s <= size)] for size in sizes]
            losses.append([rest.value_and_gradient(point.dense(rest.dim))[0] for point in points])
        return np.mean(losses, axis=0).tolist()  # type: ignore[no-any-return]

    def _folds(self) -> Iterable[tuple[Ints, Ints]]:
        """The rows to fit and the rows held out, fold by fold."""
        n = check_integer(self.sample_size, "sample_size", low=self.cv)
        if self.cv_fold_id is None:
            seed = 0 if self.random_state is None else self.random_state
            fold = np.random.default_rng(seed).permutation(n) % self.cv
        else:
            fold = np.array(_listed(self.cv_fold_id, "cv_fold_id"))
        if fold.shape != (n,) or len(np.unique(fold)) != self.cv:
            raise ValueError(f"cv_fold_id must give each of {n} rows one of {self.cv} folds")
        return LeaveOneGroupOut().split(fold, groups=fold)  # type: ignore[no-any-return]


@dataclass(eq=False, repr=False)
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
    cv_fold_id : array of int, optional
        The fold of each row.
    split_method : callable, optional
        ``split_method(data, rows)``: some rows of the data.
    random_state : int, optional
        The seed that draws the folds where they are not given; None is always the same seed.

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

    use_gradient: bool = field(default=True, kw_only=True)
    foba_threshold_ratio: float = field(default=0.5, kw_only=True)

    def _algorithm(self) -> tuple[str, float]:
        by_gradient = check_flag(self.use_gradient, "use_gradient")
        return "foba-gdt" if by_gradient else "foba-obj", self.foba_threshold_ratio


class ForwardSolver(_Solver):
    """Forward-obj: features enter by decrease of the objective. Parameters as in `FobaSolver`."""

    _method = "forward-obj"


class OMPSolver(_Solver):
    """Forward-gdt: features enter by gradient. Parameters as in `FobaSolver`."""

    _method = "forward-gdt"


def _listed(given: Any, name: str) -> list[Any]:
    """A list of what was given, if that has an order and nothing in it is masked."""
    refuse_mask(given, name)
    refuse_unordered(given, name)
    return list(given)


def _make(
    objective: Callable[..., Any], gradient: Callable[..., Any] | None, p: int, data: Any
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
        raise TypeError(f"objective and gradient must be callable, got {function!r}")
    takes = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        and (data is not None or parameter.default is parameter.empty)
    ]
    return function if len(takes) < 2 else lambda params: function(params, data)
