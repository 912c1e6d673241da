"""The OMP of skscope, compiled beforehand."""

from benchmark_utils.solver import ContestantSolver


class Solver(ContestantSolver):
    name = "skscope-omp"
    contestant = "skscope-omp"
