"""The loss of a generalised linear model, by name or as an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LOSS_MEMBERS = (
    "name", "domain", "link", "curvature", "newton_floor", "saturates",
    "value", "d1", "d2", "mean", "loglik",
)  # fmt: skip


def check_loss(loss: Any, known: Mapping[str, Any]) -> Any:
    """A loss by name, or an object that has the members of one and a domain among the known."""
    if isinstance(loss, str):
        if loss not in known:
            raise ValueError(f"loss must be one of {sorted(known)}; met {loss!r}")
        return known[loss]
    missing = [member for member in LOSS_MEMBERS if getattr(loss, member, None) is None]
    if isinstance(loss, type) or missing:
        raise TypeError(
            f"loss must be one of {sorted(known)} or a loss object; met {loss!r}"
            + (f", which lacks {', '.join(missing)}" if missing else ", a class: call it")
        )
    domains = {option.domain for option in known.values()}
    if loss.domain not in domains:
        raise ValueError(
            f"loss must be for a y that is {' or '.join(sorted(domains))}; met the {loss.name} "
            f"loss, whose y is {loss.domain}"
        )
    return loss
