"""Who takes part in `forback bench`: forback in three ways, and its peers.

A contestant is a name and a function that prepares a `Problem` for it and returns what is timed:
a callable without arguments that gives the columns chosen. Peers are asked for the same problem
(no intercept, no scaling of columns, their ridge converted), in their default precision.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from experiments import chains, networks
from experiments.choices import Choice, Run, importing, l1_option, require
from experiments.workloads import Problem, Unavailable
from forback.core.point import Point
from forback.core.types import Floats, Ints
from forback.objectives import GLM, ChainCRF, GaussianCovariance, LeastSquares, Logistic, from_jax
from forback.selection.select import select


@dataclass(frozen=True)
class Contestant:
    """A name and what prepares a problem for it."""

    name: str
    prepare: Callable[[Problem], Run]


def make_objective(problem: Problem, **options: Any) -> GLM | ChainCRF | GaussianCovariance:
    """What forback minimises, and what every support is judged by."""
    data = {"X": problem.X, "y": problem.y, "ridge": problem.ridge, **options}
    match problem.loss:
        case "squared":
            return LeastSquares(**data)
        case "logistic":
            return Logistic(**data)
        case "chain" | "chain-gradient":
            return ChainCRF(**data)
        case "graph":
            scaled = (problem.X - problem.X.mean(axis=0)) / problem.X.std(axis=0)
            return GaussianCovariance.from_data(scaled, ridge=problem.ridge)
        case other:
            return GLM(other, **data)


def refit(problem: Problem, support: Ints) -> Point:
    """The best that can be done with these candidates and what is always in."""
    objective = make_objective(problem)
    chosen = np.sort(support[support < objective.n_candidates])
    always = np.arange(objective.n_candidates, objective.dim)
    return replace(objective.minimise(np.concatenate([chosen, always])), size=len(chosen))


# forback ---------------------------------------------------------------------------------------


def forback_path(problem: Problem, method: str = "foba-gdt", **options: Any) -> Run:
    """A whole path to size k, the objective's construction included."""
    if options and problem.loss.startswith(("chain", "graph")):
        raise Unavailable(f"{problem.loss}s have no {' or '.join(options)}")
    if problem.loss == "chain-gradient":
        return chains.gradients(problem)
    if problem.loss == "chain":
        return chains.sensors(problem, method)
    if problem.loss == "graph":
        return networks.edges(problem, method)

    def run() -> Choice:
        path = select(make_objective(problem, **options), k=problem.k, method=method)
        additions = sum(step.action == "add" for step in path.steps)
        return Choice(path[problem.k].support, additions)

    return run


def forback_mixed(problem: Problem) -> Run:
    """The same with half-length numbers where that is safe, if this forback can do it."""
    if "precision" not in inspect.signature(LeastSquares).parameters:
        raise Unavailable("this version of forback has no precision='mixed'")
    return forback_path(problem, precision="mixed")


# Peers -----------------------------------------------------------------------------------------


def abess(problem: Problem, whole_path: bool) -> Run:
    """The splicing of abess at the sizes 1 .. k, each from the one before, or at k alone."""
    with importing("abess"):
        from abess.linear import LinearRegression, LogisticRegression, PoissonRegression
    estimators = {
        "squared": LinearRegression, "logistic": LogisticRegression, "poisson": PoissonRegression,
    }  # fmt: skip
    require(problem, list(estimators))
    estimator = estimators[problem.loss]
    # abess penalises by alpha |b|^2 the sum of the losses, where a squared loss counts twice.
    alpha = problem.ridge * len(problem.y) / (1 if problem.loss == "squared" else 2)
    sizes = range(1, problem.k + 1) if whole_path else [problem.k]

    def run() -> Choice:
        # ic_type="loss" keeps the largest size of a path; thread=0 is as many as OpenMP may use.
        model = estimator(
            support_size=sizes, alpha=alpha, fit_intercept=False, ic_type="loss", thread=0
        )
        model.fit(problem.X, problem.y, is_normal=False)
        return Choice(np.flatnonzero(model.coef_))

    return run


def forback_jax(problem: Problem) -> Run:
    """The same on the loss as one writes it in jax.numpy, compiled beforehand."""
    require(problem, ("squared", "logistic"), dense=True)
    with importing("jax"):
        objective = from_jax(_written_in_jax(problem), problem.X.shape[1])

    def run() -> Choice:
        path = select(objective, k=problem.k)
        additions = sum(step.action == "add" for step in path.steps)
        return Choice(path[problem.k].support, additions)

    return run


