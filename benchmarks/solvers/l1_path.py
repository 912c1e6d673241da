"""scikit-learn's L1 path until k columns are in."""

from benchmark_utils.solver import ContestantSolver


class Solver(ContestantSolver):
    name = "l1-path"
    contestant = "l1-path"
