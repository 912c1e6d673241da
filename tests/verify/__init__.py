"""The third tier of tests: everything that can be counted, by the thousand (`make verify`)."""

import os

# Cases are small and several run at once: threads of BLAS would wait for each other. This comes
# before NumPy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
