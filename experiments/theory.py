"""`forback reproduce theory`: the theorems' bounds beside what runs come to.

Least squares on nearly orthogonal columns, the only kind for which the condition on s can be met at
sizes that a computer likes: even for perfectly orthogonal ones it asks for s = 17 k + 17.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from experiments.page import Claim, Section
from experiments.study import Experiment, Part, Row, mean_of, values_of, where
from forback.certificates import Bounds, sufficient_s, theory_bounds, theory_thresholds
from forback.core.types import Floats
from forback.objectives import LeastSquares
from forback.report.figures import Figure, Line, Panel
from forback.report.tables import Table
from forback.selection.select import select

COLUMNS = 120

#: The true coefficients of the first study: what is weak with few rows is strong with many.
COEFFICIENTS = (1.0, 0.3, 0.1)
ROWS = (200, 400, 800, 1600, 3200, 6400, 12800, 25600)
TRIALS = 20

#: The second study: the least true coefficient, as a multiple of what the corollary asks for.
SIGNALS = (0.05, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0)
SIGNAL_ROWS = 500
SIGNAL_TRIALS = 50

#: How far columns are from orthogonal: the size of what is added to them.
TILT = 0.01

#: By what share their lengths differ, so that the two rules are not the same.
UNEVEN = 0.03

METHODS = {"foba-gdt": "epsilon", "foba-obj": "delta"}


def parts(quick: bool) -> list[Part]:
    """A part for each number of rows, and one for each signal."""
    rows, signals = (ROWS[1::4], SIGNALS[::5]) if quick else (ROWS, SIGNALS)
    trials, signal_trials = (2, 4) if quick else (TRIALS, SIGNAL_TRIALS)
    growing = [Part(f"{n} rows", partial(_as_rows_grow, n, trials)) for n in rows]
    passing = [
        Part(f"signal {signal:g}", partial(_as_signals_grow, signal, signal_trials))
        for signal in signals
    ]
    return growing + passing


def nearly_orthogonal(n: int, rng: np.random.Generator) -> Floats:
    """Columns of length about sqrt(n), orthogonal but for a little noise."""
    X = rng.normal(size=(n, COLUMNS))
    X = np.linalg.solve(np.linalg.cholesky(X.T @ X), X.T).T
    X += TILT * rng.normal(size=X.shape) / np.sqrt(n)
    lengths = np.sqrt(n) * rng.uniform(1.0 - UNEVEN, 1.0 + UNEVEN, COLUMNS)
    return np.asarray(X / np.linalg.norm(X, axis=0) * lengths)


def _as_rows_grow(n: int, trials: int) -> list[Row]:
    found = []
    k = len(COEFFICIENTS)
    for seed in range(trials):
        rng = np.random.default_rng([1, n, seed])
        X = nearly_orthogonal(n, rng)
        objective = LeastSquares(X, X[:, :k] @ COEFFICIENTS + rng.normal(size=n))
        found += _runs(objective, k, {"study": "rows", "rows": n, "seed": seed}, False)
    return found


def _as_signals_grow(signal: float, trials: int) -> list[Row]:
    """All true coefficients alike, at a multiple of what the corollary asks for."""
    found = []
    k = len(COEFFICIENTS)
    for seed in range(trials):
        rng = np.random.default_rng([2, seed])
        X = nearly_orthogonal(SIGNAL_ROWS, rng)
        noise = rng.normal(size=SIGNAL_ROWS)
        # Noise alone tells the gradient outside; and what it does to the coefficients is undone, so
        # that those of bar beta are exactly as large as wanted.
        alone = theory_thresholds(LeastSquares(X, noise), range(k))
        curvature = sufficient_s(LeastSquares(X, noise), k)
        assert curvature is not None  # nearly orthogonal columns
        least = signal * 8.0 * curvature.single / curvature.lower**2 * alone.gradient
        coefficients = least * rng.choice([-1.0, 1.0], k) - alone.point.coef
        objective = LeastSquares(X, X[:, :k] @ coefficients + noise)
        labels = {"study": "signals", "signal": signal, "rows": SIGNAL_ROWS, "seed": seed}
        found += _runs(objective, k, labels, True)
    return found


def _runs(objective: LeastSquares, k: int, labels: Row, practical: bool) -> list[Row]:
    """Both algorithms with the thresholds of the theorems, and with those of the appendix."""
    curvature = sufficient_s(objective, k)
    known = theory_thresholds(objective, range(k), curvature=curvature)
    rows = []
    for method, name in METHODS.items():
        kinds = {"theorem": getattr(known, name)}
        if practical:
            kinds["appendix"] = getattr(known, f"practical_{name}")
        for kind, threshold in kinds.items():
            limits: dict[str, Any] = {name: threshold}
            path = select(objective, method=method, **limits)
            bounds = theory_bounds(objective, path, range(k), curvature=curvature)
            rows.append({**labels, "method": method, "threshold": kind, **_flat(bounds)})
    return rows


def _flat(bounds: Bounds) -> Row:
    names = {
        "squared estimation error": "estimation", "objective error": "objective",
        "features missed": "missed", "wrong features": "wrong",
    }  # fmt: skip
    row: Row = {
        "s": bounds.curvature.s, "kappa": bounds.curvature.condition, "weak": bounds.weak,
        "vacuous": bounds.vacuous, "strong": bounds.strong, "holds": bounds.holds,
        "recovered": bounds.recovered, "forward_steps": bounds.forward_steps,
    }  # fmt: skip
    for one in bounds.inequalities:
        if one.name in names:
            row[names[one.name]], row[f"{names[one.name]}_bound"] = one.left, one.right
        elif one.source == "Theorem 3":
            row["size"], row["size_bound"] = one.left, one.right
        else:
            row["stop_bound"] = one.right
    return row


# What to tell ------------------------------------------------------------------------------------


def section(rows: Sequence[Row]) -> Section:
    """Errors and bounds as n grows, sizes and their bound, recovery as the signal grows."""
    growing, passing = where(rows, study="rows"), where(rows, study="signals")
    judged = [row for row in rows if not row["vacuous"]]
    kept = sum(row["holds"] for row in judged)
    promised = [row for row in judged if row["strong"]]
    solved = sum(row["recovered"] for row in promised)
    most, bound = max(row["forward_steps"] for row in judged), min(
        row["size_bound"] for row in judged
    )  # fmt: skip
    sizes = f"at most {max(row['size'] for row in judged):g} features and {most} forward steps"
    claims = [
        Claim(
            "Theorems 4 and 5: estimation, objective and selection errors are bounded",
            f"every inequality holds in {kept} of the {len(judged)} runs whose conditions hold",
            kept == len(judged),
        ),
        Claim(
            "Theorem 3: the run ends within 4 kappa^2 (sqrt(kappa) + 1)^2 (k + 1) iterations",
            f"{sizes}; the bound is {bound:.0f} or more. What is proved bounds the size at the "
            "stop, not the number of iterations",
            most <= bound,
        ),
        Claim(
            "Corollary: a signal strong enough is found exactly",
            f"{solved} of {len(promised)} runs for which it is promised found it",
            solved == len(promised) if promised else None,
        ),
    ]
    return Section(
        intro=(
            f"Least squares on {COLUMNS} nearly orthogonal columns of which "
            f"{len(COEFFICIENTS)} matter, noise of variance 1. Restricted curvature by certified "
            "bounds, s the smallest that satisfies the sparsity condition, thresholds those of "
            "Theorems 1 and 2 (or, where it says appendix, those its experiments use)."
        ),
        comparison=_comparison(growing, passing),
        claims=claims,
        figures=[Figure("theory", "Bounds and what runs came to; means over trials", [
            *_error_panels(growing), _size_panel(growing), _signal_panel(passing),
        ])],
        tables=[_table(growing)],
    )  # fmt: skip


def _comparison(growing: Sequence[Row], passing: Sequence[Row]) -> str:
    ratios = [
        row["estimation_bound"] / row["estimation"]
        for row in growing
        if row["estimation"] > 0 and row["estimation_bound"] > 0
    ]
    slack = f"the bound is {min(ratios):.0f} to {max(ratios):.0f} times the error" if ratios else ""
    first = {
        kind: min(
            (
                signal
                for signal in values_of(passing, "signal")
                if mean_of(where(passing, signal=signal, threshold=kind), "recovered") >= 0.95
            ),
            default=None,
        )
        for kind in ("theorem", "appendix")
    }
    found = ", ".join(
        f"{'never' if value is None else f'from {value:g} of it on'} with the {kind}'s thresholds"
        for kind, value in first.items()
    )
    return (
        f"The theorems hold and are far from tight: where an error is left, {slack}; the signal "
        f"that the corollary asks for is more than is needed (95 % exact recovery {found})."
    )


def _error_panels(rows: Sequence[Row]) -> list[Panel]:
    panels = []
    for method, theorem in (("foba-obj", "Theorem 4"), ("foba-gdt", "Theorem 5")):
        own = where(rows, method=method)
        lines = [
            _positive("squared estimation error", own, "estimation", "foba-gdt"),
            _positive("bound on it", own, "estimation_bound", "forward-gdt"),
            _positive("objective error", own, "objective", "foba-obj"),
            _positive("bound on that", own, "objective_bound", "forward-obj"),
        ]
        title = f"{theorem}: {method}"
        panels.append(Panel(title, "rows", "mean", lines, log_x=True, log_y=True))
    return panels


def _positive(label: str, rows: Sequence[Row], column: str, like: str) -> Line:
    """Means over trials, where they are above zero: the axis is logarithmic."""
    means = {n: fmean(row[column] for row in where(rows, rows=n)) for n in values_of(rows, "rows")}
    kept = {n: mean for n, mean in means.items() if mean > 0.0}
    return Line(label, list(kept), list(kept.values()), like=like)


def _size_panel(rows: Sequence[Row]) -> Panel:
    own = where(rows, method="foba-gdt")
    columns = {
        "size at the stop": "size", "forward steps": "forward_steps",
        "s - k (Theorem 2)": "stop_bound", "Theorem 3": "size_bound",
    }  # fmt: skip
    lines = [_positive(label, own, column, "") for label, column in columns.items()]
    return Panel("size and iterations, foba-gdt", "rows", "mean", lines, log_x=True, log_y=True)


def _signal_panel(rows: Sequence[Row]) -> Panel:
    lines = []
    for method in values_of(rows, "method"):
        for kind in values_of(rows, "threshold"):
            own = where(rows, method=method, threshold=kind)
            signals = values_of(own, "signal")
            shares = [mean_of(where(own, signal=signal), "recovered") for signal in signals]
            like = method if kind == "theorem" else method.replace("foba", "forward")
            lines.append(Line(f"{method}, {kind}", signals, shares, like=like))
    return Panel(
        "exact recovery", "least coefficient / what the corollary asks for", "share of runs",
        lines, log_x=True,
    )  # fmt: skip


def _table(rows: Sequence[Row]) -> Table:
    header = [
        "method", "rows", "conditions hold", "s", "estimation error", "bound", "objective error",
        "bound", "missed", "wrong", "exact",
    ]  # fmt: skip
    lines = []
    for method in values_of(rows, "method"):
        for n in values_of(rows, "rows"):
            own = where(rows, method=method, rows=n)
            numbers = ("estimation", "estimation_bound", "objective", "objective_bound")
            lines.append(
                [
                    method, str(n), f"{sum(not row['vacuous'] for row in own)} of {len(own)}",
                    str(own[0]["s"]), *[f"{mean_of(own, name):.3g}" for name in numbers],
                    f"{mean_of(own, 'missed'):.2f}", f"{mean_of(own, 'wrong'):.2f}",
                    f"{sum(row['recovered'] for row in own)} of {len(own)}",
                ]
            )  # fmt: skip
    return Table("Means over trials", header, lines)


EXPERIMENT = Experiment("theory", "The theorems' bounds beside realised errors", parts, section)
