"""`forback reproduce logistic-synthetic`: the appendix's two classes, where the truth is known.

Figure `fig_LGT` of the paper: F-measure, estimation error, objective value and number of nonzeros
where each algorithm stops, against the sparsity of the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean, stdev
from typing import Any

import numpy as np

from experiments.page import CLAIMS, Claim, Section
from experiments.study import Experiment, Part, Row, mean_line, mean_of, values_of, where
from forback.certificates import Thresholds, theory_thresholds
from forback.core.types import Ints
from forback.datasets import TwoClasses, make_logistic
from forback.objectives import Logistic
from forback.report.figures import Figure, Line, Panel
from forback.report.tables import Table
from forback.selection.path import Path
from forback.selection.select import select

#: The algorithms as the paper writes them, in the order of its table.
METHODS = {
    "foba-gdt": "FoBa-gdt",
    "forward-gdt": "Forward-gdt",
    "foba-obj": "FoBa-obj",
    "forward-obj": "Forward-obj",
}
#: Those with backward steps, and the same without.
PAIRS = (("foba-gdt", "forward-gdt"), ("foba-obj", "forward-obj"))

SPARSITIES = tuple(range(5, 15))
TRIALS = 50

#: The paper's ridge, and what it is if it was added to the sum over 100 rows, not to the mean. The
#: second is a guess, made because the first does not give the paper's picture: other distances of
#: the means, columns of unit length and a lower threshold did not either.
RIDGE, BESIDE_SUM = 0.01, 0.0001

#: How quickly Q falls is judged by its mean over so many first sizes: the least sparsity.
FIRST = SPARSITIES[0]

#: Means this close, relatively, differ in a minor way.
MINOR = 0.05


def parts(quick: bool) -> list[Part]:
    """A part for each ridge and sparsity."""
    sparsities, trials = ((5, 14), 4) if quick else (SPARSITIES, TRIALS)
    return [
        Part(f"ridge {ridge:g}, sparsity {k}", partial(study, k, ridge, trials))
        for ridge in (RIDGE, BESIDE_SUM)
        for k in sparsities
    ]


def study(k: int, ridge: float, trials: int) -> list[Row]:
    """Let the four algorithms look for k features, each with the threshold made for it."""
    rows: list[Row] = []
    for seed in range(trials):
        data = make_logistic(k=k, random_state=seed)
        objective = make_objective(data, ridge)
        known = theory_thresholds(objective, data.support)
        bar = known.point.dense(objective.dim)
        for method in METHODS:
            path = run(objective, method, known)
            beta = path.end.dense(objective.dim)
            rows.append(
                {
                    "ridge": ridge, "sparsity": k, "seed": seed, "method": method,
                    "f_measure": short(f_measure(path.end.support, data.support)),
                    "error": short(np.linalg.norm(beta - bar) / np.linalg.norm(bar)),
                    "objective": short(path.end.value), "nonzeros": path.end.size,
                    "removed": sum(step.action == "remove" for step in path.steps),
                    "early": short(early(path)), "bar_objective": short(known.point.value),
                }
            )  # fmt: skip
    return rows


def short(value: Any) -> float:
    """Seven digits: who reads the file needs no more."""
    return float(f"{value:.7g}")


def make_objective(data: TwoClasses, ridge: float = RIDGE) -> Logistic:
    """The paper's Q: no intercept."""
    return Logistic(data.X, data.y, ridge=ridge)


def run(objective: Logistic, method: str, known: Thresholds) -> Path:
    """To the threshold of the appendix's first strategy, for which the truth must be known."""
    if method.endswith("gdt"):
        return select(objective, method=method, epsilon=known.practical_epsilon)
    return select(objective, method=method, delta=known.practical_delta)


def f_measure(found: Ints, true: Ints) -> float:
    """The paper's 2 |F and F bar| / (|F| + |F bar|)."""
    return 2.0 * len(np.intersect1d(found, true)) / (len(found) + len(true))


def early(path: Path) -> float:
    """The mean of Q when the first sizes are first reached; the last Q where a run ended before."""
    sizes = set(path.sizes)
    points = [path.first(size) if size in sizes else path.end for size in range(1, FIRST + 1)]
    return fmean(point.value for point in points)


# What to tell --------------------------------------------------------------------------------


