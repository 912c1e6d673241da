"""A whole run: every workload, how time grows, and the files that tell of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contestants import entrants
from benchmarks.runner import output
from benchmarks.runner.growth import growth
from benchmarks.runner.machine import describe
from benchmarks.runner.race import Row, Rules, Say, race
from benchmarks.workloads import WORKLOADS, Workload
from forback.report.tables import format_table


@dataclass(frozen=True)
class Plan:
    """What to run: which workloads, at which size, by which rules, with the growth study or not."""

    workloads: Sequence[Workload]
    rules: Rules
    quick: bool = False
    with_growth: bool = True

    @property
    def command(self) -> str:
        """The command line that runs this plan."""
        words = ["python -m benchmarks"]
        if self.quick:
            words.append("--quick")
        if len(self.workloads) < len(WORKLOADS):
            words += [f"--only {workload.name}" for workload in self.workloads]
        words += [f"--rounds {self.rules.rounds}", f"--threads {self.rules.threads}"]
        if not self.with_growth:
            words.append("--no-growth")
        return " ".join(words)


def make_plan(only: Sequence[str], quick: bool, with_growth: bool, rules: Rules) -> Plan:
    """Look the workloads up: all of them, or only those named."""
    unknown = sorted(set(only) - set(WORKLOADS))
    if unknown:
        raise ValueError(f"no workload is called {unknown[0]!r}; there are {', '.join(WORKLOADS)}")
    chosen = [WORKLOADS[name] for name in dict.fromkeys(only or WORKLOADS)]
    if quick:
        chosen = [workload.quick() for workload in chosen]
    return Plan(chosen, rules, quick, with_growth)


def run(plan: Plan, folder: Path, say: Say) -> str:
    """Run a plan, write its files to `folder`, and return the text to print."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    n_aims = 0
    for number, workload in enumerate(plan.workloads, 1):
        say(f"[{number}/{len(plan.workloads)}] {workload.name}: {workload.size}")
        contestants = entrants(workload.name)
        aims = [] if plan.quick else workload.aims(contestants)
        rows += race(workload, contestants, aims, plan.rules, say)
        n_aims += len(aims)
        results = output.results_frame(rows)
        output.write_results(results, folder)  # each time, so that Ctrl-C leaves what there is
    tables = [output.results_table(results)]
    written = ["results.csv"]
    if plan.with_growth:
        say("how time grows")
        points, exponents = growth(plan.rules, plan.quick, say)
        tables.append(output.growth_table(exponents))
        written.append(output.write_growth(points, folder))
    say("what importing costs")
    facts = describe(plan.command, plan.rules)
    notes = output.notes(results, n_aims)
    written.append(output.write_markdown(facts, tables, notes, folder))
    written.append(output.write_figure(results, folder))
    texts = [f"{table.title}\n\n{format_table(table.header, table.rows)}" for table in tables]
    return "\n\n".join([*texts, "\n".join([*notes, f"Written: {', '.join(written)} in {folder}"])])


def listing() -> str:
    """Format the workloads and who takes part, for choosing among them."""
    header = ["workload", "loss", "size", "aims", "against"]
    rows = []
    for workload in WORKLOADS.values():
        contestants = entrants(workload.name)
        names = ", ".join(contestant.name for contestant in contestants[1:])
        n_aims = len(workload.aims(contestants))
        rows.append([workload.name, workload.loss, str(workload.size), str(n_aims), names])
    return format_table(header, rows)
