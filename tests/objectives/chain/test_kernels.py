"""Recursions along chains against listing every sequence of labels, and against each other."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from forback.objectives.chain.inference import (
    Inference,
    Sequences,
    Weights,
    viterbi,
)
from forback.objectives.chain.layout import Layout
from forback.objectives.chain.lines import line, log_ratio
from reference.chain import Listing, log_z_by_columns

SHAPES = [  # labels, lengths
    (2, [1]),
    (2, [6]),
    (3, [5, 1, 2, 1]),
    (3, [1, 1, 1, 6]),
    (8, [4, 1]),
    (9, [3, 2]),
    (17, [2, 1]),
]


def make_data(lengths, width=3, kind="real", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(sum(lengths), width))
    if kind != "real":
        X = (X > 0.3).astype(float)
    return sparse.csr_array(X) if kind == "csr" else X


def make_weights(width, k, seed=0, size=1.0):
    rng = np.random.default_rng(seed + 100)
    shapes = ((width, k), (k, k), (k,), (k,), (k,))
    return Weights(*(size * rng.normal(size=shape) for shape in shapes))


def as_vector(weights):
    return np.concatenate([np.ravel(part) for part in vars(weights).values()])


def split(X, lengths):
    dense = X.toarray() if sparse.issparse(X) else X
    return np.split(dense, np.cumsum(lengths)[:-1])


def both(sequences, weights):
    """Inference by potentials, and by logarithms where potentials would do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("forback.objectives.chain.inference.MAX_LOG_SPREAD", -1.0)
        by_logarithms = Inference(sequences, weights)
    by_potentials = Inference(sequences, weights)
    assert by_potentials.is_scaled
    assert not by_logarithms.is_scaled
    return by_potentials, by_logarithms


