"""Known graphs, proteins and their benchmark: small versions of what the documents show."""

from pathlib import Path

import numpy as np
import pytest
from experiments.contestants import CONTESTANTS, forback_path, make_objective, refit
from experiments.graphs import f1, study, tuned_lasso
from experiments.workloads import WORKLOADS, Unavailable
from typer.testing import CliRunner

from experiments import graphs, sachs
from experiments.__main__ import make_app
from experiments.reproduce import read_rows
from experiments.study import mean_of
from forback import FobaCovariance
from forback.datasets import load_cytometry, make_graph

ROOT = Path(__file__).resolve().parents[2]


def test_greedy_edges_are_as_good_as_the_lasso_and_exact_in_the_end():
    for kind, few in (("chain", 60), ("star", 40)):
        small, large = study(kind, few, 4), study(kind, 480, 4)
        assert mean_of(small, "foba") >= mean_of(small, "lasso")
        assert mean_of(small, "foba") > 0.5
        assert [row["foba"] for row in large] == [1.0] * 4


def test_f1():
    true = {(0, 1), (1, 2)}
    assert f1(true, true) == 1.0
    assert f1({(0, 1), (0, 2)}, true) == 0.5
    assert f1({(0, 2)}, true) == 0.0


def test_the_lasso_is_tuned_to_the_number_of_edges():
    graph = make_graph("random", n=200, p=12)
    for k in (5, 10, 20):
        penalty, precision = tuned_lasso(graph.X, k)
        assert abs(np.count_nonzero(np.triu(precision, 1)) - k) <= 1
        assert penalty > 0.0


def test_the_section_counts_what_the_rows_say():
    rows = [
        {"kind": kind, "rows": n, "edges": 35, "seed": seed, "foba": foba, "lasso": 0.5}
        for kind, n, foba in (("chain", 30, 0.4), ("chain", 60, 1.0), ("star", 60, 1.0))
        for seed in range(2)
    ]
    section = graphs.section(rows)
    assert "in 2 of 3 cases" in section.comparison
    assert section.claims[0].agrees is False
    (table,) = section.tables
    assert table.rows[1] == ["chain", "60", "35", "1.000", "0.500", "2 of 2", "0 of 2"]


def test_the_committed_results_meet_what_is_asked():
    rows = read_rows(ROOT / "experiments" / "results" / "graphs.csv")
    cases = {(row["kind"], row["rows"]) for row in rows}
    assert cases == {(kind, n) for kind in graphs.KINDS for n in graphs.ROWS}
    for kind, n in cases:
        case = [row for row in rows if (row["kind"], row["rows"]) == (kind, n)]
        assert [row["seed"] for row in case] == list(range(graphs.SEEDS))
        assert mean_of(case, "foba") >= mean_of(case, "lasso")
        few = case[: graphs.FEW]
        # The one known exception: a chain with fewer rows than variables, docs/covariance.md says.
        ahead = mean_of(few, "foba") >= mean_of(few, "lasso")
        assert ahead == ((kind, n) != ("chain", 30))
        assert n < max(graphs.ROWS) or all(row["foba"] == 1.0 for row in case)


def test_the_gallery_shows_the_path_of_the_proteins(data_folder):
    page = (ROOT / "docs" / "gallery" / "sachs.md").read_text(encoding="utf-8")
    assert sachs.table(sachs.find_path(data_folder)) in page


def test_how_many_edges_the_page_says_ebic_keeps(data_folder):
    X = load_cytometry(folder=data_folder).X
    page = (ROOT / "docs" / "gallery" / "sachs.md").read_text(encoding="utf-8")
    assert f"keeps {FobaCovariance().fit(X).k_} of the 55" in page


def test_the_proteins_on_the_command_line(data_folder, monkeypatch, tmp_path):
    monkeypatch.setenv("FORBACK_DATA", str(data_folder))
    run = ["reproduce", "sachs", "--quick", "--out", str(tmp_path)]
    result = CliRunner().invoke(make_app(), run)
    assert result.exit_code == 0, result.output
    row = read_rows(tmp_path / "sachs.csv")[0]
    assert (row["edge"], row["known"], row["hits"]) == ("+ Raf-Mek", "yes", 1)
    assert row["objective"] == pytest.approx(10.0429, abs=1e-4)


def test_absent_proteins_leave_nothing_to_show(monkeypatch, tmp_path):
    def absent(*arguments, **options):
        raise FileNotFoundError("set FORBACK_DATA")

    monkeypatch.setattr(sachs, "load_cytometry", absent)
    result = CliRunner().invoke(make_app(), ["reproduce", "sachs", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "FORBACK_DATA" in result.output


def test_the_network_has_its_edges():
    network, missed = sachs.known(sachs.NETWORK), sachs.known(sachs.MISSED)
    assert (len(network), len(missed), network & missed) == (17, 3, set())
    from forback.datasets.public import PROTEINS

    assert set().union(*network, *missed) == set(PROTEINS)


@pytest.mark.parametrize("name", ["forback", "forback-obj", "glasso", "glasso-tuned", "glasso-cv"])
def test_contestants_of_the_graph_choose_edges(name):
    problem = WORKLOADS["graph-edges"].quick().problem()
    choice = CONTESTANTS[name].prepare(problem)()
    point = refit(problem, choice.support)
    assert point.value < refit(problem, np.zeros(0, dtype=np.intp)).value
    if name != "glasso-cv":
        assert abs(point.size - problem.k) <= 1
    objective = make_objective(problem)
    np.testing.assert_array_equal(point.support[-20:], np.arange(190, 210))
    assert objective.n_candidates == 190


def test_graphs_have_no_mixed_precision():
    with pytest.raises(Unavailable, match="graphs have no precision"):
        forback_path(WORKLOADS["graph-edges"].quick().problem(), precision="mixed")
