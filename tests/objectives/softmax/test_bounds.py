"""Bounds of a softmax regression hold, and steps are those without them."""

import numpy as np
import pytest

from forback import select
from forback.core.blocks import Blocks
from forback.objectives import Multinomial
from forback.objectives.softmax import bounds
from forback.selection.ties import highest, lowest


def problem(seed, *, n=80, p=12):
    """Columns of sizes that differ by powers of ten, up to four classes, weights, ridge or none."""
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 5))
    X = rng.normal(size=(n, p))
    scores = X[:, :4] @ rng.normal(size=(4, n_classes))
    y = np.argmax(scores + rng.gumbel(size=(n, n_classes)), axis=1)
    size = 10.0 ** rng.uniform(-2, 2, p)
    return Multinomial(
        X * size,
        y,
        ridge=rng.choice([0.0, 1e-3, 0.1]) * size**2,
        fit_intercept=bool(rng.integers(2)),
        sample_weight=rng.integers(1, 5, n),
    )


def blocks_of(objective, sets):
    n_classes = len(objective.classes)
    members = [(np.asarray(s)[:, None] * n_classes + np.arange(n_classes)).ravel() for s in sets]
    return Blocks.of(members, np.arange(objective.n_candidates, objective.dim))


class Literal(Multinomial):
    """The same without bounds."""

    def decrease_if_added(self, point, blocks, *, only_best=False):
        return super().decrease_if_added(point, blocks)

    def increase_after_refit(self, point, blocks, *, below=None):
        return super().increase_after_refit(point, blocks)


@pytest.mark.parametrize("seed", range(60))
def test_bounds_hold(seed):
    objective = problem(seed)
    rng = np.random.default_rng(seed)
    columns = np.sort(rng.choice(12, int(rng.integers(1, 6)), replace=False))
    inside = blocks_of(objective, np.array_split(columns, max(1, len(columns) - seed % 2)))
    point = objective.minimise(np.concatenate([inside.coordinates, inside.always]))
    off = objective.resolution(point)
    predictions = objective._predictions(point)
    refits = objective.increase_after_refit(point, inside).values
    least = bounds.least_costs(objective.data, predictions, point, inside)
    assert least is None or (least <= refits + off).all()
    for below in (0.5 * refits.min(), np.inf):
        found = objective.increase_after_refit(point, inside, below=below).values
        assert lowest(found) == lowest(refits) or found.min() >= below
    outside = blocks_of(objective, np.array_split(np.setdiff1d(np.arange(12), columns), 4))
    falls = objective.decrease_if_added(point, outside).values
    best = objective.decrease_if_added(point, outside, only_best=True).values
    assert highest(best) == highest(falls)
    assert best.max() == pytest.approx(falls.max(), rel=1e-12)
    assert (best >= falls - off).all()


@pytest.mark.parametrize("options", [{"backward": "refit"}, {"method": "foba-obj"}])
def test_steps_are_those_without_bounds(options):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 40))
    y = np.argmax(X[:, :12].reshape(300, 4, 3).sum(axis=1) + rng.gumbel(size=(300, 3)), axis=1)
    groups = np.repeat(np.arange(20), 2)
    paths = [
        select(make(X, y, ridge=1e-3), k=6, groups=groups, **options)
        for make in (Multinomial, Literal)
    ]
    steps = [[(s.action, s.feature, s.score) for s in path.steps] for path in paths]
    assert steps[0] == steps[1]
    if "method" in options:
        assert all(step.solved < 15 for step in paths[0].steps)


def test_single_coefficients_have_no_bounds():
    objective = problem(3)
    singles = Blocks.singles(np.arange(5), np.arange(objective.n_candidates, objective.dim))
    point = objective.minimise(np.concatenate([singles.coordinates, singles.always]))
    assert bounds.least_costs(objective.data, objective._predictions(point), point, singles) is None
    exact = objective.increase_after_refit(point, singles).values
    np.testing.assert_array_equal(
        objective.increase_after_refit(point, singles, below=np.inf).values, exact
    )
