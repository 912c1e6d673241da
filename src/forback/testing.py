"""The contract of an objective, as a check that anybody can run on their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from forback.core.adapter import as_objective
from forback.core.blocks import Blocks
from forback.core.objective import Objective, Scores
from forback.core.point import Point
from forback.core.types import Floats, Ints

__all__ = ["check_objective"]

#: Of how many blocks exchanges are compared with refits, at most.
MOST_INSIDE, MOST_OUTSIDE = 3, 4


def check_objective(
    objective: Objective, *, seed: int = 0, supports: int = 3, optimality: float = 1e-6
) -> None:
    """Raise AssertionError where `objective` breaks a promise of `forback.protocols.Objective`.

    Checked on a few random supports: the gradient against finite differences of the value; that
    `minimise` leaves no gradient on its support (relative to the gradient before it) and does not
    depend on where it starts; every score against brute force, for single coordinates and for
    blocks; that scores of which only the best is wanted know it, and that guesses are numbers; that
    a point without its cache gives the same answers; and that asking changes nothing.

    Parameters
    ----------
    objective : Objective
        What to check; small is best, since everything is done by brute force.
    seed : int
        For the choice of supports and directions.
    supports : int
        How many random supports to try.
    optimality : float
        What is left of the gradient after `minimise`, relatively: 1e-6 suits first-order methods.

    Examples
    --------
    >>> import numpy as np
    >>> from forback.objectives import LeastSquares
    >>> from forback.testing import check_objective
    >>> X = np.random.default_rng(0).normal(size=(30, 5))
    >>> check_objective(LeastSquares(X, X[:, 0] + 1.0, fit_intercept=True))
    """
    contract = _Contract.of(as_objective(objective))
    rng = np.random.default_rng(seed)
    contract.check_resolution()
    for _ in range(supports):
        n_candidates = contract.objective.n_candidates
        size = int(rng.integers(0, min(n_candidates, 4) + 1))
        chosen = np.sort(rng.choice(n_candidates, size, replace=False))
        support = np.concatenate([chosen, contract.always])
        point = contract.objective.minimise(support)
        contract.check_point(point, support, optimality)
        contract.check_gradient(point, rng)
        contract.check_scores(point, chosen)
        contract.check_best(point, chosen)
        contract.check_exchanges(point, chosen)
        contract.check_removals(point, chosen)
        contract.check_purity(point, chosen)


@dataclass(frozen=True)
class _Contract:
    """The promises of an objective, and a place whose Q and gradient tell what is small.

    The place is zero or, if Q is infinite there, the fit of what is always in.
    """

    objective: Objective
    always: Ints
    value: float  #: Q at the place
    steepest: float  #: the largest |gradient| there
    length: float | None  #: a step small against this is small; None: against 1 and beta

    @classmethod
    def of(cls, objective: Objective) -> _Contract:
        assert 0 <= objective.n_candidates <= objective.dim, "n_candidates must lie in 0 .. dim"
        always = np.arange(objective.n_candidates, objective.dim)
        value, gradient = objective.value_and_gradient(np.zeros(objective.dim))
        length = None
        if not np.isfinite(value):
            start = objective.minimise(always).dense(objective.dim)
            value, gradient = objective.value_and_gradient(start)
            length = float(np.abs(start[start != 0.0]).min())
        return cls(objective, always, value, float(np.abs(gradient).max(initial=0.0)), length)

    def rounding(self, value: float) -> float:
        """What two ways to the same Q may differ by."""
        return 1e-12 * max(abs(value), abs(self.value))

    def check_resolution(self) -> None:
        start = self.objective.minimise(self.always)
        fall = start.value - self.objective.minimise(np.arange(self.objective.dim), start).value
        coarse = self.objective.resolution(start)
        assert fall == 0.0 or fall > 1e4 * coarse, (
            f"all features together lower Q by {fall}, which is little against its resolution, "
            f"{coarse}: select ignores gains below it; give the objective a method "
            "resolution(point)"
        )

    def check_point(self, point: Point, support: Ints, optimality: float) -> None:
        given = "minimise must return the support it was given"
        assert np.array_equal(point.support, support), given
        value, gradient = self.objective.value_and_gradient(point.dense(self.objective.dim))
        rounding = self.rounding(value)
        _close(point.value, value, "the value of a point must be Q there", rounding)
        left = np.abs(gradient[support]).max(initial=0.0)
        allowed = optimality * self.steepest
        assert left <= allowed, f"minimise leaves a gradient of {left}, more than {allowed}"
        again = self.objective.minimise(support, Point(support, 1.5 * point.coef, 0.0))
        allowed = rounding + 10 * optimality**2 * abs(self.value - value)
        _close(again.value, point.value, "minimise must not depend on its start", allowed)

    def check_gradient(self, point: Point, rng: np.random.Generator) -> None:
        dim = self.objective.dim
        beta = point.dense(dim)
        gradient = self.objective.gradient(point)
        assert gradient.shape == (dim,), "gradient must have length dim"
        value, other = self.objective.value_and_gradient(beta)
        _close(gradient, other, "gradient against value_and_gradient", 1e-9 * self.steepest)
        length = self.length or max(1.0, float(np.linalg.norm(beta)))
        self.check_slopes(beta, length, rng)
        # At a minimum much of the gradient is zero, and its sign or a factor would not show.
        move = rng.normal(size=dim)
        move *= 0.1 * length / np.linalg.norm(move)
        # Not too far: where Q has risen by more than this it is steep and bent.
        high = 1.0 + abs(self.value) + abs(value)
        while not self.objective.value_and_gradient(beta + move)[0] - value <= high:
            move *= 0.5
        self.check_slopes(beta + move, length, rng)

    def check_slopes(self, beta: Floats, length: float, rng: np.random.Generator) -> None:
        """Compare the gradient with the value, along random directions, then coordinates.

        Random directions are quick; only where one of them disagrees is the coordinate looked for.
        """
        dim = self.objective.dim
        value, gradient = self.objective.value_and_gradient(beta)
        scale = max(self.steepest, float(np.abs(gradient).max()))

        def change(step: Floats) -> float:
            """Return by how much Q changes from one step behind to one step ahead."""
            ahead = self.objective.value_and_gradient(beta + step)[0]
            return ahead - self.objective.value_and_gradient(beta - step)[0]

        def excess(step: Floats) -> float:
            """Return by how much value and gradient disagree along a step, less what is allowed."""
            allowed = 1e-4 * scale * float(np.linalg.norm(step)) + 0.1 * self.rounding(value)
            return float(abs(change(step) - 2.0 * gradient @ step) - allowed)

        for _ in range(3):
            direction = rng.normal(size=dim)
            direction *= 1e-5 * length / np.linalg.norm(direction)
            if excess(direction) > 0.0:
                steps = 1e-5 * length * np.eye(dim)
                worst = int(np.argmax([excess(step) for step in steps]))
                raise AssertionError(
                    f"gradient against a finite difference: coordinate {worst} is "
                    f"{gradient[worst]:.6g}, but Q changes by "
                    f"{change(steps[worst]) / (2e-5 * length):.6g} per unit"
                )

    def check_scores(self, point: Point, chosen: Ints) -> None:
        """Every score must be what its default in the base class, the slow twin, says."""
        own = self.objective
        outside = np.setdiff1d(np.arange(own.n_candidates), chosen)
        for score, slow_twin, coordinates, rtol in (
            (own.gradient_norms, Objective.gradient_norms, outside, 1e-9),
            (own.decrease_if_added, Objective.decrease_if_added, outside, 1e-5),
            (own.increase_if_removed, Objective.increase_if_removed, chosen, 1e-7),
            (own.increase_after_refit, Objective.increase_after_refit, chosen, 1e-5),
        ):
            name = slow_twin.__name__
            for blocks in _partitions(coordinates, self.always):
                found = score(point, blocks)
                kind = type(found).__name__
                assert isinstance(found, Scores), f"{name} must return Scores, got {kind}"
                assert found.n_exact == len(blocks), f"{name} must be exact for all blocks"
                slow = slow_twin(own, point, blocks)
                what = f"{name} against brute force"
                _close_scores(found, slow, what, rtol, self.rounding(point.value))

    def check_best(self, point: Point, chosen: Ints) -> None:
        """Scores of which only the best is wanted must know the best one."""
        everything = Blocks.singles(np.arange(self.objective.n_candidates), self.always)
        outside = np.setdiff1d(everything.coordinates, chosen)
        rounding = self.rounding(point.value)
        for score, name, rtol, atol in (
            (self.objective.decrease_if_added, "decrease_if_added", 1e-5, rounding),
            (self.objective.gradient_norms, "gradient_norms", 0.0, 1e-9 * self.steepest),
        ):
            best = score(point, everything).values[outside].max(initial=0.0)
            found = score(point, everything, only_best=True).values[outside].max(initial=0.0)
            _close(found, best, f"the best of {name}", rtol * best + atol)
        if len(chosen):
            inside = Blocks.singles(chosen, self.always)
            for cost, name, rtol in (
                (self.objective.increase_if_removed, "increase_if_removed", 1e-7),
                (self.objective.increase_after_refit, "increase_after_refit", 1e-5),
            ):
                least = cost(point, inside).values.min()
                found = cost(point, inside, below=np.inf).values.min()
                _close(found, least, f"the least of {name}", rtol * abs(least) + rounding)

    def check_exchanges(self, point: Point, chosen: Ints) -> None:
        """What an exchange gains must be what refits say; a guess need only be a number."""
        own = self.objective
        outside = np.setdiff1d(np.arange(own.n_candidates), chosen)
        pairs = product(_partitions(chosen, self.always), _partitions(outside, self.always))
        for leaving, coming in pairs:
            inside = leaving.take(range(min(len(leaving), MOST_INSIDE)))
            others = coming.take(range(min(len(coming), MOST_OUTSIDE)))
            slow = Objective.decrease_if_exchanged(own, point, inside, others)
            found = own.decrease_if_exchanged(point, inside, others)
            what = "decrease_if_exchanged"
            assert found.n_exact == slow.n_exact, f"{what} must be exact for all pairs"
            rounding = self.rounding(point.value)
            _close_scores(found, slow, f"{what} against refits", 1e-5, rounding)
            for given in (point, point.without_cache()):
                guess = own.decrease_if_exchanged(given, inside, others, estimate=True)
                shape = f"{what} must have a row for each block inside, a column for each outside"
                assert guess.values.shape == slow.values.shape, shape
                assert not np.isnan(guess.values).any(), f"{what} must estimate by numbers"
                if guess.n_exact == guess.values.size:
                    _close_scores(guess, slow, f"{what} that is called exact", 1e-5, rounding)

    def check_removals(self, point: Point, chosen: Ints) -> None:
        """What leaves first must be blocks of those given, each once."""
        for inside in _partitions(chosen, self.always):
            costs = self.objective.increase_after_refit(point, inside).values
            for most in (1, len(inside)):
                places = np.asarray(self.objective.cheapest_removals(point, inside, most))
                named = f"cheapest_removals must name 1 to {most} of {len(inside)} blocks once"
                listed = places.tolist()
                assert 1 <= len(set(listed)) == len(listed) <= most, f"{named}, got {listed}"
                assert set(listed) <= set(range(len(inside))), f"{named}, got {listed}"
                if self.objective.is_quadratic:
                    allowed = 1e-5 * costs.max() + self.rounding(point.value)
                    _close(costs[listed[0]], costs.min(), "the cheapest removal", allowed)

    def check_purity(self, point: Point, chosen: Ints) -> None:
        """A point needs no cache, and asking changes nothing."""
        bare = point.without_cache()
        full = self.objective.gradient(point)
        try:
            rebuilt = self.objective.gradient(bare)
        except Exception as error:
            raise AssertionError("gradient(point) must do without point.cache") from error
        _close(rebuilt, full, "the gradient of a point without cache", 1e-9 * self.steepest)
        singles = Blocks.singles(np.arange(self.objective.n_candidates), self.always)
        before = np.concatenate([point.support, point.coef])
        first = self.objective.decrease_if_added(point, singles).values
        self.objective.minimise(self.always)
        again = self.objective.decrease_if_added(point, singles).values
        assert np.array_equal(first, again), "scores must not depend on what was asked before"
        after = np.concatenate([point.support, point.coef])
        assert np.array_equal(before, after), "scoring must not change the point"
        if len(chosen):
            inside = Blocks.singles(chosen, self.always)
            known = self.objective.increase_if_removed(point, inside)
            alone = self.objective.increase_if_removed(bare, inside)
            _close_scores(alone, known, "removal scores of a point without cache", 1e-7, 0.0)


def _partitions(coordinates: Ints, always: Ints) -> Iterator[Blocks]:
    """The coordinates one by one, and in blocks of two or three."""
    if len(coordinates):
        yield Blocks.singles(coordinates, always)
    if len(coordinates) > 2:
        yield Blocks.of(np.array_split(coordinates, len(coordinates) // 2), always)


def _close_scores(found: Scores, expected: Scores, what: str, rtol: float, atol: float) -> None:
    # Without a block, a point may be outside the domain of Q, where both are infinite.
    finite = expected.values[np.isfinite(expected.values)]
    allowed = rtol * np.abs(finite).max(initial=0.0) + atol
    _close(found.values, expected.values, what, allowed)


def _close(found: Floats | float, expected: Floats | float, what: str, allowed: float) -> None:
    np.testing.assert_allclose(
        found, expected, rtol=0.0, atol=allowed, equal_nan=False, err_msg=what
    )
