"""FobaCRF: label sequences by a linear-chain CRF that looks at few sensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from forback.core.point import Step
from forback.core.types import Floats, Ints
from forback.designs.make import make_design
from forback.designs.standardized import column_scales
from forback.estimators.base import FobaEstimator, documented
from forback.objectives.chain.inference import Inference, Sequences, Weights, viterbi
from forback.objectives.chain.layout import unpack
from forback.objectives.chain.objective import DECODE, ChainCRF
from forback.validation.containers import refuse_mask
from forback.validation.scalars import check_choice, check_flag, check_integer, check_number
from forback.validation.sequences import check_observations, known_labels


class LabelError(NamedTuple):
    """How often one label is missed.

    Attributes
    ----------
    label : Any
    steps : int
        The number of steps with this label.
    error : float
        The share of them that is given another label; NaN where there are none.
    taken_for : Any
        The label most often given instead, None where it is never missed.
    """

    label: Any
    steps: int
    error: float
    taken_for: Any


class PathScore(NamedTuple):
    """How well the model of one size of a path does.

    Attributes
    ----------
    size : int
        Chosen features or groups.
    sensors : int
        Groups in use.
    cost : float
        The cost of these groups.
    objective : float
        Q on the data fitted.
    error : float
        Share of steps given a wrong label.
    """

    size: int
    sensors: int
    cost: float
    objective: float
    error: float


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class FobaCRF(ClassifierMixin, FobaEstimator):  # type: ignore[misc]
    """Labels for sequences, from as few sensors as will do: a CRF under a cardinality constraint.

    Columns of X are sensors, or belong to sensors by `groups`. Each has a weight per label;
    transitions between labels and biases are always in. ``by="feature"`` is the paper's way: single
    weights enter and leave, and `budget` limits the number, or with `costs` the price, of the
    sensors that have one; a feature, which `k` counts, is then one weight. ``by="group"`` takes
    whole sensors.

    Parameters
    ----------
    {FobaEstimator.Parameters}
    alpha : float, optional
        Ridge penalty of all weights, on the scale fitted: ``alpha / 2 * sum(weights**2)`` next to
        the negative log-likelihood per step. A transition never seen would otherwise run to minus
        infinity. None: 1 / number of steps, a standard normal prior.
    standardize : bool
        Whether to select on columns of unit variance. Columns are divided by their standard
        deviation, never centred, so that sparse ones stay sparse; those with at most two values,
        such as binary sensors, stay as they are. Weights come back on your scale.
    start_end : bool
        Whether labels have weights for being the first and the last of a sequence.
    decode : {"viterbi", "posterior"}
        Whether `predict` gives the likeliest labels as a whole or the likeliest of each step.
    tol : float
        Accuracy of each fit, relative to the largest gradient at zero weights.
    max_iter : int
        Quasi-Newton steps per fit.
    verbose : int
        1 prints a line before the first step, and one per step.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The labels.
    coef_ : array of shape (D, K)
        The weight of each column for each label; zero for those not chosen.
    transitions_ : array of shape (K, K)
        The weight of each label (column) after each (row).
    intercept_, start_, end_ : arrays of shape (K,)
        The weights of labels anywhere, at the first and at the last step of a sequence.
    selected_sensors_ : list
        The groups of columns that have a weight, in order of entry: labels of `groups`, names or
        numbers of columns.
    {FobaEstimator.Attributes}

    Examples
    --------
    >>> from forback import FobaCRF
    >>> from forback.datasets import make_home
    >>> home = make_home(6000)
    >>> model = FobaCRF(budget=3).fit(home.X[:4000], home.y[:4000])
    >>> len(model.selected_sensors_)
    3
    >>> model.predict(home.X[4000:]).shape
    (2000,)
    """

    by: str = "feature"
    alpha: float | None = None
    start_end: bool = False
    decode: str = "viterbi"
    tol: float = 1e-6
    max_iter: int = 1000

    def fit(
        self,
        X: Any,
        y: Any,
        lengths: Any = None,
        *,
        callback: Callable[[Step], Any] | None = None,
    ) -> Self:
        """Choose sensors and fit.

        Parameters
        ----------
        X : array, SciPy sparse matrix or data frame of shape (T, D), or a list of them
            Observations, one row per step; a list holds one sequence per entry.
        y : sequence of T labels, or a list of such sequences
        lengths : sequence of int, optional
            The lengths of the sequences that X holds one below the other; None: one sequence.
        callback : callable, optional
            Called with each `Step`, instead of what `verbose` prints; a truthy answer ends the run.

        Returns
        -------
        self
        """
        check_choice(self.decode, "decode", DECODE)
        labels = _labels(y)
        chain = ChainCRF(
            X, labels, lengths, start_end=self.start_end, tol=self.tol, max_iter=self.max_iter
        )
        self._check_columns(X, reset=True)
        self._scales = np.ones(self.n_features_in_)
        if check_flag(self.standardize, "standardize"):
            share = chain.sequences.times / chain.sequences.n_steps
            self._scales = column_scales(make_design(chain.sequences.by_column), share)
        alpha = 1.0 / chain.sequences.n_steps if self.alpha is None else self.alpha
        objective = chain.scaled(self._scales, check_number(alpha, "alpha", low=0.0))
        candidates = self._candidates(objective)
        point = self._choose(objective, candidates, callback)
        self._set_columns(candidates, point)
        self.classes_ = objective.classes
        weights = self._on_users_scale(objective.weights(point))
        self.coef_ = weights.observe
        self.transitions_ = weights.transitions
        self.intercept_ = weights.bias
        self.start_ = weights.start
        self.end_ = weights.end
        used = candidates.group_costs.used(self.path_.entry_order(point))
        self.selected_sensors_ = [candidates.groups.labels[sensor] for sensor in used]
        return self

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """Predict the label of each step, as `decode` says.

        Parameters
        ----------
        X : array, SciPy sparse matrix or data frame of shape (T, D), or a list of them
        lengths : sequence of int, optional

        Returns
        -------
        array of T labels
        """
        sequences = self._sequences(X, lengths)
        return self.classes_[self._decode(sequences, self._weights())]

    def predict_marginals(self, X: Any, lengths: Any = None) -> Floats:
        """Predict the probability of each label at each step.

        Parameters
        ----------
        X : array, SciPy sparse matrix or data frame of shape (T, D), or a list of them
        lengths : sequence of int, optional

        Returns
        -------
        array of shape (T, K)
        """
        sequences = self._sequences(X, lengths)
        return Inference(sequences, self._weights()).marginals()

    def score(self, X: Any, y: Any, lengths: Any = None) -> float:
        """Return the accuracy of `predict`, step by step.

        Parameters
        ----------
        X : array, SciPy sparse matrix or data frame of shape (T, D), or a list of them
        y : sequence of T labels, or a list of such sequences
        lengths : sequence of int, optional

        Returns
        -------
        float
        """
        sequences, labels = self._labelled(X, y, lengths)
        return float(np.mean(self._decode(sequences, self._weights()) == labels))

    def error_report(
        self, X: Any, y: Any, lengths: Any = None, *, size: int | None = None
    ) -> list[LabelError]:
        """Return how often each label is missed, and what it is taken for; the worst first.

        Parameters
        ----------
        X : array, SciPy sparse matrix or data frame of shape (T, D), or a list of them
        y : sequence of T labels, or a list of such sequences
        lengths : sequence of int, optional
        size : int, optional
            The size of another model of the path, as `score_path` has it; nothing is fitted again.
            A size that the path never visited is a KeyError.

        Returns
        -------
        list of LabelError
        """
        sequences, labels = self._labelled(X, y, lengths)
        found = self._decode(sequences, self._weights(size))
        names = self.classes_.tolist()
        report = []
        for code, name in enumerate(names):
            given = found[labels == code]
            wrong = np.bincount(given[given != code])
            error = float(wrong.sum() / len(given)) if len(given) else np.nan
            taken_for = names[wrong.argmax()] if len(wrong) else None
            report.append(LabelError(name, len(given), error, taken_for))
        return sorted(report, key=lambda label: -label.error if label.steps else 1.0)

    def score_path(self, X: Any, y: Any, lengths: Any = None) -> list[PathScore]:
        """Return the error of the model of every size on the path, without fitting any again.

        Parameters
        ----------
        X : array, SciPy sparse matrix or data frame of shape (T, D), or a list of them
        y : sequence of T labels, or a list of such sequences
        lengths : sequence of int, optional

        Returns
        -------
        list of PathScore
        """
        sequences, labels = self._labelled(X, y, lengths)
        scores = []
        for size in self.path_.sizes:
            point = self.path_[size]
            wrong = float(np.mean(self._decode(sequences, self._weights(size)) != labels))
            sensors = len(self.path_.group_costs.used(point.support))
            cost = self.path_.cost(point)
            scores.append(PathScore(size, sensors, cost, point.value, wrong))
        return scores

    def _weights(self, size: int | None = None) -> Weights:
        """The weights of the model, or of that of some size on the path."""
        if size is None:
            return Weights(self.coef_, self.transitions_, self.intercept_, self.start_, self.end_)
        point = self.path_[check_integer(size, "size", low=0)]
        fitted = unpack(point.dense(self.path_.dim), self.coef_.size, len(self.classes_))
        return self._on_users_scale(fitted)

    def _on_users_scale(self, weights: Weights) -> Weights:
        return replace(weights, observe=weights.observe / self._scales[:, None])

    def _sequences(self, X: Any, lengths: Any) -> Sequences:
        check_is_fitted(self)
        matrix, lengths, _ = check_observations(X, lengths)
        self._check_columns(X, reset=False)
        return Sequences.of(matrix, lengths)

    def _labelled(self, X: Any, y: Any, lengths: Any) -> tuple[Sequences, Ints]:
        """The observations, and the number of the label of each step."""
        sequences = self._sequences(X, lengths)
        return sequences, known_labels(y, np.diff(sequences.edges), self.classes_)

    def _check_columns(self, X: Any, *, reset: bool) -> None:
        """Set or check the number and names of columns, as scikit-learn does for one matrix."""
        first = X[0] if isinstance(X, list | tuple) and np.ndim(X[0]) == 2 else X
        self._remember_labels(first, reset=reset)
        validate_data(self, first, reset=reset, skip_check_array=True)

    def _decode(self, sequences: Sequences, weights: Weights) -> Ints:
        if check_choice(self.decode, "decode", DECODE) == "viterbi":
            return viterbi(sequences, weights)
        return np.asarray(Inference(sequences, weights).marginals().argmax(axis=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _labels(y: Any) -> Any:
    """The labels to fit, with the objections that scikit-learn has to some shapes of them."""
    if y is None:
        raise ValueError("FobaCRF requires y to be passed, but the target y is None")
    refuse_mask(y, "y")
    if len(getattr(y, "shape", ())) == 2 and y.shape[1] == 1:
        return column_or_1d(y, warn=True)
    return y
