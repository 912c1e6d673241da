"""scikit-learn's orthogonal matching pursuit."""

from benchmark_utils.solver import ContestantSolver


class Solver(ContestantSolver):
    name = "sklearn-omp"
    contestant = "sklearn-omp"
