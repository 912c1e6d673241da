"""`forback reproduce time-table`: how long the four algorithms take, beside the paper's table.

Table `tab_ct_syn` of the paper: logistic regression to the thresholds of `logistic-synthetic`,
and chain CRFs to a number of features. The construction of the objective is timed with the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import fmean, median, quantiles

from experiments.logistic_synthetic import METHODS, make_objective
from experiments.logistic_synthetic import run as run_logistic
from experiments.page import Claim, Section
from experiments.study import Experiment, Part, Row, mean_of, values_of, where
from forback.certificates import theory_thresholds
from forback.datasets import make_chain, make_logistic
from forback.objectives import ChainCRF
from forback.report.figures import Figure, Line, Panel
from forback.report.tables import Table
from forback.selection.path import Path
from forback.selection.select import select
from forback.solvers.threads import one_blas_thread

#: The paper's seconds: model -> sparsity -> one for each of METHODS, in that order.
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

#: From this ratio on one algorithm is much more efficient than another; up to that they are alike.
MUCH, ALIKE = 10.0, 1.25

#: What is timed: a run of a method, from the data to the path.
Run = Callable[[str], Path]


def parts(quick: bool) -> list[Part]:
    """A part for each line of the table."""
    wanted = {"logistic": (5, 14), "CRF": (10,)} if quick else PRINTED
    return [
        Part(f"{model}, {k} features", partial(study, model, k, 1 if quick else SEEDS[model]))
        for model, sizes in wanted.items()
        for k in sizes
    ]


def study(model: str, k: int, seeds: int) -> list[Row]:
    """Time every algorithm on data of so many seeds."""
    prepare = {"logistic": logistic, "CRF": crf}[model]
    rows: list[Row] = []
    for seed in range(seeds):
        run = prepare(k, seed)
        if seed == 0:  # kernels are compiled, or read from disk, by whoever needs them first
            for method in METHODS:
                run(method)
        for method in METHODS:
            seconds, path = timed(partial(run, method), REPEATS[model])
            added = [step.solved for step in path.steps if step.action == "add"]
            rows.append(
                {
                    "model": model, "sparsity": k, "seed": seed, "method": method,
                    "seconds": seconds, "steps": len(path.steps), "features": path.end.size,
                    "solved": fmean(added), "candidates": len(path.group_costs.group_of),
                }
            )  # fmt: skip
    return rows


def timed(run: Callable[[], Path], repeats: int) -> tuple[float, Path]:
    """The seconds of the quickest of a few runs, and what a run gives."""
    seconds = []
    # A run of a few milliseconds that waits for a second thread tells what else the cores do.
    with one_blas_thread():
        for _ in range(repeats):
            start = time.perf_counter()
            path = run()
            seconds.append(time.perf_counter() - start)
    return min(seconds), path


def logistic(k: int, seed: int) -> Run:
    """Runs to the thresholds of the appendix's first strategy."""
    data = make_logistic(k=k, random_state=seed)
    known = theory_thresholds(make_objective(data), data.support)
    return lambda method: run_logistic(make_objective(data), method, known)


def crf(k: int, seed: int) -> Run:
    """Runs to k weights of observations; transitions are always in."""
    chain = make_chain(WORDS, random_state=seed)

    def run(method: str) -> Path:
        objective = ChainCRF(chain.X, chain.y, chain.lengths)
        return select(objective, k=k, method=method, by="feature")

    return run


# What to tell --------------------------------------------------------------------------------


def section(rows: Sequence[Row]) -> Section:
    """The table, the paper's seconds beside ours, and what the ratios say."""
    models = values_of(rows, "model")
    counts = " and ".join(
        f"{len(values_of(where(rows, model=model), 'seed'))} of them ({model})" for model in models
    )
    solved = " and ".join(_solved(where(rows, model=model), model) for model in models)
    return Section(
        intro=(
            "Seconds from the data to the end of the run, the objective's construction included, "
            "after a warm-up and with BLAS on one thread: the quickest of a few runs on a data "
            f"set, and of that the median over data sets, {counts}. Logistic regression stops by "
            "the thresholds of the section on synthetic logistic regression, the CRF at a number "
            "of features. The machines are some 12 years apart: only ratios compare."
        ),
        comparison=(
            f"FoBa-obj takes {_range(rows, 'foba-obj', 'foba-gdt')} times as long as FoBa-gdt; in "
            f"the paper it is {_printed_range(rows, 'foba-obj', 'foba-gdt')}. The gap is smaller "
            "here because FoBa-obj need not solve a problem for every candidate: bounds on what it "
            f"can gain rule the others out. Per forward step it solves {solved}, and for a weight "
            "of a CRF the recursions are redone only where it counts."
        ),
        claims=_claims(rows),
        figures=[_figure(rows)],
        tables=[_table(rows), _ratios(rows)],
    )


def seconds_of(rows: Sequence[Row], model: str, k: int, method: str) -> float:
    """The median over seeds."""
    case = where(rows, model=model, sparsity=k, method=method)
    return float(median(row["seconds"] for row in case))


def printed(model: str, k: int, method: str) -> float:
    """The paper's seconds."""
    return PRINTED[model][k][list(METHODS).index(method)]


def _cases(rows: Sequence[Row]) -> list[tuple[str, int]]:
    return list(dict.fromkeys((row["model"], row["sparsity"]) for row in rows))


def _ours(rows: Sequence[Row], one: str, two: str, model: str = "") -> list[float]:
    """How many times as long one method takes as another, line by line of the table."""
    return [
        seconds_of(rows, *case, one) / seconds_of(rows, *case, two)
        for case in _cases(rows)
        if model in ("", case[0])
    ]


