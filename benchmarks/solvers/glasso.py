"""scikit-learn's graphical lasso, as it comes, at an accuracy where it converges, or by CV."""

from benchmark_utils.solver import ContestantSolver


class Solver(ContestantSolver):
    name = "glasso"
    parameters = {"contestant": ["glasso", "glasso-tuned", "glasso-cv"]}
