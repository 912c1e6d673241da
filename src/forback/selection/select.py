"""`select`: Algorithm 1 for any objective, with everything a user may ask of it."""

from __future__ import annotations

from typing import Any

from forback.core.adapter import as_objective
from forback.core.objective import Objective
from forback.selection.path import Path
from forback.selection.refinement import Refinement, check_refine
from forback.selection.run import Callback, Selection
from forback.selection.settings import check_settings
from forback.selection.warm_start import check_start
from forback.validation.candidates import make_candidates


def select(
    objective: Objective,
    k: int | None = None,
    method: str = "foba-gdt",
    *,
    epsilon: float | str | None = None,
    delta: float | str | None = None,
    ratio: float = 0.5,
    backward: str = "coordinate",
    groups: Any = None,
    by: str | None = None,
    always: Any = None,
    costs: Any = None,
    budget: float | None = None,
    max_steps: int | None = None,
    start: Any = None,
    refine: str | Refinement | None = None,
    callback: Callback | None = None,
    random_state: Any = 0,
) -> Path:
    """Minimise Q over at most k features by the paper's Algorithm 1, literally.

    Parameters
    ----------
    objective : Objective
        What to minimise: `LeastSquares`, `Logistic`, `GLM`, `Multinomial`, `ChainCRF`,
        `GaussianCovariance`, what `from_function` and `from_jax` make, or anything with the members
        of `forback.protocols.Objective`.
    k : int, optional
        Stop when k features (or groups) are in. Like every stopping rule, this is tested
        after the backward steps: if they removed something at size k, the run goes on. 0 fits what
        is always in.
    method : {"foba-gdt", "foba-obj", "forward-gdt", "forward-obj"}
        Goodness by gradient or by decrease of Q; with or without backward steps.
    epsilon : float or "auto", optional
        For the gdt methods: stop when the largest gradient outside is below it. "auto": a threshold
        that noise alone exceeds in one case of twenty, found by putting the rows of the response
        into other orders (for objectives that have one: `LeastSquares`, `Logistic`, `GLM`,
        `Multinomial`); ``path.settings["threshold"]`` stores it. Gradients have the units of their
        columns: where these differ, standardise, or take an obj method.
    delta : float or "auto", optional
        For the obj methods: stop when the largest decrease by one feature is below it.
    ratio : float in [0, 1)
        A feature leaves when that costs less than `ratio` times the recorded gain (paper: 1/2).
    backward : {"coordinate", "refit"}
        The cost of leaving, without refitting the others (the paper) or after it (Zhang's R
        package, which removes more).
    groups : sequence of labels or mapping, optional
        Which columns belong together, such as those of one sensor: one label per column, or a
        mapping column -> label or label -> columns (a list, a tuple, ...). Columns that a mapping
        leaves out, and all columns by default, are groups of their own. A pandas Series, here and
        below, is a mapping from its index.
    by : {"group", "feature"}, optional
        "group": the columns of a group enter and leave together, and `k` counts groups. "feature":
        coordinates enter and leave one by one and `k` counts them; a group is in use, and paid
        for, as soon as one of its coordinates is in, and the others are free from then on. By
        default "group" where `groups` is given, or where the objective has several coefficients
        for a column and says that they belong together, as `Multinomial` does; else "feature".
    always : sequence of columns or mask, optional
        Columns that are in from the start, never counted, never removed, never charged: a list, a
        mask or a mapping column -> bool. Where X is a frame, columns go by their labels; where they
        have none, or a number cannot be a label because all labels are text, by number.
    costs : sequence of numbers or mapping, optional
        What a group costs, once: one price per column, the same for all of a group, or a mapping
        group -> price, with a price for every group that is not always in. By default each costs 1.
    budget : float, optional
        The most that the groups in use may cost together; by default, their number. The run ends
        when the best candidate is unaffordable; together with `k` unaffordable candidates are
        passed over instead.
    max_steps : int, optional
        Stop after this many additions and removals.
    start : columns, mask, Point or Path, optional
        Where to begin instead of nowhere: columns (an earlier answer, what experts say, another
        package's choice), given as in `always`, or a point such as ``path[5]``. All of them come in
        by the first step, and the run goes on from there; they may leave again, down to one less
        than they were. A `Path` of the same candidates and settings is continued
        as if it had never ended.
    refine : {None, "swap", "search"} or Refinement
        What follows the literal run, so that its answer, of the size at which it ended, gets
        better: ``path.refined(k)``, and ``path[k]`` is the lowest of all. None: nothing, which is
        the paper. "swap": exchanges of one feature for another, from several starts, until none
        helps. "search": exchanges of two, and seeded kicks, after that; `Refinement` has its
        knobs. A run that was cut short is not refined.
    callback : callable, optional
        Called with each `Step`; a truthy answer stops the run, or its refinement.
    random_state : int, numpy.random.Generator or None
        Seed of the permutations of "auto" and of the kicks of "search"; nothing else is random.

    Returns
    -------
    Path
        Every step and, for every size visited, the first, last and best point.

    Notes
    -----
    Without `k`, `epsilon`, `delta` and `budget` the run ends when every feature is in or none
    lowers Q. Whatever ends a run early has the path so far as its attribute ``path``: Ctrl-C, a
    function of yours that turns out not to be convex (`ObjectiveError`), and any exception that
    your function or callback raises, which also gets a note that names the step. Before what is
    always in has been fitted that path is None.

    Examples
    --------
    >>> import numpy as np
    >>> from forback import select
    >>> from forback.objectives import LeastSquares
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> path = select(LeastSquares(X, 3 * X[:, 1] - 2 * X[:, 6]), k=2)
    >>> path[2].support.tolist()
    [1, 6]
    >>> path.coef(2).round(6)[[1, 6]].tolist()
    [3.0, -2.0]
    >>> path.stop_reason
    'size 2 reached'
    """
    objective = as_objective(objective)
    candidates = make_candidates(objective, groups=groups, by=by, always=always, costs=costs)
    settings = check_settings(
        candidates,
        k,
        method,
        epsilon=epsilon,
        delta=delta,
        ratio=ratio,
        backward=backward,
        budget=budget,
        max_steps=max_steps,
    )
    refinement = check_refine(refine)
    selection = Selection(
        objective,
        candidates,
        settings,
        start=check_start(start, candidates, objective.dim, settings),
        callback=callback,
        random_state=random_state,
    )
    path = selection.run()
    selection.refined(refinement, path.answer(k))
    return path
