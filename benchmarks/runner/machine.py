"""What a timing was taken on: machine, versions, the cost of importing; no names, no paths."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

import numpy as np

import forback
from benchmarks.runner.race import Rules

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "abess", "skscope", "jax", "python-crfsuite")


def describe(command: str, rules: Rules) -> dict[str, str]:
    """Collect what a reader needs to judge a timing or to repeat it."""
    return {
        "command": f"`{command}`",
        "date": datetime.now(UTC).date().isoformat(),
        "CPU": f"{cpu_model()}, {os.cpu_count()} cores",
        "operating system": f"{operating_system()}, {platform.machine()}",
        "Python": platform.python_version(),
        "packages": ", ".join([f"forback {forback.__version__}", *installed()]),
        "BLAS of NumPy": blas(),
        "threads": str(rules.threads),
        "rounds": f"{rules.rounds} after a warm-up; medians over them",
        "import": import_cost(rules.rounds),
    }


def cpu_model() -> str:
    """Return the processor's model name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"


def operating_system() -> str:
    """Return the name and version of the operating system."""
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.platform(terse=True)


def installed() -> list[str]:
    """List the packages that matter here with their versions, where installed."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return found


def blas() -> str:
    """Name the BLAS of NumPy: products with X are only as fast as this."""
    built = np.show_config(mode="dicts")
    assert built is not None
    library = built.get("Build Dependencies", {}).get("blas", {})
    return f"{library.get('name', 'unknown')} {library.get('version', '')}".strip()


#: What forback needs, forback itself, and all its names: imported one after the other.
IMPORTS = (
    "import numpy, scipy.sparse, scipy.linalg, sklearn",
    "import forback",
    "from forback import select, FobaRegressor; from forback.objectives import GLM",
)


def import_cost(repeats: int) -> str:
    """Time, in new interpreters, what importing forback adds to importing what it needs."""
    turns = [_import_seconds(IMPORTS) for _ in range(repeats)]
    needed, bare, names = (median(seconds) for seconds in zip(*turns, strict=True))
    return (
        f"dependencies {needed:.2f} s; `import forback` adds {bare:.3f} s, "
        f"all its names {bare + names:.3f} s"
    )


def _import_seconds(statements: Sequence[str]) -> list[float]:
    lines = ["from time import perf_counter", "times = [perf_counter()]"]
    for statement in statements:
        lines += [statement, "times.append(perf_counter())"]
    lines.append("print(*[end - start for start, end in zip(times, times[1:])])")
    code = "\n".join(lines)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [float(seconds) for seconds in run.stdout.split()]
