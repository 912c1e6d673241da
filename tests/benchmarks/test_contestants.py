"""Who may take part: everybody whose file is there, and each does the task."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csc_array

from benchmarks.contestants import discover, entrants
from benchmarks.contestants.forback import forback_path
from benchmarks.contestants.glasso import tuned_lasso
from benchmarks.contract import Aim, Contestant, Unavailable, make_objective, refit
from benchmarks.workloads import WORKLOADS, Size, Workload, correlated
from forback.datasets import make_graph
from support.fakes import TINY
from support.processes import in_another_process
from support.workers import answers

ROOT = Path(__file__).resolve().parents[2]
CONTESTANTS = discover()
IN_JAX = ["forback-jax", "skscope-omp", "skscope-foba"]


# Adding one --------------------------------------------------------------------------------------

RIVAL = '''
"""A competitor that takes the first k columns."""

import numpy as np

from benchmarks.contract import Choice, Contestant


def first(problem):
    return lambda: Choice(np.arange(problem.k))


CONTESTANTS = [Contestant("rival", first, {"ls-gaussian": 0.5})]
'''


JOIN = """
import pickle, sys
sys.path.insert(0, {folder!r})
from benchmarks.contestants import entrants
from benchmarks.contract import Aim, refit
from benchmarks.workloads import WORKLOADS

