"""Where the real data is, if it is anywhere."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder():
    """The folder of public data files: FORBACK_DATA, or `shared/data` beside the checkout."""
    checkout = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("FORBACK_DATA", checkout.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data folder at {folder}; set FORBACK_DATA to one")
    return folder
