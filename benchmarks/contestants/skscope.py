"""skscope: greedy solvers for objectives written in JAX, among them the other FoBa in Python."""

from __future__ import annotations

from functools import partial

from benchmarks.contestants.forback import written_in_jax
from benchmarks.contract import Choice, Contestant, Problem, Run, importing, require


def skscope(problem: Problem, solver: str) -> Run:
    """Prepare a solver on an objective compiled beforehand, in JAX's single precision."""
    require(problem, ("squared", "logistic"), dense=True)
    with importing("skscope"):
        import jax
        import skscope
    n, p = problem.X.shape
    loss = written_in_jax(problem)
    value = jax.jit(loss)
    gradient = jax.jit(jax.grad(loss))
    solvers = {
        "omp": skscope.OMPSolver,
        "foba": skscope.FobaSolver,
        "scope": skscope.ScopeSolver,
    }
    make_solver = solvers[solver]

    def run() -> Choice:
        solved = make_solver(p, problem.k, n)
        # skscope looks into the code of what it is given, so compiled functions need a coat. With
        # jit=True it would compile them anew at every call.
        solved.solve(lambda beta: value(beta), gradient=lambda beta: gradient(beta))
        return Choice(solved.get_support())

    return run


CONTESTANTS = [
    Contestant(
        "skscope-omp",
        partial(skscope, solver="omp"),
        {"ls-gaussian": 1 / 40, "logistic-gaussian": 1 / 25, "paper-logistic": 1 / 15},
    ),
    Contestant("skscope-foba", partial(skscope, solver="foba"), {"jax-logistic": None}),
    Contestant("skscope-scope", partial(skscope, solver="scope")),
]