def assert_same_messages(one, other, tolerance):
    assert one.log_z == pytest.approx(other.log_z, rel=tolerance, abs=tolerance)
    np.testing.assert_allclose(one.marginals(), other.marginals(), atol=tolerance)
    for ours, theirs in zip(one.counts(), other.counts(), strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", ["real", "binary", "csr"])
@pytest.mark.parametrize(("k", "lengths"), SHAPES)
def test_both_ways_agree_with_listing_everything(k, lengths, kind):
    X, weights = make_data(lengths, kind=kind), make_weights(3, k)
    sequences = Sequences.of(X, np.array(lengths))
    features = Layout(sequences, k, start_end=True)
    listing, beta = Listing(split(X, lengths), k), as_vector(weights)
    n = sum(lengths)
    for found in both(sequences, weights):
        assert found.log_z == pytest.approx(listing.log_z(beta), rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(found.marginals(), listing.marginals(beta), atol=1e-12)
        expected = n * features.all.means(found.counts())
        np.testing.assert_allclose(expected, listing.expected(beta), rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(viterbi(sequences, weights), listing.viterbi(beta))


def test_counts_of_given_labels_are_those_of_listing():
    lengths = [3, 1, 2]
    X, labels = make_data(lengths), np.array([0, 1, 1, 2, 0, 2])
    sequences = Sequences.of(X, np.array(lengths))
    observed = Layout(sequences, 3, True).all.means(sequences.counts(labels, 3)) * 6
    expected = 0.0
    for part, own in zip(split(X, lengths), np.split(labels, [3, 4]), strict=True):
        listing = Listing([part], 3)
        expected += listing.counts[0][listing.all[0].index(tuple(own))]
    np.testing.assert_allclose(observed, expected, rtol=1e-13)


@pytest.mark.parametrize("k", [2, 3, 7, 8, 9, 16, 20])
@pytest.mark.parametrize("kind", ["real", "binary", "csr"])
def test_scaled_equals_logs_on_longer_chains(k, kind):
    lengths = [1, 200, 37, 1, 8, 55]
    sequences = Sequences.of(make_data(lengths, 4, kind, k), np.array(lengths))
    assert_same_messages(*both(sequences, make_weights(4, k, k, size=2.0)), 1e-11)


@pytest.mark.parametrize("seed", range(8))
def test_scaled_equals_logs_up_to_the_edge_of_what_is_safe(seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        k, steps = int(rng.integers(2, 6)), int(rng.integers(1, 120))
        shares = rng.dirichlet([0.3, 0.3, 0.1, 0.1]) * 299.0  # many of them all or nothing

        def some(share, *shape, rng=rng):
            return -share * rng.choice([rng.random(shape), rng.integers(0, 2, shape)])

        weights = Weights(
            some(shares[0], 3, k), some(shares[1], k, k), np.zeros(k),
            some(shares[2], k), some(shares[3], k),
        )  # fmt: skip
        X = np.eye(3)[rng.integers(0, 3, steps)]
        assert_same_messages(*both(Sequences.of(X, np.array([steps])), weights), 1e-9)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("k", [2, 3, 8])
def test_as_many_distinct_rows_as_labels_or_not(count, k):
    X = np.eye(9)[np.arange(30) % count]
    sequences = Sequences.of(X, np.array([20, 10]))
    assert sequences.distinct.shape == (count, 9)
    assert_same_messages(*both(sequences, make_weights(9, k)), 1e-11)


def test_repeated_rows_are_kept_once_and_equal_the_rows_they_stand_for():
    X = make_data([200], 3, "binary")
    X[:, 0] *= 0.1
    for matrix in (X, sparse.csr_array(X)):
        sequences = Sequences.of(matrix, np.array([200]))
        assert sequences.distinct.shape[0] == len(np.unique(X, axis=0))
        kept = sequences.distinct
        kept = kept.toarray() if sparse.issparse(kept) else kept
        np.testing.assert_array_equal(kept[sequences.rows], X)
        assert sequences.times.sum() == 200


def test_different_rows_of_one_key_are_not_confused():
    rows = np.array([[1e17, 0.0], [1e17, 1.0], [1.0, 0.0]])
    assert len(np.unique(rows @ np.ones(2))) == 2  # two of the three rows meet
    sequences = Sequences.of(rows[[0, 1, 2, 1]], np.array([4]))
    np.testing.assert_array_equal(sequences.distinct[sequences.rows], rows[[0, 1, 2, 1]])


def test_which_way_is_taken_depends_on_the_spread_of_the_weights():
    sequences = Sequences.of(make_data([30], 2, "binary"), np.array([30]))
    weights = make_weights(2, 3)
    assert Inference(sequences, weights).is_scaled
    far = replace(weights, bias=np.array([0, 400.0, 0]))
    assert not Inference(sequences, far).is_scaled
    shared = replace(weights, bias=weights.bias + 1e6)  # what all labels share is harmless
    assert Inference(sequences, shared).is_scaled


@pytest.mark.parametrize("size", [25.0, 500.0])
@pytest.mark.parametrize("k", [2, 4])
def test_extreme_weights_on_300_000_steps(k, size):
    n, rng = 300_000, np.random.default_rng(k)
    X = (rng.random((n, 2)) < 0.3).astype(float)
    signs = make_weights(2, k, k)
    weights = Weights(*(size * np.sign(part) for part in vars(signs).values()))
    weights = replace(weights, bias=np.zeros(k))
    sequences = Sequences.of(X, np.array([n]))
    found = Inference(sequences, weights)
    assert found.is_scaled == (size < 100)
    exact = log_z_by_columns(X @ weights.observe, weights.transitions, weights.start, weights.end)
    assert found.log_z == pytest.approx(exact, rel=1e-13)
    marginals = found.marginals()
    assert np.isfinite(marginals).all()
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0, rtol=1e-12)
    counts = found.counts()
    for part, total in zip(counts, (n, n - 1, 1, 1), strict=True):
        assert np.isfinite(part).all()
        assert part.sum() == pytest.approx(total, rel=1e-9)
    np.testing.assert_allclose(
        counts.rows.sum(axis=0), counts.pairs.sum(axis=0) + counts.first, rtol=1e-8, atol=1e-6
    )


def test_the_likeliest_labels_of_a_long_chain_score_no_less_than_any_other():
    n, k = 50_000, 4
    X, weights = make_data([n], 3, "binary"), make_weights(3, k)
    sequences = Sequences.of(X, np.array([n]))
    scores = X @ weights.observe + weights.bias

    def total(labels):
        inner = weights.transitions[labels[:-1], labels[1:]].sum()
        ends = weights.start[labels[0]] + weights.end[labels[-1]]
        return scores[np.arange(n), labels].sum() + inner + ends

    best = viterbi(sequences, weights)
    rng = np.random.default_rng(0)
    for _ in range(200):
        other, at = best.copy(), rng.integers(0, n - 2)
        other[at : at + rng.integers(1, 4)] = rng.integers(0, k)
        assert total(other) <= total(best)
    assert total(best) > total(Inference(sequences, weights).marginals().argmax(axis=1))


# Changes ------------------------------------------------------------------------------------


def columns_of_every_kind(n, rng):
    """Always zero, never zero, one step each at the ends, rare, frequent, real, late."""
    X = np.zeros((n, 8))
    X[:, 1] = 1.0
    X[0, 2] = X[-1, 3] = 1.0
    X[:, 4] = rng.random(n) < 3 / n
    X[:, 5] = rng.random(n) < 0.5
    X[:, 6] = rng.normal(size=n)
    X[3 * n // 4 :, 7] = 1.0
    return X


def moved(weights, columns, labels, move):
    observe = weights.observe.copy()
    observe[columns, labels] += move
    return replace(weights, observe=observe)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("lengths", [[400], [1, 150, 1, 1, 240, 7]])
@pytest.mark.parametrize("k", [2, 3, 9])
def test_the_change_of_log_z_is_that_of_recomputing(k, lengths, storage):
    rng = np.random.default_rng(k)
    X = storage(columns_of_every_kind(400, rng))
    sequences, weights = Sequences.of(X, np.array(lengths)), make_weights(8, k)
    before = Inference(sequences, weights)
    for column in range(8):
        label = int(rng.integers(k))
        along = line(before, np.array([column]), np.array([label]), np.ones(1))
        for move in (0.0, 1e-6, -0.7, 3.0, -20.0, 150.0, -500.0):
            one = np.array([column]), np.array([label]), np.array([move])
            exact = Inference(sequences, moved(weights, *one))
            rise = exact.log_z - before.log_z
            allowed = {"rel": 1e-10, "abs": 1e-12 * (abs(before.log_z) + abs(exact.log_z))}
            slope = sequences.column(column) @ exact.counts().rows[:, label]
            assert log_ratio(before, *one) == pytest.approx(rise, **allowed)
            assert along(move)[0] == pytest.approx(rise, **allowed)
            assert along(move)[1] == pytest.approx(slope, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("size", [1.0, 30.0, 400.0])
def test_several_weights_may_move_at_once(size):
    rng = np.random.default_rng(5)
    sequences = Sequences.of(columns_of_every_kind(300, rng), np.array([120, 1, 179]))
    weights = make_weights(8, 3)
    before = Inference(sequences, weights)
    for _ in range(20):
        columns, labels = np.divmod(rng.choice(24, 5, replace=False), 3)
        move = size * rng.normal(size=5)
        exact = Inference(sequences, moved(weights, columns, labels, move)).log_z
        allowed = 1e-12 * (abs(exact) + abs(before.log_z))
        found = log_ratio(before, columns, labels, move)
        assert found == pytest.approx(exact - before.log_z, rel=1e-10, abs=allowed)


def test_a_move_that_all_labels_share_is_a_shift():
    sequences = Sequences.of(np.ones((50, 1)), np.array([50]))
    weights = make_weights(1, 3)
    before = Inference(sequences, weights)
    for shift in (-5000.0, -800.0, 800.0, 5000.0):
        ratio = log_ratio(before, np.zeros(3, np.intp), np.arange(3), np.full(3, shift))
        assert ratio == pytest.approx(50 * shift, rel=1e-12)


def test_small_changes_of_a_long_chain_keep_their_digits():
    n, rng = 100_000, np.random.default_rng(0)
    X = np.zeros((n, 2))
    X[rng.choice(n, 40, replace=False), 0] = 1.0
    X[:, 1] = rng.integers(0, 4, n)
    sequences, weights = Sequences.of(X, np.array([n])), make_weights(2, 3)
    before = Inference(sequences, weights)
    slope = sequences.column(0) @ before.counts().rows[:, 1]
    for step in (1e-7, -1e-7):
        rise, here = line(before, np.array([0]), np.array([1]), np.ones(1))(step)
        assert rise == pytest.approx(step * slope, rel=1e-5)
        assert here == pytest.approx(slope, rel=1e-5)


def test_from_messages_in_logarithms_changes_are_right_too():
    rng = np.random.default_rng(1)
    sequences = Sequences.of(columns_of_every_kind(60, rng), np.array([60]))
    weights = replace(make_weights(8, 3), bias=np.array([0.0, 400.0, 10.0]))
    before = Inference(sequences, weights)
    assert not before.is_scaled
    one = np.array([6]), np.array([0]), np.array([5.0])
    exact = Inference(sequences, moved(weights, *one)).log_z - before.log_z
    assert log_ratio(before, *one) == pytest.approx(exact, rel=1e-9)
    assert line(before, *one)(1.0)[0] == pytest.approx(exact, rel=1e-9)


# Room ---------------------------------------------------------------------------------------


def test_arrays_serve_again_only_when_nobody_holds_them():
    sequences = Sequences.of(make_data([50], 3, "binary"), np.array([50]))
    first = Inference(sequences, make_weights(3, 3, 0))
    kept = first.marginals()
    others = [Inference(sequences, make_weights(3, 3, seed)) for seed in range(1, 5)]
    np.testing.assert_array_equal(first.marginals(), kept)
    del others
    again = [Inference(sequences, make_weights(3, 3, seed)) for seed in range(5, 12)]
    np.testing.assert_array_equal(first.marginals(), kept)
    assert (
        len(
            {message.messages.alpha.ctypes.data for message in again}
            | {first.messages.alpha.ctypes.data}
        )
        == 8
    )


def test_many_threads_may_ask_for_room_at_once():
    sequences = Sequences.of(make_data([20], 3, "binary"), np.array([20]))
    weights = [make_weights(3, 3, seed) for seed in range(8)]
    alone = [Inference(sequences, w).log_z for w in weights]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: Inference(sequences, weights[i % 8]).log_z, range(800)))
    assert found == alone * 100
