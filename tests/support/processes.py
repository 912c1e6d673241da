"""Code that runs in a new interpreter."""

import os
import subprocess
import sys
from pathlib import Path

import forback


def in_another_process(code, **environment):
    """What the code prints, with warnings as errors."""
    source = str(Path(forback.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "PYTHONPATH": source, **environment},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
