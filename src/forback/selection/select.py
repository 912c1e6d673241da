"""`select`: the border and the driver of Algorithm 1."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

from forback import validation
from forback.candidates import make_blocks
from forback.protocols import Objective, Point, Rule, Step
from forback.selection.loop import Stop, forward_backward
from forback.selection.path import Path
from forback.selection.rules import Badness, ByDecrease, ByGradient, with_refit, without_refit

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
    epsilon: float | None = None,
    delta: float | None = None,
    ratio: float = 0.5,
    backward: str = "coordinate",
    groups: Any = None,
    always: Any = None,
    max_steps: int | None = None,
    callback: Callback | None = None,
) -> Path:
    """Minimise Q over at most k features by the paper's Algorithm 1, literally.

    Parameters
    ----------
    objective : Objective
        What to minimise: `LeastSquares`, `Logistic`, `GLM`, or anything with the members of
        `forback.protocols.Objective`.
    k : int, optional
        Stop when k features (or groups) are in. As every stop it is tested after the backward
        steps: if they removed something at size k, the run goes on. 0 fits what is always in.
    method : {"foba-gdt", "foba-obj", "forward-gdt", "forward-obj"}
        Goodness by gradient or by decrease of Q; with or without backward steps.
    epsilon : float, optional
        For the gdt methods: stop when the largest gradient outside is below it.
    delta : float, optional
        For the obj methods: stop when the largest decrease by one feature is below it.
    ratio : float in [0, 1)
        A feature leaves when that costs less than `ratio` times the recorded gain (paper: 1/2).
    backward : {"coordinate", "refit"}
        The cost of leaving, without refitting the others (the paper) or after it (Zhang's R
        package, which removes more).
    groups : sequence of labels or mapping, optional
        One label per column, or column -> label; columns of one label enter and leave together.
        Columns that a mapping leaves out are groups of their own; `k` counts groups.
    always : sequence of columns or mask, optional
        Columns (numbers, names, or column -> bool) that are in from the start, never counted,
        never removed.
    max_steps : int, optional
        Stop after this many additions and removals.
    callback : callable, optional
        Called with each `Step`; a truthy answer stops the run.

    Returns
    -------
    Path
        Every step and, for every size visited, the first, last and best point.

    Notes
    -----
    Without `k`, `epsilon` and `delta` the run ends when every feature is in or none lowers Q.
    Ctrl-C raises KeyboardInterrupt with the path so far as its attribute ``path``.

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
    validation.check_objective_members(objective)
    rule, removes = _check_rule(method, epsilon, delta)
    ratio = validation.check_number(ratio, "ratio", low=0.0, high=1.0)
    badness = BACKWARD[validation.check_choice(backward, "backward", BACKWARD)]
    names = getattr(objective, "feature_names", None)
    blocks, block_names = make_blocks(
        objective.n_candidates, objective.dim, groups=groups, always=always, names=names
    )
    if k is not None:
        k = validation.check_k(k, len(blocks))
    if max_steps is not None:
        max_steps = validation.check_integer(max_steps, "max_steps", low=0)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable with a Step; met {callback!r}")

    start = replace(objective.minimise(blocks.always, None), size=0)
    settings = {
        "method": method, "k": k, "threshold": rule.threshold, "ratio": ratio,
        "backward": backward, "max_steps": max_steps,
    }  # fmt: skip
    path = Path(start.without_cache(), objective.dim, settings, block_names)
    steps = forward_backward(
        objective, blocks, rule, start,
        stop=stop_at_size(k), badness=badness if removes else None, ratio=ratio,
    )  # fmt: skip
    try:
        path.stop_reason = _drive(steps, path, max_steps, callback)
    except KeyboardInterrupt as interrupt:
        path.stop_reason = "interrupted"
        interrupt.path = path  # type: ignore[attr-defined]
        raise
    return path


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
        path.record(step)
        if callback is not None and callback(step):
            return "stopped by the callback"


def _check_rule(method: Any, epsilon: Any, delta: Any) -> tuple[Rule, bool]:
    rule, removes = METHODS[validation.check_choice(method, "method", METHODS)]
    if rule is ByGradient and delta is not None:
        raise ValueError(
            f"delta={delta!r} is the threshold of the obj methods; {method} stops by epsilon"
        )
    if rule is ByDecrease and epsilon is not None:
        raise ValueError(
            f"epsilon={epsilon!r} is the threshold of the gdt methods; {method} stops by delta"
        )
    name, threshold = ("delta", delta) if rule is ByDecrease else ("epsilon", epsilon)
    if threshold is None:
        return rule(), removes
    return rule(validation.check_number(threshold, name, low=0.0)), removes
