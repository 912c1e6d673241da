"""Array types that the whole package uses, and what the columns of a frame are called."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

#: What the columns of a frame are called: strings as a rule, but whatever it uses as labels.
ColumnLabels = tuple[Hashable, ...]
