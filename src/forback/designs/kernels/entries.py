"""Columns of X as entries, the form in which kernels take them."""

from __future__ import annotations

from typing import NamedTuple

from forback.core.types import Floats, Ints


class Entries(NamedTuple):
    """Columns of X: those of column c are ``data[begin[c]:end[c]]``.

    Their rows are ``rows[row_begin[c]:]``; full columns share one list of rows.
    """

    data: Floats
    rows: Ints
    begin: Ints
    end: Ints
    row_begin: Ints


class Rest(NamedTuple):
    """The rows of each column that have no entries but are all alike: x is `at` there.

    For a self-concordant loss their sums of slopes and curvatures at 0 bound what they add to phi.
    """

    slopes: Floats
    curvatures: Floats
    at: Floats
