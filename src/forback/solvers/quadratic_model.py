"""Q near a minimum as a quadratic function: what leaving, and changing places, would cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forback.core.types import Floats, Ints
from forback.solvers.kernels.exchanges import fill_bends, fill_falls
from forback.solvers.linalg import inverse_of
from forback.solvers.products import product

#: A coordinate whose curvature falls below this share of itself, once those inside have adapted, is
#: a copy of them.
COPY_RTOL = 1e-10


@dataclass(frozen=True)
class Outside:
    """Blocks outside a support, as seen from the minimum over it.

    Attributes
    ----------
    slopes : float array of length q, or of shape (q, r)
        The gradient over their coordinates, of each of r functions that share a Hessian.
    cross : float array of shape (m, q)
        The Hessian between the support and them.
    own : float array of length q, or list of float arrays of shape (width, width)
        The Hessian along each coordinate or, where blocks have several, of each block.
    """

    slopes: Floats
    cross: Floats
    own: Floats | Sequence[Floats]

    @property
    def are_single(self) -> bool:
        """Whether every block is one coordinate."""
        return isinstance(self.own, np.ndarray)

    @property
    def columns_of_slopes(self) -> Floats:
        """The slopes of each function, r x q."""
        return np.atleast_2d(self.slopes.T)


@dataclass(frozen=True)
class QuadraticModel:
    """Q at its minimum over a support, up to second order; exact where Q is quadratic.

    Blocks are given by the places of their coordinates in the support.

    Attributes
    ----------
    coef : float array of shape (m, r)
        The coefficients of the support, in r functions that share a Hessian: one, as a rule.
    inverse : float array of shape (m, m)
        The inverse of the Hessian on the support.
    """

    coef: Floats
    inverse: Floats

    @classmethod
    def of(cls, coef: Floats, hessian: Floats) -> QuadraticModel:
        """Build from the Hessian on the support, which may be singular."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            inverse = inverse_of(hessian)
        if not np.isfinite(inverse).all():  # where curvature has all but vanished nothing is known
            inverse = np.zeros_like(hessian)
        return cls(coef.reshape(len(coef), -1), inverse)

    def removal_costs(self, places: Sequence[Ints]) -> Floats:
        """Return how far Q rises when each block leaves and the rest is refitted.

        Infinity where that cannot be told, since curvature has vanished.
        """
        if _all_single(places):
            own = np.concatenate(places)
            squares = np.square(self.coef[own]).sum(axis=1)
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                costs = np.asarray(0.5 * squares / self.inverse.diagonal()[own])
        else:
            every = [0.5 * float((self._pull(at) * self.coef[at]).sum()) for at in places]
            costs = np.array(every)
        return np.where(np.isnan(costs), np.inf, costs)

    def _pull(self, place: Ints) -> Floats:
        """The force that holds a block where it is once the rest has adapted."""
        return np.asarray(inverse_of(self.inverse[place[:, None], place]) @ self.coef[place])

    def removal_order(self, places: Sequence[Ints], most: int) -> list[int]:
        """Return which blocks leave when, so many times, that one leaves that costs least."""
        left, order = self, list[int]()
        while len(order) < most:
            costs = left.removal_costs(places)
            costs[order] = np.inf
            order.append(int(costs.argmin()))
            left = left._without(places[order[-1]])
        return order

    def _without(self, place: Ints) -> QuadraticModel:
        """The model once a block is zero; its rows and columns stay, and mean nothing."""
        across = self.inverse[:, place]
        weight = across @ inverse_of(self.inverse[place[:, None], place])
        inverse = self.inverse - weight @ across.T
        coef = self.coef - weight @ self.coef[place]
        inverse[place, place] = 1.0
        return QuadraticModel(coef, inverse)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def exchange_gains(self, places: Sequence[Ints], outside: Outside) -> Floats:
        """Return how far Q falls when a block gives way to one outside and all are refitted.

        A row for each block that leaves, and a column for each that comes.
        """
        held = product(self.inverse, outside.cross)
        costs = self.removal_costs(places)
        if outside.are_single and _all_single(places):
            return self._single_falls(np.concatenate(places), outside, held, costs)
        return self._block_falls(places, outside, held) - costs[:, None]

    def _single_falls(self, own: Ints, outside: Outside, held: Floats, costs: Floats) -> Floats:
        """The same for coordinates."""
        curvatures = np.asarray(outside.own)
        roots = np.sqrt(self.inverse.diagonal()[own])
        bends = curvatures.copy()
        fill_bends(outside.cross, held, bends)
        falls = np.empty((len(own), len(bends)))
        slopes = np.ascontiguousarray(outside.columns_of_slopes)
        pull = self.coef[own] / roots[:, None]
        least = COPY_RTOL * curvatures
        fill_falls(own, roots, pull, held, slopes, bends, least, costs, falls)
        return falls

    def _block_falls(self, places: Sequence[Ints], outside: Outside, held: Floats) -> Floats:
        """How far Q falls when a block joins after another has left; one width at a time."""
        parts = [np.diag([part]) if np.ndim(part) == 0 else part for part in outside.own]
        widths = np.array([len(part) for part in parts])
        begins = np.cumsum(widths) - widths
        falls = np.empty((len(places), len(parts)))
        all_slopes = outside.columns_of_slopes.T
        for width in np.unique(widths):
            which = np.flatnonzero(widths == width)
            columns = begins[which][:, None] + np.arange(width)
            own = np.stack([parts[block] for block in which])
            crossed = outside.cross[:, columns].transpose(1, 0, 2)
            bends = own - crossed.transpose(0, 2, 1) @ held[:, columns].transpose(1, 0, 2)
            # What is a copy of something inside has a gradient of rounding, and no say.
            diagonal = np.arange(width)
            bends[:, diagonal, diagonal] += COPY_RTOL * own[:, diagonal, diagonal] + 1e-300
            for row, place in enumerate(places):
                freed = held[place][:, columns].transpose(1, 0, 2)
                slopes = all_slopes[columns] - freed.transpose(0, 2, 1) @ self._pull(place)
                across = inverse_of(self.inverse[place[:, None], place]) @ freed
                wider = bends + freed.transpose(0, 2, 1) @ across
                moves = np.linalg.solve(wider, slopes)
                falls[row, which] = 0.5 * (slopes * moves).sum(axis=(1, 2))
        return falls


def _all_single(places: Sequence[Ints]) -> bool:
    return all(len(place) == 1 for place in places)