def section(rows: Sequence[Row]) -> Section:
    """The four panels of the figure, and the five things that the paper sees in them."""
    ridges = values_of(rows, "ridge")
    main = where(rows, ridge=ridges[0])
    return Section(
        intro=(
            "Two Gaussian classes of 50 rows and 500 columns, means at a distance of 5 from the "
            f"origin, ridge {ridges[0]:g}; {len(values_of(main, 'seed'))} trials for each sparsity."
            " bar beta is the minimiser on the true support; each algorithm stops by the threshold "
            "that the appendix makes of it (its first strategy), raised by a millionth because the "
            "stop is strict. Claims are judged by means over all sparsities and trials; one "
            "algorithm is ahead of another if the mean of their paired differences exceeds two "
            f"standard errors. How quickly Q falls is judged by its mean over the first {FIRST} "
            "sizes."
        ),
        comparison=" ".join(_compare(where(rows, ridge=ridge)) for ridge in ridges),
        claims=_claims(main),
        figures=[_figure(where(rows, ridge=ridge)) for ridge in ridges],
        tables=[
            *(_claims_again(where(rows, ridge=ridge)) for ridge in ridges[1:]),
            *(_table(where(rows, ridge=ridge)) for ridge in ridges),
        ],
    )


def _compare(rows: Sequence[Row]) -> str:
    """How often backward steps are taken, and what comes of it."""
    moved, runs = _moved(rows)
    agreed = sum(claim.agrees is True for claim in _claims(rows))
    ridge = rows[0]["ridge"]
    setting = (
        "At the paper's settings"
        if ridge == RIDGE
        else f"With a ridge of {ridge:g}, which is the paper's if it was added to the sum of the "
        "losses instead of their mean (a guess, picked after trying several other settings),"
    )
    nothing = ", so that FoBa and forward hardly ever differ" if 20 * moved <= runs else ""
    return (
        f"{setting} a backward step is taken in {moved} of {runs} FoBa runs{nothing}; {agreed} of "
        "the 5 claims hold."
    )


def _moved(rows: Sequence[Row]) -> tuple[int, int]:
    """In how many FoBa runs something was removed, and of how many."""
    runs = [row for row in rows if row["method"] in dict(PAIRS)]
    return sum(row["removed"] > 0 for row in runs), len(runs)


def ahead(rows: Sequence[Row], method: str, other: str, column: str, sign: float = 1.0) -> bool:
    """Whether a method has more of a column (less, for a sign of -1), beyond chance."""
    pairs = zip(where(rows, method=method), where(rows, method=other), strict=True)
    gaps = [sign * (one[column] - two[column]) for one, two in pairs]
    spread = stdev(gaps) / len(gaps) ** 0.5 if len(gaps) > 1 else 0.0
    return fmean(gaps) > 2.0 * spread


def _verdict(*answers: bool) -> bool | None:
    """Yes if all are, no if none is, else partly."""
    return True if all(answers) else None if any(answers) else False


def _against(rows: Sequence[Row], column: str, form: str) -> str:
    """The means of FoBa against those of the forward algorithms."""
    return ", ".join(
        f"{METHODS[one]} {_mean(rows, one, column):{form}} against "
        f"{_mean(rows, two, column):{form}} of {METHODS[two]}"
        for one, two in PAIRS
    )


def _mean(rows: Sequence[Row], method: str, column: str) -> float:
    return mean_of(where(rows, method=method), column)


def _close(rows: Sequence[Row], one: str, two: str, column: str) -> bool:
    first, second = _mean(rows, one, column), _mean(rows, two, column)
    return abs(first - second) <= MINOR * max(abs(first), abs(second))


