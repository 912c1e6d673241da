"""What a timing was taken on: machine, versions, the cost of importing; no names, no paths."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

import numpy as np

import forback
from forback.experiments.race import Rules

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "abess", "skscope", "jax")


def describe(command: str, rules: Rules) -> dict[str, str]:
    """Everything a reader needs to judge a timing or to repeat it."""
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
    """The processor's model name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"


def operating_system() -> str:
    """Its name and version."""
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.platform(terse=True)


def installed() -> list[str]:
    """The packages that matter here, with their versions, where installed."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return found


def blas() -> str:
    """What NumPy was built against: products with X are only as fast as this."""
    built = np.show_config(mode="dicts")
    assert built is not None
    library = built.get("Build Dependencies", {}).get("blas", {})
    return f"{library.get('name', 'unknown')} {library.get('version', '')}".strip()


def import_cost(repeats: int) -> str:
    """What importing forback adds to importing what it needs, in new interpreters."""
    needed = "import numpy, scipy.sparse, scipy.linalg, sklearn"
    names = "from forback import select, FobaRegressor; from forback.objectives import GLM"
    statements = needed, f"{needed}; import forback", f"{needed}; {names}"
    turns = [[_import_seconds(statement) for statement in statements] for _ in range(repeats)]
    alone, bare, full = map(median, zip(*turns, strict=True))
    return (
        f"dependencies {alone:.2f} s; `import forback` adds {bare - alone:.2f} s, "
        f"all its names {full - alone:.2f} s"
    )


def _import_seconds(statement: str) -> float:
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(run.stdout)
