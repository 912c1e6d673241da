"""Objects that are objectives without the base class."""

import numpy as np
import pytest

from forback import FobaRegressor, select
from forback.certificates import certificate, restricted_curvature
from forback.core.adapter import as_objective
from forback.core.objective import Objective, Scores
from forback.core.point import Point
from forback.core.status import Status
from forback.objectives import LeastSquares
from forback.testing import check_objective
from support.problems import information


class Duck:
    """Least squares with the members that the base class does not know by these names."""

    feature_names = ("a", "b", "c", "d")
    infimum = 0.0

    def __init__(self, X, y):
        self.X, self.y = X, y
        self.dim = self.n_candidates = X.shape[1]
        self.n_rows = len(y)

    def minimise(self, support, start=None):
        coef = np.linalg.lstsq(self.X[:, support], self.y, rcond=None)[0]
        beta = np.zeros(self.dim)
        beta[support] = coef
        return Point(support, coef, self.value_and_gradient(beta)[0])

    def value_and_gradient(self, beta):
        residual = self.X @ beta - self.y
        return residual @ residual / 2 / self.n_rows, self.X.T @ residual / self.n_rows

    def increase_if_removed(self, point, blocks):
        beta = point.dense(self.dim)
        gram = self.X.T @ self.X / self.n_rows
        return [beta[b] @ gram[np.ix_(b, b)] @ beta[b] / 2 for b in blocks]

    def information(self, point):
        return -0.5 * self.n_rows * np.log(2 * point.value), self.n_rows, len(point.support)

    def hessian_range(self):
        gram = self.X.T @ self.X / self.n_rows
        return gram, gram

    def permuted(self, order, point):
        fitted = self.X[:, point.support] @ point.coef
        return Duck(self.X, (self.y - fitted)[order])


@pytest.fixture
def duck():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    return Duck(X, 2 * X[:, 2] - X[:, 0] + 0.1 * rng.normal(size=60))


def test_it_is_checked_like_any_other(duck):
    assert not isinstance(duck, Objective)
    check_objective(duck)
    assert as_objective(as_objective(duck)).name == "Duck"


@pytest.mark.parametrize("method", ["foba-gdt", "foba-obj", "forward-gdt", "forward-obj"])
@pytest.mark.parametrize("backward", ["coordinate", "refit"])
def test_every_algorithm_takes_the_steps_of_the_native_objective(duck, method, backward):
    path = select(duck, k=3, method=method, backward=backward)
    native = select(LeastSquares(duck.X, duck.y), k=3, method=method, backward=backward)
    assert [s.feature for s in path.steps] == [s.feature for s in native.steps]
    np.testing.assert_allclose(path.coef(3), native.coef(3), rtol=1e-8)
    assert [s.name for s in path.steps[:2]] == ["c", "a"]


def test_its_capabilities_are_found(duck):
    path = select(duck, epsilon="auto")
    assert path.end.support.tolist() == [0, 2]
    assert certificate(duck, select(duck, k=2), 2).optimal
    native = restricted_curvature(LeastSquares(duck.X, duck.y), 2, "exact")
    assert restricted_curvature(duck, 2, "exact").upper == pytest.approx(native.upper)
    loglik, n, df = information(as_objective(duck), path.end)
    assert (loglik, n, df) == duck.information(path.end)


def test_scores_may_be_scores_or_arrays(duck):
    adapted = as_objective(duck)
    point = adapted.minimise(np.array([0, 2]))
    from forback.core.blocks import Blocks

    blocks = Blocks.singles(np.array([0, 2]), np.zeros(0, np.intp))
    found = adapted.increase_if_removed(point, blocks)
    assert isinstance(found, Scores)
    assert found.n_exact == 2


def test_a_note_of_its_own_is_a_status():
    point = Point(np.arange(1), np.ones(1), 1.0, note="I gave up")
    assert point.status is Status.OTHER


@pytest.mark.parametrize("member", ["dim", "n_candidates", "minimise", "value_and_gradient"])
def test_a_missing_member_is_named(member):
    members = dict.fromkeys(("dim", "n_candidates", "minimise", "value_and_gradient"), 1)
    del members[member]
    incomplete = type("Incomplete", (), members)()
    with pytest.raises(TypeError, match=f"got Incomplete, which lacks {member}, "):
        select(incomplete)
    with pytest.raises(TypeError, match="got the class FobaRegressor; make one of it"):
        as_objective(FobaRegressor)
