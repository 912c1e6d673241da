"""Numbers too small, or too large, to be squared: the same answer in other units."""

from functools import cache

import numpy as np
import pytest
from scipy import sparse

from forback import FobaClassifier, FobaCovariance, FobaRegressor, FobaSelector, Path, select
from forback.certificates import certificate, restricted_curvature, theory_thresholds
from forback.core.units import TOO_LARGE, TOO_SMALL, Units, exponents, out_of_range, times_power
from forback.objectives import (
    GLM,
    ChainCRF,
    GaussianCovariance,
    Huber,
    LeastSquares,
    Multinomial,
    from_function,
)
from forback.selection.rules import METHODS
from support.problems import LOSSES, make_response

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5))
ETA = 2.0 * X[:, 1] - 1.5 * X[:, 2]
Y = ETA + 0.3 * RNG.normal(size=60)
CLASSES = np.digitize(ETA, [-1.0, 1.0])

#: Where squares vanish and overflow, and next to it; docs/reliability.md says how far this goes.
SCALES = [1e-300, 1e-165, 1e-120, 1e-60, 1e60, 1e120, 1e165, 1e300]
SMALL = [scale for scale in SCALES if scale < 1.0]


def steps(path):
    return [(step.action, step.feature) for step in path.steps]


def build(loss, X, y, **options):
    if loss == "squared":
        return LeastSquares(X, y, **options)
    return GLM(loss, X, y, **options)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", LOSSES)
