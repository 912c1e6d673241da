"""Real tables: read from the folder that FORBACK_DATA names, standardised, without intercept."""

from __future__ import annotations

import lzma
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contract import Unavailable, standardised
from forback.core.types import Floats
from forback.datasets import load_libsvm


@dataclass(frozen=True)
class Table:
    """A real table, and what is asked of it.

    Attributes
    ----------
    read : callable
        X and y as the file has them.
    loss : {"squared", "logistic"}
    sizes : tuple of int
        How many features are asked for.
    ridge : float
    scaled : bool
        Whether columns are brought to mean 0 and variance 1, and a real response to mean 0.
    """

    read: Callable[[], tuple[Any, Floats]]
    loss: str
    sizes: tuple[int, int, int]
    ridge: float
    scaled: bool = True

    def load(self) -> tuple[Floats, Floats]:
        """Read the table, without columns that are the same everywhere."""
        X, y = self.read()
        X = np.asarray(X, dtype=np.float64)
        X = X[:, X.std(axis=0) > 0.0]
        if self.loss == "squared":
            y = y - y.mean()
        return (standardised(X) if self.scaled else X), y


def _file(name: str) -> Path:
    """A file of the data folder."""
    folder = os.environ.get("FORBACK_DATA")
    file = Path(folder or "") / name
    if not folder or not file.is_file():
        raise Unavailable(f"{name} is absent: set FORBACK_DATA to a folder that holds it")
    return file


def _lines(name: str) -> str:
    """The text of a packed file."""
    return lzma.decompress(_file(name).read_bytes()).decode()


def _csv(name: str, positive: str = "") -> tuple[Floats, Floats]:
    """A CSV file with one header line and the response in its first column."""
    rows = [line.split(",") for line in _lines(name).splitlines()[1:]]
    first = [row[0].strip('"') for row in rows]
    y = [float(word == positive) for word in first] if positive else [float(x) for x in first]
    return np.array([[float(x) for x in row[1:]] for row in rows]), np.array(y)


def _spambase() -> tuple[Floats, Floats]:
    rows = np.loadtxt(StringIO(_lines("spambase/spam.data.xz")))
    return np.log(rows[:, :-1] + 0.1), rows[:, -1]


def _madelon() -> tuple[Floats, Floats]:
    from scipy.io import loadmat

    content = loadmat(_file("nips2003/madelon.mat"))
    return content["X"], (content["Y"].ravel() > 0).astype(float)


def _libsvm(name: str) -> tuple[Any, Floats]:
    try:
        data = load_libsvm(name)
    except FileNotFoundError as error:
        raise Unavailable(f"{name} is absent: set FORBACK_DATA to a folder with it") from error
    return data.X.toarray(), (data.y > 0).astype(float)


TABLES: dict[str, Table] = {
    "a1a": Table(partial(_libsvm, "a1a"), "logistic", (10, 30, 60), 1e-4, scaled=False),
    "w1a": Table(partial(_libsvm, "w1a"), "logistic", (10, 30, 60), 1e-4, scaled=False),
    "spambase": Table(_spambase, "logistic", (5, 15, 30), 1e-4),
    "madelon": Table(_madelon, "logistic", (5, 10, 20), 1e-4),
    "colon": Table(partial(_csv, "colon-alon/colon_cancer.csv.xz"), "logistic", (3, 6, 10), 1e-2),
    "leukemia": Table(
        partial(_csv, "leukemia-golub/golub.csv.xz", "AML"), "logistic", (3, 6, 10), 1e-2
    ),
    "riboflavin": Table(partial(_csv, "riboflavin/riboflavin.csv.xz"), "squared", (5, 10, 20), 0.0),
    "diabetes": Table(partial(_csv, "diabetes/diabetes_x2.csv.xz"), "squared", (5, 10, 20), 0.0),
}
