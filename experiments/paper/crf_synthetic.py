"""The four algorithms on sequences drawn at random.

The appendix's simulation: 800 words, 14 indicators of their features times 4 labels, 20 runs. One
run of an algorithm passes through all sizes; the paper stops when a size is reached, so its model
of that size is the one of the first visit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from experiments.report.figures import Figure, Panel
from experiments.report.page import Claim, Section
from experiments.study import TITLES, Experiment, Part, Row, mean_line, verdict
from forback import select
from forback.datasets import Chain, make_chain
from forback.objectives import ChainCRF
from forback.protocols import Point
from forback.report.tables import Table

WORDS = 800
SIZES = (10, 15, 20, 25, 30)
SEEDS = 20
QUICK_SEEDS = 2

#: Sequences to test on are drawn with the seed of a run plus this.
TEST_SEED_SHIFT = 1000

#: The algorithms in the order of the tables: those of the paper's text first.
METHODS = ("foba-obj", "forward-obj", "foba-gdt", "forward-gdt")
MEASURES = {
    "train_error": "training error",
    "test_error": "test error",
    "objective": "objective",
}

#: Means so close are "quite close": the objective relatively, errors as they are.
CLOSE = 0.01


def parts(quick: bool) -> list[Part]:
    """List a part for each run."""
    seeds = QUICK_SEEDS if quick else SEEDS
    sizes = SIZES[:2] if quick else SIZES
    return [Part(f"run {seed}", partial(run_part, seed, sizes=sizes)) for seed in range(seeds)]


def run_part(seed: int, words: int = WORDS, sizes: Sequence[int] = SIZES) -> list[Row]:
    """Draw sequences to learn from and others to test on, and choose by each algorithm."""
    known, new = (make_chain(words, random_state=one) for one in (seed, seed + TEST_SEED_SHIFT))
    objective = _objective(known)
    unseen = _objective(new)
    rows: list[Row] = []
    for method in sorted(TITLES):
        path = select(objective, k=max(sizes), method=method, by="feature")
        for size in sizes:
            point = path.first(size)
            row = {
                "seed": seed,
                "method": method,
                "features": size,
                "train_error": _error(objective, known, point),
                "test_error": _error(unseen, new, point),
                "objective": point.value,
                "best_objective": path.best(size).value,
            }
            rows.append(row)
    return rows


def _objective(chain: Chain) -> ChainCRF:
    return ChainCRF(chain.X, chain.y, chain.lengths)


def _error(objective: ChainCRF, chain: Chain, point: Point) -> float:
    """Return the share of words that the likeliest labels of their sentence get wrong."""
    return float(np.mean(objective.labels(point) != chain.y))


# What to tell --------------------------------------------------------------------------------


def section(rows: pd.DataFrame) -> Section:
    """Draw the three panels of the appendix's figure and judge what it says about them."""
    panels = [
        Panel(
            title,
            "features",
            f"mean {title}",
            [
                mean_line(TITLES[str(method)], own, "features", measure, str(method))
                for method, own in rows.groupby("method", sort=False)
            ],
        )
        for measure, title in MEASURES.items()
    ]
    runs = rows["seed"].nunique()
    means = rows.groupby(["features", "method"])[list(MEASURES)].mean()
    return Section(
        intro=(
            f"Sequences of {WORDS} words from the generator of Matlab's crfChain, which the "
            "appendix uses: 4 labels, 14 indicators of features, so 56 weights to choose from; "
            "transitions and biases are always in. Errors are shares of words labelled wrong, on "
            f"the {WORDS} words to learn from and on {WORDS} others; {runs} runs. The paper does "
            "not say whether it has a ridge; here it is the default of 1e-4 per word."
        ),
        comparison=_comparison(rows, means),
        claims=[
            _obj_ahead(means),
            _gap_closes(means),
            _obj_alike(means),
            _backward_helps(rows, means),
        ],
        figures=[
            Figure(
                "crf-synthetic", f"Means of {runs} runs, shaded by two standard errors", panels, 3
            )
        ],
        tables=[_table(means, runs)],
    )


def _fewest(means: pd.DataFrame) -> int:
    return int(means.index.unique("features").min())


