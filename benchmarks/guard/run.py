"""Is it slower than it was? Base and head take turns, each time in a new process.

    python benchmarks/guard/run.py --base REV [--only NAME] [--pairs 15] [--limit 1.05]

The working tree is compared with the tree of a revision, checked out beside it. A process makes its
data, runs the job once to load kernels, then for a while; the mean of its faster half counts. Who
goes first alternates from pair to pair. A workload fails if the lower quartile of the ratios head /
base exceeds the limit: then three of four pairs say so. The check of sparse indices fails if it
takes longer than one product X'r.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

#: Seconds that a process spends on timing.
SPAN = 0.8

#: Everybody has so many threads.
THREADS = "2"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def measure(name, span=SPAN):
    """The seconds of one job, in this process."""
    sys.path.insert(0, str(HERE))
    from workloads import WORKLOADS

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run = WORKLOADS[name]()
        run()
        times, begin = [], time.perf_counter()
        while time.perf_counter() - begin < span or len(times) < 3:
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        os.chdir(HERE)
    faster = sorted(times)[: (len(times) + 1) // 2]
    return sum(faster) / len(faster)


def in_new_process(tree, name, span=SPAN):
    """The same under the forback of a tree."""
    threads = dict.fromkeys(THREAD_VARIABLES, THREADS)
    environment = {**os.environ, **threads, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run(
        [sys.executable, __file__, "--measure", name, "--span", str(span)], env=environment,
        text=True, capture_output=True,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{name} failed under {tree}:\n{done.stderr}")
    return json.loads(done.stdout)


def compare(base, name, pairs):
    """Ratios head / base of so many pairs."""
    for tree in (base, ROOT):  # kernels are compiled, files are read
        in_new_process(tree, name)
    ratios = []
    for pair in range(pairs):
        order = (base, ROOT) if pair % 2 else (ROOT, base)
        seconds = {tree: in_new_process(tree, name) for tree in order}
        ratios.append(seconds[ROOT] / seconds[base])
    return ratios


def summary(ratios):
    """The lower quartile, the median and the upper quartile."""
    return quantiles(ratios, n=4, method="inclusive")


def is_slower(quartiles, limit):
    """Whether three of four pairs exceed the limit."""
    return quartiles[0] > limit


def index_check(n=50_000, p=2_000):
    """The check of sparse indices over one product X'r: the least of many, in this process."""
    import numpy as np
    from scipy import sparse

    from forback.validation.containers import check_indices

    rng = np.random.default_rng(0)
    X = sparse.random(n, p, density=0.02, format="csc", random_state=rng)
    residual, transposed = rng.normal(size=n), X.T

    def least(job):
        times = []
        for _ in range(20):
            start = time.perf_counter()
            job()
            times.append(time.perf_counter() - start)
        return min(times)

    return least(lambda: check_indices(X, "X")) / least(lambda: transposed @ residual)


def names():
    text = (HERE / "workloads.py").read_text()
    return [line[4:-3].replace("_", "-") for line in text.splitlines()
            if line.startswith("def ") and line.endswith("():")]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", help="the revision to compare with")
    parser.add_argument("--only", action="append", choices=names(), metavar="NAME")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--limit", type=float, default=1.05)
    parser.add_argument("--list", action="store_true", help="list the workloads and stop")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--span", type=float, default=SPAN, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.list:
        print("\n".join(names()))
        return
    if given.measure:
        print(json.dumps(measure(given.measure, given.span)))
        return
    if not given.base or given.pairs < 2:
        parser.error("--base must name a revision, and --pairs be at least 2")
    slower = []
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        subprocess.run(
            ["git", "worktree", "add", "--quiet", "--detach", str(base), given.base],
            cwd=ROOT, check=True,
        )  # fmt: skip
        try:
            print(f"{'workload':22} {'quartile':>8} {'median':>8} {'quartile':>8}")
            for name in given.only or names():
                quartiles = summary(compare(base, name, given.pairs))
                slow = is_slower(quartiles, given.limit)
                slower += [name] * slow
                figures = " ".join(f"{value:8.3f}" for value in quartiles)
                print(f"{name:22} {figures}{'  slower' if slow else ''}", flush=True)
        finally:
            subprocess.run(
                ["git", "worktree", "remove", "--force", str(base)], cwd=ROOT, check=True
            )
    if not given.only:
        share = index_check()
        slower += ["index check"] * (share > 1.0)
        print(f"index check / product X'r {share:.2f}")
    sys.exit(f"slower: {', '.join(slower)}" if slower else 0)


if __name__ == "__main__":
    main()
