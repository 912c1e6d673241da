"""The paper's experiments again, and a few beside them; not part of the package."""

import benchmarks  # noqa: F401  (says what to install where pandas or matplotlib is missing)