def skscope(problem: Problem, solver: str) -> Run:
    """A solver of skscope on a JAX objective compiled beforehand, in JAX's single precision."""
    require(problem, ("squared", "logistic"), dense=True)
    with importing("skscope"):
        import jax
        import skscope
    n, p = problem.X.shape
    loss = _written_in_jax(problem)
    value, gradient = jax.jit(loss), jax.jit(jax.grad(loss))

    def run() -> Choice:
        solved = getattr(skscope, solver)(p, problem.k, n)
        # skscope looks into the code of what it is given, so compiled functions need a coat. With
        # jit=True it would compile them anew at every call.
        solved.solve(lambda beta: value(beta), gradient=lambda beta: gradient(beta))
        return Choice(solved.get_support())

    return run


def _written_in_jax(problem: Problem) -> Callable[[Any], Any]:
    """The loss as its user would write it; of the data's or of single precision, as JAX is set."""
    import jax.numpy as jnp

    X, y = problem.X, np.where(problem.y > 0, 1.0, -1.0)

    def logistic(beta: Any) -> Any:
        losses = jnp.logaddexp(0.0, -y * (jnp.asarray(X) @ beta))
        return jnp.mean(losses) + 0.5 * problem.ridge * (beta @ beta)

    def squared(beta: Any) -> Any:
        losses = 0.5 * (problem.y - jnp.asarray(X) @ beta) ** 2
        return jnp.mean(losses) + 0.5 * problem.ridge * (beta @ beta)

    return logistic if problem.loss == "logistic" else squared


def sklearn_omp(problem: Problem) -> Run:
    """scikit-learn's orthogonal matching pursuit: greedy least squares without removals."""
    from sklearn.linear_model import OrthogonalMatchingPursuit

    require(problem, ("squared",), dense=True)

    def run() -> Choice:
        model = OrthogonalMatchingPursuit(n_nonzero_coefs=problem.k, fit_intercept=False)
        return Choice(np.flatnonzero(model.fit(problem.X, problem.y).coef_))

    return run


#: Each penalty of an L1 path over the one before.
GRID_STEP = 0.8


def l1_path(problem: Problem) -> Run:
    """scikit-learn's L1 path until k columns are in; of more than k, the largest coefficients."""
    require(problem, ("squared", "logistic"), dense=True)
    fit = _lasso if problem.loss == "squared" else _l1_logistic

    def run() -> Choice:
        coef = np.zeros(problem.X.shape[1])
        fits = fit(problem)
        while np.count_nonzero(coef) < problem.k:
            coef = next(fits)
        return Choice(np.sort(np.argsort(-np.abs(coef), kind="stable")[: problem.k]))

    return run


def _penalties(problem: Problem, residual: Floats) -> Iterator[float]:
    """From the largest penalty that admits anything, on the scale of a mean loss."""
    penalty = float(np.abs(problem.X.T @ residual).max()) / len(problem.y)
    while True:
        penalty *= GRID_STEP
        yield penalty


def _lasso(problem: Problem) -> Iterator[Floats]:
    from sklearn.linear_model import lasso_path

    X = np.asfortranarray(problem.X)  # once, instead of at every penalty
    coef = None
    for penalty in _penalties(problem, problem.y):
        _, coefs, _ = lasso_path(X, problem.y, alphas=[penalty], coef_init=coef)
        coef = coefs[:, 0]
        yield coef


def _l1_logistic(problem: Problem) -> Iterator[Floats]:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(solver="liblinear", fit_intercept=False, **l1_option())
    positive = problem.y > 0
    for penalty in _penalties(problem, np.where(positive, 0.5, -0.5)):
        model.set_params(C=1 / (penalty * len(positive)))
        yield model.fit(problem.X, positive).coef_[0]


CONTESTANTS: dict[str, Contestant] = {
    contestant.name: contestant
    for contestant in (
        Contestant("forback", forback_path),
        Contestant("forback-obj", partial(forback_path, method="foba-obj")),
        Contestant("forback-mixed", forback_mixed),
        Contestant("abess-path", partial(abess, whole_path=True)),
        Contestant("abess-k", partial(abess, whole_path=False)),
        Contestant("forback-jax", forback_jax),
        Contestant("skscope-omp", partial(skscope, solver="OMPSolver")),
        Contestant("skscope-foba", partial(skscope, solver="FobaSolver")),
        Contestant("sklearn-omp", sklearn_omp),
        Contestant("l1-path", l1_path),
        Contestant("crfsuite-iterations", chains.crfsuite_iterations),
        Contestant("crfsuite-l1", chains.crfsuite_l1),
        Contestant("glasso", networks.lasso),
        Contestant("glasso-tuned", networks.lasso_tuned),
        Contestant("glasso-cv", networks.lasso_cv),
    )
}


def entrants(names: Sequence[str]) -> list[Contestant]:
    """forback, then those named."""
    return [CONTESTANTS[name] for name in ("forback", *names)]
