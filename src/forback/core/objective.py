"""Objective: a smooth convex Q, as the loop sees it, with a slow twin for every score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from forback.core import brute_force
from forback.core.blocks import Blocks
from forback.core.features import Features
from forback.core.point import Point
from forback.core.tolerances import NEGLIGIBLE
from forback.core.types import Floats, Ints
from forback.core.units import Units


class ObjectiveError(ValueError):
    """A function that somebody wrote is not what an objective must be, such as convex.

    Where it came to light during a run, the message says at which step, and `path` is the path so
    far.
    """

    path: Any = None


class Scores(NamedTuple):
    """Scores of blocks: exact where it matters, a bound on the safe side elsewhere.

    Attributes
    ----------
    values : float array
        One score per block, or per pair of blocks.
    n_exact : int
        How many of them are exact.
    """

    values: Floats
    n_exact: int

    @classmethod
    def exact(cls, values: Floats) -> Scores:
        """Scores that are all exact."""
        return cls(values, len(values))


@dataclass(frozen=True)
class Likelihood:
    """The likelihood behind Q, for information criteria.

    Attributes
    ----------
    n : float
        The number of observations.
    evaluate : callable
        From a point, its log-likelihood and its degrees of freedom.
    """

    n: float
    evaluate: Callable[[Point], tuple[float, int]]


class HessianBounds(NamedTuple):
    """Two matrices of order `dim` between which the Hessian of Q lies everywhere.

    Attributes
    ----------
    lower : float array
    upper : float array or None
        None: there is no upper bound.
    """

    lower: Floats
    upper: Floats | None

    @property
    def are_equal(self) -> bool:
        """Whether the Hessian is the same everywhere: Q is quadratic."""
        return self.upper is not None and np.array_equal(self.lower, self.upper)


@dataclass(frozen=True)
class PermutableResponse:
    """A response whose rows can change places, for thresholds from permutations.

    Attributes
    ----------
    n_rows : int
        The number of rows.
    permuted : callable
        ``permuted(order, point)``: the objective with the rows of its response, and what the point
        predicts for them, in another order.
    """

    n_rows: int
    permuted: Callable[[Ints, Point], Objective]


class OwnedCache(Protocol):
    """What a point carries along, and whose it is."""

    @property
    def owner(self) -> Objective:
        """The objective that made it; no other can use it."""


CacheT = TypeVar("CacheT", bound=OwnedCache)


class Objective(ABC):
    """A smooth convex Q over `dim` coordinates.

    Coordinates ``0 .. n_candidates - 1`` may be chosen; the rest (an intercept, transitions, a
    diagonal) are always in. Normalisation, everywhere: Q is the weighted mean of the loss plus
    ``1/2 * sum_j ridge_j * beta_j**2``, weights divided by their sum, terms free of the
    coefficients dropped. A `Point` that has lost its cache is still a valid argument.

    An objective must be able to `minimise` itself on a support and to tell its value and gradient
    anywhere. Everything else has a default: scores by brute force, to be replaced where the
    structure of Q makes them cheap (`forback.testing.check_objective` compares each replacement
    with its default), and capabilities that are None where an objective has none. It may memoise
    facts about its data, never the state of a run: two interleaved runs on one objective give the
    same paths as two separate ones.

    Attributes
    ----------
    dim : int
        The number of all coordinates.
    n_candidates : int
        How many coordinates, counted from 0, may be chosen.
    infimum : float
        Q is nowhere below this; a run ends where it is reached.
    is_quadratic : bool
        Whether the Hessian is known to be the same everywhere.
    shares_out_work : bool
        Whether it shares out among threads what is worth it; then a run keeps BLAS from doing so.
    """

    dim: int
    n_candidates: int
    infimum: float = -np.inf
    is_quadratic: bool = False
    shares_out_work: bool = False

    @property
    def name(self) -> str:
        """What messages call it."""
        return type(self).__name__

    @property
    def features(self) -> Features:
        """What the candidates are called, and which column each belongs to."""
        return Features(self.n_candidates)

    @abstractmethod
    def minimise(self, support: Ints, start: Point | None = None) -> Point:
        """Return beta-hat(F), the minimiser of Q over a support.

        Parameters
        ----------
        support : int array
            Sorted coordinates.
        start : Point, optional
            Where to begin; of any support.

        Returns
        -------
        Point
        """

    @abstractmethod
    def value_and_gradient(self, beta: Floats) -> tuple[float, Floats]:
        """Return Q and its gradient at any dense vector of length `dim`.

        Parameters
        ----------
        beta : float array of length dim

        Returns
        -------
        value : float
        gradient : float array of length dim
        """

    # Scores. Each default is the slow twin of what an objective puts in its place. ---------------

    def gradient(self, point: Point) -> Floats:
        """Return the gradient of Q at a point, over all coordinates.

        Parameters
        ----------
        point : Point

        Returns
        -------
        float array of length dim
        """
        return self.value_and_gradient(point.dense(self.dim))[1]

    def gradient_norms(self, point: Point, blocks: Blocks, *, only_best: bool = False) -> Scores:
        """Return the norm of the gradient over each block: the goodness of FoBa-gdt.

        Parameters
        ----------
        point : Point
        blocks : Blocks
        only_best : bool
            Whether only scores that may be the largest of the blocks outside need be exact; the
            others may be bounds that are no larger than the largest.

        Returns
        -------
        Scores
        """
        return Scores.exact(blocks.norms(self.gradient(point)))

    def decrease_if_added(self, point: Point, blocks: Blocks, *, only_best: bool = False) -> Scores:
        """Return how far Q falls when each block alone is optimised: the goodness of FoBa-obj.

        Parameters
        ----------
        point : Point
        blocks : Blocks
        only_best : bool
            Whether only scores that may be the largest of the blocks outside need be exact; the
            others may be upper bounds that miss the largest.

        Returns
        -------
        Scores
        """
        return Scores.exact(
            np.array([brute_force.decrease(self, point, block) for block in blocks])
        )

    def increase_if_removed(
        self, point: Point, blocks: Blocks, *, below: float | None = None
    ) -> Scores:
        """Return how far Q rises when each block is set to zero without a refit: the badness.

        Parameters
        ----------
        point : Point
        blocks : Blocks
            Blocks inside the support.
        below : float, optional
            If given, only scores that may be the smallest and are below this need be exact; the
            others may be lower bounds that exceed it, or the smallest.

        Returns
        -------
        Scores
        """
        return Scores.exact(
            np.array([brute_force.increase(self, point, block) for block in blocks])
        )

    def increase_after_refit(
        self, point: Point, blocks: Blocks, *, below: float | None = None
    ) -> Scores:
        """Return how far Q rises when each block is set to zero and the others are refitted.

        Parameters
        ----------
        point : Point
        blocks : Blocks
            Blocks inside the support.
        below : float, optional
            As for `increase_if_removed`.

        Returns
        -------
        Scores
        """
        kept = (np.setdiff1d(point.support, block, assume_unique=True) for block in blocks)
        values = [self.minimise(support, point).value for support in kept]
        return Scores.exact(np.array(values) - point.value)

    def decrease_if_exchanged(
        self, point: Point, inside: Blocks, outside: Blocks, *, estimate: bool = False
    ) -> Scores:
        """Return how far Q falls when a block gives way to another and all others are refitted.

        Parameters
        ----------
        point : Point
        inside : Blocks
            Blocks inside the support.
        outside : Blocks
            Blocks outside it.
        estimate : bool
            Whether guesses will do that tell which exchanges promise most; minus infinity where
            there is not even a guess.

        Returns
        -------
        Scores
            A row for each block of `inside`, a column for each of `outside`; negative where Q
            rises.
        """
        if estimate:
            return Scores(brute_force.guess_exchanges(self, point, inside, outside), 0)
        falls = brute_force.try_exchanges(self, point, inside, outside)
        return Scores(falls, falls.size)

    def has_quick_exchanges(self, blocks: Blocks) -> bool:
        """Return whether all exchanges at a point are estimated in the time of a few fits.

        Where they are, refinement starts from more supports.

        Parameters
        ----------
        blocks : Blocks
            All that may be chosen.

        Returns
        -------
        bool
        """
        return False

    def promise(self, point: Point, blocks: Blocks) -> Floats:
        """Return guesses at how far Q falls when each block is added: where to look first.

        Parameters
        ----------
        point : Point
        blocks : Blocks

        Returns
        -------
        float array
            By default what `decrease_if_added` says; slope and curvature will do.
        """
        return self.decrease_if_added(point, blocks).values

    def cheapest_removals(self, point: Point, blocks: Blocks, most: int) -> Ints:
        """Return which blocks leave first when, each time, that one leaves that costs least.

        Costs are those after a refit of the others.

        Parameters
        ----------
        point : Point
        blocks : Blocks
            Blocks inside the support.
        most : int
            How many are to leave, in the end.

        Returns
        -------
        int array
            Places among the blocks, at least one and no more than `most`: as many as can be told
            before the next fit.
        """
        return np.array([self.increase_after_refit(point, blocks).values.argmin()])

    def resolution(self, point: Point) -> float:
        """Return the change of Q at a point that may be rounding, which no step is made for.

        Parameters
        ----------
        point : Point

        Returns
        -------
        float
            1e-12 max(1, abs(Q)) unless the objective knows better.
        """
        return NEGLIGIBLE * max(1.0, abs(point.value))

    # Capabilities. None: this objective has none. ------------------------------------------------

    def likelihood(self) -> Likelihood | None:
        """Return the likelihood behind Q, for information criteria."""
        return None

    def hessian_bounds(self) -> HessianBounds | None:
        """Return matrices between which the Hessian lies, for certified curvature."""
        return None

    def response(self) -> PermutableResponse | None:
        """Return the response whose rows can change places, for ``epsilon="auto"``."""
        return None

    def rescaled(self) -> tuple[Objective, Units] | None:
        """Return this objective in other units, and these, where numbers are out of range.

        None where nothing is too small, or too large, to be squared.
        """
        return None

    def own_cache(self, point: Point | None, kind: type[CacheT]) -> CacheT | None:
        """Return what a point carries along, if this objective made it."""
        cache = None if point is None else point.cache
        return cache if isinstance(cache, kind) and cache.owner is self else None
