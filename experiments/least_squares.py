"""`forback reproduce least-squares`: FoBa beside OMP and the lasso as columns get correlated.

Not an experiment of the paper, but the case that it starts from: it cites Zhang (2011) for FoBa
being better than both on least squares. Everybody is told the number of features.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import fmean, stdev

import numpy as np
from sklearn.linear_model import OrthogonalMatchingPursuit, lars_path

from experiments.logistic_synthetic import f_measure, short
from experiments.page import Claim, Section
from experiments.study import Experiment, Part, Row, mean_line, mean_of, values_of, where
from forback.core.types import Floats
from forback.datasets import Regression, make_correlated
from forback.objectives import LeastSquares
from forback.report.figures import Figure, Panel
from forback.report.tables import Table
from forback.selection.select import select

STRUCTURES = ("ar", "equal", "factors")
SNRS = (10.0, 50.0)
RHOS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
ROWS, COLUMNS, FEATURES = 100, 200, 10
TRIALS = 50

#: Who is compared; in figures the fourth takes the fourth colour, which nobody else has.
METHODS = {
    "foba-gdt": "FoBa-gdt",
    "foba-obj": "FoBa-obj",
    "omp": "OMP",
    "foba-2k": "FoBa-gdt, best of 2k",
    "l1": "lasso",
    "l1 refitted": "lasso, refitted",
}
#: OMP is Forward-gdt, so it looks like that.
LIKE = {"omp": "forward-gdt", "foba-2k": ""}

FOBA = ("foba-gdt", "foba-obj")

#: A lasso path is followed for so many steps per feature: one that leaves takes a step as well.
STEPS = 8


def parts(quick: bool) -> list[Part]:
    """A part for each structure, noise and correlation."""
    snrs, rhos, trials = (SNRS[1:], (0.0, 0.8), 5) if quick else (SNRS, RHOS, TRIALS)
    return [
        Part(f"{structure}, snr {snr:g}, rho {rho:g}", partial(study, structure, snr, rho, trials))
        for structure in STRUCTURES
        for snr in snrs
        for rho in rhos
    ]


def study(structure: str, snr: float, rho: float, trials: int) -> list[Row]:
    """Look for the features of random problems, and see how far from the truth one ends."""
    rows: list[Row] = []
    for seed in range(trials):
        data = make_correlated(
            ROWS, COLUMNS, FEATURES, rho=rho, structure=structure, snr=snr, random_state=seed
        )
        outer, signed = conditions(data)
        row: Row = {"structure": structure, "snr": snr, "rho": rho, "seed": seed,
                    "outer": short(outer), "signed": short(signed)}  # fmt: skip
        for method, beta in estimates(data).items():
            found = np.flatnonzero(beta)
            row[f"error {method}"] = short(np.linalg.norm(beta - data.coef))
            row[f"exact {method}"] = int(np.array_equal(found, data.support))
            row[f"f {method}"] = short(f_measure(found, data.support))
        rows.append(row)
    return rows


def estimates(data: Regression) -> dict[str, Floats]:
    """What each method makes of the data when it is told the number of features."""
    k, p = len(data.support), data.X.shape[1]
    objective = LeastSquares(data.X, data.y)
    found = {method: select(objective, k=k, method=method).coef(k) for method in FOBA}
    found["foba-2k"] = select(objective, k=2 * k).coef(k)
    pursuit = OrthogonalMatchingPursuit(n_nonzero_coefs=k, fit_intercept=False)
    found["omp"] = pursuit.fit(data.X, data.y).coef_
    found["l1"] = lasso(data, k)
    found["l1 refitted"] = objective.minimise(np.flatnonzero(found["l1"])).dense(p)
    return found


def lasso(data: Regression, k: int) -> Floats:
    """The lasso with k features and the least penalty; with fewer where its path skips k."""
    coefs = lars_path(data.X, data.y, method="lasso", max_iter=STEPS * k)[2]
    counts = np.count_nonzero(coefs, axis=0)
    last = np.flatnonzero(counts == counts[counts <= k].max())[-1]
    return np.asarray(coefs[:, last])


def conditions(data: Regression) -> tuple[float, float]:
    """How the other columns regress on the true ones: below 1 certain guarantees hold.

    The first is the largest sum of absolute coefficients (Tropp's condition for OMP, also enough
    for the lasso), the second the largest sum with the signs of the truth (the irrepresentable
    condition of the lasso).
    """
    others = np.delete(data.X, data.support, axis=1)
    coefs = np.linalg.lstsq(data.X[:, data.support], others, rcond=None)[0]
    signed = np.sign(data.coef[data.support]) @ coefs
    return float(np.abs(coefs).sum(axis=0).max()), float(np.abs(signed).max())


# What to tell --------------------------------------------------------------------------------


def section(rows: Sequence[Row]) -> Section:
    """Error and recovery against correlation, and what Zhang (2011) is cited for."""
    cases = _cases(rows)
    trials = len(values_of(rows, "seed"))
    means = ", ".join(
        f"{name} {mean_of(rows, f'error {method}'):.2f} ({_share(rows, method)})"
        for method, name in METHODS.items()
    )
    return Section(
        intro=(
            f"Least squares with {ROWS} rows, {COLUMNS} correlated columns, {FEATURES} of which "
            f"count; {trials} trials for each structure, signal-to-noise ratio (snr) and strength "
            "of correlation (rho). Everybody is told the number of features: the lasso by the "
            "least penalty that keeps so many. 'Best of 2k' is the best point of that size on a "
            "run to twice as many. In a case (structure, snr, rho) a method is better than another "
            "if the mean of their paired differences exceeds two standard errors."
        ),
        comparison=(
            f"Mean estimation error, and how often the support is found exactly, over all "
            f"{len(cases)} cases: {means}."
        ),
        claims=_claims(rows),
        figures=[_figure(where(rows, snr=snr)) for snr in values_of(rows, "snr")],
        tables=[
            _table(where(rows, structure=structure)) for structure in values_of(rows, "structure")
        ],
    )


def _cases(rows: Sequence[Row]) -> list[list[Row]]:
    keys = dict.fromkeys((row["structure"], row["snr"], row["rho"]) for row in rows)
    return [where(rows, structure=one, snr=two, rho=three) for one, two, three in keys]


def _share(rows: Sequence[Row], method: str) -> str:
    return f"{mean_of(rows, f'exact {method}'):.0%}"


def compare(rows: Sequence[Row], method: str, other: str, what: str) -> int:
    """1 if a method has more of something than another, beyond chance; -1 if less; else 0."""
    gaps = [row[f"{what} {method}"] - row[f"{what} {other}"] for row in rows]
    limit = 2.0 * stdev(gaps) / len(gaps) ** 0.5 if len(gaps) > 1 else 0.0
    return int(fmean(gaps) > limit) - int(fmean(gaps) < -limit)


def _claims(rows: Sequence[Row]) -> list[Claim]:
    return [
        _claim_of_cases(
            rows, ("l1", "l1 refitted"),
            "FoBa has been shown to give better theoretical properties than LASSO and Dantzig "
            "selector for the least squared loss function (Zhang 2011)",
        ),
        _claim_of_cases(
            rows, ("omp",),
            "FoBa for least squares is an extension of OMP but has stronger theoretical guarantees "
            "as well as better empirical performance (Zhang 2011)",
        ),
        _claim_of_condition(
            rows, "outer", "omp",
            "Feature selection consistency of FoBa is guaranteed under an l2 type condition weaker "
            "than the l-infinity type condition of OMP (Tropp 2004)",
        ),
        _claim_of_condition(
            rows, "signed", "l1",
            "Convex methods such as LASSO usually require irrepresentable conditions for guaranteed"
            " feature selection consistency",
        ),
    ]  # fmt: skip


def _claim_of_cases(rows: Sequence[Row], others: Sequence[str], said: str) -> Claim:
    """In how many cases the error of FoBa is less than that of others, and in how many more."""
    cases, texts, better, worse = _cases(rows), [], 0, 0
    for method in FOBA:
        for other in others:
            signs = [compare(case, method, other, "error") for case in cases]
            texts.append(
                f"{METHODS[method]} is better than {METHODS[other]} in {signs.count(-1)} of "
                f"{len(cases)} cases and worse in {signs.count(1)}"
            )
            better, worse = better + signs.count(-1), worse + signs.count(1)
    agrees = True if better and not worse else None if better > worse else False
    return Claim(said, f"Estimation error: {'; '.join(texts)}", agrees)


def _claim_of_condition(rows: Sequence[Row], condition: str, other: str, said: str) -> Claim:
    """Who finds the support where a condition fails."""
    failing = [row for row in rows if row[condition] >= 1.0]
    if not failing:
        return Claim(said, "the condition holds on every data set drawn", None)
    names = [*FOBA, "foba-2k", other]
    shares = ", ".join(f"{METHODS[name]} {_share(failing, name)}" for name in names)
    better = [compare(failing, method, other, "exact") == 1 for method in FOBA]
    return Claim(
        said,
        f"the condition fails on {len(failing)} of {len(rows)} data sets; found exactly on these: "
        f"{shares}",
        True if all(better) else None if any(better) else False,
    )


def _figure(rows: Sequence[Row]) -> Figure:
    snr = rows[0]["snr"]
    wanted = {"error": "estimation error", "exact": "share of supports found"}
    panels = [
        Panel(
            f"{structure}, snr {snr:g}", "rho", title, from_zero=True,
            lines=[
                mean_line(name, where(rows, structure=structure), "rho", f"{what} {method}",
                          LIKE.get(method, method))
                for method, name in METHODS.items()
                if (what, method) != ("exact", "l1 refitted")  # the same columns as the lasso's
            ],
        )
        for structure in values_of(rows, "structure")
        for what, title in wanted.items()
    ]  # fmt: skip
    caption = f"Correlated columns, snr {snr:g}: means, shaded by two standard errors"
    return Figure(f"least-squares-snr-{snr:g}", caption, panels)


def _table(rows: Sequence[Row]) -> Table:
    header = ["snr", "rho", "irrepresentable", *METHODS.values()]
    lines = []
    for case in _cases(rows):
        holds = sum(row["signed"] < 1.0 for row in case)
        cells = [
            f"{mean_of(case, f'error {name}'):.2f} / {_share(case, name)} / "
            f"{mean_of(case, f'f {name}'):.2f}"
            for name in METHODS
        ]
        first = case[0]
        lines.append([f"{first['snr']:g}", f"{first['rho']:g}", f"{holds} of {len(case)}", *cells])
    title = f"{rows[0]['structure']}: estimation error / supports found exactly / F-measure"
    return Table(title, header, lines)


EXPERIMENT = Experiment(
    "least-squares", "Least squares with correlated columns: FoBa, OMP, lasso", parts, section
)
