"""Public tables: proteins in cells, and five problems of the LIBSVM collection."""

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

#: The proteins, as Sachs et al. write them, in the order of the columns.
PROTEINS = ("Raf", "Mek", "Plcg", "PIP2", "PIP3", "Erk", "Akt", "PKA", "PKC", "P38", "Jnk")


@dataclass(frozen=True)
class Cytometry:
    """Proteins measured in single cells."""

    X: Floats  #: (7466, 11), natural logarithms
    names: tuple[str, ...]  #: of the proteins


def load_cytometry(*, folder: str | os.PathLike[str] | None = None) -> Cytometry:
    """Read the flow cytometry of Sachs et al. (2005): 11 proteins in 7466 cells.

    Parameters
    ----------
    folder : str or path, optional
        A folder of public data files. Without one the file is looked for below the folder that the
        environment variable FORBACK_DATA names, else in the user's cache (``~/.cache/forback``),
        else it is downloaded into that.

    Returns
    -------
    Cytometry
        With `X`, natural logarithms of the measurements, and `names`.

    Examples
    --------
    >>> load_cytometry().X.shape  # doctest: +SKIP
    (7466, 11)
    """
    text = read(CYTOMETRY, folder)
    X = np.loadtxt(StringIO(text), delimiter=",", skiprows=1)
    return Cytometry(X, PROTEINS)


PARTS = ("train", "test")

#: Columns of each folder's files; the last ones are all zero in some, so that no file tells.
COLUMNS = {"libsvm-adult": 123, "libsvm-web": 300}


@dataclass(frozen=True)
class LibsvmData:
    """Rows of zeros and ones, and the class of each."""

    X: Any  #: SciPy CSR array of float64, (n, 123) or (n, 300)
    y: Floats  #: -1 or 1


def load_libsvm(
    name: str, *, part: str = "train", folder: str | os.PathLike[str] | None = None
) -> LibsvmData:
    """Read a classification problem of LIBSVM's collection.

    ======== ======= ====================== ====================================================
    name     columns rows (train, test)     what it is
    ======== ======= ====================== ====================================================
    a1a      123     1605, 30956            people of a census (UCI Adult): is the income high?
    a2a      123     2265, 30296            the same people, cut elsewhere
    a9a      123     32561, 16281           all of them, and the test part of UCI
    w1a      300     2477, 47272            words of web pages: is the page of a certain kind?
    w8a      300     49749, 14951           all of them, and more pages
    ======== ======= ====================== ====================================================

    Parameters
    ----------
    name : {"a1a", "a2a", "a9a", "w1a", "w8a"}
        Which problem.
    part : {"train", "test"}
        Which of its two files.
    folder : str or path, optional
        A folder of public data files. Without one the file is looked for below the folder that the
        environment variable FORBACK_DATA names, else in the user's cache (``~/.cache/forback``),
        else it is downloaded into that.

    Returns
    -------
    LibsvmData
        With `X`, sparse, and `y`, -1 or 1. Some rows of w1a and w8a have no words at all.

    Examples
    --------
    >>> load_libsvm("a1a").X.shape  # doctest: +SKIP
    (1605, 123)
    """
    check_choice(name, "name", LIBSVM)
    check_choice(part, "part", PARTS)
    source = LIBSVM[name][PARTS.index(part)]
    text = read(source, folder)
    # It takes long to import, and most of those who import forback.datasets do not need it.
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(
            BytesIO(text.encode()), n_features=COLUMNS[source.folder], zero_based=False
        )
    except ValueError as error:
        raise ValueError(
            f"{source.folder}/{source.file} is not what it should be: {error}. It is public: "
            f"{source.address}"
        ) from error
    # Some solvers of scikit-learn refuse the 64-bit indices that its own reader gives an array.
    indices, pointer = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return LibsvmData(sparse.csr_array((X.data, indices, pointer), shape=X.shape), y)
