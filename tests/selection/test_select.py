"""Stops, ties, groups, always, and what a Path remembers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import OrthogonalMatchingPursuit

from forback import Path, select
from forback.core.blocks import Blocks
from forback.objectives import LeastSquares, Logistic
from forback.selection.rules import with_refit, without_refit
from forback.selection.ties import highest, lowest
from support.problems import LOSSES, make_problem

METHODS = ("foba-gdt", "foba-obj", "forward-gdt", "forward-obj")


def moves(path):
    return [(step.action, step.feature) for step in path.steps]


@pytest.fixture
def objective():
    return make_problem("squared", "correlated", 0, n=60, p=12, fit_intercept=True).objective()


@pytest.mark.parametrize("seed", range(8))
def test_forward_gdt_on_least_squares_is_orthogonal_matching_pursuit(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 30)) + rng.normal(size=(50, 1))
    X -= X.mean(axis=0)
    X /= np.linalg.norm(X, axis=0)
    y = X[:, :6] @ rng.normal(size=6) + 0.1 * rng.normal(size=50)
    path = select(LeastSquares(X, y - y.mean()), k=8, method="forward-gdt")
    for k in range(1, 9):
        omp = OrthogonalMatchingPursuit(n_nonzero_coefs=k, fit_intercept=False).fit(X, y - y.mean())
        np.testing.assert_allclose(path.coef(k), omp.coef_, rtol=1e-7, atol=1e-10)


def test_on_orthogonal_columns_every_method_finds_the_best_subset():
    X, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(20, 10)))
    y = X @ np.arange(10.0)
    for method in METHODS:
        path = select(LeastSquares(X, y), k=4, method=method)
        assert [s.feature for s in path.steps] == [9, 8, 7, 6]


def test_size_is_tested_after_the_backward_steps():
    """At size k the backward steps may take something out; then the run goes on."""
    for seed in range(200):
        objective = make_problem("squared", "correlated", seed, n=40, p=10).objective()
        whole = select(objective)
        for before, after in zip(whole.steps, whole.steps[1:], strict=False):
            if before.action == "add" and after.action == "remove":
                k = before.size
                path = select(objective, k=k)
                assert len(path.steps) > 1 + [s.size for s in path.steps].index(k)
                assert path.end.size == k
                return
    pytest.fail("no run removed anything")


def test_a_run_without_stops_ends_with_every_feature_in(objective):
    path = select(objective)
    assert path.end.size == 12
    assert path.stop_reason == "all candidates are selected"
    everything = objective.minimise(np.arange(13))
    assert path.end.value == pytest.approx(everything.value, rel=1e-12)


def test_k_zero_fits_what_is_always_in(objective):
    path = select(objective, k=0)
    assert path.steps == []
    assert path.sizes == [0]
    assert path[0].support.tolist() == [12]
    assert path[0].coef[0] == pytest.approx(objective.y.mean())


def test_a_prefix_of_a_run_is_the_run_to_a_smaller_size(objective):
    long = select(objective, k=8)
    for k in range(8):
        short = select(objective, k=k)
        assert moves(short) == moves(long)[: len(short.steps)]


def test_thresholds_are_strict(objective):
    start = select(objective, k=0).start
    goodness = np.abs(objective.gradient(start)[:12]).max()
    assert select(objective, epsilon=goodness, max_steps=1).steps
    assert not select(objective, epsilon=goodness * (1 + 1e-12)).steps


def test_max_steps_and_callback(objective):
    seen = []
    path = select(objective, callback=seen.append, max_steps=5)
    assert moves(path) == [(s.action, s.feature) for s in seen]
    assert path.stop_reason == "max_steps=5 reached"
    assert select(objective, max_steps=0).steps == []
    stopped = select(objective, callback=lambda step: step.size == 3)
    assert stopped.end.size == 3
    assert stopped.stop_reason == "stopped by the callback"


def test_an_interrupt_leaves_the_path_so_far(objective):
    def interrupt(step):
        if step.size == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        select(objective, callback=interrupt)
    path = caught.value.path
    assert path.stop_reason == "interrupted"
    assert path.end.size == 3
    assert path.coef(3).shape == (13,)


def test_an_interrupt_inside_a_fit_leaves_the_path_too(objective, monkeypatch):
    original, calls = objective.minimise, []

    def interrupted(support, start=None):
        calls.append(len(support))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(support, start)

    monkeypatch.setattr(objective, "minimise", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        select(objective)
    assert [s.size for s in caught.value.path.steps] == [1, 2]


def test_ties_go_to_the_lowest_index():
    assert highest(np.array([1.0, 2.0, 2.0 * (1 + 1e-10), 1.5])) == 1
    assert highest(np.array([1.0, 2.0, 2.0 * (1 + 1e-8), 1.5])) == 2
    assert lowest(np.array([3.0, 1.0 * (1 + 1e-10), 1.0])) == 1
    assert lowest(np.array([3.0, 1.0 * (1 + 1e-8), 1.0])) == 2
    X = np.tile(np.random.default_rng(0).normal(size=(20, 1)), (1, 5))
    for method in METHODS:
        assert select(LeastSquares(X, X[:, 0]), method=method).steps[0].feature == 0


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), loss=st.sampled_from(LOSSES), method=st.sampled_from(METHODS))
def test_groups_of_one_are_no_groups(seed, loss, method):
    objective = make_problem(loss, "gaussian", seed, n=30, p=6).objective()
    plain = select(objective, method=method)
    grouped = select(objective, method=method, groups=[f"g{j}" for j in range(6)])
    assert moves(plain) == moves(grouped)


def test_groups_enter_whole_in_any_order_of_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    y = X[:, 0] + X[:, 2] + 0.1 * rng.normal(size=80)
    labels = ["b", "a", "b", "c", "a", "c"]
    path = select(LeastSquares(X, y), k=1, groups=labels)
    assert path[1].support.tolist() == [0, 2]
    assert path.steps[0].feature == 0  # "b" appears first
    assert path.name(0) == "b"
    mapped = select(LeastSquares(X, y), k=2, groups={0: "b", 2: "b"})
    assert mapped[1].support.tolist() == [0, 2]
    assert mapped.steps[0].feature == 0


def test_always_is_fitted_first_never_counted_and_never_removed():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 8)) + rng.normal(size=(100, 1))
    y = 5 * X[:, 7] + X[:, 2] + 0.1 * rng.normal(size=100)
    for method in METHODS:
        path = select(LeastSquares(X, y), method=method, always=[7])
        assert path.start.support.tolist() == [7]
        assert path.steps[0].feature == 2
        assert all(7 in point.support for point in path.points)
        assert path.end.size == 7
    everything = select(LeastSquares(X, y), always=list(range(8)))
    assert everything.end.support.tolist() == list(range(8))
    assert everything.stop_reason == "all candidates are selected"


def test_a_group_partly_in_always_offers_the_rest():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(50, 4)), rng.normal(size=50)
    path = select(LeastSquares(X, y), groups=["a", "a", "b", "c"], always=[0, 2])
    assert path.start.support.tolist() == [0, 2]
    assert {s.feature for s in path.steps} == {0, 2}  # "b" is wholly in already
    assert path.end.size == 2


def test_path_remembers_first_last_and_best_visits():
    for seed in range(100):
        objective = make_problem("squared", "correlated", seed, n=40, p=12).objective()
        path = select(objective)
        visits = [p for p in path.points if p.size == 3]
        if len(visits) > 1:
            assert path.first(3) is visits[0]
            assert path.last(3) is visits[-1]
            assert path.best(3).value == min(v.value for v in visits)
            assert path[3] is path.best(3)
            return
    pytest.fail("no size was visited twice")


def test_unvisited_sizes_are_named(objective):
    path = select(objective, k=2)
    with pytest.raises(KeyError, match=r"size 5 was never visited.*\[0, 1, 2\]"):
        path[5]
    assert list(path) == [0, 1, 2]
    assert 5 not in path


def test_points_on_a_path_carry_no_cache_and_can_be_rebuilt(objective):
    path = select(objective, k=4)
    assert all(point.cache is None for point in path.points)
    again = objective.minimise(path[4].support, path[4])
    assert again.value == pytest.approx(path[4].value, rel=1e-14)


def test_saving_and_loading_gives_the_same_bits(objective, tmp_path):
    path = select(objective, k=np.int64(5), epsilon=np.float32(1e-3))
    path.save(tmp_path / "path.json")
    loaded = Path.load(tmp_path / "path.json")
    assert moves(loaded) == moves(path)
    assert loaded.stop_reason == path.stop_reason
    assert dict(loaded.settings) == dict(path.settings)
    for mine, theirs in zip(path.points, loaded.points, strict=True):
        np.testing.assert_array_equal(mine.coef, theirs.coef)
        np.testing.assert_array_equal(mine.support, theirs.support)
        assert mine.value == theirs.value
    for content in ('{"a": 1}', '{"format": 1}', '{"format": 2}', "[]", "no json"):
        (tmp_path / "other.json").write_text(content)
        with pytest.raises(ValueError, match="not a path saved by forback"):
            Path.load(tmp_path / "other.json")


def test_a_callback_cannot_change_the_path(objective):
    with pytest.raises(ValueError, match="read-only"):
        select(objective, k=3, callback=lambda step: step.point.coef.fill(0.0))


def test_to_frame_has_a_row_per_step_and_names():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
    path = select(LeastSquares(X, 2 * X["b"] + X["c"]))
    frame = path.to_frame()
    assert frame["name"].tolist() == ["b", "c"]
    assert frame.index.tolist() == [1, 2]
    assert frame["value"].iloc[-1] == path.end.value


def test_entry_order_counts_a_return_as_new():
    for seed in range(100):
        problem = make_problem("squared", "correlated", seed, n=40, p=8, fit_intercept=True)
        path = select(problem.objective())
        order = path.entry_order(path.end).tolist()
        assert order[0] == 8  # the intercept
        assert sorted(order) == list(range(9))
        last = {s.feature: number for number, s in enumerate(path.steps) if s.action == "add"}
        assert order[1:] == sorted(last, key=last.get)
        if any(s.action == "remove" for s in path.steps):
            return
    pytest.fail("nothing ever left and came back")


def test_refitting_makes_leaving_cheaper_so_more_leaves():
    counts = {"coordinate": 0, "refit": 0}
    for seed in range(20):
        objective = make_problem("logistic", "correlated", seed, n=60, p=10).objective()
        for backward in counts:
            path = select(objective, backward=backward)
            counts[backward] += sum(s.action == "remove" for s in path.steps)
        point = path[5]
        inside = Blocks.singles(point.support, np.zeros(0, int))
        costs = [rule(objective, point, inside, np.inf)[0] for rule in (with_refit, without_refit)]
        assert np.all(costs[0] <= costs[1])
    assert counts["refit"] > counts["coordinate"] > 0


def test_ratio_zero_never_removes():
    for seed in range(5):
        objective = make_problem("logistic", "correlated", seed, n=60, p=10).objective()
        zero, forward = select(objective, ratio=0.0), select(objective, method="forward-gdt")
        assert moves(zero) == moves(forward)


def test_the_repr_tells_the_story(objective):
    text = repr(select(objective, k=2))
    assert "foba-gdt" in text
    assert "size 2 reached" in text


def test_select_works_on_a_bare_objective_of_the_documented_members():
    """Somebody else's objective needs only the members that the design names."""

    class Bare:
        dim = n_candidates = 3
        center = np.array([3.0, -1.0, 2.0])

        def minimise(self, support, start=None):
            from forback.core.point import Point

            off = np.setdiff1d(np.arange(3), support)
            return Point(
                support, self.center[support], 0.5 * float(self.center[off] @ self.center[off])
            )

        def gradient(self, point):
            return point.dense(3) - self.center

        def decrease_if_added(self, point, blocks):
            return np.array([0.5 * sum(self.gradient(point)[b] ** 2) for b in blocks])

        def increase_if_removed(self, point, blocks):
            return np.array([0.5 * sum(point.dense(3)[b] ** 2) for b in blocks])

        def value_and_gradient(self, beta):
            return 0.5 * float(np.sum((beta - self.center) ** 2)), beta - self.center

    from forback.testing import check_objective

    check_objective(Bare())
    for method in METHODS:
        for backward in ("coordinate", "refit"):
            path = select(Bare(), method=method, backward=backward)
            assert [s.feature for s in path.steps] == [0, 2, 1]


def test_logistic_takes_labels_in_three_codes():
    X = np.random.default_rng(3).normal(size=(60, 5))
    y = X[:, 1] + np.random.default_rng(4).normal(size=60) > 0
    paths = [select(Logistic(X, code, ridge=0.1), k=3) for code in (y, 1 * y, np.where(y, 1, -1))]
    for path in paths[1:]:
        np.testing.assert_array_equal(path.coef(3), paths[0].coef(3))
