"""Public names that are loaded on first use, so that importing a package stays quick."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names live in other modules.

    Parameters
    ----------
    package : str
        The ``__name__`` of the package.
    homes : mapping
        The module of each name.

    Returns
    -------
    tuple of callables
    """

    def get(name: str) -> Any:
        if name in homes:
            return getattr(import_module(homes[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names
