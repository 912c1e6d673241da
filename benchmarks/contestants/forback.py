"""forback: as it comes, refined, by FoBa-obj, in mixed precision, on a loss written in JAX."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.contract import (
    Choice,
    Contestant,
    Problem,
    Run,
    Unavailable,
    importing,
    make_objective,
    require,
)
from benchmarks.workloads import WORKLOADS
from forback import FobaCovariance, Path, select
from forback.objectives import ChainCRF, from_jax
from forback.selection.starts import DEEP, ROWS_PER_BLOCK, ROWS_PER_BLOCK_IF_NOT_QUADRATIC

#: So many evaluations of Q and its gradient are timed against as many iterations of L-BFGS.
EVALUATIONS = 50

#: Where the answer is refined, which takes more than a literal path.
REFINED = [name for name, one in WORKLOADS.items() if one.subject == "forback-swap"]


def forback_path(
    problem: Problem, method: str = "foba-gdt", refine: str | None = None, **options: Any
) -> Run:
    """Prepare a whole path to size k, the objective's construction included."""
    if options and problem.loss.startswith(("chain", "graph")):
        raise Unavailable(f"{problem.loss}s have no {' or '.join(options)}")
    match problem.loss:
        case "chain-gradient":
            return _gradients(problem)
        case "chain":
            return lambda: _chosen(_path_of_sensors(problem, method))
        case "graph":
            return lambda: _chosen(FobaCovariance(problem.k, method=method).fit(problem.X).path_)
    return lambda: _chosen(
        select(make_objective(problem, **options), k=problem.k, method=method, refine=refine),
        problem.k,
    )


def forback_deep(problem: Problem) -> Run:
    """Prepare a literal path to where the deepest start of refinement is; k of it count."""
    n_rows, p = problem.X.shape
    deepest = n_rows // (
        ROWS_PER_BLOCK if problem.loss == "squared" else ROWS_PER_BLOCK_IF_NOT_QUADRATIC
    )
    size = min(DEEP * problem.k, deepest, p)
    return lambda: _chosen(select(make_objective(problem), k=size), problem.k)


def _chosen(path: Path, k: int | None = None) -> Choice:
    """Return what a path chose in the end, or at size k, and by how many additions."""
    point = path.end if k is None else path[k]
    return Choice(point.support, sum(step.action == "add" for step in path.steps))


def _path_of_sensors(problem: Problem, method: str) -> Path:
    """Let weights enter one by one, as in the paper, until k sensors are in use."""
    return select(make_objective(problem), method=method, by="feature", budget=problem.k)


def _gradients(problem: Problem) -> Run:
    """Prepare evaluations of Q and its gradient, all weights free, each at another place."""
    objective = ChainCRF(problem.X, problem.y, ridge=problem.ridge)
    places = 0.1 * np.random.default_rng(0).normal(size=(EVALUATIONS, objective.dim))

    def run() -> Choice:
        for beta in places:
            objective.value_and_gradient(beta)
        return Choice(None)

    return run


def forback_jax(problem: Problem) -> Run:
    """Prepare a path on the loss as one writes it in jax.numpy, compiled beforehand."""
    require(problem, ("squared", "logistic"), dense=True)
    with importing("jax"):
        objective = from_jax(written_in_jax(problem), problem.X.shape[1])
    return lambda: _chosen(select(objective, k=problem.k), problem.k)


def written_in_jax(problem: Problem) -> Callable[[Any], Any]:
    """Write the loss as a user would; JAX's setting decides its precision."""
    import jax.numpy as jnp

    signs = np.where(problem.y > 0, 1.0, -1.0)

    def logistic(beta: Any) -> Any:
        losses = jnp.logaddexp(0.0, -signs * (jnp.asarray(problem.X) @ beta))
        return jnp.mean(losses) + 0.5 * problem.ridge * (beta @ beta)

    def squared(beta: Any) -> Any:
        losses = 0.5 * (problem.y - jnp.asarray(problem.X) @ beta) ** 2
        return jnp.mean(losses) + 0.5 * problem.ridge * (beta @ beta)

    return logistic if problem.loss == "logistic" else squared


CONTESTANTS = [
    Contestant("forback", forback_path),
    Contestant(
        "forback-obj",
        partial(forback_path, method="foba-obj"),
        {"obj-logistic": 2.5, "paper-logistic": 2.5},
        against="forback",
    ),
    Contestant("forback-swap", partial(forback_path, refine="swap"), dict.fromkeys(REFINED)),
    Contestant(
        "forback-deep",
        forback_deep,
        {name: 3.0 for name in REFINED if name.startswith(("refined-ls", "refined-logistic"))},
    ),
    Contestant("forback-search", partial(forback_path, refine="search")),
    Contestant(
        "forback-mixed",
        partial(forback_path, precision="mixed"),
        {"ls-gaussian": 0.8},
        against="floor",
    ),
    Contestant("forback-jax", forback_jax, {"jax-logistic": 1 / 10}, against="skscope-foba"),
]
