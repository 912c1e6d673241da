"""The splicing of abess, along the sizes 1 .. k or at k alone."""

from benchmark_utils.solver import ContestantSolver


class Solver(ContestantSolver):
    name = "abess"
    parameters = {"contestant": ["abess-path", "abess-k"]}
