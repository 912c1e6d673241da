"""Many cases, in processes of their own: `python -m hostile.fuzz --runs 10000`.

A process that dies, or does not answer, is a finding like any other. Findings are kept in
`hostile/found`, and tried again by every test run from then on.
"""

import argparse
import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from hostile import (  # noqa: F401  they register attacks
    answers,
    files,
    inputs,
    paths,
    scales,
    settings,
)
from hostile.harness import ATTACKS, LIMIT, Case, is_fine, run_case

HERE = Path(__file__).parent

PATIENCE = 2 * LIMIT


def work():
    """Answer cases, a line each, until there are no more."""
    for line in sys.stdin:
        case = Case(*json.loads(line))
        print(json.dumps(run_case(case)), flush=True)


class Worker:
    """A process that runs cases; a new one where it died."""

    def __init__(self):
        self._start()

    def _start(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hostile.fuzz", "--work"], text=True, cwd=HERE.parent,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, case):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps([case.attack, case.seed]) + "\n")
            self.process.stdin.flush()
        timer = threading.Timer(PATIENCE, self.process.kill)
        timer.start()
        answer = self.process.stdout.readline()
        timer.cancel()
        if answer:
            return json.loads(answer)
        last = self.process.stderr.read().strip().splitlines()[-1:]
        code = self.stop()
        self._start()
        return f"the process ended, or hung, with code {code}: {' '.join(last)}"

    def stop(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        code = self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
        return code


def fuzz(names, runs, seed, jobs):
    """Run so many cases; return what was tried (counts), skipped (reasons) and found, by attack."""
    todo, tried, skipped, found = queue.SimpleQueue(), Counter(), [], []
    for number in range(runs):
        todo.put(Case(names[number % len(names)], seed + number // len(names)))

    def serve():
        worker = Worker()
        while True:
            try:
                case = todo.get_nowait()
            except queue.Empty:
                break
            answer = worker.run(case)
            tried[case.attack] += 1
            if answer is not None and is_fine(answer):
                skipped.append((case, answer))
            elif answer is not None:
                found.append((case, answer))
                case.keep(answer)
                print(f"{case.attack}, seed {case.seed}: {answer}", flush=True)
        worker.stop()

    threads = [threading.Thread(target=serve) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tried, skipped, found


def main():
    parser = argparse.ArgumentParser(description="Random and hostile runs.")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append", choices=sorted(ATTACKS), default=None)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work()
        return
    start = time.monotonic()
    tried, skipped, found = fuzz(given.only or sorted(ATTACKS), given.runs, given.seed, given.jobs)
    width = max(map(len, tried))
    print(f"{'attack':{width}}  tried  skipped  found")
    for name in sorted(tried):
        without, wrong = (sum(case.attack == name for case, _ in some) for some in (skipped, found))
        print(f"{name:{width}}  {tried[name]:5}  {without:7}  {wrong:5}")
    total = f"{sum(tried.values())} tried, {len(skipped)} skipped, {len(found)} found"
    print(f"{total}, in {time.monotonic() - start:.0f} s")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
