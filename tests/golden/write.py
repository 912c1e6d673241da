"""Write `paths.json` anew: `python -m golden.write` in the folder `tests`, only with a good reason.

A run with a near-tie is refused: rounding of another machine could decide it.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from forback import select
from forback.core.blocks import Blocks
from golden.runs import runs

FILE = Path(__file__).with_name("paths.json")

#: The best two scores of a step must be this far apart, relatively.
APART = 1e-6


def main() -> None:
    """Run everything and keep the steps."""
    found = {}
    for name, make, asked in runs():
        objective = make()
        path = select(objective, **asked)
        tie = nearest_tie(objective, path, asked)
        assert tie > APART, f"{name}: scores {tie:.2g} apart, choose another seed"
        found[name] = [[step.action, step.feature, step.value] for step in path.steps]
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(steps)}" for name, steps in found.items())
    FILE.write_text("{\n" + lines + "\n}\n", encoding="utf-8")
    steps = [step for run in found.values() for step in run]
    removals = sum(step[0] == "remove" for step in steps)
    print(f"{len(found)} runs, {len(steps)} steps, {removals} of them removals")


def nearest_tie(objective: Any, path: Any, asked: dict[str, Any]) -> float:
    """The smallest relative distance between the best two scores of a forward step."""
    owner, method = path.group_costs.group_of, asked.get("method", "foba-gdt")
    free = np.setdiff1d(np.arange(objective.n_candidates), path.start.support)
    if path.settings["by"] == "group":
        groups = [free[owner[free] == group] for group in np.unique(owner[free])]
        blocks = Blocks.of(groups, path.start.support)
    else:
        blocks = Blocks.singles(free, path.start.support)
    nearest = np.inf
    for point, step in zip(path.points, path.steps, strict=False):
        if step.action == "remove":
            continue
        if method.endswith("obj"):
            scores = objective.decrease_if_added(point, blocks).values
        else:
            scores = blocks.norms(objective.gradient(point))
        outside = ~np.isin(blocks.coordinates[blocks.pointer[:-1]], point.support)
        best, second = np.sort(scores[outside])[[-1, -2]]
        nearest = min(nearest, float((best - second) / best))
    return nearest


if __name__ == "__main__":
    main()
