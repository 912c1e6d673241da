"""Every subset of a small problem: how good answers are, and whether certificates are right."""

from itertools import combinations

import numpy as np

from forback import select
from forback.certificates import certificate
from forback.core.status import Status
from forback.report.tables import markdown_table
from forback.selection.rules import METHODS
from hostile.harness import Skip, pick
from reference.algorithm1 import minimise
from support.problems import LOSSES, make_problem
from verify.part import Part

#: What two ways to fit may differ by, relatively.
SAME = 1e-8


def check(rng):
    loss = pick(rng, LOSSES)
    p, n = int(rng.integers(4, 11)), pick(rng, [30, 60, 400])
    k = int(rng.integers(1, min(p, 5)))
    problem = make_problem(
        loss,
        pick(rng, ["gaussian", "gaussian", "correlated", "binary"]),
        int(rng.integers(2**31)),
        n=n,
        p=p,
        ridge=pick(rng, [0.0, 1e-2, 0.1, 1.0]),
        fit_intercept=bool(rng.integers(2)),
    )
    objective = problem.objective()
    paths = {method: select(objective, k, method) for method in METHODS}
    points = [point for path in paths.values() for point in path.points]
    if any(point.status is not Status.CONVERGED for point in points):
        raise Skip("there is no minimiser")
    if any(k not in path.sizes for path in paths.values()):
        raise Skip("fewer features will do")
    values = enumerate_subsets(problem.reference(), p, k)
    rows = []
    for method, path in paths.items():
        found = judge(objective, path, k, values)
        rows.append({"method": method, "loss": loss, **found})
    return rows


def enumerate_subsets(Q, p, k):
    """Subset -> the least Q, by the reference, for all subsets of k candidates."""
    always = list(range(p, Q.dim))
    start = minimise(Q, always, np.zeros(Q.dim))
    if Q.real:
        Q.unit = Q.value(start)
    return {
        subset: Q.value(minimise(Q, [*subset, *always], start))
        for subset in combinations(range(p), k)
    }


def judge(objective, path, k, values):
    """Compare an answer and its certificate with the values of all subsets."""
    point, best = path[k], min(values.values())
    own = frozenset(point.support[point.support < objective.n_candidates].tolist())
    slack = SAME * max(abs(point.value), abs(best)) + 10.0 * objective.resolution(point)
    assert abs(values[tuple(sorted(own))] - point.value) <= slack, "Q is not that of the reference"
    assert point.value >= best - slack, "better than the best"
    result = certificate(objective, path, k)
    assert result.holds, f"an honest run was doubted: {result}"
    excess = point.value - best
    assert excess <= result.gap + slack, f"the gap is {result.gap}, but {excess} is left"
    assert not result.optimal or excess <= slack, "called optimal, and is not"
    judge_swaps(result, own, values, slack)
    fall = path.start.value - best
    return {
        "reached": excess <= slack,
        "excess": max(excess, 0.0) / fall if fall > slack else 0.0,
        "optimal": result.optimal,
        "gap": np.isfinite(result.gap),
        "swap": result["no better swap"].passed,
    }


def judge_swaps(result, own, values, slack):
    """Compare what is said of swaps with all that there are."""
    gains = {
        subset: result.point.value - value
        for subset, value in values.items()
        if len(own.difference(subset)) == 1
    }
    best = max(gains.values())
    swaps, passed = result.swaps, result["no better swap"].passed
    if swaps.out is not None:
        swapped = tuple(sorted(own - {swaps.out} | {swaps.into}))
        named = gains[swapped]
        assert abs(swaps.gain - named) <= slack, f"a swap gains {named}, not {swaps.gain}"
    # Where no swap is named, all were ruled out by a bound, which is the gain.
    assert not swaps.complete or best <= swaps.gain + slack, f"a swap gains {best}: {swaps}"
    assert passed is not True or best <= slack, f"a swap that gains {best} was overlooked"
    assert passed is not False or best >= -slack, "a swap is called better, and is not"


def summarise(rows):
    """For each method: how often the best subset was reached, and how certificates helped."""
    lines = []
    for method in METHODS:
        own = [row for row in rows if row["method"] == method]
        if not own:
            continue
        best = [row for row in own if row["reached"]]
        missed = [row for row in own if not row["reached"]]
        noticed = sum(row["swap"] is False for row in missed)
        lines.append(
            [
                method,
                str(len(own)),
                f"{len(best) / len(own):.1%}",
                f"{np.mean([row['excess'] for row in own]):.2%}",
                f"{max(row['excess'] for row in own):.1%}",
                f"{sum(row['optimal'] for row in best)} of {len(best)}",
                f"{np.mean([row['gap'] for row in own]):.1%}",
                f"{noticed} of {len(missed)}",
            ]
        )
    header = [
        "method",
        "answers",
        "best subset reached",
        "mean excess",
        "largest",
        "best and proved so",
        "with a finite gap",
        "not best, and a better swap is named",
    ]
    note = (
        "Sizes 1 to 4 of up to 10 features. Excess: Q above that of the best subset, as a share of "
        "the fall from no features to the best subset.\n\n"
    )
    return note + markdown_table(header, lines), []


SUBSETS = Part(
    "subsets",
    "All subsets of k of up to 10 features, fitted by the reference: no answer is better than the "
    "best, and what certificates say (`optimal`, `gap`, swaps) is true.",
    20_000,
    check,
    summarise,
)
