"""Removals and exchanges of a quadratic function, against refits."""

from itertools import permutations

import numpy as np
import pytest

from forback.solvers.quadratic_model import Outside, QuadraticModel


class Quadratic:
    """Q(b) = b'Hb / 2 - c'b, which least squares, solved anew each time, minimises."""

    def __init__(self, roots, c):
        self.H, self.c = roots.T @ roots, c

    @classmethod
    def draw(cls, rng, dim, rank=None):
        roots = rng.normal(size=(rank or 2 * dim, dim)) * 10.0 ** rng.uniform(-2, 2, size=dim)
        return cls(roots, roots.T @ rng.normal(size=len(roots)))

    def fit(self, support):
        """The shortest minimiser on a support, once its Hessian has a unit diagonal."""
        support = np.asarray(support, dtype=np.intp)
        size = np.sqrt(self.H.diagonal()[support])
        size[size == 0.0] = 1.0
        H = self.H[np.ix_(support, support)] / np.outer(size, size)
        return np.linalg.lstsq(H, self.c[support] / size, rcond=1e-12)[0] / size

    def value(self, support):
        return -0.5 * float(self.c[np.asarray(support, dtype=np.intp)] @ self.fit(support))

    def model(self, support):
        return QuadraticModel.of(self.fit(support), self.H[np.ix_(support, support)])

    def outside(self, support, blocks):
        columns = np.concatenate(blocks)
        slopes = self.H[np.ix_(columns, support)] @ self.fit(support) - self.c[columns]
        own = [self.H[np.ix_(block, block)] for block in blocks]
        if all(len(block) == 1 for block in blocks):
            own = self.H.diagonal()[columns]
        return Outside(slopes, self.H[np.ix_(support, columns)], own)


def blocks_of(widths, begin=0):
    ends = begin + np.cumsum(widths)
    return [np.arange(end - width, end) for end, width in zip(ends, widths, strict=True)]


#: Widths of the blocks inside and outside.
SHAPES = {
    "single": ([1, 1, 1, 1], [1, 1, 1, 1, 1]),
    "one": ([1], [1]),
    "pairs": ([2, 2], [2, 2, 2]),
    "mixed": ([1, 3, 2], [2, 1, 3, 1]),
    "blocks for singles": ([2, 2], [1, 1, 1]),
    "singles for blocks": ([1, 1, 1], [2, 2]),
    "many": ([1] * 70, [1, 1]),
}


def assert_exchanges(Q, inside, outside, rtol=1e-7):
    support = np.concatenate(inside)
    whole = Q.value(support)
    found = Q.model(support).exchange_gains(inside, Q.outside(support, outside))
    expected = [
        [whole - Q.value(np.union1d(np.setdiff1d(support, out), into)) for into in outside]
        for out in inside
    ]
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=rtol * abs(whole))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(5))
def test_exchanges_are_those_of_refits(shape, seed):
    widths_inside, widths_outside = SHAPES[shape]
    inside = blocks_of(widths_inside)
    outside = blocks_of(widths_outside, sum(widths_inside))
    Q = Quadratic.draw(np.random.default_rng(seed), sum(widths_inside) + sum(widths_outside))
    assert_exchanges(Q, inside, outside)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(5))
def test_removals_are_those_of_refits(shape, seed):
    inside = blocks_of(SHAPES[shape][0])
    support = np.concatenate(inside)
    Q = Quadratic.draw(np.random.default_rng(seed), len(support))
    whole = Q.value(support)
    refits = [Q.value(np.setdiff1d(support, block)) - whole for block in inside]
    np.testing.assert_allclose(Q.model(support).removal_costs(inside), refits, rtol=1e-7)


@pytest.mark.parametrize("widths", [[1] * 8, [2, 1, 3, 2, 1], [2] * 5])
@pytest.mark.parametrize("seed", range(5))
def test_blocks_leave_in_the_order_of_refits(widths, seed):
    inside = blocks_of(widths)
    Q = Quadratic.draw(np.random.default_rng(seed), sum(widths))
    left, expected = list(range(len(inside))), []
    while len(left) > 1:
        rest = {out: [b for b in left if b != out] for out in left}
        values = {out: Q.value(np.concatenate([inside[b] for b in rest[out]])) for out in left}
        expected.append(min(values, key=values.get))
        left.remove(expected[-1])
    model = Q.model(np.concatenate(inside))
    assert model.removal_order(inside, len(inside) - 1) == expected
    assert sorted(model.removal_order(inside, len(inside))) == list(range(len(inside)))


