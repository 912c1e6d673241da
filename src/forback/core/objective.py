"""Objective: what the loop may ask of a smooth convex Q."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from forback.core.blocks import Blocks
from forback.core.point import Point
from forback.core.types import Floats, Ints


class ObjectiveError(ValueError):
    """A function that somebody wrote is not what an objective must be, such as convex.

    Where it came to light during a run, the message says at which step, and `path` is the path so
    far.
    """

    path: Any = None


@runtime_checkable
class Objective(Protocol):
    """A smooth convex Q over `dim` coordinates, as the loop sees it.

    Coordinates `0 .. n_candidates - 1` may be chosen; the rest (an intercept, transitions, a
    diagonal) are always in. Normalisation, everywhere: Q is the weighted mean of the loss plus
    ``1/2 * sum_j ridge_j * beta_j**2``, weights divided by their sum, terms free of the
    coefficients dropped. A `Point` that has lost its cache is still a valid argument.

    An objective may memoise facts about its data, never the state of a run: two interleaved runs
    on one objective give the same paths as two separate ones. Further members are optional.
    ``resolution(point)`` is the change of Q at a point that may be rounding, which nothing is made
    of; 1e-12 max(1, |Q|) if absent. ``infimum`` is a number that Q is nowhere below: a run ends
    where it is reached. ``rescaled()`` is the same objective in other units, with these units,
    where its numbers are too small, or too large, to be squared; else None.
    ``increase_after_refit(point, blocks)`` gives removal costs after refitting in closed form.
    ``information(point)`` returns ``(loglik, n, df)`` for information
    criteria. ``hessian_range()`` returns two matrices between which the Hessian lies everywhere
    (None for no upper one), for certified curvature. ``permuted(order, point)`` is the same
    objective with the rows of its response, and what the point predicts for them, in another
    order, for thresholds from noise, and ``n_rows`` the number of rows. ``feature_names``,
    ``columns`` and ``candidate_names`` tell what the candidates are (see
    `forback.candidates.make_candidates`), and ``default_by = "group"`` that the candidates of a
    column belong together: they are one block unless somebody asks for single ones.
    ``screened_gradient(point)``, ``screened_decrease(point, blocks)`` and
    ``screened_increase(point, blocks, limit)`` are quicker twins for whoever wants the best score
    only: they return the scores, exact wherever they may be the best (and below `limit`) and a
    bound on the safe side elsewhere, and how many are exact.
    """

    @property
    def dim(self) -> int:
        """The number of all coordinates."""

    @property
    def n_candidates(self) -> int:
        """How many coordinates, counted from 0, may be chosen."""

    def minimise(self, support: Ints, start: Point | None = None) -> Point:
        """beta-hat(F): the minimiser of Q over `support` (sorted), warm-started at `start`."""

    def gradient(self, point: Point) -> Floats:
        """The gradient of Q at `point`, over all `dim` coordinates."""

    def decrease_if_added(self, point: Point, blocks: Blocks) -> Floats:
        """For each block, how far Q falls when its coordinates alone are optimised."""

    def increase_if_removed(self, point: Point, blocks: Blocks) -> Floats:
        """For each block, how far Q rises when its coordinates are set to zero, no refit."""

    def value_and_gradient(self, beta: Floats) -> tuple[float, Floats]:
        """Q and its gradient at any dense vector of length `dim`."""
