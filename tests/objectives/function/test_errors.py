"""What is said about a function that is not what it should be."""

import sys
from itertools import product

import numpy as np
import pytest
from scipy.special import expit

from forback import select
from forback.core.objective import ObjectiveError
from forback.objectives import GLM, PointwiseLoss, from_function
from forback.selection.rules import METHODS
from forback.testing import check_objective
from support.problems import make_problem
from support.written import Ridged, quadratic


def make_written(p=6):
    problem = make_problem("logistic", "correlated", 0, n=40, p=p)
    return Ridged(problem.X, problem.y)


def returns(value, gradient=None):
    """A function that gives the same answer everywhere."""
    answer = value if gradient is None else (value, gradient)
    return lambda beta: answer


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (returns(1.0), r"must return a pair \(value, gradient\), got 1.0"),
        (returns(None), r"must return a pair \(value, gradient\), got None"),
        (returns(np.ones(3), np.ones(3)), r"one number, got an array of shape \(3,\)"),
        (returns(1.0, np.ones(4)), r"the gradient must have shape \(3,\), got shape \(4,\)"),
        (returns(1.0, np.ones((3, 1))), r"must have shape \(3,\), got shape \(3, 1\)"),
        (returns(1.0, 2.0), r"must have shape \(3,\), got shape \(\)"),
        (returns(1.0, [1.0, np.nan, 1.0]), "the gradient holds NaN"),
        (returns(1.0, [1.0, np.inf, 1.0]), "the gradient holds NaN or infinite"),
        (returns(np.nan, np.ones(3)), "returned NaN"),
        (returns(-np.inf, np.ones(3)), "-inf: it is unbounded below"),
        (returns(np.inf, np.ones(3)), r"infinite where fits begin; give start="),
        (returns(1j, np.ones(3)), r"one real number, got 1j"),
        (returns(np.complex128(1j), np.ones(3)), r"one real number"),
        (returns(None, np.ones(3)), r"one real number, got None"),
        (returns("text", np.ones(3)), r"one real number, got 'text'"),
        (returns("1.5", np.ones(3)), r"one real number, got '1.5'"),
        (returns(1.0, np.ones(3) * 1j), r"the gradient must be an array of real numbers"),
        (returns(1.0, ["a", "b", "c"]), r"the gradient must be an array of real numbers"),
        (returns(1.0, ["1", "2", "3"]), r"the gradient must be an array of real numbers"),
        (returns(1.0, [[1.0], [1.0, 2.0], [1.0]]), r"the gradient must be an array of real"),
    ],
)
def test_answers_that_are_none(function, message):
    with pytest.raises(ObjectiveError, match=message):
        from_function(function, 3)


@pytest.mark.parametrize(
    ("name", "function", "message"),
    [
        ("hessian", lambda beta: np.eye(2), r"hessian must have shape \(6, 6\), got"),
        ("hessian", lambda beta: np.full((6, 6), np.nan), "hessian holds NaN"),
        ("hessian_vector", lambda beta, v: v[:2], r"hessian_vector must have shape \(6,\)"),
        ("hessian_vector", lambda beta, v: 1j * v, r"hessian_vector must be an array of real"),
        ("value_many", lambda betas: betas, r"value_many must have shape \(\d,\), got"),
        ("value_many", lambda betas: [np.nan] * len(betas), "value_many returned NaN"),
        ("value_many", lambda betas: [-np.inf] * len(betas), "value_many holds -inf"),
    ],
)
def test_answers_of_the_other_functions(name, function, message):
    objective = from_function(make_written(), 6, **{name: function})
    with pytest.raises(ObjectiveError, match=message):
        select(objective, k=3, method="foba-obj")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"dim": 0}, ValueError, "dim"),
        ({"dim": 2.5}, TypeError, "dim"),
        ({"n_candidates": 4}, ValueError, "n_candidates=4 is more than there are"),
        ({"n_candidates": -1}, ValueError, "n_candidates"),
        ({"names": "abc"}, TypeError, "names must be a sequence of strings"),
        ({"names": ["a", "b"]}, ValueError, "one name per candidate: 3, got 2"),
        ({"curvature": (2.0, 1.0)}, ValueError, "0 <= lower <= upper"),
        ({"curvature": (-1.0, 1.0)}, ValueError, "0 <= lower <= upper"),
        ({"curvature": (0.0, 0.0)}, ValueError, "upper > 0"),
        ({"curvature": 1.0}, TypeError, r"a pair \(lower, upper\)"),
        ({"curvature": ([1.0, 1.0], 2.0)}, ValueError, r"curvature\[0\]"),
        ({"start": [0.0, 1.0]}, ValueError, "start"),
        ({"start": [0.0, 1.0, np.nan]}, ValueError, "start"),
        ({"start": "here"}, ValueError, "start must hold numbers"),
        ({"tol": 0.0}, ValueError, "tol"),
        ({"max_iter": 0}, ValueError, "max_iter"),
        ({"hessian": np.eye(3)}, TypeError, "hessian must be callable"),
        ({"value_many": 1}, TypeError, "value_many must be callable"),
    ],
)
def test_arguments(options, error, message):
    given = {"dim": 3} | options
    with pytest.raises(error, match=message):
        from_function(quadratic(np.eye(3), np.ones(3)), **given)