def _theirs(rows: Sequence[Row], one: str, two: str, model: str = "") -> list[float]:
    """The same in print."""
    return [
        printed(*case, one) / printed(*case, two) for case in _cases(rows) if model in ("", case[0])
    ]


def _span(values: Sequence[float]) -> str:
    low, high = _short(min(values)), _short(max(values))
    return low if low == high else f"{low} to {high}"


def _short(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10.0 else f"{ratio:.0f}"


def _range(rows: Sequence[Row], one: str, two: str, model: str = "") -> str:
    return _span(_ours(rows, one, two, model))


def _printed_range(rows: Sequence[Row], one: str, two: str, model: str = "") -> str:
    return _span(_theirs(rows, one, two, model))


def _solved(rows: Sequence[Row], model: str) -> str:
    case = where(rows, method="foba-obj")
    return f"{mean_of(case, 'solved'):.1f} of {case[0]['candidates']} ({model})"


def _claims(rows: Sequence[Row]) -> list[Claim]:
    claims = []
    for model in values_of(rows, "model"):
        ratios = [
            *_ours(rows, "foba-obj", "foba-gdt", model),
            *_ours(rows, "forward-obj", "forward-gdt", model),
        ]
        claims.append(
            Claim(
                f"FoBa-gdt and Forward-gdt are much more efficient than FoBa-obj and Forward-obj "
                f"({model})",
                f"{_range(rows, 'foba-obj', 'foba-gdt', model)} times as long with backward steps "
                f"(in print {_printed_range(rows, 'foba-obj', 'foba-gdt', model)}), "
                f"{_range(rows, 'forward-obj', 'forward-gdt', model)} without (in print "
                f"{_printed_range(rows, 'forward-obj', 'forward-gdt', model)}); much: from "
                f"{MUCH:g} on",
                True if min(ratios) >= MUCH else None if median(ratios) > ALIKE else False,
            )
        )
    if set(PRINTED) <= set(values_of(rows, "model")):
        claims.append(_claim_about_backward_steps(rows))
    return claims


def _claim_about_backward_steps(rows: Sequence[Row]) -> Claim:
    pair = "foba-obj", "forward-obj"
    dearer = median(_ours(rows, *pair, "CRF")) > ALIKE
    alike = 1.0 / ALIKE <= median(_ours(rows, *pair, "logistic")) <= ALIKE
    return Claim(
        "CRF: FoBa-obj is computationally more expensive than Forward-obj, while they are "
        "comparable in the logistic regression case",
        f"{_range(rows, *pair, 'CRF')} times as long (CRF; in print "
        f"{_printed_range(rows, *pair, 'CRF')}), {_range(rows, *pair, 'logistic')} (logistic; in "
        f"print {_printed_range(rows, *pair, 'logistic')}); comparable: medians up to {ALIKE:g}",
        True if dearer and alike else None if dearer or alike else False,
    )


def _figure(rows: Sequence[Row]) -> Figure:
    panels = []
    for model in values_of(rows, "model"):
        sizes = [k for name, k in _cases(rows) if name == model]
        theirs = [
            Line(name, sizes, [printed(model, k, method) for k in sizes], like=method)
            for method, name in METHODS.items()
        ]
        ours = [_line(where(rows, model=model), method) for method in METHODS]
        for lines, whose in ((theirs, "the paper"), (ours, "here")):
            title = f"{model}, {whose}"
            panels.append(Panel(title, "number of features S", "seconds", lines, log_y=True))
    caption = "Seconds, on machines 12 years apart; ours are medians, shaded by quartiles"
    return Figure("time-table", caption, panels)


def _line(rows: Sequence[Row], method: str) -> Line:
    model, sizes = rows[0]["model"], values_of(rows, "sparsity")
    middles = [seconds_of(rows, model, k, method) for k in sizes]
    low, high = [], []
    for k, middle in zip(sizes, middles, strict=True):
        sample = [row["seconds"] for row in where(rows, sparsity=k, method=method)]
        edges = quantiles(sample, n=4, method="inclusive") if len(sample) > 1 else [middle] * 3
        low.append(edges[0])
        high.append(edges[2])
    return Line(METHODS[method], sizes, middles, low, high, method)


def _table(rows: Sequence[Row]) -> Table:
    header = ["model", "S", *(f"{name}, {who}" for name in METHODS.values() for who in WHOSE)]
    lines = []
    for model, k in _cases(rows):
        pairs = [
            (printed(model, k, method), seconds_of(rows, model, k, method)) for method in METHODS
        ]
        lines.append([model, str(k), *(f"{value:.2e}" for pair in pairs for value in pair)])
    return Table("Seconds", header, lines)


WHOSE = ("paper", "here")


def _ratios(rows: Sequence[Row]) -> Table:
    pairs = (("foba-obj", "foba-gdt"), ("forward-obj", "forward-gdt"), ("foba-obj", "forward-obj"))
    names = [f"{METHODS[one]} : {METHODS[two]}" for one, two in pairs]
    header = ["model", "S", *(f"{name}, {who}" for name in names for who in WHOSE)]
    lines = []
    for model, k in _cases(rows):
        case = where(rows, model=model, sparsity=k)
        values = [find(case, *pair)[0] for pair in pairs for find in (_theirs, _ours)]
        lines.append([model, str(k), *map(_short, values)])
    return Table("Ratios", header, lines)


EXPERIMENT = Experiment("time-table", "Computation time of the four algorithms", parts, section)
