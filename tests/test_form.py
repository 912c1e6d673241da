"""The shape of the code: who imports whom, what a bare import loads, how long things are."""

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import forback

SOURCE = Path(forback.__file__).parent
DESIGN = SOURCE.parents[1] / "docs" / "design.md"

#: Rooms to the left may be imported, others not; rooms between arrows do not know each other. The
#: same line is in docs/design.md.
ORDER = (
    "core -> files, validation, solvers -> designs -> objectives | selection -> certificates, "
    "datasets, testing -> estimators, compat -> report -> demo, warm -> cli"
)
LAYERS = [set(re.split(r"[,|] ", layer)) for layer in re.sub(" [|] ", "| ", ORDER).split(" -> ")]

#: A family may use another: softmax regression is a linear model per class, and somebody's own loss
#: of a linear model may be written in JAX.
BUILT_ON = {"softmax": "linear", "linear": "function"}

#: Third-party packages that only some modules may see.
KEPT_APART = {
    "sklearn": {"validation", "datasets.public", "estimators", "compat", "demo"},
    "numba": {"kernels"},
    "typer": {"cli"},
    "pandas": {"selection.path"},
    "matplotlib": set(),
    "jax": {"objectives.function.jax.trace"},
    "networkx": {"estimators.covariance"},
    "threadpoolctl": {"solvers.threads"},
}


def modules():
    for file in sorted(SOURCE.rglob("*.py")):
        parts = file.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        yield name, file, ast.parse(file.read_text(encoding="utf-8"))


NAMES = {name for name, _, _ in modules()}


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "absolute imports only"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole.removeprefix("forback.") in NAMES else node.module


def inner_imports(*, for_types=True):
    """Each module of the package with each that it imports; the public lists apart."""
    for name, _, tree in modules():
        if name in ("", "objectives", "__main__", "protocols"):
            continue
        if not for_types:
            tree.body = [node for node in tree.body if not isinstance(node, ast.If)]
        for target in imports(tree):
            if target.startswith("forback."):
                yield name, target.removeprefix("forback.")


def layer(name):
    top = name.split(".")[0]
    return next(number for number, names in enumerate(LAYERS) if top in names)


def test_every_module_has_its_place_in_the_order():
    tops = {name.split(".")[0] for name in NAMES} - {"", "__main__", "protocols"}
    assert tops == set.union(*LAYERS)
    assert ORDER in " ".join(DESIGN.read_text(encoding="utf-8").split())


def test_imports_go_one_way():
    found = list(inner_imports())
    assert len(found) > 200
    for name, target in found:
        same = name.split(".")[0] == target.split(".")[0]
        assert same or layer(target) < layer(name), f"{name} imports {target}"


def test_no_module_imports_itself_by_a_detour():
    graph = {}
    for name, target in inner_imports(for_types=False):
        graph.setdefault(name, set()).add(target)
    order = list(TopologicalSorter(graph).static_order())
    assert order.index("core.point") < order.index("selection.loop")


def test_families_of_objectives_know_only_what_they_are_made_of():
    for name, target in inner_imports():
        own, other = name.split("."), target.split(".")
        if own[0] == other[0] == "objectives":
            allowed = {own[1], BUILT_ON.get(own[1])}
            assert other[1] in allowed, f"{name} imports {target}"


def test_nobody_inside_goes_through_the_list_for_others():
    assert not [name for name, target in inner_imports() if target == "protocols"]


def test_third_parties_stay_where_they_belong():
    for name, _, tree in modules():
        for target in imports(tree):
            homes = KEPT_APART.get(target.split(".")[0])
            if homes is not None:
                at_home = any(f".{name}.".startswith(f".{home}.") for home in homes)
                in_kernels = "kernels" in homes and "kernels" in name.split(".")
                assert at_home or in_kernels, f"{name} imports {target}"


def test_core_imports_numpy_and_scipy_only():
    allowed = {"forback", "numpy", "scipy", *sys.stdlib_module_names}
    for name, _, tree in modules():
        if name.startswith("core"):
            assert {target.split(".")[0] for target in imports(tree)} <= allowed, name


def test_files_and_functions_stay_short():
    for name, file, tree in modules():
        assert file.read_text(encoding="utf-8").count("\n") <= 400, name
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                doc = ast.get_docstring(node, clean=False)
                length = node.end_lineno - node.lineno + 1 - (doc.count("\n") + 1 if doc else 0)
                assert length <= 60, f"{name}.{node.name}: {length} lines"


def test_one_thought_a_line():
    """No formatting by hand, and few assignments of several things at once."""
    packed = 0
    for name, file, tree in modules():
        assert "fmt: skip" not in file.read_text(encoding="utf-8"), name
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
                packed += any(isinstance(target, ast.Tuple) for target in node.targets)
    assert packed < 150


def test_no_constant_has_two_values():
    values = {}
    for name, _, tree in modules():
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                constant = node.targets[0].id
                if constant.isupper() and len(constant) > 1:
                    value = ast.unparse(node.value)
                    assert values.setdefault(constant, value) == value, f"{constant} in {name}"
    assert len(values) > 50


def test_nobody_probes_an_objective_but_the_adapter():
    for name, file, _ in modules():
        if name != "core.adapter":
            text = file.read_text(encoding="utf-8")
            assert not re.search(r"(?:get|has)attr\( *(?:self\.)?objective\b", text), name


def test_a_bare_import_loads_nothing_heavy():
    code = (
        "import sys, forback, forback.objectives; "
        "heavy = {'numpy', 'scipy', 'sklearn', 'numba', 'pandas', 'typer', 'matplotlib'}; "
        "heavy &= set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_linear_model_loads_no_other_family():
    code = (
        "import sys; from forback.objectives import Logistic; "
        "found = {name for name in sys.modules if name.startswith('forback.objectives.')}; "
        "families = {name.split('.')[2] for name in found}; "
        "assert families <= {'linear', 'function'}, families"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_core_install_needs_no_extra(without_extras):
    without_extras(
        "import numpy as np, forback.cli, forback.testing\n"
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


@pytest.mark.parametrize("package", ["forback", "forback.objectives"])
def test_public_names(package):
    module = __import__(package, fromlist=["__all__"])
    for name in module.__all__:
        assert getattr(module, name).__doc__
        assert name in dir(module)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        module.nothing  # noqa: B018
