"""The loss of a generalised linear model, by name or as an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def check_loss(loss: Any, known: Mapping[str, Any]) -> Any:
    """Return a loss, given by its name or as an object with the members of one.

    Parameters
    ----------
    loss : str or object
        What the user passed. An object must have the members that all known losses have, and a
        domain of y that is among theirs.
    known : mapping
        The losses that may be named.

    Returns
    -------
    object
        The known loss of that name, or the object.
    """
    if isinstance(loss, str):
        if loss not in known:
            raise ValueError(f"loss must be one of {sorted(known)}, got {loss!r}")
        return known[loss]
    members = sorted(set.intersection(*(set(dir(option)) for option in known.values())))
    public = [member for member in members if not member.startswith("_")]
    missing = [member for member in public if getattr(loss, member, None) is None]
    if isinstance(loss, type) or missing:
        raise TypeError(
            f"loss must be one of {sorted(known)} or a loss object, got {loss!r}"
            + (f", which lacks {', '.join(missing)}" if missing else ", a class: call it")
        )
    domains = {option.domain for option in known.values()}
    if loss.domain not in domains:
        raise ValueError(
            f"loss must be for a y that is {' or '.join(sorted(domains))}, got the {loss.name} "
            f"loss, whose y is {loss.domain}"
        )
    return loss
