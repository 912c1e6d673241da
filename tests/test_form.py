"""The shape of the code: who imports whom, what a bare import loads, how long things are."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import forback

SOURCE = Path(forback.__file__).parent

#: Each layer may import those before it, and its own modules.
LAYERS = [
    {
        "protocols",
        "numerics",
        "quasi_newton",
        "one_dimensional",
        "containers",
        "storage",
        "units",
        "validation",
        "sequences",
        "moments",
        "candidates",
        "ledger",
        "kernels",
        "threads",
    },
    {"objectives", "selection"},
    {"certificates", "estimators", "datasets", "testing", "compat"},
    {"report"},
    {"experiments"},
    {"cli"},
]
#: Third-party packages that only some modules may see.
KEPT_APART = {
    "sklearn": {
        "validation",
        "datasets.libsvm",
        "estimators",
        "compat",
        "experiments",
    },
    "numba": {"kernels"},
    "typer": {"cli"},
    "pandas": {"selection.path"},
    "matplotlib": {"report"},
    "abess": {"experiments.contestants"},
    "skscope": {"experiments.contestants"},
    "pycrfsuite": {"experiments.chains"},
    "jax": {"objectives.tracing", "experiments.contestants"},
    "networkx": {"estimators.covariance"},
    "threadpoolctl": {"threads"},
}


def modules():
    for file in sorted(SOURCE.rglob("*.py")):
        parts = file.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        yield name, file, ast.parse(file.read_text(encoding="utf-8"))


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "absolute imports only"
            if node.module == "forback":
                yield from (f"forback.{alias.name}" for alias in node.names)
            else:
                yield node.module


def layer(name):
    top = name.split(".")[0]
    return next(number for number, names in enumerate(LAYERS) if top in names)


def inner_imports():
    for name, _, tree in modules():
        if not name:
            continue
        for target in imports(tree):
            top = target.removeprefix("forback.").split(".")[0]
            if target.startswith("forback.") and any(top in names for names in LAYERS):
                yield name, top


def test_imports_go_one_way():
    found = list(inner_imports())
    assert len(found) > 20
    for name, target in found:
        own = name.split(".")[0]
        assert layer(target) < layer(name) or target == own or layer(name) == 0, (name, target)


def test_selection_and_objectives_do_not_know_each_other():
    for name, target in inner_imports():
        assert {name.split(".")[0], target} != {"selection", "objectives"}, name


def test_third_parties_stay_where_they_belong():
    for name, _, tree in modules():
        for target in imports(tree):
            homes = KEPT_APART.get(target.split(".")[0])
            if homes is not None:
                assert any(name == home or name.startswith(f"{home}.") for home in homes), (
                    f"{name} imports {target}"
                )


def test_files_and_functions_stay_short():
    for name, file, tree in modules():
        assert file.read_text(encoding="utf-8").count("\n") <= 400, name
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                doc = ast.get_docstring(node, clean=False)
                length = node.end_lineno - node.lineno + 1 - (doc.count("\n") + 1 if doc else 0)
                assert length <= 60, f"{name}.{node.name}: {length} lines"


def test_every_file_is_in_the_table_of_the_design():
    design = (SOURCE.parents[1] / "docs" / "design.md").read_text(encoding="utf-8")
    for name, file, _ in modules():
        assert file.name == "__init__.py" or f"{file.name}`" in design, name


def test_a_bare_import_loads_nothing_heavy():
    code = (
        "import sys, forback; "
        "heavy = {'numpy', 'scipy', 'sklearn', 'numba', 'pandas', 'typer', 'matplotlib'}; "
        "heavy &= set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_core_install_needs_no_extra(without_extras):
    without_extras(
        "import numpy as np, forback.cli, forback.experiments.bench, forback.testing\n"
        "from forback import FobaClassifier, FobaRegressor, FobaSelector, select\n"
        "from forback.objectives import LeastSquares\n"
        "X = np.eye(4)\n"
        "FobaRegressor(k=1).fit(X, X[0])\n"
        "try:\n"
        "    select(LeastSquares(X, X[0])).to_frame()\n"
        "except ImportError as error:\n"
        "    assert 'pip install \"forback[report]\"' in str(error)\n"
        "else:\n"
        "    raise AssertionError('pandas was found')\n"
    )


def test_public_names():
    for name in forback.__all__:
        assert getattr(forback, name).__doc__
        assert name in dir(forback)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        forback.nothing  # noqa: B018
