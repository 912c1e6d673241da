"""The table of a1a, a2a and w1a: what counts as agreement, and what the section makes of rows."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from benchmarks.contestants.sklearn import l1_option
from experiments.paper import uci
from experiments.paper.uci import (
    BEST,
    L1,
    MEASURES,
    METHODS,
    OTHERS,
    PAPER,
    PRINTED,
    PRINTED_ROWS,
    SHIFTED,
    SIZES,
    Problem,
    agreement,
    error_rate,
    l1_support,
    parts,
)
from experiments.reproduce import reproduce
from experiments.study import read_rows
from forback.datasets import LibsvmData


def section(rows):
    return uci.section(pd.DataFrame(rows))


def made_up(n=150, p=40, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.random((n, p)) < 0.3).astype(float)
    y = np.where(X[:, :4].sum(axis=1) - 1.2 + rng.normal(size=n) > 0, 1.0, -1.0)
    return LibsvmData(sparse.csr_array(X), y)


@pytest.fixture
def problem():
    return Problem(made_up(), made_up(seed=1))


def row(name, method, S, objective=None, train_error=None, test_error=None):
    """A row as `study` makes it; by default with the printed numbers."""
    n, n_test = PRINTED_ROWS[name]
    given = {"objective": objective, "train_error": train_error, "test_error": test_error}
    printed = PRINTED.get((name, SHIFTED.get(method, method)))
    made = {"data": name, "n": n, "n_test": n_test, "method": method, "S": S, "size": S}
    for place, measure in enumerate(MEASURES):
        cell = None if printed is None else printed[place][SIZES.index(S)]
        made[measure] = cell if given[measure] is None else given[measure]
        if cell is not None:
            made[f"printed_{measure}"] = cell
    return made


def printed_rows(name):
    return [row(name, method, S) for method in PAPER for S in SIZES]


def claims(rows):
    return {claim.said: claim for claim in section(rows).claims}


# Agreement ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "inside", "outside"),
    [
        (556, (555.51, 556.49), (555.49, 556.51)),
        (0.170, (0.1696, 0.1704), (0.1694, 0.1706)),
        (0.0969, (0.09686, 0.09694), (0.09684, 0.09696)),
        (0.0600, (0.05996, 0.06004), (0.05994, 0.06006)),
    ],
)
def test_agreement_is_to_the_three_printed_digits(printed, inside, outside):
    ours = [printed, *inside, *outside]
    rows = pd.DataFrame({f"printed_{measure}": [printed] * len(ours) for measure in MEASURES})
    found = agreement(rows.assign(**dict.fromkeys(MEASURES, ours)))
    assert found["objective"].tolist() == [True, True, True, False, False]
    assert found.eq(found["objective"], axis=0).all(axis=None)


def test_the_printed_table_is_whole():
    assert set(PRINTED) == {(name, method) for name in uci.NAMES for method in PAPER}
    for columns in PRINTED.values():
        assert [len(column) for column in columns] == [len(SIZES)] * len(MEASURES)
        assert columns[0] == sorted(columns[0], reverse=True)


def test_a_score_of_zero_is_half_an_error():
    X = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 1.0]]))
    data = LibsvmData(X, np.array([1.0, 1.0, -1.0, 1.0]))
    assert error_rate(data, np.array([1.0, -1.0])) == (0 + 1 + 0.5 + 0.5) / 4


# Methods -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_optimal_points(problem, method):
    more = 1 if method in SHIFTED else 0
    objective = problem.objective(uci.SMALLER_PENALTY if more else uci.PENALTY)
    points = METHODS[method](problem, (3, 6))
    assert [len(point.support) for point in points] == [3 + more, 6 + more]
    for point in points:
        assert point.value == pytest.approx(objective.minimise(point.support).value, abs=1e-10)
        beta = point.dense(objective.dim)
        margin = problem.train.y * (problem.train.X @ beta)
        penalty = uci.SMALLER_PENALTY if more else uci.PENALTY
        total = np.logaddexp(0.0, -margin).sum() + 0.5 * penalty * beta @ beta
        assert len(margin) * point.value == pytest.approx(total)  # what the table prints


def test_the_best_of_its_size_is_no_worse_than_the_first(problem):
    sizes = (2, 5, 10, 25)
    pairs = zip(METHODS[BEST](problem, sizes), METHODS["foba-gdt"](problem, sizes), strict=True)
    assert all(best.value <= first.value for best, first in pairs)


@pytest.mark.parametrize("size", [1, 4, 9])
def test_l1_has_the_number_of_features_asked_for(size):
    data = made_up()
    support = l1_support(data, size)
    assert len(support) == size
    if size == 4:
        assert set(support) >= {0, 1, 2}


def test_l1_takes_the_nearest_number_below():
    X = np.zeros((60, 8))
    X[:, [2, 5]] = np.eye(2).repeat(30, axis=0)
    y = np.where(np.arange(60) % 30 < 20, 1.0, -1.0)
    # Two columns of the same worth enter together, and no others can.
    data = LibsvmData(sparse.csr_array(X), y)
    assert l1_support(data, 1).tolist() == []
    assert l1_support(data, 5).tolist() == [2, 5]


def test_the_l1_penalty_is_asked_for_in_the_words_of_the_version():
    data = made_up()
    model = LogisticRegression(solver="liblinear", C=0.3, **l1_option()).fit(data.X, data.y)
    assert 0 < np.count_nonzero(model.coef_) < 40  # and no warning, which would be an error


# The section -------------------------------------------------------------------------------------


def test_verdicts_come_from_the_rows():
    rows = printed_rows("a1a")
    found = claims(rows)["the table of a1a"]
    assert found.agrees is True
    assert "14 of 14 objectives, 14 of 14 training errors, 14 of 14 test errors" in found.found
    rows[0] |= {"objective": 556.6, "test_error": 0.1656}
    found = claims(rows)["the table of a1a"]
    assert found.agrees is None
    assert "13 of 14 objectives, 14 of 14 training errors, 13 of 14 test errors" in found.found
    assert "objectives 0.0 to 0.1 % above" in found.found
    for one in rows:
        one |= {measure: 2.0 * one[f"printed_{measure}"] for measure in MEASURES}
    found = claims(rows)["the table of a1a"]
    assert found.agrees is False
    assert "100.0 to 100.0 % above the printed ones, the same method ahead in 7 of 7" in found.found


def test_the_two_methods_are_compared_case_by_case():
    rows = [row for name in uci.NAMES for row in printed_rows(name)]
    told = claims(rows)
    similar = told["FoBa-obj and FoBa-gdt obtain similar training errors in all cases"]
    assert similar.agrees is True
    assert similar.found == "at most 0.0100 apart; in the printed table at most 0.0100"
    lower = told["FoBa-obj usually obtains a lower objective value than FoBa-gdt"]
    assert (lower.found, lower.agrees) == ("in 19 of 21 cases", True)
    tested = told["FoBa-gdt achieves lower test errors in several cases"]
    assert (tested.found, tested.agrees) == ("in 20 of 21 cases", True)

    swapped = [
        row("a1a", "foba-obj", 10, 560.0, 0.2, 0.15),
        row("a1a", "foba-gdt", 10, 550.0, 0.1, 0.16),
    ]
    verdicts = [claim.agrees for said, claim in claims(swapped).items() if said.startswith("FoBa")]
    assert verdicts == [False, False, False]


def test_the_numbers_of_rows_are_compared():
    rows = printed_rows("a1a")
    (said,) = [said for said in claims(rows) if said.startswith("rows")]
    assert claims(rows)[said].agrees is True
    for one in rows:
        one["n"] = 1604
    assert claims(rows)[said].agrees is False
    assert claims([*rows, *printed_rows("w1a")])[f"{said}, w1a 2477/47272"].agrees is None


def test_the_other_reading_of_w1a_has_a_claim_and_a_table_of_its_own():
    shifted = [row("w1a", method, S) for method in SHIFTED for S in SIZES]
    made = section([*[{**one, "objective": 700.0} for one in printed_rows("w1a")], *shifted])
    assert made.claims[0].agrees is None
    assert made.claims[0].said == "the table of w1a"
    assert made.claims[1].agrees is True
    assert made.claims[1].said == "the table of w1a, read with 1 feature more and lambda = 1e-05"
    assert [len(table.rows) for table in made.tables] == [14, 14]
    assert "42 of 42 of w1a, read with 1 feature more" in made.comparison
    labels = [line.label for panel in made.figures[0].panels for line in panel.lines]
    assert labels == [*PAPER, *PAPER]


def test_other_methods_are_counted_against_foba_gdt():
    rows = [row("a1a", "foba-gdt", S, 500.0, 0.15, 0.16) for S in (10, 20)]
    rows.append(row("a1a", BEST, 10, 500.0 - 1e-12, 0.15, 0.16))
    rows += [row("a1a", L1, 10, 510.0, 0.15, 0.15), row("a1a", L1, 20, 490.0, 0.15, 0.15)]
    rows[-1]["size"] = 19
    made = section(rows)
    assert made.comparison.endswith(
        "best of size has a lower objective in 0 and a lower test error in 0 of 1 cases; "
        "l1 refitted has a lower objective in 1 and a lower test error in 2 of 2 cases."
    )
    (*_, table) = made.tables
    assert table.header == ["data", "S", *OTHERS, "features of l1"]
    assert table.rows[1][-2:] == ["490.0 / 0.1500 / 0.1500", "19"]
    assert table.rows[0][-1] == "10"


@pytest.mark.parametrize("method", METHODS)
def test_a_section_of_one_method(method):
    made = section([row("w1a", method, S, 500.0, 0.1, 0.1) for S in SIZES[:2]])
    assert all(len(table.rows) == 2 for table in made.tables)
    assert len(made.tables) == 1
    assert ("found by trying" in made.intro) == (method in SHIFTED)


def test_ours_stand_beside_the_printed_numbers():
    rows = [row("w1a", "foba-obj", 20, 434.04, 0.09972, 0.1116)]
    assert section(rows).tables[0].rows == [
        ["foba-obj", "20", "434.0", "424", "0.09972", "0.0969", "0.1116", "0.110", "0"]
    ]


# Running -----------------------------------------------------------------------------------------


def test_parts_are_different_and_the_quick_ones_are_among_them():
    full, quick = ([part.label for part in parts(quick)] for quick in (False, True))
    assert len(full) == len(set(full)) == 3 * 6 + 2
    assert set(quick) < set(full)
    assert len(quick) == 6


@pytest.fixture
def anything(monkeypatch):
    """Made-up data under every name."""
    monkeypatch.setattr(uci, "load_libsvm", lambda name, part="train", folder=None: made_up())
    uci.load.cache_clear()
    yield
    uci.load.cache_clear()


def bare(name, todo):
    return nullcontext(iter(todo))


@pytest.mark.usefixtures("anything")
def test_the_quick_version_writes_a_page(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(uci, "QUICK_NAMES", ("a1a", "w1a"))
    assert reproduce(["uci"], tmp_path, quick=True, progress=bare) == ["uci"]
    rows = read_rows(tmp_path / "uci.csv")
    assert len(rows) == 2 * (5 * 2 + 1) + 2 * 2
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "0 of 4 objectives" in page
    assert "a1a 150/150, w1a 150/150" in page
    assert (tmp_path / "uci.svg").is_file()


def test_absent_data_is_left_out(tmp_path, monkeypatch):
    def absent(*_, **__):
        raise FileNotFoundError("set FORBACK_DATA")

    monkeypatch.setattr(uci, "load_libsvm", absent)
    uci.load.cache_clear()
    said = []
    assert reproduce(["uci"], tmp_path, quick=True, progress=bare, say=said.append) == []
    (line,) = said
    assert line.startswith("uci: left out (a1a, foba-obj; a1a, foba-gdt; ")
    assert line.endswith("set FORBACK_DATA")
