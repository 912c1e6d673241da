"""Public tables: protein levels in cells, and five problems of the LIBSVM collection."""

from __future__ import annotations

import os
from dataclasses import dataclass
from io import BytesIO, StringIO
from typing import Any

import numpy as np
from scipy import sparse

from forback.core.types import Floats
from forback.datasets.download import CYTOMETRY, LIBSVM, read
from forback.validation.scalars import check_choice

#: Names of the columns, as Sachs et al. write them.
PROTEINS = ("Raf", "Mek", "Plcg", "PIP2", "PIP3", "Erk", "Akt", "PKA", "PKC", "P38", "Jnk")


@dataclass(frozen=True)
class Cytometry:
    """Protein levels measured in single cells.

    Attributes
    ----------
    X : ndarray of shape (7466, 11)
        Natural logarithms of the measurements, a cell per row.
    names : tuple of str
        Name of the protein in each column.
    """

    X: Floats
    names: tuple[str, ...]


def load_cytometry(*, folder: str | os.PathLike[str] | None = None) -> Cytometry:
    """Read the flow cytometry of Sachs et al. (2005): 11 proteins in 7466 cells.

    Parameters
    ----------
    folder : str or path, optional
        A folder of public data files. By default the file is looked for below the folder named by
        the environment variable FORBACK_DATA, then in the user's cache (``~/.cache/forback``); if
        neither has it, it is downloaded into the cache.

    Returns
    -------
    Cytometry
        Holds `X` and `names`.

    Examples
    --------
    >>> load_cytometry().X.shape  # doctest: +SKIP
    (7466, 11)
    """
    text = read(CYTOMETRY, folder)
    return Cytometry(np.loadtxt(StringIO(text), delimiter=",", skiprows=1), PROTEINS)


LIBSVM_PARTS = ("train", "test")

#: Number of columns by folder: the last ones are all zero in some files, which do not list them.
LIBSVM_COLUMNS = {"libsvm-adult": 123, "libsvm-web": 300}


@dataclass(frozen=True)
class LibsvmData:
    """Binary features and two classes.

    Attributes
    ----------
    X : scipy.sparse.csr_array of shape (n, 123) or (n, 300)
        Zeros and ones as float64.
    y : ndarray of shape (n,)
        Classes, -1 or 1.
    """

    X: Any
    y: Floats


def load_libsvm(
    name: str, *, part: str = "train", folder: str | os.PathLike[str] | None = None
) -> LibsvmData:
    """Read a classification problem of LIBSVM's collection.

    ======== ======= ====================== ====================================================
    name     columns rows (train, test)     content
    ======== ======= ====================== ====================================================
    a1a      123     1605, 30956            people of a census (UCI Adult): is the income high?
    a2a      123     2265, 30296            the same people, split elsewhere
    a9a      123     32561, 16281           all of them, and the test part of UCI
    w1a      300     2477, 47272            words of web pages: is the page of a certain kind?
    w8a      300     49749, 14951           all of them, and further pages
    ======== ======= ====================== ====================================================

    Parameters
    ----------
    name : {"a1a", "a2a", "a9a", "w1a", "w8a"}
        The problem.
    part : {"train", "test"}
        The training or the test file.
    folder : str or path, optional
        A folder of public data files. By default the file is looked for below the folder named by
        the environment variable FORBACK_DATA, then in the user's cache (``~/.cache/forback``); if
        neither has it, it is downloaded into the cache.

    Returns
    -------
    LibsvmData
        Holds `X`, sparse, and `y`. Some rows of w1a and w8a are empty.

    Examples
    --------
    >>> load_libsvm("a1a").X.shape  # doctest: +SKIP
    (1605, 123)
    """
    check_choice(name, "name", LIBSVM)
    check_choice(part, "part", LIBSVM_PARTS)
    source = LIBSVM[name][LIBSVM_PARTS.index(part)]
    text = read(source, folder)
    # Imported here because it is slow to import and seldom needed.
    from sklearn.datasets import load_svmlight_file

    n_columns = LIBSVM_COLUMNS[source.folder]
    content = BytesIO(text.encode())
    try:
        X, y = load_svmlight_file(content, n_features=n_columns, zero_based=False)
    except ValueError as error:
        raise ValueError(
            f"{source.folder}/{source.file} must be a LIBSVM file of {n_columns} columns: {error}. "
            f"It is public: {source.address}"
        ) from error
    # Some solvers of scikit-learn refuse the 64-bit indices that its own reader returns.
    stored = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return LibsvmData(sparse.csr_array(stored, shape=X.shape), y)