def test_columns_of_any_size(loss, method):
    y = make_response(loss, ETA, np.random.default_rng(1))
    for fit_intercept in (False, True):
        expected = select(build(loss, X, y, fit_intercept=fit_intercept), 3, method)
        for scale in SCALES:
            for stored in (np.array, sparse.csc_array):
                objective = build(loss, stored(X * scale), y, fit_intercept=fit_intercept)
                path = select(objective, 3, method)
                assert steps(path) == steps(expected)
                factors = np.append(np.full(5, scale), 1.0)[path.end.support]
                found = path.end.coef * factors
                np.testing.assert_allclose(found, expected.end.coef, rtol=1e-6, atol=1e-8)
                assert path.end.value == pytest.approx(expected.end.value, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", SCALES)
def test_a_response_of_any_size(scale, method):
    if scale > 1e150:
        with pytest.raises(ValueError, match="y and offset must be below"):
            LeastSquares(X, Y * scale)
        return
    # Huber's loss, with its threshold, goes with the square of the units as well.
    for loss, same in (("squared", "squared"), (Huber(1.35 * scale), "huber")):
        path, expected = (
            select(build(loss, X, Y * scale), 3, method),
            select(build(same, X, Y), 3, method),
        )
        assert steps(path) == steps(expected)
        np.testing.assert_allclose(path.end.coef, expected.end.coef * scale, rtol=1e-6)
        assert (TOO_SMALL in path.end.note) == (scale < 1e-153)
        assert path.end.value == pytest.approx(expected.end.value * scale * scale, rel=1e-9)


def half_squares(beta, scale=1.0):
    r = X @ beta - Y
    return scale * 0.5 * np.mean(r**2), scale * (X.T @ r) / 60


@cache
def plain_paths(method):
    """The paths of classes, a chain and a function in units that need no care."""
    return (
        select(Multinomial(X, CLASSES, fit_intercept=True), 2, method),
        select(ChainCRF(X, CLASSES, ridge=0.0), 3, method),
        select(from_function(half_squares, 5), 3, method),
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", SCALES)
def test_classes_chains_and_functions(scale, method):
    classes, chain, expected = plain_paths(method)
    found = select(Multinomial(X * scale, CLASSES, fit_intercept=True), 2, method)
    assert steps(found) == steps(classes)
    for stored in (np.array, sparse.csr_array):
        found = select(ChainCRF(stored(X * scale), CLASSES, ridge=0.0), 3, method)
        assert steps(found) == steps(chain)
        assert found.end.value == pytest.approx(chain.end.value, rel=1e-6)

    many = {"value_many": lambda betas: [half_squares(beta, scale)[0] for beta in betas]}
    bends = {"hessian": lambda beta: scale * X.T @ X / 60, "curvature": (0.0, scale * 3.0)}
    products = {"hessian_vector": lambda beta, v: scale * X.T @ (X @ v) / 60}
    for extras in ({}, many, bends, products):
        objective = from_function(lambda beta: half_squares(beta, scale), 5, **extras)
        path = select(objective, 3, method)
        assert steps(path) == steps(expected)
        assert path.end.value == pytest.approx(scale * expected.end.value, rel=1e-6)
        np.testing.assert_allclose(path.end.coef, expected.end.coef, rtol=1e-4)


@pytest.mark.parametrize("scale", SCALES)
def test_estimators(scale):
    for loss in LOSSES:
        y = make_response(loss, ETA, np.random.default_rng(1))
        expected = FobaSelector(k=3, loss=loss, alpha=1e-3).fit(X, y)
        for stored in (np.array, sparse.csr_array):
            found = FobaSelector(k=3, loss=loss, alpha=1e-3).fit(stored(X * scale), y)
            assert steps(found.path_) == steps(expected.path_)
    model = FobaClassifier(k=2).fit(X, CLASSES)
    found = FobaClassifier(k=2).fit(X * scale, CLASSES)
    np.testing.assert_allclose(found.coef_ * scale, model.coef_, rtol=1e-5, atol=1e-9)
    assert (found.predict(X * scale) == model.predict(X)).all()
    if scale < 1e150:
        model, found = FobaRegressor().fit(X, Y), FobaRegressor().fit(X, Y * scale)
        assert found.k_ == model.k_
        np.testing.assert_allclose(found.coef_, model.coef_ * scale, rtol=1e-6)
        np.testing.assert_allclose(found.predict(X), model.predict(X) * scale, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e16, 1e20, 1e100, 1e250])
def test_a_threshold_lost_in_the_rounding_of_y_is_no_hindrance(scale):
    """Least absolute deviations, then; the threshold keeps its meaning in the units of y."""
    model = FobaRegressor(k=2, loss="huber").fit(X, Y * scale)
    assert model.selected_.tolist() in ([1, 2], [2, 1])
    assert all(step.note == "" for step in model.path_.steps)
    near = FobaRegressor(k=2, loss="huber").fit(X, Y * 1e10)
    np.testing.assert_allclose(model.coef_ / scale, near.coef_ / 1e10, rtol=1e-5, atol=1e-8)
    path = select(GLM("huber", X, Y * scale), 2)
    misfit = np.abs(Y * scale - X @ path.coef(2))
    assert path.end.value == pytest.approx(1.35 * misfit.mean(), rel=1e-9)


# What a path says --------------------------------------------------------------------------------


def test_a_path_is_in_the_users_units(tmp_path):
    tiny = 2.0**-600
    seen = []
    path = select(LeastSquares(X * tiny, Y, ridge=0.0), 3, epsilon=0.0, callback=seen.append)
    plain = select(LeastSquares(X, Y), 3)
    assert [step.score for step in path.steps] == pytest.approx(
        [tiny * step.score for step in plain.steps]
    )
    assert [step.value for step in seen] == [step.value for step in plain.steps]
    assert path.end.coef.tolist() == (plain.end.coef / tiny).tolist()
    gradients = [step.score for step in plain.steps]
    for between in (0.5 * sum(gradients[:2]), 2.0 * gradients[0]):
        stopped = select(LeastSquares(X * tiny, Y), epsilon=between * tiny)
        expected = select(LeastSquares(X, Y), epsilon=between)
        assert steps(stopped) == steps(expected)
        assert stopped.settings["threshold"] == between * tiny
        assert f"is below the threshold {between * tiny:.6g}" in stopped.stop_reason
    path.save(tmp_path / "path.json")
    assert Path.load(tmp_path / "path.json").end.value == path.end.value


def test_values_that_are_no_numbers_are_zero_and_a_note_says_so(tmp_path):
    path = select(LeastSquares(X, Y * 1e-170, fit_intercept=True), 3, "foba-obj")
    assert [point.value for point in path.points] == [0.0] * 4
    assert all(TOO_SMALL in point.note for point in path.points)
    assert all(TOO_SMALL in step.note for step in path.steps)
    assert all(step.change == 0.0 for step in path.steps)
    path.save(tmp_path / "path.json")
    loaded = Path.load(tmp_path / "path.json")
    assert steps(loaded) == steps(path)
    # On the edge: the start can be told, what follows cannot.
    edge = select(LeastSquares(X, Y * 3e-154), 3)
    assert edge.start.value > 0.0
    edge.save(tmp_path / "path.json")


def test_thresholds_on_decreases_are_in_the_users_units():
    scale = 2.0**-300
    plain = select(LeastSquares(X, Y), method="foba-obj", delta=0.05)
    path = select(LeastSquares(X, Y * scale), method="foba-obj", delta=0.05 * scale**2)
    assert steps(path) == steps(plain)
    auto = select(LeastSquares(X, Y), epsilon="auto")
    found = select(LeastSquares(X, Y * scale), epsilon="auto")
    assert found.settings["threshold"] == auto.settings["threshold"] * scale
    assert steps(found) == steps(auto)


@pytest.mark.parametrize("method", METHODS)
def test_columns_of_very_different_sizes(method):
    sizes = np.ldexp(1.0, np.array([0, -900, -400, 700, -950]))
    path = select(LeastSquares(X * sizes, Y, fit_intercept=True), method=method)
    plain = select(LeastSquares(X, Y, fit_intercept=True), method=method)
    if method.endswith("obj"):  # decreases have no units
        assert steps(path) == steps(plain)
    else:  # the largest column has the largest gradient, and so on
        added = [step.feature for step in path.steps if step.action == "add"]
        assert list(dict.fromkeys(added)) == [3, 0, 2, 1, 4]
    np.testing.assert_allclose(path.end.coef[:5] * sizes, plain.end.coef[:5], rtol=1e-8)


def test_with_a_ridge_tiny_columns_are_of_no_use():
    path = select(LeastSquares(X * 1e-200, Y, ridge=1.0), 2)
    assert path.steps == []
    assert path.stop_reason == "no candidate left lowers the objective by more than rounding"


def test_certificates_ask_for_other_units():
    for objective in (LeastSquares(X * 1e-200, Y), LeastSquares(X, Y * 1e-200)):
        path = select(objective, 2)
        with pytest.raises(ValueError, match="too small, or too large, to be squared"):
            certificate(objective, path, 2)


def test_covariances_that_cannot_be_told_are_refused():
    for scale in (1e-200, 1e200):
        with pytest.raises(ValueError, match=r"X (overflows when squared|has the variance 0)"):
            FobaCovariance(k=1).fit(X * scale)
    with pytest.raises(ValueError, match=r"of S has the variance 1e-308, .* at least 1e-300"):
        GaussianCovariance(np.eye(3) * 1e-308)
    expected = select(GaussianCovariance(np.cov(X.T)), 3)
    for scale in (1e-290, 1e290):
        assert steps(select(GaussianCovariance(np.cov(X.T) * scale), 3)) == steps(expected)


def test_powers_of_two():
    assert exponents(np.array([0.0, 1.0, 2.0**-300, 2.0**300])).tolist() == [0, 0, 299, -301]
    assert exponents(np.array([2.0**-300]), np.array([2.0**250])).tolist() == [2]
    assert not out_of_range(np.array([0.0, 1.0, 1e60]))
    assert out_of_range(np.array([0.0, 1.0, 1e-90]))
    assert times_power(1.0, -2000) == 0.0
    assert times_power(1.0, 2000) == np.inf
    factors, power = Units(-10, np.array([3, 0, 5])).slopes
    assert factors.tolist() == [1.0, 8.0, 0.25]
    assert power == -13
    assert np.ldexp(factors, power).tolist() == np.ldexp(1.0, -10 - np.array([3, 0, 5])).tolist()


def test_every_path_can_be_saved_and_has_the_threshold_that_was_given(tmp_path):
    path = select(LeastSquares(X, Y * 1e-160), method="foba-obj", delta=1e-3)
    assert path.settings["threshold"] == 1e-3
    assert path.stop_reason.endswith("is below the threshold 0.001")
    path.save(tmp_path / "path.json")
    path = select(LeastSquares(X * 1e300, Y * 1e100), 2)
    assert all(TOO_LARGE in step.note and step.score > 1e308 for step in path.steps)
    path.save(tmp_path / "path.json")
    assert Path.load(tmp_path / "path.json").steps[0].score == path.steps[0].score


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e-76, 1e-40, 1e-13, 1e-10, 1e-6, 1e60])
def test_small_and_large_counts(scale, method):
    counts = np.random.default_rng(0).poisson(np.exp(1.0 + 0.5 * ETA)).astype(float)
    plain = select(GLM("poisson", X, counts, fit_intercept=True), 3, method)
    path = select(GLM("poisson", X, counts * scale, fit_intercept=True), 3, method)
    assert steps(path) == steps(plain)
    expected = plain.end.coef + np.array([0.0, 0.0, 0.0, np.log(scale)])
    np.testing.assert_allclose(path.end.coef, expected, rtol=1e-7)
    assert FobaRegressor(k=2, loss="poisson").fit(X, counts * scale).selected_.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("threshold", "scale", "unit"),
    [(1e10, 1e-300, 1.0), (1e30, 1e-290, 1.0), (1e300, 1.0, 1.0), (1e300, 1e76, 1e-150)],
)
def test_a_threshold_that_no_residual_reaches_is_none(threshold, scale, unit):
    path = select(GLM(Huber(threshold), X * unit, Y * scale), 2)
    expected = select(LeastSquares(X, Y), 2)
    assert steps(path) == steps(expected)
    np.testing.assert_allclose(path.end.coef / scale * unit, expected.end.coef, rtol=1e-7)


