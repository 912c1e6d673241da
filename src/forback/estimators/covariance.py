"""FobaCovariance: a precision matrix with few edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.covariance import EmpiricalCovariance, log_likelihood
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from forback.core.candidates import Candidates
from forback.core.point import Point
from forback.core.status import Status
from forback.core.types import Floats
from forback.core.warn import warn_user
from forback.estimators.base import FobaEstimator
from forback.objectives.graph.edge_names import Edges
from forback.objectives.graph.objective import GaussianCovariance, KnownCovariance
from forback.selection.criteria import CRITERIA, EBIC_GAMMA
from forback.selection.path import Path
from forback.validation import covariance as moments
from forback.validation.candidates import make_candidates
from forback.validation.columns import by_index
from forback.validation.containers import check_container, refuse_mask
from forback.validation.scalars import check_flag, check_number

#: How many edges a criterion considers without `k_max`: this many, or so many per variable if that
#: is more, but no more per variable than this fraction of its degrees of freedom.
MAX_EDGES = 100
MAX_EDGES_PER_VARIABLE = 3
MAX_EDGES_PER_DEGREE_OF_FREEDOM = 1 / 8


@dataclass(eq=False, repr=False, kw_only=True)
class FobaCovariance(EmpiricalCovariance, FobaEstimator):  # type: ignore[misc]
    """Covariance and precision of Gaussian data, the precision having few entries off its diagonal.

    An entry theta_ij of the precision matrix is an edge between variables i and j: given all the
    others, the two depend on each other. Edges enter and leave by the paper's algorithms; the
    likelihood is maximised over those that are in, without shrinkage unless `alpha` asks for it.

    Parameters
    ----------
    k : int, optional
        Number of edges (or groups of edges) to choose; those of `always` are not counted. None: as
        many as `epsilon`, `delta` or `budget` lets in if one is given, else the number that is best
        by `criterion` among the sizes on the way to `k_max`.
    method : {"foba-gdt", "foba-obj", "forward-gdt", "forward-obj"}
        Which of the paper's algorithms: edges enter by gradient or by decrease of the objective;
        with ("foba") or without ("forward") leaving again.
    criterion : {"ebic", "bic", "aic", "cv"}
        How the size is chosen when `k`, `epsilon`, `delta` and `budget` are all None: EBIC adds
        ``2 * gamma * log(number of graphs of that size)`` to BIC; "cv" takes the size whose graphs
        have the largest mean log-likelihood on rows held out.
    cv : int, splitter or iterable, optional
        The folds of criterion "cv", as in scikit-learn; None means 5.
    gamma : float
        How strongly EBIC counts the graphs of a size; 0 is BIC.
    k_max : int, optional
        The largest size considered then. None: min(max(100, 3 p), (n - 1) p / 8, number of
        candidates).
    refine : {"swap", "search"} or Refinement, optional
        What improves the answer once the algorithm has ended: "swap" exchanges edges until no
        exchange of the most promising helps, in at most about the time of the run itself;
        `Refinement` has the knobs. None: nothing, which is the paper's answer. Where a criterion
        chooses the size, the point of that size is refined.
    ratio : float in [0, 1)
        An edge leaves when removing it raises the objective by less than this fraction of the gain
        recorded when the current size was reached.
    backward : {"coordinate", "refit"}
        Whether the cost of leaving is taken before (the paper) or after refitting the others.
    epsilon, delta : float, optional
        Thresholds on the largest gradient (gdt methods) or decrease (obj methods) outside, on the
        scale fitted: the run stops below them.
    groups : mapping or sequence, optional
        Edges that belong together: a mapping edge -> label or label -> list of edges, or one label
        per edge in the order of ``numpy.triu_indices(p, 1)``. An edge is a pair of names or
        numbers. Edges that a mapping leaves out are groups of their own.
    by : {"group", "feature"}
        Whether whole groups enter and leave, and `k` counts them, or single edges; a group is then
        in use, and paid for, as soon as one of its edges is.
    always : list of pairs, optional
        Edges that are always in, and free: pairs of names or numbers.
    costs : mapping or sequence, optional
        What a group costs, once: a mapping group (or edge) -> price, 1 for those it leaves out, or
        a price per edge.
    budget : float, optional
        The most that the groups in use may cost together: by default, their number.
    unaffordable : {"pass", "stop"}
        What becomes of edges that `budget` is too small for. "pass": they are passed over as long
        as there is a group that can still be paid for; then, unless `k` is given, the run ends at
        the first of them that is the best. "stop": the run ends at the first, as in the paper.
    alpha : float
        Ridge penalty: ``alpha / 2`` times the sum of the squared edges, on the scale fitted.
    standardize : bool
        Whether to select on the correlation matrix; results come back on your scale. What is
        fitted on given edges does not depend on it without `alpha`; which edges enter does.
    assume_centered : bool
        Whether the mean is known to be zero.
    tol : float
        Accuracy of each fit: how far the covariance of an edge may be from that of the data,
        relative to the two standard deviations.
    max_iter : int
        Newton steps per fit.
    verbose : int
        1 prints a line before the first step, and one per step.

    Attributes
    ----------
    covariance_, precision_ : arrays of shape (p, p)
        The covariance fitted and its inverse. Without `alpha` the former is that of the data on
        edges and diagonal.
    location_ : array of shape (p,)
        The mean.
    edges_ : list of pairs
        Names (or numbers) of the variables that are joined, in order of entry after `always`.
    k_ : int
        Number of edges or groups chosen.
    path_ : Path
        Every step; its coefficients are on the scale fitted, the diagonal comes last. Where a
        criterion chose the size, the path goes on to `k_max`, and the model is ``path_[k_]``.
    objective_value_ : float
        ``-log det Theta + tr(S Theta)`` plus ridge, on the scale fitted.
    n_iter_ : int
        Number of steps.
    cv_results_ : dict
        With criterion "cv": ``sizes``, ``mean_test_score``, ``std_test_score`` and
        ``split0_test_score``, ...
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from forback import FobaCovariance
    >>> from forback.datasets import make_graph
    >>> graph = make_graph("chain", n=500, p=6)
    >>> model = FobaCovariance(k=5).fit(graph.X)
    >>> sorted(model.edges_)
    [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    """

    _criteria: ClassVar[tuple[str, ...]] = (*CRITERIA, "cv")
    store_precision = True  #: what EmpiricalCovariance asks before it gives the precision away

    criterion: str = "ebic"
    cv: Any = None
    gamma: float = EBIC_GAMMA
    assume_centered: bool = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose edges and fit the model.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
        y : ignored

        Returns
        -------
        self
        """
        check_number(self.gamma, "gamma", low=0.0)
        self.__dict__.pop("cv_results_", None)  # of an earlier fit
        X = self._validated(X, dtype=np.float64, ensure_min_samples=2, ensure_min_features=2)
        self.location_, deviation, objective = self._objective(X)
        candidates = self._edge_candidates(objective)
        by_cv = partial(self._best_by_cv, X, candidates) if self.criterion == "cv" else None
        point = self._choose(objective, candidates, best_of=by_cv)
        self._warn_of_limits(objective, point, self._most_considered(len(X)))
        self.precision_ = objective.precision(point) / deviation[:, None] / deviation
        self.covariance_ = objective.covariance(point) * deviation[:, None] * deviation
        names = self._names()
        entered = self.path_.entry_order(point)
        pairs = objective.edges[entered[entered < objective.n_candidates]]
        self.edges_ = [(names[i], names[j]) for i, j in pairs.tolist()]
        return self

    def _most_considered(self, n: int) -> int:
        """The most edges that a criterion considers for n rows, where `k_max` does not say."""
        p: int = self.n_features_in_
        most = max(MAX_EDGES, MAX_EDGES_PER_VARIABLE * p)
        return max(1, min(most, int(MAX_EDGES_PER_DEGREE_OF_FREEDOM * (n - 1) * p)))

    def _warn_of_limits(self, objective: GaussianCovariance, point: Point, most: int) -> None:
        """Say where a criterion might have chosen more edges, had it been allowed to."""
        if self._size_is_given:
            return
        singular = [step for step in self.path_.steps if step.point.status is Status.UNBOUNDED]
        is_finite = point.status is not Status.UNBOUNDED
        if singular and is_finite and self.k_ >= singular[0].size - 1:
            warn_user(
                f"with the edge {singular[0].name} the covariance of X is singular "
                "on variables that edges join, and criteria choose no such graph; drop one of "
                "these variables or set alpha > 0"
            )
        if self.k_max is None and self.k_ == most and len(point.support) < objective.dim:
            warn_user(
                f"the {self.criterion} criterion prefers the size {self.k_}, the most that were "
                "considered; set k_max, k or a stricter criterion"
            )

    def score(self, X_test: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of the rows of X_test under the covariance fitted.

        Parameters
        ----------
        X_test : array or data frame of shape (n, p)
        y : ignored

        Returns
        -------
        float
        """
        S = self._about_mean(X_test, "X_test")[1]
        return float(log_likelihood(S, self.precision_))

    def mahalanobis(self, X: Any) -> Floats:
        """Return the squared Mahalanobis distance of each row of X from the mean.

        Parameters
        ----------
        X : array or data frame of shape (n, p)

        Returns
        -------
        array of length n
        """
        rows = self._about_mean(X, "X")[0]
        return np.asarray(((rows @ self.precision_) * rows).sum(axis=1))

    def error_norm(
        self, comp_cov: Any, norm: str = "frobenius", scaling: bool = True, squared: bool = True
    ) -> float:
        """Return the distance of another covariance, as EmpiricalCovariance does.

        Parameters
        ----------
        comp_cov : array of shape (p, p)
        norm : {"frobenius", "spectral"}
        scaling : bool
            Whether to divide the squared norm by p.
        squared : bool
            Whether to return the squared norm.

        Returns
        -------
        float
        """
        other = check_container(comp_cov, "comp_cov")
        return float(super().error_norm(other, norm, scaling, squared))

    def _about_mean(self, X: Any, name: str) -> tuple[Floats, Floats]:
        """The rows of X less the mean, and their second moments."""
        check_is_fitted(self)
        checked = self._validated(X, name=name, dtype=np.float64, reset=False)
        rows = checked - self.location_
        with np.errstate(over="ignore", invalid="ignore"):
            S = rows.T @ rows / len(rows)
        if not np.isfinite(S).all():
            raise ValueError(f"{name} overflows when squared; give numbers like those of fit")
        return rows, S

    def to_networkx(self) -> Any:
        """Return the graph, with the partial correlation and the precision of each edge.

        Returns
        -------
        networkx.Graph
            Its nodes are names of variables, or numbers.
        """
        try:
            import networkx
        except ImportError as error:
            raise ImportError(
                "FobaCovariance.to_networkx needs networkx: pip install networkx"
            ) from error
        check_is_fitted(self)
        names = self._names()
        place = {name: number for number, name in enumerate(names)}
        root = np.sqrt(self.precision_.diagonal())
        partial = -self.precision_ / root[:, None] / root
        graph = networkx.Graph()
        graph.add_nodes_from(names)
        for pair in self.edges_:
            at = tuple(place[name] for name in pair)
            entry = float(self.precision_[at])
            graph.add_edge(*pair, partial_correlation=float(partial[at]), precision=entry)
        return graph

    def _names(self) -> list[Any]:
        """What variables are called: names, or numbers."""
        return list(self._labels or range(self.n_features_in_))

    def _objective(self, X: Floats) -> tuple[Floats, Floats, GaussianCovariance]:
        """The mean, the units of the variables, and the objective in these."""
        mean, S, variables = moments.covariance_of(
            X, assume_centered=self.assume_centered, names=self._labels
        )
        deviation = np.ones(len(S))
        if check_flag(self.standardize, "standardize"):
            deviation = np.sqrt(S.diagonal())
            S = S / deviation[:, None] / deviation
            np.fill_diagonal(S, 1.0)
        objective = GaussianCovariance(
            KnownCovariance(S, variables),
            len(X),
            ridge=check_number(self.alpha, "alpha", low=0.0),
            tol=self.tol,
            max_iter=self.max_iter,
        )
        return mean, deviation, objective

    def _edge_candidates(self, objective: GaussianCovariance) -> Candidates:
        """What may be chosen; the user calls edges by pairs of variables."""
        edges = Edges(objective)
        for name in ("always", "groups", "costs"):
            refuse_mask(getattr(self, name), name)
        groups = edges.check_per_edge(by_index(self.groups, "groups"), "groups")
        costs = edges.check_per_edge(by_index(self.costs, "costs"), "costs")
        if isinstance(groups, Mapping):
            groups = edges.grouped(groups)
        if isinstance(costs, Mapping):
            costs = edges.priced(costs, groups)
        always = None if self.always is None else edges.listed(self.always, "always")
        return make_candidates(objective, groups=groups, by=self.by, always=always, costs=costs)

    def _best_by_cv(self, X: Floats, candidates: Candidates, path: Path) -> Point:
        """The point of the size whose graphs, fitted without a fold, predict it best."""
        splits = list(check_cv(5 if self.cv is None else self.cv).split(X))
        if not splits:
            raise ValueError(f"cv must give one fold or more, got {self.cv!r}, which gives none")
        k = path.settings["k"]
        scores = [self._scores(X[train], X[test], k, candidates) for train, test in splits]
        sizes = [size for size in path.sizes if all(size in fold for fold in scores)]
        table = np.array([[fold[size] for size in sizes] for fold in scores])
        self.cv_results_ = {
            "sizes": np.array(sizes),
            "mean_test_score": table.mean(axis=0),
            "std_test_score": table.std(axis=0),
            **{f"split{number}_test_score": row for number, row in enumerate(table)},
        }
        return path.best(sizes[int(table.mean(axis=0).argmax())])

    def _scores(
        self, train: Floats, test: Floats, k: int, candidates: Candidates
    ) -> dict[int, float]:
        """The mean log-likelihood of some rows by the graphs of each size fitted to others."""
        try:
            mean, deviation, objective = self._objective(train)
        except ValueError as error:
            raise ValueError(
                f"a training fold of cv has {len(train)} rows, of which {error}; take fewer folds "
                "or shuffle them"
            ) from error
        path = self._run(
            objective, candidates, k, callback=lambda step: None
        ).path  # verbose or not
        rows = (test - mean) / deviation
        S = rows.T @ rows / len(rows)
        shift = float(np.log(deviation).sum())
        return {
            size: log_likelihood(S, objective.precision(path.best(size))) - shift
            for size in path.sizes
        }
