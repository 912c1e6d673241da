"""Warnings that point at the user's own line, however deep in the package they are raised."""

from __future__ import annotations

import sys
import warnings

_PACKAGE = __name__.split(".")[0]


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line up the stack that does not belong to this package.

    Parameters
    ----------
    message : str
    category : type of Warning
    """
    level = 1
    frame = sys._getframe()
    while str(frame.f_globals.get("__name__")).split(".")[0] == _PACKAGE and frame.f_back:
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)
