"""Settings: what a run is asked to do, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from forback.core.candidates import Candidates
from forback.selection.budget import STOP, unaffordable_by_default
from forback.selection.permutation import AUTO
from forback.selection.rules import BACKWARD, METHODS, Badness, ByDecrease, ByGradient
from forback.validation.scalars import check_choice, check_integer, check_k, check_number


@dataclass(frozen=True)
class Settings:
    """What `select` was asked, besides its candidates.

    Attributes
    ----------
    method : str
    k : int or None
    threshold : float or "auto"
        "auto": it is to be found by permutations.
    ratio : float
    backward : str
    budget : float or None
    max_steps : int or None
    unaffordable : {"stop", "pass", "pass-until-spent"}
        What becomes of candidates that the budget is too small for.
    """

    method: str
    k: int | None
    threshold: float | str
    ratio: float
    backward: str
    budget: float | None
    max_steps: int | None = None
    unaffordable: str = STOP

    @property
    def rule(self) -> ByDecrease | ByGradient:
        """The goodness measure, with its threshold; with none yet where that is "auto"."""
        kind = METHODS[self.method][0]
        return kind() if isinstance(self.threshold, str) else kind(self.threshold)

    @property
    def badness(self) -> Badness | None:
        """The cost of a removal; None for the forward-only methods."""
        return BACKWARD[self.backward] if METHODS[self.method][1] else None


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
    unaffordable: str | None = None,
) -> Settings:
    """Return the settings of a run; ValueError or TypeError, naming the argument, otherwise.

    Without `unaffordable`, a run ends at a pick that it cannot afford or, with `k`, passes it over.
    """
    rule = METHODS[check_choice(method, "method", METHODS)][0]
    threshold = _check_threshold(rule, method, epsilon, delta)
    ratio = check_number(ratio, "ratio", low=0.0, high=1.0)
    check_choice(backward, "backward", BACKWARD)
    if budget is not None:
        budget = check_number(budget, "budget", low=0.0)
        _check_affordable(budget, candidates)
    k = None if k is None else check_k(k, len(candidates.blocks))
    if max_steps is not None:
        max_steps = check_integer(max_steps, "max_steps", low=0)
    if unaffordable is None:
        unaffordable = unaffordable_by_default(k)
    return Settings(method, k, threshold, ratio, backward, budget, max_steps, unaffordable)


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