def test_only_callables():
    with pytest.raises(TypeError, match="value_and_gradient must be callable, got 3"):
        from_function(3, 3)


def test_a_start_where_the_function_is_infinite():
    def barrier(beta):
        if beta[0] <= 0.0:
            return np.inf, np.zeros(2)
        return beta[0] - np.log(beta[0]) + beta[1] ** 2, np.array([1 - 1 / beta[0], 2 * beta[1]])

    with pytest.raises(ObjectiveError, match="start= a vector of length 2"):
        from_function(barrier, 2)
    with pytest.raises(ObjectiveError, match="start= a vector of length 2"):
        from_function(barrier, 2, start=[-1.0, 0.0])


def test_a_support_on_which_the_function_is_infinite():
    def barrier(beta):
        if beta[0] <= 0.0:
            return np.inf, np.zeros(2)
        return beta[0] - np.log(beta[0]) + beta[1] ** 2, np.array([1 - 1 / beta[0], 2 * beta[1]])

    with pytest.raises(ObjectiveError, match="infinite"):  # nothing is always in
        select(from_function(barrier, 2, start=[1.0, 0.0]), k=1)


@pytest.mark.parametrize("method", METHODS)
def test_nan_at_the_third_step_names_it_and_keeps_the_path(method):
    written = make_written()

    def breaks(beta):
        value, gradient = written(beta)
        return (np.nan if np.count_nonzero(beta) == 3 else value), gradient

    objective = from_function(breaks, 6, hessian=written.hessian)
    with pytest.raises(ObjectiveError, match=r"at step 3 \(size 2 so far\): .*NaN") as caught:
        select(objective, method=method)
    expected = select(written.objective("hessian"), method=method, k=2)
    assert [s.feature for s in caught.value.path.steps] == [s.feature for s in expected.steps]
    assert "NaN" in caught.value.path.stop_reason
    np.testing.assert_allclose(caught.value.path.coef(2), expected.coef(2), rtol=1e-7)


@pytest.mark.parametrize("extras", [(), ("value_many",)], ids="-".join)
@pytest.mark.parametrize("method", METHODS)
def test_a_function_that_bends_down_on_the_way(method, extras):
    def bent(beta):  # a Cauchy loss of the third coordinate
        r = beta - np.array([9.0, 4.0, 5.0])
        value = r[0] ** 2 + r[1] ** 2 + np.log1p(r[2] ** 2)
        return value, np.array([2 * r[0], 2 * r[1], 2 * r[2] / (1 + r[2] ** 2)])

    many = {"value_many": lambda betas: [bent(beta)[0] for beta in betas]}
    objective = from_function(bent, 3, **{name: many[name] for name in extras})
    with pytest.raises(ObjectiveError, match=r"^at step \d .*not convex") as caught:
        select(objective, method=method)
    assert {step.feature for step in caught.value.path.steps} <= {0, 1}


def test_a_concave_function_is_not_convex():
    with pytest.raises(ObjectiveError, match="not convex"):
        select(from_function(lambda b: (-b @ b + b[0], -2 * b + np.eye(3)[0]), 3), k=2)


def test_a_gradient_of_the_wrong_sign_is_noticed():
    written = make_written()
    objective = from_function(lambda beta: (written(beta)[0], -written(beta)[1]), 6)
    with pytest.raises(ObjectiveError, match="not convex, or its gradient is wrong"):
        select(objective, k=3)


def test_an_error_of_the_function_itself_passes_through():
    def fails(beta):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        from_function(fails, 3)


