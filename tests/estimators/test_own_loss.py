"""Somebody's own loss in the estimators: cloned, pickled, searched over, on sparse X."""

import copy
import pickle

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from forback import FobaRegressor, FobaSelector, select
from forback.core.objective import ObjectiveError
from forback.objectives import GLM, PointwiseLoss, from_jax
from forback.testing import check_objective

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 8)) * (RNG.random((150, 8)) < 0.7)
COUNTS = RNG.poisson(np.exp(0.5 + X[:, 2] - X[:, 5])).astype(float)
REAL = X[:, 2] - X[:, 5] + RNG.standard_t(2, size=150)


def poisson(eta, y):
    return np.exp(eta) - y * eta


def poisson_d1(eta, y):
    return np.exp(eta) - y


def poisson_d2(eta, y):
    return np.exp(eta)


def smooth(eta, y):
    import jax.numpy as jnp

    return jnp.sqrt(1.0 + (eta - y) ** 2)


def smooth_d1(eta, y):
    import jax.numpy as jnp

    return (eta - y) / jnp.sqrt(1.0 + (eta - y) ** 2)


def smooth_d2(eta, y):
    return (1.0 + (eta - y) ** 2) ** -1.5


POISSON = PointwiseLoss(
    poisson, poisson_d1, poisson_d2, domain="nonnegative", link="log", likelihood=True
)
SMOOTH = PointwiseLoss(smooth, curvature=(0, 1))


def test_a_loss_like_a_built_in_one_gives_the_same_model():
    own, native = (FobaRegressor(loss=loss).fit(X, COUNTS) for loss in (POISSON, "poisson"))
    assert own.k_ == native.k_ > 0  # by BIC
    assert own.selected_.tolist() == native.selected_.tolist()
    np.testing.assert_allclose(own.coef_, native.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(own.predict(X), native.predict(X), rtol=1e-6)


@pytest.mark.parametrize("stored", [X, sparse.csc_array(X)], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", [POISSON, SMOOTH], ids=["numpy", "jax"])
def test_contract(loss, stored):
    y = COUNTS if loss is POISSON else REAL
    offset = np.linspace(-0.5, 0.5, len(y))
    weights = np.arange(len(y)) % 3 + 0.5
    small = {"ridge": 0.01, "fit_intercept": True, "offset": offset, "sample_weight": weights}
    check_objective(GLM(loss, stored, y, **small))


def test_sparse_columns_give_the_same_path():
    dense, stored = (
        select(GLM(SMOOTH, A, REAL), method="foba-obj") for A in (X, sparse.csc_array(X))
    )
    assert [s.feature for s in dense.steps] == [s.feature for s in stored.steps]
    assert dense.end.value == pytest.approx(stored.end.value, rel=1e-12)


@pytest.mark.parametrize("loss", [POISSON, SMOOTH], ids=["numpy", "jax"])
def test_cloned_pickled_and_searched_over(loss):
    y = COUNTS if loss is POISSON else REAL
    model = FobaRegressor(k=2, loss=loss)
    assert clone(model).loss == copy.deepcopy(loss) == loss
    fitted = pickle.loads(pickle.dumps(model.fit(X, y)))
    np.testing.assert_array_equal(fitted.predict(X), model.predict(X))
    search = GridSearchCV(FobaRegressor(), {"k": [1, 2], "loss": [loss]}, cv=2).fit(X, y)
    assert repr(search.best_params_["loss"]) == f"PointwiseLoss({loss.name})"
    assert FobaSelector(k=2, loss=loss).fit(X, y).get_support().sum() == 2


def test_derivatives_in_jax_are_called_in_double_precision():
    given = PointwiseLoss(smooth, smooth_d1, smooth_d2)
    one, other = (select(GLM(loss, X, REAL), k=3) for loss in (given, SMOOTH))
    np.testing.assert_allclose(one.end.coef, other.end.coef, rtol=1e-9)


def test_without_a_likelihood_a_size_must_be_given():
    with pytest.raises(ValueError, match="the smooth loss has no likelihood"):
        FobaRegressor(loss=SMOOTH).fit(X, REAL)


@pytest.mark.parametrize("curvature", [(0.5, 0.6), (0.0, 0.1)])
def test_bounds_that_do_not_hold(curvature):
    with pytest.raises(ValueError, match="does not hold: at a few places d2 of the smooth loss"):
        PointwiseLoss(smooth, curvature=curvature)


def test_a_wrong_derivative_is_named_with_a_place():
    with pytest.raises(
        ObjectiveError, match="d1 of the poisson loss is not the derivative of value"
    ):
        PointwiseLoss(poisson, poisson_d2, poisson_d2, domain="nonnegative")


def test_a_loss_for_another_response_is_named_briefly():
    binary = PointwiseLoss(smooth, domain="binary")
    with pytest.raises(ValueError, match="got the smooth loss, whose y is binary"):
        FobaRegressor(k=1, loss=binary).fit(X, REAL)


@pytest.mark.parametrize("method", ["forward-obj", "forward-gdt"])
def test_a_loss_may_be_infinite_outside_its_domain(method):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 5))
    y = A[:, 1] - A[:, 3] + 0.3 * rng.normal(size=60)

    def barrier(eta, y):
        inside = eta < 5
        return jnp.where(inside, -jnp.log(jnp.where(inside, 5 - eta, 1.0)) - y * eta, jnp.inf)

    path = select(GLM(PointwiseLoss(barrier), A, y), k=3, method=method)
    whole = select(from_jax(lambda b: jnp.mean(barrier(A @ b, y)), 5), k=3, method=method)
    assert [step.feature for step in path.steps] == [step.feature for step in whole.steps]
    assert path.end.value == pytest.approx(whole.end.value, rel=1e-9)


def test_losses_that_bend_down_or_never_are_named():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 5))
    with pytest.raises(ObjectiveError, match="loss is straight"):
        PointwiseLoss(lambda e, y: -y * e, lambda e, y: 0 * e - y, lambda e, y: 0 * e)
    cauchy = PointwiseLoss(lambda e, y: 50 * jnp.log1p((e - y) ** 2 / 100), name="cauchy")
    with pytest.raises(ObjectiveError, match=r"d2 of the cauchy loss is -.* not convex there"):
        select(GLM(cauchy, A, 30 * A[:, 1]), k=1)
    far = PointwiseLoss(
        lambda e, y: jnp.where(jnp.abs(e - y) < 20, (e - y) ** 2 / 2, 600 - 20 * jnp.abs(e - y))
    )
    with pytest.raises(ObjectiveError, match="loss is unbounded below"):
        select(GLM(far, 10 * A, 30 * np.abs(A[:, 1])), k=1)
