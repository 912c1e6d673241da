"""`ChainCRF`: its contract, its formulas, its optimum, its paths, whatever it is built from."""

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from forback import select
from forback.core.blocks import Blocks
from forback.core.point import Point
from forback.objectives import ChainCRF
from forback.selection.path import Path
from forback.selection.rules import METHODS
from forback.testing import check_objective
from reference.algorithm1 import foba
from reference.chain import ChainQ
from support.problems import information
from support.processes import in_another_process

LENGTHS = [12, 1, 15, 2]


def make_chain(n=30, width=3, k=3, kind="binary", seed=0):
    """Labels that linger, and columns of which each prefers one of them."""
    rng = np.random.default_rng(seed)
    y = np.repeat(rng.integers(0, k, n), rng.integers(1, 4, n))[:n]
    y[:k] = np.arange(k)
    likes = np.arange(width) % k
    X = (rng.random((n, width)) < np.where(y[:, None] == likes, 0.7, 0.3)).astype(float)
    if kind == "real":
        X += 0.5 * rng.normal(size=X.shape)
    if kind == "correlated":
        X += 0.5 * rng.normal(size=X.shape) + 2.0 * rng.normal(size=(n, 1))
    return X, y


def split(X, lengths):
    return np.split(X, np.cumsum(lengths)[:-1])


def make_tiny(seed=0, k=2, width=2, kind="binary", **options):
    """An objective and its reference on a few short sequences."""
    lengths = [6, 1, 5, 2, 6]
    X, y = make_chain(sum(lengths), width, k, kind, seed)
    options = {"ridge": 1e-2, "start_end": True} | options
    reference = ChainQ(split(X, lengths), split(y, lengths), k, **options)
    return ChainCRF(X, y, lengths, **options), reference


VARIANTS = {
    "dense": lambda X, y: ChainCRF(X, y),
    "csr": lambda X, y: ChainCRF(sparse.csr_array(X), y),
    "csc": lambda X, y: ChainCRF(sparse.csc_matrix(X), y),
    "list": lambda X, y: ChainCRF(split(X, LENGTHS), split(y, LENGTHS)),
    "list of csr": lambda X, y: ChainCRF([sparse.csr_array(p) for p in split(X, LENGTHS)], y),
    "several": lambda X, y: ChainCRF(X, y, LENGTHS),
    "start and end": lambda X, y: ChainCRF(X, y, LENGTHS, start_end=True),
    "ridge": lambda X, y: ChainCRF(X, y, ridge=np.linspace(1e-3, 1e-1, 21)),
    "no ridge on candidates": lambda X, y: ChainCRF(X, y, ridge=[*[0.0] * 9, *[1e-2] * 12]),
    "single steps": lambda X, y: ChainCRF(X, y, [1] * 30, start_end=True),
    "zero column": lambda X, y: ChainCRF(np.c_[X, np.zeros(30), np.ones(30)], y, ridge=1e-2),
    "two rows, two labels": lambda X, y: ChainCRF(X[:, :1], y > 0),
    "nine labels": lambda X, y: ChainCRF(X[:, :2], np.arange(30) % 9, ridge=1e-2),
}


@pytest.mark.parametrize(
    ("variant", "kind"),
    [*((v, "binary") for v in VARIANTS), *((v, "real") for v in ("dense", "several", "csr"))],
)
def test_contract(variant, kind):
    supports = 1 if variant in ("csc", "list", "list of csr", "nine labels") else 2
    check_objective(VARIANTS[variant](*make_chain(kind=kind)), supports=supports)


@pytest.mark.parametrize("start_end", [False, True])
@pytest.mark.parametrize("kind", ["binary", "real"])
@pytest.mark.parametrize("k", [2, 3])
def test_formulas_agree_with_listing_everything(k, kind, start_end):
    objective, Q = make_tiny(1, k, kind=kind, start_end=start_end)
    assert (objective.dim, objective.n_candidates) == (Q.dim, Q.n_candidates)
    rng = np.random.default_rng(0)
    for size in (0.3, 3.0, 200.0):
        beta = size * rng.normal(size=objective.dim)
        value, gradient = objective.value_and_gradient(beta)
        assert value == pytest.approx(Q.value(beta), rel=1e-10)
        np.testing.assert_allclose(gradient, Q.gradient(beta), rtol=1e-10, atol=1e-10)
        point = Point(np.arange(objective.dim), beta, value)
        np.testing.assert_allclose(
            objective.marginals(point), Q.listing.marginals(beta), atol=1e-10
        )
        loglik, n, df = information(objective, point)
        assert (n, df) == (20.0, objective.dim)
        assert loglik == pytest.approx(
            Q.observed @ beta - Q.listing.log_z(beta), rel=1e-10, abs=1e-9
        )