def test_a_tiny_threshold_on_a_huge_response():
    path = select(GLM(Huber(1e-100), X, Y * 1e240), 2)
    expected = select(GLM(Huber(1e-8), X, Y), 2)
    assert steps(path) == steps(expected)
    np.testing.assert_allclose(path.end.coef / 1e240, expected.end.coef, rtol=1e-3)


@pytest.mark.parametrize(
    ("scale", "loss"), [(1e-200, "squared"), (1e100, "squared"), (1e200, "huber")]
)
def test_the_score_of_a_response_of_any_size(scale, loss):
    model = FobaRegressor(k=2, loss=loss).fit(X, Y * scale)
    expected = FobaRegressor(k=2, loss=Huber(1.35 / scale) if loss == "huber" else loss).fit(X, Y)
    assert model.score(X, Y * scale) == pytest.approx(expected.score(X, Y), rel=1e-6)
    assert model.score(X, Y[::-1] * scale) < 0.2


def test_curvature_and_thresholds_ask_for_other_units():
    for scale in (1e-200, 1e200):
        objective = LeastSquares(X * scale, Y)
        with pytest.raises(ValueError, match="too small, or too large, to be squared"):
            restricted_curvature(objective, 2)
        with pytest.raises(ValueError, match="too small, or too large, to be squared"):
            theory_thresholds(objective, [1, 2], 3)


