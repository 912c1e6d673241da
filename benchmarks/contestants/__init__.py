"""Everybody who takes part: one file for each library, found by looking into this folder.

A file has a list `CONTESTANTS`; each entry says how it prepares a problem and which workloads it
takes part in. Peers are asked for the same problem (no intercept, no scaling of columns, their
ridge converted), in their default precision. `benchmarks/README.md` shows how to add one.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from benchmarks.contract import Contestant


def discover() -> dict[str, Contestant]:
    """Find the contestants of all files of this folder, forback and its variants first."""
    found: list[Contestant] = []
    for file in iter_modules(__path__):
        found += import_module(f"{__name__}.{file.name}").CONTESTANTS
    found.sort(key=lambda contestant: not contestant.name.startswith("forback"))
    return {contestant.name: contestant for contestant in found}


def entrants(workload: str) -> list[Contestant]:
    """List those who take part in a workload; forback always does, and comes first."""
    everybody = discover()
    first = everybody.pop("forback")
    return [first, *(one for one in everybody.values() if workload in one.workloads)]
