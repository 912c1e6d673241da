"""A whole path of forback: by the gradient, by the decrease, with mixed precision, or in JAX."""

from benchmark_utils.solver import ContestantSolver


class Solver(ContestantSolver):
    name = "forback"
    parameters = {"contestant": ["forback", "forback-obj", "forback-mixed", "forback-jax"]}