def test_prices_have_a_sum():
    with pytest.raises(ValueError, match=r"^costs must be below 1e\+300, got 1e\+308"):
        select(LeastSquares(X, Y), 3, costs=[1e308] * 5)


def test_predictions_and_scores_beyond_numbers_are_refused():
    with pytest.raises(ValueError, match=r"^X must hold numbers for which a prediction is below"):
        FobaClassifier(k=2).fit(X, Y > 0).predict_proba(X / np.abs(X).max() * 1e308)
    graph = FobaCovariance(k=2).fit(X)
    assert np.isfinite(graph.score(X[:1]))
    for ask in (graph.score, graph.mahalanobis):
        with pytest.raises(ValueError, match=r"^X(_test)? overflows when squared"):
            ask(X * 1e200)


def test_extreme_weights_and_penalties_are_silent():
    weights = np.logspace(-300, 200, 60)
    assert len(select(Multinomial(X, CLASSES, sample_weight=weights, ridge=1e-3), 1).steps) == 1
    assert FobaSelector(k=1).fit(X, Y, sample_weight=weights).k_ == 1
    assert len(select(GLM("huber", X, Y * 1e240, ridge=1e100), 2).steps) <= 2
    assert len(select(GaussianCovariance(np.cov(X.T) * 1e-200, ridge=1e-10), 2).steps) <= 2
    assert len(select(ChainCRF(X, CLASSES, ridge=1e300), 1).steps) <= 1


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.longdouble])
def test_whether_numbers_are_finite_is_told_in_silence(kind):
    large = (X / np.abs(X).max() * 3e38).astype(kind)
    assert steps(select(LeastSquares(large, Y), 2)) == steps(select(LeastSquares(X, Y), 2))
    infinite = np.where(X > 1, np.inf, np.where(X < -1, -np.inf, X)).astype(kind)
    for call in (LeastSquares, FobaRegressor(k=2).fit):
        with pytest.raises(ValueError, match="infinity"):
            call(infinite, Y)
