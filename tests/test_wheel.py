"""What users install: package code and nothing else."""

import zipfile
from pathlib import Path

import pytest

import forback

ROOT = Path(forback.__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The names in the wheel that the build backend makes of this checkout."""
    builders = pytest.importorskip("hatchling.builders.wheel")
    folder = tmp_path_factory.mktemp("wheel")
    (file,) = builders.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(file) as archive:
        return archive.namelist()


def test_the_wheel_holds_package_code_only(wheel):
    metadata = f"forback-{forback.__version__}.dist-info/"
    code = [name for name in wheel if not name.startswith(metadata)]
    assert all(name.startswith("forback/") for name in code)
    assert {Path(name).suffix for name in code} == {".py", ".typed"}
    for room in ("experiments", "benchmarks", "tests"):
        assert not [name for name in code if room in Path(name).parts]


def test_the_wheel_holds_all_of_the_package(wheel):
    source = ROOT / "src"
    files = {file.relative_to(source).as_posix() for file in (source / "forback").rglob("*.py")}
    assert files | {"forback/py.typed"} <= set(wheel)
    assert f"forback-{forback.__version__}.dist-info/licenses/LICENSE" in wheel
