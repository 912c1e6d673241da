"""Tables with a known truth are drawn as their docstrings say."""

import numpy as np
import pytest

from forback.datasets import make_correlated, make_logistic
from forback.datasets.synthetic.tables import STRUCTURES


def test_two_classes_around_their_means():
    data = make_logistic(40_000, 12, 3, norm=2.0, random_state=1)
    assert (data.y == 1).sum() == (data.y == -1).sum() == 20_000
    mean = (data.X * data.y[:, None]).mean(axis=0)
    np.testing.assert_allclose(mean, data.coef, atol=0.03)
    within = data.X - np.outer(data.y, data.coef)
    np.testing.assert_allclose(np.cov(within, rowvar=False), np.eye(12), atol=0.04)


def test_the_means_of_the_appendix():
    sizes = []
    for seed in range(200):
        data = make_logistic(2, 500, 14, random_state=seed)
        np.testing.assert_array_equal(data.support, np.flatnonzero(data.coef))
        assert len(data.support) == 14
        assert np.linalg.norm(data.coef) == pytest.approx(5.0)
        assert (data.coef >= 0.0).all()
        sizes.append(data.coef[data.support] / data.coef.max())
    # Uniform entries over the largest of 14 are, but for that one, uniform again.
    rest = np.sort(sizes, axis=1)[:, :-1]
    assert rest.mean() == pytest.approx(0.5, abs=0.02)
    assert rest.std() == pytest.approx(12**-0.5, abs=0.02)


def correlations(structure, rho, **options):
    return np.corrcoef(
        make_correlated(30_000, 8, 2, rho=rho, structure=structure, **options).X, rowvar=False
    )


def test_correlations():
    places = np.arange(8)
    wanted = 0.7 ** np.abs(places[:, None] - places)
    np.testing.assert_allclose(correlations("ar", 0.7), wanted, atol=0.03)
    wanted = np.where(np.eye(8) > 0, 1.0, 0.7)
    np.testing.assert_allclose(correlations("equal", 0.7), wanted, atol=0.03)


def test_factors_have_five_directions_and_what_is_left():
    data = make_correlated(100_000, 30, 2, rho=0.7, structure="factors")
    found = np.linalg.eigvalsh(np.cov(data.X, rowvar=False))
    np.testing.assert_allclose(found[:-5], 0.3, atol=0.02)
    assert found[-5:].min() > 1.0
    np.testing.assert_allclose(data.X.var(axis=0), 1.0, atol=0.03)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_without_rho_columns_are_independent(structure):
    np.testing.assert_allclose(correlations(structure, 0.0), np.eye(8), atol=0.03)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_signal_and_noise(structure):
    data = make_correlated(50_000, 40, 6, rho=0.6, structure=structure, snr=4.0, random_state=2)
    signal = data.X @ data.coef
    assert signal.var() / (data.y - signal).var() == pytest.approx(4.0, rel=0.05)
    assert (data.y - signal).std() == pytest.approx(data.sigma, rel=0.02)
    np.testing.assert_array_equal(data.support, np.flatnonzero(data.coef))
    sizes = np.abs(data.coef[data.support])
    assert len(sizes) == 6
    assert ((sizes >= 1.0) & (sizes <= 2.0)).all()


def test_rho_and_snr_change_nothing_else():
    one = make_correlated(20, 30, 4, rho=0.0, snr=1.0, random_state=5)
    other = make_correlated(20, 30, 4, rho=0.9, snr=8.0, random_state=5)
    np.testing.assert_array_equal(one.coef, other.coef)
    np.testing.assert_array_equal(one.X[:, 0], other.X[:, 0])
    noise = [(data.y - data.X @ data.coef) / data.sigma for data in (one, other)]
    np.testing.assert_allclose(*noise, atol=1e-12)


@pytest.mark.parametrize("make", [make_logistic, make_correlated])
def test_seeds(make):
    one, same = make(random_state=3), make(random_state=np.random.default_rng(3))
    np.testing.assert_array_equal(one.X, same.X)
    np.testing.assert_array_equal(one.y, same.y)
    assert not np.array_equal(one.X, make(random_state=4).X)


@pytest.mark.parametrize(
    ("make", "options", "error", "message"),
    [
        (make_logistic, {"n": 7}, ValueError, "n must be even"),
        (make_logistic, {"k": 501}, ValueError, "k must be at most p"),
        (make_logistic, {"k": 0}, ValueError, "k must be at least 1"),
        (make_logistic, {"norm": 0.0}, ValueError, r"norm must lie in \(0"),
        (make_logistic, {"random_state": "x"}, TypeError, "random_state must be an integer"),
        (make_correlated, {"rho": 1.0}, ValueError, r"rho must lie in \[0, 1\)"),
        (make_correlated, {"structure": "block"}, ValueError, "structure must be one of"),
        (make_correlated, {"snr": 0.0}, ValueError, r"snr must lie in \(0"),
        (make_correlated, {"p": 2.0}, TypeError, "p must be an integer"),
    ],
)
def test_bad_arguments(make, options, error, message):
    with pytest.raises(error, match=message):
        make(**options)
