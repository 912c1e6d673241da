"""python-crfsuite: linear-chain CRFs with the features of `ChainCRF`.

crfsuite has no budget: who wants few sensors fits it with an L1 penalty, again and again over a
grid of penalties. One such fit is timed here, and forback's whole path is compared with ten. The
experiment on sensors trains crfsuite by the same functions.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.contestants.forback import EVALUATIONS
from benchmarks.contract import Choice, Contestant, Problem, Run, importing, require

#: A fit of the L1 grid, and its penalty per step: one that leaves some sensors out.
L1_ITERATIONS = 100
L1_PENALTY = 5e-4


def crfsuite_iterations(problem: Problem) -> Run:
    """Prepare iterations of L-BFGS with an L2 penalty."""
    require(problem, ("chain-gradient",), dense=True)
    trainer = make_trainer(problem.X, _texts(problem))
    trainer.set_params({"c1": 0.0, "c2": 0.5 * problem.ridge * len(problem.y)})

    def run() -> Choice:
        train(trainer, EVALUATIONS)
        return Choice(None)

    return run


def crfsuite_l1(problem: Problem) -> Run:
    """Prepare one fit with an L1 penalty; it chooses the weights that it keeps."""
    require(problem, ("chain",), dense=True)
    trainer = make_trainer(problem.X, _texts(problem))
    trainer.set_params({"c1": L1_PENALTY * len(problem.y), "c2": 0.0})
    labels = np.unique(problem.y)

    def run() -> Choice:
        places = [
            int(attribute) * len(labels) + int(np.searchsorted(labels, float(label)))
            for attribute, label in train(trainer, L1_ITERATIONS).weights
            if attribute != BIAS
        ]
        return Choice(np.sort(np.array(places, dtype=np.intp)))

    return run


def _texts(problem: Problem) -> list[str]:
    return [f"{label:g}" for label in problem.y]


# crfsuite --------------------------------------------------------------------------------------

#: The attribute that every step has.
BIAS = "bias"

Items = list[list[list[str]]]

#: When crfsuite itself would stop: at this gradient, or this change of the loss over 10 iterations.
ITS_LIMITS = {"epsilon": 1e-5, "delta": 1e-5}


class Trained(NamedTuple):
    """What is left of a model of crfsuite."""

    weights: dict[tuple[str, str], float]  #: of (column or `BIAS`, label), the zero ones left out
    labels: list[str]  #: of the new steps
    iterations: int


def items_of(X: Any, lengths: Any = None) -> Items:
    """List for each step of binary sequences the columns that are on, and `BIAS`."""
    names = np.array([str(column) for column in range(X.shape[1])])
    steps = [[*names[row != 0], BIAS] for row in X]
    ends = np.cumsum([len(X)] if lengths is None else lengths)
    return [steps[begin:end] for begin, end in pairwise([0, *ends])]


def make_trainer(X: Any, labels: Sequence[str], lengths: Any = None) -> Any:
    """Make a trainer that holds binary sequences, with the features of `ChainCRF`."""
    with importing("python-crfsuite"):
        import pycrfsuite
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    begin = 0
    for items in items_of(X, lengths):
        trainer.append(items, list(labels[begin : begin + len(items)]))
        begin += len(items)
    trainer.set_params({"feature.possible_states": True, "feature.possible_transitions": True})
    return trainer


def train(
    trainer: Any, iterations: int, *, to_the_end: bool = True, new: Sequence[list[list[str]]] = ()
) -> Trained:
    """Train for so many iterations, or fewer if crfsuite finds that enough, and label `new`.

    The penalties are those of the trainer: ``c1 * sum |w| + c2 * sum w^2`` beside the negative
    log-likelihood of all steps.
    """
    import pycrfsuite

    limits = dict.fromkeys(ITS_LIMITS, 0.0) if to_the_end else ITS_LIMITS
    trainer.set_params({"max_iterations": iterations, **limits})
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "model")
        trainer.train(file)
        tagger = pycrfsuite.Tagger()
        tagger.open(file)
        found = {key: value for key, value in tagger.info().state_features.items() if value != 0.0}
        labels = [label for items in new for label in tagger.tag(items)]
        tagger.close()
    return Trained(found, labels, int(trainer.logparser.last_iteration["num"]))


CONTESTANTS = [
    Contestant("crfsuite-iterations", crfsuite_iterations, {"crf-gradient": 1 / 3}),
    Contestant("crfsuite-l1", crfsuite_l1, {"crf-sensors": 10.0}),
]
