"""python-crfsuite: a fit with an L1 penalty, or plain iterations, for the CRF workloads."""

from benchmark_utils.solver import ContestantSolver


class Solver(ContestantSolver):
    name = "crfsuite"
    parameters = {"contestant": ["crfsuite-l1", "crfsuite-iterations"]}
