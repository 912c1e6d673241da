"""Tiers of tests, where the real data is, if it is anywhere, and how examples are drawn."""

import os
import subprocess
import sys
from pathlib import Path

# Several tests run at once, and threads of a BLAS that wait for a busy core take its time: before
# NumPy is loaded, here and in every process that a test starts.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from support.tiers import ABOUT_THREADS, SLOW, SLOW_FIXTURES, is_under

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """Mark what is slow; doctests of the package are not."""
    for item in items:
        if item.path.is_relative_to(HERE):
            name = f"{item.path.relative_to(HERE).as_posix()}::{item.name.partition('[')[0]}"
            if is_under(name, SLOW) or SLOW_FIXTURES.intersection(item.fixturenames):
                item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True, scope="module")
def blas_threads(request):
    """Two threads of BLAS for tests that are about threads."""
    path = request.path
    about = path.is_relative_to(HERE) and is_under(path.relative_to(HERE).as_posix(), ABOUT_THREADS)
    if not about:
        yield
        return
    with threadpool_limits(2, user_api="blas"):
        yield


# `make test` tries the same examples everywhere and every day; `make fuzz` searches for new ones,
# and remembers what it finds in .hypothesis.
settings.register_profile("same", derandomize=True, database=None, deadline=None, print_blob=True)
settings.register_profile("search", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("same")


@pytest.fixture(scope="session")
def data_folder():
    """The folder of public data files: FORBACK_DATA, or `shared/data` beside the checkout."""
    checkout = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("FORBACK_DATA", checkout.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data folder at {folder}; set FORBACK_DATA to one")
    return folder


ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}")

sys.meta_path.insert(0, Absent())
"""


@pytest.fixture
def without_extras():
    """Run code in a new interpreter where no extra can be imported, but those named."""

    def run(code, but=()):
        absent = {"pandas", "polars", "pyarrow", "typer", "matplotlib", "jax", "dask"}
        absent = absent.union({"abess", "skscope", "pycrfsuite", "networkx", "cvxpy"}).difference(
            but
        )
        script = ABSENT.format(absent=absent) + code
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    return run
