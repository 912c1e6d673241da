"""forback: the few features that matter, for any smooth convex loss.

The public names are loaded on first use, so that importing the package stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forback.core.lazy import lazily

if TYPE_CHECKING:
    from forback.estimators.covariance import FobaCovariance
    from forback.estimators.crf import FobaCRF
    from forback.estimators.linear import FobaClassifier, FobaRegressor
    from forback.estimators.selector import FobaSelector
    from forback.selection.path import Path
    from forback.selection.refinement import Refinement
    from forback.selection.select import select

__version__ = "0.1.0"

__all__ = [
    "FobaCRF",
    "FobaClassifier",
    "FobaCovariance",
    "FobaRegressor",
    "FobaSelector",
    "Path",
    "Refinement",
    "select",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "FobaCRF": "forback.estimators.crf",
        "FobaClassifier": "forback.estimators.linear",
        "FobaCovariance": "forback.estimators.covariance",
        "FobaRegressor": "forback.estimators.linear",
        "FobaSelector": "forback.estimators.selector",
        "Path": "forback.selection.path",
        "Refinement": "forback.selection.refinement",
        "select": "forback.selection.select",
    },
)
