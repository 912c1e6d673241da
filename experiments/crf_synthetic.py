"""`forback reproduce crf-synthetic`: the four algorithms on sequences drawn at random.

The appendix's simulation: 800 words, 14 indicators of their features times 4 labels, 20 runs. One
run of an algorithm passes through all sizes; the paper stops when a size is reached, so its model
of that size is the one of the first visit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from experiments.page import Claim, Section
from experiments.study import Experiment, Part, Row, mean_line, mean_of, values_of, where
from forback.core.point import Point
from forback.datasets import Chain, make_chain
from forback.objectives import ChainCRF
from forback.report.figures import Figure, Panel
from forback.report.tables import Table
from forback.selection.rules import METHODS
from forback.selection.select import select

WORDS = 800
SIZES = (10, 15, 20, 25, 30)
SEEDS, FEW = 20, 2

#: Sequences to test on are drawn with the seed of a run plus this.
ANOTHER = 1000

NAMES = {
    "foba-obj": "FoBa-obj", "forward-obj": "Forward-obj",
    "foba-gdt": "FoBa-gdt", "forward-gdt": "Forward-gdt",
}  # fmt: skip
MEASURES = {
    "train_error": "training error", "test_error": "test error", "objective": "objective",
}  # fmt: skip
UNITS = {**MEASURES, "objective": "objective, relatively"}

#: Means so close are "quite close": the objective relatively, errors as they are.
CLOSE = 0.01


def parts(quick: bool) -> list[Part]:
    """A part for each run."""
    return [Part(f"run {seed}", partial(study, seed)) for seed in range(FEW if quick else SEEDS)]


def study(seed: int, words: int = WORDS, sizes: Sequence[int] = SIZES) -> list[Row]:
    """Draw sequences to learn from and others to test on, and choose by each algorithm."""
    known, new = (make_chain(words, random_state=one) for one in (seed, seed + ANOTHER))
    objective, unseen = _objective(known), _objective(new)
    rows: list[Row] = []
    for method in METHODS:
        path = select(objective, k=max(sizes), method=method, by="feature")
        for size in sizes:
            point = path.first(size)
            rows.append(
                {
                    "seed": seed, "method": method, "features": size,
                    "train_error": _error(objective, known, point),
                    "test_error": _error(unseen, new, point),
                    "objective": point.value, "best_objective": path.best(size).value,
                }
            )  # fmt: skip
    return rows


def _objective(chain: Chain) -> ChainCRF:
    return ChainCRF(chain.X, chain.y, chain.lengths)


def _error(objective: ChainCRF, chain: Chain, point: Point) -> float:
    """The share of words to which the likeliest labels of a sentence give a wrong one."""
    return float(np.mean(objective.labels(point) != chain.y))


# What to tell --------------------------------------------------------------------------------


def section(rows: Sequence[Row]) -> Section:
    """The three panels of the appendix's figure, and what it says about them."""
    panels = [
        Panel(
            title, "features", f"mean {title}",
            [
                mean_line(NAMES[method], where(rows, method=method), "features", measure, method)
                for method in values_of(rows, "method")
            ],
        )
        for measure, title in MEASURES.items()
    ]  # fmt: skip
    runs = len(values_of(rows, "seed"))
    return Section(
        intro=(
            f"Sequences of {WORDS} words from the generator of Matlab's crfChain, which the "
            "appendix uses: 4 labels, 14 indicators of features, so 56 weights to choose from; "
            "transitions and biases are always in. Errors are shares of words labelled wrong, on "
            f"the {WORDS} words to learn from and on {WORDS} others; {runs} runs. The paper does "
            "not say whether it has a ridge; here it is the default of 1e-4 per word."
        ),
        comparison=_comparison(rows),
        claims=_claims(rows),
        figures=[Figure("crf-synthetic", f"Means of {runs} runs, shaded by two standard errors",
                        panels, columns=3)],
        tables=[_table(rows)],
    )  # fmt: skip


def _comparison(rows: Sequence[Row]) -> str:
    """The objectives of both kinds at the fewest and at the most features."""
    sizes, runs = values_of(rows, "features"), len(values_of(rows, "seed"))
    told = []
    for size in (min(sizes), max(sizes)):
        means = _means(rows, size, "objective")
        told.append(f"{means['foba-obj']:.4f} against {means['foba-gdt']:.4f} at {size} features")
    same = _same(where(rows, features=min(sizes)))
    return (
        f"Mean objective of FoBa-obj and of FoBa-gdt: {told[0]}, {told[1]}. Backward steps: at "
        f"{min(sizes)} features FoBa-gdt and Forward-gdt have the same model in {same} of {runs} "
        "runs."
    )


