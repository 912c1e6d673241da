"""`select`: the border and the driver of Algorithm 1."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

from forback.core.blocks import Blocks
from forback.core.costs import Ledger
from forback.core.objective import Objective, ObjectiveError
from forback.core.point import Point, Step
from forback.core.rule import Rule
from forback.core.units import Units, times_power
from forback.selection.loop import Stop, forward_backward
from forback.selection.path import Path
from forback.selection.permutation import AUTO, noise_threshold
from forback.selection.rules import (
    Badness,
    ByDecrease,
    ByGradient,
    WithinBudget,
    with_refit,
    without_refit,
)
from forback.validation.candidates import make_candidates
from forback.validation.scalars import (
    check_choice,
    check_integer,
    check_k,
    check_number,
    check_objective_members,
)

#: method -> (goodness rule, whether features may leave again)
METHODS: dict[str, tuple[type[ByDecrease] | type[ByGradient], bool]] = {
    "foba-gdt": (ByGradient, True),
    "foba-obj": (ByDecrease, True),
    "forward-gdt": (ByGradient, False),
    "forward-obj": (ByDecrease, False),
}
BACKWARD: dict[str, Badness] = {"coordinate": without_refit, "refit": with_refit}

Callback = Callable[[Step], Any]


def select(
    objective: Objective,
    k: int | None = None,
    method: str = "foba-gdt",
    *,
    epsilon: float | str | None = None,
    delta: float | str | None = None,
    ratio: float = 0.5,
    backward: str = "coordinate",
    groups: Any = None,
    by: str | None = None,
    always: Any = None,
    costs: Any = None,
    budget: float | None = None,
    max_steps: int | None = None,
    callback: Callback | None = None,
    random_state: Any = 0,
) -> Path:
    """Minimise Q over at most k features by the paper's Algorithm 1, literally.

    Parameters
    ----------
    objective : Objective
        What to minimise: `LeastSquares`, `Logistic`, `GLM`, `Multinomial`, `ChainCRF`,
        `GaussianCovariance`, what `from_function` and `from_jax` make, or anything with the members
        of `forback.protocols.Objective`.
    k : int, optional
        Stop when k features (or groups) are in. As every stop it is tested after the backward
        steps: if they removed something at size k, the run goes on. 0 fits what is always in.
    method : {"foba-gdt", "foba-obj", "forward-gdt", "forward-obj"}
        Goodness by gradient or by decrease of Q; with or without backward steps.
    epsilon : float or "auto", optional
        For the gdt methods: stop when the largest gradient outside is below it. "auto": a threshold
        that noise alone exceeds in one case of twenty, found by putting the rows of the response
        into other orders (for objectives that have one: `LeastSquares`, `Logistic`, `GLM`,
        `Multinomial`); ``path.settings["threshold"]`` tells it. Gradients have the units of their
        columns: where these differ, standardise, or take an obj method.
    delta : float or "auto", optional
        For the obj methods: stop when the largest decrease by one feature is below it.
    ratio : float in [0, 1)
        A feature leaves when that costs less than `ratio` times the recorded gain (paper: 1/2).
    backward : {"coordinate", "refit"}
        The cost of leaving, without refitting the others (the paper) or after it (Zhang's R
        package, which removes more).
    groups : sequence of labels or mapping, optional
        Which columns belong together, such as those of one sensor: one label per column, or a
        mapping column -> label or label -> columns (a list, a tuple, ...). Columns that a mapping
        leaves out, and all columns by default, are groups of their own. A pandas Series, here and
        below, is a mapping from its index.
    by : {"group", "feature"}, optional
        "group": the columns of a group enter and leave together, and `k` counts groups. "feature":
        coordinates enter and leave one by one and `k` counts them; a group is in use, and paid
        for, as soon as one of its coordinates is in, and the others are free from then on. By
        default "group" where `groups` is given, or where the objective has several coefficients
        for a column and says that they belong together, as `Multinomial` does; else "feature".
    always : sequence of columns or mask, optional
        Columns that are in from the start, never counted, never removed, never charged: a list, a
        mask or a mapping column -> bool. Where X is a frame, columns go by their labels; where they
        have none, or a number cannot be a label because all labels are text, by number.
    costs : sequence of numbers or mapping, optional
        What a group costs, once: one price per column, the same for all of a group, or a mapping
        group -> price, with a price for every group that is not always in. By default each costs 1.
    budget : float, optional
        The most that the groups in use may cost together; by default, their number. The run ends
        when the best candidate is unaffordable; together with `k` unaffordable candidates are
        passed over instead.
    max_steps : int, optional
        Stop after this many additions and removals.
    callback : callable, optional
        Called with each `Step`; a truthy answer stops the run.
    random_state : int, numpy.random.Generator or None
        For the orders of "auto"; nothing else is random.

    Returns
    -------
    Path
        Every step and, for every size visited, the first, last and best point.

    Notes
    -----
    Without `k`, `epsilon`, `delta` and `budget` the run ends when every feature is in or none
    lowers Q. Whatever ends a run early has the path so far as its attribute ``path``: Ctrl-C, a
    function of yours that turns out not to be convex (`ObjectiveError`), and any exception that
    your function or callback raises, which also gets a note that names the step. Before what is
    always in has been fitted that path is None.

    Examples
    --------
    >>> import numpy as np
    >>> from forback import select
    >>> from forback.objectives import LeastSquares
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> path = select(LeastSquares(X, 3 * X[:, 1] - 2 * X[:, 6]), k=2)
    >>> path[2].support.tolist()
    [1, 6]
    >>> path.coef(2).round(6)[[1, 6]].tolist()
    [3.0, -2.0]
    >>> path.stop_reason
    'size 2 reached'
    """
    check_objective_members(objective)
    simple, removes = _check_rule(method, epsilon, delta)
    ratio = check_number(ratio, "ratio", low=0.0, high=1.0)
    badness = BACKWARD[check_choice(backward, "backward", BACKWARD)]
    candidates = make_candidates(objective, groups=groups, by=by, always=always, costs=costs)
    blocks, ledger = candidates.blocks, candidates.ledger
    if budget is not None:
        budget = check_number(budget, "budget", low=0.0)
        _check_affordable(budget, blocks, ledger)
    k, max_steps = _check_limits(k, max_steps, callback, len(blocks))

    with _Keeping(None):
        objective, units = in_range(objective)
        start = replace(objective.minimise(blocks.always, None), size=0)
    simple = _in_units(simple, units)
    first = start if units is None else units.point(start)
    settings = {
        "method": method, "k": k, "threshold": simple.threshold, "ratio": ratio,
        "backward": backward, "by": candidates.by, "budget": budget, "max_steps": max_steps,
    }  # fmt: skip
    path = Path(first, objective.dim, ledger, settings, candidates.names)

    def run(rule: Rule, k: int | None) -> Generator[Step, None, str]:
        return forward_backward(
            objective, blocks, rule, start,
            stop=stop_at_size(k), badness=badness if removes else None, ratio=ratio,
        )  # fmt: skip

    if _is_auto(epsilon) or _is_auto(delta):
        with _Keeping(path):
            simple = _above_noise(simple, objective, blocks, start, run, random_state)
        settings["threshold"] = simple.threshold
    rule: Rule = simple
    if budget is not None:
        rule = WithinBudget(rule, ledger, budget, passing_over=k is not None)
    steps = run(rule, k) if units is None else units.steps(first, run(rule, k), simple.power)
    with _Keeping(path):
        path.stop_reason = _drive(steps, path, max_steps, callback)
    return path


class _Keeping:
    """Whatever ends a run early takes the path so far along, and says at which step it was.

    A class, because a generator would set the traceback of an exception, which may refuse that.
    """

    def __init__(self, path: Path | None, where: str | None = None) -> None:
        self.path, self.where = path, where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is not None:
            with contextlib.suppress(Exception):  # it may refuse any of this
                _add_path(error, self.path, self.where or _next_step(self.path))


def _next_step(path: Path | None) -> str:
    if path is None:
        return "before the first step, in the fit of what is always in"
    return f"at step {len(path.steps) + 1} (size {path.end.size} so far)"


def _add_path(error: BaseException, path: Path | None, where: str) -> None:
    if path is not None and getattr(error, "path", None) is path:
        return
    error.path = path  # type: ignore[attr-defined]
    if path is not None:
        stopped = isinstance(error, KeyboardInterrupt)
        path.stop_reason = "interrupted" if stopped else str(error) or type(error).__name__
    if isinstance(error, ObjectiveError):
        error.args = (f"{where}: {error}",)
    elif not isinstance(error, KeyboardInterrupt):
        kept = "there is no path yet" if path is None else "the path up to there is its `path`"
        error.add_note(f"Raised by `select` {where}; {kept}.")


def in_range(objective: Objective) -> tuple[Objective, Units | None]:
    """The objective in units in which nothing is too small to be squared, and these units."""
    other = getattr(objective, "rescaled", None)
    found = None if other is None else other()
    return (objective, None) if found is None else found


def _in_units(rule: ByDecrease | ByGradient, units: Units | None) -> ByDecrease | ByGradient:
    """The rule that means the same for an objective in other units."""
    if units is None:
        return rule
    if isinstance(rule, ByDecrease):
        return replace(rule, power=units.value)
    factors, power = units.slopes
    return replace(rule, power=power, factors=factors)


def stop_at_size(k: int | None) -> Stop:
    """The stop of a run that ends when k blocks are in."""

    def stop(point: Point) -> str | None:
        return f"size {k} reached" if k is not None and point.size >= k else None

    return stop


def _drive(
    steps: Generator[Step, None, str],
    path: Path,
    max_steps: int | None,
    callback: Callback | None,
) -> str:
    """Record steps until the generator ends or somebody stops it; return why."""
    while True:
        if max_steps is not None and len(path.steps) >= max_steps:
            return f"max_steps={max_steps} reached"
        try:
            step = next(steps)
        except StopIteration as end:
            return str(end.value)
        recorded = path.record(step)
        if callback is not None and _says_stop(callback, recorded, path):
            return "stopped by the callback"


def _says_stop(callback: Callback, step: Step, path: Path) -> bool:
    with _Keeping(path, f"by the callback after step {len(path.steps)} (size {path.end.size})"):
        answer = callback(step)
        try:
            return bool(answer)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"callback must answer with something true or false, got {answer!r}"
            ) from error


def _check_limits(
    k: Any, max_steps: Any, callback: Any, n_blocks: int
) -> tuple[int | None, int | None]:
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable with a Step; met {callback!r}")
    return (
        None if k is None else check_k(k, n_blocks),
        None if max_steps is None else check_integer(max_steps, "max_steps", low=0),
    )


def _is_auto(threshold: Any) -> bool:
    return isinstance(threshold, str) and threshold == AUTO


def _above_noise(
    rule: ByDecrease | ByGradient,
    objective: Objective,
    blocks: Blocks,
    start: Point,
    run: Callable[[Rule, int | None], Generator[Step, None, str]],
    random_state: Any,
) -> ByDecrease | ByGradient:
    """The rule with the threshold that the data suggest."""

    def above(threshold: float) -> ByDecrease | ByGradient:
        return replace(rule, threshold=times_power(threshold, rule.power))

    def pilot(threshold: float) -> Point:
        last = start
        for step in run(above(threshold), None):
            last = step.point
        return last

    return above(noise_threshold(objective, rule, blocks, start, pilot, random_state))


def _check_affordable(budget: float, blocks: Blocks, ledger: Ledger) -> None:
    prices = ledger.extra(blocks.always, blocks)
    if len(prices) and budget < prices.min():
        cheapest = ledger.name(int(ledger.owner[blocks[int(prices.argmin())][0]]))
        raise ValueError(
            f"budget={budget:g} buys nothing: the cheapest candidate, {cheapest}, costs "
            f"{prices.min():g}; raise budget or lower costs"
        )


def _check_rule(method: Any, epsilon: Any, delta: Any) -> tuple[ByDecrease | ByGradient, bool]:
    rule, removes = METHODS[check_choice(method, "method", METHODS)]
    if rule is ByGradient and delta is not None:
        raise ValueError(
            f"delta={delta!r} is the threshold of the obj methods; {method} stops by epsilon"
        )
    if rule is ByDecrease and epsilon is not None:
        raise ValueError(
            f"epsilon={epsilon!r} is the threshold of the gdt methods; {method} stops by delta"
        )
    name, threshold = ("delta", delta) if rule is ByDecrease else ("epsilon", epsilon)
    if threshold is None or _is_auto(threshold):
        return rule(), removes
    if isinstance(threshold, str):
        raise ValueError(f'{name} must be a number or "auto"; met {threshold!r}')
    return rule(check_number(threshold, name, low=0.0)), removes