def _comparison(rows: pd.DataFrame, means: pd.DataFrame) -> str:
    """Compare the objectives of both kinds at the fewest and at the most features."""
    sizes = means.index.unique("features")
    told = []
    for size in (sizes.min(), sizes.max()):
        ours, theirs = (means.loc[(size, name), "objective"] for name in ("foba-obj", "foba-gdt"))
        told.append(f"{ours:.4f} against {theirs:.4f} at {size} features")
    return (
        f"Mean objective of FoBa-obj and of FoBa-gdt: {', '.join(told)}. Backward steps: at "
        f"{sizes.min()} features FoBa-gdt and Forward-gdt have the same model in "
        f"{_same(rows[rows['features'] == sizes.min()])} of {rows['seed'].nunique()} runs."
    )


def _same(rows: pd.DataFrame) -> int:
    """Count the runs in which FoBa-gdt and Forward-gdt have the same objective."""
    objectives = rows.pivot(index="seed", columns="method", values="objective")
    return int((objectives["foba-gdt"] == objectives["forward-gdt"]).sum())


def _obj_ahead(means: pd.DataFrame) -> Claim:
    low = _fewest(means)
    worst = means.loc[low].loc[["foba-obj", "forward-obj"]].max()
    best = means.loc[low].loc[["foba-gdt", "forward-gdt"]].min()
    found = [f"{title} {worst[key]:.3f} against {best[key]:.3f}" for key, title in MEASURES.items()]
    return Claim(
        "FoBa-obj and Forward-obj give lower objective values, training error, and test error than "
        "FoBa-gdt and Forward-gdt when the sparsity level is low",
        f"at {low} features the worse of the two against the better of the others: "
        + ", ".join(found),
        verdict(*(worst < best)),
    )


def _gap_closes(means: pd.DataFrame) -> Claim:
    groups = means.groupby("features")
    gaps = groups.max() - groups.min()
    first, last = gaps.iloc[0], gaps.iloc[-1]
    found = [f"{title} {first[key]:.4f} and {last[key]:.4f}" for key, title in MEASURES.items()]
    return Claim(
        "The performance gap between different algorithms becomes smaller when the sparsity level "
        "increases",
        f"largest minus smallest mean, at {gaps.index[0]} and at {gaps.index[-1]} features: "
        + ", ".join(found),
        verdict(*(last < first)),
    )


def _obj_alike(means: pd.DataFrame) -> Claim:
    foba, forward = (means.xs(name, level="method") for name in ("foba-obj", "forward-obj"))
    units = forward.assign(train_error=1.0, test_error=1.0)
    apart = ((foba - forward).abs() / units).max()
    units_of = {"objective": ", relatively"}
    found = [
        f"{apart[key]:.4f} ({title}{units_of.get(key, '')})" for key, title in MEASURES.items()
    ]
    return Claim(
        "The performance of FoBa-obj is quite close to that of Forward-obj",
        "means differ at most by " + ", ".join(found),
        bool((apart <= CLOSE).all()),
    )


def _backward_helps(rows: pd.DataFrame, means: pd.DataFrame) -> Claim:
    low = _fewest(means)
    foba, forward = (means.loc[(low, name)] for name in ("foba-gdt", "forward-gdt"))
    found = [
        f"{title} {foba[key]:.4f} against {forward[key]:.4f}" for key, title in MEASURES.items()
    ]
    some = rows[rows["features"] == low]
    own = some[some["method"] == "foba-gdt"]
    better = (own["best_objective"] < own["objective"]).sum()
    return Claim(
        "FoBa-gdt outperforms Forward-gdt particularly when the sparsity level was low",
        f"at {low} features {', '.join(found)}; the same model in {_same(some)} of {len(own)} "
        f"runs; in {better} of them FoBa-gdt came back to {low} features later, with a lower "
        "objective",
        verdict(*(foba < forward)),
    )


def _table(means: pd.DataFrame, runs: int) -> Table:
    lines = []
    for size in means.index.unique("features"):
        for method in METHODS:
            own = means.loc[(size, method)]
            errors = [f"{own[key]:.2%}" for key in ("train_error", "test_error")]
            lines.append([str(size), TITLES[method], f"{own['objective']:.4f}", *errors])
    header = ["features", "algorithm", "objective", "training error", "test error"]
    return Table(f"Means of {runs} runs", header, lines)


EXPERIMENT = Experiment("crf-synthetic", "Linear-chain CRFs on synthetic sequences", parts, section)
