"""FoBa, OMP and the lasso on correlated columns: each does what it is said to do."""

import numpy as np
import pandas as pd
import pytest

from experiments.paper import least_squares as module
from experiments.paper.least_squares import (
    METHODS,
    compare,
    conditions,
    estimates,
    lasso,
    parts,
    run_part,
    section,
)
from experiments.study import read_rows, write_rows
from forback import select
from forback.datasets import Regression, make_correlated
from forback.objectives import LeastSquares


@pytest.fixture(scope="module", params=["ar", "equal", "factors"])
def data(request):
    return make_correlated(60, 80, 6, rho=0.7, structure=request.param, snr=20.0, random_state=3)


def test_the_lasso_is_optimal_for_a_penalty_and_has_k_features(data):
    for k in (1, 4, 6):
        beta = lasso(data, k)
        slopes = data.X.T @ (data.y - data.X @ beta)
        inside = beta != 0.0
        assert inside.sum() == k
        penalty = np.abs(slopes).max()
        np.testing.assert_allclose(slopes[inside], penalty * np.sign(beta[inside]), rtol=1e-8)
        # The least such penalty: another column is about to come in.
        assert (np.abs(slopes) > penalty * (1 - 1e-8)).sum() == k + 1


def test_estimates_are_what_they_are_called(data):
    found = estimates(data)
    assert set(found) == set(METHODS)
    objective = LeastSquares(data.X, data.y)
    for method, beta in found.items():
        assert np.count_nonzero(beta) == 6
        gradient = objective.value_and_gradient(beta)[1][beta != 0.0]
        assert (np.abs(gradient).max() < 1e-8) == (method != "l1")  # the only one that shrinks
    value = {method: objective.value_and_gradient(beta)[0] for method, beta in found.items()}
    assert value["foba-2k"] <= value["foba-gdt"] + 1e-12
    assert value["l1 refitted"] < value["l1"]
    np.testing.assert_array_equal(found["l1"] != 0.0, found["l1 refitted"] != 0.0)


def test_omp_is_forward_gdt(data):
    forward = select(LeastSquares(data.X, data.y), k=6, method="forward-gdt").coef(6)
    np.testing.assert_allclose(estimates(data)["omp"], forward, atol=1e-8)


def test_conditions():
    X = np.eye(6)
    X[:, 4] = 0.75 * X[:, 0] - 0.5 * X[:, 2]
    coef = np.array([2.0, 0.0, -1.0, 0.0, 0.0, 0.0])
    made = Regression(X, X @ coef, coef, np.array([0, 2]), 0.0)
    assert conditions(made) == pytest.approx((1.25, 1.25))
    coef = np.abs(coef)
    made = Regression(X, X @ coef, coef, np.array([0, 2]), 0.0)
    assert conditions(made) == pytest.approx((1.25, 0.25))


def made_up(errors, exact, signed=2.0, trials=4):
    """A case in which the methods have so much error and find the support so often."""
    rows = [
        {"structure": "ar", "snr": 10.0, "rho": rho, "seed": seed, "outer": 3.0, "signed": signed}
        | {f"error {method}": errors[method] + 0.01 * seed * rho for method in METHODS}
        | {f"exact {method}": int(seed < exact[method]) for method in METHODS}
        | {f"f {method}": 0.5 for method in METHODS}
        for rho in (0.0, 0.5)
        for seed in range(trials)
    ]
    return pd.DataFrame(rows)


ERRORS = dict(zip(METHODS, (1.0, 1.0, 1.2, 0.9, 3.0, 2.0), strict=True))
EXACT = dict(zip(METHODS, (4, 4, 1, 4, 0, 0), strict=True))


def test_compare_means_beyond_chance():
    rows = made_up(ERRORS, EXACT)
    assert compare(rows, "foba-gdt", "omp", "error") == -1
    assert compare(rows, "omp", "foba-gdt", "error") == 1
    assert compare(rows, "foba-gdt", "foba-obj", "error") == 0
    rows.loc[0, "error foba-gdt"] += 100.0
    assert compare(rows, "foba-gdt", "omp", "error") == 0


def test_claims_follow_the_rows():
    found = section(made_up(ERRORS, EXACT))
    assert [claim.agrees for claim in found.claims] == [True, True, True, True]
    assert "OMP 1.20 (25%)" in found.comparison
    assert "fails on 8 of 8 data sets" in found.claims[2].found
    bad = {**ERRORS, "foba-obj": 1.5}
    claims = section(made_up(bad, {**EXACT, "foba-obj": 0})).claims
    assert claims[1].agrees is False  # better half the time is not better
    assert claims[2].agrees is None
    assert section(made_up(ERRORS, EXACT, signed=0.5)).claims[3].agrees is None


def test_the_section_of_a_small_study(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ROWS", 50)
    monkeypatch.setattr(module, "COLUMNS", 60)
    monkeypatch.setattr(module, "FEATURES", 3)
    rows = run_part("ar", 50.0, 0.0, 3) + run_part("factors", 50.0, 0.9, 3)
    write_rows(rows, tmp_path / "rows.csv")
    read = read_rows(tmp_path / "rows.csv")
    assert read.to_dict("records") == rows
    for row in rows:
        for method in METHODS:
            assert row[f"exact {method}"] == (row[f"f {method}"] == 1.0)
            if row[f"exact {method}"] and method != "l1":
                assert row[f"error {method}"] < 1.5
    easy = [row for row in rows if row["rho"] == 0.0]
    assert all(row["exact foba-gdt"] for row in easy)
    found = section(read)
    assert [table.title.split(":")[0] for table in found.tables] == ["ar", "factors"]
    assert len(found.figures[0].panels) == 4


def test_parts():
    assert len(parts(False)) == 42
    labels = [part.label for part in parts(True)]
    assert len(set(labels)) == len(labels) == 6
