"""What the estimators share in their docstrings: parameters and fitted attributes, written once."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T", bound=type)

_CHOICE = """k : int, optional
        Number of features (or groups) to choose; those of `always` are not counted. None: as many
        as `epsilon`, `delta` or `budget` lets in if one is given, else the number that minimises
        `criterion` among the sizes on the way to `k_max`.
    method : {"foba-gdt", "foba-obj", "forward-gdt", "forward-obj"}
        Which of the paper's algorithms: features enter by gradient or by decrease of the
        objective; with ("foba") or without ("forward") leaving again.
    criterion : {"bic", "aic", "ebic"}
        How the size is chosen when `k`, `epsilon`, `delta` and `budget` are all None. BIC and AIC
        want rows to outnumber columns; EBIC also counts how many models of a size there are (with
        gamma = 1/2). On a wide table choose `k` by cross-validation.
    k_max : int, optional
        The largest size considered then. None: min(100, number of candidates,
        (n_samples - 1) // 2).
    ratio : float in [0, 1)
        A feature leaves when that costs less than this fraction of the gain recorded.
    backward : {"coordinate", "refit"}
        Whether the cost of leaving is taken before (the paper) or after refitting the others.
    epsilon, delta : float or "auto", optional
        Thresholds on the largest gradient (gdt methods) or decrease (obj methods) outside, on the
        scale fitted: the run stops below them. "auto" (not for sequences and graphs): the
        permutation threshold at family-wise level 5 %, see `select`; it is kept as
        ``path_.settings["threshold"]``.
    groups : sequence of labels or mapping, optional
        Which columns belong together, such as the columns of one sensor: one label per column, or
        a mapping column -> label or label -> columns (a list, a tuple, ...). Columns that a mapping
        leaves out, and all columns by default, are groups of their own. A pandas Series, here and
        below, is a mapping from its index.
    by : {"group", "feature"}
        Whether whole groups enter and leave, and `k` counts them, or single features; a group is
        then in use, and paid for, as soon as one of its features is.
    always : sequence of columns or mask, optional
        Columns that are always in, and free; by their labels where X is a frame, by number where
        a number cannot be a label.
    costs : sequence of numbers or mapping, optional
        What a group costs, once: a price per column, or a mapping group -> price with a price for
        every group that is not always in. By default each costs 1.
    budget : float, optional
        The most that the groups in use may cost together: by default, their number. The run ends
        when the best candidate is unaffordable; with `k`, such candidates are passed over."""

_ATTRIBUTES = """support_ : bool array of shape (p,)
        Which columns the model uses.
    selected_ : int array
        The columns that the model uses in order of entry, after those of `always`.
    k_ : int
        Number of features or groups chosen.
    path_ : Path
        Every step; its coefficients are on the scale fitted, what is always in comes last. Where a
        criterion chose the size, the path goes on to `k_max`, and the model is ``path_[k_]``.
    objective_value_ : float
        The objective on the scale fitted.
    n_iter_ : int
        Number of steps.
    n_features_in_, feature_names_in_
        As in scikit-learn."""


_LINEAR = """alpha : float
        Ridge penalty: ``alpha / 2 * sum(coef**2)`` next to the mean of the loss, on the scale
        fitted. For n rows, ``LogisticRegression(C=1 / (n * alpha))`` and
        ``Ridge(alpha=n * alpha)`` of scikit-learn penalise alike.
    fit_intercept : bool
        Whether to fit an intercept; it is never penalised.
    standardize : bool
        Whether to select on columns of unit variance, and of mean zero with an intercept;
        coefficients come back on your scale. X is not copied for it, and stays sparse if it is.
    tol : float
        Accuracy of each fit, relative to the gradient before any feature is in.
    max_iter : int
        Newton steps per fit.
    verbose : int
        1 prints a line per step.
    random_state : int, numpy.random.Generator or None
        Seed of ``epsilon="auto"`` and ``delta="auto"``; nothing else is random."""

_TEXTS = {"choice": _CHOICE, "linear": _LINEAR, "attributes": _ATTRIBUTES}


def documented(cls: T) -> T:
    """Fill the parameters and attributes that estimators share into the docstring of a class."""
    text = cls.__doc__ or ""
    for name, part in _TEXTS.items():
        text = text.replace("{" + name + "}", part)
    cls.__doc__ = text
    return cls