def _claims(rows: Sequence[Row]) -> list[Claim]:
    """The bullet points of the appendix, in its order."""
    gdt, obj = "foba-gdt", "foba-obj"
    likeness = [_close(rows, gdt, obj, name) for name in ("f_measure", "objective", "nonzeros")]
    return [
        Claim(
            "The FoBa algorithms outperform the forward algorithms overall, especially in "
            "F-measure",
            f"mean F-measure: {_against(rows, 'f_measure', '.4f')}",
            _verdict(*(ahead(rows, *pair, "f_measure") for pair in PAIRS)),
        ),
        Claim(
            "The FoBa algorithms are likely to yield sparser solutions than the forward algorithms",
            f"mean number of nonzeros: {_against(rows, 'nonzeros', '.3f')}",
            _verdict(*(ahead(rows, *pair, "nonzeros", -1.0) for pair in PAIRS)),
        ),
        Claim(
            "There are minor differences in estimation errors and objective values between the "
            "FoBa algorithms and the forward algorithms",
            f"mean error: {_against(rows, 'error', '.4f')}; mean objective: "
            f"{_against(rows, 'objective', '.6f')} (minor: up to {MINOR:.0%})",
            _verdict(*(_close(rows, *p, name) for p in PAIRS for name in ("error", "objective"))),
        ),
        Claim(
            "FoBa-obj and FoBa-gdt perform similarly. The former gives better objective values and "
            "the latter is better in estimation error",
            f"mean F-measure {_mean(rows, obj, 'f_measure'):.3f} (obj) and "
            f"{_mean(rows, gdt, 'f_measure'):.3f} (gdt), objective "
            f"{_mean(rows, obj, 'objective'):.6f} and {_mean(rows, gdt, 'objective'):.6f}, error "
            f"{_mean(rows, obj, 'error'):.4f} and {_mean(rows, gdt, 'error'):.4f} (similar: up to "
            f"{MINOR:.0%} in F-measure, objective and nonzeros)",
            _verdict(
                all(likeness),
                ahead(rows, obj, gdt, "objective", -1.0),
                ahead(rows, gdt, obj, "error", -1.0),
            ),
        ),
        Claim(
            "FoBa-obj and Forward-obj decrease objective values more quickly than FoBa-gdt and "
            "Forward-gdt",
            f"mean objective over the first {FIRST} sizes: "
            + ", ".join(f"{name} {_mean(rows, key, 'early'):.5f}" for key, name in METHODS.items()),
            _verdict(
                ahead(rows, obj, gdt, "early", -1.0),
                ahead(rows, "forward-obj", "forward-gdt", "early", -1.0),
            ),
        ),
    ]


PANELS = {
    "f_measure": "F-measure", "error": "estimation error", "objective": "objective value",
    "nonzeros": "number of nonzeros",
}  # fmt: skip


def _figure(rows: Sequence[Row]) -> Figure:
    panels = [
        Panel(
            title, "sparsity of the truth", title,
            [_line(where(rows, method=method), column) for method in METHODS],
        )
        for column, title in PANELS.items()
    ]  # fmt: skip
    ridge = rows[0]["ridge"]
    name = "logistic-synthetic" if ridge == RIDGE else "logistic-synthetic-beside-sum"
    caption = f"Where the algorithms stop, ridge {ridge:g}: means, FoBa's with two standard errors"
    return Figure(name, caption, panels)


def _line(rows: Sequence[Row], column: str) -> Line:
    method = rows[0]["method"]
    line = mean_line(METHODS[method], rows, "sparsity", column, method)
    # A forward algorithm's line is often that of its FoBa: one band will do for the two.
    return line if method in dict(PAIRS) else replace(line, low=None, high=None)


def _claims_again(rows: Sequence[Row]) -> Table:
    lines = [[claim.said, claim.found, claim.verdict] for claim in _claims(rows)]
    return Table(f"The same claims, ridge {rows[0]['ridge']:g}", CLAIMS, lines)


def _table(rows: Sequence[Row]) -> Table:
    header = ["sparsity", "algorithm", *PANELS.values(), "Q(bar beta)", "removals per run"]
    lines = []
    for k in values_of(rows, "sparsity"):
        for method, name in METHODS.items():
            case = where(rows, sparsity=k, method=method)
            forms = {"f_measure": ".3f", "error": ".4f", "objective": ".6f", "nonzeros": ".2f",
                     "bar_objective": ".6f", "removed": ".2f"}  # fmt: skip
            lines.append(
                [str(k), name, *(f"{mean_of(case, key):{form}}" for key, form in forms.items())]
            )
    trials = len(values_of(rows, "seed"))
    return Table(f"Means of {trials} trials, ridge {rows[0]['ridge']:g}", header, lines)


EXPERIMENT = Experiment(
    "logistic-synthetic", "Synthetic logistic regression: four algorithms", parts, section
)