@pytest.mark.parametrize(
    "code",
    [
        "from forback.objectives import from_jax; from_jax(lambda b: b @ b, 3)",
        "from forback.objectives import PointwiseLoss; PointwiseLoss(lambda eta, y: eta)",
    ],
)
def test_without_jax_the_line_to_install_it(code, without_extras):
    without_extras(
        f"try:\n    {code}\nexcept ImportError as error:\n"
        "    assert 'pip install \"forback[jax]\"' in str(error), error\n"
        "else:\n    raise AssertionError('JAX was found')\n"
    )


@pytest.mark.parametrize("factor", [0.5, -1.0, 1.0])
def test_gradients_are_checked_where_they_are_not_zero(factor):
    """With the minimum at zero a wrong factor shows nowhere near it."""
    objective = from_function(lambda beta: (float(beta @ beta), factor * 2 * beta), 4)
    if factor == 1.0:
        check_objective(objective)
        return
    with pytest.raises(AssertionError, match="gradient against a finite difference"):
        check_objective(objective)


def test_bounds_that_do_not_hold_are_noticed_by_the_check():
    bend, slope = np.array([0.01, 1.0, 1.0]), np.array([1.0, 2.0, 1.0])

    def value_and_gradient(beta):
        return float(beta @ (bend * beta) / 2 - slope @ beta), bend * beta - slope

    check_objective(from_function(value_and_gradient, 3, curvature=(0.01, 1)))
    with pytest.raises(AssertionError, match="the best of decrease_if_added"):
        check_objective(from_function(value_and_gradient, 3, curvature=(1, 1)))


@pytest.mark.parametrize("method", METHODS)
def test_functions_without_a_minimum_are_named(method):
    def half_straight(beta):
        return beta[0] + np.sum((beta[1:] - 1) ** 2), np.append(1.0, 2 * (beta[1:] - 1))

    def many(betas):
        return betas[:, 0] + np.sum((betas[:, 1:] - 1) ** 2, axis=1)

    slopes = np.arange(1.0, 9.0)
    for objective in (
        from_function(half_straight, 8),
        from_function(half_straight, 8, value_many=many),
        from_function(lambda beta: (slopes @ beta, slopes), 8),
        from_function(lambda beta: ((beta[0] - beta[1] - 1) ** 2 / 2 - 0.1 * beta.sum(),
                      np.array([1.0, -1.0]) * (beta[0] - beta[1] - 1) - 0.1), 2),
    ):  # fmt: skip
        with pytest.raises(ObjectiveError, match=r"at step \d+ .*unbounded below"):
            select(objective, method=method)


@pytest.mark.parametrize("method", ["forward-obj", "forward-gdt"])
def test_cauchy_is_not_convex(method):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 8))
    y = 2 * X[:, 2] - X[:, 5] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=80)

    def cauchy(beta):
        r = X @ beta - y
        return np.mean(np.log1p(r * r)), X.T @ (2 * r / (1 + r * r)) / 80

    with pytest.raises(ObjectiveError, match=r"at step 1 .*not convex"):
        select(from_function(cauchy, 8), k=3, method=method)


def test_what_is_passed_over_says_why():
    """A cone has a corner at its minimum: nothing smooth to be found there."""
    X = np.random.default_rng(0).normal(size=(30, 3))

    def cone(beta):
        r = X @ beta - X[:, 1]
        length = np.linalg.norm(r)
        return length, X.T @ r / max(length, 1e-300)

    (step,) = select(from_function(cone, 3), k=1).steps
    assert step.note.startswith("passed over 1: refitted with it")
    assert "not converged" in step.note


def test_points_without_their_cache_are_part_of_the_contract():
    objective = from_function(lambda beta: (float(beta @ beta), 2 * beta), 3)
    own = objective.gradient
    objective.gradient = lambda point: own(point) + 0 * point.cache.beta
    with pytest.raises(AssertionError, match=r"must do without point.cache"):
        check_objective(objective)


def test_without_jax_in_this_process(monkeypatch):
    from forback.objectives import from_jax

    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(
        ImportError, match=r'^this needs JAX: pip install "forback\[jax\]" \(or give'
    ):
        from_jax(lambda beta: beta @ beta, 3)
    with pytest.raises(
        ImportError, match=r'^this needs JAX: pip install "forback\[jax\]" \(or give'
    ):
        PointwiseLoss(lambda eta, y: (eta - y) ** 2)


class OwnError(Exception):
    """Somebody's own."""