def test_weights_transitions_and_names_are_where_they_say():
    X, y = make_chain()
    names = np.array(["cook", "eat", "rest"])[y]
    objective = ChainCRF(X, names, LENGTHS, start_end=True)
    point = objective.minimise(np.arange(objective.dim))
    weights = objective.weights(point)
    assert weights.observe.shape == (3, 3)
    assert objective.classes.tolist() == ["cook", "eat", "rest"]
    assert objective.features.column_of.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert objective.features.candidate_names[:4] == ("0:cook", "0:eat", "0:rest", "1:cook")
    followed = objective.expected_transitions(point)
    assert followed.sum() == pytest.approx(30 - len(LENGTHS))
    followed[:] = 0.0  # the caller's own
    assert objective.expected_transitions(point).sum() == pytest.approx(30 - len(LENGTHS))


@pytest.mark.parametrize("variant", ["one sequence", "several", "real"])
def test_the_optimum_is_that_of_crfsuite(variant, tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    kind = "real" if variant == "real" else "binary"
    X, y = make_chain(120, 4, 3, kind, seed=5)
    lengths = [120] if variant == "one sequence" else [50, 1, 69]
    ridge = 1e-2
    objective = ChainCRF(X, y, lengths, ridge=ridge)
    point = objective.minimise(np.arange(objective.dim))
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({
        "c1": 0.0, "c2": 120 * ridge / 2, "epsilon": 1e-9, "delta": 1e-12, "period": 50,
        "max_iterations": 5000, "feature.possible_states": True,
        "feature.possible_transitions": True, "feature.minfreq": 0,
    })  # fmt: skip
    for part, own in zip(split(X, lengths), split(y, lengths), strict=True):
        items = [{f"x{j}": x for j, x in enumerate(row)} | {"bias": 1.0} for row in part.tolist()]
        trainer.append(pycrfsuite.ItemSequence(items), [str(label) for label in own])
    trainer.train(str(tmp_path / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    found = tagger.info()
    beta = np.zeros(objective.dim)
    for (name, label), weight in found.state_features.items():
        place = 24 - 3 if name == "bias" else 3 * int(name[1:])
        beta[place + int(label)] = weight
    for (before, after), weight in found.transitions.items():
        beta[12 + 3 * int(before) + int(after)] = weight
    theirs, _ = objective.value_and_gradient(beta)
    assert point.value <= theirs + 1e-12
    assert point.value == pytest.approx(theirs, rel=1e-5)
    np.testing.assert_allclose(point.coef, beta, atol=1e-2)


@pytest.mark.parametrize("method", METHODS)
def test_every_storage_takes_the_same_path(method):
    X, y = make_chain(seed=2)
    paths = [
        select(objective, k=4, method=method)
        for objective in (
            ChainCRF(X, y, LENGTHS),
            ChainCRF(sparse.csr_array(X), y, np.array(LENGTHS)),
            ChainCRF(split(X.astype(bool), LENGTHS), split(y, LENGTHS)),
            ChainCRF(np.asfortranarray(X.astype(np.float32)), y.tolist(), tuple(LENGTHS)),
        )
    ]
    for path in paths[1:]:
        assert [s.feature for s in path.steps] == [s.feature for s in paths[0].steps]
        np.testing.assert_allclose(
            [s.value for s in path.steps], [s.value for s in paths[0].steps], rtol=1e-10
        )


@pytest.mark.parametrize("method", METHODS)
def test_permuting_sequences_and_columns_permutes_the_answer(method):
    X, y = make_chain(width=4, kind="real", seed=3)
    rng = np.random.default_rng(1)
    order, columns = rng.permutation(len(LENGTHS)), rng.permutation(4)
    parts, labels = split(X, LENGTHS), split(y, LENGTHS)
    plain = select(ChainCRF(parts, labels, start_end=True), k=4, method=method).coef(4)
    permuted = ChainCRF(
        [parts[i][:, columns] for i in order], [labels[i] for i in order], start_end=True
    )
    found = select(permuted, k=4, method=method).coef(4)
    expected = plain[:12].reshape(4, 3)[columns].ravel()
    np.testing.assert_allclose(found[:12], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[12:], plain[12:], rtol=1e-4, atol=1e-5)


def test_repeating_every_sequence_changes_nothing():
    X, y = make_chain(seed=4)
    once, twice = ChainCRF(X, y), ChainCRF([X, X], [y, y])
    beta = np.random.default_rng(0).normal(size=once.dim)
    for one, two in zip(once.value_and_gradient(beta), twice.value_and_gradient(beta), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-14)


# Paths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("backward", ["coordinate", "refit"])
@pytest.mark.parametrize("groups", [None, "columns"])
def test_every_step_is_the_references(method, backward, groups):
    removed = 0
    for seed in (0, 3):
        kind, k = ("correlated", 3) if seed else ("binary", 2)
        objective, Q = make_tiny(seed, k, 2, kind)
        p = objective.n_candidates
        labels = objective.features.column_of if groups else np.arange(p)
        blocks = [np.flatnonzero(labels == label).tolist() for label in np.unique(labels)]
        path = select(
            objective, method=method, backward=backward, ratio=0.9,
            by="feature" if groups is None else "group",
        )  # fmt: skip
        expected = list(
            foba(
                Q, blocks, list(range(p, Q.dim)),
                gradient_rule=method.endswith("gdt"), backward=method.startswith("foba"),
                ratio=0.9, refit=backward == "refit",
            )
        )  # fmt: skip
        assert [(s.action, s.feature) for s in path.steps] == [step[:2] for step in expected]
        for step, (_, _, chosen, beta) in zip(path.steps, expected, strict=True):
            assert step.size == len(chosen)
            assert step.value == pytest.approx(Q.value(beta), rel=1e-9)
            assert step.note == ""
        removed += sum(step.action == "remove" for step in path.steps)
    assert removed or method.startswith("forward") or groups


@pytest.mark.parametrize("name", ["epsilon", "delta"])
def test_thresholds_stop_where_the_reference_stops(name):
    method = "foba-gdt" if name == "epsilon" else "foba-obj"
    for threshold in (1e-3, 1e-2, 0.05):
        objective, Q = make_tiny(7, k=3)
        path = select(objective, method=method, **{name: threshold})
        steps = foba(
            Q, [[j] for j in range(objective.n_candidates)],
            list(range(objective.n_candidates, Q.dim)),
            gradient_rule=name == "epsilon", backward=True, threshold=threshold,
        )  # fmt: skip
        assert [(s.action, s.feature) for s in path.steps] == [step[:2] for step in steps]


def test_fits_converge_where_steps_must_be_lengthened():
    X, y = np.tile(np.eye(2), (4, 1)), [0] * 4 + [1] * 4
    Q = ChainQ([X], [y], 2)
    path = select(ChainCRF(X, y), k=3, method="foba-obj")
    expected = list(
        foba(Q, [[j] for j in range(4)], list(range(4, 10)), gradient_rule=False,
             backward=True, k=3)
    )  # fmt: skip
    for step, (*_, beta) in zip(path.steps, expected, strict=True):
        assert step.note == ""
        assert step.value == pytest.approx(Q.value(beta), rel=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 1e-8, 1.0])
@pytest.mark.parametrize("method", METHODS)
def test_labels_that_a_column_gives_away(method, ridge):
    _, y = make_chain(90, seed=6)
    path = select(ChainCRF(np.eye(3)[y], y, ridge=ridge), k=3, method=method)
    values = [path.start.value, *(step.value for step in path.steps)]
    assert np.isfinite(values).all()
    assert path.end.value < (0.02 if ridge < 1 else path.start.value)


def test_columns_of_any_size():
    X, y = make_chain(90, 4, kind="real", seed=8)
    for size in (1e-6, 1e4, 1e8):
        scaled = X * [1.0, 1.0, 1.0, size]
        path = select(ChainCRF(scaled, y), k=3, method="foba-obj")
        assert all(step.note == "" for step in path.steps)
        objective = ChainCRF(scaled, y)
        point = objective.minimise(np.arange(objective.dim))
        left = objective.gradient(point)
        assert point.note == ""
        assert 0.5 * left @ left / 1e-4 <= 1e-11


def test_names_of_candidates_name_the_steps():
    pandas = pytest.importorskip("pandas")
    X, y = make_chain()
    frame = pandas.DataFrame(X, columns=["oven", "bed", "door"])
    objective = ChainCRF(frame, np.array(["eat", "rest", "walk"])[y])
    path = select(objective, k=5, always=["oven"])
    for step in path.steps:
        column, label = divmod(step.feature, 3)
        name = f"{frame.columns[column]}:{objective.classes[label]}"
        assert path.name(step.feature) == name
        assert column != 0
    path.to_frame()
    assert ChainCRF(X, y).feature_names is None


# Runs -----------------------------------------------------------------------------------------


def fingerprint(path):
    return [(s.action, s.feature, s.value) for s in path.steps]


def test_interleaved_runs_are_separate_runs():
    objective = ChainCRF(*make_chain(seed=9), start_end=True)
    alone = {k: fingerprint(select(objective, k=k, method="foba-obj")) for k in (2, 4)}
    inner = []

    def interfere(step):
        inner.append(select(objective, k=2, method="foba-obj"))

    outer = select(objective, k=4, method="foba-obj", callback=interfere)
    assert fingerprint(outer) == alone[4]
    assert {tuple(fingerprint(path)) for path in inner} == {tuple(alone[2])}


def test_runs_in_several_threads_are_separate_runs():
    objective = ChainCRF(*make_chain(seed=9))
    groups = list(range(3))
    alone = fingerprint(select(objective, k=3, method="foba-obj", groups=groups))
    with ThreadPoolExecutor(4) as pool:
        for path in pool.map(
            lambda _: select(objective, k=3, method="foba-obj", groups=groups), range(8)
        ):
            assert fingerprint(path) == alone


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("kind", ["binary", "real"])
def test_inputs_are_never_modified_and_may_be_read_only(make, kind):
    X, y = make_chain(kind=kind)
    lengths, ridge = np.array(LENGTHS), np.full(21, 1e-3)
    X = make(X)
    kept = X.copy(), y.copy(), lengths.copy(), ridge.copy()
    arrays = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr]
    for array in (*arrays, y, lengths, ridge):
        array.flags.writeable = False
    select(ChainCRF(X, y, lengths, ridge=ridge), k=3, method="foba-obj")
    assert abs(X - kept[0]).max() == 0
    for array, before in zip((y, lengths, ridge), kept[1:], strict=True):
        np.testing.assert_array_equal(array, before)


def test_a_path_can_be_saved_and_loaded(tmp_path):
    objective = ChainCRF(*make_chain())
    path = select(objective, k=3)
    path.save(tmp_path / "path.json")
    again = Path.load(tmp_path / "path.json")
    assert fingerprint(again) == fingerprint(path)
    point = again[3]
    blocks = Blocks.singles(np.arange(9), np.arange(9, 21))
    np.testing.assert_allclose(
        objective.decrease_if_added(point, blocks).values,
        objective.decrease_if_added(objective.minimise(point.support), blocks).values, atol=1e-8,
    )  # fmt: skip


@pytest.mark.parametrize("twin", [lambda o: pickle.loads(pickle.dumps(o)), copy.deepcopy])
def test_a_pickled_objective_takes_the_same_path(twin):
    objective = ChainCRF(*make_chain(), LENGTHS, start_end=True)
    path = select(objective, k=3)
    other = twin(objective)
    assert fingerprint(select(other, k=3)) == fingerprint(path)
    point = objective.minimise(np.arange(objective.dim))
    copied = twin(point)
    np.testing.assert_allclose(other.gradient(copied), objective.gradient(point), atol=1e-12)
    assert other.minimise(point.support, point).value == pytest.approx(point.value, rel=1e-12)


FITS = """
import json
import numpy as np
from forback import select
from forback.objectives import ChainCRF
rng = np.random.default_rng(0)
y = np.repeat(rng.integers(0, 5, 100), 10)
likes = y[:, None] == np.arange(6) % 5
binary = (rng.random((1000, 6)) < np.where(likes, 0.6, 0.2)).astype(float)
found = []
for method in ("foba-gdt", "foba-obj"):
    for X, lengths in ((binary, None), (binary + 0.3 * rng.normal(size=binary.shape), [250] * 4)):
        path = select(ChainCRF(X, y, lengths), k=2, method=method)
        found.append([(s.action, s.feature, s.value.hex()) for s in path.steps])
groups = [0, 0, 1, 1, 2, 2]
path = select(ChainCRF(binary, y), k=1, method="foba-obj", groups=groups)
found.append([(s.action, s.feature, s.value.hex()) for s in path.steps])
print(json.dumps(found))
"""


def test_any_number_of_threads_gives_the_same_steps_and_the_same_number_the_same_bits():
    runs = {}
    for count, times in (("1", 1), ("2", 2)):
        printed = {in_another_process(FITS, OMP_NUM_THREADS=count) for _ in range(times)}
        assert len(printed) == 1
        runs[count] = json.loads(printed.pop())
    for one, two in zip(runs["1"], runs["2"], strict=True):
        assert [step[:2] for step in one] == [step[:2] for step in two]
        values = [[float.fromhex(step[2]) for step in path] for path in (one, two)]
        np.testing.assert_allclose(*values, rtol=1e-12)


def test_one_label_only_says_so():
    with pytest.raises(ValueError, match=r"y has only one class, 'a'; .* Add rows"):
        ChainCRF(np.ones((3, 1)), ["a"] * 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ridge": -1.0}, "ridge"),
        ({"ridge": [1.0, 2.0]}, r"one entry per coordinate, shape \(21,\)"),
        ({"start_end": 1}, "start_end must be True or False"),
        ({"tol": 0.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_iter": 1.5}, "max_iter"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ChainCRF(*make_chain(), **options)


def test_with_many_labels_fits_end_in_the_same_place(monkeypatch):
    X, y = make_chain(seed=4)
    usual = select(ChainCRF(X, y), k=3)
    monkeypatch.setattr("forback.solvers.bfgs.MAX_DENSE_COORDINATES", 5)
    limited = select(ChainCRF(X, y), k=3)
    assert [s.feature for s in limited.steps] == [s.feature for s in usual.steps]
    values = [[s.value for s in path.steps] for path in (limited, usual)]
    np.testing.assert_allclose(*values, rtol=1e-8)  # gradients are within 1e-6 of their scale


@pytest.mark.parametrize("seed", range(3))
def test_screened_decreases_have_the_same_best_and_never_lie_below(seed):
    objective = ChainCRF(*make_chain(seed=seed, kind="real" if seed else "binary"))
    always = np.arange(objective.n_candidates, objective.dim)
    blocks = Blocks.singles(np.arange(objective.n_candidates), always)
    for support in (always, np.concatenate([[1, 4], always])):
        point = objective.minimise(support)
        exact = objective.decrease_if_added(point, blocks).values
        screened, solved = objective.decrease_if_added(
            point.without_cache(), blocks, only_best=True
        )
        assert 1 <= solved <= len(blocks)
        assert screened.argmax() == exact.argmax()
        assert screened.max() == pytest.approx(exact.max(), rel=1e-9)
        assert (screened >= exact * (1 - 1e-6) - 1e-15).all()


def test_the_training_sequences_can_be_decoded():
    X, y = make_chain(seed=2)
    objective = ChainCRF(X, np.array(["eat", "rest", "walk"])[y])
    point = select(objective, k=4)[4]
    posterior = objective.marginals(point).argmax(axis=1)
    np.testing.assert_array_equal(
        objective.labels(point, "posterior"), objective.classes[posterior]
    )
    assert set(objective.labels(point)) <= set(objective.classes)
    with pytest.raises(ValueError, match="decode must be one of"):
        objective.labels(point, "map")


@pytest.mark.parametrize("seed", range(3))
def test_without_ridge_weights_that_run_away_are_said_to(seed):
    y = np.repeat(np.random.default_rng(seed).integers(0, 3, 30), 3)
    path = select(ChainCRF(np.eye(3)[y], y, ridge=0.0), k=3)
    assert path.end.value < 1e-8
    assert "no minimiser" in path.steps[-1].note


@pytest.mark.parametrize("method", METHODS)
def test_a_run_whose_fits_are_not_finished_ends_all_the_same(method):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 4))
    labels = np.digitize(X[:, 0] - X[:, 1], [-0.5, 0.5])
    X[2, 1] *= 1e6
    path = select(ChainCRF(X, labels, max_iter=100), 3, method, max_steps=50)
    assert path.stop_reason == "size 3 reached"
    assert "not converged" in path.end.note
