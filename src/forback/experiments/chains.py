"""Linear-chain CRFs in `forback bench`: forback, and python-crfsuite on the same features.

crfsuite has no budget: who wants few sensors fits it with an L1 penalty, again and again over a
grid of penalties. One such fit is timed here, and forback's whole path is compared with ten.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from forback.experiments.choices import Choice, Run, importing, require
from forback.experiments.workloads import Problem
from forback.objectives import ChainCRF
from forback.selection.select import select

#: So many evaluations of Q and its gradient are timed against as many iterations of L-BFGS.
ITERATIONS = 50

#: A fit of the L1 grid, and its penalty per step: one that leaves some sensors out.
L1_ITERATIONS = 100
L1_PENALTY = 5e-4


def gradients(problem: Problem) -> Run:
    """Evaluations of Q and its gradient, all weights free, each at another place."""
    objective = ChainCRF(problem.X, problem.y, ridge=problem.ridge)
    places = 0.1 * np.random.default_rng(0).normal(size=(ITERATIONS, objective.dim))

    def run() -> Choice:
        for beta in places:
            objective.value_and_gradient(beta)
        return Choice(None)

    return run


def sensors(problem: Problem, method: str) -> Run:
    """The paper's way to k sensors, the objective's construction included."""

    def run() -> Choice:
        objective = ChainCRF(problem.X, problem.y, ridge=problem.ridge)
        path = select(objective, method=method, by="feature", budget=problem.k)
        additions = sum(step.action == "add" for step in path.steps)
        return Choice(path.end.support, additions)

    return run


def crfsuite_iterations(problem: Problem) -> Run:
    """Iterations of L-BFGS with an L2 penalty."""
    require(problem, ("chain-gradient",), dense=True)
    trainer = _trainer(problem)
    trainer.set_params({"c1": 0.0, "c2": 0.5 * problem.ridge * len(problem.y)})

    def run() -> Choice:
        _train(trainer, ITERATIONS)
        return Choice(None)

    return run


def crfsuite_l1(problem: Problem) -> Run:
    """One fit with an L1 penalty; the weights it keeps."""
    require(problem, ("chain",), dense=True)
    trainer = _trainer(problem)
    trainer.set_params({"c1": L1_PENALTY * len(problem.y), "c2": 0.0})
    labels = np.unique(problem.y)

    def run() -> Choice:
        weights = _train(trainer, L1_ITERATIONS)
        places = [
            int(attribute) * len(labels) + int(np.searchsorted(labels, float(label)))
            for (attribute, label), weight in weights.items()
            if attribute != BIAS and weight != 0.0
        ]
        return Choice(np.sort(np.array(places, dtype=np.intp)))

    return run


BIAS = "bias"


def _trainer(problem: Problem) -> Any:
    """A trainer of crfsuite that has the problem's data, with the features of `ChainCRF`."""
    with importing("python-crfsuite"):
        import pycrfsuite
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    names = np.array([str(column) for column in range(problem.X.shape[1])])
    items = [[*names[row != 0.0], BIAS] for row in problem.X]
    trainer.append(items, [f"{label:g}" for label in problem.y])
    trainer.set_params({"feature.possible_states": True, "feature.possible_transitions": True})
    return trainer


def _train(trainer: Any, iterations: int) -> dict[tuple[str, str], float]:
    """The weights of observations after so many iterations."""
    import pycrfsuite

    # It must not stop before the iterations are done.
    trainer.set_params({"max_iterations": iterations, "epsilon": 0.0, "delta": 0.0})
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "model")
        trainer.train(file)
        tagger = pycrfsuite.Tagger()
        tagger.open(file)
        weights = dict(tagger.info().state_features)
        tagger.close()
    return weights
