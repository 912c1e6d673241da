"""Warnings point at the line of whoever called the package."""

import warnings

import numpy as np
import pytest

from forback import FobaClassifier, FobaCovariance
from forback.core.warn import warn_user


def test_a_warning_points_here():
    with pytest.warns(RuntimeWarning, match="look") as caught:
        warn_user("look", RuntimeWarning)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("estimator", [FobaClassifier(k=1, alpha=0.0), FobaCovariance(k=2)])
def test_so_do_those_of_estimators(estimator):
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[:, 2] = X[:, 1]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, X[:, 1] > 0)
    assert caught
    assert {warning.filename for warning in caught} == {__file__}