@pytest.mark.parametrize("error", [OwnError("no licence"), ZeroDivisionError(), ValueError("x")])
def test_an_exception_of_a_function_keeps_the_path(error):
    written, calls = make_written(), []

    def failing(beta):
        calls.append(None)
        if np.count_nonzero(beta) == 3:
            raise error
        return written(beta)

    with pytest.raises(type(error)) as caught:
        select(from_function(failing, 6), k=4)
    assert caught.value is error
    assert [step.size for step in error.path.steps] == [1, 2]
    assert error.path.stop_reason == (str(error) or "ZeroDivisionError")
    assert "at step 3 (size 2 so far); the path up to there" in error.__notes__[-1]


def test_an_exception_of_a_callback_keeps_the_path():
    def failing(step):
        if step.size == 2:
            raise OwnError("full")

    with pytest.raises(OwnError) as caught:
        select(make_written().objective(), k=4, callback=failing)
    assert [step.size for step in caught.value.path.steps] == [1, 2]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("extras", [(), ("hessian",)])
def test_a_gradient_with_some_noise_is_not_called_wrong(method, extras):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = X[:, 1] - X[:, 2] + 0.1 * rng.normal(size=60)
    hessian = {"hessian": lambda beta: X.T @ X / 60}
    for seed, scale in product(range(5), (1.0, 1e-3)):
        noise = np.random.default_rng(seed)

        def simulated(beta, noise=noise, scale=scale):
            r = X @ beta - scale * y
            return 0.5 * np.mean(r**2), X.T @ r / 60 + 1e-6 * noise.normal(size=5)

        objective = from_function(simulated, 5, **{name: hessian[name] for name in extras})
        assert {1, 2} <= set(select(objective, 3, method)[3].support.tolist())


@pytest.mark.parametrize("method", METHODS)
def test_noise_that_is_all_there_is_to_a_gradient_is_not_called_wrong(method):
    for seed in range(5):
        noise = np.random.default_rng(seed)

        def simulated(beta, noise=noise):
            return float(beta @ beta), 2.0 * beta + 1e-6 * noise.normal(size=4)

        assert select(from_function(simulated, 4), method=method).end.value < 1e-10


@pytest.mark.parametrize("stage", ["always", "auto", "callback"])
@pytest.mark.parametrize("error", [KeyError("mine"), KeyboardInterrupt(), SystemExit(3)])
def test_exceptions_outside_the_loop_say_where_they_were_raised(stage, error):
    calls = []

    def function(beta):
        calls.append(beta)
        if stage == "always" and len(calls) == 3:
            raise error
        return float(((beta - 1.0) ** 2).sum()), 2.0 * (beta - 1.0)

    def stop(step):
        if stage == "callback" and step.size == 2:
            raise error

    def loss(eta, y):
        calls.append(eta)
        if len(calls) == 30:
            raise error
        return np.logaddexp(0.0, eta) - y * eta

    def run():
        if stage != "auto":
            return select(from_function(function, 5), 3, always=[0], callback=stop)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40, 4))
        own = PointwiseLoss(
            loss, lambda eta, y: expit(eta) - y, lambda eta, y: expit(eta) * expit(-eta)
        )
        return select(GLM(own, X, rng.integers(0, 2, 40)), epsilon="auto")

    with pytest.raises(type(error)) as caught:
        run()
    assert caught.value is error
    notes = " ".join(getattr(error, "__notes__", ()))
    if stage == "always":
        assert error.path is None
        assert "before the first step" in notes or isinstance(error, KeyboardInterrupt)
    elif stage == "callback":
        assert len(error.path.steps) == 2
        assert "after step 2 (size 2)" in notes or isinstance(error, KeyboardInterrupt)
    else:
        assert error.path.steps == []


class StubbornError(Exception):
    """An exception that takes no note and no attribute, and cannot be shown."""

    def __setattr__(self, name, value):
        raise TypeError("nothing may be set")

    def __str__(self):
        raise ValueError("no text")

    def add_note(self, note):
        raise TypeError("no notes")


def test_an_exception_that_takes_no_note_stays_what_it_is():
    def function(beta):
        if np.count_nonzero(beta) > 1:
            raise StubbornError
        return float(((beta - 1.0) ** 2).sum()), 2.0 * (beta - 1.0)

    with pytest.raises(StubbornError):
        select(from_function(function, 5), 3)


def test_a_callback_answers_with_something_true_or_false():
    function = from_function(lambda b: (float(((b - 1.0) ** 2).sum()), 2.0 * (b - 1.0)), 5)
    with pytest.raises(TypeError, match=r"^callback must answer with something true or false"):
        select(function, 3, callback=lambda step: np.array([True, False]))