workload = WORKLOADS["ls-gaussian"].quick()
contestants = entrants(workload.name)
assert Aim("forback", "rival", 0.5) in workload.aims(contestants)
(rival,) = [one for one in contestants if one.name == "rival"]
rival = pickle.loads(pickle.dumps(rival))  # as it goes to a process of its own
problem = workload.problem()
assert refit(problem, rival.prepare(problem)().support).size == problem.k
"""


@pytest.mark.slow
def test_a_file_that_is_dropped_in_takes_part(tmp_path):
    ignored = shutil.ignore_patterns("results", "__pycache__")
    shutil.copytree(ROOT / "benchmarks", tmp_path / "benchmarks", ignore=ignored)
    (tmp_path / "benchmarks" / "contestants" / "rival.py").write_text(RIVAL, encoding="utf-8")
    in_another_process(JOIN.format(folder=str(tmp_path)), OPENBLAS_NUM_THREADS="1")


def test_forback_comes_first_then_its_variants_then_the_others():
    names = [contestant.name for contestant in entrants("ls-gaussian")]
    assert names[:3] == ["forback", "forback-mixed", "abess-path"]
    assert set(names[3:]) == {"abess-k", "sklearn-omp", "skscope-omp", "l1-path"}


def test_an_aim_is_of_forback_unless_it_is_turned_round():
    peer = Contestant("peer", print, {"some": 0.5, "other": None})
    assert peer.aim("some") == Aim("forback", "peer", 0.5)
    assert peer.aim("other") is peer.aim("nowhere") is None
    variant = replace(peer, name="variant", against="floor")
    assert variant.aim("some") == Aim("variant", "floor", 0.5)
    assert (peer.aim("some").row, variant.aim("some").row) == ("peer", "variant")


# What they choose --------------------------------------------------------------------------------


def easy(loss):
    return Workload("easy", loss, correlated, Size(300, 12, 3), Size(300, 12, 3), 1e-3)


def assert_good(workload, judgement):
    objective = make_objective(workload.problem())
    empty, everything = (objective.minimise(np.arange(size)).value for size in (0, 12))
    assert judgement.features == 3
    assert empty - judgement.value > 0.8 * (empty - everything)


@pytest.mark.parametrize("name", [name for name in CONTESTANTS if name not in IN_JAX])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_contestants_choose_columns_that_matter(name, loss):
    status, *rest = answers(easy(loss), CONTESTANTS[name], "judge")
    if status:
        pytest.skip(status)
    assert_good(easy(loss), *rest)


def judge_both(name):
    for loss in ("squared", "logistic"):
        status, *rest = answers(easy(loss), CONTESTANTS[name], "judge")
        if status:
            assert "is not installed" in status
        else:
            assert_good(easy(loss), *rest)


@pytest.mark.slow
def test_contestants_in_jax_choose_columns_that_matter():
    """In a process of their own: with JAX in this one, other tests could not fork."""
    folders = [str(ROOT), str(ROOT / "tests"), str(Path(__file__).parent)]
    in_another_process(
        f"import sys; sys.path[:0] = {folders}\n"
        "from test_contestants import IN_JAX, judge_both\n"
        "for name in IN_JAX:\n"
        "    judge_both(name)\n",
        OPENBLAS_NUM_THREADS="1",
    )


@pytest.mark.parametrize("name", [*IN_JAX, "sklearn-omp", "l1-path"])
def test_contestants_say_what_they_cannot_do(name):
    problem = WORKLOADS["poisson"].quick().problem()
    with pytest.raises(Unavailable, match="it has no poisson loss"):
        CONTESTANTS[name].prepare(problem)
    with pytest.raises(Unavailable, match="it needs a dense X"):
        CONTESTANTS[name].prepare(replace(problem, X=csc_array(problem.X), loss="squared"))


@pytest.mark.parametrize(("name", "peer"), [("abess-k", "abess"), ("skscope-omp", "skscope")])
def test_a_missing_peer_is_skipped_with_the_line_to_type(name, peer, monkeypatch):
    loaded = [name for name in sys.modules if name.startswith(f"{peer}.")]
    for module in (peer, "jax", *loaded):
        monkeypatch.setitem(sys.modules, module, None)
    (answer,) = answers(TINY, CONTESTANTS[name])
    assert answer == f'{peer} is not installed: pip install -e ".[experiments]"'


# Chains ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["forback", "crfsuite-l1"])
def test_contestants_for_chains_choose_sensors(name):
    workload = replace(WORKLOADS["crf-sensors"], size=Size(2000, 40, 3))
    status, *rest = answers(workload, CONTESTANTS[name], "judge")
    if status:
        pytest.skip(status)
    (judgement,) = rest
    empty = refit(workload.problem(), np.zeros(0, np.intp)).value
    assert judgement.features >= 3
    assert judgement.value < 0.9 * empty


@pytest.mark.parametrize("name", ["forback", "crfsuite-iterations"])
def test_contestants_for_gradients_choose_nothing(name):
    workload = replace(WORKLOADS["crf-gradient"], size=Size(1000, 40, 1))
    status, *rest = answers(workload, CONTESTANTS[name], "judge")
    if status:
        pytest.skip(status)
    (judgement,) = rest
    assert (judgement.features, judgement.value) == (None, None)


# Graphs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["forback", "forback-obj", "glasso", "glasso-tuned", "glasso-cv"])
def test_contestants_of_the_graph_choose_edges(name):
    problem = WORKLOADS["graph-edges"].quick().problem()
    choice = CONTESTANTS[name].prepare(problem)()
    point = refit(problem, choice.support)
    assert point.value < refit(problem, np.zeros(0, dtype=np.intp)).value
    if name != "glasso-cv":
        assert abs(point.size - problem.k) <= 1
    np.testing.assert_array_equal(point.support[-20:], np.arange(190, 210))
    assert make_objective(problem).n_candidates == 190


def test_graphs_have_no_mixed_precision():
    with pytest.raises(Unavailable, match="graphs have no precision"):
        forback_path(WORKLOADS["graph-edges"].quick().problem(), precision="mixed")


def test_the_lasso_is_tuned_to_the_number_of_edges():
    graph = make_graph("random", n=200, p=12)
    for k in (5, 10, 20):
        penalty, precision = tuned_lasso(graph.X, k)
        assert abs(np.count_nonzero(np.triu(precision, 1)) - k) <= 1
        assert penalty > 0.0
