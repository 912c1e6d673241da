"""The synthetic chain: structure, and the law that it is drawn from."""

import numpy as np
import pytest

from forback.datasets import make_chain
from forback.datasets.synthetic.chain import N_VALUES, _draw_label


@pytest.fixture(scope="module")
def chain():
    return make_chain(40_000, random_state=5)


def test_indicators_are_those_of_the_categories():
    chain = make_chain()
    assert chain.X.shape == (800, 14)
    assert chain.X.dtype == np.uint8
    assert chain.categories.shape == (800, 4)
    assert set(np.unique(chain.y)) == {1, 2, 3, 4}
    assert chain.groups.tolist() == [0] * 2 + [1] * 3 + [2] * 4 + [3] * 5
    for feature, n_values in enumerate(N_VALUES):
        block = chain.X[:, chain.groups == feature]
        assert block.shape[1] == n_values
        values = chain.categories[:, feature]
        np.testing.assert_array_equal(block.sum(axis=1), values > 0)
        np.testing.assert_array_equal(block @ np.arange(1, n_values + 1), values)


@pytest.mark.parametrize("n_steps", [1, 2, 7, 800])
def test_lengths_add_up(n_steps):
    for seed in range(20):
        chain = make_chain(n_steps, random_state=seed)
        assert chain.lengths.sum() == n_steps == len(chain.y)
        assert (chain.lengths > 0).all()


def test_same_seed_same_chain():
    one, two = make_chain(random_state=3), make_chain(random_state=np.random.default_rng(3))
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.y, two.y)
    np.testing.assert_array_equal(one.lengths, two.lengths)
    assert (make_chain(random_state=4).y != one.y).any()


def test_global_random_state_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    make_chain(50, random_state=None)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_features_are_uniform():
    # Ends of sentences depend on the features a little; those of the first rows of a sentence not.
    chain = make_chain(40_000, random_state=1)
    for feature, n_values in enumerate(N_VALUES):
        shares = np.bincount(chain.categories[:, feature], minlength=n_values + 1) / 40_000
        np.testing.assert_allclose(shares, 1 / (n_values + 1), atol=0.02)


def drawn(weight, previous, n=4000):
    uniforms = (np.arange(n) + 0.5) / n
    labels = [_draw_label(np.array(weight, dtype=float), previous, u) for u in uniforms]
    return np.bincount(labels, minlength=5) / n


def test_weights_of_the_next_label():
    # weights 0, 2, 10, 100, 0 by the features; after label 1 that keeps 100 / 10, the end has 10
    np.testing.assert_allclose(
        drawn([0, 2, 10, 100, 0], previous=1), np.array([10, 10, 10, 100, 0]) / 130, atol=1e-3
    )
    # after label 4: 4 keeps 10, the end has 100 / 2
    np.testing.assert_allclose(
        drawn([0, 2, 10, 100, 0], previous=4), np.array([50, 2, 10, 100, 10]) / 172, atol=1e-3
    )
    # after an end there is none
    np.testing.assert_allclose(
        drawn([0, 2, 10, 100, 0], previous=0), np.array([0, 2, 10, 100, 0]) / 112, atol=1e-3
    )


@pytest.mark.parametrize("before", range(5))
def test_where_no_feature_speaks_the_last_label_is_left(before):
    np.testing.assert_array_equal(drawn([0, 0, 0, 0, 0], before, n=10), [0, 0, 0, 0, 1])


def test_labels_follow_the_features(chain):
    starts = np.zeros(len(chain.y), dtype=bool)
    starts[np.cumsum(chain.lengths)[:-1]] = True  # the first word of all is drawn otherwise
    values = chain.categories[starts]
    labels = chain.y[starts]
    spoken = np.stack([(values == j).any(axis=1) for j in (1, 2, 3, 4)], axis=1)
    # After an end, only labels that a feature names can follow, unless none is named.
    named = spoken.any(axis=1)
    assert spoken[named, labels[named] - 1].all()
    assert (labels[~named] == 4).all()
    # Label 4 has a thousand times the weight of label 1.
    both = spoken[:, 3] & ~spoken[:, 2] & ~spoken[:, 1] & spoken[:, 0]
    assert (labels[both] == 4).mean() > 0.98


def test_labels_stay_more_often_than_their_features_say(chain):
    same = chain.y[1:] == chain.y[:-1]
    inner = np.ones(len(same), dtype=bool)
    inner[np.cumsum(chain.lengths)[:-1] - 1] = False
    unnamed = ~(chain.categories[1:] == chain.y[:-1, None]).any(axis=1)
    strong = (chain.categories[1:] == 4).sum(axis=1) == 1  # the largest weight is 1000
    rows = inner & unnamed & strong & (chain.y[:-1] < 4)
    # 100 of 1000 + 100 + what the other features add
    assert 0.05 < same[rows].mean() < 0.1


def test_bad_values_are_named():
    with pytest.raises(ValueError, match="n_steps must be at least 1, got 0"):
        make_chain(0)
    with pytest.raises(TypeError, match="n_steps must be an integer"):
        make_chain(10.0)
    with pytest.raises(TypeError, match="random_state must be"):
        make_chain(10, random_state="x")