def _same(rows: Sequence[Row]) -> int:
    """In how many runs FoBa-gdt and Forward-gdt have the same objective."""
    pair = [where(rows, method=method) for method in ("foba-gdt", "forward-gdt")]
    return sum(a["objective"] == b["objective"] for a, b in zip(*pair, strict=True))


def _claims(rows: Sequence[Row]) -> list[Claim]:
    sizes = values_of(rows, "features")
    low, high = min(sizes), max(sizes)
    return [_obj_ahead(rows, low), _gap_closes(rows, low, high), _obj_alike(rows),
            _backward_helps(rows, low)]  # fmt: skip


def _means(rows: Sequence[Row], size: int, measure: str) -> dict[str, float]:
    """The mean of each algorithm at a size."""
    some = where(rows, features=size)
    return {name: mean_of(where(some, method=name), measure) for name in NAMES}


def _verdict(holds: Sequence[bool]) -> bool | None:
    """Yes where all hold, no where none does, else neither."""
    return True if all(holds) else None if any(holds) else False


def _obj_ahead(rows: Sequence[Row], low: int) -> Claim:
    holds, found = [], []
    for measure, title in MEASURES.items():
        means = _means(rows, low, measure)
        worst = max(means["foba-obj"], means["forward-obj"])
        best = min(means["foba-gdt"], means["forward-gdt"])
        holds.append(worst < best)
        found.append(f"{title} {worst:.3f} against {best:.3f}")
    return Claim(
        "FoBa-obj and Forward-obj give lower objective values, training error, and test error than "
        "FoBa-gdt and Forward-gdt when the sparsity level is low",
        f"at {low} features the worse of the two against the better of the others: "
        + ", ".join(found),
        _verdict(holds),
    )


def _gap_closes(rows: Sequence[Row], low: int, high: int) -> Claim:
    holds, found = [], []
    for measure, title in MEASURES.items():
        gaps = []
        for size in (low, high):
            means = _means(rows, size, measure).values()
            gaps.append(max(means) - min(means))
        holds.append(gaps[1] < gaps[0])
        found.append(f"{title} {gaps[0]:.4f} and {gaps[1]:.4f}")
    return Claim(
        "The performance gap between different algorithms becomes smaller when the sparsity level "
        "increases",
        f"largest minus smallest mean, at {low} and at {high} features: " + ", ".join(found),
        _verdict(holds),
    )


def _obj_alike(rows: Sequence[Row]) -> Claim:
    apart = dict.fromkeys(MEASURES, 0.0)
    for size in values_of(rows, "features"):
        for measure in MEASURES:
            means = _means(rows, size, measure)
            unit = means["forward-obj"] if measure == "objective" else 1.0
            gap = abs(means["foba-obj"] - means["forward-obj"]) / unit
            apart[measure] = max(apart[measure], gap)
    return Claim(
        "The performance of FoBa-obj is quite close to that of Forward-obj",
        "means differ at most by "
        + ", ".join(f"{gap:.4f} ({UNITS[measure]})" for measure, gap in apart.items()),
        all(gap <= CLOSE for gap in apart.values()),
    )  # fmt: skip


def _backward_helps(rows: Sequence[Row], low: int) -> Claim:
    some = where(rows, features=low)
    holds, found = [], []
    for measure, title in MEASURES.items():
        means = _means(rows, low, measure)
        holds.append(means["foba-gdt"] < means["forward-gdt"])
        found.append(f"{title} {means['foba-gdt']:.4f} against {means['forward-gdt']:.4f}")
    better = sum(row["best_objective"] < row["objective"] for row in where(some, method="foba-gdt"))
    runs = len(values_of(some, "seed"))
    return Claim(
        "FoBa-gdt outperforms Forward-gdt particularly when the sparsity level was low",
        f"at {low} features {', '.join(found)}; the same model in {_same(some)} of {runs} runs; in "
        f"{better} of them FoBa-gdt came back to {low} features later, with a lower objective",
        _verdict(holds),
    )


def _table(rows: Sequence[Row]) -> Table:
    lines = []
    for size in values_of(rows, "features"):
        means = {measure: _means(rows, size, measure) for measure in MEASURES}
        lines += [
            [str(size), NAMES[name], f"{means['objective'][name]:.4f}",
             f"{means['train_error'][name]:.2%}", f"{means['test_error'][name]:.2%}"]
            for name in NAMES
        ]  # fmt: skip
    header = ["features", "algorithm", "objective", "training error", "test error"]
    return Table(f"Means of {len(values_of(rows, 'seed'))} runs", header, lines)


EXPERIMENT = Experiment("crf-synthetic", "Linear-chain CRFs on synthetic sequences", parts, section)
