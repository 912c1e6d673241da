"""Settings: what a run is asked to do, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from forback.core.candidates import Candidates
from forback.selection.permutation import AUTO
from forback.selection.rules import BACKWARD, METHODS, Badness, ByDecrease, ByGradient
from forback.validation.scalars import check_choice, check_integer, check_k, check_number


@dataclass(frozen=True)
class Settings:
    """What `select` was asked, besides its candidates.

    Attributes
    ----------
    method, backward : str
        The names of what follows.
    rule : ByDecrease or ByGradient
        The goodness measure, with its threshold.
    is_auto : bool
        Whether the threshold is to be found by permutations.
    badness : callable or None
        The cost of a removal; None for the forward-only methods.
    ratio : float
    k, max_steps : int or None
    budget : float or None
    """

    method: str
    backward: str
    rule: ByDecrease | ByGradient
    is_auto: bool
    badness: Badness | None
    ratio: float
    k: int | None
    budget: float | None
    max_steps: int | None


def check_settings(
    candidates: Candidates,
    k: Any,
    method: Any,
    *,
    epsilon: Any,
    delta: Any,
    ratio: Any,
    backward: Any,
    budget: Any,
    max_steps: Any = None,
) -> Settings:
    """Return the settings of a run; ValueError or TypeError, naming the argument, otherwise."""
    rule, removes = METHODS[check_choice(method, "method", METHODS)]
    threshold = _check_threshold(rule, method, epsilon, delta)
    is_auto = threshold == AUTO
    ratio = check_number(ratio, "ratio", low=0.0, high=1.0)
    badness = BACKWARD[check_choice(backward, "backward", BACKWARD)]
    if budget is not None:
        budget = check_number(budget, "budget", low=0.0)
        _check_affordable(budget, candidates)
    return Settings(
        method=method,
        backward=backward,
        rule=rule() if is_auto else rule(threshold),
        is_auto=is_auto,
        badness=badness if removes else None,
        ratio=ratio,
        k=None if k is None else check_k(k, len(candidates.blocks)),
        budget=budget,
        max_steps=None if max_steps is None else check_integer(max_steps, "max_steps", low=0),
    )


def _check_threshold(rule: type, method: str, epsilon: Any, delta: Any) -> Any:
    """Return a number or "auto"; 0 where neither threshold is given."""
    name, threshold = ("delta", delta) if rule is ByDecrease else ("epsilon", epsilon)
    other, unused = ("epsilon", epsilon) if rule is ByDecrease else ("delta", delta)
    if unused is not None:
        kind = "gdt" if rule is ByDecrease else "obj"
        raise ValueError(
            f"{other}={unused!r} is the threshold of the {kind} methods; {method} stops by {name}"
        )
    if threshold is None:
        return 0.0
    if isinstance(threshold, str):
        if threshold != AUTO:
            raise ValueError(f'{name} must be a number or "{AUTO}", got {threshold!r}')
        return AUTO
    return check_number(threshold, name, low=0.0)


def _check_affordable(budget: float, candidates: Candidates) -> None:
    blocks, costs = candidates.blocks, candidates.group_costs
    prices = costs.extra(blocks.always, blocks)
    if len(prices) and budget < prices.min():
        cheapest = int(costs.group_of[blocks.firsts[int(prices.argmin())]])
        raise ValueError(
            f"budget={budget:g} buys nothing: the cheapest candidate, {costs.name(cheapest)}, "
            f"costs {prices.min():g}; raise budget or lower costs"
        )
