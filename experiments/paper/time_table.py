"""How long the four algorithms take, beside the paper's table.

Table `tab_ct_syn` of the paper: logistic regression to the thresholds of `logistic_synthetic`, and
chain CRFs to a number of features. The construction of the objective is timed with the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from timeit import repeat

import pandas as pd
from threadpoolctl import threadpool_limits

from experiments.paper.logistic_synthetic import (
    LAMBDA_BESIDE_MEAN,
    make_objective,
    run_to_threshold,
)
from experiments.report.figures import Figure, Line, Panel
from experiments.report.page import Claim, Section
from experiments.study import TITLES, Experiment, Part, Row, verdict
from forback import Path, select
from forback.certificates import theory_thresholds
from forback.datasets import make_chain, make_logistic
from forback.objectives import ChainCRF
from forback.report.tables import Table

#: The paper's seconds: model -> sparsity -> one for each of TITLES, in that order.
PRINTED = {
    "logistic": {
        5: (1.96e-2, 0.65e-2, 1.25e1, 1.24e1),
        8: (1.16e-2, 0.76e-2, 1.52e1, 1.52e1),
        11: (1.53e-2, 1.05e-2, 1.83e1, 1.80e1),
        14: (1.51e-2, 1.00e-2, 2.29e1, 2.25e1),
    },
    "CRF": {
        10: (1.02, 0.52, 3.95e1, 1.88e1),
        15: (1.85, 1.05, 5.53e1, 2.65e1),
        20: (2.51, 1.53, 6.89e1, 3.33e1),
        25: (3.86, 2.00, 8.06e1, 3.91e1),
        30: (5.13, 3.00, 9.04e1, 4.39e1),
    },
}
WORDS = 800

#: The times of so many data sets are taken, and their median is told.
SEEDS = {"logistic": 21, "CRF": 5}

#: A run on a data set is made so often, and the quickest counts: others use the machine as well.
REPEATS = {"logistic": 10, "CRF": 2}

#: From this ratio on one algorithm is much more efficient than another.
MUCH = 10.0

#: Up to this ratio two algorithms take about as long.
ALIKE = 1.25

#: Whose times are compared: FoBa-obj with FoBa-gdt, the forward halves of both, FoBa with its half.
RATIOS = (("foba-obj", "foba-gdt"), ("forward-obj", "forward-gdt"), ("foba-obj", "forward-obj"))


@dataclass(frozen=True)
class Case:
    """A data set: how many candidates it has, and a run of a method, from the data to the path."""

    candidates: int
    run: Callable[[str], Path]


def parts(quick: bool) -> list[Part]:
    """List a part for each line of the table."""
    lines = [(model, k) for model, sizes in PRINTED.items() for k in sizes]
    if quick:
        lines = [("logistic", 5), ("logistic", 14), ("CRF", 10)]
    seeds = dict.fromkeys(SEEDS, 1) if quick else SEEDS
    repeats = dict.fromkeys(REPEATS, 1) if quick else REPEATS
    return [
        Part(f"{model}, {k} features", partial(run_part, model, k, seeds[model], repeats[model]))
        for model, k in lines
    ]


def run_part(model: str, k: int, seeds: int, repeats: int) -> list[Row]:
    """Time every algorithm on data of so many seeds: the quickest of so many runs counts."""
    prepare = {"logistic": logistic, "CRF": crf}[model]
    rows: list[Row] = []
    for seed in range(seeds):
        case = prepare(k, seed)
        for method in TITLES:
            path = case.run(method)  # compiles kernels, or reads them from disk
            # A run of a few milliseconds that waits for a second thread tells what else cores do.
            with threadpool_limits(1, user_api="blas"):
                seconds = repeat(partial(case.run, method), number=1, repeat=repeats)
            row = {
                "model": model,
                "sparsity": k,
                "seed": seed,
                "method": method,
                "seconds": min(seconds),
                "steps": len(path.steps),
                "features": path.end.size,
                "solved": fmean(step.solved for step in path.steps if step.action == "add"),
                "candidates": case.candidates,
            }
            rows.append(row)
    return rows


def logistic(k: int, seed: int) -> Case:
    """Prepare runs to the thresholds of the appendix's first strategy."""
    data = make_logistic(k=k, random_state=seed)
    objective = make_objective(data)
    known = theory_thresholds(objective, data.support)
    return Case(
        objective.n_candidates,
        lambda method: run_to_threshold(make_objective(data), method, known),
    )


def crf(k: int, seed: int) -> Case:
    """Prepare runs to k weights of observations; transitions are always in."""
    chain = make_chain(WORDS, random_state=seed)

    def make() -> ChainCRF:
        return ChainCRF(chain.X, chain.y, chain.lengths)

    def run(method: str) -> Path:
        return select(make(), k=k, method=method, by="feature")

    return Case(make().n_candidates, run)


# What to tell --------------------------------------------------------------------------------


def section(rows: pd.DataFrame) -> Section:
    """Put the paper's seconds beside ours and judge what the ratios say."""
    ours, theirs = seconds_of(rows), printed_for(rows)
    counts = " and ".join(
        f"{own['seed'].nunique()} of them ({model})"
        for model, own in rows.groupby("model", sort=False)
    )
    pair = RATIOS[0]
    return Section(
        intro=(
            "Seconds from the data to the end of the run, the objective's construction included, "
            "after a warm-up and with BLAS on one thread: the quickest of a few runs on a data "
            f"set, and of that the median over data sets, {counts}. Logistic regression stops by "
            "the thresholds of the section on synthetic logistic regression, with ridge "
            f"{LAMBDA_BESIDE_MEAN:g}, the CRF at a number of features. The machines are some 12 "
            "years apart: only ratios compare."
        ),
        comparison=(
            f"FoBa-obj takes {_span(ours, *pair)} times as long as FoBa-gdt; in the paper it is "
            f"{_span(theirs, *pair)}. The gap is smaller here because FoBa-obj need not solve a "
            "problem for every candidate: bounds on what it can gain rule the others out. Per "
            f"forward step it solves {_solved(rows)}, and for a weight of a CRF the recursions are "
            "redone only where it counts."
        ),
        claims=_claims(ours, theirs),
        figures=[_figure(rows, theirs)],
        tables=[_table(ours, theirs), _ratios(ours, theirs)],
    )


