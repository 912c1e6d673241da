"""Public tables: LIBSVM's files, with the right number of columns, and the cytometry."""

import hashlib
import lzma
from collections import Counter

import numpy as np
import pytest
from scipy import sparse

from forback import select
from forback.datasets import download, load_cytometry, load_libsvm
from forback.datasets.download import CYTOMETRY, LIBSVM, read
from forback.datasets.public import LIBSVM_COLUMNS, LIBSVM_PARTS
from forback.objectives import Logistic

#: Rows, columns, nonzeros, rows of class 1.
PUBLISHED = {
    ("a1a", "train"): (1605, 123, 22249, 395),
    ("a1a", "test"): (30956, 123, 429343, 7446),
    ("a2a", "train"): (2265, 123, 31404, 572),
    ("a2a", "test"): (30296, 123, 420188, 7269),
    ("a9a", "train"): (32561, 123, 451592, 7841),
    ("a9a", "test"): (16281, 123, 225731, 3846),
    ("w1a", "train"): (2477, 300, 28410, 72),
    ("w1a", "test"): (47272, 300, 551176, 1407),
    ("w8a", "train"): (49749, 300, 579586, 1479),
    ("w8a", "test"): (14951, 300, 174276, 454),
}


def load(data_folder, name, part="train"):
    try:
        return load_libsvm(name, part=part, folder=data_folder)
    except FileNotFoundError as absent:
        pytest.skip(str(absent))


@pytest.mark.parametrize(("name", "part"), PUBLISHED)
def test_what_is_read_is_what_is_published(data_folder, name, part):
    data = load(data_folder, name, part)
    n, p, nonzeros, positive = PUBLISHED[name, part]
    assert isinstance(data.X, sparse.csr_array)
    assert data.X.shape == (n, p)
    assert data.X.dtype == data.y.dtype == np.float64
    assert data.X.nnz == nonzeros
    assert np.all(data.X.data == 1.0)
    assert np.all(np.abs(data.y) == 1.0)
    assert np.sum(data.y == 1.0) == positive


def test_all_are_covered():
    assert set(PUBLISHED) == {(name, part) for name in LIBSVM for part in LIBSVM_PARTS}
    assert {pair[0].folder for pair in LIBSVM.values()} == set(LIBSVM_COLUMNS)


@pytest.mark.parametrize(("small", "whole"), [("a1a", "a9a"), ("a2a", "a9a"), ("w1a", "w8a")])
def test_the_parts_of_a_small_set_make_the_large_one(data_folder, small, whole):
    def rows(data):
        lists = np.split(data.X.indices, data.X.indptr[1:-1])
        return Counter((y, tuple(row.tolist())) for y, row in zip(data.y, lists, strict=True))

    parts = [rows(load(data_folder, small, part)) for part in LIBSVM_PARTS]
    assert parts[0] + parts[1] == rows(load(data_folder, whole))


# Without the files -------------------------------------------------------------------------------


def put(folder, text, name="a1a", place="libsvm-adult"):
    (folder / place).mkdir(exist_ok=True)
    (folder / place / name).write_text(text, encoding="utf-8")


def test_columns_count_from_one_and_rows_may_be_empty(tmp_path):
    put(tmp_path, "-1 1:1 119:1 \n+1 \n+1 2:1 \n")
    data = load_libsvm("a1a", folder=tmp_path)
    expected = np.zeros((3, 123))
    expected[[0, 0, 2], [0, 118, 1]] = 1.0
    np.testing.assert_array_equal(data.X.toarray(), expected)
    np.testing.assert_array_equal(data.y, [-1.0, 1.0, 1.0])
    # Both this library and the pickiest solvers of scikit-learn take it as it is.
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int32
    assert select(Logistic(data.X, data.y, ridge=0.1), k=1).end.size == 1


def test_the_test_part_is_another_file_and_may_be_packed(tmp_path):
    put(tmp_path, "-1 1:1 \n", "w1a", "libsvm-web")
    content = lzma.compress(b"+1 300:1 \n-1 7:1 \n")
    (tmp_path / "libsvm-web" / "w1a.t.xz").write_bytes(content)
    assert load_libsvm("w1a", folder=tmp_path).X.shape == (1, 300)
    assert load_libsvm("w1a", part="test", folder=tmp_path).y.tolist() == [1.0, -1.0]


@pytest.mark.parametrize("text", ["-1 1:1 124:1 \n", "-1 0:1 \n", "<html>not found</html>\n"])
def test_a_file_that_is_something_else_is_an_error_that_names_it(tmp_path, text):
    put(tmp_path, text)
    with pytest.raises(
        ValueError, match=r"libsvm-adult/a1a must be a LIBSVM file of 123 columns.*csie\.ntu"
    ):
        load_libsvm("a1a", folder=tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "a3a"}, r"name must be one of \['a1a', 'a2a', 'a9a', 'w1a', 'w8a'\], got 'a3a'"),
        ({"name": "a1a", "part": "t"}, r"part must be one of \['test', 'train'\], got 't'"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        load_libsvm(**options)


def test_a_folder_that_lacks_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"libsvm-web/w8a\.t .*/datasets/binary/w8a\.t"):
        load_libsvm("w8a", part="test", folder=tmp_path)


def test_where_it_is_downloaded_from(monkeypatch, tmp_path):
    asked = []

    def urlopen(address, timeout):
        asked.append(address)
        raise OSError("no network")

    monkeypatch.delenv("FORBACK_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(download, "urlopen", urlopen)
    with pytest.raises(FileNotFoundError, match="FORBACK_DATA"):
        load_libsvm("a2a", part="test")
    assert asked == ["https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/a2a.t"]


def test_cytometry(data_folder):
    data = load_cytometry(folder=data_folder)
    assert data.X.shape == (7466, 11)
    assert data.names[:2] == ("Raf", "Mek")
    assert np.isfinite(data.X).all()
    assert np.corrcoef(data.X, rowvar=False)[0, 1] > 0.7
    text = read(CYTOMETRY, data_folder)
    assert hashlib.sha256(text.encode()).hexdigest() == CYTOMETRY.sha256
    header = text.splitlines()[0].replace('"', "").split(",")
    assert [name[:3] for name in header] == [name.lower()[:3] for name in data.names]


def test_cytometry_from_a_folder_that_lacks_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"sachs-cytometry/cytometry\.csv"):
        load_cytometry(folder=tmp_path)
