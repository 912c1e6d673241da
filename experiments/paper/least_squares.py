"""FoBa beside OMP and the lasso as columns get correlated.

Not an experiment of the paper, but the case that it starts from: it cites Zhang (2011) for FoBa
being better than both on least squares. Everybody is told the number of features.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
from sklearn.linear_model import OrthogonalMatchingPursuit, lars_path

from experiments.report.figures import Figure, Panel
from experiments.report.page import Claim, Section
from experiments.study import (
    TITLES,
    Experiment,
    Part,
    Row,
    beyond_chance,
    f_measure,
    mean_line,
    seven_digits,
    verdict,
)
from forback import select
from forback.core.types import Floats
from forback.datasets import Regression, make_correlated
from forback.objectives import LeastSquares
from forback.report.tables import Table

STRUCTURES = ("ar", "equal", "factors")
SNRS = (10.0, 50.0)
RHOS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
ROWS = 100
COLUMNS = 200
FEATURES = 10
TRIALS = 50

#: Who is compared; in figures the fourth takes the fourth colour, which nobody else has.
METHODS = {
    "foba-gdt": TITLES["foba-gdt"],
    "foba-obj": TITLES["foba-obj"],
    "omp": "OMP",
    "foba-2k": "FoBa-gdt, best of 2k",
    "l1": "lasso",
    "l1 refitted": "lasso, refitted",
}
#: OMP is Forward-gdt, so it looks like that.
LIKE = {"omp": "forward-gdt", "foba-2k": ""}

FOBA = ("foba-gdt", "foba-obj")

#: A lasso path is followed for so many steps per feature: one that leaves takes a step as well.
LARS_STEPS_PER_FEATURE = 8


def parts(quick: bool) -> list[Part]:
    """List a part for each structure, noise level and correlation."""
    snrs: Sequence[float] = SNRS[1:] if quick else SNRS
    rhos: Sequence[float] = (0.0, 0.8) if quick else RHOS
    trials = 5 if quick else TRIALS
    return [
        Part(
            f"{structure}, snr {snr:g}, rho {rho:g}",
            partial(run_part, structure, snr, rho, trials),
        )
        for structure in STRUCTURES
        for snr in snrs
        for rho in rhos
    ]


def run_part(structure: str, snr: float, rho: float, trials: int) -> list[Row]:
    """Look for the features of random problems, and see how far from the truth one ends."""
    rows: list[Row] = []
    for seed in range(trials):
        data = make_correlated(
            ROWS, COLUMNS, FEATURES, rho=rho, structure=structure, snr=snr, random_state=seed
        )
        outer, signed = conditions(data)
        row: Row = {
            "structure": structure,
            "snr": snr,
            "rho": rho,
            "seed": seed,
            "outer": seven_digits(outer),
            "signed": seven_digits(signed),
        }
        for method, beta in estimates(data).items():
            found = np.flatnonzero(beta)
            row[f"error {method}"] = seven_digits(np.linalg.norm(beta - data.coef))
            row[f"exact {method}"] = int(np.array_equal(found, data.support))
            row[f"f {method}"] = seven_digits(f_measure(found, data.support))
        rows.append(row)
    return rows


def estimates(data: Regression) -> dict[str, Floats]:
    """Estimate the coefficients by each method, all told the number of features."""
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
    """Fit the lasso with k features and the least penalty, or with fewer where its path skips k."""
    coefs = lars_path(data.X, data.y, method="lasso", max_iter=LARS_STEPS_PER_FEATURE * k)[2]
    counts = np.count_nonzero(coefs, axis=0)
    last = np.flatnonzero(counts == counts[counts <= k].max())[-1]
    return np.asarray(coefs[:, last])


def conditions(data: Regression) -> tuple[float, float]:
    """Regress the other columns on the true ones; below 1 certain guarantees hold.

    The first is the largest sum of absolute coefficients (Tropp's condition for OMP, also enough
    for the lasso), the second the largest sum with the signs of the truth (the irrepresentable
    condition of the lasso).
    """
    others = np.delete(data.X, data.support, axis=1)
    coefs = np.linalg.lstsq(data.X[:, data.support], others, rcond=None)[0]
    signed = np.sign(data.coef[data.support]) @ coefs
    return float(np.abs(coefs).sum(axis=0).max()), float(np.abs(signed).max())


# What to tell --------------------------------------------------------------------------------

#: Rows with the same data but for the seed.
CASE = ["structure", "snr", "rho"]


def section(rows: pd.DataFrame) -> Section:
    """Show error and recovery against correlation, and judge what Zhang (2011) is cited for."""
    means = ", ".join(
        f"{name} {rows[f'error {method}'].mean():.2f} ({_share(rows, method)})"
        for method, name in METHODS.items()
    )
    return Section(
        intro=(
            f"Least squares with {ROWS} rows, {COLUMNS} correlated columns, {FEATURES} of which "
            f"count; {rows['seed'].nunique()} trials for each structure, signal-to-noise ratio "
            "(snr) and strength of correlation (rho). Everybody is told the number of features: "
            "the lasso by the least penalty that keeps so many. 'Best of 2k' is the best point of "
            "that size on a run to twice as many. In a case (structure, snr, rho) a method is "
            "better than another if the mean of their paired differences exceeds two standard "
            "errors."
        ),
        comparison=(
            f"Mean estimation error, and how often the support is found exactly, over all "
            f"{rows.groupby(CASE).ngroups} cases: {means}."
        ),
        claims=_claims(rows),
        figures=[_figure(own) for _, own in rows.groupby("snr", sort=False)],
        tables=[_table(own) for _, own in rows.groupby("structure", sort=False)],
    )


def _share(rows: pd.DataFrame, method: str) -> str:
    return f"{rows[f'exact {method}'].mean():.0%}"


def compare(rows: pd.DataFrame, method: str, other: str, what: str) -> int:
    """Return 1 if a method has more of something than another beyond chance, -1 if less, else 0."""
    return beyond_chance(rows[f"{what} {method}"] - rows[f"{what} {other}"])


def _claims(rows: pd.DataFrame) -> list[Claim]:
    return [
        _claim_of_cases(
            rows,
            ("l1", "l1 refitted"),
            "FoBa has been shown to give better theoretical properties than LASSO and Dantzig "
            "selector for the least squared loss function (Zhang 2011)",
        ),
        _claim_of_cases(
            rows,
            ("omp",),
            "FoBa for least squares is an extension of OMP but has stronger theoretical guarantees "
            "as well as better empirical performance (Zhang 2011)",
        ),
        _claim_of_condition(
            rows,
            "outer",
            "omp",
            "Feature selection consistency of FoBa is guaranteed under an l2 type condition weaker "
            "than the l-infinity type condition of OMP (Tropp 2004)",
        ),
        _claim_of_condition(
            rows,
            "signed",
            "l1",
            "Convex methods such as LASSO usually require irrepresentable conditions for guaranteed"
            " feature selection consistency",
        ),
    ]


def _claim_of_cases(rows: pd.DataFrame, others: Sequence[str], said: str) -> Claim:
    """Count the cases in which FoBa has a smaller error than others, and a larger one."""
    texts = []
    signs: list[int] = []
    for method in FOBA:
        for other in others:
            found = [compare(case, method, other, "error") for _, case in rows.groupby(CASE)]
            texts.append(
                f"{METHODS[method]} is better than {METHODS[other]} in {found.count(-1)} of "
                f"{len(found)} cases and worse in {found.count(1)}"
            )
            signs += found
    better = signs.count(-1)
    worse = signs.count(1)
    agrees = True if better and not worse else None if better > worse else False
    return Claim(said, f"Estimation error: {'; '.join(texts)}", agrees)


def _claim_of_condition(rows: pd.DataFrame, condition: str, other: str, said: str) -> Claim:
    """Compare who finds the support where a condition fails."""
    failing = rows[rows[condition] >= 1.0]
    if not len(failing):
        return Claim(said, "the condition holds on every data set drawn", None)
    names = [*FOBA, "foba-2k", other]
    shares = ", ".join(f"{METHODS[name]} {_share(failing, name)}" for name in names)
    return Claim(
        said,
        f"the condition fails on {len(failing)} of {len(rows)} data sets; found exactly on these: "
        f"{shares}",
        verdict(*(compare(failing, method, other, "exact") == 1 for method in FOBA)),
    )


def _figure(rows: pd.DataFrame) -> Figure:
    snr = rows["snr"].iloc[0]
    panels = []
    for structure, own in rows.groupby("structure", sort=False):
        for what, title in (("error", "estimation error"), ("exact", "share of supports found")):
            lines = [
                mean_line(name, own, "rho", f"{what} {method}", LIKE.get(method, method))
                for method, name in METHODS.items()
                if (what, method) != ("exact", "l1 refitted")  # the same columns as the lasso's
            ]
            panels.append(Panel(f"{structure}, snr {snr:g}", "rho", title, lines, from_zero=True))
    caption = f"Correlated columns, snr {snr:g}: means, shaded by two standard errors"
    return Figure(f"least-squares-snr-{snr:g}", caption, panels)


def _table(rows: pd.DataFrame) -> Table:
    lines = []
    for (_, snr, rho), case in rows.groupby(CASE, sort=False):
        cells = [
            f"{case[f'error {name}'].mean():.2f} / {_share(case, name)} / "
            f"{case[f'f {name}'].mean():.2f}"
            for name in METHODS
        ]
        holds = f"{(case['signed'] < 1.0).sum()} of {len(case)}"
        lines.append([f"{snr:g}", f"{rho:g}", holds, *cells])
    structure = rows["structure"].iloc[0]
    title = f"{structure}: estimation error / supports found exactly / F-measure"
    return Table(title, ["snr", "rho", "irrepresentable", *METHODS.values()], lines)


EXPERIMENT = Experiment(
    "least-squares", "Least squares with correlated columns: FoBa, OMP, lasso", parts, section
)