def test_blocks_that_are_held_in_one_model_may_have_places_in_any_order():
    """Some of the support, such as an intercept, is in no block."""
    Q = Quadratic.draw(np.random.default_rng(1), 9)
    for order in permutations([[4], [0], [2]]):
        inside = [np.array(block) for block in order]
        support = np.arange(6)
        whole = Q.value(support)
        found = Q.model(support).exchange_gains(inside, Q.outside(support, blocks_of([1, 2], 6)))
        expected = [
            [
                whole - Q.value(np.union1d(np.setdiff1d(support, out), into))
                for into in blocks_of([1, 2], 6)
            ]
            for out in inside
        ]
        np.testing.assert_allclose(found, expected, atol=1e-8 * abs(whole))


@pytest.mark.parametrize("shape", ["single", "pairs", "mixed"])
@pytest.mark.parametrize("seed", range(4))
def test_fewer_rows_than_columns_outside(shape, seed):
    """What is inside has a regular Hessian, all together a singular one."""
    widths_inside, widths_outside = SHAPES[shape]
    dim = sum(widths_inside) + sum(widths_outside)
    rank = sum(widths_inside) + max(widths_outside) + 1
    Q = Quadratic.draw(np.random.default_rng(seed), dim, rank)
    inside = blocks_of(widths_inside)
    assert_exchanges(Q, inside, blocks_of(widths_outside, sum(widths_inside)), rtol=1e-6)


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_a_copy_of_what_is_inside_takes_its_place_and_gains_nothing(width, seed):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(20, 4 * width))
    roots[:, 2 * width : 3 * width] = 3.0 * roots[:, :width]  # block 2 is block 0
    Q = Quadratic(roots, roots.T @ rng.normal(size=20))
    inside, outside = blocks_of([width] * 2), blocks_of([width] * 2, 2 * width)
    assert_exchanges(Q, inside, outside, rtol=1e-6)
    support = np.concatenate(inside)
    gains = Q.model(support).exchange_gains(inside, Q.outside(support, outside))
    assert gains[0, 0] == pytest.approx(0.0, abs=1e-6 * abs(Q.value(support)))
    costs = Q.model(support).removal_costs(inside)
    assert gains[1, 0] == pytest.approx(-costs[1], rel=1e-5)


@pytest.mark.parametrize("width", [1, 2])
def test_copies_inside_cost_nothing(width):
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(20, 5 * width))
    roots[:, width : 2 * width] = roots[:, :width]
    Q = Quadratic(roots, roots.T @ rng.normal(size=20))
    inside, outside = blocks_of([width] * 3), blocks_of([width] * 2, 3 * width)
    assert_exchanges(Q, inside, outside, rtol=1e-5)
    support = np.concatenate(inside)
    model = Q.model(support)
    costs = model.removal_costs(inside)
    assert np.all(costs[:2] <= 1e-9 * abs(Q.value(support)))
    assert model.removal_order(inside, 2) in ([0, 1], [0, 2], [1, 0], [1, 2])
    assert len(set(model.removal_order(inside, 3))) == 3


@pytest.mark.parametrize("width", [1, 2, 24])
@pytest.mark.parametrize("place", ["inside", "outside", "both"])
def test_columns_of_zeros(place, width):
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(8 * width + 10, 5 * width))
    if place in ("inside", "both"):
        roots[:, width : 2 * width] = 0.0
    if place in ("outside", "both"):
        roots[:, 3 * width : 4 * width] = 0.0
    Q = Quadratic(roots, roots.T @ rng.normal(size=len(roots)))
    assert_exchanges(Q, blocks_of([width] * 3), blocks_of([width] * 2, 3 * width))


def test_nothing_inside_a_block_and_nothing_outside():
    Q = Quadratic.draw(np.random.default_rng(0), 4)
    model = Q.model(np.arange(4))
    nothing = Outside(np.zeros(0), np.zeros((4, 0)), np.zeros(0))
    assert model.exchange_gains(blocks_of([1, 1]), nothing).shape == (2, 0)
    assert model.removal_order(blocks_of([1, 1]), 0) == []
