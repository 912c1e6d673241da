"""forback: the few features that matter, for any smooth convex loss.

The public names are loaded on first use, so that importing the package stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forback.estimators.covariance import FobaCovariance
    from forback.estimators.linear import FobaClassifier, FobaRegressor, FobaSelector
    from forback.estimators.structured import FobaCRF
    from forback.selection.path import Path
    from forback.selection.select import select

__version__ = "0.1.0"

_HOMES = {
    "FobaCRF": "forback.estimators.structured",
    "FobaClassifier": "forback.estimators.linear",
    "FobaCovariance": "forback.estimators.covariance",
    "FobaRegressor": "forback.estimators.linear",
    "FobaSelector": "forback.estimators.linear",
    "Path": "forback.selection.path",
    "select": "forback.selection.select",
}

__all__ = [
    "FobaCRF",
    "FobaClassifier",
    "FobaCovariance",
    "FobaRegressor",
    "FobaSelector",
    "Path",
    "select",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
