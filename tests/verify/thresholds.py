"""How often `epsilon="auto"` and `delta="auto"` take noise for a feature."""

from collections import defaultdict

import numpy as np
from scipy.stats import beta

from forback import select
from forback.objectives import GLM, LeastSquares, Logistic, Multinomial
from forback.report.tables import markdown_table
from hostile.harness import pick
from verify.part import Part

#: The level that is promised for noise alone: two cases of forty.
LEVEL = 0.05

#: Rates are given with intervals of 95 %; wrong is what excludes the level with this confidence.
CONFIDENCE = 0.9999

THRESHOLDS_OF = {"foba-gdt": "epsilon", "foba-obj": "delta"}
N_FEATURES = 20
TRUE = (3, 11)


def squares(X, eta, rng):
    return LeastSquares(X, eta + rng.standard_t(4, len(eta)), fit_intercept=True)


def logistic(X, eta, rng):
    y = rng.random(len(eta)) < 1 / (1 + np.exp(-1.5 * eta))
    return Logistic(X, y, ridge=1e-3, fit_intercept=True)


def poisson(X, eta, rng):
    return GLM("poisson", X, rng.poisson(np.exp(0.5 + 0.5 * eta)), fit_intercept=True)


def softmax(X, eta, rng):
    scores = np.outer(1.5 * eta, [-1.0, 0.0, 1.0]) + rng.gumbel(size=(len(eta), 3))
    return Multinomial(X, scores.argmax(axis=1), ridge=1e-3, fit_intercept=True)


LOSSES = {"squared": squares, "logistic": logistic, "poisson": poisson, "softmax": softmax}


def check(rng):
    loss, method = pick(rng, list(LOSSES)), pick(rng, list(THRESHOLDS_OF))
    signal = bool(rng.integers(2))
    n = 150 if signal else 80
    X = rng.normal(size=(n, N_FEATURES))
    eta = X[:, TRUE].sum(axis=1) if signal else np.zeros(n)
    objective = LOSSES[loss](X, eta, rng)
    asked = {THRESHOLDS_OF[method]: "auto", "random_state": int(rng.integers(2**31))}
    support = select(objective, method=method, **asked).end.support
    inside = support[support < objective.n_candidates]
    chosen = set((inside // (objective.n_candidates // N_FEATURES)).tolist())
    true = set(TRUE) if signal else set()
    return [
        {
            "cell": (loss, method, "two features" if signal else "noise alone"),
            "false": bool(chosen - true),
            "missed": bool(true - chosen),
        }
    ]


def interval(count, n, confidence):
    """Clopper and Pearson's interval of a rate."""
    tail = (1.0 - confidence) / 2.0
    low = beta.ppf(tail, count, n - count + 1) if count else 0.0
    high = beta.ppf(1.0 - tail, count + 1, n - count) if count < n else 1.0
    return float(low), float(high)


def summarise(rows):
    cells = defaultdict(list)
    for row in rows:
        cells[tuple(row["cell"])].append(row)
    for row in rows:
        cells["all", "both", row["cell"][2]].append(row)
    lines, wrong = [], []
    for cell in sorted(cells, key=lambda cell: (cell[2], cell[0], cell[1])):
        own = cells[cell]
        n, false = len(own), sum(row["false"] for row in own)
        low, high = interval(false, n, 0.95)
        found = "" if cell[2] == "noise alone" else f"{1 - np.mean([r['missed'] for r in own]):.1%}"
        rate = f"{false / n:.1%} ({low:.1%} to {high:.1%})"
        lines.append([cell[2], cell[0], cell[1], str(n), rate, found])
        if cell[2] == "noise alone" and interval(false, n, CONFIDENCE)[0] > LEVEL:
            wrong.append(f"{', '.join(cell)}: noise was taken {false} times of {n}")
    header = ["data", "loss", "method", "runs", "runs with a false feature (95 %)", "both found"]
    note = (
        f"The level promised is {LEVEL:.0%} for noise alone ({N_FEATURES} columns, 80 rows; the "
        "two features are in 150 rows). With features in the model the rate is measured, not "
        "promised.\n\n"
    )
    return note + markdown_table(header, lines), wrong


THRESHOLDS = Part(
    "thresholds",
    'The family-wise error rate of `epsilon="auto"` and `delta="auto"`: for noise alone no '
    f"rate lies above {LEVEL:.0%}.",
    60_000,
    check,
    summarise,
)