def seconds_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Take medians over seeds: a line for each model and sparsity, a column for each method."""
    return rows.pivot_table("seconds", ["model", "sparsity"], "method", "median", sort=False)


def printed_for(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the paper's seconds in the shape of `seconds_of`, for the lines that we have."""
    index = seconds_of(rows).index
    times = [PRINTED[model][sparsity] for model, sparsity in index]
    return pd.DataFrame(times, index=index, columns=list(TITLES))


def _span(seconds: pd.DataFrame, one: str, two: str) -> str:
    """Tell how many times as long one method takes as another, from the least to the most."""
    ratios = seconds[one] / seconds[two]
    low, high = _short(ratios.min()), _short(ratios.max())
    return low if low == high else f"{low} to {high}"


def _short(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10.0 else f"{ratio:.0f}"


def _solved(rows: pd.DataFrame) -> str:
    own = rows[rows["method"] == "foba-obj"].groupby("model", sort=False)
    means = own[["solved", "candidates"]].mean()
    return " and ".join(
        f"{row.solved:.1f} of {row.candidates:.0f} ({row.Index})" for row in means.itertuples()
    )


def _claims(ours: pd.DataFrame, theirs: pd.DataFrame) -> list[Claim]:
    claims = []
    models = ours.index.unique("model")
    for model in models:
        here, there = ours.loc[[model]], theirs.loc[[model]]
        ratios = pd.concat([here[one] / here[two] for one, two in RATIOS[:2]])
        claim = Claim(
            f"FoBa-gdt and Forward-gdt are much more efficient than FoBa-obj and Forward-obj "
            f"({model})",
            f"{_span(here, *RATIOS[0])} times as long with backward steps (in print "
            f"{_span(there, *RATIOS[0])}), {_span(here, *RATIOS[1])} without (in print "
            f"{_span(there, *RATIOS[1])}); much: from {MUCH:g} on",
            True if ratios.min() >= MUCH else None if ratios.median() > ALIKE else False,
        )
        claims.append(claim)
    if set(PRINTED) <= set(models):
        claims.append(_claim_about_backward_steps(ours, theirs))
    return claims


def _claim_about_backward_steps(ours: pd.DataFrame, theirs: pd.DataFrame) -> Claim:
    pair = RATIOS[2]
    middles = (ours[pair[0]] / ours[pair[1]]).groupby("model").median()
    found = "), ".join(
        f"{_span(ours.loc[[model]], *pair)} {times}({model}; in print "
        f"{_span(theirs.loc[[model]], *pair)}"
        for model, times in (("CRF", "times as long "), ("logistic", ""))
    )
    return Claim(
        "CRF: FoBa-obj is computationally more expensive than Forward-obj, while they are "
        "comparable in the logistic regression case",
        f"{found}); comparable: medians up to {ALIKE:g}",
        verdict(middles["CRF"] > ALIKE, 1.0 / ALIKE <= middles["logistic"] <= ALIKE),
    )


def _figure(rows: pd.DataFrame, theirs: pd.DataFrame) -> Figure:
    panels = []
    for model, own in rows.groupby("model", sort=False):
        printed = theirs.loc[model]
        lines = {
            "the paper": [
                Line(name, list(printed.index), list(printed[method]), like=method)
                for method, name in TITLES.items()
            ],
            "here": [_line(own, method) for method in TITLES],
        }
        panels += [
            Panel(f"{model}, {whose}", "number of features S", "seconds", some, log_y=True)
            for whose, some in lines.items()
        ]
    caption = "Seconds, on machines 12 years apart; ours are medians, shaded by quartiles"
    return Figure("time-table", caption, panels)


def _line(rows: pd.DataFrame, method: str) -> Line:
    times = rows[rows["method"] == method].groupby("sparsity")["seconds"]
    low, middle, high = (list(times.quantile(share)) for share in (0.25, 0.5, 0.75))
    return Line(TITLES[method], list(times.groups), middle, low, high, method)


def _table(ours: pd.DataFrame, theirs: pd.DataFrame) -> Table:
    header = ["model", "S", *(f"{name}, {who}" for name in TITLES.values() for who in WHOSE)]
    lines = [
        [case[0], str(case[1])]
        + [f"{own.loc[case, method]:.2e}" for method in TITLES for own in (theirs, ours)]
        for case in ours.index
    ]
    return Table("Seconds", header, lines)


WHOSE = ("paper", "here")


def _ratios(ours: pd.DataFrame, theirs: pd.DataFrame) -> Table:
    names = [f"{TITLES[one]} : {TITLES[two]}" for one, two in RATIOS]
    header = ["model", "S", *(f"{name}, {who}" for name in names for who in WHOSE)]
    lines = [
        [case[0], str(case[1])]
        + [
            _short(own.loc[case, one] / own.loc[case, two])
            for one, two in RATIOS
            for own in (theirs, ours)
        ]
        for case in ours.index
    ]
    return Table("Ratios", header, lines)


EXPERIMENT = Experiment("time-table", "Computation time of the four algorithms", parts, section)
