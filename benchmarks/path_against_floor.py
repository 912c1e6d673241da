"""A whole foba-gdt path against the physical floor, in one run.

The floor of a dense path to size k is k passes over X, one product X.T @ r per forward step. Run:

    python benchmarks/path_against_floor.py

It prints the machine, the versions and, for each problem, the median over alternating repeats of
the floor, of the path, and of their ratio; then what importing forback adds to importing its
dependencies.
"""

from __future__ import annotations

import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import scipy
import sklearn

import forback
from forback import select
from forback.objectives import LeastSquares, Logistic

N, P, K, REPEATS = 1000, 10000, 50, 7
LIMITS = {"least squares": 3.0, "logistic": 6.0}


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def floor(X: np.ndarray, r: np.ndarray) -> None:
    for _ in range(K):
        X.T @ r


def problems() -> dict[str, Callable[[], object]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P))
    eta = X[:, :K] @ rng.normal(size=K)
    y = eta + rng.normal(size=N)
    labels = rng.random(N) < 1 / (1 + np.exp(-eta))
    return {
        "floor": lambda: floor(X, y),
        "least squares": lambda: select(LeastSquares(X, y), k=K),
        "logistic": lambda: select(Logistic(X, labels, ridge=1e-3), k=K),
    }


def import_seconds(statement: str) -> float:
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(run.stdout)


def main() -> None:
    print(
        f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}, "
        f"forback {forback.__version__}"
    )
    work = problems()
    times: dict[str, list[float]] = {name: [] for name in work}
    for run in work.values():
        run()  # warm-up
    for _ in range(REPEATS):
        for name, run in work.items():
            times[name].append(seconds(run))
    base = statistics.median(times["floor"])
    print(f"dense Gaussian n={N}, p={P}, k={K}; floor of {K} products: {base:.3f} s")
    for name, limit in LIMITS.items():
        ratio = statistics.median(t / f for t, f in zip(times[name], times["floor"], strict=True))
        median = statistics.median(times[name])
        print(f"  {name:14} {median:.3f} s, {ratio:.2f} x the floor (aim: at most {limit:g})")
    needed = "import numpy, scipy.sparse, scipy.linalg, sklearn"
    names = "from forback import select, FobaRegressor; from forback.objectives import GLM"
    extra = statistics.median(import_seconds(f"{needed}; {names}") for _ in range(5))
    alone = statistics.median(import_seconds(needed) for _ in range(5))
    bare = statistics.median(import_seconds(f"{needed}; import forback") for _ in range(5))
    print(
        f"import: dependencies {alone:.2f} s; `import forback` adds {bare - alone:.2f} s, "
        f"all its names {extra - alone:.2f} s"
    )


if __name__ == "__main__":
    main()
