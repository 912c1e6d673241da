"""A whole path of forback, by the gradient rule or by the decrease rule."""

from benchmark_utils.solver import ContestantSolver


class Solver(ContestantSolver):
    name = "forback"
    parameters = {"contestant": ["forback", "forback-obj", "forback-mixed"]}
