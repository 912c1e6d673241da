"""Is it slower than it was? Base and head take turns, each time in a new process.

    python -m benchmarks.guard --base REV [--only NAME] [--pairs 15] [--limit 1.05]

The working tree is compared with the tree of a revision, checked out beside it. A process makes its
data, runs the job once to load kernels, then for a while; the mean of its faster half counts. Who
goes first alternates from pair to pair. A workload fails if the lower quartile of the ratios head /
base exceeds the limit: then three of four pairs say so. The check of sparse indices fails if it
takes longer than one product X'r.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, quantiles
from timeit import repeat

from benchmarks.guard.workloads import WORKLOADS

ROOT = Path(__file__).resolve().parents[2]

#: Seconds that a process spends on timing.
SPAN = 0.8

#: Everybody has so many threads.
THREADS = "2"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def measure(name: str, span: float = SPAN) -> float:
    """Time one job in this process, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run = WORKLOADS[name]()
        run()
        times: list[float] = []
        begin = time.perf_counter()
        while time.perf_counter() - begin < span or len(times) < 3:
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        os.chdir(ROOT)
    return fmean(sorted(times)[: (len(times) + 1) // 2])


def in_new_process(tree: Path, name: str, span: float = SPAN) -> float:
    """Measure a job under the forback of a tree."""
    threads = dict.fromkeys(THREAD_VARIABLES, THREADS)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.guard", "--measure", name, "--span", str(span)],
        env={**os.environ, **threads, "PYTHONPATH": str(tree / "src")},
        cwd=ROOT,
        text=True,
        capture_output=True,
    )
    if done.returncode:
        sys.exit(f"{name} failed under {tree}:\n{done.stderr}")
    return float(json.loads(done.stdout))


def compare(base: Path, name: str, pairs: int) -> list[float]:
    """Return the ratios head / base of so many pairs."""
    for tree in (base, ROOT):  # kernels are compiled, files are read
        in_new_process(tree, name)
    ratios = []
    for pair in range(pairs):
        order = (base, ROOT) if pair % 2 else (ROOT, base)
        seconds = {tree: in_new_process(tree, name) for tree in order}
        ratios.append(seconds[ROOT] / seconds[base])
    return ratios


def summary(ratios: Sequence[float]) -> list[float]:
    """Return the lower quartile, the median and the upper quartile."""
    return quantiles(ratios, n=4, method="inclusive")


def is_slower(quartiles: Sequence[float], limit: float) -> bool:
    """Tell whether three of four pairs exceed the limit."""
    return quartiles[0] > limit


def index_check(n: int = 50_000, p: int = 2_000) -> float:
    """Time the check of sparse indices over one product X'r: the least of many runs of each."""
    import numpy as np
    from scipy import sparse

    from forback.validation.containers import check_indices

    rng = np.random.default_rng(0)
    X = sparse.random(n, p, density=0.02, format="csc", random_state=rng)
    residual = rng.normal(size=n)
    transposed = X.T

    def least(job: Callable[[], object]) -> float:
        return min(repeat(job, number=1, repeat=20))

    return least(lambda: check_indices(X, "X")) / least(lambda: transposed @ residual)


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """Check a revision out into a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "base"
        git = ["git", "worktree"]
        add = [*git, "add", "--quiet", "--detach", str(tree), revision]
        subprocess.run(add, cwd=ROOT, check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], cwd=ROOT, check=True)


def main() -> None:
    """Compare, print and fail if something became slower."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guard")
    parser.add_argument("--base", help="the revision to compare with")
    parser.add_argument("--only", action="append", choices=list(WORKLOADS), metavar="NAME")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--limit", type=float, default=1.05)
    parser.add_argument("--list", action="store_true", help="list the workloads and stop")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--span", type=float, default=SPAN, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.list:
        print("\n".join(WORKLOADS))
        return
    if given.measure:
        print(json.dumps(measure(given.measure, given.span)))
        return
    if not given.base or given.pairs < 2:
        parser.error("--base must name a revision, and --pairs be at least 2")
    slower = []
    with checked_out(given.base) as base:
        print(f"{'workload':22} {'quartile':>8} {'median':>8} {'quartile':>8}")
        for name in given.only or WORKLOADS:
            quartiles = summary(compare(base, name, given.pairs))
            slow = is_slower(quartiles, given.limit)
            slower += [name] * slow
            figures = " ".join(f"{value:8.3f}" for value in quartiles)
            print(f"{name:22} {figures}{'  slower' if slow else ''}", flush=True)
    if not given.only:
        share = index_check()
        slower += ["index check"] * (share > 1.0)
        print(f"index check / product X'r {share:.2f}")
    sys.exit(f"slower: {', '.join(slower)}" if slower else 0)


if __name__ == "__main__":
    main()
