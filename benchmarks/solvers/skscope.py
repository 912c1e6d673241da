"""The OMP and the FoBa of skscope, compiled beforehand."""

from benchmark_utils.solver import ContestantSolver


class Solver(ContestantSolver):
    name = "skscope"
    parameters = {"contestant": ["skscope-omp", "skscope-foba"]}
